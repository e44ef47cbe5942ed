//! Indices that may be out of range: loops are split where an access enters the tensor and where it leaves it. The
//! lowered programs equal the logical ones, but for the rounding of sums over runs, whatever the value beyond the ends.

use expect_test::expect;
use taffeta_ast::{Stmt, StmtKind};
use testkit::{golden, programs};

use golden::{check, lowered};
use programs::equal;

const VECTORS: [&str; 13] = [
    "compressed",
    "dense",
    "bytemap",
    "bitmap",
    "banded",
    "ragged",
    "blocklist",
    "runlength",
    "packbits",
    "hashed",
    "point",
    "compressed(ordered=False)",
    "compressed(index=i64)",
];

/// Checks that the programs equal their lowering, and have no warnings if `silent`.
#[track_caller]
fn all_equal(texts: impl IntoIterator<Item = String>, silent: bool) {
    for text in texts {
        let found = std::panic::catch_unwind(|| {
            let (func, structured) = lowered(&text);
            assert!(!silent || structured.warnings.is_empty(), "{:?}", structured.warnings);
            (0..30).for_each(|seed| equal(&func, &structured, seed));
        });
        assert!(found.is_ok(), "{text}");
    }
}

fn vector(level: &str, body: &str) -> String {
    format!(
        "def f(A: f64[n] @ format({level}), B: f64[n] @ format(compressed), w: f64[k], v: f64[n]) -> (f64, f64[n]):\n    s = 0.0\n    y = zeros((n,), f64)\n    {body}\n    return s, y\n"
    )
}

