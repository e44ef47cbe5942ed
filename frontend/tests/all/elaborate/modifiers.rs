//! Index modifiers: integers computed from other integers.

use super::check;
use expect_test::expect;

#[test]
fn windows_and_offsets_shift_indices() {
    check(
        "def f(x: f64[n], w: f64[k], at: i64):
    s = 0.0
    for j in range(k):
        s += x[window(at, at + k)[j]] * w[j] + x[window(2, 5)[1]] + x[offset(3)[at]]
    for j in range(n - 2):
        s += x[offset(-2)[j]] * x[window(2, n)[j]]
    y = x[window(1, n)]
    return s, y
",
        expect![[r#"
            def f(x: f64[n], w: f64[k], at: i64) -> (f64, f64[n - 1]):
                s = empty((), f64)
                y = empty((n - 1,), f64)
                s = 0.0
                for j in range(k):
                    s += x[at + j] * w[j] + x[3] + x[at - 3]
                for j in range(n - 2):
                    s += x[j + 2] * x[j + 2]
                for y.d0 in range(n - 1):
                    y[y.d0] = x[y.d0 + 1]
                return s, y
        "#]],
    );
}

/// Checks that an index is asserted unless it is proved to be in the window.
#[test]
fn indices_outside_of_windows_are_refused() {
    check(
        "def f(x: f64[n], k: i64):
    return x[window(k, k + 2)[2]]
",
        expect![[r#"
            [index::range] index 2 is out of range: the dimension has size 2
              at t.ft:2 `2`
        "#]],
    );
    check(
        "def f(x: f64[n], k: i64):
    s = 0.0
    for j in range(5):
        s += x[window(k, k + 4)[j]]
    return s
",
        expect![[r#"
            def f(x: f64[n], k: i64) -> f64:
                s = empty((), f64)
                s = 0.0
                for j in range(5):
                    assert j < 4, f"index {j} is out of range: the dimension has size 4"
                    s += x[k + j]
                return s
        "#]],
    );
}

#[test]
fn windows_and_offsets_take_integers() {
    check(
        "def f(x: f64[n]):\n    return x[window(1.5, n)[0]]\n",
        expect![[r#"
        [range::type] expected an integer as a bound of a range, found `f64`
          at t.ft:2 `1.5`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[window(1)[0]]\n",
        expect![[r#"
        [call::arguments] `window` needs an argument for `end`
          at t.ft:2 `window(1)`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[offset(1)]\n",
        expect![[r#"
        [index::type] expected an integer index, found an offset without an index: `offset(d)[j]`
          at t.ft:2 `offset(1)`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[offset(1)[0.5]]\n",
        expect![[r#"
        [index::type] expected an integer index, found a float
          at t.ft:2 `0.5`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[offset(1)[0, 1]]\n",
        expect![[r#"
        [type::subscript] `offset(d)` takes one index
          at t.ft:2 `offset(1)[0, 1]`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return offset(1) + 1\n",
        expect![[r#"
        [type::operand] `+` takes tensors and numbers, found an offset without an index: `offset(d)[j]`
          at t.ft:2 `offset(1)`
    "#]],
    );
}

#[test]
fn coalesce_becomes_conditions() {
    check(
        "def f(x: f64[n], w: f64[k], y: f64[n, n]):
    a = coalesce(x[permit(k)], w[permit(n - 1)], 0.5)
    b = coalesce(exp(x[permit(1)]) * -w[permit(2)], x[0])
    c = coalesce(x[0], w[permit(2)])
    d = coalesce(x[permit(-1)], 1) + coalesce(cast(x[permit(1)], f32), 2)
    return a, b, c, d
",
        expect![[r#"
            def f(x: f64[n], w: f64[k], y: f64[n, n]) -> (f64, f64, f64, f64):
                a = empty((), f64)
                b = empty((), f64)
                c = empty((), f64)
                d = empty((), f64)
                a = x[k] if 0 <= k and k < n else w[n - 1] if 0 <= n - 1 and n - 1 < k else 0.5
                b = exp(x[1]) * -w[2] if 1 < n and 2 < k else x[0]
                c = x[0]
                d = 1.0 + cast(cast(x[1], f32) if 1 < n else 2.0, f64)
                return a, b, c, d
        "#]],
    );
    check(
        "def f(x: f64[n, m], at: i64[k]):
    y = coalesce(x[permit(window(-1, n + 1)), permit(0)], 0.0)
    z = coalesce(x[permit(at), 1:][1:, 0], 0.0)
    return y, z
",
        expect![[r#"
            def f(x: f64[n, m], at: i64[k]) -> (f64[n + 2], f64[k - 1]):
                y = empty((n + 2,), f64)
                z = empty((k - 1,), f64)
                for y.d0 in range(n + 2):
                    y[y.d0] = x[y.d0 - 1, 0] if 0 <= y.d0 - 1 and y.d0 - 1 < n and 0 < m else 0.0
                assert 1 <= m, f"invalid slice from 1 to {m}: dimension 1 has size {m}"
                assert 1 <= k, f"invalid slice from 1 to {k}: dimension 0 has size {k}"
                assert 0 < m - 1, f"index 0 is out of range: the dimension has size {m - 1}"
                for z.d0 in range(k - 1):
                    z[z.d0] = x[at[z.d0 + 1], 1] if 0 <= at[z.d0 + 1] and at[z.d0 + 1] < n else 0.0
                return y, z
        "#]],
    );
}

#[test]
fn missing_values_in_choices() {
    check(
        "def f(x: f64[n], i: i64):
    return coalesce(x[permit(i)] if x[0] > 0.0 else x[permit(i + 1)], 2.0), coalesce(x[permit(i)][()] if n > 3 else 1.0, 3.0)
",
        expect![[r#"
            def f(x: f64[n], i: i64) -> (f64, f64):
                out = empty((), f64)
                out1 = empty((), f64)
                out = (x[i] if x[0] > 0.0 else x[i + 1]) if (0 <= i and i < n if x[0] > 0.0 else 0 <= i + 1 and i + 1 < n) else 2.0
                out1 = (x[i] if n > 3 else 1.0) if (0 <= i and i < n if n > 3 else True) else 3.0
                return out, out1
        "#]],
    );
}

/// Checks that a value that may be missing is accepted in operators alone.
#[test]
fn missing_values_cannot_be_stored() {
    let text = |s: &str| format!("def f(x: inout[f64[n]], i: i64[n]):\n{s}");
    for (body, found) in [
        (
            "    y = x[permit(0)]\n",
            expect![[r#"
            [index::missing] the value may be missing: an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)]`
              help: give a value for that case: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[0] = x[permit(0)]\n",
            expect![[r#"
            [index::missing] the value may be missing: an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)]`
              help: give a value for that case: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[0] += 2.0 * x[permit(0)]\n",
            expect![[r#"
            [index::missing] the value may be missing: an index in it is permitted to be out of range
              at t.ft:2 `2.0 * x[permit(0)]`
              help: give a value for that case: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    return (x[permit(0)], 1)\n",
            expect![[r#"
            [index::missing] the value may be missing: an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)]`
              help: give a value for that case: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    if x[permit(0)] > 0.0:\n        x[0] = 1.0\n",
            expect![[r#"
            [index::missing] the value may be missing: an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)] > 0.0`
              help: give a value for that case: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    if i[0] > 0 and x[permit(0)] > 0.0:\n        x[0] = 1.0\n",
            expect![[r#"
            [index::missing] the value may be missing: an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)] > 0.0`
              help: give a value for that case: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[0] = sum(x[permit(i)])\n",
            expect![[r#"
            [index::missing] the value may be missing: an index in it is permitted to be out of range
              at t.ft:2 `x[permit(i)]`
              help: give a value for that case: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[0] = x[i[permit(0)]]\n",
            expect![[r#"
            [index::missing] the value may be missing: an index in it is permitted to be out of range
              at t.ft:2 `i[permit(0)]`
              help: give a value for that case: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[permit(0)] = 1.0\n",
            expect![[r#"
            [index::missing] cannot write with an index that is permitted to be out of range
              at t.ft:2 `x[permit(0)]`
              help: write under a condition: `if 0 <= j and j < n:`
        "#]],
        ),
        (
            "    x[0] = permit(0) + 1\n",
            expect![[r#"
            [type::operand] `+` takes tensors and numbers, found an index that may be out of range
              at t.ft:2 `permit(0)`
        "#]],
        ),
        (
            "    x[0] = x[permit(0.5)]\n",
            expect![[r#"
            [index::type] expected an integer index, found a float
              at t.ft:2 `0.5`
        "#]],
        ),
        (
            "    x[0] = coalesce()\n",
            expect![[r#"
                [call::arguments] `coalesce` needs a value
                  at t.ft:2 `coalesce()`
            "#]],
        ),
    ] {
        check(&text(body), found);
    }
}
