//! Types in which operands meet.

use super::check;
use expect_test::expect;

#[test]
fn weak_values_take_the_other_type() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n], u: u8[n]):
    return 2 * x, x * n, k + 1, k * 0.5, k / 2, b * 2, b * 0.5, u + 1, sqrt(k), x * sqrt(1.0 * n), k // 2, -k % 3, x ** 2
",
        expect![[r#"
            def f(x: f32[n], k: i32[n], b: bool[n], u: u8[n]) -> (f32[n], f32[n], i32[n], f64[n], f64[n], i32[n], f64[n], u8[n], f64[n], f32[n], i32[n], i32[n], f32[n]):
                out = empty((n,), f32)
                out1 = empty((n,), f32)
                out2 = empty((n,), i32)
                out3 = empty((n,), f64)
                out4 = empty((n,), f64)
                out5 = empty((n,), i32)
                out6 = empty((n,), f64)
                out7 = empty((n,), u8)
                out8 = empty((n,), f64)
                out9 = empty((n,), f32)
                out10 = empty((n,), i32)
                out11 = empty((n,), i32)
                out12 = empty((n,), f32)
                for out.d0 in range(n):
                    out[out.d0] = 2.0 * x[out.d0]
                for out1.d0 in range(n):
                    out1[out1.d0] = x[out1.d0] * cast(n, f32)
                for out2.d0 in range(n):
                    out2[out2.d0] = k[out2.d0] + 1
                for out3.d0 in range(n):
                    out3[out3.d0] = cast(k[out3.d0], f64) * 0.5
                for out4.d0 in range(n):
                    out4[out4.d0] = cast(k[out4.d0], f64) / 2.0
                for out5.d0 in range(n):
                    out5[out5.d0] = cast(b[out5.d0], i32) * 2
                for out6.d0 in range(n):
                    out6[out6.d0] = cast(b[out6.d0], f64) * 0.5
                for out7.d0 in range(n):
                    out7[out7.d0] = u[out7.d0] + 1
                for out8.d0 in range(n):
                    out8[out8.d0] = sqrt(cast(k[out8.d0], f64))
                for out9.d0 in range(n):
                    out9[out9.d0] = x[out9.d0] * cast(sqrt(1.0 * cast(n, f64)), f32)
                for out10.d0 in range(n):
                    out10[out10.d0] = k[out10.d0] // 2
                for out11.d0 in range(n):
                    out11[out11.d0] = -k[out11.d0] % 3
                for out12.d0 in range(n):
                    out12[out12.d0] = x[out12.d0] ** 2.0
                return out, out1, out2, out3, out4, out5, out6, out7, out8, out9, out10, out11, out12
        "#]],
    );
}

