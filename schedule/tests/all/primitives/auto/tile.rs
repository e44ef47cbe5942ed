//! `auto_tile`: contractions in blocks.

use super::decides;
use expect_test::expect;

/// Checks a convolution, which no library has: blocks of channels and columns share their loads.
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
              * blocks of "o" 4, "i" 24 in registers         43.4 µs
                blocks of "o" 3, "i" 32 in registers         44.5 µs
                blocks of "o" 6, "i" 16 in registers         45.0 µs
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

/// Checks that initialisations of sums get loops of their own, and that jamming of short loops leaves a sum of several
/// terms.
#[test]
fn initialisations_of_sums_are_split_off() {
    let text = "
def f(x: f32[8, n + 1], w: f32[48, 8, 2], y: inout[f32[48, n]]):
    for o in range(48):
        for i in range(n):
            y[o, i] = 0
        for c in range(8):
            for i in range(n):
                y[o, i] += x[c, i] * w[o, c, 0]
                y[o, i] += x[c, i + 1] * w[o, c, 1]
";
    decides(
        text,
        "auto_tile",
        &[("n", 1000)],
        expect![[r#"
            `o`
                keep                                         52.0 µs
              * fission("o", before="c"), blocks of "o" 4, "i#2" 24 in registers 32.5 µs
                fission("o", before="c"), blocks of "o" 3, "i#2" 32 in registers 33.1 µs
                fission("o", before="c"), blocks of "o" 6, "i#2" 16 in registers 33.7 µs
            for o in range(48):
                for i in range(n):
                    y[o, i] = 0.0
            for o_o in range(12):
                for i_o in range(n // 24):
                    y_partial = empty((4, 24), f32)
                    for y.partial.d0 in range(4):
                        for y.partial.d1 in range(24):
                            y_partial[y.partial.d0, y.partial.d1] = 0.0
                    for c in range(8):
                        for i_i in range(24):  # vectorize
                            y_partial[0, i_i] += x[c, i_o * 24 + i_i] * w[o_o * 4, c, 0]
                            y_partial[0, i_i] += x[c, i_o * 24 + i_i + 1] * w[o_o * 4, c, 1]
                            y_partial[1, i_i] += x[c, i_o * 24 + i_i] * w[o_o * 4 + 1, c, 0]
                            y_partial[1, i_i] += x[c, i_o * 24 + i_i + 1] * w[o_o * 4 + 1, c, 1]
                            y_partial[2, i_i] += x[c, i_o * 24 + i_i] * w[o_o * 4 + 2, c, 0]
                            y_partial[2, i_i] += x[c, i_o * 24 + i_i + 1] * w[o_o * 4 + 2, c, 1]
                            y_partial[3, i_i] += x[c, i_o * 24 + i_i] * w[o_o * 4 + 3, c, 0]
                            y_partial[3, i_i] += x[c, i_o * 24 + i_i + 1] * w[o_o * 4 + 3, c, 1]
                    for y.partial.back.d0 in range(4):
                        for y.partial.back.d1 in range(24):
                            y[o_o * 4 + y.partial.back.d0, i_o * 24 + y.partial.back.d1] += y_partial[y.partial.back.d0, y.partial.back.d1]
                for i_o in range(n // 24, (n + 23) // 24):
                    y_partial = empty((4, 24), f32)
                    for y.partial.d0 in range(4):
                        for y.partial.d1 in range(24):
                            y_partial[y.partial.d0, y.partial.d1] = 0.0
                    for c in range(8):
                        for i_i in range(24):  # vectorize
                            if i_o * 24 + i_i < n:
                                y_partial[0, i_i] += x[c, i_o * 24 + i_i] * w[o_o * 4, c, 0]
                                y_partial[0, i_i] += x[c, i_o * 24 + i_i + 1] * w[o_o * 4, c, 1]
                            if i_o * 24 + i_i < n:
                                y_partial[1, i_i] += x[c, i_o * 24 + i_i] * w[o_o * 4 + 1, c, 0]
                                y_partial[1, i_i] += x[c, i_o * 24 + i_i + 1] * w[o_o * 4 + 1, c, 1]
                            if i_o * 24 + i_i < n:
                                y_partial[2, i_i] += x[c, i_o * 24 + i_i] * w[o_o * 4 + 2, c, 0]
                                y_partial[2, i_i] += x[c, i_o * 24 + i_i + 1] * w[o_o * 4 + 2, c, 1]
                            if i_o * 24 + i_i < n:
                                y_partial[3, i_i] += x[c, i_o * 24 + i_i] * w[o_o * 4 + 3, c, 0]
                                y_partial[3, i_i] += x[c, i_o * 24 + i_i + 1] * w[o_o * 4 + 3, c, 1]
                    for y.partial.back.d0 in range(4):
                        for y.partial.back.d1 in range(24):
                            if i_o * 24 + y.partial.back.d1 < n:
                                y[o_o * 4 + y.partial.back.d0, i_o * 24 + y.partial.back.d1] += y_partial[y.partial.back.d0, y.partial.back.d1]
        "#]],
    );
}

/// Checks a loop with other statements that use sums of earlier iterations: the loop is not tiled, the nest in it is.
#[test]
fn loops_that_use_earlier_sums_are_not_tiled() {
    let text = "
def f(w: f32[64, 64], x: f32[64, n], y: inout[f32[64, n]], t: i64):
    for step in range(t):
        for o in range(64):
            for c in range(64):
                for i in range(n):
                    y[o, i] += w[o, c] * x[c, i]
        for o in range(64):
            for i in range(n):
                y[o, i] = tanh(y[o, i])
";
    decides(
        text,
        "auto_tile",
        &[("n", 1000)],
        expect![[r#"
            `step`
                keep                                         45.7 ms
              * blocks of "o#1" 4, "i#1" 24 in registers     32.8 ms
                blocks of "o#1" 3, "i#1" 32 in registers     33.2 ms
                blocks of "o#1" 6, "i#1" 16 in registers     33.2 ms
            for step in range(t):
                for o_o in range(16):
                    for i_o in range(n // 24):
                        y_partial = empty((4, 24), f32)
                        for y.partial.d0 in range(4):
                            for y.partial.d1 in range(24):
                                y_partial[y.partial.d0, y.partial.d1] = 0.0
                        for c in range(64):
                            for i_i in range(24):  # vectorize
                                y_partial[0, i_i] += w[o_o * 4, c] * x[c, i_o * 24 + i_i]
                                y_partial[1, i_i] += w[o_o * 4 + 1, c] * x[c, i_o * 24 + i_i]
                                y_partial[2, i_i] += w[o_o * 4 + 2, c] * x[c, i_o * 24 + i_i]
                                y_partial[3, i_i] += w[o_o * 4 + 3, c] * x[c, i_o * 24 + i_i]
                        for y.partial.back.d0 in range(4):
                            for y.partial.back.d1 in range(24):
                                y[o_o * 4 + y.partial.back.d0, i_o * 24 + y.partial.back.d1] += y_partial[y.partial.back.d0, y.partial.back.d1]
                    for i_o in range(n // 24, (n + 23) // 24):
                        y_partial = empty((4, 24), f32)
                        for y.partial.d0 in range(4):
                            for y.partial.d1 in range(24):
                                y_partial[y.partial.d0, y.partial.d1] = 0.0
                        for c in range(64):
                            for i_i in range(24):  # vectorize
                                if i_o * 24 + i_i < n:
                                    y_partial[0, i_i] += w[o_o * 4, c] * x[c, i_o * 24 + i_i]
                                if i_o * 24 + i_i < n:
                                    y_partial[1, i_i] += w[o_o * 4 + 1, c] * x[c, i_o * 24 + i_i]
                                if i_o * 24 + i_i < n:
                                    y_partial[2, i_i] += w[o_o * 4 + 2, c] * x[c, i_o * 24 + i_i]
                                if i_o * 24 + i_i < n:
                                    y_partial[3, i_i] += w[o_o * 4 + 3, c] * x[c, i_o * 24 + i_i]
                        for y.partial.back.d0 in range(4):
                            for y.partial.back.d1 in range(24):
                                if i_o * 24 + y.partial.back.d1 < n:
                                    y[o_o * 4 + y.partial.back.d0, i_o * 24 + y.partial.back.d1] += y_partial[y.partial.back.d0, y.partial.back.d1]
                for o in range(64):
                    for i in range(n):
                        y[o, i] = tanh(y[o, i])
        "#]],
    );
}

/// Checks two sums in one nest: one is tiled, the other becomes a nest of its own.
#[test]
fn sums_into_several_tensors_get_separate_nests() {
    let text = "
def f(a: f64[n, m], b: f64[m, p], g: f64[n, p], da: inout[f64[n, m]], db: inout[f64[m, p]]):
    for i in range(n):
        for j in range(p):
            for k in range(m):
                part = a[i, k] * 2.0
                db[k, j] += g[i, j] * part
                da[i, k] += g[i, j] * b[k, j]
";
    decides(
        text,
        "auto_tile",
        &[("n", 240), ("m", 240), ("p", 240)],
        expect![[r#"
        `i`
            keep                                         21.0 ms
          * 2 nests of "i", blocks of "k" 4, "j" 12 in registers 8.88 ms
        for k_o in range(m // 4):
            for j_o in range(p // 12):
                db_partial = empty((4, 12), f64)
                for db.partial.d0 in range(4):
                    for db.partial.d1 in range(12):
                        db_partial[db.partial.d0, db.partial.d1] = 0.0
                for i in range(n):
                    for j_i in range(12):  # vectorize
                        db_partial[0, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4] * 2.0)
                        db_partial[1, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 1] * 2.0)
                        db_partial[2, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 2] * 2.0)
                        db_partial[3, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 3] * 2.0)
                for db.partial.back.d0 in range(4):
                    for db.partial.back.d1 in range(12):
                        db[k_o * 4 + db.partial.back.d0, j_o * 12 + db.partial.back.d1] += db_partial[db.partial.back.d0, db.partial.back.d1]
            for j_o in range(p // 12, (p + 11) // 12):
                db_partial = empty((4, 12), f64)
                for db.partial.d0 in range(4):
                    for db.partial.d1 in range(12):
                        db_partial[db.partial.d0, db.partial.d1] = 0.0
                for i in range(n):
                    for j_i in range(12):  # vectorize
                        if j_o * 12 + j_i < p:
                            db_partial[0, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4] * 2.0)
                        if j_o * 12 + j_i < p:
                            db_partial[1, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 1] * 2.0)
                        if j_o * 12 + j_i < p:
                            db_partial[2, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 2] * 2.0)
                        if j_o * 12 + j_i < p:
                            db_partial[3, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 3] * 2.0)
                for db.partial.back.d0 in range(4):
                    for db.partial.back.d1 in range(12):
                        if j_o * 12 + db.partial.back.d1 < p:
                            db[k_o * 4 + db.partial.back.d0, j_o * 12 + db.partial.back.d1] += db_partial[db.partial.back.d0, db.partial.back.d1]
        for k_o in range(m // 4, (m + 3) // 4):
            for j_o in range(p // 12):
                db_partial = empty((4, 12), f64)
                for db.partial.d0 in range(4):
                    for db.partial.d1 in range(12):
                        db_partial[db.partial.d0, db.partial.d1] = 0.0
                for i in range(n):
                    for j_i in range(12):  # vectorize
                        db_partial[0, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4] * 2.0)
                        if k_o * 4 + 1 < m:
                            db_partial[1, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 1] * 2.0)
                        if k_o * 4 + 2 < m:
                            db_partial[2, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 2] * 2.0)
                for db.partial.back.d0 in range(4):
                    for db.partial.back.d1 in range(12):
                        if k_o * 4 + db.partial.back.d0 < m:
                            db[k_o * 4 + db.partial.back.d0, j_o * 12 + db.partial.back.d1] += db_partial[db.partial.back.d0, db.partial.back.d1]
            for j_o in range(p // 12, (p + 11) // 12):
                db_partial = empty((4, 12), f64)
                for db.partial.d0 in range(4):
                    for db.partial.d1 in range(12):
                        db_partial[db.partial.d0, db.partial.d1] = 0.0
                for i in range(n):
                    for j_i in range(12):  # vectorize
                        if j_o * 12 + j_i < p:
                            db_partial[0, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4] * 2.0)
                        if j_o * 12 + j_i < p:
                            if k_o * 4 + 1 < m:
                                db_partial[1, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 1] * 2.0)
                        if j_o * 12 + j_i < p:
                            if k_o * 4 + 2 < m:
                                db_partial[2, j_i] += g[i, j_o * 12 + j_i] * (a[i, k_o * 4 + 2] * 2.0)
                        if j_o * 12 + j_i < p:
                            pass
                for db.partial.back.d0 in range(4):
                    for db.partial.back.d1 in range(12):
                        if k_o * 4 + db.partial.back.d0 < m and j_o * 12 + db.partial.back.d1 < p:
                            db[k_o * 4 + db.partial.back.d0, j_o * 12 + db.partial.back.d1] += db_partial[db.partial.back.d0, db.partial.back.d1]
        for i in range(n):
            for j in range(p):
                for k in range(m):
                    da[i, k] += g[i, j] * b[k, j]
    "#]],
    );
}
