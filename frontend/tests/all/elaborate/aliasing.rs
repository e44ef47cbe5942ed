//! Order of reads and writes in an assignment: the right-hand side is read before the first write.

use super::check;
use expect_test::expect;

#[test]
fn shifts_need_temporaries() {
    check(
        "def f(x: inout[f32[n]]):
    x[1:] = x[:-1]
    x[1:] += x[:-1]
    x[:] = x[::-1]
",
        expect![[r#"
            def f(x: inout[f32[n]]):
                assert 0 <= n - 1, f"invalid slice from 0 to {n - 1}: dimension 0 has size {n}"
                t = empty((n - 1,), f32)
                for t.d0 in range(n - 1):
                    t[t.d0] = x[t.d0]
                for x.d0 in range(n - 1):
                    x[x.d0 + 1] = t[x.d0]
                t_1 = empty((n - 1,), f32)
                for t.d0 in range(n - 1):
                    t_1[t.d0] = x[t.d0]
                for x.d0 in range(n - 1):
                    x[x.d0 + 1] += t_1[x.d0]
                t_2 = empty((n,), f32)
                for t.d0 in range(n):
                    t_2[t.d0] = x[n - 1 - t.d0]
                for x.d0 in range(n):
                    x[x.d0] = t_2[x.d0]
        "#]],
    );
}

#[test]
fn elementwise_updates_need_no_temporary() {
    check(
        "def f(x: inout[f32[n, m]], y: inout[f32[n]]):
    x[...] = x * 2 + 1
    x[0] = x[1] + x[2]
    y *= y
    y[...] = y / 3
",
        expect![[r#"
            def f(x: inout[f32[n, m]], y: inout[f32[n]]):
                for x.d0 in range(n):
                    for x.d1 in range(m):
                        x[x.d0, x.d1] = x[x.d0, x.d1] * 2.0 + 1.0
                for x.d0 in range(m):
                    x[0, x.d0] = x[1, x.d0] + x[2, x.d0]
                for y.d0 in range(n):
                    y[y.d0] *= y[y.d0]
                for y.d0 in range(n):
                    y[y.d0] = y[y.d0] / 3.0
        "#]],
    );
}

#[test]
fn transposition_in_place() {
    check(
        "def f(x: inout[f32[n, n]]):
    x[...] = x.T
",
        expect![[r#"
            def f(x: inout[f32[n, n]]):
                t = empty((n, n), f32)
                for t.d0 in range(n):
                    for t.d1 in range(n):
                        t[t.d0, t.d1] = x[t.d1, t.d0]
                for x.d0 in range(n):
                    for x.d1 in range(n):
                        x[x.d0, x.d1] = t[x.d0, x.d1]
        "#]],
    );
}

#[test]
fn elements_read_by_all_updates_need_a_temporary() {
    check(
        "def f(x: inout[f32[n]]):
    x[...] = x - x[0]
    x /= x[0]
",
        expect![[r#"
            def f(x: inout[f32[n]]):
                t = empty((n,), f32)
                for t.d0 in range(n):
                    t[t.d0] = -x[0]
                for x.d0 in range(n):
                    x[x.d0] += t[x.d0]
                t_1 = empty((n,), f32)
                for t.d0 in range(n):
                    t_1[t.d0] = x[t.d0] / x[0]
                for x.d0 in range(n):
                    x[x.d0] = t_1[x.d0]
        "#]],
    );
}

#[test]
fn written_indices_are_read_first() {
    check(
        "def f(x: inout[i64[n]], y: inout[i64[n, m]]):
    x[x] = 1
    y[y[0, 0]] = 7
",
        expect![[r#"
            def f(x: inout[i64[n]], y: inout[i64[n, m]]):
                at = empty((n,), i64)
                for at.d0 in range(n):
                    at[at.d0] = x[at.d0]
                for x.d0 in range(n):
                    x[at[x.d0]] = 1
                at_1 = empty((), i64)
                at_1 = y[0, 0]
                for y.d0 in range(m):
                    y[at_1, y.d0] = 7
        "#]],
    );
}

#[test]
fn swaps_need_temporaries() {
    check(
        "def f(x: inout[f32[n]]):
    x[0], x[1] = x[1], x[0]
",
        expect![[r#"
            def f(x: inout[f32[n]]):
                t = empty((), f32)
                t = x[0]
                x[0] = x[1]
                x[1] = t
        "#]],
    );
}
