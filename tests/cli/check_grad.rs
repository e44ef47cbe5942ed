//! `taffeta check-grad`: gradients that are right, that are undefined, and that are wrong.

use super::Folder;
use expect_test::expect;
use serde_json::Value as Json;

const PROGRAM: &str = "
def smooth(x: f64[n], w: f64[n, m], b: f64) -> (f64[m], f64):
    y = zeros((m,), f64)
    total: f64 = 0.0
    for j in range(m):
        s: f64 = b
        for i in range(n):
            s += x[i] * w[i, j]
        y[j] = tanh(s) / (1.0 + exp(-s))
        total += log(1.0 + y[j] * y[j])
    return y, total

def single(x: f32[n], w: f32[n, m]) -> f32[m]:
    y = zeros((m,), f32)
    for j in range(m):
        for i in range(n):
            y[j] += sin(x[i]) * w[i, j]
        y[j] = y[j] * y[j]
    return y

def step(w: inout[f64[n]], g: f64[n], rate: f64) -> f64:
    total: f64 = 0.0
    for i in range(n):
        w[i] -= rate * g[i] * w[i] * w[i]
        total += w[i] * w[i]
    return total

def kinked(x: f64[n], a: f64) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += a * max(x[i], 0.0)
    return s

def pick(x: f64[n], k: i32[m]) -> f64:
    s: f64 = 0.0
    for j in range(m):
        s += exp(x[k[j]])
    return s

