use crate::args;
use crate::primitives::common::{call, check, list, refused};
use expect_test::expect;

#[test]
fn across_declarations() {
    check(
        "
def f(x: inout[f32[n]], y: f32[n], z: inout[f32[n]]):
    for i in range(n):
        label(\"A\")
        x[i] = x[i] * 2
        t = y[i] + 1
        u = t * t
        label(\"B\")
        z[i] = u
        label(\"C\")
        x[i] += 1
",
        |s| {
            // `B` reads a tensor that is declared between them.
            call(s, "swap", args![list(&["C", "B"])])?;
            assert!(!s.can("swap", args![list(&["C", "A"])])?);
            Ok(())
        },
        expect![[r#"
            for i in range(n):
                label("A")
                x[i] *= 2.0
                t = empty((), f32)
                t = y[i] + 1.0
                u = empty((), f32)
                u = t * t
                label("C")
                x[i] += 1.0
                label("B")
                z[i] = u
        "#]],
    );
}

#[test]
fn loops_of_a_block() {
    check(
        "
def f(x: inout[f32[n]], y: inout[f32[n]], z: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
    for j in range(n):
        y[j] = y[j] + 1
    for k in range(n):
        z[k] = z[k] - 1
",
        |s| call(s, "swap", args![list(&["k", "j", "i"])]).map(drop),
        expect![[r#"
            for k in range(n):
                z[k] += -1.0
            for j in range(n):
                y[j] += 1.0
            for i in range(n):
                x[i] *= 2.0
        "#]],
    );
}

#[test]
fn refuses() {
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(n):
        label(\"A\")
        x[i] = y[i] * 2
        label(\"B\")
        y[i] = 3
",
        |s| call(s, "swap", args![list(&["B", "A"])]).map(drop),
        expect![[r#"
            schedule::dependence (2): it would reverse a dependence
              `x[i] = y[i] * 2` first reads `y[i]` at i = 0
              `y[i] = 3` then writes `y[i]` at i = 0
              note: anti dependence (WAR), within one iteration of the loops around both
              note: the element is y[0] with n = 1
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(n):
        x[i] = y[i] * 2
    for j in range(n):
        label(\"B\")
        y[j] = 3
",
        |s| call(s, "swap", args![list(&["B", "i"])]).map(drop),
        expect![[r#"
            schedule::illegal (1): the statements are not in the same block
              `y[j] = 3` one statement
              `for i in range(n):` the other one
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = x[i] * 2
",
        |s| call(s, "swap", args![list(&["i", "i"])]).map(drop),
        expect![[r#"
            schedule::illegal (1): a statement is given twice
              `for i in range(n):` this one
        "#]],
    );
    // The statement in between counts as well.
    refused(
        "
def f(x: inout[f32[n]], k: i32[n]):
    for i in range(n):
        label(\"A\")
        x[i] = 1
        x[k[i]] += 2
        label(\"B\")
        x[0] += 3
",
        |s| call(s, "swap", args![list(&["B", "A"])]).map(drop),
        expect![[r#"
            schedule::dependence (2): it would reverse a dependence
              `x[i] = 1` first writes `x[i]` at i = 0
              `x[k[i]] += 2` then updates `x[k[i]]` at i = 0
              note: flow dependence (RAW), within one iteration of the loops around both
              note: the element is x[0] with n = 1, if `k[0]` is 0
        "#]],
    );
}
