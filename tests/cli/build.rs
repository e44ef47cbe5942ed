//! `taffeta build`: its output files, and programs that use them without Taffeta.

use super::{Folder, PROGRAM, finish};
use crate::programs::root;
use expect_test::expect;
use std::process::Command;

#[test]
fn libraries_are_built_as_requested() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    let out = folder.succeeds(&["build", "f.ft", "pick", "-o", "all"]);
    expect![[r#"
        all/libtaffeta_pick.a
        all/libtaffeta_pick.so
        all/taffeta.h
        all/taffeta_pick.c
        all/taffeta_pick.h
        all/taffeta_runtime.h
    "#]]
    .assert_eq(&out);
    assert!(!folder.succeeds(&["build", "f.ft", "pick", "-o", "s", "--shared"]).contains(".a\n"));
    assert!(!folder.succeeds(&["build", "f.ft", "pick", "-o", "a", "--static", "--portable"]).contains(".so\n"));
}

#[test]
fn failed_builds_write_nothing() {
    let folder = Folder::new(&[("f.ft", PROGRAM), ("file", "")]);
    let mut command = folder.command(&["build", "f.ft", "pick", "-o", "out"]);
    let (status, _, err) = finish(command.env("CC", "false"));
    assert_eq!(status, 1, "{err}");
    assert!(
        err.contains("toolchain::broken")
            && err.contains("the C compiler `false` (environment variable CC) does not work"),
        "{err}"
    );
    // The archiver may be broken too.
    let mut command = folder.command(&["build", "f.ft", "pick", "-o", "out", "--static"]);
    let (status, _, err) = finish(command.env("AR", "true"));
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("toolchain::broken") && err.contains("the archiver `ar` does not work"), "{err}");
    assert_eq!(folder.files(), ["f.ft", "file"]);
    let err = folder.fails(&["build", "f.ft", "pick", "-o", "file"]);
    assert!(err.contains("`file` is not a directory"), "{err}");
}

/// Builds the entry of `examples/embed/heat.ft` into `out`.
fn heat() -> Folder {
    let folder = Folder::new(&[]);
    let program = root().join("examples/embed/heat.ft");
    folder.succeeds(&["build", program.to_str().expect("a path"), "heat", "-o", "out"]);
    folder
}

