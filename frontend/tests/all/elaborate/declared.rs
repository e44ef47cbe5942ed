//! Types of names that are declared from weak values.

use super::{check, check_file};
use expect_test::expect;

#[test]
fn names_take_the_type_of_stored_values() {
    check(
        "def f(x: f64[n], k: i64[n], h: f16[n], u: u64[n], a: f32[n]):
    t = 0.0
    c = 0
    s = 0.0
    v = 0
    w = 0
    m = -inf
    z = 0.0
    for i in range(n):
        t += x[i]
        c += k[i]
        s = s + h[i]
        v = v + u[i]
        w += a[i]
        m = max(m, x[i])
        z += k[i]
    return t, c, s, v, w, m, z
",
        expect![[r#"
            def f(x: f64[n], k: i64[n], h: f16[n], u: u64[n], a: f32[n]) -> (f64, i64, f16, u64, f32, f64, f64):
                t = empty((), f64)
                c = empty((), i64)
                s = empty((), f16)
                v = empty((), u64)
                w = empty((), f32)
                m = empty((), f64)
                z = empty((), f64)
                t = 0.0
                c = 0
                s = 0.0
                v = 0
                w = 0.0
                m = -inf
                z = 0.0
                for i in range(n):
                    t += x[i]
                    c += k[i]
                    s += h[i]
                    v += u[i]
                    w += a[i]
                    m = max(m, x[i])
                    z += cast(k[i], f64)
                return t, c, s, v, w, m, z
        "#]],
    );
}

#[test]
fn names_stored_into_each_other() {
    check(
        "def f(x: f64[n]):
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    e = 0.0
    for i in range(n):
        a += b
        b += c
        c += x[i]
        d += e
        e += d
    return a, b, c, d, e
",
        expect![[r#"
            def f(x: f64[n]) -> (f64, f64, f64, f32, f32):
                a = empty((), f64)
                b = empty((), f64)
                c = empty((), f64)
                d = empty((), f32)
                e = empty((), f32)
                a = 0.0
                b = 0.0
                c = 0.0
                d = 0.0
                e = 0.0
                for i in range(n):
                    a += b
                    b += c
                    c += x[i]
                    d += e
                    e += d
                return a, b, c, d, e
        "#]],
    );
}

#[test]
fn stores_through_views_and_under_conditions_determine_types() {
    check(
        "def bump(p, v):
    p += v

def deep(p, v):
    bump(p, v)

def exact(p: inout[f64]):
    p += 1

def f(x: f64[n], k: i64[n], flag: bool):
    t = 0.0
    c = 0
    e = 0.0
    r = 0.1 * arange(n)
    exact(e)
    for i in range(n):
        for j in range(i):
            if flag:
                deep(t, x[j])
            else:
                bump(c, k[j])
        r[i] = x[i]
    return t, c, e, r
",
        expect![[r#"
            def f(x: f64[n], k: i64[n], flag: bool) -> (f64, i64, f64, f64[n]):
                t = empty((), f64)
                c = empty((), i64)
                e = empty((), f64)
                r = empty((n,), f64)
                t = 0.0
                c = 0
                e = 0.0
                for r.d0 in range(n):
                    r[r.d0] = 0.1 * cast(r.d0, f64)
                e += 1.0
                for i in range(n):
                    for j in range(i):
                        if flag:
                            t += x[j]
                        else:
                            c += k[j]
                    r[i] = x[i]
                return t, c, e, r
        "#]],
    );
}

#[test]
fn each_call_has_its_own_types() {
    check(
        "def total(x):
    t = 0.0
    for i in range(x.shape[0]):
        t += x[i]
    return t

def both(x, y):
    t = total(x)
    u = total(y)
    return t, u

def f(x: f64[n], y: f32[m]):
    a, b = both(x, y)
    c, d = both(y, x)
    return a, b, c, d
",
        expect![[r#"
            def f(x: f64[n], y: f32[m]) -> (f64, f32, f32, f64):
                a = empty((), f64)
                b = empty((), f32)
                c = empty((), f32)
                d = empty((), f64)
                a = 0.0
                for i in range(n):
                    a += x[i]
                b = 0.0
                for i in range(m):
                    b += y[i]
                c = 0.0
                for i in range(m):
                    c += y[i]
                d = 0.0
                for i in range(n):
                    d += x[i]
                return a, b, c, d
        "#]],
    );
}

#[test]
fn each_declaration_has_its_own_type() {
    check(
        "def f(x: f64[n], y: f32[n], z: inout[f64[n]]):
    for i in range(n):
        t = 0.0
        t += x[i]
        z[i] = t
    for i in range(n):
        t = 0.0
        t += y[i]
        z[i] = t
    for v in [x, y]:
        for i in range(n):
            t = 0.0
            t += v[i]
            z[i] += t
",
        expect![[r#"
            def f(x: f64[n], y: f32[n], z: inout[f64[n]]):
                for i in range(n):
                    t = empty((), f64)
                    t = 0.0
                    t += x[i]
                    z[i] = t
                for i in range(n):
                    t = empty((), f32)
                    t = 0.0
                    t += y[i]
                    z[i] = cast(t, f64)
                for i in range(n):
                    t = empty((), f64)
                    t = 0.0
                    t += x[i]
                    z[i] += t
                for i in range(n):
                    t = empty((), f32)
                    t = 0.0
                    t += y[i]
                    z[i] += cast(t, f64)
        "#]],
    );
}

#[test]
fn names_without_typed_stores() {
    check(
        "def f(x: f64[n]):
    c = 0
    t = 0.0
    u = 0.0
    b = False
    for i in range(n):
        if x[i] > 0:
            c += 1
            t = t + 0.5
            u += t
            u += c
            b = b or x[i] > 1
    y = x * u
    return c, t, u, b, y
",
        expect![[r#"
            def f(x: f64[n]) -> (i32, f32, f32, bool, f64[n]):
                c = empty((), i32)
                t = empty((), f32)
                u = empty((), f32)
                b = empty((), bool)
                y = empty((n,), f64)
                c = 0
                t = 0.0
                u = 0.0
                b = False
                for i in range(n):
                    if x[i] > 0.0:
                        c += 1
                        t += 0.5
                        u += t
                        u += cast(c, f32)
                        b |= x[i] > 1.0
                for y.d0 in range(n):
                    y[y.d0] = x[y.d0] * cast(u, f64)
                return c, t, u, b, y
        "#]],
    );
    check(
        "def f(x: f64[n]):
    c = 0
    for i in range(n):
        c += 0.5
    return c
",
        expect![[r#"
            [type::store] cannot store a float into `i32` without a conversion
              at t.ft:4 `0.5`
              help: write `cast(…, i32)`, which truncates, or make the target a float
        "#]],
    );
    check(
        "def f(x: f64[n]):
    c = 1
    for i in range(n):
        c = c / 2
    return c
",
        expect![[r#"
            [type::store] cannot store `f64` into `i32` without a conversion
              at t.ft:4 `c / 2`
              help: write `cast(…, i32)`, which truncates, or make the target a float
        "#]],
    );
    check(
        "def f(k: i32[n]):
    b = False
    for i in range(n):
        b = k[i]
    return b
",
        expect![[r#"
            [type::store] cannot store `i32` into `bool` without a conversion
              at t.ft:4 `k[i]`
              help: compare: `x != 0`
        "#]],
    );
    check(
        "def f(k: i8[n]):
    c = 300
    for i in range(n):
        c += k[i]
    return c
",
        expect![[r#"
            [type::literal] 300 does not fit in `i8`, the type of `c`, which ranges from -128 to 127
              at t.ft:2 `300`
              help: declare its type: `c: i64 = 300`
        "#]],
    );
}

/// Checks that the number of walks stays small when every level declares names from weak values, before and after it
/// calls itself.
#[test]
fn nested_calls_are_walked_few_times() {
    let started = std::time::Instant::now();
    for text in [
        "def down(x, k):\n    s = 0.0\n    s += x\n    if k > 0:\n        down(x, k - 1)\n    x += s\n\n",
        "def down(x, k):\n    s = 0.0\n    if k > 0:\n        down(x, k - 1)\n    s += x\n    x += s\n\n",
    ] {
        let entry = "def f(x: inout[f64], n: static = 100):\n    down(x, n)\n";
        super::elaborate(&format!("{text}{entry}")).unwrap();
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn lossy_conversions_are_warnings() {
    check_file(
        "def mean(x: f32[n]) -> f32:
    return sum(x) / n

def low(h: f16[n], k: i8[n]):
    t = 0.0
    c = 0
    for i in range(n):
        t += h[i]
        c += k[i]
    return t, c

def f(x: f64[n], k: i64[n], y: inout[f32[n]], z: inout[i32[n]]) -> f32[n]:
    s: f32 = 0.0
    t: f64 = 0.0
    u = zeros((n,), f32)
    for i in range(n):
        s += x[i]
        t += x[i]
        u[i] = x[i]
        y[i] = cast(x[i], f32)
        z[i] = k[i]
        y[i] = k[i]
    y[...] = t
    y[0] = mean(x)
    return x
",
        expect![[r#"
            [type::narrow_sum] `t` accumulates in `f16`, the type of the values stored into it
              at t.ft:8 `t += h[i]`
              help: declare it with a wider type: `t: f32 = …`
            [type::narrow_sum] `c` accumulates in `i8`, the type of the values stored into it
              at t.ft:9 `c += k[i]`
              help: declare it with a wider type: `c: i64 = …`
            [type::narrowing] storing a value of type `f64` into `s` of type `f32` rounds it
              at t.ft:17 `x[i]`
              help: declare `s` with `f64`, or write `cast(…, f32)` if this is intended
            [type::narrowing] storing a value of type `f64` into `u[i]` of type `f32` rounds it
              at t.ft:19 `x[i]`
              help: declare `u` with `f64`, or write `cast(…, f32)` if this is intended
            [type::narrowing] storing a value of type `i64` into `z[i]` of type `i32` wraps it around
              at t.ft:21 `k[i]`
              help: declare `z` with `i64`, or write `cast(…, i32)` if this is intended
            [type::narrowing] storing a value of type `f64` into `y[...]` of type `f32` rounds it
              at t.ft:23 `t`
              help: declare `y` with `f64`, or write `cast(…, f32)` if this is intended
            [type::narrowing] storing a value of type `f64` into the parameter `x` of type `f32` rounds it
              at t.ft:24 `x`
              help: declare the parameter `x` with `f64`, or write `cast(…, f32)` if this is intended
            [type::narrowing] storing a value of type `f64` into the result of type `f32` rounds it
              at t.ft:12 `f32[n]`
              help: declare the result with `f64`, or write `cast(…, f32)` if this is intended
        "#]],
    );
}

#[test]
fn choices_of_literals_are_not_lossy() {
    check_file(
        "def f(x: f64[n], y: inout[f32[n]], z: inout[i32[n]]):
    for i in range(n):
        z[i] = 1 if x[i] > 0.0 else -1 if x[i] < 0.0 else 0
        y[i] = 0.1 if x[i] > 0.0 else 0.5
        z[i] = 5000000000 if x[i] > 1.0 else 0
        y[i] = x[i] if x[i] > 1.0 else 0.0
",
        expect![[r#"
            [type::narrowing] storing a value of type `i64` into `z[i]` of type `i32` wraps it around
              at t.ft:5 `5000000000 if x[i] > 1.0 else 0`
              help: declare `z` with `i64`, or write `cast(…, i32)` if this is intended
            [type::narrowing] storing a value of type `f64` into `y[i]` of type `f32` rounds it
              at t.ft:6 `x[i] if x[i] > 1.0 else 0.0`
              help: declare `y` with `f64`, or write `cast(…, f32)` if this is intended
        "#]],
    );
}
