//! Overhead of a call that computes next to nothing (criterion): `cargo bench --bench call`. From C it should be less
//! than 2 µs, from Rust less than 5.

use criterion::{Criterion, criterion_group, criterion_main};
use ndarray::{arr1, arr2};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use taffeta::{Options, Program};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

fn from_c(c: &mut Criterion, here: &Path) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for entry in ["copy", "scratch"] {
        let mut build = Command::new(env!("CARGO_BIN_EXE_taffeta"));
        build.arg("build").arg(here.join("call.ft")).arg(entry).arg("-o").arg(folder.path());
        assert!(build.output().expect("taffeta runs").status.success(), "{build:?}");
    }
    let sources = [here.join("call.c"), folder.path().join("taffeta_scratch.c")];
    let program = Toolchain::find()
        .and_then(|t| t.executable(folder.path(), "taffeta_copy", &sources, &CompileOptions::default()))
        .unwrap_or_else(|d| panic!("{d}"));
    let mut group = c.benchmark_group("from C");
    for entry in ["copy", "scratch"] {
        group.bench_function(entry, |b| {
            b.iter_custom(|count| {
                let output = Command::new(&program).arg(entry).arg(count.to_string()).output().expect("it runs");
                let text = String::from_utf8_lossy(&output.stdout);
                Duration::from_nanos(text.trim().parse().unwrap_or_else(|e| panic!("{output:?}: {e}")))
            });
        });
    }
    group.finish();
}

fn from_rust(c: &mut Criterion, here: &Path) {
    let program = Program::load(here.join("call.ft")).unwrap_or_else(|e| panic!("{e}"));
    let compile = |entry| program.compile(entry, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let (copy, scratch) = (compile("copy"), compile("scratch"));
    let (x, matrix) = (arr1(&[2.0f64]), arr2(&[[2.0f64]]));
    let mut group = c.benchmark_group("from Rust");
    group.bench_function("copy", |b| {
        b.iter(|| copy.call().input("x", x.view()).run().unwrap_or_else(|e| panic!("{e}")));
    });
    group.bench_function("scratch", |b| {
        b.iter(|| {
            let call = scratch.call().input("x", matrix.view()).scalar("a", 3.0);
            call.run().unwrap_or_else(|e| panic!("{e}"))
        });
    });
    group.finish();
}

fn calls(c: &mut Criterion) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/handwritten");
    from_c(c, &here);
    from_rust(c, &here);
}

criterion_group!(benches, calls);
criterion_main!(benches);
