//! Lists that are indexed while the program runs.

use super::check;
use expect_test::expect;

#[test]
fn a_list_becomes_a_constant_tensor() {
    check(
        "W = [0.25, 0.5, 0.25]
K = [3, 1, 2]

def smooth(x: f32[n], y: f64[n]):
    z = zeros((n,), f32)
    u = zeros((n,), f64)
    for i in range(1, n - 1):
        for k in range(3):
            w = W[k]
            z[i] += w * x[i + k - 1]
            u[i] += w * y[i] + W[2]
    return z, u
",
        expect![[r#"
            def smooth(x: f32[n], y: f64[n]) -> (f32[n], f64[n]):
                z = empty((n,), f32)
                u = empty((n,), f64)
                W = empty((3,), f64)
                W[0] = 0.25
                W[1] = 0.5
                W[2] = 0.25
                for z.d0 in range(n):
                    z[z.d0] = 0.0
                for u.d0 in range(n):
                    u[u.d0] = 0.0
                for i in range(1, n - 1):
                    for k in range(3):
                        z[i] += cast(W[k], f32) * x[i + k - 1]
                        u[i] += W[k] * y[i] + 0.25
                return z, u
        "#]],
    );
}

#[test]
fn tables_of_several_dimensions() {
    check(
        "STENCIL = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]

def g(v, x):
    return v * x

def f(x: f32[n], at: i32[m]):
    y = zeros((3,), f32)
    c = 0
    for i in range(3):
        for j in range(3):
            y[i] += STENCIL[i][j] * x[0] + STENCIL[i, j] + g(STENCIL[j, i], x[1])
            c += STENCIL[1][j]
    masks = [True, False]
    return y, c, STENCIL[at, 0], x[0] if masks[at[0]] else 0.0
",
        expect![[r#"
            def f(x: f32[n], at: i32[m]) -> (f32[3], i32, i32[m], f32):
                y = empty((3,), f32)
                c = empty((), i32)
                out2 = empty((m,), i32)
                out3 = empty((), f32)
                STENCIL = empty((3, 3), i64)
                STENCIL[0, 0] = 0
                STENCIL[0, 1] = 1
                STENCIL[0, 2] = 0
                STENCIL[1, 0] = 1
                STENCIL[1, 1] = -4
                STENCIL[1, 2] = 1
                STENCIL[2, 0] = 0
                STENCIL[2, 1] = 1
                STENCIL[2, 2] = 0
                STENCIL_1 = empty((3,), i64)
                STENCIL_1[0] = 1
                STENCIL_1[1] = -4
                STENCIL_1[2] = 1
                masks = empty((2,), bool)
                masks[0] = True
                masks[1] = False
                for y.d0 in range(3):
                    y[y.d0] = 0.0
                c = 0
                for i in range(3):
                    for j in range(3):
                        y[i] += cast(STENCIL[i, j], f32) * x[0] + cast(STENCIL[i, j], f32) + cast(STENCIL[j, i], f32) * x[1]
                        c += cast(STENCIL_1[j], i32)
                for out2.d0 in range(m):
                    out2[out2.d0] = cast(STENCIL[cast(at[out2.d0], i64), 0], i32)
                out3 = x[0] if masks[cast(at[0], i64)] else 0.0
                return y, c, out2, out3
        "#]],
    );
}

#[test]
fn invalid_tables() {
    for (list, expected) in [
        ("[[1, 2], [3]]", "its rows have 2 items and 1 item"),
        ("[[1, 2], 3]", "some of its items are lists"),
        ("[1, [2, 3]]", "some of its items are lists"),
        ("[1, \"a\"]", "one of its items is a string"),
        ("[n, 1]", "one of its items is a scalar"),
        ("[]", "it is empty"),
        ("[True, 1]", "mixes `bool` with numbers"),
        ("[0] * 5000", "more than 4096 elements"),
    ] {
        let text = format!(
            "def f(x: f32[n]):\n    w = {list}\n    y = zeros((n,), f64)\n    for i in range(n):\n        y[i] = w[i]\n    return y\n"
        );
        let found = super::elaborate(&text).expect_err(&text);
        assert!(found.contains("[static::table]") && found.contains(expected), "{list}: {found}");
    }
}
