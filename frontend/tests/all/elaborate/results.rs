//! Results of a program, and their names.

use super::check;
use expect_test::expect;

#[test]
fn locals_and_expressions() {
    check(
        "def f(x: f32[n]) -> (f32[n], f32[n], f64, f32[n]):
    y = x * 2
    return y, y + 1, 3, x
",
        expect![[r#"
            def f(x: f32[n]) -> (f32[n], f32[n], f64, f32[n]):
                y = empty((n,), f32)
                out1 = empty((n,), f32)
                out2 = empty((), f64)
                x_1 = empty((n,), f32)
                for y.d0 in range(n):
                    y[y.d0] = x[y.d0] * 2.0
                for out1.d0 in range(n):
                    out1[out1.d0] = y[out1.d0] + 1.0
                out2 = 3.0
                for x.d0 in range(n):
                    x_1[x.d0] = x[x.d0]
                return y, out1, out2, x_1
        "#]],
    );
    check(
        "def f(x: f32[n]) -> f64[n]:
    y = x * 2
    return y
",
        expect![[r#"
            def f(x: f32[n]) -> f64[n]:
                y = empty((n,), f64)
                y_1 = empty((n,), f32)
                for y.d0 in range(n):
                    y_1[y.d0] = x[y.d0] * 2.0
                for y.d0 in range(n):
                    y[y.d0] = cast(y_1[y.d0], f64)
                return y
        "#]],
    );
    check(
        "def f(x: inout[f32[n]]):
    y = x * 2
    x += 1
    return y, y
",
        expect![[r#"
            def f(x: inout[f32[n]]) -> (f32[n], f32[n]):
                y = empty((n,), f32)
                out1 = empty((n,), f32)
                for y.d0 in range(n):
                    y[y.d0] = x[y.d0] * 2.0
                for x.d0 in range(n):
                    x[x.d0] += 1.0
                for out1.d0 in range(n):
                    out1[out1.d0] = y[out1.d0]
                return y, out1
        "#]],
    );
}

/// Checks that a result which is a parameter takes the parameter's name, unless the parameter is written and hence a
/// result by itself.
#[test]
fn parameters() {
    let names = |src: &str| -> Vec<String> {
        let f = super::elaborate(src).expect("it elaborates");
        f.results.iter().map(|t| t.symbol.name().to_string()).collect()
    };
    assert_eq!(names("def f(x: f32[n]):\n    return x\n"), ["x"]);
    assert_eq!(names("def f(x: f32[n], a: f32):\n    return a, x, x, x + a\n"), ["a", "x", "out2", "out3"]);
    assert_eq!(names("def f(x: inout[f32[n]]):\n    x += 1\n    return x\n"), ["out"]);
    assert_eq!(names("def f(out: f32[n]):\n    return 2 * out, out\n"), ["out", "out1"]);
    assert_eq!(names("def f(x: f32[n]):\n    x_1 = 2 * x\n    return x, x_1\n"), ["x", "x_1"]);
    check(
        "def f(x: f32[n]):\n    x_1 = 2 * x\n    return x, x_1\n",
        expect![[r#"
        def f(x: f32[n]) -> (f32[n], f32[n]):
            x_1 = empty((n,), f32)
            x_1_1 = empty((n,), f32)
            for x_1.d0 in range(n):
                x_1_1[x_1.d0] = 2.0 * x[x_1.d0]
            for x.d0 in range(n):
                x_1[x.d0] = x[x.d0]
            return x_1, x_1_1
    "#]],
    );
}

#[test]
fn sizes_of_results() {
    check(
        "def f() -> f32[n, 2*m + 1]:
    return zeros((n, 2 * m + 1), f32)
",
        expect![[r#"
            def f() -> f32[n, m * 2 + 1]:
                out = empty((n, m * 2 + 1), f32)
                for out.d0 in range(n):
                    for out.d1 in range(m * 2 + 1):
                        out[out.d0, out.d1] = 0.0
                return out
        "#]],
    );
    check(
        "def f(x: f32[2*n + 1, 3], y: f32[n]) -> f32[n]:
    return x[:n, 0] + y
",
        expect![[r#"
            def f(x: f32[n * 2 + 1, 3], y: f32[n]) -> f32[n]:
                out = empty((n,), f32)
                for out.d0 in range(n):
                    out[out.d0] = x[out.d0, 0] + y[out.d0]
                return out
        "#]],
    );
}

#[test]
fn sizes_only_in_results() {
    check(
        "def f(x: f32[n]) -> f32[m]:\n    return x[1:]\n",
        expect![[r#"
        def f(x: f32[n]) -> f32[n - 1]:
            out = empty((n - 1,), f32)
            assert 1 <= n, f"invalid slice from 1 to {n}: dimension 0 has size {n}"
            for out.d0 in range(n - 1):
                out[out.d0] = x[out.d0 + 1]
            return out
    "#]],
    );
    check(
        "def f(x: f32[n]) -> f32[m]:\n    y = x + zeros((m,), f32)\n    return y\n",
        expect![[r#"
        def f(x: f32[n]) -> f32[m]:
            y = empty((m,), f32)
            assert n == m, f"`x` and `zeros((m,), f32)` differ in dimension 0: {n} and {m}"
            y_1 = empty((n,), f32)
            for y.d0 in range(n):
                y_1[y.d0] = x[y.d0] + 0.0
            for y.d0 in range(m):
                y[y.d0] = y_1[y.d0]
            return y
    "#]],
    );
    check(
        "def f(x: f32[n]) -> (f32[m], f32[m]):\n    return x, x\n",
        expect![[r#"
            [annotation::size] no parameter has the size `m`, and the result has the size `n`
              at t.ft:1 `m`
              help: write `n`
        "#]],
    );
}

#[test]
fn static_parameters() {
    check(
        "def f(x: f32[n], w: static = 2, t: static = f64, mode: static = \"a\"):
    y = zeros((n, w), t)
    if mode == \"a\":
        y += 1
    return y
",
        expect![[r#"
            def f(x: f32[n]) -> f64[n, 2]:
                y = empty((n, 2), f64)
                for y.d0 in range(n):
                    for y.d1 in range(2):
                        y[y.d0, y.d1] = 0.0
                for y.d0 in range(n):
                    for y.d1 in range(2):
                        y[y.d0, y.d1] += 1.0
                return y
        "#]],
    );
}

#[test]
fn results_of_weak_type() {
    check(
        "def f(x: f32[n]):
    half = n // 2
    return half
",
        expect![[r#"
            def f(x: f32[n]) -> i32:
                half = empty((), i32)
                half = cast(n // 2, i32)
                return half
        "#]],
    );
}
