use crate::args;
use crate::primitives::common::{call, check, list, refused};
use expect_test::{Expect, expect};
use taffeta_ast::{Expr, Symbol};
use taffeta_schedule::{IndexMap, Refusal, Schedule, Value};

/// Builds a map from its coefficients; the last number of each row is added.
fn map(rows: &[&[i64]]) -> Value {
    let count = rows[0].len() - 1;
    let params: Vec<Symbol> = (0..count).map(|k| Symbol::new(format!("p{k}"))).collect();
    let sum = |row: &&[i64]| {
        params.iter().zip(*row).fold(Expr::int(row[count]), |e, (p, c)| e.plus(&Expr::var(p).times(&Expr::int(*c))))
    };
    let results = rows.iter().map(sum).collect();
    Value::Map(IndexMap { params, results })
}

fn skewed(s: &mut Schedule) -> Result<(), Refusal> {
    call(s, "permute", args![list(&["i", "j"]), map(&[&[1, 1, 0], &[0, 1, 0]])]).map(drop)
}

fn taken(text: &str, expected: Expect) {
    check(text, skewed, expected);
}

#[test]
fn skews() {
    taken(
        "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = x[i, j] * 2 + i
",
        expect![[r#"
            for i_j in range(n + m - 1):
                for j in range(max(i_j - n + 1, 0), min(i_j + 1, m)):
                    x[i_j - j, j] = x[i_j - j, j] * 2.0 + cast(i_j - j, f32)
        "#]],
    );
    // Bounds that depend on each other, `min` and `max` in them, a local.
    taken(
        "
def f(x: inout[f32[n, n]]):
    for i in range(1, n):
        for j in range(max(0, i - 3), min(n, i + 4)):
            t = x[i, j] * 2
            x[i, j] = t + j
",
        expect![[r#"
            for i_j in range(1, n * 2 - 1):
                for j in range(max(max(i_j - n + 1, 0), (i_j - 2) // 2), min(min(i_j, n), (i_j + 3) // 2 + 1)):
                    t = empty((), f32)
                    t = x[i_j - j, j] * 2.0
                    x[i_j - j, j] = t + cast(j, f32)
        "#]],
    );
    // The wavefront: after it, the iterations of one front run in any order.
    check(
        "
def f(x: inout[f32[n, m]]):
    for i in range(1, n):
        for j in range(1, m):
            x[i, j] = x[i - 1, j] + x[i, j - 1]
",
        |s| {
            let loops = call(s, "permute", args![list(&["i", "j"]), map(&[&[1, 1, 0], &[0, 1, 0]])])?;
            call(s, "parallelize", args![loops[1].clone()]).map(drop)
        },
        expect![[r#"
            for i_j in range(2, n + m - 1):
                for j in range(max(i_j - n + 1, 1), min(i_j, m)):  # parallel
                    x[i_j - j, j] = x[i_j - j - 1, j] + x[i_j - j, j - 1]
        "#]],
    );
    // A stencil in time: iterations of space are skewed by time, so that the loops can be interchanged.
    check(
        "
def f(x: inout[f32[n]], t: f32[steps]):
    for k in range(steps):
        for i in range(1, n - 1):
            x[i] = x[i - 1] + x[i] + x[i + 1]
",
        |s| {
            assert!(!s.can("reorder", args![list(&["i", "k"])])?);
            call(s, "permute", args![list(&["k", "i"]), map(&[&[1, 1, 0], &[1, 0, 0]])]).map(drop)
        },
        expect![[r#"
            for k_i in range(1, n + steps - 2):
                for k in range(max(0, k_i - n + 2), min(steps, k_i)):
                    x[k_i - k] += x[k_i - k - 1] + x[k_i - k + 1]
        "#]],
    );
}

#[test]
fn other_maps() {
    // Reversed and shifted; the parameters need not be in the order of the nest.
    check(
        "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m - 1, -1, -1):
            x[i, j] = x[i, j] * 2 + i
",
        |s| call(s, "permute", args![list(&["j", "i"]), map(&[&[-1, 0, 5], &[2, 1, 0]])]).map(drop),
        expect![[r#"
            for j in range(6 - m, 6):
                for i_j in range(10 - j * 2, n - j * 2 + 10):
                    x[j * 2 + i_j - 10, 5 - j] = x[j * 2 + i_j - 10, 5 - j] * 2.0 + cast(j * 2 + i_j - 10, f32)
        "#]],
    );
    check(
        "
def f(x: inout[f32[n, n, n]]):
    for i in range(n):
        for j in range(i, n):
            for k in range(j):
                x[i, j, k] = x[i, j, k] * 2 + i
",
        |s| {
            let m = map(&[&[1, 1, 1, 0], &[0, 1, 1, 0], &[0, 0, 1, 0]]);
            call(s, "permute", args![list(&["i", "j", "k"]), m]).map(drop)
        },
        expect![[r#"
            for i_j_k in range(1, min(n * 3 - 3, n * 4 - 5)):
                for j_k in range(max(i_j_k - n + 1, (i_j_k + 1) // 2), min(i_j_k + 1, n * 2 - 2)):
                    for k in range(max(j_k - n + 1, 0), min(j_k * 2 - i_j_k + 1, (j_k - 1) // 2 + 1)):
                        x[i_j_k - j_k, j_k - k, k] = x[i_j_k - j_k, j_k - k, k] * 2.0 + cast(i_j_k - j_k, f32)
        "#]],
    );
}

#[test]
fn refuses() {
    let plain = "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = 0
";
    refused(
        plain,
        |s| call(s, "permute", args![list(&["i", "j"]), map(&[&[1, 1, 1, 0]])]).map(drop),
        expect![[r#"
        schedule::illegal (1): expected one parameter and one new index per loop, found 2 loops, 3 parameters and 1 new indices
    "#]],
    );
    refused(
        plain,
        |s| call(s, "permute", args![list(&["i", "j"]), map(&[&[1, 1, 0], &[1, -1, 0]])]).map(drop),
        expect![[r#"
            schedule::illegal (3): the new indices do not enumerate every iteration exactly once: the determinant is not 1 or -1
              `for i in range(n):` the nest
        "#]],
    );
    refused(
        plain,
        |s| {
            call(s, "parallelize", args!["i"])?;
            skewed(s)
        },
        expect![[r#"
            schedule::illegal (4): the loop `i` is already parallel
              `for i in range(n):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, m, k]]):
    for i in range(n):
        for l in range(k):
            for j in range(m):
                x[i, j, l] = 0
",
        skewed,
        expect![[r#"
            schedule::illegal (1): another loop stands between the loops
              `for i in range(n):` one of them
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, m]], y: inout[f32[n]]):
    for i in range(n):
        y[i] = 0
        for j in range(m):
            x[i, j] = 0
",
        skewed,
        expect![[r#"
            schedule::illegal (2): the nest is not perfect, and `j` may not run at all
              `y[i] = 0` stands beside the loop `j`
              help: split the nest there first: `s.fission(…)`, or move the statement out of the loop `j`
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, m]]):
    for i in range(0, n, 2):
        for j in range(m):
            x[i, j] = 0
",
        skewed,
        expect![[r#"
            schedule::illegal (4): the step of `i` is neither 1 nor -1
              `for i in range(0, n, 2):` this loop
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, m]], k: i32[n]):
    for i in range(n):
        for j in range(min(k[i], m)):
            x[i, j] = 0
",
        skewed,
        expect![[r#"
            schedule::illegal (5): the bounds of `j` are not affine in the iterators of the nest around it
              `for j in range(min(k[i], m)):` this loop
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n, m]]):
    for i in range(1, n):
        for j in range(m - 2):
            x[i, j] = x[i - 1, j + 2]
",
        skewed,
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `x[i, j] = x[i - 1, j + 2]` writes `x[i, j]` at i = 1, j = 2, then reads `x[i - 1, j + 2]` at i = 2, j = 0
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is x[1, 2] with n = 3, m = 5
        "#]],
    );
}
