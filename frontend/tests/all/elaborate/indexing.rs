//! Subscripts.

use super::check;
use expect_test::expect;

#[test]
fn integers_and_slices() {
    check(
        "def f(x: f32[n, m, 4]):
    a = x[0, -1]
    b = x[..., -1]
    c = x[1:, None, :, 2]
    d = x[::-1, 0, ::2]
    e = x[2:n - 1, 0, 1:3]
    return a, b, c, d, e
",
        expect![[r#"
            def f(x: f32[n, m, 4]) -> (f32[4], f32[n, m], f32[n - 1, 1, m], f32[n, 2], f32[n - 3, 2]):
                a = empty((4,), f32)
                b = empty((n, m), f32)
                c = empty((n - 1, 1, m), f32)
                d = empty((n, 2), f32)
                e = empty((n - 3, 2), f32)
                for a.d0 in range(4):
                    a[a.d0] = x[0, m - 1, a.d0]
                for b.d0 in range(n):
                    for b.d1 in range(m):
                        b[b.d0, b.d1] = x[b.d0, b.d1, 3]
                assert 1 <= n, f"invalid slice from 1 to {n}: dimension 0 has size {n}"
                for c.d0 in range(n - 1):
                    for c.d1 in range(1):
                        for c.d2 in range(m):
                            c[c.d0, c.d1, c.d2] = x[c.d0 + 1, c.d2, 2]
                for d.d0 in range(n):
                    for d.d1 in range(2):
                        d[d.d0, d.d1] = x[n - 1 - d.d0, 0, d.d1 * 2]
                assert 2 <= n - 1, f"invalid slice from 2 to {n - 1}: dimension 0 has size {n}"
                for e.d0 in range(n - 3):
                    for e.d1 in range(2):
                        e[e.d0, e.d1] = x[e.d0 + 2, 0, e.d1 + 1]
                return a, b, c, d, e
        "#]],
    );
}

#[test]
fn index_tensors() {
    check(
        "def f(x: f32[n, m, k], idx: i32[p], jdx: i64[q, p]):
    a = x[idx]
    b = x[:, jdx]
    c = x[0, :, idx]
    d = x[idx, jdx]
    e = x[0, idx, 1:]
    return a, b, c, d, e
",
        expect![[r#"
            def f(x: f32[n, m, k], idx: i32[p], jdx: i64[q, p]) -> (f32[p, m, k], f32[n, q, p, k], f32[p, m], f32[q, p, k], f32[p, k - 1]):
                a = empty((p, m, k), f32)
                b = empty((n, q, p, k), f32)
                c = empty((p, m), f32)
                d = empty((q, p, k), f32)
                e = empty((p, k - 1), f32)
                for a.d0 in range(p):
                    for a.d1 in range(m):
                        for a.d2 in range(k):
                            a[a.d0, a.d1, a.d2] = x[cast(idx[a.d0], i64), a.d1, a.d2]
                for b.d0 in range(n):
                    for b.d1 in range(q):
                        for b.d2 in range(p):
                            for b.d3 in range(k):
                                b[b.d0, b.d1, b.d2, b.d3] = x[b.d0, jdx[b.d1, b.d2], b.d3]
                for c.d0 in range(p):
                    for c.d1 in range(m):
                        c[c.d0, c.d1] = x[0, c.d1, cast(idx[c.d0], i64)]
                for d.d0 in range(q):
                    for d.d1 in range(p):
                        for d.d2 in range(k):
                            d[d.d0, d.d1, d.d2] = x[cast(idx[d.d1], i64), jdx[d.d0, d.d1], d.d2]
                assert 1 <= k, f"invalid slice from 1 to {k}: dimension 2 has size {k}"
                for e.d0 in range(p):
                    for e.d1 in range(k - 1):
                        e[e.d0, e.d1] = x[0, cast(idx[e.d0], i64), e.d1 + 1]
                return a, b, c, d, e
        "#]],
    );
}

#[test]
fn stores_by_index_tensor() {
    check(
        "def f(x: inout[f32[n]], idx: i32[p], v: f32[p]):
    x[idx] += v
    x[idx] = v
    x[idx] = x[idx] + 1
    x[idx] = 0
",
        expect![[r#"
            def f(x: inout[f32[n]], idx: i32[p], v: f32[p]):
                for x.d0 in range(p):
                    x[cast(idx[x.d0], i64)] += v[x.d0]
                for x.d0 in range(p):
                    x[cast(idx[x.d0], i64)] = v[x.d0]
                t = empty((p,), f32)
                for t.d0 in range(p):
                    t[t.d0] = x[cast(idx[t.d0], i64)] + 1.0
                for x.d0 in range(p):
                    x[cast(idx[x.d0], i64)] = t[x.d0]
                for x.d0 in range(p):
                    x[cast(idx[x.d0], i64)] = 0.0
        "#]],
    );
}

#[test]
fn indices_read_from_elements() {
    check(
        "def f(x: f32[n, m], at: i32[n, 2]):
    y = zeros((n,), f32)
    for i in range(n):
        y[i] = x[at[i, 0], at[at[i, 1], 0]]
    return y
",
        expect![[r#"
            def f(x: f32[n, m], at: i32[n, 2]) -> f32[n]:
                y = empty((n,), f32)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                for i in range(n):
                    y[i] = x[cast(at[i, 0], i64), cast(at[cast(at[i, 1], i64), 0], i64)]
                return y
        "#]],
    );
}

#[test]
fn subscripts_of_values() {
    check(
        "def f(x: f32[n], y: f32[n]):
    a = (x + y)[1]
    b = (x * 2)[1:]
    at = (0,)
    return a, b, x[at], x.T[0]
",
        expect![[r#"
            def f(x: f32[n], y: f32[n]) -> (f32, f32[n - 1], f32, f32):
                a = empty((), f32)
                b = empty((n - 1,), f32)
                out2 = empty((), f32)
                out3 = empty((), f32)
                a = x[1] + y[1]
                assert 1 <= n, f"invalid slice from 1 to {n}: dimension 0 has size {n}"
                for b.d0 in range(n - 1):
                    b[b.d0] = x[b.d0 + 1] * 2.0
                out2 = x[0]
                out3 = x[0]
                return a, b, out2, out3
        "#]],
    );
}

#[test]
fn backward_slices_are_shown_as_written() {
    check(
        "def f(x: f32[n], y: f32[3]):
    a = x[1:0:-1]
    b = x[2::-1]
    c = x[:1:-2]
    d = y[1:2:-1]
    return a, b, c
",
        expect![[r#"
            [index::range] invalid slice backwards from 1 to 2: dimension 0 has size 3
              at t.ft:5 `1:2:-1`
              help: slices do not clamp: 0 <= b <= a < n must hold for `x[a:b:-1]`
        "#]],
    );
    check(
        "def f(x: f32[n]):
    return x[1:0:-1], x[2::-1], x[:1:-2]
",
        expect![[r#"
            def f(x: f32[n]) -> (f32[1], f32[3], f32[(n - 1) // 2]):
                out = empty((1,), f32)
                out1 = empty((3,), f32)
                out2 = empty(((n - 1) // 2,), f32)
                assert 2 <= n, f"invalid slice backwards from 1 to 0: dimension 0 has size {n}"
                assert 3 <= n, f"invalid slice backwards from 2 to the beginning: dimension 0 has size {n}"
                for out.d0 in range(1):
                    out[out.d0] = x[1 - out.d0]
                for out1.d0 in range(3):
                    out1[out1.d0] = x[2 - out1.d0]
                for out2.d0 in range((n - 1) // 2):
                    out2[out2.d0] = x[n - 1 - out2.d0 * 2]
                return out, out1, out2
        "#]],
    );
}