#[test]
fn c_programs_call_the_library() {
    let folder = heat();
    let main = root().join("examples/embed/main.c");
    for library in ["out/libtaffeta_heat.a", "out/libtaffeta_heat.so"] {
        let mut cc = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
        cc.current_dir(folder.path()).args(["-std=c99", "-Wall", "-Werror", "-I", "out"]).arg(&main);
        let (status, _, err) = finish(cc.args([library, "-fopenmp", "-lm", "-o", "main"]));
        assert_eq!(status, 0, "{err}");
        let (status, out, err) =
            finish(Command::new(folder.path().join("main")).current_dir(folder.path()).env("LD_LIBRARY_PATH", "."));
        assert_eq!((status, err.as_str()), (0, ""));
        expect![[r#"
            0.000 0.954 1.719 2.143 2.144 1.719 0.954 0.000 mean 1.204
            error 5: `steps` has elements of type i64, expected i32
        "#]]
        .assert_eq(&out);
    }
}

/// Checks that a C program can pass CSR arrays of its own, and that the header lists the arrays of each level.
#[test]
fn c_programs_pass_borrowed_arrays() {
    let folder = Folder::new(&[]);
    let program = root().join("examples/sparse/products.ft");
    let made = folder.succeeds(&["build", program.to_str().expect("a path"), "spmv", "-o", "out", "--static"]);
    assert!(made.contains("out/taffeta_levels.h\n") && made.contains("out/libtaffeta_spmv.a\n"), "{made}");
    let header = std::fs::read_to_string(folder.path().join("out/taffeta_spmv.h")).expect("it is there");
    expect![[r#"
        /* def spmv(A: f64[n, m] @ format(dense, compressed), x: f64[m]) -> y: f64[n] */
        /* y = A x */
        #ifndef TAFFETA_SPMV_H
        #define TAFFETA_SPMV_H

        #include "taffeta.h"

        #ifdef __cplusplus
        extern "C" {
        #endif

        /* args: A, x, y; sizes: n, m */
        /* Levels of A, with their arrays:
         *   TAFFETA_LEVEL_DENSE: none
         *   TAFFETA_LEVEL_COMPRESSED: A.pos1: i32[n + 1], A.crd1: i32[A.n1]
         * and n_stored elements in data: A.val: f64[A.n1] */
        int taffeta_spmv(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes);

        /* Writes the shapes of results and the bytes of scratch memory of a call. */
        int taffeta_spmv_plan(taffeta_ctx *ctx, taffeta_tensor *args, size_t n_args, const int64_t *sizes, size_t *arena_bytes);

        #ifdef __cplusplus
        }
        #endif

        #endif
    "#]].assert_eq(&header);
    let mut cc = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    cc.current_dir(folder.path()).args(["-std=c99", "-Wall", "-Werror", "-I", "out"]);
    cc.arg(root().join("examples/sparse/main.c"));
    let (status, _, err) = finish(cc.args(["out/libtaffeta_spmv.a", "-fopenmp", "-lm", "-o", "main"]));
    assert_eq!(status, 0, "{err}");
    let (status, out, err) = finish(&mut Command::new(folder.path().join("main")));
    assert_eq!((status, err.as_str()), (0, ""));
    expect![[r#"
        70 0 220
        110 0 220
        error 12: element 3 of `A.crd1` is 4, out of range for a dimension of size 4
    "#]]
    .assert_eq(&out);
}

/// Checks that C programs get sparse results, by allocators of their own, and that nothing is lost where one fails.
#[test]
fn c_programs_get_sparse_results() {
    let program = root().join("examples/sparse/results.ft");
    let folder = Folder::new(&[]);
    let (status, _, err) =
        finish(&mut folder.command(&["build", program.to_str().expect("UTF-8"), "product", "-o", "out"]));
    assert_eq!(status, 0, "{err}");
    let mut cc = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    cc.current_dir(folder.path()).args([
        "-std=c99",
        "-Wall",
        "-Werror",
        "-g",
        "-fsanitize=address,undefined",
        "-I",
        "out",
    ]);
    cc.arg(root().join("examples/sparse/product.c"));
    let (status, _, err) = finish(cc.args(["out/libtaffeta_product.a", "-fopenmp", "-lm", "-o", "main"]));
    assert_eq!(status, 0, "{err}");
    let (status, out, err) = finish(&mut Command::new(folder.path().join("main")));
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    expect![[r#"
        (0, 0) 15  (0, 1) 6  (0, 2) 2  (2, 1) 15  4 elements
        (0, 0) 24  (0, 1) 6  (0, 2) 2  (2, 1) 15  4 elements
        0 bytes left
        status 0 in the end, 0 bytes left
    "#]]
    .assert_eq(&out);
}

/// Checks the manual's page on C by running its program, its C program and the commands that build it, in two ways.
#[test]
fn examples_of_the_page_on_c_run() {
    let page = std::fs::read_to_string(root().join("docs/src/c.md")).expect("a page");
    let blocks = |language: &str| -> Vec<String> {
        let fence = format!("```{language}\n");
        let rest = page.split(&fence).skip(1);
        rest.map(|text| text[..text.find("```").expect("its end")].to_string()).collect()
    };
    let folder = Folder::new(&[("solver.ft", &blocks("taffeta")[0]), ("main.c", &blocks("c")[0])]);
    let texts = blocks("text");
    let [build, printed, shared] = [0, 1, 2].map(|k| texts[k].clone());
    let shell = |commands: &str| {
        let (taffeta, cc) = (env!("CARGO_BIN_EXE_taffeta"), std::env::var("CC").unwrap_or_else(|_| "cc".into()));
        let text = format!(
            "set -e\ntaffeta() {{ {taffeta} \"$@\" > /dev/null; }}\ncc() {{ command {cc} \"$@\"; }}\n{commands}"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &text]).current_dir(folder.path()).env("TAFFETA_CACHE_DIR", crate::programs::cache());
        finish(&mut command)
    };
    let (status, out, err) = shell(&build);
    assert_eq!((status, out.as_str(), err.as_str()), (0, printed.as_str(), ""));
    let (status, out, err) = shell(&format!("{shared}./main\n"));
    assert_eq!((status, out.as_str(), err.as_str()), (0, printed.as_str(), ""));
}

/// Checks that Python can call the shared library by ctypes.
#[test]
fn python_programs_call_the_library() {
    let folder = heat();
    let library = folder.path().join("out/libtaffeta_heat.so");
    let Some(out) = crate::python::run("examples/embed/main.py", &[&library]) else { return };
    expect![[r#"
        0.000 0.954 1.719 2.143 2.144 1.719 0.954 0.000 mean 1.204
        error: `steps` has elements of type i64, expected i32
    "#]]
    .assert_eq(&out);
}

#[test]
fn rust_programs_call_the_library() {
    let folder = heat();
    let main = root().join("examples/embed/main.rs");
    let mut rustc = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()));
    rustc.current_dir(folder.path()).args(["--edition", "2024", "-O"]).arg(&main);
    let link =
        ["-L", "native=out", "-l", "static=taffeta_heat", "-l", "dylib=m", "-C", "link-arg=-fopenmp", "-o", "main"];
    let (status, _, err) = finish(rustc.args(link));
    assert_eq!(status, 0, "{err}");
    let (status, out, err) = finish(&mut Command::new(folder.path().join("main")));
    assert_eq!((status, err.as_str()), (0, ""));
    expect![[r#"
        0.000 0.954 1.719 2.143 2.144 1.719 0.954 0.000 mean 1.204
    "#]]
    .assert_eq(&out);
}

/// Checks that the README's first program needs no schedule: rules make it parallel and vectorised.
#[test]
fn the_first_program_is_parallel_and_vectorised() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("it is there");
    let program = readme.split("```").nth(1).and_then(|block| block.strip_prefix("python\n")).expect("a program");
    let folder = Folder::new(&[("subdivnet.ft", program)]);
    let kernel = |more: &[&str]| {
        let args = [&["build", "subdivnet.ft", "circular_diff", "-o", "out", "--static"][..], more].concat();
        let (status, _, err) = finish(folder.command(&args).env("OMP_NUM_THREADS", "2").env_remove("CFLAGS"));
        assert_eq!((status, err.as_str()), (0, ""));
        std::fs::read_to_string(folder.path().join("out/taffeta_circular_diff.c")).expect("C")
    };
    for sizes in [&["--size", "n_faces=40000", "--size", "feats=64"][..], &[]] {
        let c = kernel(sizes);
        assert!(c.contains("#pragma omp parallel num_threads"), "{c}");
        // Vectorised by a pragma or by the C compiler: the machine code has vector subtractions.
        let library = folder.path().join("out/libtaffeta_circular_diff.a");
        let code = std::process::Command::new("objdump").arg("-d").arg(library).output();
        if let (true, Ok(code)) = (cfg!(target_arch = "x86_64"), code) {
            assert!(String::from_utf8_lossy(&code.stdout).contains("subps"), "{c}");
        }
    }
    let plain = kernel(&["--schedule", "none"]);
    assert!(!plain.contains("#pragma omp parallel"), "{plain}");
}
