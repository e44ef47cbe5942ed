//! Meaning of names: values of sizes, static values, tensors.

use super::check;
use expect_test::expect;

#[test]
fn names_of_size_expressions_make_no_tensor() {
    check(
        "def f(x: f32[n]):
    half = n // 2
    scale = sqrt(1.0 * n)
    y = zeros((half,), f32)
    for i in range(half):
        k = 2 * i
        y[i] = x[k] * scale
    return y
",
        expect![[r#"
            def f(x: f32[n]) -> f32[n // 2]:
                y = empty((n // 2,), f32)
                for y.d0 in range(n // 2):
                    y[y.d0] = 0.0
                for i in range(n // 2):
                    y[i] = x[i * 2] * cast(sqrt(1.0 * cast(n, f64)), f32)
                return y
        "#]],
    );
}

#[test]
fn reassigned_names_are_tensors() {
    check(
        "def f(x: f32[n]):
    s = 0.0
    c = 0
    for i in range(n):
        if x[i] > 0:
            s += x[i]
            c += 1
    return s, c
",
        expect![[r#"
            def f(x: f32[n]) -> (f32, i32):
                s = empty((), f32)
                c = empty((), i32)
                s = 0.0
                c = 0
                for i in range(n):
                    if x[i] > 0.0:
                        s += x[i]
                        c += 1
                return s, c
        "#]],
    );
    check(
        "def f(x: f32[n], flag: bool):
    best = 0
    if flag:
        best = 1
    return best
",
        expect![[r#"
            def f(x: f32[n], flag: bool) -> i32:
                best = empty((), i32)
                best = 0
                if flag:
                    best = 1
                return best
        "#]],
    );
    check(
        "def bump(p):
    p += 1

def f(x: f32[n]):
    count = 0
    bump(count)
    bump(count)
    return count
",
        expect![[r#"
            def f(x: f32[n]) -> i32:
                count = empty((), i32)
                count = 0
                count += 1
                count += 1
                return count
        "#]],
    );
}

#[test]
fn static_values_change_under_static_control() {
    check(
        "def f(x: f32[n, m, 3]):
    size = 1
    dims = []
    for d in static(range(x.ndim)):
        size = size * 2
        size += 1
        dims = dims + [d]
    y = zeros((size, len(dims)), f32)
    for d in dims:
        y[0, d] = d
    return y
",
        expect![[r#"
            def f(x: f32[n, m, 3]) -> f32[15, 3]:
                y = empty((15, 3), f32)
                for y.d0 in range(15):
                    for y.d1 in range(3):
                        y[y.d0, y.d1] = 0.0
                y[0, 0] = 0.0
                y[0, 1] = 1.0
                y[0, 2] = 2.0
                return y
        "#]],
    );
}

#[test]
fn blocks_have_their_own_names() {
    check(
        "def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        t = x[i] * 2
        y[i] = t
    for i in range(n):
        t = x[i] * 3
        t *= t
        y[i] += t
",
        expect![[r#"
            def f(x: f32[n], y: inout[f32[n]]):
                for i in range(n):
                    t = empty((), f32)
                    t = x[i] * 2.0
                    y[i] = t
                for i in range(n):
                    t = empty((), f32)
                    t = x[i] * 3.0
                    t *= t
                    y[i] += t
        "#]],
    );
}

#[test]
fn declarations_have_their_annotated_type() {
    check(
        "def f(x: f32[n]):
    s: f64 = 0.0
    t: i64[n] = zeros((n,), i64)
    u: f64[n, 2] = 1
    for i in range(n):
        s += x[i]
        t[i] = i
    return s, t, u
",
        expect![[r#"
            def f(x: f32[n]) -> (f64, i64[n], f64[n, 2]):
                s = empty((), f64)
                t = empty((n,), i64)
                u = empty((n, 2), f64)
                s = 0.0
                for t.d0 in range(n):
                    t[t.d0] = 0
                for u.d0 in range(n):
                    for u.d1 in range(2):
                        u[u.d0, u.d1] = 1.0
                for i in range(n):
                    s += cast(x[i], f64)
                    t[i] = i
                return s, t, u
        "#]],
    );
}

#[test]
fn tuples_are_unpacked_to_any_depth() {
    check(
        "def pair(x):
    return x + 1, (x + 2, x + 3)

def f(x: inout[f32[n]]):
    a, (b, c) = pair(x)
    (a, c), [b, k] = (c, a), (a, 2)
    x[...] = a * b * c * k
",
        expect![[r#"
            def f(x: inout[f32[n]]):
                a = empty((n,), f32)
                for a.d0 in range(n):
                    a[a.d0] = x[a.d0] + 1.0
                b = empty((n,), f32)
                for b.d0 in range(n):
                    b[b.d0] = x[b.d0] + 2.0
                c = empty((n,), f32)
                for c.d0 in range(n):
                    c[c.d0] = x[c.d0] + 3.0
                t = empty((n,), f32)
                for t.d0 in range(n):
                    t[t.d0] = a[t.d0]
                t_1 = empty((n,), f32)
                for t.d0 in range(n):
                    t_1[t.d0] = a[t.d0]
                for a.d0 in range(n):
                    a[a.d0] = c[a.d0]
                for c.d0 in range(n):
                    c[c.d0] = t[c.d0]
                for b.d0 in range(n):
                    b[b.d0] = t_1[b.d0]
                for x.d0 in range(n):
                    x[x.d0] = a[x.d0] * b[x.d0] * c[x.d0] * 2.0
        "#]],
    );
    check(
        "def f(x: f32):\n    a, (b, c) = x, x\n",
        expect![[r#"
        [type::unpack] expected 2 values to unpack, found a scalar
          at t.ft:2 `x, x`
    "#]],
    );
    check(
        "def f(x: f32):\n    a, (b, c) = x, (x, x, x)\n",
        expect![[r#"
        [type::unpack] expected 2 values to unpack, found 3 values
          at t.ft:2 `x, (x, x, x)`
    "#]],
    );
}
