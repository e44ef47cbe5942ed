//! Matrix products: those of `taffeta_gemm.h`, by this machine's library if there is one and by the built-in kernel,
//! against loops (`gemm.c`); and programs in which a schedule found them.

use crate::compiled::run::{assert_same, compile_with};
use crate::compiled::scheduled::{check, scheduled, text};
use std::process::Command;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Buffer, Value};
use taffeta_codegen::LowerOptions;
use taffeta_codegen::c::{TAFFETA_GEMM_H, TAFFETA_H, TAFFETA_RUNTIME_H};
use taffeta_codegen::call::Context;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_schedule::Arg;

/// Creates a directory with the headers of products, and these files.
fn with_headers(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let headers =
        [("taffeta_gemm.h", TAFFETA_GEMM_H), ("taffeta_runtime.h", TAFFETA_RUNTIME_H), ("taffeta.h", TAFFETA_H)];
    for (name, text) in files.iter().chain(&headers) {
        std::fs::write(dir.path().join(name), text).expect("the directory can be written");
    }
    dir
}

/// Compiles `gemm.c`, and runs `count` products per type, by the built-in kernel and by the default choice.
fn right(flags: &CompileOptions, count: u32) {
    let dir = with_headers(&[("gemm.c", include_str!("gemm.c"))]);
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(dir.path(), "gemm", &[], flags).unwrap_or_else(|d| panic!("{d:?}"));
    // A library requested by name takes products of any size.
    let library = "libopenblas.so.0";
    for (blas, threads) in [(Some("none"), 1), (Some("none"), 3), (None, 2), (Some(library), 1), (Some(library), 2)] {
        let mut run = Command::new(&program);
        run.args([threads.to_string(), count.to_string()])
            .env_remove("TAFFETA_BLAS")
            .envs(blas.map(|b| ("TAFFETA_BLAS", b)));
        let output = run.output().expect("it can be run");
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains(": 0 wrong"), "{blas:?}, {threads} threads: {said}");
        assert!(blas == Some(library) || said.contains("own kernel"), "{said}");
    }
}

#[test]
fn products_agree_with_loops() {
    right(&CompileOptions::default(), 400);
}

/// Checks other vector widths, and tiles of other sizes.
#[test]
fn products_for_any_machine() {
    right(&CompileOptions { native: false, ..CompileOptions::default() }, 200);
}

#[test]
fn products_stay_within_their_matrices() {
    right(&CompileOptions { sanitize: true, ..CompileOptions::default() }, 100);
}

/// Checks that an OpenBLAS older than the processor, whose kernels lack AVX-512 or AVX, gives way to the faster
/// built-in kernel, unless it is requested by name.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn libraries_older_than_the_processor_are_not_used() {
    let dir = with_headers(&[("blas.c", include_str!("blas.c")), ("large.c", include_str!("large.c"))]);
    let compiler = Toolchain::find().expect("a C compiler");
    let flags = CompileOptions::default();
    let library = compiler.shared(dir.path(), "blas", &flags, &[]).unwrap_or_else(|d| panic!("{d:?}"));
    let named = dir.path().join("libopenblas.so.0");
    std::fs::rename(library, &named).expect("it is there");
    let program = compiler.executable(dir.path(), "large", &[], &flags).unwrap_or_else(|d| panic!("{d:?}"));
    let run = |core: &str, asked: bool| {
        let mut run = Command::new(&program);
        run.env("LD_LIBRARY_PATH", dir.path()).env("FAKE_CORE", core).env_remove("TAFFETA_BLAS");
        let output = run.envs(asked.then_some(("TAFFETA_BLAS", &named))).output().expect("it can be run");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    };
    let behind = |knows: bool| if knows { "own kernel" } else { "libopenblas.so.0" };
    let longest = behind(std::is_x86_feature_detected!("avx512f"));
    let behind = behind(std::is_x86_feature_detected!("avx"));
    assert_eq!(run("SkylakeX", false), "libopenblas.so.0");
    assert_eq!(run("Haswell", false), longest);
    assert_eq!(run("Zen", false), longest);
    assert_eq!(run("Prescott", false), behind);
    assert_eq!(run("Opteron", false), behind);
    assert_eq!(run("Prescott", true), named.display().to_string());
}

/// Checks a program whose product goes to a library or the built-in kernel against the interpreter.
fn check_product(text: &str, steps: &[(&str, &[Arg])]) -> String {
    let code = check(text, steps);
    assert!(code.contains("taf_product_f"), "{code}");
    code
}

