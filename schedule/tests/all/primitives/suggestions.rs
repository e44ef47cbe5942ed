//! Proposals of refusals: each is legal as it is written.

use crate::args;
use crate::primitives::common::{call, check, entry, list, refused};
use expect_test::{Expect, expect};
use taffeta_schedule::{Refusal, Schedule};

/// Checks the help of the last step's refusal.
fn proposed(text: &str, step: impl FnOnce(&mut Schedule) -> Result<(), Refusal>, expected: Expect) {
    let (func, _) = entry(text);
    let mut s = Schedule::new(func);
    let r = step(&mut s).expect_err("a refusal");
    expected.assert_eq(r.help.as_deref().unwrap_or_default());
}

const TWO_PARTS: &str = "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(1, n):
        x[i] = x[i - 1] * 2
        y[i] = x[i] + 1
";

#[test]
fn parallelizing_one_half() {
    proposed(
        TWO_PARTS,
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[
            r#"write instead: `a, b = s.fission("i", after="here")`, then `s.parallelize(b)`, with `label("here")` before `x[i] = x[i - 1] * 2.0`"#
        ]],
    );
    check(
        &TWO_PARTS.replace("        x[i] =", "        label(\"here\")\n        x[i] ="),
        |s| {
            let halves = call(s, "fission", args!["i"; after = "here"])?;
            call(s, "parallelize", args![halves[1].clone()]).map(drop)
        },
        expect![[r#"
            for i in range(1, n):
                label("here")
                x[i] = x[i - 1] * 2.0
            for i in range(1, n):  # parallel
                y[i] = x[i] + 1.0
        "#]],
    );
}

#[test]
fn declaring_temporaries_in_the_loop() {
    let text = "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = empty((m,), f32)
    for i in range(n):
        for j in range(m):
            t[j] = x[i, j] * 2
        for j in range(m):
            y[i, j] = t[j]
";
    proposed(
        text,
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"write instead: `s.privatize("t", "i")`, then `s.parallelize("i")`"#]],
    );
    // Several tensors, one of which is overwritten by another loop.
    proposed(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = zeros((m,), f32)
    u = empty((), f32)
    for i in range(n):
        u[...] = 0
        for j in range(m):
            t[j] = x[i, j] * 2
            u[...] += t[j]
        for j in range(m):
            y[i, j] = t[j] / u
",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"write instead: `s.privatize("u", "i")`, then `s.privatize("t", "i")`, then `s.parallelize("i")`"#]],
    );
    // A tensor that carries values from one iteration to the next cannot be privatised.
    let kept =
        text.replace("            t[j] = x[i, j] * 2", "            if x[i, j] > 0:\n                t[j] = x[i, j]");
    proposed(
        &kept,
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"write instead: `s.parallelize("j#1")`"#]],
    );
}

#[test]
fn parallelizing_another_loop() {
    let columns = "
def f(x: inout[f32[n, m]]):
    for i in range(1, n):
        for j in range(m):
            x[i, j] = x[i - 1, j] * 2
";
    proposed(
        columns,
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"write instead: `s.parallelize("j")`"#]],
    );
    let rows = "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(1, m):
            x[i, j] = x[i, j - 1] * 2
";
    proposed(
        rows,
        |s| call(s, "vectorize", args!["j"]).map(drop),
        expect![[r#"write instead: `s.reorder(["j", "i"])`, then `s.vectorize("i")`"#]],
    );
}

#[test]
fn wavefronts() {
    let text = "
def f(x: inout[f32[n, m]]):
    for i in range(1, n):
        for j in range(1, m):
            x[i, j] = x[i - 1, j] + x[i, j - 1]
";
    proposed(
        text,
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[
            r#"write instead: `a, b = s.permute(["i", "j"], lambda i0, i1: (i0 + i1, i1))`, then `s.parallelize(b)`"#
        ]],
    );
    check(
        text,
        |s| {
            let skewed = taffeta_schedule::IndexMap::affine(&[vec![1, 1, 0], vec![0, 1, 0]]);
            let map = taffeta_schedule::Arg {
                name: None,
                value: taffeta_schedule::Value::Map(skewed),
                span: taffeta_ast::Span::NONE,
            };
            let loops = call(s, "permute", &[taffeta_schedule::Arg::from(list(&["i", "j"])), map])?;
            call(s, "parallelize", args![loops[1].clone()]).map(drop)
        },
        expect![[r#"
            for i_j in range(2, n + m - 1):
                for j in range(max(i_j - n + 1, 1), min(i_j, m)):  # parallel
                    x[i_j - j, j] = x[i_j - j - 1, j] + x[i_j - j, j - 1]
        "#]],
    );
}

#[test]
fn orders_after_fission_or_skewing() {
    let imperfect = "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32]):
    for i in range(n):
        z[...] = z * 2 + y[i]
        for j in range(m):
            y[i] += x[i, j]
";
    proposed(
        imperfect,
        |s| call(s, "reorder", args![list(&["j", "i"])]).map(drop),
        expect![[r#"write instead: `a, b = s.fission("i", before="j")`, then `s.reorder(["j", b])`"#]],
    );
    let diagonal = "
def f(x: inout[f32[n, m]]):
    for i in range(1, n):
        for j in range(m - 1):
            x[i, j] = x[i - 1, j + 1] * 2
";
    proposed(
        diagonal,
        |s| call(s, "reorder", args![list(&["j", "i"])]).map(drop),
        expect![[r#"write instead: `s.permute(["i", "j"], lambda i0, i1: (i0 + i1, i0))`"#]],
    );
}

#[test]
fn another_fusion() {
    let backwards = "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] + 1
    for j in range(n - 1, -1, -1):
        y[j] = x[j] * 2
";
    proposed(
        backwards,
        |s| call(s, "fuse", args!["i", "j"]).map(drop),
        expect![[r#"write instead: `s.reverse("i")`, then `s.fuse("i", "j")`"#]],
    );
    let part = "
def f(x: inout[f32[n]], y: inout[f32[n]], z: inout[f32[n]], w: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] + 1
        y[i] = y[i] * 2
    for j in range(n):
        z[j] = x[j] * 2
        w[j] += y[n - 1 - j]
";
    proposed(
        part,
        |s| call(s, "fuse", args!["i", "j"]).map(drop),
        expect![[
            r#"write instead: `a, b = s.fission("j", after="here")`, then `s.fuse("i", a)`, with `label("here")` before `z[j] = x[j] * 2.0`"#
        ]],
    );
}

#[test]
fn another_cut() {
    let text = "
def f(x: inout[f32[n]], y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(1, n):
        label(\"one\")
        x[i] = y[i - 1]
        label(\"two\")
        y[i] = x[i] * 2
        z[i] = y[i]
";
    proposed(
        text,
        |s| call(s, "fission", args!["i"; after = "one"]).map(drop),
        expect![[r#"write instead: `a, b = s.fission("i", after="two")`"#]],
    );
}

#[test]
fn reductions_in_a_separate_loop() {
    let text = "
def f(x: f32[n, m], k: i32[n], h: inout[f32[n]]):
    for i in range(n):
        assert 0 <= k[i] and k[i] < n
        for j in range(m):
            h[k[i]] += x[i, j]
";
    proposed(
        text,
        |s| {
            call(s, "vectorize", args!["j"])?;
            call(s, "parallelize", args!["i"]).map(drop)
        },
        expect![[r#"write instead: `s.cache_reduction("j", "h")`, then `s.parallelize("i")`"#]],
    );
}

/// Checks that a refusal proposes nothing if no legal step is found, or if the step is only tried.
#[test]
fn no_suggestion_without_a_legal_step() {
    let chain = "
def f(x: inout[f32], y: f32[n]):
    for i in range(n):
        x[...] = x * 2 + y[i]
";
    let r = refused(
        chain,
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `x[...] = x * 2 + y[i]` reads `x` at i = 0, then writes `x` at i = 1
              note: anti dependence (WAR), carried by the loop `i`
              note: for example with n = 2
        "#]],
    );
    assert_eq!(r.help, None);
    let (func, _) = entry(TWO_PARTS);
    let r = Schedule::new(func).trying().call("parallelize", args!["i"]).expect_err("a refusal");
    assert_eq!(r.help, None);
}
