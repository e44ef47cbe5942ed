//! Time from files of sparse tensors into a format (criterion): `cargo bench --bench input`. A million elements of a
//! matrix of 10^9 × 10^9, and the matrices of `TAFFETA_DATA`, if there are any.

use criterion::{Criterion, criterion_group, criterion_main};
use std::fmt::Write as _;
use std::path::Path;
use taffeta::io::{Source, Want, read_stored};
use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::{DType, Value};
use taffeta_structured::Stored;

const COUNT: u64 = 1_000_000;
const WIDE: u64 = 1_000_000_000;

/// Returns a pseudorandom coordinate; no two `k` have the same.
fn place(k: u64) -> (u64, u64) {
    (k * 7_919_000_003 % WIDE, k * 104_729_000_017 % WIDE)
}

fn read(path: &Path, ndim: usize) -> Value {
    let source = Source::File { path: path.to_path_buf(), part: None };
    read_stored(&source, &Want::new("A", DType::F64, ndim)).unwrap_or_else(|d| panic!("{d}"))
}

fn compressed(ndim: usize) -> Format {
    Format::new(vec![Level::new(LevelKind::Compressed); ndim])
}

fn files(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = format!("%%MatrixMarket matrix coordinate real general\n{WIDE} {WIDE} {COUNT}\n");
    let mut list = String::new();
    for k in 0..COUNT {
        let (i, j) = place(k);
        writeln!(text, "{} {} {}", i + 1, j + 1, k as f64 / 7.0).expect("memory");
        writeln!(list, "{} {} {}", i + 1, j + 1, k as f64 / 7.0).expect("memory");
    }
    let [market, tns] = ["wide.mtx", "wide.tns"].map(|name| folder.path().join(name));
    std::fs::write(&market, text).expect("a file");
    std::fs::write(&tns, list).expect("a file");
    let mut group = c.benchmark_group("a million elements");
    group.sample_size(10);
    group.bench_function("read .mtx", |b| b.iter(|| read(&market, 2)));
    group.bench_function("read .tns", |b| b.iter(|| read(&tns, 2)));
    let value = read(&market, 2);
    let places = value.places().expect("it is sparse");
    for (name, format) in [("by rows", compressed(2)), ("by columns", compressed(2).ordered(&[1, 0]))] {
        group.bench_function(format!("pack {name}"), |b| {
            b.iter(|| Stored::pack(value.shape(), &format, &places.indices, value.data()).expect("it fits"));
        });
    }
    group.finish();
}

fn published(c: &mut Criterion) {
    let Some(data) = std::env::var_os("TAFFETA_DATA") else { return };
    let mut group = c.benchmark_group("published");
    group.sample_size(20);
    for (name, ndim) in
        [("matrices/memplus.mtx", 2), ("matrices/orani678.mtx", 2), ("tensors/openflights_routes.tns", 3)]
    {
        let path = Path::new(&data).join(name);
        let value = read(&path, ndim);
        let places = value.places().expect("it is sparse");
        group.bench_function(format!("read {name}"), |b| b.iter(|| read(&path, ndim)));
        let format = compressed(ndim);
        group.bench_function(format!("pack {name}"), |b| {
            b.iter(|| Stored::pack(value.shape(), &format, &places.indices, value.data()).expect("it fits"));
        });
    }
    group.finish();
}

criterion_group!(benches, files, published);
criterion_main!(benches);
