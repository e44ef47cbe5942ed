//! `auto_window`: iterations over overlapping windows, a few of them together.

use super::decides;
use expect_test::expect;

/// Builds sums of products of rows with those of a window.
fn rows(window: &str) -> String {
    format!(
        "
def f(q: f32[n, 64], x: f32[n + {window} - 1, 64]) -> f32[n, {window}]:
    s = zeros((n, {window}), f32)
    for i in range(n):
        for j in range({window}):
            for c in range(64):
                s[i, j] += q[i, c] * x[i + j, c]
    return s
"
    )
}

#[test]
fn iterations_share_overlapping_windows() {
    decides(
        &rows("257"),
        "auto_window",
        &[("n", 4096)],
        expect![[r#"
            `i`
                keep                                         6.40 ms
              * 4 iterations of "i" together in "j"          4.20 ms
            s = empty((n, 257), f32)
            for s.d0 in range(n):
                for s.d1 in range(257):
                    s[s.d0, s.d1] = 0.0
            for i_o in range(n // 4):
                for i_i_j in range(3):
                    for i_i in range(i_i_j + 1):
                        for c in range(64):
                            s[i_o * 4 + i_i, i_i_j - i_i] += q[i_o * 4 + i_i, c] * x[i_o * 4 + i_i + (i_i_j - i_i), c]
                for i_i_j in range(3, 257):
                    for i_i in range(4):
                        for c in range(64):
                            s[i_o * 4 + i_i, i_i_j - i_i] += q[i_o * 4 + i_i, c] * x[i_o * 4 + i_i + (i_i_j - i_i), c]
                for i_i_j in range(257, 260):
                    for i_i in range(i_i_j - 256, 4):
                        for c in range(64):
                            s[i_o * 4 + i_i, i_i_j - i_i] += q[i_o * 4 + i_i, c] * x[i_o * 4 + i_i + (i_i_j - i_i), c]
            for i_o in range(n // 4, (n + 3) // 4):
                for i_i in range(4):
                    if i_o * 4 + i_i < n:
                        for j in range(257):
                            for c in range(64):
                                s[i_o * 4 + i_i, j] += q[i_o * 4 + i_i, c] * x[i_o * 4 + i_i + j, c]
            return s
        "#]],
    );
}

/// Checks that the bounds checks at the ends are not made far from them.
#[test]
fn windows_beyond_the_ends_are_separate() {
    let program = "
def f(q: f32[n, 64], x: f32[n, 64]) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n):
        s = zeros((257,), f32)
        for j in range(257):
            if 0 <= i + j - 128 < n:
                for c in range(64):
                    s[j] += q[i, c] * x[i + j - 128, c]
        most = -inf
        for j in range(257):
            most = max(most, s[j])
        y[i] = most
    return y
";
    decides(
        program,
        "auto_window",
        &[("n", 4096)],
        expect![[r#"
            `i`
                keep                                         5.31 ms
              * 4 iterations of "i" together in "j#1"        4.21 ms
            y = empty((n,), f32)
            for i in range(min(128, n)):
                s = empty((257,), f32)
                for s.d0 in range(257):
                    s[s.d0] = 0.0
                for j in range(257):
                    if 0 <= i + j - 128 and i + j - 128 < n:
                        for c in range(64):
                            s[j] += q[i, c] * x[i + j - 128, c]
                most = empty((), f32)
                most = -inf
                for j in range(257):
                    most = max(most, s[j])
                y[i] = most
            for i_o in range(n // 4 - 64):
                s = empty((4, 257), f32)
                for i_i in range(4):
                    for s.d0 in range(257):
                        s[i_i, s.d0] = 0.0
                for i_i_j in range(3):
                    for i_i in range(i_i_j + 1):
                        for c in range(64):
                            s[i_i, i_i_j - i_i] += q[i_o * 4 + i_i + 128, c] * x[i_o * 4 + i_i + 128 + (i_i_j - i_i) - 128, c]
                for i_i_j in range(3, 257):
                    for i_i in range(4):
                        for c in range(64):
                            s[i_i, i_i_j - i_i] += q[i_o * 4 + i_i + 128, c] * x[i_o * 4 + i_i + 128 + (i_i_j - i_i) - 128, c]
                for i_i_j in range(257, 260):
                    for i_i in range(i_i_j - 256, 4):
                        for c in range(64):
                            s[i_i, i_i_j - i_i] += q[i_o * 4 + i_i + 128, c] * x[i_o * 4 + i_i + 128 + (i_i_j - i_i) - 128, c]
                for i_i in range(4):
                    most = empty((), f32)
                    most = -inf
                    for j in range(257):
                        most = max(most, s[i_i, j])
                    y[i_o * 4 + i_i + 128] = most
            for i_o in range(max(n // 4 - 64, 0), (n - 253) // 4):
                for i_i in range(4):
                    if i_o * 4 + i_i < n - 256:
                        s = empty((257,), f32)
                        for s.d0 in range(257):
                            s[s.d0] = 0.0
                        for j in range(257):
                            for c in range(64):
                                s[j] += q[i_o * 4 + i_i + 128, c] * x[i_o * 4 + i_i + 128 + j - 128, c]
                        most = empty((), f32)
                        most = -inf
                        for j in range(257):
                            most = max(most, s[j])
                        y[i_o * 4 + i_i + 128] = most
            for i in range(max(n - 128, 128), n):
                s = empty((257,), f32)
                for s.d0 in range(257):
                    s[s.d0] = 0.0
                for j in range(257):
                    if i + j - 128 < n:
                        for c in range(64):
                            s[j] += q[i, c] * x[i + j - 128, c]
                most = empty((), f32)
                most = -inf
                for j in range(257):
                    most = max(most, s[j])
                y[i] = most
            return y
        "#]],
    );
}

/// Checks that short windows stay: four of them have next to nothing in common.
#[test]
fn short_windows_are_left_alone() {
    decides(
        &rows("5"),
        "auto_window",
        &[("n", 4096)],
        expect![[r#"
        s = empty((n, 5), f32)
        for s.d0 in range(n):
            for s.d1 in range(5):
                s[s.d0, s.d1] = 0.0
        for i in range(n):
            for j in range(5):
                for c in range(64):
                    s[i, j] += q[i, c] * x[i + j, c]
        return s
    "#]],
    );
}

/// Checks that windows whose results depend on the order of iterations stay.
#[test]
fn dependent_windows_are_left_alone() {
    let program = "
def f(x: f32[n + 256, 64], y: inout[f32[64]]):
    for i in range(n):
        for j in range(257):
            for c in range(64):
                y[c] = 0.5 * y[c] + x[i + j, c]
";
    decides(
        program,
        "auto_window",
        &[("n", 4096)],
        expect![[r#"
            `i`
              * keep                                         7.08 ms
                4 iterations of "i" together in "j"          refused: it would reverse a dependence
            for i in range(n):
                for j in range(257):
                    for c in range(64):
                        y[c] = 0.5 * y[c] + x[i + j, c]
        "#]],
    );
}
