//! Broken data files: no reader panics, whatever the bytes.

use crate::{Finding, panic_text};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::Write;
use std::path::Path;
use taffeta::io::output::{Target, write_all};
use taffeta::io::{Source, Want, read, read_stored};
use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::{Buffer, DType, Literal, Value};
use taffeta_structured::Stored;

const TEXTS: [(&str, &str, Option<&str>); 8] = [
    ("csv", "a,b\n1,2.5\n-3,4e2\n", Some("a")),
    ("tsv", "a\tb\n1\t\"2\"\n", None),
    ("obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf -1/1 -2/2/2 -3//3\n", Some("faces")),
    ("off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", Some("vertices")),
    ("mtx", "%%MatrixMarket matrix coordinate real symmetric\n% c\n2 2 2\n1 1 3.5\n2 1 -1\n", Some("rows")),
    ("mtx", "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n-2\n3\n", None),
    ("tns", "# c\n1 4 1 2.5\n3 1 2 -1\n1 4 1 1e3\n", None),
    ("tns", "2\n3 9\n1 9 7\n", None),
];

/// Names of the files that `written` makes, in dense and sparse formats.
const WRITTEN: [&str; 7] = ["npy", "npz", "png", "tns.gz", "csr.npz", "csc.npz", "fill.npz"];

/// Reads a corrupted file; a panic is the only fault.
pub fn fault(seed: u64, scratch: &Path) -> Option<Finding> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let kind = rng.random_range(0..TEXTS.len() + WRITTEN.len());
    let (extension, part, mut bytes) = match TEXTS.get(kind) {
        Some((extension, text, part)) => (*extension, *part, text.as_bytes().to_vec()),
        None => {
            let name = WRITTEN[kind - TEXTS.len()];
            let extension = if name.ends_with("npz") { "npz" } else { name };
            (extension, None, written(name, scratch))
        }
    };
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=bytes.len());
        match rng.random_range(0..4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.random()),
            2 if at < bytes.len() => bytes[at] = rng.random(),
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.extend(b"9999999999999999999999"),
        }
    }
    let path = scratch.join(format!("broken.{extension}"));
    std::fs::write(&path, &bytes).expect("it is written");
    let dtype = DType::ALL[rng.random_range(0..DType::ALL.len())];
    let ndim = rng.random_range(0..4);
    let sizes = (0..ndim).map(|_| rng.random::<bool>().then(|| rng.random_range(0..5))).collect();
    let want = Want { sizes, ..Want::new("x", dtype, ndim) };
    let source = Source::File { path, part: part.filter(|_| rng.random()).map(str::to_string) };
    let kind = LevelKind::ALL[rng.random_range(0..LevelKind::ALL.len())];
    let outcome = std::panic::catch_unwind(|| {
        drop(read(&source, &want));
        if let Ok(value) = read_stored(&source, &want)
            && let Some(places) = value.places()
        {
            // The random last level may store every coordinate, so it is used for small tensors only.
            let few = taffeta_ast::value::element_count(value.shape()).is_some_and(|n| n < 1 << 16);
            let mut levels = vec![Level::new(LevelKind::Compressed); value.shape().len()];
            if let Some(last) = levels.last_mut().filter(|_| few) {
                *last = Level::new(kind);
            }
            drop(Stored::pack(value.shape(), &Format::new(levels), &places.indices, value.data()));
        }
    });
    let what = |panic: Box<dyn std::any::Any + Send>| format!("{} on reading {want:?} from it", panic_text(&*panic));
    outcome.err().map(|panic| Finding { what: what(panic), files: vec![(extension, bytes)] })
}

/// Writes a valid file and returns its bytes.
fn written(name: &str, scratch: &Path) -> Vec<u8> {
    if name == "tns.gz" {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(TEXTS[6].1.as_bytes()).expect("memory");
        return encoder.finish().expect("memory");
    }
    let path = scratch.join(format!("whole.{name}"));
    let data = Buffer::F32((0..12).map(|k| k as f32 / 12.0).collect());
    let dense = Value::new(vec![3, 4], data).expect("12 elements");
    let matrix = |order: &[usize]| {
        let levels = [LevelKind::Dense, LevelKind::Compressed].map(Level::new).to_vec();
        Some(Format::new(levels).ordered(order))
    };
    let (format, fill) = match name {
        "csr.npz" => (matrix(&[0, 1]), 0.0),
        "csc.npz" => (matrix(&[1, 0]), 0.0),
        "fill.npz" => (matrix(&[0, 1]), f64::INFINITY),
        _ => (None, 0.0),
    };
    let value = if format.is_some() { dense.only(Literal::Float(fill), |k| k % 3 == 1) } else { dense };
    write_all(&[(Target { name: "x".into(), path: path.clone(), format }, &value)]).expect("it is written");
    std::fs::read(&path).expect("it is there")
}
