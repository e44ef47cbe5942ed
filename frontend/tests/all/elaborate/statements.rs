//! Loops, conditions, assertions, reductions, labels.

use super::check;
use expect_test::expect;

#[test]
fn loops() {
    check(
        "def f(x: inout[f32[n, m]], k: i32):
    for i in range(1, n, 2):
        x[i, 0] = 1
    for i in range(n - 1, -1, -1):
        x[i, 0] += i
    for i in range(k):
        x[0, 0] *= 2
    for i, j in ndrange(n, range(1, m)):
        x[i, j] = i * j
    for a, b in static([(0, 1), (1, 2)]):
        x[a, b] = 3
",
        expect![[r#"
            def f(x: inout[f32[n, m]], k: i32):
                for i in range(1, n, 2):
                    x[i, 0] = 1.0
                for i in range(n - 1, -1, -1):
                    x[i, 0] += cast(i, f32)
                for i in range(cast(k, i64)):
                    x[0, 0] *= 2.0
                for i in range(n):
                    for j in range(1, m):
                        x[i, j] = cast(i * j, f32)
                x[0, 1] = 3.0
                x[1, 2] = 3.0
        "#]],
    );
}

#[test]
fn reductions() {
    check(
        "def f(x: f32[n], b: bool[n], k: i32[n]):
    s: f32 = 0.0
    p: f32 = 1.0
    lo: f32 = inf
    hi: f32 = -inf
    some: bool = False
    every: bool = True
    bits: i32 = 0
    mask: i32 = -1
    for i in range(n):
        s -= x[i]
        p = x[i] * p
        lo = min(lo, x[i])
        hi = max(x[i], hi)
        some = some or b[i]
        every &= b[i]
        bits |= k[i]
        mask = mask & k[i]
        s /= 2
    return s, p, lo, hi, some, every, bits, mask
",
        expect![[r#"
            def f(x: f32[n], b: bool[n], k: i32[n]) -> (f32, f32, f32, f32, bool, bool, i32, i32):
                s = empty((), f32)
                p = empty((), f32)
                lo = empty((), f32)
                hi = empty((), f32)
                some = empty((), bool)
                every = empty((), bool)
                bits = empty((), i32)
                mask = empty((), i32)
                s = 0.0
                p = 1.0
                lo = inf
                hi = -inf
                some = False
                every = True
                bits = 0
                mask = -1
                for i in range(n):
                    s += -x[i]
                    p *= x[i]
                    lo = min(lo, x[i])
                    hi = max(hi, x[i])
                    some |= b[i]
                    every &= b[i]
                    bits |= k[i]
                    mask &= k[i]
                    s = s / 2.0
                return s, p, lo, hi, some, every, bits, mask
        "#]],
    );
}

#[test]
fn assertions() {
    check(
        "def f(x: f32[n], k: i32):
    assert k > 0
    assert n >= 2, \"too short\"
    assert k < n, f\"{k} of {n}, {x.ndim} dimension\"
    assert x.ndim == 1, \"never seen\"
    return x[k]
",
        expect![[r#"
            def f(x: f32[n], k: i32) -> f32:
                out = empty((), f32)
                assert k > 0
                assert n >= 2, "too short"
                assert cast(k, i64) < n, f"{k} of {n}, 1 dimension"
                out = x[cast(k, i64)]
                return out
        "#]],
    );
}

#[test]
fn possibly_different_shapes_are_compared_once() {
    check(
        "def f(x: f32[n], y: f32[m]):
    z = x + y
    z += x * y
    return z
",
        expect![[r#"
            def f(x: f32[n], y: f32[m]) -> f32[n]:
                z = empty((n,), f32)
                assert n == m, f"`x` and `y` differ in dimension 0: {n} and {m}"
                for z.d0 in range(n):
                    z[z.d0] = x[z.d0] + y[z.d0]
                for z.d0 in range(n):
                    z[z.d0] += x[z.d0] * y[z.d0]
                return z
        "#]],
    );
}

#[test]
fn slices_are_checked() {
    check(
        "def f(x: f32[n], a: i32):
    s: f32 = 0.0
    for i in range(n):
        s += total(x[:i]) + total(x[2:n]) + total(x[a:a + 3])
    return s
",
        expect![[r#"
            def f(x: f32[n], a: i32) -> f32:
                s = empty((), f32)
                s = 0.0
                for i in range(n):
                    assert i <= n, f"invalid slice from 0 to {i}: dimension 0 has size {n}"
                    s_1 = empty((), f32)
                    s_1 = 0.0
                    for i_1 in range(i):
                        s_1 += x[i_1]
                    assert 2 <= n, f"invalid slice from 2 to {n}: dimension 0 has size {n}"
                    s_2 = empty((), f32)
                    s_2 = 0.0
                    for i_1 in range(n - 2):
                        s_2 += x[i_1 + 2]
                    assert 0 <= cast(a, i64) and cast(a, i64) <= cast(a + 3, i64) and cast(a + 3, i64) <= n, f"invalid slice from {cast(a, i64)} to {cast(a + 3, i64)}: dimension 0 has size {n}"
                    s_3 = empty((), f32)
                    s_3 = 0.0
                    for i_1 in range(cast(a + 3, i64) - cast(a, i64)):
                        s_3 += x[i_1 + cast(a, i64)]
                    s += s_1 + s_2 + s_3
                return s
        "#]],
    );
}

#[test]
fn static_branches_are_spliced() {
    check(
        "def f(x: f32[n, 3]):
    if x.ndim == 2 and x.shape[1] == 3:
        t = zeros((n,), f32)
    else:
        t = zeros((), f64)
    for d in static(range(3)):
        t += x[:, d]
    return t
",
        expect![[r#"
            def f(x: f32[n, 3]) -> f32[n]:
                t = empty((n,), f32)
                for t.d0 in range(n):
                    t[t.d0] = 0.0
                for t.d0 in range(n):
                    t[t.d0] += x[t.d0, 0]
                for t.d0 in range(n):
                    t[t.d0] += x[t.d0, 1]
                for t.d0 in range(n):
                    t[t.d0] += x[t.d0, 2]
                return t
        "#]],
    );
}

#[test]
fn else_branches() {
    check(
        "def f(x: inout[f32[n]]):
    for i in range(n):
        if x[i] > 1:
            x[i] = 1
        elif x[i] < 0:
            x[i] = 0
        else:
            pass
",
        expect![[r#"
            def f(x: inout[f32[n]]):
                for i in range(n):
                    if x[i] > 1.0:
                        x[i] = 1.0
                    elif x[i] < 0.0:
                        x[i] = 0.0
                    else:
                        pass
        "#]],
    );
}

#[test]
fn labels() {
    check(
        "def f(x: inout[f32[n]]):
    label(\"L1\")
    for i in range(n):
        label(f\"store{1 + 1}\")
        x[i] = total(x)
",
        expect![[r#"
            def f(x: inout[f32[n]]):
                label("L1")
                for i in range(n):
                    s = empty((), f32)
                    s = 0.0
                    for i_1 in range(n):
                        s += x[i_1]
                    label("store2")
                    x[i] = s
        "#]],
    );
}

#[test]
fn nested_and_single_targets() {
    check(
        "def pair(x):
    return x[0], (x[1], x)

def f(x: f32[n]):
    a, (b, [c, d]) = 1, (x[0], [x[1], n + 1])
    (e,) = (x[2],)
    y = x * 2
    z = x + d
    y, (z, y[0:1]) = z, (y, z[1:2])
    return a + b + c + e, y, z
",
        expect![[r#"
            def f(x: f32[n]) -> (f32, f32[n], f32[n]):
                out = empty((), f32)
                y = empty((n,), f32)
                z = empty((n,), f32)
                b = empty((), f32)
                b = x[0]
                c = empty((), f32)
                c = x[1]
                e = empty((), f32)
                e = x[2]
                for y.d0 in range(n):
                    y[y.d0] = x[y.d0] * 2.0
                for z.d0 in range(n):
                    z[z.d0] = x[z.d0] + cast(n + 1, f32)
                assert 2 <= n, f"invalid slice from 1 to 2: dimension 0 has size {n}"
                t = empty((n,), f32)
                for t.d0 in range(n):
                    t[t.d0] = y[t.d0]
                t_1 = empty((1,), f32)
                for t.d0 in range(1):
                    t_1[t.d0] = z[t.d0 + 1]
                for y.d0 in range(n):
                    y[y.d0] = z[y.d0]
                for z.d0 in range(n):
                    z[z.d0] = t[z.d0]
                assert 1 <= n, f"invalid slice from 0 to 1: dimension 0 has size {n}"
                for y.d0 in range(1):
                    y[y.d0] = t_1[y.d0]
                out = 1.0 + b + c + e
                return out, y, z
        "#]],
    );
    check(
        "def f(x: f32[n]):
    (a,) = x
    b, (c, d) = 1, (2, 3, 4)
    (e,) = (1, 2)
    return x
",
        expect![[r#"
            [type::unpack] expected 1 value to unpack, found a tensor of 1 dimension
              at t.ft:2 `x`
            [type::unpack] expected 2 values to unpack, found 3 values
              at t.ft:3 `1, (2, 3, 4)`
            [type::unpack] expected 1 value to unpack, found 2 values
              at t.ft:4 `(1, 2)`
        "#]],
    );
}

#[test]
fn labels_without_a_statement() {
    check(
        "def f(x: f32[n]):
    y = x + 1
    for i in range(n):
        y[i] = 0
        label(\"A\")
    return y
",
        expect![[r#"
            [syntax::label] expected a statement after the label
              at t.ft:5 `label("A")`
              help: write the label before the statement that it names
        "#]],
    );
}

#[test]
fn prints_show_texts_scalars_and_tensors() {
    check(
        "def shown(name: static, t):
    print(name, t.ndim, t)
    if t.ndim > 0:
        print(\"{\", t[0])

def f(x: f32[n, m], k: i32) -> f32[m]:
    print()
    print(\"a\", 1 + 1, f\"b{k + 1}c\", 2.5, nan)
    shown(\"x\", x)
    for i in range(n):
        shown(\"row\", x[i])
        print(x[i, 1:], x[i] > 0.5, n)
    y = x[k] * 2.0
    print(y)
    return y
",
        expect![[r#"
            def f(x: f32[n, m], k: i32) -> f32[m]:
                y = empty((m,), f32)
                print()
                print(f"a 2 b{k + 1}c 2.5 nan")
                print(f"x 2 {x}")
                print(f"{{ {x[0]}")
                for i in range(n):
                    print(f"row 1 {x[i]}")
                    print(f"{{ {x[i, 0]}")
                    assert 1 <= m, f"invalid slice from 1 to {m}: dimension 1 has size {m}"
                    shown = empty((m - 1,), f32)
                    for shown.d0 in range(m - 1):
                        shown[shown.d0] = x[i, shown.d0 + 1]
                    shown_1 = empty((m,), bool)
                    for shown.d0 in range(m):
                        shown_1[shown.d0] = x[i, shown.d0] > 0.5
                    print(f"{shown} {shown_1} {n}")
                for y.d0 in range(m):
                    y[y.d0] = x[cast(k, i64), y.d0] * 2.0
                print(f"{y}")
                return y
        "#]],
    );
}

#[test]
fn refused_prints() {
    let refused = |line: &str, expect| check(&format!("def f(x: f32[n]):\n    {line}\n    return x\n"), expect);
    refused(
        "print(x, end=\"\")",
        expect![[r#"
            [call::arguments] `print` has no parameter `end`
              at t.ft:2 `end`
              help: compose the text with f"…": `print` writes a line with spaces between its arguments
        "#]],
    );
    refused(
        "y = print(x)",
        expect![[r#"
            [syntax::print] `print` cannot be part of an expression: it has no value
              at t.ft:2 `print(x)`
              help: put it on a line of its own
        "#]],
    );
    refused(
        "print(f)",
        expect![[r#"
            [type::operand] `print` takes tensors and values known when compiling, found a function
              at t.ft:2 `f`
        "#]],
    );
    refused(
        "print(range(3))",
        expect![[r#"
            [type::operand] `print` takes tensors and values known when compiling, found a range
              at t.ft:2 `range(3)`
        "#]],
    );
}

/// Checks that a constant is printed as text.
#[test]
fn known_values_are_printed_as_text() {
    check(
        "def f(x: f64[n]):\n    print(\"a\", cast(1, i32), x[0])\n    return x[0]\n",
        expect![[r#"
        def f(x: f64[n]) -> f64:
            out = empty((), f64)
            print(f"a 1 {x[0]}")
            out = x[0]
            return out
    "#]],
    );
}