def root(x: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += sqrt(x[i])
    return s

def quartic(x: f64) -> f64:
    return sqrt(x * x * x * x)

def hidden(x: f64[n]) -> f64:
    s: f64 = 0.0
    for i in range(n):
        s += x[i] if x[i] != 0.0 else 0.0
    return s

def count(x: f64[n]) -> i32:
    c: i32 = 0
    for i in range(n):
        c += 1 if x[i] > 0.0 else 0
    return c

def half(x: f16[n]) -> f16[n]:
    return x * x

def drowned(x: f64) -> f64:
    return (10000000000.0 + x) - 10000000000.0

def lost(x: f32) -> f32:
    return (1000000000.0 + x) - 1000000000.0

def hidden_single(x: f32[n]) -> f32:
    s: f32 = 0.0
    for i in range(n):
        s += x[i] if x[i] != 0.0 else 0.0
    return s

def flat(x: f64[n]) -> f64:
    return sum(abs(x) ** 3) + prod(x)
";

fn folder() -> Folder {
    Folder::new(&[("f.ft", PROGRAM)])
}

fn json(folder: &Folder, args: &[&str]) -> (i32, Json) {
    let (status, out, _) = folder.taffeta(&[&["check-grad", "f.ft"], args, &["--json"]].concat());
    (status, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}")))
}

/// Returns every input with its verdict.
fn verdicts(document: &Json) -> Vec<(&str, &str)> {
    let all = document["inputs"].as_array().expect("inputs");
    all.iter().map(|i| (i["name"].as_str().expect("a name"), i["verdict"].as_str().expect("a verdict"))).collect()
}

#[test]
fn smooth_programs_agree() {
    let folder = folder();
    for more in [&[][..], &["--tape", "none"], &["--backend", "interp"], &["--seed", "5"], &["--generic"]] {
        let (status, found) = json(&folder, &[&["smooth", "--size", "n=3", "--size", "m=2"], more].concat());
        assert_eq!(verdicts(&found), [("x", "agrees"), ("w", "agrees"), ("b", "agrees")], "{more:?}: {found}");
        assert_eq!(status, 0);
        // Four rounds over all elements, and each element by itself.
        let tried: Vec<usize> =
            (0..3).map(|k| found["inputs"][k]["directions"].as_array().expect("directions").len()).collect();
        assert_eq!(tried, [4 + 3, 4 + 6, 4 + 1]);
        for d in found["inputs"][1]["directions"].as_array().expect("directions") {
            assert!(d["differences_error"].as_f64().expect("a number") < 1e-6, "{d}");
            assert!(d["reverse"].as_f64().expect("a number") != 0.0, "{d}");
        }
    }
    let (_, found) = json(&folder, &["single", "--size", "n=3", "--size", "m=2"]);
    assert_eq!(verdicts(&found), [("x", "agrees"), ("w", "agrees")], "{found}");
    let (_, found) = json(&folder, &["step", "--size", "n=3", "--in", "rate=0.1"]);
    assert_eq!(verdicts(&found), [("w", "agrees"), ("g", "agrees"), ("rate", "agrees")], "{found}");
    let (_, found) = json(&folder, &["step", "--size", "n=3", "--wrt", "g"]);
    assert_eq!(verdicts(&found), [("g", "agrees")], "{found}");
    let (_, found) = json(&folder, &["pick", "--in", "k=[2,0,2]", "--size", "n=4"]);
    assert_eq!(verdicts(&found), [("x", "agrees")], "{found}");
    // Inputs of one element, and of none.
    let (status, found) = json(&folder, &["pick", "--in", "k=[0]", "--in", "x=[0.5]"]);
    assert_eq!((status, verdicts(&found)), (0, vec![("x", "agrees")]));
    let (status, found) = json(&folder, &["kinked", "--size", "n=0"]);
    assert_eq!((status, verdicts(&found)), (0, vec![("x", "agrees"), ("a", "agrees")]));
}

#[test]
fn a_table_lists_comparisons_and_generated_inputs() {
    expect![[r#"
        generated inputs: x=randn(seed=0)
         input  along         finite differences  forward  reverse  error of differences  error of modes  verdict
         x      all elements             3.48964  3.48964  3.48964                < 1e-6          < 1e-9  agrees
        pick: 1 of 1 gradients agree, in 7 directions
    "#]]
    .assert_eq(&folder().succeeds(&["check-grad", "f.ft", "pick", "--in", "k=[1,0]", "--size", "n=3"]));
}

#[test]
fn kinks_are_warnings() {
    let folder = folder();
    let (status, found) = json(&folder, &["kinked", "--in", "x=[1,0,-2]", "--in", "a=3"]);
    assert_eq!((status, verdicts(&found)), (0, vec![("x", "kink"), ("a", "agrees")]), "{found}");
    // Elements beside the kink are still compared.
    let directions = found["inputs"][0]["directions"].as_array().expect("directions");
    let alone = |k: u64| directions.iter().find(|d| d["element"][0] == k).map(|d| &d["verdict"]);
    assert_eq!(
        [alone(0), alone(1), alone(2)].map(|v| v.and_then(Json::as_str)),
        [Some("agrees"), Some("kink"), Some("agrees")]
    );
    let out = folder.succeeds(&["check-grad", "f.ft", "kinked", "--in", "x=[1,0,-2]", "--in", "a=3"]);
    assert!(out.contains("warning: `x`: not differentiable here (a kink near this point, along "), "{out}");
    let (status, found) = json(&folder, &["root", "--in", "x=[0,1]"]);
    assert_eq!((status, verdicts(&found)), (0, vec![("x", "kink")]), "{found}");
    let (status, found) = json(&folder, &["drowned", "--in", "x=1"]);
    assert_eq!((status, verdicts(&found)), (0, vec![("x", "unclear")]), "{found}");
}

/// Checks that points where both one-sided derivatives are 0 are no kinks, to whatever order the function vanishes.
#[test]
fn flat_points_are_not_kinks() {
    let folder = folder();
    for zeros in ["x=[0]", "x=[0,0]", "x=[0,0,0]", "x=[0,0,0,0]", "x=[0,0,0,0,0]", "x=[0,2,0,0,-1]"] {
        let (status, found) = json(&folder, &["flat", "--in", zeros]);
        assert_eq!((status, verdicts(&found)), (0, vec![("x", "agrees")]), "{zeros}: {found}");
    }
}

/// Checks that errors explained by f32 rounding are not called mistakes, and that others are.
#[test]
fn rounding_in_f32_is_distinguished_from_wrong_gradients() {
    let folder = folder();
    let out = folder.succeeds(&["check-grad", "f.ft", "lost", "--in", "x=1"]);
    assert!(out.contains("warning: `x`: rounding error dominates the results in f32 along "), "{out}");
    assert!(!out.contains("mistake"), "{out}");
    let last = out.lines().last().expect("a last line");
    assert!(last.starts_with("lost: 0 of 1 gradients agree, 1 is unclear, in "), "{out}");
    let (status, found) = json(&folder, &["lost", "--in", "x=1"]);
    assert_eq!((status, verdicts(&found)), (0, vec![("x", "unclear")]), "{found}");
    assert_eq!(found["inputs"][0]["directions"][0]["rounding"], true, "{found}");
    let (status, found) = json(&folder, &["hidden_single", "--in", "x=[1,0]"]);
    assert_eq!((status, verdicts(&found)), (1, vec![("x", "wrong")]), "{found}");
    let out = folder.succeeds(&["check-grad", "f.ft", "kinked", "--in", "x=[1,0,-2]", "--in", "a=3"]);
    assert!(out.lines().last().expect("a last line").contains(" gradients agree, 1 is at a kink, in "), "{out}");
}

#[test]
fn wrong_gradients_are_status_1() {
    let folder = folder();
    let (status, out, err) = folder.taffeta(&["check-grad", "f.ft", "hidden", "--in", "x=[1,0]"]);
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("hidden: 0 of 1 gradients agree"), "{out}");
    expect![[r#"
        grad::check

          × the gradient of `hidden` with respect to `x` is wrong: in a direction in which all elements
          │ change, it gives -0.572064 (as does forward mode), but finite differences give 0.116593
            ╭─[f.ft:49:15]
         48 │ 
         49 │ def hidden(x: f64[n]) -> f64:
            ·               ──────
         50 │     s: f64 = 0.0
            ╰────
          help: try another point (--in, --seed): a branch (`x if x != 0 else 0`) or an operation (`sqrt`
                of 0) may have another derivative at this point alone
          note: a gradient that is wrong at every point is a mistake in Taffeta: keep the command line, the program, its inputs and the output

        1 error
    "#]]
    .assert_eq(&err);
    let (status, found) = json(&folder, &["quartic", "--in", "x=0"]);
    assert_eq!((status, verdicts(&found)), (1, vec![("x", "wrong")]), "{found}");
    assert_eq!(found["status"], "error");
    assert_eq!(found["diagnostics"][0]["code"], "grad::check");
    assert_eq!(found["inputs"][0]["directions"][0]["reverse"], "nan");
    assert_eq!(json(&folder, &["quartic", "--in", "x=2"]).0, 0);
}

#[test]
fn bad_input_is_refused() {
    let folder = folder();
    let fails = |args: &[&str]| folder.fails(&[&["check-grad", "f.ft"], args].concat());
    expect![[r#"
        grad::input

          × `x[1]` is NaN: there is no derivative at this point
            ╭─[f.ft:28:15]
         27 │ 
         28 │ def kinked(x: f64[n], a: f64) -> f64:
            ·               ──────
         29 │     s: f64 = 0.0
            ╰────
          help: give finite numbers

        1 error
    "#]]
    .assert_eq(&fails(&["kinked", "--in", "x=[1,nan]"]));
    expect![[r#"
        grad::point

          × `s` is NaN: there is no derivative at this point
          help: give inputs for which all results are finite, for example --in NAME=rand

        1 error
    "#]]
    .assert_eq(&fails(&["root", "--in", "x=[1,-1]"]));
    assert!(fails(&["pick", "--size", "n=3"]).contains("1 input is missing: `k: i32[m]`"));
    assert!(fails(&["pick", "--in", "k=[0]"]).contains("no input fixes the size `n`"));
    assert!(fails(&["pick", "--in", "k=[0]", "--in", "z=1"]).contains("has no parameter `z`"));
    assert!(fails(&["pick", "--in", "k=[0]", "--in", "x=[1]", "--wrt", "k"]).contains("carries no derivative"));
    assert!(fails(&["pick", "--in", "k=[0]", "--in", "x=[1]", "--wrt", "z"]).contains("has no parameter `z`"));
    assert!(fails(&["count", "--size", "n=2"]).contains("`count` has no floating-point results"));
    assert!(fails(&["half", "--size", "n=2"]).contains("grad::half"));
    assert!(fails(&["pick", "--in", "k=[7]", "--in", "x=[1]"]).contains("is out of range"));
}
