//! Compile time of each example from its text to C (criterion): `cargo bench --bench pipeline`.

use criterion::{Criterion, criterion_group, criterion_main};
use std::path::Path;
use taffeta::{Options, Program};

const EXAMPLES: [(&str, &str); 6] = [
    ("subdivnet/circular_diff.ft", "circular_diff"),
    ("longformer/longformer.ft", "attention"),
    ("softras/softras.ft", "picture"),
    ("gat/gat.ft", "gat"),
    ("conv/conv.ft", "sobel"),
    ("physics/nbody.ft", "solar_system"),
];

fn pipeline(c: &mut Criterion) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (file, entry) in EXAMPLES {
        let path = root.join(file);
        let options = Options::default();
        let program = Program::load(&path).unwrap_or_else(|e| panic!("{e}"));
        let mut group = c.benchmark_group(format!("{file} {entry}"));
        group.sample_size(20);
        group.bench_function("parse", |b| b.iter(|| Program::load(&path).is_ok()));
        group.bench_function("elaborate", |b| b.iter(|| program.logical(entry, &options).is_ok()));
        group.bench_function("all to C", |b| {
            b.iter(|| Program::load(&path).and_then(|p| p.c_source(entry, &options)).is_ok());
        });
        group.finish();
    }
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
