//! The products of `weft_gemm.h`, by a library if this machine has one and by our own kernel, against loops (`gemm.c`).

use std::process::Command;
use weft_codegen::c::{WEFT_GEMM_H, WEFT_H, WEFT_RUNTIME_H};
use weft_codegen::toolchain::{CompileOptions, Toolchain};

/// Compiles `gemm.c`, and runs it so many times for each type, by our own kernel and by what there is.
fn right(flags: &CompileOptions, count: u32) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let files = [
        ("gemm.c", include_str!("gemm.c")),
        ("weft_gemm.h", WEFT_GEMM_H),
        ("weft_runtime.h", WEFT_RUNTIME_H),
        ("weft.h", WEFT_H),
    ];
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).expect("the directory can be written");
    }
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(dir.path(), "gemm", &[], flags).unwrap_or_else(|d| panic!("{d:?}"));
    for (blas, threads) in [(Some("none"), 1), (Some("none"), 3), (None, 1), (None, 2)] {
        let mut run = Command::new(&program);
        run.args([threads.to_string(), count.to_string()]).env_remove("WEFT_BLAS").envs(blas.map(|b| ("WEFT_BLAS", b)));
        let output = run.output().expect("it can be run");
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains(": 0 wrong"), "{blas:?}, {threads} threads: {said}");
        assert!(blas.is_none() || said.contains("own kernel"), "{said}");
    }
}

#[test]
fn products_are_what_loops_compute() {
    right(&CompileOptions::default(), 1000);
}

/// Other vectors, and tiles of other sizes.
#[test]
fn products_for_any_machine() {
    right(&CompileOptions { native: false, ..CompileOptions::default() }, 500);
}

#[test]
fn products_stay_in_their_matrices() {
    right(&CompileOptions { sanitize: true, ..CompileOptions::default() }, 300);
}
