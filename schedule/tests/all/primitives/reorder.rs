use crate::args;
use crate::primitives::common::{call, check, entry, list, refused, same};
use expect_test::{Expect, expect};
use taffeta_schedule::{Refusal, Schedule, Value};

fn swap(s: &mut Schedule) -> Result<(), Refusal> {
    call(s, "reorder", args![list(&["j", "i"])]).map(drop)
}

fn taken(text: &str, expected: Expect) {
    check(text, swap, expected);
}

fn not_taken(text: &str, expected: Expect) {
    refused(text, swap, expected);
}

#[test]
fn triangular_loops_get_rectangular_bounds() {
    taken(
        "
def f(x: inout[f32[n, n]]):
    for i in range(n):
        for j in range(i, min(n, i + 4)):
            x[i, j] = x[i, j] + i
",
        expect![[r#"
                for j in range(min(n, n + 3)):
                    for i in range(n):
                        if i <= j and j < min(n, i + 4):
                            x[i, j] += cast(i, f32)
        "#]],
    );
    taken(
        "
def f(x: inout[f32[n, n]]):
    for i in range(n - 1, -1, -1):
        for j in range(i, -1, -1):
            x[i, j] = x[i, j] + j
",
        expect![[r#"
                for j in range(n - 1, -1, -1):
                    for i in range(n - 1, -1, -1):
                        if j <= i and -1 < j:
                            x[i, j] += cast(j, f32)
        "#]],
    );
}

#[test]
fn imperfect_nests() {
    taken(
        "
def f(x: inout[f32[n, 8]], y: inout[f32[n]]):
    for i in range(n):
        y[i] = 0
        for j in range(8):
            y[i] += x[i, j]
        x[i, 0] = y[i]
",
        expect![[r#"
                for j in range(8):
                    for i in range(n):
                        if j == 0:
                            y[i] = 0.0
                        y[i] += x[i, j]
                        if j == 7:
                            x[i, 0] = y[i]
        "#]],
    );
    not_taken(
        "
def f(x: inout[f32[n, m]], y: inout[f32[n]]):
    for i in range(n):
        y[i] = 0
        for j in range(m):
            y[i] += x[i, j]
",
        expect![[r#"
            schedule::illegal (2): the nest is not perfect, and `j` may not run at all
              `y[i] = 0` stands beside the loop `j`
              help: write instead: `a, b = s.fission("i", before="j")`, then `s.reorder(["j", b])`
        "#]],
    );
    not_taken(
        "
def f(x: inout[f32[n, 8]], y: inout[f32[n]]):
    for i in range(n):
        t: f32 = 0
        for j in range(8):
            t += x[i, j]
        y[i] = t
",
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `t += x[i, j]` first updates `t` at i = 0, j = 1
              `t: f32 = 0` then writes `t` at i = 1
              note: output dependence (WAW), carried by the loop `i`
              note: for example with n = 2
              note: `t` would be declared before the nest, and shared by all iterations
              help: write instead: `a, b = s.fission("i", before="j")`, then `s.reorder(["j", b])`
        "#]],
    );
}

#[test]
fn refuses_malformed_nests() {
    not_taken(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = 0
    for j in range(n):
        x[j] = 1
",
        expect![[r#"
            schedule::illegal (1): the loops `j` and `i` are not nested in each other
              `for j in range(n):` one loop
              `for i in range(n):` the other one
        "#]],
    );
    not_taken(
        "
def f(x: inout[f32[n, n]], b: bool[n]):
    for i in range(n):
        if b[i]:
            for j in range(n):
                x[i, j] = 0
        else:
            x[i, 0] = 1
",
        expect![[r#"
            schedule::illegal (2): a branch with an `else` stands between the loops
              `if b[i]:` this branch
        "#]],
    );
    refused(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = 0
",
        |s| call(s, "reorder", args![list(&["i", "i"])]).map(drop),
        expect![[r#"
            schedule::illegal (1): the loop `i` is given twice
        "#]],
    );
}

#[test]
fn three_loops_after_splits() {
    check(
        "
def matmul(a: f32[n, k], b: f32[k, m]) -> f32[n, m]:
    c = zeros((n, m), f32)
    for i in range(n):
        for j in range(m):
            for p in range(k):
                c[i, j] += a[i, p] * b[p, j]
    return c
",
        |s| {
            let i = call(s, "split", args!["i", 4])?;
            let j = call(s, "split", args!["j", 4])?;
            let order =
                vec![i[0].clone(), j[0].clone(), taffeta_schedule::Value::from("p"), i[1].clone(), j[1].clone()];
            call(s, "reorder", args![taffeta_schedule::Value::List(order)])?;
            call(s, "parallelize", args![i[0].clone()])?;
            Ok(())
        },
        expect![[r#"
                c = empty((n, m), f32)
                for c.d0 in range(n):
                    for c.d1 in range(m):
                        c[c.d0, c.d1] = 0.0
                for i_o in range((n + 3) // 4):  # parallel
                    for j_o in range((m + 3) // 4):
                        for p in range(k):
                            for i_i in range(4):
                                for j_i in range(4):
                                    if i_o * 4 + i_i < n:
                                        if j_o * 4 + j_i < m:
                                            c[i_o * 4 + i_i, j_o * 4 + j_i] += a[i_o * 4 + i_i, p] * b[p, j_o * 4 + j_i]
                return c
        "#]],
    );
}

/// Checks indices that are divided by products of sizes repeatedly, in whatever order the loops were merged.
#[test]
fn parts_of_loops_merged_from_four() {
    let text = "
def f(x: f64[n, m, p, q]) -> f64[n, m, p, q]:
    y = empty((n, m, p, q), f64)
    for i in range(n):
        for j in range(m):
            for k in range(p):
                for l in range(q):
                    y[i, j, k, l] = x[i, j, k, l] * 2.0
    return y
";
    // Positions of the loops to merge with the one inside, among those that are left.
    for merged in [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0], [2, 0, 0], [2, 1, 0]] {
        let (func, _) = entry(text);
        let mut s = Schedule::new(func.clone());
        let mut steps = || {
            let mut loops: Vec<Value> = ["i", "j", "k", "l"].map(Value::from).to_vec();
            for outer in merged {
                let made = call(&mut s, "merge", args![loops[outer].clone(), loops[outer + 1].clone()])?;
                loops.splice(outer..outer + 2, made);
            }
            let parts = call(&mut s, "split", args![loops[0].clone(), 4])?;
            let order = vec![parts[1].clone(), parts[0].clone()];
            call(&mut s, "reorder", args![Value::List(order)]).map(drop)
        };
        if let Err(r) = steps() {
            panic!("{merged:?}: {} {:?}", r.message, r.notes);
        }
        same(&func, s.func());
    }
}

#[test]
fn refuses_imperfect_nests_with_conditional_loops() {
    not_taken(
        "
def f(x: inout[f32[n, n]], y: inout[f32[n]]):
    for i in range(n):
        y[i] = 0
        if i > 0:
            for j in range(i):
                x[i, j] = 1
",
        expect![[r#"
            schedule::illegal (2): the nest is not perfect, and `j` may not run at all
              `y[i] = 0` stands beside the loop `j`
              help: write instead: `a, b = s.fission("i", before="here")`, then `s.reorder(["j", b])`, with `label("here")` before `if i > 0:`
        "#]],
    );
}

#[test]
fn refuses_declarations_whose_size_may_be_negative_outside() {
    not_taken(
        "
def f(x: inout[f32[n, 8]]):
    for i in range(n):
        t = zeros((2 * n - 1,), f32)
        for j in range(8):
            x[i, j] = x[i, j] + t[i]
",
        expect![[r#"
            schedule::illegal (3): the size of `t` is not proved to be valid where the nest does not run
              `t = zeros((2 * n - 1,), f32)` declared between the loops
              help: write instead: `a, b = s.fission("i", before="j")`, then `s.reorder(["j", b])`
        "#]],
    );
}

/// Checks that bounds that may stop the program are evaluated at the same place: under their conditions, and only where
/// the loops around run.
#[test]
fn bounds_that_may_fail() {
    let guarded = "
def f(k: i32[n], x: inout[f32[n]]):
    for i in range(n):
        if i + 1 < n:
            for j in range(k[i + 1]):
                x[i] += j
";
    refused(
        guarded,
        |s| call(s, "reorder", args![list(&["i", "j"])]).map(drop),
        expect![[r#"
            schedule::illegal (4): computing the bounds of `j` outside of the conditions and loops around it may stop the program
              `for j in range(k[i + 1]):` this loop
              help: compute the bounds before the nest, and assert that they are valid
        "#]],
    );
    let step = "
def f(k: i32[n], x: inout[f32[n]]):
    for i in range(n):
        if k[i] > 0:
            for j in range(0, 9, k[i]):
                x[i] += j
";
    refused(
        step,
        |s| call(s, "reorder", args![list(&["i", "j"])]).map(drop),
        expect![[r#"
            schedule::illegal (4): computing the bounds of `j` outside of the conditions and loops around it may stop the program
              `for j in range(0, 9, k[i]):` this loop
              help: compute the bounds before the nest, and assert that they are valid
        "#]],
    );
    let first = "
def f(k: i32[m], x: inout[f32[n]]):
    for i in range(n):
        for j in range(k[0]):
            x[i] += j
";
    not_taken(
        first,
        expect![[r#"
            schedule::illegal (4): computing the bounds of `j` outside of the conditions and loops around it may stop the program
              `for j in range(k[0]):` this loop
              help: compute the bounds before the nest, and assert that they are valid
        "#]],
    );
    refused(
        first,
        |s| call(s, "merge", args!["i", "j"]).map(drop),
        expect![[r#"
            schedule::illegal (4): computing the bounds of `j` outside of the conditions and loops around it may stop the program
              `for j in range(k[0]):` this loop
              help: compute the bounds before the nest, and assert that they are valid
        "#]],
    );
    let turned = taffeta_schedule::IndexMap::affine(&[vec![0, 1, 0], vec![1, 0, 0]]);
    let turned = taffeta_schedule::Arg {
        name: None,
        value: taffeta_schedule::Value::Map(turned),
        span: taffeta_ast::Span::NONE,
    };
    refused(
        first,
        |s| call(s, "permute", &[list(&["i", "j"]).into(), turned]).map(drop),
        expect![[r#"
            schedule::illegal (5): computing the bounds of `j` outside of the conditions and loops around it may stop the program
              `for j in range(k[0]):` this loop
              help: compute the bounds before the nest, and assert that they are valid
        "#]],
    );
    // Facts at the nest's place are enough.
    taken(
        "
def f(k: i32[m], x: inout[f32[n]]):
    if m > 0:
        for i in range(n):
            for j in range(k[0]):
                x[i] += j
",
        expect![[r#"
            if m > 0:
                for j in range(cast(k[0], i64)):
                    for i in range(n):
                        x[i] += cast(j, f32)
        "#]],
    );
}

/// Builds loops up to a scalar, after some lines that may write it.
fn counted(before: &str) -> String {
    let nest = "    for i in range(n):\n        for j in range(k):\n            x[i] += j\n";
    format!("def f(x: inout[f32[n]]):\n    k = empty((), i64){before}{nest}")
}

/// Checks that bounds evaluated where the nest does not run read only written elements.
#[test]
fn bounds_that_read_possibly_unwritten_elements() {
    let some = &counted(
        "
    if n > 0:
        k = 5
",
    );
    not_taken(
        some,
        expect![[r#"
            schedule::illegal (4): the bounds of `j` read `k`, which may not be written before the nest
              `for j in range(k):` this loop
              help: write `k` before the nest in every run, or declare it with `zeros`
        "#]],
    );
    refused(
        some,
        |s| call(s, "merge", args!["i", "j"]).map(drop),
        expect![[r#"
            schedule::illegal (4): the bounds of `j` read `k`, which may not be written before the nest
              `for j in range(k):` this loop
              help: write `k` before the nest in every run, or declare it with `zeros`
        "#]],
    );
    let never = "
def f(x: inout[f32[n]]):
    for i in range(n):
        k = empty((), i64)
        for j in range(3, k - 2, -1):
            x[i] += j
";
    not_taken(
        never,
        expect![[r#"
            schedule::illegal (4): the bounds of `j` read `k`, which may not be written before the nest
              `for j in range(3, k - 2, -1):` this loop
              help: write `k` before the nest in every run, or declare it with `zeros`
        "#]],
    );
    let later = "
def f(p: i64[n], x: inout[f32[n]]):
    k = empty((n,), i64)
    for a in range(n - 1):
        k[a] = p[a]
    for b in range(n):
        for i in range(n):
            for j in range(k[b]):
                x[i] += j
";
    refused(
        later,
        |s| call(s, "reorder", args![list(&["b", "j", "i"])]).map(drop),
        expect![[r#"
            schedule::illegal (4): the bounds of `j` read `k`, which may not be written before the nest
              `for j in range(k[b]):` this loop
              help: write `k` before the nest in every run, or declare it with `zeros`
        "#]],
    );
}

#[test]
fn bounds_that_read_written_elements() {
    let both = &counted(
        "
    if n > 3:
        k = 5
    else:
        k = n
",
    );
    taken(
        both,
        expect![[r#"
        k = empty((), i64)
        if n > 3:
            k = 5
        else:
            k = n
        for j in range(k):
            for i in range(n):
                x[i] += cast(j, f32)
    "#]],
    );
    let runs = &counted(
        "
    assert n > 3
    if n > 0:
        k = 5
",
    );
    taken(
        runs,
        expect![[r#"
            k = empty((), i64)
            assert n > 3
            if n > 0:
                k = 5
            for j in range(k):
                for i in range(n):
                    x[i] += cast(j, f32)
        "#]],
    );
    let all = "
def f(p: i64[n], x: inout[f32[n]]):
    k = empty((n + 1,), i64)
    k[0] = 1
    for a in range(n):
        k[a + 1] = k[a] + p[a]
    for b in range(n):
        for i in range(n):
            for j in range(k[b], k[b + 1]):
                x[i] += j
";
    check(
        all,
        |s| call(s, "reorder", args![list(&["b", "j", "i"])]).map(drop),
        expect![[r#"
        k = empty((n + 1,), i64)
        k[0] = 1
        for a in range(n):
            k[a + 1] = k[a] + p[a]
        for b in range(n):
            for j in range(k[b], k[b + 1]):
                for i in range(n):
                    x[i] += cast(j, f32)
    "#]],
    );
    check(
        all,
        |s| call(s, "reorder", args![list(&["j", "i"])]).map(drop),
        expect![[r#"
        k = empty((n + 1,), i64)
        k[0] = 1
        for a in range(n):
            k[a + 1] = k[a] + p[a]
        for b in range(n):
            for j in range(k[b], k[b + 1]):
                for i in range(n):
                    x[i] += cast(j, f32)
    "#]],
    );
}

/// Checks a statement beside the inner loop, which moves into it, under a condition; it may not be parallel then.
#[test]
fn refuses_parallel_loops_inside_of_parallel_loops() {
    refused(
        "
def f(x: inout[i64[n]], y: i64[m]):
    for i in range(1, n):
        if y[0] > 3:
            for j in range(0, n, 2):
                x[j] = min(x[j], y[1])
",
        |s| {
            call(s, "parallelize", args!["j"]).expect("it is legal");
            let i = args!["i"][0].clone();
            call(s, "unroll", &[i, taffeta_schedule::Arg::named("factor", 2)]).expect("it is legal");
            call(s, "reorder", args![list(&["i~o", "j#1"])]).map(drop)
        },
        expect![[r#"
            schedule::illegal (100): the loop `j#1` is already parallel or vectorised, and would contain a parallel loop
              `for j in range(0, n, 2):` a copy of this parallel loop
              help: write instead: `a, b = s.fission("i~o", after="here")`, then `s.reorder(["j#1", a])`, with `label("here")` before `if i~o * 2 < n - 1:`
        "#]],
    );
}
