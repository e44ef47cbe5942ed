//! `taffeta grad`, and `taffeta run --grad`.

use super::Folder;
use expect_test::expect;

fn folder() -> Folder {
    Folder::new(&[(
        "f.ft",
        "def f(x: f64[n], k: i32, a: inout[f64]) -> f64[n]:
    y = x * x * a
    a[...] = 2.0 * a
    return y

def count(x: f64[n]) -> i32:
    c: i32 = 0
    for i in range(n):
        if x[i] > 0.0:
            c += 1
    return c

def loss(x: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += x[i] ** 3.0
    return s

dloss = grad(loss, wrt=[\"x\"])
dcount = grad(count)
hessian = vjp(grad(loss))
",
    )])
}

#[test]
fn runs_with_default_and_given_seeds() {
    let folder = folder();
    let run = |more: &[&str]| {
        let all = [&["run", "f.ft", "f", "--in", "x=[1,2]", "--in", "k=1", "--in", "a=3"], more].concat();
        folder.succeeds(&all)
    };
    let out = run(&["--grad", "x"]);
    assert!(out.contains("x.grad: f64[2]\n  [6, 12]"), "{out}");
    // The gradient sums over `y` and the final value of `a`.
    assert!(out.contains("a.grad: f64 = 7\n"), "{out}");
    let out = run(&["--grad", "x", "--in", "y.grad=[1,0]", "--in", "a.grad=0", "--backend", "interp"]);
    assert!(out.contains("x.grad: f64[2]\n  [6, 0]") && out.contains("a.grad: f64 = 1\n"), "{out}");
    let out = folder.succeeds(&["run", "f.ft", "dloss", "--in", "x=[1,2]"]);
    assert!(out.contains("x.grad: f64[2]\n  [3, 12]"), "{out}");
    // A gradient is an ordinary program: the second derivative times a vector.
    let out = folder.succeeds(&["run", "f.ft", "hessian", "--in", "x=[1,2]", "--in", "x.grad.grad=[1,1]"]);
    assert!(out.contains("x.grad: f64[2]\n  [6, 12]"), "{out}");
}

#[test]
fn refuses_inputs_and_results_without_derivatives() {
    let folder = folder();
    let wrong = |args: &[&str]| folder.fails(args);
    expect![[r#"
        grad::wrt

          × `k` has type i32, which carries no derivative
          help: differentiate with respect to floating-point parameters

        1 error
    "#]]
    .assert_eq(&wrong(&["grad", "f.ft", "f", "--wrt", "k"]));
    expect![[r#"
        grad::tape

          × `loss` has no tensor `t` to keep
          help: name tensors of the program, or `all`, `none` or `auto`

        1 error
    "#]]
    .assert_eq(&wrong(&["grad", "f.ft", "loss", "--tape", "t"]));
    expect![[r#"
        grad::wrt

          × `f` has no parameter `z`
          help: its parameters are x, k, a

        1 error
    "#]]
    .assert_eq(&wrong(&["grad", "f.ft", "f", "--wrt", "z"]));
    expect![[r#"
        grad::result

          × `grad` needs one floating-point scalar result, but `count` has `c` of i32 with 0 dimensions
            ╭─[f.ft:20:10]
         19 │ dloss = grad(loss, wrt=["x"])
         20 │ dcount = grad(count)
            ·          ───────────
         21 │ hessian = vjp(grad(loss))
            ╰────
          help: name a scalar result (`out=["loss"]`), sum the result, or use `vjp(count, …)`, which takes
                a seed for each result

        1 error
    "#]]
    .assert_eq(&wrong(&["run", "f.ft", "dcount", "--in", "x=[1]"]));
}

#[test]
fn large_tapes_are_warned_of() {
    let folder = Folder::new(&[(
        "f.ft",
        "def f(x: f64[n], steps: i32) -> f64[n]:
    u = x * 1.0
    for t in range(steps):
        u = u * sin(u)
    return u
",
    )]);
    let (status, _, err) = folder.taffeta(&["grad", "f.ft", "--size", "n=1000", "--in", "steps=100000"]);
    assert_eq!(status, 0);
    assert!(err.contains("note: the local tensors of the gradient take") && err.contains("--memory"), "{err}");
    let (_, _, err) = folder.taffeta(&["grad", "f.ft", "--size", "n=10", "--in", "steps=10"]);
    assert_eq!(err, "");
}

#[test]
fn tensors_of_the_library_are_located_in_its_files() {
    let text = "def loss(x: f64[n]) -> f64:\n    y = x * x\n    return sum(softmax(y) * y)\n";
    let folder = Folder::new(&[("f.ft", text)]);
    let table = folder.succeeds(&["grad", "f.ft", "loss", "--wrt", "x", "--explain"]);
    let row = |tensor: &str| {
        let fits = |l: &&str| l.split_whitespace().next() == Some(tensor);
        let line = table.lines().find(fits).unwrap_or_else(|| panic!("no row of {tensor}:\n{table}"));
        line.split_whitespace().nth(1).unwrap_or_default().to_string()
    };
    assert_eq!(row("y"), "2");
    let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/libop/ops/softmax.ft")).unwrap();
    let line =
        file.lines().position(|l| l.trim_start().starts_with("s: f64 = 0.0")).expect("the sum's declaration") + 1;
    assert_eq!(row("s"), format!("<libop>/softmax.ft:{line}"), "{table}");
}
