//! The programs of `examples/sparse` against SciPy and NumPy, on tensors made here and on all published matrices,
//! graphs, tensors and pictures.

use crate::programs::{for_each, root};
use crate::python;
use itertools::Itertools as _;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use taffeta::{Options, Program};
use taffeta_ast::{Buffer, DType, Value};

#[path = "../../examples/sparse/blending.rs"]
mod blending;

/// Case, as `sparse_examples.py` prints it.
#[derive(Deserialize)]
struct Case {
    file: String,
    entry: String,
    inputs: BTreeMap<String, String>,
    sizes: BTreeMap<String, i64>,
    expected: PathBuf,
    /// Name of the data, for messages.
    data: String,
}

/// Runs the cases of one entry; returns their number.
fn entry(file: &str, entry: &str, cases: &[&Case]) -> usize {
    let file_name = file;
    let program = Program::load(root().join("examples").join(file)).unwrap_or_else(|e| panic!("{e}"));
    let function = program.compile(entry, &Options::default()).unwrap_or_else(|e| panic!("{file} {entry}: {e}"));
    for case in cases {
        let name = format!("{file} {entry} on {}", case.data);
        let given: Vec<_> = case.inputs.clone().into_iter().collect();
        let sizes: Vec<_> = case.sizes.clone().into_iter().collect();
        let inputs = taffeta::inputs::read(function.signature(), &given, &sizes)
            .unwrap_or_else(|e| panic!("{name}: {}", e[0].diagnostic));
        let ran = function.run(inputs.values, &inputs.sizes, 1).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut file = std::fs::File::open(&case.expected).expect("it is there");
        let expected =
            taffeta::io::npy::read_from(&mut file, None, &case.expected).unwrap_or_else(|d| panic!("{name}: {d}"));
        let found = match ran.results[0].places() {
            // A sparse result is compared by its elements.
            Some(_) if file_name.ends_with("results.ft") => triplets(&ran.results[0]),
            _ => ran.results[0].dense().expect("it is small").0,
        };
        if let Some(difference) = difference(&found, &expected) {
            panic!("{name}: {difference}");
        }
    }
    cases.len()
}

/// Returns the indices of the elements, a row for each dimension, and their values, but for elements that may have
/// cancelled.
fn triplets(v: &Value) -> Value {
    let (places, ndim) = (v.places().expect("a sparse value"), v.shape().len());
    let least = v.numbers().into_iter().fold(0.0, |most: f64, v| most.max(v.abs())) * 1e-9;
    let kept: Vec<(usize, f64)> = v.numbers().into_iter().enumerate().filter(|(_, v)| v.abs() > least).collect();
    let indices = (0..ndim).flat_map(|d| kept.iter().map(move |(k, _)| places.indices[k * ndim + d] as f64));
    let all = indices.chain(kept.iter().map(|(_, v)| *v)).collect();
    Value::new(vec![ndim + 1, kept.len()], Buffer::F64(all)).expect("as many numbers")
}

/// Returns the difference between two tensors: infinities must be equal, other elements within 1e-12 (of f32, 1e-5) of
/// the largest element.
fn difference(found: &Value, expected: &Value) -> Option<String> {
    if found.shape() != expected.shape() {
        return Some(format!("shape {:?}, and not {:?}", found.shape(), expected.shape()));
    }
    let most = if found.dtype() == DType::F32 { 1e-5 } else { 1e-12 };
    let (found, expected) = (found.numbers(), expected.numbers());
    let scale = expected.iter().filter(|v| v.is_finite()).fold(0.0, |m: f64, v| m.max(v.abs()));
    let pairs = found.iter().zip_eq(&expected).enumerate();
    let near = |a: f64, b: f64| a == b || (a - b).abs() <= most * scale;
    let wrong = pairs.filter(|(_, (a, b))| !near(**a, **b)).collect_vec();
    let (k, (a, b)) = wrong.first()?;
    Some(format!("{} elements of {} differ; element {k} is {a}, and not {b}", wrong.len(), found.len()))
}

#[test]
fn examples_agree_with_scipy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = std::env::var_os("TAFFETA_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let mut arguments: Vec<&Path> = vec![folder.path()];
    if data.is_dir() {
        arguments.push(&data);
    } else {
        eprintln!("{} is not there (TAFFETA_DATA names the folder of published data): made tensors", data.display());
    }
    let Some(text) = python::run("tests/numpy/sparse_examples.py", &arguments) else { return };
    let cases: Vec<Case> =
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect();
    let mut entries: BTreeMap<(&str, &str), Vec<&Case>> = BTreeMap::new();
    for case in &cases {
        entries.entry((&case.file, &case.entry)).or_default().push(case);
    }
    let entries: Vec<_> = entries.into_iter().collect();
    let count: usize = for_each(&entries, |((file, name), cases)| entry(file, name, cases)).iter().sum();
    assert_eq!(count, cases.len());
    // Every entry of the folder has a case, at least on tensors made here.
    for program in crate::programs::below("examples/sparse") {
        let file = program.path.strip_prefix(root().join("examples")).expect("it is below").display().to_string();
        let loaded = Program::load(&program.path).unwrap_or_else(|e| panic!("{e}"));
        for name in loaded.entries() {
            assert!(
                entries.iter().any(|((f, e), _)| *f == file && *e == name.name),
                "{file}: no test runs {}",
                name.name
            );
        }
    }
    assert!(count >= if data.is_dir() { 200 } else { 20 }, "only {count} cases");
}

/// Checks that sheets of pictures lent in runs are blended into the same picture as their pixels.
#[test]
fn pictures_in_runs_are_blended() {
    let program = Program::load(root().join("examples/sparse/pictures.ft")).unwrap_or_else(|e| panic!("{e}"));
    let function = program.compile("blend", &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let data = std::env::var_os("TAFFETA_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let published = blending::published(&data).expect("Omniglot is readable");
    if published.is_none() {
        eprintln!("skipped: Omniglot is not in {}", data.display());
    }
    for [over, under] in [Some(blending::made()), published].into_iter().flatten() {
        let runs = [&over, &under].map(blending::Runs::of);
        assert!(runs.iter().all(|r| 5 * r.count() < over.len()), "{} runs", runs[0].count());
        for alpha in [0.0, 0.25, 0.7, 1.0] {
            let found =
                blending::blend(&function, &runs[0], &runs[1], alpha).unwrap_or_else(|e| panic!("alpha {alpha}: {e}"));
            assert_eq!(found, blending::pixels(&over, &under, alpha), "alpha {alpha}");
        }
    }
}
