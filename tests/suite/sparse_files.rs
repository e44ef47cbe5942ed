//! Files of sparse tensors, from SciPy and back.

use crate::programs::root;
use crate::python;
use std::path::{Path, PathBuf};
use taffeta::io::output::{Item, Target, write_all};
use taffeta::io::{Source, Want, read_stored};
use taffeta::{Options, Program};
use taffeta_ast::format::{Format, Level, LevelKind, Named, presets};
use taffeta_ast::{Buffer, DType, Literal, Value};
use taffeta_structured::Stored;

const SCRIPT: &str = "tests/numpy/sparse_files.py";

/// Reads the dense tensors of a folder: file and value.
fn dense(folder: &Path) -> Vec<(PathBuf, Value)> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the folder").map(|f| f.expect("a file").path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "npy"));
    all.sort();
    let read = |path: PathBuf| {
        let mut file = std::fs::File::open(&path).expect("it is there");
        let value = taffeta::io::npy::read_from(&mut file, None, &path).unwrap_or_else(|d| panic!("{d}"));
        (path, value)
    };
    all.into_iter().map(read).collect()
}

fn matrix(order: &[usize]) -> Format {
    Format::new([LevelKind::Dense, LevelKind::Compressed].map(Level::new).to_vec()).ordered(order)
}

#[test]
fn files_round_trip_with_scipy() {
    let (given, ours) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    if python::run(SCRIPT, &[Path::new("make"), given.path()]).is_none() {
        return;
    }
    let (mut read, mut written) = (0, 0);
    for (path, expected) in dense(given.path()) {
        let want = Want::new("A", expected.dtype(), expected.shape().len());
        for extension in ["npz", "mtx"] {
            let file = path.with_extension(extension);
            if !file.exists() {
                continue;
            }
            let source = Source::File { path: file.clone(), part: None };
            let value = read_stored(&source, &want).unwrap_or_else(|d| panic!("{}: {d}", file.display()));
            let same = value.dense().expect("it is small").0;
            assert_eq!(same, expected, "{}", file.display());
            read += 1;
            stored_in_every_format(&value, &expected, &file);
            // (A file in `array` format lists all elements.)
            let value = if value.places().is_some() { value } else { value.only(Literal::zero(want.dtype), |_| true) };
            written += write(ours.path(), &format!("{read}"), &value, &expected);
        }
    }
    assert!(read > 150, "only {read} files");
    assert!(LevelKind::ALL.iter().filter(|k| holds_anything(**k)).count() >= 10);
    let compared = python::run(SCRIPT, &[Path::new("compare"), ours.path()]).expect("it was there before");
    assert_eq!(compared.trim(), written.to_string());
}

/// Checks files of results on published matrices and graphs: SciPy's full check accepts them, their rows are in order,
/// and they have the elements of SciPy's own results, those that cancelled included.
#[test]
fn results_on_published_data_pass_scipys_checks() {
    let data = std::env::var_os("TAFFETA_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    if !data.is_dir() {
        eprintln!(
            "{} is not there (TAFFETA_DATA names the folder of published data): nothing to check",
            data.display()
        );
        return;
    }
    let program = Program::load(root().join("examples/sparse/results.ft")).unwrap_or_else(|e| panic!("{e}"));
    let results = [("product", "C", &["A", "B"][..]), ("masked", "C", &["M", "A", "B"]), ("transposed", "T", &["A"])];
    let functions = results.map(|(entry, result, given)| {
        let function = program.compile(entry, &Options::default()).unwrap_or_else(|e| panic!("{entry}: {e}"));
        (entry, result, given, function)
    });
    let folder = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    for (path, part) in [
        ("matrices/1138_bus.mtx", None),
        ("matrices/bcsstk13.mtx", None),
        ("matrices/memplus.mtx", None),
        ("matrices/west0479.mtx", None),
        ("graphs/karate.mtx", None),
        ("graphs/ca-GrQc.txt", Some("edges")),
        ("graphs/ca-HepTh.txt", Some("edges")),
    ] {
        let source = Source::File { path: data.join(path), part: part.map(String::from) };
        let a = read_stored(&source, &Want::new("A", DType::F64, 2)).unwrap_or_else(|d| panic!("{d}"));
        let target = |name: &str, format: Format| Target {
            name: "A".into(),
            path: folder.path().join(format!("{}_{name}.npz", path.replace('/', "_"))),
            format: Some(format),
        };
        write_all(&[(target("a", matrix(&[0, 1])), &a)]).unwrap_or_else(|d| panic!("{d}"));
        for (entry, result, given, function) in &functions {
            let call = given.iter().fold(function.call(), |call, name| call.value(name, &a));
            let out = call.run().unwrap_or_else(|e| panic!("{path} {entry}: {e}"));
            let stored = out.stored(result).unwrap_or_else(|e| panic!("{path} {entry}: {e}"));
            let target = target(entry, stored.format().clone());
            write_all(&[(target, Item::Stored(stored))]).unwrap_or_else(|d| panic!("{d}"));
            count += 1;
        }
    }
    let Some(checked) = python::run(SCRIPT, &[Path::new("check"), folder.path()]) else { return };
    assert_eq!(checked.trim(), count.to_string());
}

