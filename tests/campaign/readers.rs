//! Broken data files: no reader panics, whatever the bytes.

use crate::{Finding, panic_text};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use taffeta::io::output::{Target, write_all};
use taffeta::io::{Source, Want, read};
use taffeta_ast::{Buffer, DType, Value};

const TEXTS: [(&str, &str, Option<&str>); 5] = [
    ("csv", "a,b\n1,2.5\n-3,4e2\n", Some("a")),
    ("tsv", "a\tb\n1\t\"2\"\n", None),
    ("obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf -1/1 -2/2/2 -3//3\n", Some("faces")),
    ("off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", Some("vertices")),
    ("mtx", "%%MatrixMarket matrix coordinate real symmetric\n% c\n2 2 2\n1 1 3.5\n2 1 -1\n", Some("rows")),
];

/// A panic is the only fault.
pub fn fault(seed: u64, scratch: &Path) -> Option<Finding> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let kind = rng.random_range(0..TEXTS.len() + 3);
    let (extension, part, mut bytes) = match TEXTS.get(kind) {
        Some((extension, text, part)) => (*extension, *part, text.as_bytes().to_vec()),
        None => {
            let extension = ["npy", "npz", "png"][kind - TEXTS.len()];
            let path = scratch.join(format!("whole.{extension}"));
            let data = Buffer::F32((0..12).map(|k| k as f32 / 12.0).collect());
            let value = Value::new(vec![3, 4], data).expect("12 elements");
            write_all(&[(Target { name: "x".into(), path: path.clone() }, &value)]).expect("it is written");
            (extension, None, std::fs::read(&path).expect("it is there"))
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
    let want = Want { name: "x".into(), dtype, ndim: rng.random_range(0..4), empty: None };
    let source = Source::File { path, part: part.filter(|_| rng.random()).map(str::to_string) };
    let outcome = std::panic::catch_unwind(|| drop(read(&source, &want)));
    let what = |panic: Box<dyn std::any::Any + Send>| format!("{} on reading {want:?} from it", panic_text(&*panic));
    outcome.err().map(|panic| Finding { what: what(panic), files: vec![(extension, bytes)] })
}