#[test]
fn typed_values_promote() {
    check(
        "def f(x: f32[n], y: f64[n], k: i32[n], l: i64[n], h: f16[n], b: bool[n]):
    return x + y, x + k, k + l, h + x, b * x, floor(k), abs(k), x > k, k == l
",
        expect![[r#"
            def f(x: f32[n], y: f64[n], k: i32[n], l: i64[n], h: f16[n], b: bool[n]) -> (f64[n], f32[n], i64[n], f32[n], f32[n], i32[n], i32[n], bool[n], bool[n]):
                out = empty((n,), f64)
                out1 = empty((n,), f32)
                out2 = empty((n,), i64)
                out3 = empty((n,), f32)
                out4 = empty((n,), f32)
                out5 = empty((n,), i32)
                out6 = empty((n,), i32)
                out7 = empty((n,), bool)
                out8 = empty((n,), bool)
                for out.d0 in range(n):
                    out[out.d0] = cast(x[out.d0], f64) + y[out.d0]
                for out1.d0 in range(n):
                    out1[out1.d0] = x[out1.d0] + cast(k[out1.d0], f32)
                for out2.d0 in range(n):
                    out2[out2.d0] = cast(k[out2.d0], i64) + l[out2.d0]
                for out3.d0 in range(n):
                    out3[out3.d0] = cast(h[out3.d0], f32) + x[out3.d0]
                for out4.d0 in range(n):
                    out4[out4.d0] = cast(b[out4.d0], f32) * x[out4.d0]
                for out5.d0 in range(n):
                    out5[out5.d0] = k[out5.d0]
                for out6.d0 in range(n):
                    out6[out6.d0] = abs(k[out6.d0])
                for out7.d0 in range(n):
                    out7[out7.d0] = x[out7.d0] > cast(k[out7.d0], f32)
                for out8.d0 in range(n):
                    out8[out8.d0] = cast(k[out8.d0], i64) == l[out8.d0]
                return out, out1, out2, out3, out4, out5, out6, out7, out8
        "#]],
    );
}

#[test]
fn conditions_and_logic() {
    check(
        "def f(x: f32[n], k: i32[n], b: bool[n]):
    return 0 < x, 0 < x <= 1, b and x > 0, not b, ~b, k & 3 | 1, ~k, x if b else 0, select(b, k, x), isnan(x)
",
        expect![[r#"
            def f(x: f32[n], k: i32[n], b: bool[n]) -> (bool[n], bool[n], bool[n], bool[n], bool[n], i32[n], i32[n], f32[n], f32[n], bool[n]):
                out = empty((n,), bool)
                out1 = empty((n,), bool)
                out2 = empty((n,), bool)
                out3 = empty((n,), bool)
                out4 = empty((n,), bool)
                out5 = empty((n,), i32)
                out6 = empty((n,), i32)
                out7 = empty((n,), f32)
                out8 = empty((n,), f32)
                out9 = empty((n,), bool)
                for out.d0 in range(n):
                    out[out.d0] = 0.0 < x[out.d0]
                for out1.d0 in range(n):
                    out1[out1.d0] = 0.0 < x[out1.d0] and x[out1.d0] <= 1.0
                for out2.d0 in range(n):
                    out2[out2.d0] = b[out2.d0] and x[out2.d0] > 0.0
                for out3.d0 in range(n):
                    out3[out3.d0] = not b[out3.d0]
                for out4.d0 in range(n):
                    out4[out4.d0] = ~b[out4.d0]
                for out5.d0 in range(n):
                    out5[out5.d0] = k[out5.d0] & 3 | 1
                for out6.d0 in range(n):
                    out6[out6.d0] = ~k[out6.d0]
                for out7.d0 in range(n):
                    out7[out7.d0] = x[out7.d0] if b[out7.d0] else 0.0
                for out8.d0 in range(n):
                    out8[out8.d0] = cast(k[out8.d0], f32) if b[out8.d0] else x[out8.d0]
                for out9.d0 in range(n):
                    out9[out9.d0] = isnan(x[out9.d0])
                return out, out1, out2, out3, out4, out5, out6, out7, out8, out9
        "#]],
    );
}

#[test]
fn built_in_functions() {
    check(
        "def f(x: f32[n]):
    return max(x, 0), min(x, 1, 2), clip(x, -1, 1), fma(x, x, 1), cast(x, i32), pow(x, 3), atan2(x, 1), exp(1.0) * x
",
        expect![[r#"
            def f(x: f32[n]) -> (f32[n], f32[n], f32[n], f32[n], i32[n], f32[n], f32[n], f32[n]):
                out = empty((n,), f32)
                out1 = empty((n,), f32)
                out2 = empty((n,), f32)
                out3 = empty((n,), f32)
                out4 = empty((n,), i32)
                out5 = empty((n,), f32)
                out6 = empty((n,), f32)
                out7 = empty((n,), f32)
                for out.d0 in range(n):
                    out[out.d0] = max(x[out.d0], 0.0)
                for out1.d0 in range(n):
                    out1[out1.d0] = min(min(x[out1.d0], 1.0), 2.0)
                for out2.d0 in range(n):
                    out2[out2.d0] = min(max(x[out2.d0], -1.0), 1.0)
                for out3.d0 in range(n):
                    out3[out3.d0] = fma(x[out3.d0], x[out3.d0], 1.0)
                for out4.d0 in range(n):
                    out4[out4.d0] = cast(x[out4.d0], i32)
                for out5.d0 in range(n):
                    out5[out5.d0] = x[out5.d0] ** 3.0
                for out6.d0 in range(n):
                    out6[out6.d0] = atan2(x[out6.d0], 1.0)
                for out7.d0 in range(n):
                    out7[out7.d0] = cast(exp(cast(1.0, f64)), f32) * x[out7.d0]
                return out, out1, out2, out3, out4, out5, out6, out7
        "#]],
    );
}

#[test]
fn creation() {
    check(
        "def f(x: f32[n]):
    return ones((n, 2), i64), full((n,), 7), full((), 0.5, f64), arange(n), 0.5 * arange(2, n), arange(0, 10, 3, dtype=f64), zeros(n)
",
        expect![[r#"
            def f(x: f32[n]) -> (i64[n, 2], i32[n], f64, i32[n], f32[max(n - 2, 0)], f64[4], f32[n]):
                out = empty((n, 2), i64)
                out1 = empty((n,), i32)
                out2 = empty((), f64)
                out3 = empty((n,), i32)
                out4 = empty((max(n - 2, 0),), f32)
                out5 = empty((4,), f64)
                out6 = empty((n,), f32)
                for out.d0 in range(n):
                    for out.d1 in range(2):
                        out[out.d0, out.d1] = 1
                for out1.d0 in range(n):
                    out1[out1.d0] = 7
                out2 = 0.5
                for out3.d0 in range(n):
                    out3[out3.d0] = cast(out3.d0, i32)
                for out4.d0 in range(max(n - 2, 0)):
                    out4[out4.d0] = cast(0.5 * cast(out4.d0 + 2, f64), f32)
                for out5.d0 in range(4):
                    out5[out5.d0] = cast(out5.d0 * 3, f64)
                for out6.d0 in range(n):
                    out6[out6.d0] = 0.0
                return out, out1, out2, out3, out4, out5, out6
        "#]],
    );
}

#[test]
fn stores_convert_within_a_kind() {
    check(
        "def f(x: f32[n], y: inout[f64[n]], z: inout[i16[n]], k: i32[n]):
    y[...] = x
    z[...] = k
    y[...] = k
    z += 1
    z -= k
",
        expect![[r#"
            def f(x: f32[n], y: inout[f64[n]], z: inout[i16[n]], k: i32[n]):
                for y.d0 in range(n):
                    y[y.d0] = cast(x[y.d0], f64)
                for z.d0 in range(n):
                    z[z.d0] = cast(k[z.d0], i16)
                for y.d0 in range(n):
                    y[y.d0] = cast(k[y.d0], f64)
                for z.d0 in range(n):
                    z[z.d0] += 1
                for z.d0 in range(n):
                    z[z.d0] += -cast(k[z.d0], i16)
        "#]],
    );
}

#[test]
fn constants() {
    check(
        "def f(x: f64[n]):
    return x * pi, x + inf, x * (2 ** 10), x * (7 // 2), x + (1 if 2 > 1 else 0), x * (1 / 3)
",
        expect![[r#"
            def f(x: f64[n]) -> (f64[n], f64[n], f64[n], f64[n], f64[n], f64[n]):
                out = empty((n,), f64)
                out1 = empty((n,), f64)
                out2 = empty((n,), f64)
                out3 = empty((n,), f64)
                out4 = empty((n,), f64)
                out5 = empty((n,), f64)
                for out.d0 in range(n):
                    out[out.d0] = x[out.d0] * 3.141592653589793
                for out1.d0 in range(n):
                    out1[out1.d0] = x[out1.d0] + inf
                for out2.d0 in range(n):
                    out2[out2.d0] = x[out2.d0] * 1024.0
                for out3.d0 in range(n):
                    out3[out3.d0] = x[out3.d0] * 3.0
                for out4.d0 in range(n):
                    out4[out4.d0] = x[out4.d0] + 1.0
                for out5.d0 in range(n):
                    out5[out5.d0] = x[out5.d0] * 0.3333333333333333
                return out, out1, out2, out3, out4, out5
        "#]],
    );
}

/// Checks that static arithmetic gives the values of the operators' table, as the interpreter, the simplifier and C do.
#[test]
fn static_arithmetic_follows_the_operators_table() {
    check(
        "Z = max(0.0, -0.0)
Y = min(-0.0, 0.0)
W = max([-0.0, 0.0])

def f(x: f64[n]):
    return x + 1 / Z, x + 1 / Y, x + 1 / W, x + min(nan, 1.0), x + 7 // -2, x + -7 % 3, x + (1 << 40), x + sign(-2.5)
",
        expect![[r#"
            def f(x: f64[n]) -> (f64[n], f64[n], f64[n], f64[n], f64[n], f64[n], f64[n], f64[n]):
                out = empty((n,), f64)
                out1 = empty((n,), f64)
                out2 = empty((n,), f64)
                out3 = empty((n,), f64)
                out4 = empty((n,), f64)
                out5 = empty((n,), f64)
                out6 = empty((n,), f64)
                out7 = empty((n,), f64)
                for out.d0 in range(n):
                    out[out.d0] = x[out.d0] + -inf
                for out1.d0 in range(n):
                    out1[out1.d0] = x[out1.d0] + inf
                for out2.d0 in range(n):
                    out2[out2.d0] = x[out2.d0] + inf
                for out3.d0 in range(n):
                    out3[out3.d0] = x[out3.d0] + nan
                for out4.d0 in range(n):
                    out4[out4.d0] = x[out4.d0] + -4.0
                for out5.d0 in range(n):
                    out5[out5.d0] = x[out5.d0] + 2.0
                for out6.d0 in range(n):
                    out6[out6.d0] = x[out6.d0] + 1099511627776.0
                for out7.d0 in range(n):
                    out7[out7.d0] = x[out7.d0] + -1.0
                return out, out1, out2, out3, out4, out5, out6, out7
        "#]],
    );
}
