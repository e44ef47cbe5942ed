//! `--strict-floats`: C matches the interpreter to the last bit.

use super::{Folder, finish};
use std::path::Path;

/// Programs with sums that lanes, threads, blocks and libraries would reassociate, products that would be contracted,
/// and zeros of both signs, of which `max` returns one.
const PROGRAM: &str = "
def total(x: f32[n]) -> f32:
    s: f32 = 0.0
    for i in range(n):
        s += x[i] * x[i]
    return s


def rows(A: f64[n, m], x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    return y


def columns(A: f32[n, m], x: f32[n]) -> f32[m]:
    y = zeros((m,), f32)
    for j in range(m):
        for i in range(n):
            y[j] += A[i, j] * x[i]
    return y


def product(A: f32[n, k], B: f32[k, m]) -> f32[n, m]:
    return A @ B


def chain(x: f64[n], a: f64) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        y[i] = (a * x[i] + 1.0) * x[i] - x[i] / (x[i] * x[i] + a)
    return y


def smoothed(x: f32[n, m]) -> (f32[n, m], f32):
    y = zeros((n, m), f32)
    worst: f32 = 0.0
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            y[i, j] = 0.2 * (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])
            worst = max(worst, abs(y[i, j] - x[i, j]))
    return y, worst


def norms(x: f32[n, m]) -> (f32[n], f32):
    return mean(x, axis=1), sum(x * x)


def halves(x: f16[n]) -> (f16, f16):
    return sum(x), mean(x * x)


def spmv(A: f64[n, m] @ csr, x: f64[m]) -> (f64[n], f64):
    y = zeros((n,), f64)
    s: f64 = 0.0
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
            s += A[i, j]
    return y, s


def runs(A: f32[n, m] @ rle) -> (f32[n], f32):
    y = zeros((n,), f32)
    s: f32 = 0.0
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j]
            s += A[i, j] + 0.1
    return y, s


def signs(x: f32[n]) -> f32:
    m: f32 = -1.0
    for i in range(n):
        m = max(m, x[i] * 0.0)
    return m


def loss(W: f64[n, m], x: f64[m], t: f64[n]) -> f64:
    e: f64 = 0.0
    for i in range(n):
        p: f64 = 0.0
        for j in range(m):
            p += W[i, j] * x[j]
        e += (p - t[i]) * (p - t[i])
    return e


def scaled(x: f32[n], y: f32[n]) -> (f32[n], f32):
    z = empty((n,), f32)
    s: f32 = 0.0
    for i in range(n):
        z[i] = x[i] * y[i] + x[i]
    for i in range(n):
        s += z[i]
    return z, s


@schedule(scaled)
def on_threads(s):
    s.parallelize(\"i#1\")
";

/// Entries with the rest of their command lines.
const RUNS: [&str; 14] = [
    "total --in x=randn --size n=30000",
    "rows --in A=randn(seed=1) --in x=randn(seed=2) --size n=50 --size m=700",
    "columns --in A=randn(seed=1) --in x=randn(seed=2) --size n=700 --size m=60",
    "product --in A=randn(seed=1) --in B=randn(seed=2) --size n=60 --size m=70 --size k=300",
    "chain --in x=randn --in a=0.7 --size n=5000",
    "smoothed --in x=randn --size n=70 --size m=90",
    "norms --in x=rand --size n=40 --size m=900",
    "halves --in x=rand --size n=3000",
    "spmv --in A=sprand(density=0.1) --in x=randn(seed=2) --size n=200 --size m=300",
    "runs --in A=[[0.1,0.1,0.1,0.1,0.1,0.1,0.1],[0.7,0.7,0.7,0.3,0.3,0.3,0.3]]",
    "signs --in x=randn --size n=1000",
    "loss --grad W,x --in W=randn(seed=1) --in x=randn(seed=2) --in t=rand --size n=60 --size m=200",
    "scaled --schedule on_threads --in x=randn(seed=1) --in y=randn(seed=2) --size n=9000",
    "scaled --in x=randn(seed=1) --in y=randn(seed=2) --size n=9000",
];

/// Returns the bytes of all results of a command line.
fn results(folder: &Folder, line: &str, more: &[&str], cc: &str) -> Vec<(String, Vec<u8>)> {
    let out = tempfile::tempdir_in(folder.path()).expect("a folder");
    let args: Vec<&str> = ["run", "f.ft"].into_iter().chain(line.split(' ')).chain(more.iter().copied()).collect();
    let mut command = folder.command(&args);
    command.arg("--out-dir").arg(out.path()).env("TAFFETA_MACHINE", "portable").env("OMP_NUM_THREADS", "2");
    let (status, _, err) = finish(command.env("CC", cc).env_remove("CFLAGS"));
    assert_eq!(status, 0, "{line} {more:?}: {err}");
    let read = |path: &Path| std::fs::read(path).expect("a file");
    let files = std::fs::read_dir(out.path()).expect("ours").map(|e| e.expect("an entry").path());
    let mut all: Vec<(String, Vec<u8>)> =
        files.map(|p| (p.file_name().expect("a name").to_string_lossy().into(), read(&p))).collect();
    all.sort();
    all
}

/// Compares programs with the interpreter, with these further options.
fn compare(cc: &str, runs: impl IntoIterator<Item = &'static str>, more: &[&str]) {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    for line in runs {
        let expected = results(&folder, line, &["--backend", "interp"], cc);
        let strict = [&["--strict-floats"][..], more].concat();
        assert!(results(&folder, line, &strict, cc) == expected, "{line} {more:?}: bits differ from the interpreter's");
    }
}

#[test]
fn c_agrees_with_the_interpreter_bit_by_bit() {
    compare("cc", RUNS, &[]);
    compare("cc", RUNS.into_iter().step_by(5), &["--generic"]);
}

#[test]
fn clang_agrees_with_the_interpreter_bit_by_bit() {
    match which("clang") {
        true => compare("clang", RUNS.into_iter().step_by(2), &[]),
        false => eprintln!("skipped: there is no clang"),
    }
}

/// Checks that bits differ without the option: otherwise the comparison would be vacuous.
#[test]
fn bits_differ_without_the_option() {
    let folder = Folder::new(&[("f.ft", PROGRAM)]);
    for line in [RUNS[0], RUNS[3]] {
        let expected = results(&folder, line, &["--backend", "interp"], "cc");
        assert!(results(&folder, line, &[], "cc") != expected, "{line}");
    }
}

fn which(name: &str) -> bool {
    std::process::Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success())
}

/// Checks that a schedule function overrides `--strict-floats`, and rules obey it.
#[test]
fn schedule_functions_override_strict_floats() {
    let text = PROGRAM.to_string() + "\n\n@schedule(total)\ndef lanes(s):\n    s.vectorize(\"i\")\n";
    let folder = Folder::new(&[("f.ft", &text)]);
    let c = |more: &[&str]| {
        let mut command =
            folder.command(&[&["show", "f.ft", "total", "--stage", "c", "--strict-floats"][..], more].concat());
        let (status, out, err) = finish(command.env("TAFFETA_MACHINE", "portable"));
        assert_eq!(status, 0, "{err}");
        out
    };
    assert!(c(&["--schedule", "lanes"]).contains("vector_size"), "no lanes");
    let chosen = c(&["--schedule", "auto", "--size", "n=100000"]);
    assert!(!chosen.contains("vector_size") && !chosen.contains("reduction("), "{chosen}");
}
