//! Loops over one structured tensor: the text of the lowered programs, and their equality with the logical programs.
//! `merges.rs` covers loops over several, `diagnostics.rs` refusals and warnings.

use expect_test::expect;
use testkit::{golden, programs};

use golden::{check, lowered};
use programs::equal;

/// Checks that locals that are read only at stored elements are not computed elsewhere.
#[test]
fn locals_used_at_stored_elements() {
    check(
        "def sddmm(S: f64[n, m] @ csr, A: f64[n, k], B: f64[m, k]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            dot = 0.0\n            for l in range(k):\n                dot += A[i, l] * B[j, l]\n            twice = dot + dot\n            y[i] += S[i, j] * twice\n    return y\n",
        expect![[r#"
            def sddmm(S_pos1: i32[n + 1], S_crd1: i32[S_n1], S_val: f64[S_n1], A: f64[n, k], B: f64[m, k]) -> f64[n]:
                y = empty((n,), f64)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                for i in range(n):
                    for j.p in range(cast(S_pos1[i], i64), cast(S_pos1[i + 1], i64)):
                        j = empty((), i64)
                        assume(0 <= j.p and j.p < S_n1)
                        j = cast(S_crd1[j.p], i64)
                        assume(0 <= j and j < m)
                        dot = empty((), f64)
                        dot = 0.0
                        for l in range(k):
                            dot += A[i, l] * B[j, l]
                        twice = empty((), f64)
                        twice = dot + dot
                        y[i] += S_val[j.p] * twice
                return y
        "#]],
    );
}

#[test]
fn matrix_vector_products() {
    let text = |storage: &str, loops: &str| {
        format!(
            "def spmv(A: f64[n, m] @ {storage}, x: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n{loops}            y[i] += A[i, j] * x[j]\n    return y\n"
        )
    };
    let rows = "    for i in range(n):\n        for j in range(m):\n";
    let columns = "    for j in range(m):\n        for i in range(n):\n";
    check(
        &text("csr", rows),
        expect![[r#"
        def spmv(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], x: f64[m]) -> f64[n]:
            y = empty((n,), f64)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range(n):
                for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                    assume(0 <= j.p and j.p < A_n1)
                    assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                    y[i] += A_val[j.p] * x[cast(A_crd1[j.p], i64)]
            return y
    "#]],
    );
    check(
        &text("csc", columns),
        expect![[r#"
        def spmv(A_pos1: i32[m + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], x: f64[m]) -> f64[n]:
            y = empty((n,), f64)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for j in range(m):
                for i.p in range(cast(A_pos1[j], i64), cast(A_pos1[j + 1], i64)):
                    assume(0 <= i.p and i.p < A_n1)
                    assume(0 <= cast(A_crd1[i.p], i64) and cast(A_crd1[i.p], i64) < n)
                    y[cast(A_crd1[i.p], i64)] += A_val[i.p] * x[j]
            return y
    "#]],
    );
    check(
        &text("dcsr", rows),
        expect![[r#"
            def spmv(A_pos0: i32[2], A_crd0: i32[A_n0], A_pos1: i32[A_n0 + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], x: f64[m]) -> f64[n]:
                y = empty((n,), f64)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                for i.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                    i = empty((), i64)
                    assume(0 <= i.p and i.p < A_n0)
                    i = cast(A_crd0[i.p], i64)
                    assume(0 <= i and i < n)
                    for j.p in range(cast(A_pos1[i.p], i64), cast(A_pos1[i.p + 1], i64)):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        y[i] += A_val[j.p] * x[cast(A_crd1[j.p], i64)]
                return y
        "#]],
    );
    check(
        &text("format(compressed, dense)", rows),
        expect![[r#"
            def spmv(A_pos0: i32[2], A_crd0: i32[A_n0], A_val: f64[A_n0 * m], x: f64[m]) -> f64[n]:
                y = empty((n,), f64)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                for i.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                    i = empty((), i64)
                    assume(0 <= i.p and i.p < A_n0)
                    i = cast(A_crd0[i.p], i64)
                    assume(0 <= i and i < n)
                    for j in range(m):
                        y[i] += A_val[i.p * m + j] * x[j]
                return y
        "#]],
    );
}

#[test]
fn matrix_matrix_products() {
    check(
        "def spmm(A: f64[n, m] @ csr, B: f64[m, k]) -> f64[n, k]:
    C = zeros((n, k), f64)
    for i in range(n):
        for j in range(m):
            for l in range(k):
                C[i, l] += A[i, j] * B[j, l]
    return C
",
        expect![[r#"
            def spmm(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], B: f64[m, k]) -> f64[n, k]:
                C = empty((n, k), f64)
                for C.d0 in range(n):
                    for C.d1 in range(k):
                        C[C.d0, C.d1] = 0.0
                for i in range(n):
                    for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                        j = empty((), i64)
                        assume(0 <= j.p and j.p < A_n1)
                        j = cast(A_crd1[j.p], i64)
                        assume(0 <= j and j < m)
                        for l in range(k):
                            C[i, l] += A_val[j.p] * B[j, l]
                return C
        "#]],
    );
    check(
        "def sddmm(S: f64[n, m] @ csr, A: f64[n, k], B: f64[m, k]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            for l in range(k):
                y[i] += S[i, j] * A[i, l] * B[j, l]
    return y
",
        expect![[r#"
            def sddmm(S_pos1: i32[n + 1], S_crd1: i32[S_n1], S_val: f64[S_n1], A: f64[n, k], B: f64[m, k]) -> f64[n]:
                y = empty((n,), f64)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                for i in range(n):
                    for j.p in range(cast(S_pos1[i], i64), cast(S_pos1[i + 1], i64)):
                        j = empty((), i64)
                        assume(0 <= j.p and j.p < S_n1)
                        j = cast(S_crd1[j.p], i64)
                        assume(0 <= j and j < m)
                        for l in range(k):
                            y[i] += S_val[j.p] * A[i, l] * B[j, l]
                return y
        "#]],
    );
}

/// Checks that effects where nothing is stored take place between those of stored elements, in the order of the
/// coordinates.
#[test]
fn loops_with_effects_at_unstored_elements() {
    check(
        "def total(A: f64[n, m] @ csr) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += exp(A[i, j]) * (i + 1)
    return s
",
        expect![[r#"
            def total(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1]) -> f64:
                s = empty((), f64)
                s = 0.0
                for i in range(n):
                    j_next = empty((), i64)
                    j_next = 0
                    for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        if j_next < cast(A_crd1[j.p], i64):
                            s += cast(i + 1, f64) * cast(cast(A_crd1[j.p], i64) - j_next, f64)
                        s += exp(A_val[j.p]) * cast(i + 1, f64)
                        j_next = cast(A_crd1[j.p], i64) + 1
                    if j_next < m:
                        s += cast(i + 1, f64) * cast(m - j_next, f64)
                return s
        "#]],
    );
    for storage in ["band", "ragged", "csr", "format(banded, compressed)", "format(ragged, banded, fill=2.0)"] {
        let text = format!(
            "def some(A: f64[n, m] @ {storage}, x: f64[m]) -> f64[n, m]:
    y = zeros((n, m), f64)
    for i in range(1, n):
        for j in range(2, m - 1):
            y[i, j] = A[i, j] * x[j] + x[2]
    return y
"
        );
        let (func, structured) = lowered(&text);
        (0..60).for_each(|seed| equal(&func, &structured, seed));
    }
    check(
        "def last(A: f64[n, m] @ dcsr, x: f64[m]) -> f64[n, m]:
    y = zeros((n, m), f64)
    for i in range(n):
        before = 1.0
        for j in range(1, m - 1):
            y[i, j] = before
            if A[i, j] > 2.0:
                before = A[i, j] * x[j]
    return y
",
        expect![[r#"
            def last(A_pos0: i32[2], A_crd0: i32[A_n0], A_pos1: i32[A_n0 + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], x: f64[m]) -> f64[n, m]:
                y = empty((n, m), f64)
                for y.d0 in range(n):
                    for y.d1 in range(m):
                        y[y.d0, y.d1] = 0.0
                i_next = empty((), i64)
                i_next = 0
                for i.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                    i = empty((), i64)
                    assume(0 <= i.p and i.p < A_n0)
                    i = cast(A_crd0[i.p], i64)
                    assume(0 <= i and i < n)
                    for i_1 in range(i_next, i):
                        assume(0 <= i_1 and i_1 < n)
                        before = empty((), f64)
                        before = 1.0
                        for j in range(1, m - 1):
                            y[i_1, j] = before
                    before = empty((), f64)
                    before = 1.0
                    j_A = empty((), i64)
                    j_A_end = empty((), i64)
                    j_A_first = empty((), i64)
                    j_A_last = empty((), i64)
                    j_A = cast(A_pos1[i.p], i64)
                    j_A_end = cast(A_pos1[i.p + 1], i64)
                    j_A_top = empty((), i64)
                    j_A_probe = empty((), i64)
                    j_A_by = empty((), i64)
                    j_A_top = j_A_end
                    j_A_probe = j_A
                    j_A_by = 1
                    while j_A_probe < j_A_top:
                        assume(0 <= j_A_probe and j_A_probe < A_n1)
                        assume(0 <= cast(A_crd1[j_A_probe], i64) and cast(A_crd1[j_A_probe], i64) < m)
                        if cast(A_crd1[j_A_probe], i64) < 1:
                            j_A = j_A_probe + 1
                            j_A_probe = j_A_probe + j_A_by
                            j_A_by = j_A_by * 2
                        else:
                            j_A_top = j_A_probe
                    while j_A < j_A_top:
                        j_A_mid = empty((), i64)
                        j_A_mid = j_A + (j_A_top - j_A) // 2
                        assume(0 <= j_A_mid and j_A_mid < A_n1)
                        assume(0 <= cast(A_crd1[j_A_mid], i64) and cast(A_crd1[j_A_mid], i64) < m)
                        if cast(A_crd1[j_A_mid], i64) < 1:
                            j_A = j_A_mid + 1
                        else:
                            j_A_top = j_A_mid
                    del j_A_by
                    del j_A_probe
                    del j_A_top
                    j_A_first = j_A
                    j_A_top = empty((), i64)
                    j_A_probe = empty((), i64)
                    j_A_by = empty((), i64)
                    j_A_top = j_A_end
                    j_A_probe = j_A
                    j_A_by = 1
                    while j_A_probe < j_A_top:
                        assume(0 <= j_A_probe and j_A_probe < A_n1)
                        assume(0 <= cast(A_crd1[j_A_probe], i64) and cast(A_crd1[j_A_probe], i64) < m)
                        if cast(A_crd1[j_A_probe], i64) < m - 1:
                            j_A = j_A_probe + 1
                            j_A_probe = j_A_probe + j_A_by
                            j_A_by = j_A_by * 2
                        else:
                            j_A_top = j_A_probe
                    while j_A < j_A_top:
                        j_A_mid = empty((), i64)
                        j_A_mid = j_A + (j_A_top - j_A) // 2
                        assume(0 <= j_A_mid and j_A_mid < A_n1)
                        assume(0 <= cast(A_crd1[j_A_mid], i64) and cast(A_crd1[j_A_mid], i64) < m)
                        if cast(A_crd1[j_A_mid], i64) < m - 1:
                            j_A = j_A_mid + 1
                        else:
                            j_A_top = j_A_mid
                    del j_A_by
                    del j_A_probe
                    del j_A_top
                    j_A_last = j_A
                    j_next = empty((), i64)
                    j_next = 1
                    for j.p in range(j_A_first, j_A_last):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        assume(1 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m - 1)
                        for j in range(j_next, cast(A_crd1[j.p], i64)):
                            assume(1 <= j and j < m - 1)
                            y[i, j] = before
                        y[i, cast(A_crd1[j.p], i64)] = before
                        if A_val[j.p] > 2.0:
                            before = A_val[j.p] * x[cast(A_crd1[j.p], i64)]
                        j_next = cast(A_crd1[j.p], i64) + 1
                    for j in range(j_next, m - 1):
                        assume(1 <= j and j < m - 1)
                        y[i, j] = before
                    del j_next
                    del j_A_last
                    del j_A_first
                    del j_A_end
                    del j_A
                    del before
                    i_next = i + 1
                for i in range(i_next, n):
                    assume(0 <= i and i < n)
                    before = empty((), f64)
                    before = 1.0
                    for j in range(1, m - 1):
                        y[i, j] = before
                return y
        "#]],
    );
}
