//! Index modifiers: integers computed from other integers.

use super::check;
use expect_test::expect;

#[test]
fn windows_and_offsets_are_sums() {
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
fn windows_have_ends() {
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
fn they_are_of_integers() {
    check(
        "def f(x: f64[n]):\n    return x[window(1.5, n)[0]]\n",
        expect![[r#"
        [range::type] the bounds of a range are integers, and this is `f64`
          at t.ft:2 `1.5`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[window(1)[0]]\n",
        expect![[r#"
        [call::arguments] `window` needs its parameter `end`
          at t.ft:2 `window(1)`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[offset(1)]\n",
        expect![[r#"
        [index::type] an index is an integer, and this is an offset, which is for indices: `offset(d)[j]`
          at t.ft:2 `offset(1)`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[offset(1)[0.5]]\n",
        expect![[r#"
        [index::type] an index is an integer, and this is a float
          at t.ft:2 `0.5`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return x[offset(1)[0, 1]]\n",
        expect![[r#"
        [type::subscript] `offset(d)` has one index
          at t.ft:2 `offset(1)[0, 1]`
    "#]],
    );
    check(
        "def f(x: f64[n]):\n    return offset(1) + 1\n",
        expect![[r#"
        [type::operand] `+` takes tensors and numbers, and this is an offset, which is for indices: `offset(d)[j]`
          at t.ft:2 `offset(1)`
    "#]],
    );
}

#[test]
fn what_is_missing_is_chosen_by_conditions() {
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
                assert 1 <= m, f"a slice goes from 1 to {m}, and dimension 1 has size {m}"
                assert 1 <= k, f"a slice goes from 1 to {k}, and dimension 0 has size {k}"
                assert 0 < m - 1, f"index 0 is out of range: the dimension has size {m - 1}"
                for z.d0 in range(k - 1):
                    z[z.d0] = x[at[z.d0 + 1], 1] if 0 <= at[z.d0 + 1] and at[z.d0 + 1] < n else 0.0
                return y, z
        "#]],
    );
}

#[test]
fn of_a_choice_what_is_chosen_counts() {
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
fn what_may_be_missing_is_not_kept() {
    let text = |s: &str| format!("def f(x: inout[f64[n]], i: i64[n]):\n{s}");
    for (body, found) in [
        (
            "    y = x[permit(0)]\n",
            expect![[r#"
            [index::missing] this may be missing, since an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)]`
              help: say what it is then: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[0] = x[permit(0)]\n",
            expect![[r#"
            [index::missing] this may be missing, since an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)]`
              help: say what it is then: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[0] += 2.0 * x[permit(0)]\n",
            expect![[r#"
            [index::missing] this may be missing, since an index in it is permitted to be out of range
              at t.ft:2 `2.0 * x[permit(0)]`
              help: say what it is then: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    return (x[permit(0)], 1)\n",
            expect![[r#"
            [index::missing] this may be missing, since an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)]`
              help: say what it is then: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    if x[permit(0)] > 0.0:\n        x[0] = 1.0\n",
            expect![[r#"
            [index::missing] this may be missing, since an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)] > 0.0`
              help: say what it is then: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    if i[0] > 0 and x[permit(0)] > 0.0:\n        x[0] = 1.0\n",
            expect![[r#"
            [index::missing] this may be missing, since an index in it is permitted to be out of range
              at t.ft:2 `x[permit(0)] > 0.0`
              help: say what it is then: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[0] = sum(x[permit(i)])\n",
            expect![[r#"
            [index::missing] this may be missing, since an index in it is permitted to be out of range
              at t.ft:2 `x[permit(i)]`
              help: say what it is then: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[0] = x[i[permit(0)]]\n",
            expect![[r#"
            [index::missing] this may be missing, since an index in it is permitted to be out of range
              at t.ft:2 `i[permit(0)]`
              help: say what it is then: `coalesce(…, 0.0)`
        "#]],
        ),
        (
            "    x[permit(0)] = 1.0\n",
            expect![[r#"
            [index::missing] what is written is in the tensor, and an index is permitted to be out of range here
              at t.ft:2 `x[permit(0)]`
              help: write under a condition: `if 0 <= j and j < n:`
        "#]],
        ),
        (
            "    x[0] = permit(0) + 1\n",
            expect![[r#"
            [type::operand] `+` takes tensors and numbers, and this is an index that may be out of range
              at t.ft:2 `permit(0)`
        "#]],
        ),
        (
            "    x[0] = x[permit(0.5)]\n",
            expect![[r#"
            [index::type] an index is an integer, and this is a float
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
