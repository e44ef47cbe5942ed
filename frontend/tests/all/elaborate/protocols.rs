//! Access protocols of indices: `A[i, gallop(j)]`.

use super::{check, check_file, elaborate};
use expect_test::expect;
use taffeta_ast::print;

#[test]
fn in_subscripts() {
    check(
        "def f(A: f64[n, m] @ csr, B: f64[n, m] @ csr, k: i32[n]):
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += A[i, walk(j)] * B[walk(i), gallop(j)] + A[i, follow(j)] - B[locate(k[i]), locate(j)]
    return s
",
        expect![[r#"
            def f(A: f64[n, m] @ format(dense, compressed), B: f64[n, m] @ format(dense, compressed), k: i32[n]) -> f64:
                s = empty((), f64)
                s = 0.0
                for i in range(n):
                    for j in range(m):
                        s += A[i, walk(j)] * B[walk(i), gallop(j)] + A[i, locate(j)] - B[locate(cast(k[i], i64)), locate(j)]
                return s
        "#]],
    );
}

/// Checks that the protocol of an index reaches the dimension that it ends up in: through views, slices, gathers,
/// transposed tensors, templates and elementwise values.
#[test]
fn through_views() {
    check(
        "def inner(a, b):
    s = 0.0
    for j in range(a.shape[0]):
        s += a[gallop(j)] * b[walk(j)]
    return s

def f(A: f64[n, m] @ csr, B: f64[m, n] @ csr, x: f64[m], k: i32[n]):
    s = 0.0
    for i in range(n):
        s += inner(A[locate(i)], B.T[i])
        s += inner(A[i, 1:], B[1:, i])
        s += inner(A[gallop(k), 0], B[0])
        for j in range(m):
            s += A.T[walk(j), gallop(i)] + (A[i] * x)[gallop(j)] + A[k[i]][walk(j)] + A[k][locate(i), j]
    return s
",
        expect![[r#"
            def f(A: f64[n, m] @ format(dense, compressed), B: f64[m, n] @ format(dense, compressed), x: f64[m], k: i32[n]) -> f64:
                s = empty((), f64)
                s = 0.0
                for i in range(n):
                    s_1 = empty((), f64)
                    s_1 = 0.0
                    for j in range(m):
                        s_1 += A[locate(i), gallop(j)] * B[walk(j), i]
                    s += s_1
                    assert 1 <= m, f"invalid slice from 1 to {m}: dimension 1 has size {m}"
                    s_2 = empty((), f64)
                    s_2 = 0.0
                    for j in range(m - 1):
                        s_2 += A[i, gallop(j + 1)] * B[walk(j + 1), i]
                    s += s_2
                    a = empty((n,), f64)
                    for a.d0 in range(n):
                        a[a.d0] = A[gallop(cast(k[a.d0], i64)), 0]
                    s_3 = empty((), f64)
                    s_3 = 0.0
                    for j in range(n):
                        s_3 += a[gallop(j)] * B[0, walk(j)]
                    s += s_3
                    for j in range(m):
                        s += A[gallop(i), walk(j)] + A[i, gallop(j)] * x[gallop(j)] + A[cast(k[i], i64), walk(j)] + A[cast(k[locate(i)], i64), j]
                return s
        "#]],
    );
}

/// Checks that the protocol of an access neither passes to a store through it nor makes it another element.
#[test]
fn reductions_and_stores() {
    check(
        "def add(p, j):
    p[j] += p[gallop(j)] * 2.0
    p[j] = p[walk(j)] + 1.0
    p += 3.0

def f(y: inout[f64[n, m]]):
    for i in range(n):
        for j in range(m):
            add(y[locate(i)], j)
",
        expect![[r#"
            def f(y: inout[f64[n, m]]):
                for i in range(n):
                    for j in range(m):
                        y[i, j] += y[locate(i), gallop(j)] * 2.0
                        y[i, j] += 1.0
                        for y.d0 in range(m):
                            y[i, y.d0] += 3.0
        "#]],
    );
}

/// Checks that names of the program hide protocols.
#[test]
fn names_of_the_program_hide_protocols() {
    let text = "def walk(j):
    return j + 1

def f(A: f64[n] @ format(compressed), gallop: f64[n]):
    return A[walk(0)] + gallop[locate(0)]
";
    let printed = |text: &str| elaborate(text).map(|f| print::func(&f)).unwrap_or_else(|e| e);
    let first = printed(text);
    assert_eq!(printed(&first), first);

    expect![[r#"
            def f(A: f64[n] @ format(compressed), gallop_1: f64[n]) -> f64:
                out = empty((), f64)
                out = A[1] + gallop_1[locate(0)]
                return out
        "#]]
    .assert_eq(&first);
}

#[test]
fn misplaced_protocols() {
    check_file(
        "def target(y: inout[f64[n]], A: f64[n] @ format(compressed)):
    for i in range(n):
        y[gallop(i)] = A[i]

def reduced(y: inout[f64[n]], A: f64[n] @ format(compressed)):
    for i in range(n):
        y[walk(i)] += A[i]

def outside(A: f64[n] @ format(compressed)):
    s = 0.0
    for i in range(n):
        k = gallop(i)
        s += A[k]
    return s

def computed(A: f64[n] @ format(compressed)):
    s = 0.0
    for i in range(n):
        s += A[walk(i) + 1]
    return s

def both(A: f64[n] @ format(compressed)):
    s = 0.0
    for i in range(n):
        s += A[walk(gallop(i))]
    return s

def many(A: f64[n, n] @ csr):
    s = 0.0
    for i in range(n):
        s += A[walk(i, i)] + A[i, walk()] + A[i, walk(j=i)]
    return s

def nothing(A: f64[n] @ format(compressed)):
    return A[gallop(0.5)]

def new(A: f64[n] @ format(compressed)):
    return A[walk(None)]

def rest(A: f64[n] @ format(compressed)):
    return A[walk(...)]

def listed(A: f64[n] @ format(compressed)):
    names = (\"a\", \"b\")
    assert names[walk(0)] == \"a\"
    return A[0]
",
        expect![[r#"
            [storage::protocol] access protocols are not supported in writes
              at t.ft:3 `gallop(i)`
              help: leave it out: write the index alone
            [storage::protocol] access protocols are not supported in writes
              at t.ft:7 `walk(i)`
              help: leave it out: write the index alone
            [storage::protocol] `gallop(…)` is only allowed as an index of a tensor
              at t.ft:12 `gallop(i)`
              help: put it around an index in a subscript: `A[i, gallop(j)]`
            [storage::protocol] `walk(…)` is only allowed as an index of a tensor
              at t.ft:19 `walk(i)`
              help: put it around an index in a subscript: `A[i, walk(j)]`
            [storage::protocol] conflicting access protocols for one index
              at t.ft:25 `walk(gallop(i))`
              help: leave out one of them
            [call::arguments] `walk` takes one index
              at t.ft:31 `walk(i, i)`
            [index::type] expected an integer index, found a float
              at t.ft:35 `gallop(0.5)`
              help: convert it: `cast(x, i64)`
            [storage::protocol] expected an integer index in `walk`, found `None` or `...`
              at t.ft:38 `walk(None)`
              help: write an integer index in the parentheses
            [storage::protocol] expected an integer index in `walk`, found `None` or `...`
              at t.ft:41 `walk(...)`
              help: write an integer index in the parentheses
            [storage::protocol] `walk(…)` is only allowed as an index of a tensor
              at t.ft:45 `walk(0)`
              help: put it around an index in a subscript: `A[i, walk(j)]`
        "#]],
    );
}
