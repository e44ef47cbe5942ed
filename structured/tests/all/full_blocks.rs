//! Loops that are split into full blocks and blocks at an edge compute the same as whole loops, whether or not the
//! sizes are multiples of the block size.

use expect_test::expect;
use taffeta_ast::{StmtKind, print};
use testkit::{golden, programs};

use golden::{check, lowered};
use programs::equal;

/// Returns the text of a matrix-vector product, block by block, for blocks of `r` x `c` elements.
fn by_blocks(format: &str, [r, c]: [usize; 2]) -> String {
    let (up_r, up_c) = (r - 1, c - 1);
    format!(
        r#"
def f(A: f64[n, m] @ {format}, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range((n + {up_r}) // {r}):
        for j in range((m + {up_c}) // {c}):
            for k in range({r}):
                for l in range({c}):
                    if i * {r} + k < n and j * {c} + l < m:
                        y[i * {r} + k] += A[i * {r} + k, j * {c} + l] * x[j * {c} + l]
    return y
"#
    )
}

#[test]
fn loops_distinguish_full_blocks_and_edges() {
    check(
        &by_blocks("bcsr(2, 3)", [2, 3]),
        expect![[r#"
        def f(A_pos1: i32[(n + 1) // 2 + 1], A_crd1: i32[A_n1], A_val: f64[A_n1 * 2 * 3], x: f64[m]) -> f64[n]:
            y = empty((n,), f64)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range((n + 1) // 2):
                for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                    j = empty((), i64)
                    assume(0 <= j.p and j.p < A_n1)
                    j = cast(A_crd1[j.p], i64)
                    assume(0 <= j and j < (m + 2) // 3)
                    if i * 2 + 1 < n and j * 3 + 2 < m:
                        for k in range(2):
                            for l in range(3):
                                y[i * 2 + k] += A_val[(j.p * 2 + k) * 3 + l] * x[j * 3 + l]
                    else:
                        for k in range(2):
                            for l in range(3):
                                if i * 2 + k < n and j * 3 + l < m:
                                    y[i * 2 + k] += A_val[(j.p * 2 + k) * 3 + l] * x[j * 3 + l]
            return y
    "#]],
    );
}

#[test]
fn full_and_edge_blocks_agree_for_all_sizes() {
    for by in [[2, 3], [4, 4], [2, 5], [3, 2]] {
        let format = format!("bcsr({}, {})", by[0], by[1]);
        let (func, structured) = lowered(&by_blocks(&format, by));
        let mut apart = 0;
        structured.func.body.walk(&mut |s| {
            apart += usize::from(matches!(s.kind(), StmtKind::If { otherwise: Some(_), .. }));
        });
        assert_eq!(apart, 1, "{format}: {}", print::func(&structured.func));
        (0..60).for_each(|seed| equal(&func, &structured, seed));
    }
}