#[test]
fn correlation() {
    check(
        "def correlate(A: f64[n] @ format(compressed), w: f64[k]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(k):\n            y[i] += coalesce(A[permit(i + j - k // 2)], 0.0) * w[j]\n    return y\n",
        expect![[r#"
            def correlate(A_pos0: i32[2], A_crd0: i32[A_n0], A_val: f64[A_n0], w: f64[k]) -> f64[n]:
                y = empty((n,), f64)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                for i in range(n):
                    for j in range(k // 2 - i):
                        y[i] += 0.0 * w[j]
                    A_p = empty((), i64)
                    A_p_end = empty((), i64)
                    A_p_first = empty((), i64)
                    A_p_last = empty((), i64)
                    A_p = cast(A_pos0[0], i64)
                    A_p_end = cast(A_pos0[1], i64)
                    A_p_top = empty((), i64)
                    A_p_probe = empty((), i64)
                    A_p_by = empty((), i64)
                    A_p_top = A_p_end
                    A_p_probe = A_p
                    A_p_by = 1
                    while A_p_probe < A_p_top:
                        assume(0 <= A_p_probe and A_p_probe < A_n0)
                        assume(0 <= cast(A_crd0[A_p_probe], i64) and cast(A_crd0[A_p_probe], i64) < n)
                        if cast(A_crd0[A_p_probe], i64) - (i - k // 2) < max(0, k // 2 - i):
                            A_p = A_p_probe + 1
                            A_p_probe = A_p_probe + A_p_by
                            A_p_by = A_p_by * 2
                        else:
                            A_p_top = A_p_probe
                    while A_p < A_p_top:
                        A_p_mid = empty((), i64)
                        A_p_mid = A_p + (A_p_top - A_p) // 2
                        assume(0 <= A_p_mid and A_p_mid < A_n0)
                        assume(0 <= cast(A_crd0[A_p_mid], i64) and cast(A_crd0[A_p_mid], i64) < n)
                        if cast(A_crd0[A_p_mid], i64) - (i - k // 2) < max(0, k // 2 - i):
                            A_p = A_p_mid + 1
                        else:
                            A_p_top = A_p_mid
                    del A_p_by
                    del A_p_probe
                    del A_p_top
                    A_p_first = A_p
                    A_p_top = empty((), i64)
                    A_p_probe = empty((), i64)
                    A_p_by = empty((), i64)
                    A_p_top = A_p_end
                    A_p_probe = A_p
                    A_p_by = 1
                    while A_p_probe < A_p_top:
                        assume(0 <= A_p_probe and A_p_probe < A_n0)
                        assume(0 <= cast(A_crd0[A_p_probe], i64) and cast(A_crd0[A_p_probe], i64) < n)
                        if cast(A_crd0[A_p_probe], i64) - (i - k // 2) < min(k, n + k // 2 - i):
                            A_p = A_p_probe + 1
                            A_p_probe = A_p_probe + A_p_by
                            A_p_by = A_p_by * 2
                        else:
                            A_p_top = A_p_probe
                    while A_p < A_p_top:
                        A_p_mid = empty((), i64)
                        A_p_mid = A_p + (A_p_top - A_p) // 2
                        assume(0 <= A_p_mid and A_p_mid < A_n0)
                        assume(0 <= cast(A_crd0[A_p_mid], i64) and cast(A_crd0[A_p_mid], i64) < n)
                        if cast(A_crd0[A_p_mid], i64) - (i - k // 2) < min(k, n + k // 2 - i):
                            A_p = A_p_mid + 1
                        else:
                            A_p_top = A_p_mid
                    del A_p_by
                    del A_p_probe
                    del A_p_top
                    A_p_last = A_p
                    for A.p in range(A_p_first, A_p_last):
                        assume(0 <= A.p and A.p < A_n0)
                        assume(0 <= cast(A_crd0[A.p], i64) and cast(A_crd0[A.p], i64) < n)
                        assume(max(0, k // 2 - i) <= cast(A_crd0[A.p], i64) - (i - k // 2) and cast(A_crd0[A.p], i64) - (i - k // 2) < min(k, n + k // 2 - i))
                        y[i] += A_val[A.p] * w[cast(A_crd0[A.p], i64) - (i - k // 2)]
                    del A_p_last
                    del A_p_first
                    del A_p_end
                    del A_p
                    for j in range(n + k // 2 - i, k):
                        y[i] += 0.0 * w[j]
                return y
        "#]],
    );
}

#[test]
fn convolution() {
    check(
        "def f(A: f64[n, m] @ csr, w: f64[3, 3]) -> f64[n, m]:\n    y = zeros((n, m), f64)\n    for i in range(n):\n        for j in range(m):\n            for p in range(3):\n                for q in range(3):\n                    y[i, j] += coalesce(A[permit(i + p - 1), permit(j + q - 1)], 0.0) * w[p, q]\n    return y\n",
        expect![[r#"
            def f(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], w: f64[3, 3]) -> f64[n, m]:
                y = empty((n, m), f64)
                for y.d0 in range(n):
                    for y.d1 in range(m):
                        y[y.d0, y.d1] = 0.0
                for i in range(n):
                    for j in range(m):
                        for p in range(1 - i):
                            for q in range(3):
                                y[i, j] += 0.0 * w[p, q]
                        for p in range(max(0, 1 - i), min(3, n - i + 1)):
                            for q in range(1 - j):
                                y[i, j] += 0.0 * w[p, q]
                            A_p = empty((), i64)
                            A_p_end = empty((), i64)
                            A_p_first = empty((), i64)
                            A_p_last = empty((), i64)
                            A_p = cast(A_pos1[i + p - 1], i64)
                            A_p_end = cast(A_pos1[i + p], i64)
                            A_p_top = empty((), i64)
                            A_p_probe = empty((), i64)
                            A_p_by = empty((), i64)
                            A_p_top = A_p_end
                            A_p_probe = A_p
                            A_p_by = 1
                            while A_p_probe < A_p_top:
                                assume(0 <= A_p_probe and A_p_probe < A_n1)
                                assume(0 <= cast(A_crd1[A_p_probe], i64) and cast(A_crd1[A_p_probe], i64) < m)
                                if cast(A_crd1[A_p_probe], i64) - (j - 1) < max(0, 1 - j):
                                    A_p = A_p_probe + 1
                                    A_p_probe = A_p_probe + A_p_by
                                    A_p_by = A_p_by * 2
                                else:
                                    A_p_top = A_p_probe
                            while A_p < A_p_top:
                                A_p_mid = empty((), i64)
                                A_p_mid = A_p + (A_p_top - A_p) // 2
                                assume(0 <= A_p_mid and A_p_mid < A_n1)
                                assume(0 <= cast(A_crd1[A_p_mid], i64) and cast(A_crd1[A_p_mid], i64) < m)
                                if cast(A_crd1[A_p_mid], i64) - (j - 1) < max(0, 1 - j):
                                    A_p = A_p_mid + 1
                                else:
                                    A_p_top = A_p_mid
                            del A_p_by
                            del A_p_probe
                            del A_p_top
                            A_p_first = A_p
                            A_p_top = empty((), i64)
                            A_p_probe = empty((), i64)
                            A_p_by = empty((), i64)
                            A_p_top = A_p_end
                            A_p_probe = A_p
                            A_p_by = 1
                            while A_p_probe < A_p_top:
                                assume(0 <= A_p_probe and A_p_probe < A_n1)
                                assume(0 <= cast(A_crd1[A_p_probe], i64) and cast(A_crd1[A_p_probe], i64) < m)
                                if cast(A_crd1[A_p_probe], i64) - (j - 1) < min(3, m - j + 1):
                                    A_p = A_p_probe + 1
                                    A_p_probe = A_p_probe + A_p_by
                                    A_p_by = A_p_by * 2
                                else:
                                    A_p_top = A_p_probe
                            while A_p < A_p_top:
                                A_p_mid = empty((), i64)
                                A_p_mid = A_p + (A_p_top - A_p) // 2
                                assume(0 <= A_p_mid and A_p_mid < A_n1)
                                assume(0 <= cast(A_crd1[A_p_mid], i64) and cast(A_crd1[A_p_mid], i64) < m)
                                if cast(A_crd1[A_p_mid], i64) - (j - 1) < min(3, m - j + 1):
                                    A_p = A_p_mid + 1
                                else:
                                    A_p_top = A_p_mid
                            del A_p_by
                            del A_p_probe
                            del A_p_top
                            A_p_last = A_p
                            for A.p in range(A_p_first, A_p_last):
                                assume(0 <= A.p and A.p < A_n1)
                                assume(0 <= cast(A_crd1[A.p], i64) and cast(A_crd1[A.p], i64) < m)
                                assume(max(0, 1 - j) <= cast(A_crd1[A.p], i64) - (j - 1) and cast(A_crd1[A.p], i64) - (j - 1) < min(3, m - j + 1))
                                y[i, j] += A_val[A.p] * w[p, cast(A_crd1[A.p], i64) - (j - 1)]
                            del A_p_last
                            del A_p_first
                            del A_p_end
                            del A_p
                            for q in range(m - j + 1, 3):
                                y[i, j] += 0.0 * w[p, q]
                        for p in range(n - i + 1, 3):
                            for q in range(3):
                                y[i, j] += 0.0 * w[p, q]
                return y
        "#]],
    );
}

/// Checks one tensor after the other: each part of the split loop traverses one of them.
#[test]
fn one_tensor_behind_another() {
    check(
        "def f(A: f64[n] @ format(compressed), B: f64[m] @ format(compressed), x: f64[1]) -> f64:\n    s = 0.0\n    for i in range(n + m):\n        s += coalesce(A[permit(i)], B[permit(i - n)], 0.0) * x[0]\n    return s\n",
        expect![[r#"
            def f(A_pos0: i32[2], A_crd0: i32[A_n0], A_val: f64[A_n0], B_pos0: i32[2], B_crd0: i32[B_n0], B_val: f64[B_n0], x: f64[1]) -> f64:
                s = empty((), f64)
                s = 0.0
                for i.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                    assume(0 <= i.p and i.p < A_n0)
                    assume(0 <= cast(A_crd0[i.p], i64) and cast(A_crd0[i.p], i64) < n)
                    s += A_val[i.p] * x[0]
                for B.p in range(cast(B_pos0[0], i64), cast(B_pos0[1], i64)):
                    assume(0 <= B.p and B.p < B_n0)
                    assume(0 <= cast(B_crd0[B.p], i64) and cast(B_crd0[B.p], i64) < m)
                    s += B_val[B.p] * x[0]
                return s
        "#]],
    );
}

/// Checks a condition on indices alone that splits no loop: its operands are in branches.
#[test]
fn conditions_on_indices() {
    check(
        "def f(A: f64[n] @ format(compressed), x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    for j in range(n):\n        t = A[j] if j % 2 == 0 else 0.0\n        y[j] += t * x[j]\n        y[j] += t\n    return y\n",
        expect![[r#"
            def f(A_pos0: i32[2], A_crd0: i32[A_n0], A_val: f64[A_n0], x: f64[n]) -> f64[n]:
                y = empty((n,), f64)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                j_next = empty((), i64)
                j_next = 0
                for j.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                    assume(0 <= j.p and j.p < A_n0)
                    assume(0 <= cast(A_crd0[j.p], i64) and cast(A_crd0[j.p], i64) < n)
                    for j in range(j_next, cast(A_crd0[j.p], i64)):
                        assume(0 <= j and j < n)
                        if j % 2 == 0:
                            pass
                        else:
                            t = empty((), f64)
                            t = 0.0
                            y[j] += t * x[j]
                            y[j] += t
                    if cast(A_crd0[j.p], i64) % 2 == 0:
                        t = empty((), f64)
                        t = A_val[j.p]
                        y[cast(A_crd0[j.p], i64)] += t * x[cast(A_crd0[j.p], i64)]
                        y[cast(A_crd0[j.p], i64)] += t
                    else:
                        t = empty((), f64)
                        t = 0.0
                        y[cast(A_crd0[j.p], i64)] += t * x[cast(A_crd0[j.p], i64)]
                        y[cast(A_crd0[j.p], i64)] += t
                    j_next = cast(A_crd0[j.p], i64) + 1
                for j in range(j_next, n):
                    assume(0 <= j and j < n)
                    if j % 2 == 0:
                        pass
                    else:
                        t = empty((), f64)
                        t = 0.0
                        y[j] += t * x[j]
                        y[j] += t
                return y
        "#]],
    );
}

#[test]
fn random_vectors() {
    let bodies = [
        "for i in range(n):\n        for j in range(k):\n            y[i] += coalesce(A[permit(i + j - k // 2)], 0.0) * w[j]",
        "for i in range(n):\n        for j in range(k):\n            y[i] += coalesce(A[permit(i + j)], 2.0) * w[j]",
        "for i in range(n):\n        for j in range(k):\n            s += coalesce(A[permit(j - i)], 0.0) * w[j]",
        "for i in range(0 - 2, n + 3):\n        s += coalesce(A[permit(i)], 0.0) * w[0] if k > 0 else 0.0",
        "for i in range(n + 4):\n        s += coalesce(A[permit(i - 2)], 0.5)",
        "for i in range(n):\n        for j in range(min(k, 3)):\n            y[i] += w[j] * coalesce(A[permit(i + j - 1)] * v[i], 0.0)",
        "for i in range(n):\n        for j in range(k):\n            y[i] += coalesce(A[permit(offset(1)[i + j])], 0.0) * w[j]",
        "for i in range(n):\n        for j in range(k):\n            y[i] += (A[j + i] if i + j < n else 0.0) * w[j]",
        "for i in range(n):\n        for j in range(k):\n            y[i] += (0.0 if j + i >= n or not (j + i >= 1) else A[j + i - 1]) * w[j]",
    ];
    all_equal(VECTORS.iter().flat_map(|level| bodies.map(|body| vector(level, body))), false);
}

/// Checks bodies with further terms or statements beside the access, and accesses that are not traversed.
#[test]
fn bodies_with_further_terms() {
    let bodies = [
        "for i in range(n):\n        for j in range(k):\n            if 0 <= i + j - 1 and i + j - 1 < n:\n                y[i] += A[i + j - 1] * w[j]\n            else:\n                y[i] += 0.0 * w[j]",
        "for i in range(n):\n        for j in range(k):\n            t = coalesce(A[permit(i + j - 1)], 0.0)\n            y[i] += t * w[j]\n            s += t * t * w[j]",
        "for i in range(n):\n        for j in range(k):\n            t = coalesce(A[permit(2 * j + i - 1)], 0.0)\n            u = t * w[j]\n            y[i] += u * w[j]\n            s += u",
        "for i in range(n):\n        t = coalesce(A[permit(2 * i - 1)], 1.0)\n        u = coalesce(A[permit(2 * i - 1)], B[permit(2 * i)], 1.0) * t\n        y[i] += u * v[i]",
        "for i in range(n):\n        s += v[i] * min(A[i], 2.0 if i % 2 == 0 else v[i])",
        "for i in range(n):\n        s += inf * min(A[i] if i % 2 == 0 else 1.0, A[i - 2] if i >= 2 else 2.0)",
        "for i in range(n):\n        t = coalesce(A[permit(2 * i - 1)], 1.0)\n        for j in range(k):\n            y[i] += t * w[j]",
        "for i in range(n):\n        for j in range(k):\n            s += coalesce(A[permit(i + j - 1)], 0.0) * w[j] + coalesce(B[permit(j - 1)], 0.0) * w[j]",
        "for i in range(n):\n        y[i] = coalesce(A[permit(i - 1)], 0.0) * v[i] + A[i] * v[i] + coalesce(A[permit(i + 1)], 0.0) * v[i]",
        "for i in range(n):\n        y[i] += coalesce(A[permit(i - 1)], 0.0) * v[i] + coalesce(A[permit(i + 2)], 0.0) + coalesce(B[permit(i + 3)], 1.0) + coalesce(B[permit(i - 4)], 1.0)",
        "for i in range(n):\n        for j in range(k):\n            s += coalesce(A[permit(i - j)], 0.0) * w[j]",
        "for i in range(n):\n        for j in range(k):\n            s += coalesce(A[permit(i + j - 1)] * B[permit(i + j - 1)], 0.0) * w[j]",
        "for i in range(n):\n        for j in range(k):\n            s += coalesce(A[permit(i + j - 1)] + B[permit(i + j + 1)], 0.0) * w[j]",
        "for i in range(2 * n):\n        s += coalesce(A[permit(i)] * A[permit(i)], B[permit(i - n)] * v[i - n], 0.0)",
        "for i in range(n):\n        for j in range(k):\n            if coalesce(A[permit(i + j - 1)], 0.0) * w[j] > 0.0:\n                y[i] += w[j]",
        "for i in range(n):\n        for j in range(n):\n            s += coalesce(A[permit(j - 1)], 0.0) * (A[j] if j < i else v[j])",
        "for i in range(n - 1, -1, -1):\n        s += coalesce(A[permit(i + 1)], 0.0) * v[i]",
        "for i in range(0, n, 2):\n        s += coalesce(A[permit(i + 1)], 0.0) * v[i]",
        "for i in range(n):\n        s = max(s, select(i < 3 and v[i] > 0.0, A[i], 0.0) * v[i])",
    ];
    all_equal(VECTORS.iter().flat_map(|level| bodies.map(|body| vector(level, body))), false);
}

#[test]
fn random_convolutions() {
    let text = |format: &str, order: [&str; 4], value: &str| {
        let mut text = format!(
            "def f(A: f64[n, m] @ {format}, w: f64[k, k], x: f64[k]) -> f64[n, m]:\n    y = zeros((n, m), f64)\n"
        );
        for (depth, iter) in order.iter().enumerate() {
            let end = [("i", "n"), ("j", "m"), ("p", "k"), ("q", "k")].iter().find(|(i, _)| i == iter).expect("one").1;
            text += &format!("{}for {iter} in range({end}):\n", "    ".repeat(depth + 1));
        }
        text + &format!("{}y[i, j] += {value}\n    return y\n", "    ".repeat(5))
    };
    let formats = [
        "csr",
        "dcsr",
        "format(dense, bytemap)",
        "format(dense, banded)",
        "format(compressed, dense)",
        "format(compressed, compressed)",
        "format(bytemap, runlength)",
        "format(dense, hashed)",
        "bcsr(2, 2)",
        "coo",
    ];
    let values = [
        "coalesce(A[permit(i + p - k // 2), permit(j + q - k // 2)], 0.0) * w[p, q]",
        "coalesce(A[permit(i + p - 1), permit(j + q)] * x[q], 1.0) * w[p, q]",
        "coalesce(A[i, permit(j + q - 1)], 0.0) * w[p, q]",
    ];
    let orders = [["i", "j", "p", "q"], ["i", "p", "j", "q"]];
    let all = formats.iter().flat_map(|f| orders.iter().map(move |o| (f, o)));
    all_equal(all.flat_map(|(f, o)| values.map(|v| text(f, *o, v))), false);
    let silent = ["csr", "format(dense, bytemap)", "format(dense, compressed)"];
    all_equal(silent.map(|f| text(f, orders[0], values[0])), true);
}

/// Checks that no loop scans if each index is the iterator plus a loop-invariant term.
#[test]
fn unstored_elements_are_not_visited() {
    let bodies = [
        "for i in range(n):\n        for j in range(k):\n            y[i] += coalesce(A[permit(i + j - k // 2)], 0.0) * w[j]",
        "for i in range(n):\n        for j in range(k):\n            t = coalesce(A[permit(i + j - 1)], 0.0)\n            y[i] += t * w[j]",
        "for i in range(n):\n        for j in range(k):\n            s += coalesce(A[permit(i + j - 1)] * B[permit(i + j - 1)], 0.0) * w[j]",
        "for i in range(0 - 2, n + 3):\n        s += coalesce(A[permit(i)], 0.0) * v[0]",
    ];
    all_equal(bodies.map(|body| vector("compressed", body)), true);
}

/// Checks that the parts of a split loop keep its marks, and that reductions remain.
#[test]
fn parts_of_split_loops_keep_their_marks() {
    let text = vector("compressed", "for j in range(k):\n        s += coalesce(A[permit(j - 1)], 0.0) * w[j]");
    let func = programs::elaborate(&text);
    let marked = func.with_body(marked(&func.body));
    let structured = taffeta_structured::lower(&marked).expect("it is lowered");
    taffeta_ast::validate::dense(&structured.func).expect("it is a program");
    let mut loops = 0;
    structured.func.body.walk(&mut |s| {
        if let StmtKind::For { props, body, .. } = s.kind() {
            let reduces = matches!(body.kind(), StmtKind::ReduceTo { .. } | StmtKind::Seq(_));
            loops += usize::from(reduces && props.unroll);
        }
    });
    assert_eq!(loops, 3, "{}", taffeta_ast::print::func(&structured.func));
    (0..30).for_each(|seed| equal(&marked, &structured, seed));
}

fn marked(s: &Stmt) -> Stmt {
    match s.kind() {
        StmtKind::For { iter, extent, props, body } if iter.name() == "j" => {
            let props = taffeta_ast::stmt::LoopProps { unroll: true, ..props.clone() };
            s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
        }
        _ => s.map(&mut marked, &mut taffeta_ast::Expr::clone),
    }
}

/// Checks that the records of a split loop have the traversing part, once.
#[test]
fn records_of_split_loops() {
    let (_, structured) =
        lowered(&vector("compressed", "for j in range(k):\n        s += coalesce(A[permit(j - 1)], 0.0) * w[j]"));
    let told: Vec<String> = structured.explained.iter().map(|e| format!("{} {:?}", e.iter, e.visited)).collect();
    assert_eq!(told, [r#"j Stored([["A"]])"#]);
}
