//! `taffeta run --check-finite`, and lines printed by programs on the command line.

use super::Folder;
use expect_test::expect;

fn folder() -> Folder {
    Folder::new(&[(
        "f.ft",
        r#"
def ratio(x: f64[n, m], z: f64[n]) -> f64[n, m]:
    y = zeros((n, m), f64)
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] / z[i]
    return y

@schedule(ratio)
def threads(s):
    o, i = s.split("i", 2)
    s.parallelize(o)
    s.vectorize("j")

def logs(x: f32[n]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        y[i] = log(x[i]) if i > 0 else 0.0
    return y

def grows(x: f32) -> f32:
    y = x
    for t in range(5):
        y *= x
    return y

def safe(x: f64[n]) -> f64:
    m = inf
    for i in range(n):
        m = min(m, x[i])
    return m

def rest(x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        y[i] = sqrt(x[i]) if x[i] > 0.0 else 0.0
    return y

def roots(x: f64[n]) -> f64:
    s = 0.0
    for i in range(n):
        s += sqrt(x[i])
    return s

def wide(x: f32[n]) -> f32:
    s: f32 = 0.0
    for i in range(n):
        s += x[i]
    return s

@schedule(wide)
def sums(s):
    s.parallelize("i")

def halves(x: f32[n]) -> f16[n]:
    y = empty((n,), f16)
    for i in range(n):
        y[i] = cast(x[i], f16)
    return y

def counts(n: i32) -> i32:
    k = n * 2147483647
    print("k is", k)
    return k
"#,
    )])
}

/// Returns the error of a run, which must be the same on both backends.
fn stops(folder: &Folder, args: &[&str]) -> String {
    let all = |backend: &'static str| [&["run", "f.ft"], args, &["--check-finite", "--backend", backend]].concat();
    let by_c = folder.fails(&all("c"));
    assert_eq!(folder.fails(&all("interp")), by_c, "{args:?}");
    by_c
}

fn passes(folder: &Folder, args: &[&str]) {
    for backend in ["c", "interp"] {
        folder.succeeds(&[&["run", "f.ft"], args, &["--check-finite", "--backend", backend]].concat());
    }
}

#[test]
fn the_statement_the_operands_and_the_iteration_are_named() {
    let folder = folder();
    expect![[r#"
        run::nonfinite

          × `y[1, 0]` becomes nan: x[1, 0] = 0, z[1] = 0 (i = 1, j = 0)
           ╭─[f.ft:6:13]
         5 │         for j in range(m):
         6 │             y[i, j] = x[i, j] / z[i]
           ·             ────────────────────────
         7 │     return y
           ╰────

        1 error
    "#]]
    .assert_eq(&stops(&folder, &["ratio", "--in", "x=[[1,2],[0,3]]", "--in", "z=[1,0]"]));
    expect![[r#"
        run::nonfinite

          × `y[2]` becomes -inf: x[2] = 0 (i = 2)
            ╭─[f.ft:18:9]
         17 │     for i in range(n):
         18 │         y[i] = log(x[i]) if i > 0 else 0.0
            ·         ──────────────────────────────────
         19 │     return y
            ╰────

        1 error
    "#]]
    .assert_eq(&stops(&folder, &["logs", "--in", "x=[0,1,0]"]));
    expect![[r#"
        run::nonfinite

          × `y` becomes inf: y = 1e+30, x = 1e+10 (t = 2)
            ╭─[f.ft:24:9]
         23 │     for t in range(5):
         24 │         y *= x
            ·         ──────
         25 │     return y
            ╰────

        1 error
    "#]]
    .assert_eq(&stops(&folder, &["grows", "--in", "x=1e10"]));
    let said = |args: &[&str], wanted: &str| {
        let found = stops(&folder, args);
        assert!(found.contains(wanted), "{args:?}: {found}");
    };
    said(&["roots", "--in", "x=[4,-1]"], "`s` becomes nan: s = 2, x[1] = -1 (i = 1)");
    said(&["halves", "--in", "x=[1,1e6]"], "`y[1]` becomes inf: x[1] = 1e+06 (i = 1)");
    said(&["ratio", "--in", "x=[[1,2],[0,3]]", "--in", "z=[1,0]", "--schedule", "threads"], "`y[1, 0]` becomes nan");
    said(&["roots", "--in", "x=[4,0]", "--grad", "x"], "`x.grad[1]` becomes inf");
    said(&["wide", "--in", "x=[3e38,3e38]"], "`s` becomes inf: s = 3e+38, x[1] = 3e+38 (i = 1)");
    // Partial sums of threads: no added value is infinite.
    said(&["wide", "--in", "x=[3e38,3e38]", "--schedule", "sums"], "`s` becomes inf: s = 3e+38, x[1] = 3e+38 (i = 1)");
}

#[test]
fn copies_constants_and_choices_are_not_reported() {
    let folder = folder();
    passes(&folder, &["safe", "--in", "x=[3,1]"]);
    passes(&folder, &["safe", "--in", "x=[]"]);
    passes(&folder, &["rest", "--in", "x=[4,-1]"]);
    passes(&folder, &["counts", "--in", "n=2"]);
    passes(&folder, &["ratio", "--in", "x=[[1,2],[0,3]]", "--in", "z=[1,2]", "--schedule", "threads"]);
    // A smaller element of the input decides the minimum.
    passes(&folder, &["safe", "--in", "x=[inf,1]"]);
    let found = stops(&folder, &["safe", "--in", "x=[1,nan]"]);
    expect![[r#"
        run::nonfinite

          × `m` is nan: the input `x[1]` is already nan

        1 error
    "#]]
    .assert_eq(&found);
}

#[test]
fn printed_lines_are_not_part_of_the_json() {
    let folder = folder();
    for backend in ["c", "interp"] {
        let args = ["run", "f.ft", "counts", "--in", "n=2", "--backend", backend];
        let (status, out, err) = folder.taffeta(&args);
        assert_eq!((status, out.as_str(), err.as_str()), (0, "k is -2\nk: i32 = -2\n", ""));
        let (status, out, err) = folder.taffeta(&[&args[..], &["--json"]].concat());
        assert_eq!((status, err.as_str()), (0, "k is -2\n"));
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
    }
}

/// Checks that elements of structured results are named by their indices, and that a fill that is not finite is none.
#[test]
fn structured_results_are_finite_but_for_their_fill() {
    let text = "\
def copied(A: f64[n, m] @ csr) -> f64[n, m] @ csr:
    C = zeros((n, m), f64)
    for i in range(n):
        for j in range(m):
            C[i, j] = A[i, j]
    return C

def distances(w: f64) -> f64[2, 3] @ format(dense, runlength, fill=inf):
    C = full((2, 3), inf, f64)
    C[1, 1] = w
    return C
";
    let folder = Folder::new(&[("f.ft", text)]);
    expect![[r#"
        run::nonfinite

          × `C[1, 2]` is inf: the input `A[1, 2]` is already inf

        1 error
    "#]]
    .assert_eq(&stops(&folder, &["copied", "--in", "A=[[1,0,0],[0,2,inf]]"]));
    passes(&folder, &["distances", "--in", "w=2.5"]);
    // Both backends count what the format stores.
    let shown = ["c", "interp"].map(|b| folder.succeeds(&["run", "f.ft", "distances", "--in", "w=2", "--backend", b]));
    assert_eq!(shown[0], shown[1]);
    assert!(shown[0].contains("6 elements stored, all others inf"), "{}", shown[0]);
}
