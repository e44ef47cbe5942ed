//! `auto_scatter`: scattered rows, divided among threads by columns.

use super::decides;
use expect_test::expect;

fn rows(columns: &str) -> String {
    format!(
        "
def f(x: f32[m, {columns}], to: i32[m], y: inout[f32[n, {columns}]]):
    for e in range(m):
        for j in range({columns}):
            y[to[e], j] += x[e, j]
"
    )
}

#[test]
fn scattered_columns_are_divided_among_threads() {
    decides(
        &rows("64"),
        "auto_scatter",
        &[("m", 100000), ("n", 1000)],
        expect![[r#"
        `e`
            keep                                         2.63 ms
          * columns of "j" for threads, 32 each          1.35 ms
        for j_o in range(2):  # parallel
            for e in range(m):
                for j_i in range(32):  # vectorize
                    y[cast(to[e], i64), j_o * 32 + j_i] += x[e, j_o * 32 + j_i]
    "#]],
    );
    // An expected size may turn out larger or smaller.
    decides(
        &rows("c"),
        "auto_scatter",
        &[("m", 100000), ("n", 1000), ("c", 64)],
        expect![[r#"
            `e`
                keep                                         2.78 ms
              * columns of "j" for threads, 32 each          1.36 ms
            for j_o in range((c + 31) // 32):  # parallel
                for e in range(m):
                    for j_i in range(32):  # vectorize
                        if j_o * 32 + j_i < c:
                            y[cast(to[e], i64), j_o * 32 + j_i] += x[e, j_o * 32 + j_i]
        "#]],
    );
}

/// Checks that a few columns are not divided: each thread would have less than two vectors of a row.
#[test]
fn few_columns_are_not_divided() {
    decides(
        &rows("8"),
        "auto_scatter",
        &[("m", 100000), ("n", 1000)],
        expect![[r#"
        for e in range(m):
            for j in range(8):
                y[cast(to[e], i64), j] += x[e, j]
    "#]],
    );
}

#[test]
fn unknown_numbers_of_columns_are_not_divided() {
    decides(
        &rows("c"),
        "auto_scatter",
        &[("m", 100000), ("n", 1000)],
        expect![[r#"
        for e in range(m):
            for j in range(c):
                y[cast(to[e], i64), j] += x[e, j]
    "#]],
    );
}

/// Checks that rows written in order are left to `auto_parallelize`.
#[test]
fn other_loops_are_left_to_auto_parallelize() {
    let text = rows("64").replace("to[e]", "e").replace("y: inout[f32[n", "y: inout[f32[m");
    decides(
        &text,
        "auto_scatter",
        &[("m", 100000)],
        expect![[r#"
        for e in range(m):
            for j in range(64):
                y[e, j] += x[e, j]
    "#]],
    );
}