/// Returns whether a level has room for any elements at any coordinates.
fn holds_anything(kind: LevelKind) -> bool {
    let format = Format::new([LevelKind::Dense, kind].map(Level::new).to_vec());
    let (corners, elements) = ([0, 0, 0, 2, 2, 0, 2, 2], Buffer::F64(vec![1.0, 2.0, 3.0, 4.0]));
    format.check(2).is_ok() && Stored::pack(&[3, 3], &format, &corners, &elements).is_ok()
}

/// Checks that a tensor is the same in every format.
fn stored_in_every_format(value: &Value, expected: &Value, file: &Path) {
    let sparse =
        if value.places().is_some() { value.clone() } else { value.only(Literal::zero(value.dtype()), |_| true) };
    let places = sparse.places().expect("it is sparse");
    let ndim = expected.shape().len();
    let mut formats = vec![Named::Coo.format(ndim).expect("it has dimensions")];
    for last in LevelKind::ALL.iter().filter(|k| holds_anything(**k)) {
        for above in [LevelKind::Dense, LevelKind::Compressed] {
            let mut levels = vec![Level::new(above); ndim];
            levels[ndim - 1] = Level::new(*last);
            let turned: Vec<usize> = (0..ndim).rev().collect();
            formats.extend([Format::new(levels.clone()), Format::new(levels).ordered(&turned)]);
        }
    }
    for format in formats {
        let stored = Stored::pack(sparse.shape(), &format, &places.indices, sparse.data());
        let stored = stored.unwrap_or_else(|why| panic!("{} as {format}: {why}", file.display()));
        let back = stored.elements().dense().expect("it is small").0;
        assert_eq!(back, *expected, "{} as {format}", file.display());
    }
}

/// Writes a tensor in every layout of SciPy, each with its dense form; returns the number of files that SciPy can read.
fn write(folder: &Path, name: &str, value: &Value, expected: &Value) -> usize {
    let ndim = expected.shape().len();
    let mut count = 0;
    let mut formats = vec![("coordinates", Named::Coo.format(ndim).expect("it has dimensions"))];
    if let [n, m] = expected.shape() {
        formats.extend([("csr", matrix(&[0, 1])), ("csc", matrix(&[1, 0]))]);
        formats.extend(Named::Dia.format(2).map(|dia| ("dia", dia)));
        let blocks = [("bsr22", [2, 2]), ("bsr13", [1, 3]), ("bsr31", [3, 1])].into_iter();
        let divides = |[r, c]: [usize; 2]| n % r == 0 && m % c == 0;
        formats.extend(blocks.filter(|(_, b)| divides(*b)).map(|(l, [r, c])| (l, presets::bcsr(r as i64, c as i64))));
    }
    for (layout, format) in formats {
        let target = |extension: &str| {
            let path = folder.join(format!("{name}_{layout}.{extension}"));
            Target { name: "A".into(), path, format: Some(format.clone()) }
        };
        // SciPy reads Matrix Market patterns as floats, and turns vectors into columns.
        let market = ndim == 2 && expected.dtype() != DType::Bool && layout == "csr";
        let mut items = vec![(target("npz"), value), (target("npy"), value)];
        if market {
            items.push((target("mtx"), value));
        }
        write_all(&items).unwrap_or_else(|d| panic!("{d}"));
        count += items.len() - 1;
    }
    count
}

/// Checks the tensors of `TAFFETA_DATA`: their shapes, numbers of elements, and sums as counted from the text.
#[test]
fn published_tensors_are_read() {
    let Some(data) = std::env::var_os("TAFFETA_DATA") else { return };
    for (name, shape, count) in
        [("openflights_routes", [547, 3246, 3246], 66765), ("parti_3D_12031", [100, 80, 60], 12031)]
    {
        let path = Path::new(&data).join(format!("tensors/{name}.tns"));
        let source = Source::File { path: path.clone(), part: None };
        let value = read_stored(&source, &Want::new("A", DType::F64, 3)).unwrap_or_else(|d| panic!("{d}"));
        assert_eq!((value.shape(), value.data().len()), (&shape[..], count), "{name}");
        // The file has no duplicates: the sum is that of the last words of its lines.
        let text = std::fs::read_to_string(&path).expect("it is there");
        let lines = text.lines().filter(|l| !l.starts_with('#') && l.split_whitespace().count() == 4);
        let sum: f64 = lines.filter_map(|l| l.split_whitespace().last()?.parse::<f64>().ok()).sum();
        assert_eq!(value.numbers().iter().sum::<f64>(), sum, "{name}");
    }
}
