//! `auto_tile`: contractions in blocks.

use super::decides;
use expect_test::expect;

/// A convolution: no library knows it, blocks of channels and columns share what is loaded.
#[test]
fn contractions_are_summed_in_blocks() {
    let text = "
def f(x: f32[8, n + 2], w: f32[48, 8, 3], y: inout[f32[48, n]]):
    for o in range(48):
        for c in range(8):
            for a in range(3):
                for i in range(n):
                    y[o, i] += x[c, i + a] * w[o, c, a]
";
    decides(
        text,
        "auto_tile",
        &[("n", 1000)],
        expect![[r#"
        `o`
            keep                                         98.2 µs
            blocks of "o" 4, "i" 16 in registers         47.9 µs
            blocks of "o" 6, "i" 16 in registers         45.8 µs
          * blocks of "o" 4, "i" 24 in registers         44.7 µs
            blocks of "o" 3, "i" 32 in registers         46.1 µs
            blocks of "o" 2, "i" 32 in registers         50.3 µs
        for o_o in range(12):
            for i_o in range(n // 24):
                y_partial = empty((4, 24), f32)
                for y.partial.d0 in range(4):
                    for y.partial.d1 in range(24):
                        y_partial[y.partial.d0, y.partial.d1] = 0.0
                for c in range(8):
                    for a in range(3):
                        for i_i in range(24):  # vectorize
                            y_partial[0, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4, c, a]
                            y_partial[1, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 1, c, a]
                            y_partial[2, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 2, c, a]
                            y_partial[3, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 3, c, a]
                for y.partial.back.d0 in range(4):
                    for y.partial.back.d1 in range(24):
                        y[o_o * 4 + y.partial.back.d0, i_o * 24 + y.partial.back.d1] += y_partial[y.partial.back.d0, y.partial.back.d1]
            for i_o in range(n // 24, (n + 23) // 24):
                y_partial = empty((4, 24), f32)
                for y.partial.d0 in range(4):
                    for y.partial.d1 in range(24):
                        y_partial[y.partial.d0, y.partial.d1] = 0.0
                for c in range(8):
                    for a in range(3):
                        for i_i in range(24):  # vectorize
                            if i_o * 24 + i_i < n:
                                y_partial[0, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4, c, a]
                            if i_o * 24 + i_i < n:
                                y_partial[1, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 1, c, a]
                            if i_o * 24 + i_i < n:
                                y_partial[2, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 2, c, a]
                            if i_o * 24 + i_i < n:
                                y_partial[3, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 3, c, a]
                for y.partial.back.d0 in range(4):
                    for y.partial.back.d1 in range(24):
                        if i_o * 24 + y.partial.back.d1 < n:
                            y[o_o * 4 + y.partial.back.d0, i_o * 24 + y.partial.back.d1] += y_partial[y.partial.back.d0, y.partial.back.d1]
    "#]],
    );
}
