//! Valid statements and expressions.

use super::check;
use expect_test::expect;

#[test]
fn circular_difference() {
    check(
        "def circular_diff(e: f32[n_faces, feats], adj: i32[n_faces, 3]) -> f32[n_faces, feats]:
    y = zeros((n_faces, feats), f32)
    for i in range(n_faces):
        for j in range(3):
            y[i] += abs(e[adj[i, j]] - e[adj[i, (j + 1) % 3]])
    return y
",
        expect![[r#"
            def circular_diff(e: f32[n_faces, feats], adj: i32[n_faces, 3]) -> f32[n_faces, feats]:
                y = empty((n_faces, feats), f32)
                for y.d0 in range(n_faces):
                    for y.d1 in range(feats):
                        y[y.d0, y.d1] = 0.0
                for i in range(n_faces):
                    for j in range(3):
                        for y.d0 in range(feats):
                            y[i, y.d0] += abs(e[cast(adj[i, j], i64), y.d0] - e[cast(adj[i, (j + 1) % 3], i64), y.d0])
                return y
        "#]],
    );
}

#[test]
fn recursion_over_dimensions() {
    check(
        "def add(a, b, c):
    if a.ndim == 0:
        c[...] = a + b
    else:
        for i in range(a.shape[0]):
            add(a[i], b[i], c[i])

def f(x: f32[n, m], y: f32[n, m]) -> f32[n, m]:
    z = empty(x.shape, x.dtype)
    add(x, y, z)
    return z
",
        expect![[r#"
            def f(x: f32[n, m], y: f32[n, m]) -> f32[n, m]:
                z = empty((n, m), f32)
                for i in range(n):
                    for i_1 in range(m):
                        z[i, i_1] = x[i, i_1] + y[i, i_1]
                return z
        "#]],
    );
}

#[test]
fn matrix_product_and_rename() {
    check(
        "def f(a: f64[n, k], b: f64[k, m]) -> f64[n, m]:\n    return a @ b\n",
        expect![[r#"
        def f(a: f64[n, k], b: f64[k, m]) -> f64[n, m]:
            out = empty((n, m), f64)
            for y.d0 in range(n):
                for y.d1 in range(m):
                    out[y.d0, y.d1] = 0.0
            for i in range(n):
                for j in range(m):
                    for k_1 in range(k):
                        out[i, j] += a[i, k_1] * b[k_1, j]
            return out
    "#]],
    );
    check(
        "def f(a: f64[n, k], b: f64[k, m]):\n    c = a @ b\n    c += 1\n    return c\n",
        expect![[r#"
            def f(a: f64[n, k], b: f64[k, m]) -> f64[n, m]:
                c = empty((n, m), f64)
                for y.d0 in range(n):
                    for y.d1 in range(m):
                        c[y.d0, y.d1] = 0.0
                for i in range(n):
                    for j in range(m):
                        for k_1 in range(k):
                            c[i, j] += a[i, k_1] * b[k_1, j]
                for c.d0 in range(n):
                    for c.d1 in range(m):
                        c[c.d0, c.d1] += 1.0
                return c
        "#]],
    );
}

#[test]
fn shift_needs_a_temporary() {
    check(
        "def f(x: inout[f32[n]]):\n    x[1:] = x[:-1]\n",
        expect![[r#"
            def f(x: inout[f32[n]]):
                assert 0 <= n - 1, f"invalid slice from 0 to {n - 1}: dimension 0 has size {n}"
                t = empty((n - 1,), f32)
                for t.d0 in range(n - 1):
                    t[t.d0] = x[t.d0]
                for x.d0 in range(n - 1):
                    x[x.d0 + 1] = t[x.d0]
        "#]],
    );
    check(
        "def f(x: inout[f32[n]]):\n    x[...] = x * 2 + 1\n",
        expect![[r#"
        def f(x: inout[f32[n]]):
            for x.d0 in range(n):
                x[x.d0] = x[x.d0] * 2.0 + 1.0
    "#]],
    );
}