#[test]
fn products_of_matrices_by_a_library() {
    let code = check_product(
        "
def f(a: f32[n, p], b: f32[p, m], c: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            for k in range(p):
                c[i, j] += a[i, k] * b[k, j]
",
        &[("as_lib", &[text("i")])],
    );
    assert!(code.contains("#include \"taffeta_gemm.h\""), "{code}");
    // Transposed, scaled, reversed, in parts, and into every second row.
    check_product(
        "
def f(a: f64[p + 1, n], b: f64[m, p + 3], s: f64, c: inout[f64[m, 2, n + 2]]):
    for k in range(p):
        for i in range(n):
            for j in range(m - 1, -1, -1):
                c[j, 1, i + 2] -= 2 * b[j, k + 3] * s * a[k + 1, i]
",
        &[("as_lib", &[text("k")])],
    );
    // A dimension of A with a stride other than 1 goes to the built-in kernel.
    check_product(
        "
def f(a: f32[n, p, 2, 3], b: f32[p, m, 2], c: inout[f32[m, n, 2]]):
    for i in range(n):
        for j in range(m):
            for k in range(p):
                c[j, i, 1] += a[i, k, 1, 2] * b[k, j, 0]
",
        &[("as_lib", &[text("i")])],
    );
    // Windows of a signal are overlapping rows.
    check_product(
        "
def f(x: f32[2 * n + p], w: f32[p, m], c: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            for k in range(p):
                c[i, j] += x[2 * i + k] * w[k, j]
",
        &[("as_lib", &[text("i")])],
    );
}

#[test]
fn products_with_vectors_by_a_library() {
    for (update, sizes) in [
        ("y[i] += a[i, k] * x[k]", "a: f64[n, m], x: f64[m], y: inout[f64[n]]"),
        ("y[i] += x[k] * a[k, i]", "a: f64[m, n], x: f64[m], y: inout[f64[n]]"),
        ("y[i, 1] += 3 * a[i, k] * x[2 * k, 0]", "a: f32[n, m], x: f32[2 * m, 2], y: inout[f32[n, 2]]"),
        ("y[n - 1 - i] += a[i, k, 0] * x[k]", "a: f32[n, m, 2], x: f32[m], y: inout[f32[n]]"),
    ] {
        let text_of = format!(
            "
def f({sizes}):
    for i in range(n):
        for k in range(m):
            {update}
"
        );
        check_product(&text_of, &[("as_lib", &[text("i")])]);
    }
}

#[test]
fn many_products_by_a_library_or_on_threads() {
    let batch = "
def f(x: f32[h, n, d, e], y: f32[h, m, d, e], c: inout[f32[h, n, m]]):
    for b in range(h):
        for i in range(n):
            for j in range(m):
                c[b, i, j] = 0
                for k in range(d):
                    for l in range(e):
                        c[b, i, j] += x[b, i, k, l] * y[b, j, k, l]
";
    let batch = batch
        .replace("[h, ", "[3, ")
        .replace("range(h)", "range(3)")
        .replace(", e]", ", 4]")
        .replace("range(e)", "range(4)");
    check_product(&batch, &[("as_lib", &[text("b")])]);
    // In a parallel loop, every thread computes whole products.
    check_product(&batch, &[("as_lib", &[text("i")]), ("parallelize", &[text("b")])]);
    // All products go into one matrix, of which every thread has a copy.
    let code = check_product(
        "
def f(x: f32[3, n, d], y: f32[3, d, m], c: inout[f32[n, m]]):
    for b in range(3):
        for i in range(n):
            for j in range(m):
                for k in range(d):
                    c[i, j] += x[b, i, k] * y[b, k, j]
",
        &[("parallelize", &[text("b")]), ("as_lib", &[text("i")])],
    );
    assert!(code.contains("(float *)c_own"), "{code}");
}

/// Checks that NaN and infinities propagate as in the loops, whichever implementation runs; a factor of 0 does not
/// suppress them.
#[test]
fn products_keep_nan_and_infinities() {
    let (_, after, _) = scheduled(
        "
def f(a: f32[n, n], b: f32[n, n], s: f32, c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] += s * a[i, k] * b[k, j]
",
        &[("as_lib", &[text("i")])],
    );
    let compiled = compile_with(&after, &LowerOptions::default(), &CompileOptions::default());
    let n = 20usize;
    for (s, here, there) in
        [(1.0f32, f32::NAN, 0.0f32), (0.0, f32::INFINITY, 1.0), (2.0, f32::INFINITY, 0.0), (0.0, 1.0, 1.0)]
    {
        let matrix = |x: f32, at: usize| {
            let mut v = vec![1.0f32; n * n];
            v[at] = x;
            Value::new(vec![n, n], Buffer::F32(v)).expect("n * n numbers")
        };
        let scalar = Value::new(vec![], Buffer::F32(vec![s])).expect("a scalar");
        // a[3, 5] meets b[5, 7].
        let mut given = vec![matrix(here, 3 * n + 5), matrix(there, 5 * n + 7), scalar, matrix(f32::NAN, 2)];
        let before = Inputs { sizes: [("n".to_string(), n as i64)].into(), params: given.clone() };
        let want = interp::run(&after, &before).expect("it runs");
        compiled.call_values(&mut Context::new(2), &mut given, &[]).expect("it runs");
        assert_same(&want.params[3], &given[3], &[]);
    }
}
