//! Programs on structured tensors, lowered: what they look like, and that they compute what the logical program does.

use expect_test::{Expect, expect};
use taffeta_ast::{Func, print, validate};
use taffeta_structured::{Stored, Structured, Unpackable, lower};

mod programs;
#[allow(dead_code)] // what other tests of this crate draw
mod random;
use programs::{elaborate, equal};

fn lowered(text: &str) -> (Func, Structured) {
    let func = elaborate(text);
    let lowered = lower(&func).unwrap_or_else(|e| panic!("{:?}", e.0.iter().map(|d| &d.message).collect::<Vec<_>>()));
    validate::dense(&lowered.func).expect("it is a program");
    (func, lowered)
}

/// The lowered program, which is what it says: it equals the logical one on random tensors.
#[track_caller]
fn check(text: &str, expect: Expect) {
    let (func, structured) = lowered(text);
    expect.assert_eq(&print::func(&structured.func));
    for seed in 0..20 {
        equal(&func, &structured, seed);
    }
}

/// Where nothing is stored, nothing is computed for the sake of locals that nobody reads there.
#[test]
fn locals_of_the_body() {
    check(
        "def sddmm(S: f64[n, m] @ csr, A: f64[n, k], B: f64[m, k]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            dot = 0.0\n            for l in range(k):\n                dot += A[i, l] * B[j, l]\n            twice = dot + dot\n            y[i] += S[i, j] * twice\n    return y\n",
        expect![[r#"
            def sddmm(S_pos1: i32[n + 1], S_crd1: i32[S_n1], S_val: f64[S_n1], A: f64[n, k], B: f64[m, k]) -> f64[n]:
                y = empty((n,), f64)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                for i in range(n):
                    for j.p in range(cast(S_pos1[i], i64), cast(S_pos1[i + 1], i64)):
                        assume(0 <= j.p and j.p < S_n1)
                        assume(0 <= cast(S_crd1[j.p], i64) and cast(S_crd1[j.p], i64) < m)
                        dot = empty((), f64)
                        dot = 0.0
                        for l in range(k):
                            dot += A[i, l] * B[cast(S_crd1[j.p], i64), l]
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
                assume(0 <= i.p and i.p < A_n0)
                assume(0 <= cast(A_crd0[i.p], i64) and cast(A_crd0[i.p], i64) < n)
                for j.p in range(cast(A_pos1[i.p], i64), cast(A_pos1[i.p + 1], i64)):
                    assume(0 <= j.p and j.p < A_n1)
                    assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                    y[cast(A_crd0[i.p], i64)] += A_val[j.p] * x[cast(A_crd1[j.p], i64)]
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
                assume(0 <= i.p and i.p < A_n0)
                assume(0 <= cast(A_crd0[i.p], i64) and cast(A_crd0[i.p], i64) < n)
                for j in range(m):
                    y[cast(A_crd0[i.p], i64)] += A_val[i.p * m + j] * x[j]
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
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        for l in range(k):
                            C[i, l] += A_val[j.p] * B[cast(A_crd1[j.p], i64), l]
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
                        assume(0 <= j.p and j.p < S_n1)
                        assume(0 <= cast(S_crd1[j.p], i64) and cast(S_crd1[j.p], i64) < m)
                        for l in range(k):
                            y[i] += S_val[j.p] * A[i, l] * B[cast(S_crd1[j.p], i64), l]
                return y
        "#]],
    );
}

/// What is done where nothing is stored is done in its place, and in the order of the coordinates.
#[test]
fn loops_that_do_something_everywhere() {
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
                    assume(0 <= i.p and i.p < A_n0)
                    assume(0 <= cast(A_crd0[i.p], i64) and cast(A_crd0[i.p], i64) < n)
                    for i in range(i_next, cast(A_crd0[i.p], i64)):
                        before = empty((), f64)
                        before = 1.0
                        for j in range(1, m - 1):
                            y[i, j] = before
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
                        for j in range(j_next, cast(A_crd1[j.p], i64)):
                            y[cast(A_crd0[i.p], i64), j] = before
                        y[cast(A_crd0[i.p], i64), cast(A_crd1[j.p], i64)] = before
                        if A_val[j.p] > 2.0:
                            before = A_val[j.p] * x[cast(A_crd1[j.p], i64)]
                        j_next = cast(A_crd1[j.p], i64) + 1
                    for j in range(j_next, m - 1):
                        y[cast(A_crd0[i.p], i64), j] = before
                    del j_next
                    del j_A_last
                    del j_A_first
                    del j_A_end
                    del j_A
                    del before
                    i_next = cast(A_crd0[i.p], i64) + 1
                for i in range(i_next, n):
                    before = empty((), f64)
                    before = 1.0
                    for j in range(1, m - 1):
                        y[i, j] = before
                return y
        "#]],
    );
}

/// What is refused, in its words.
#[track_caller]
fn refused(text: &str, expect: Expect) {
    let found = lower(&elaborate(text)).expect_err("there is no rule for it yet");
    expect.assert_eq(&found.0.iter().map(|d| format!("[{}] {}\n", d.code, d.message)).collect::<String>());
}

#[test]
fn what_has_no_rule_yet() {
    let sum = |params: &str, value: &str| {
        format!("def f({params}) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += {value}\n    return s\n")
    };
    let twice = "A: f64[n, n] @ format(compressed(unique=False, ordered=False), singleton(ordered=False))";
    refused(
        &sum(twice, "A[n - 1 - j, j]"),
        expect![[r#"
        [lower::unsupported] `A` is asked for one coordinate in a level that is not ordered, and may have it at several positions
    "#]],
    );
    let many: Vec<String> = (0..7).map(|k| format!("A{k}: f64[n] @ format(compressed)")).collect();
    let product: Vec<String> = (0..7).map(|k| format!("A{k}[j]")).collect();
    refused(
        &sum(&many.join(", "), &product.join(" * ")),
        expect![[r#"
        [lower::unsupported] the loop `j` merges more lists than six: `A0`, `A1`, `A2`, `A3`, `A4`, `A5`, `A6`
    "#]],
    );
    refused(
        "def f(A: f64[n] @ format(compressed)):\n    print(A)\n    return A[0]\n",
        expect![[r#"
        [lower::unsupported] `A`, which is structured, cannot be printed whole yet
    "#]],
    );
}

/// The warnings of a program.
#[track_caller]
fn warned(text: &str, expect: Expect) {
    let (func, structured) = lowered(text);
    let all = structured.warnings.iter().map(|d| format!("[{}] {}\n", d.code, d.message));
    expect.assert_eq(&all.collect::<String>());
    for seed in 0..20 {
        equal(&func, &structured, seed);
    }
}

#[test]
fn what_is_searched_or_visits_everything() {
    let sum = |params: &str, loops: [&str; 2], value: &str| {
        let [outer, inner] = loops;
        format!(
            "def f({params}) -> f64:\n    s = 0.0\n    for {outer}:\n        for {inner}:\n            s += {value}\n    return s\n"
        )
    };
    let (rows, columns) = (["i in range(n)", "j in range(m)"], ["j in range(m)", "i in range(n)"]);
    let csr = "A: f64[n, m] @ csr";
    warned(&sum(&format!("{csr}, B: f64[n, m] @ csr"), rows, "A[i, j] * B[i, j]"), expect![[r#""#]]);
    warned(
        &sum(csr, columns, "A[i, j]"),
        expect![[r#"
        [structured::search] `A` is searched for each element: no loop traverses it in the order of its storage
    "#]],
    );
    warned(
        &sum(csr, rows, "A[i, m - 1 - j]"),
        expect![[r#"
        [structured::search] `A` is searched for each element: no loop traverses it in the order of its storage
    "#]],
    );
    warned(
        &sum(csr, ["i in range(n)", "j in range(m - 1, -1, -1)"], "A[i, j]"),
        expect![[r#"
        [structured::search] `A` is searched for each element: no loop traverses it in the order of its storage
    "#]],
    );
    warned(&sum(csr, ["i in range(1, n)", "j in range(m)"], "A[i - 1, j]"), expect![[r#""#]]);
    warned(
        &sum(csr, rows, "exp(A[i, j])"),
        expect![[r#"
        [structured::scan] the loop `j` visits every coordinate, although it traverses `A`
    "#]],
    );
    warned(
        "def f(A: f64[n, m] @ csr, k: i64[p]) -> f64:\n    return A[k[0], 0]\n",
        expect![[r#"
        [structured::search] `A` is searched for each element: no loop traverses it in the order of its storage
    "#]],
    );
}

/// Merges and searches, as programs.
#[test]
fn several_fibres() {
    check(
        "def f(A: f64[n] @ format(compressed), B: f64[n] @ format(compressed)) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += A[j] * B[j]\n    return s\n",
        expect![[r#"
            def f(A_pos0: i32[2], A_crd0: i32[A_n0], A_val: f64[A_n0], B_pos0: i32[2], B_crd0: i32[B_n0], B_val: f64[B_n0]) -> f64:
                s = empty((), f64)
                s = 0.0
                j_A = empty((), i64)
                j_A_end = empty((), i64)
                j_B = empty((), i64)
                j_B_end = empty((), i64)
                j_A = cast(A_pos0[0], i64)
                j_A_end = cast(A_pos0[1], i64)
                j_B = cast(B_pos0[0], i64)
                j_B_end = cast(B_pos0[1], i64)
                while j_A < j_A_end and j_B < j_B_end:
                    j = empty((), i64)
                    assume(0 <= j_A and j_A < A_n0)
                    assume(0 <= cast(A_crd0[j_A], i64) and cast(A_crd0[j_A], i64) < n)
                    assume(0 <= j_B and j_B < B_n0)
                    assume(0 <= cast(B_crd0[j_B], i64) and cast(B_crd0[j_B], i64) < n)
                    j = min(cast(A_crd0[j_A], i64), cast(B_crd0[j_B], i64))
                    if (cast(A_crd0[j_A], i64) == j) & (cast(B_crd0[j_B], i64) == j):
                        s += A_val[j_A] * B_val[j_B]
                    j_A = j_A + cast(cast(A_crd0[j_A], i64) == j, i64)
                    j_B = j_B + cast(cast(B_crd0[j_B], i64) == j, i64)
                return s
        "#]],
    );
    check(
        "def f(A: f64[n] @ format(compressed), B: f64[n] @ format(blocklist)) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += A[j] + B[j]\n    return s\n",
        expect![[r#"
            def f(A_pos0: i32[2], A_crd0: i32[A_n0], A_val: f64[A_n0], B_pos0: i32[2], B_end0: i32[B_b0], B_ofs0: i32[B_b0 + 1], B_val: f64[B_n0]) -> f64:
                s = empty((), f64)
                s = 0.0
                j_next = empty((), i64)
                j_A = empty((), i64)
                j_A_end = empty((), i64)
                j_B = empty((), i64)
                j_B_end = empty((), i64)
                j_next = 0
                j_A = cast(A_pos0[0], i64)
                j_A_end = cast(A_pos0[1], i64)
                j_B = cast(B_pos0[0], i64)
                j_B_end = cast(B_pos0[1], i64)
                while j_A < j_A_end and j_B < j_B_end:
                    j = empty((), i64)
                    assume(0 <= j_A and j_A < A_n0)
                    assume(0 <= cast(A_crd0[j_A], i64) and cast(A_crd0[j_A], i64) < n)
                    assume(0 <= j_B and j_B < B_b0)
                    assume(0 <= cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64)) and cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64)) < cast(B_end0[j_B], i64) and cast(B_end0[j_B], i64) <= n)
                    j = min(cast(A_crd0[j_A], i64), cast(B_end0[j_B], i64) - 1)
                    for j_1 in range(max(j_next, cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64))), min(j, cast(B_end0[j_B], i64))):
                        assume(0 <= cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j_1 and cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j_1 < B_n0)
                        s += B_val[cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j_1]
                    if cast(A_crd0[j_A], i64) == j:
                        if j < cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64)):
                            s += A_val[j_A]
                        elif j < cast(B_end0[j_B], i64):
                            assume(0 <= cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j and cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j < B_n0)
                            s += A_val[j_A] + B_val[cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j]
                    elif not j < cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64)):
                        if j < cast(B_end0[j_B], i64):
                            assume(0 <= cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j and cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j < B_n0)
                            s += B_val[cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j]
                    j_A = j_A + cast(cast(A_crd0[j_A], i64) == j, i64)
                    j_B = j_B + cast(cast(B_end0[j_B], i64) - 1 == j, i64)
                    j_next = j + 1
                while j_A < j_A_end:
                    j = empty((), i64)
                    assume(0 <= j_A and j_A < A_n0)
                    assume(0 <= cast(A_crd0[j_A], i64) and cast(A_crd0[j_A], i64) < n)
                    j = cast(A_crd0[j_A], i64)
                    s += A_val[j_A]
                    j_A = j_A + 1
                    j_next = j + 1
                while j_B < j_B_end:
                    j = empty((), i64)
                    assume(0 <= j_B and j_B < B_b0)
                    assume(0 <= cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64)) and cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64)) < cast(B_end0[j_B], i64) and cast(B_end0[j_B], i64) <= n)
                    j = cast(B_end0[j_B], i64) - 1
                    for j_1 in range(max(j_next, cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64))), min(j + 1, cast(B_end0[j_B], i64))):
                        assume(0 <= cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j_1 and cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j_1 < B_n0)
                        s += B_val[cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j_1]
                    j_B = j_B + 1
                    j_next = j + 1
                return s
        "#]],
    );
    check(
        "def f(A: f64[n, m] @ coo, x: f64[m]) -> f64[n]:\n    y = zeros((n,), f64)\n    for i in range(n):\n        for j in range(m):\n            y[i] += A[i, j] * x[j]\n    return y\n",
        expect![[r#"
            def f(A_pos0: i32[2], A_crd0: i32[A_n0], A_crd1: i32[A_n0], A_val: f64[A_n0], x: f64[m]) -> f64[n]:
                y = empty((n,), f64)
                for y.d0 in range(n):
                    y[y.d0] = 0.0
                for i.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                    assume(0 <= i.p and i.p < A_n0)
                    assume(0 <= cast(A_crd0[i.p], i64) and cast(A_crd0[i.p], i64) < n)
                    for j.p in range(i.p, i.p + 1):
                        assume(0 <= j.p and j.p < A_n0)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        y[cast(A_crd0[i.p], i64)] += A_val[j.p] * x[cast(A_crd1[j.p], i64)]
                return y
        "#]],
    );
    check(
        "def f(A: f64[n] @ format(runlength), B: f64[n] @ format(runlength)) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += A[j] * B[j]\n    return s\n",
        expect![[r#"
            def f(A_pos0: i32[2], A_end0: i32[A_n0], A_val: f64[A_n0], B_pos0: i32[2], B_end0: i32[B_n0], B_val: f64[B_n0]) -> f64:
                s = empty((), f64)
                s = 0.0
                j_next = empty((), i64)
                j_A = empty((), i64)
                j_A_end = empty((), i64)
                j_B = empty((), i64)
                j_B_end = empty((), i64)
                j_next = 0
                j_A = cast(A_pos0[0], i64)
                j_A_end = cast(A_pos0[1], i64)
                j_B = cast(B_pos0[0], i64)
                j_B_end = cast(B_pos0[1], i64)
                while j_next < n:
                    j = empty((), i64)
                    assume(0 <= j_A and j_A < A_n0)
                    assume(0 < cast(A_end0[j_A], i64) and cast(A_end0[j_A], i64) <= n)
                    assume(0 <= j_B and j_B < B_n0)
                    assume(0 < cast(B_end0[j_B], i64) and cast(B_end0[j_B], i64) <= n)
                    j = min(cast(A_end0[j_A], i64) - 1, cast(B_end0[j_B], i64) - 1)
                    if j_next < j + 1:
                        s += A_val[j_A] * B_val[j_B] * cast(j + 1 - j_next, f64)
                    j_A = j_A + cast(cast(A_end0[j_A], i64) - 1 == j, i64)
                    j_B = j_B + cast(cast(B_end0[j_B], i64) - 1 == j, i64)
                    j_next = j + 1
                return s
        "#]],
    );
    check(
        "def f(A: f64[n, m] @ csr, i: i64, j: i64) -> f64:\n    return A[i, j]\n",
        expect![[r#"
            def f(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], i: i64, j: i64) -> f64:
                out = empty((), f64)
                assert 0 <= i and i < n, f"index {i} is out of range for dimension 0 of `A`, which has size {n}"  # index
                assert 0 <= j and j < m, f"index {j} is out of range for dimension 1 of `A`, which has size {m}"  # index
                A_p = empty((), i64)
                A_p_found = empty((), bool)
                A_p_end = empty((), i64)
                A_p_found = False
                A_p = cast(A_pos1[i], i64)
                A_p_end = cast(A_pos1[i + 1], i64)
                A_p_top = empty((), i64)
                A_p_probe = empty((), i64)
                A_p_by = empty((), i64)
                A_p_top = A_p_end
                A_p_probe = A_p
                A_p_by = 1
                while A_p_probe < A_p_top:
                    assume(0 <= A_p_probe and A_p_probe < A_n1)
                    assume(0 <= cast(A_crd1[A_p_probe], i64) and cast(A_crd1[A_p_probe], i64) < m)
                    if cast(A_crd1[A_p_probe], i64) < j:
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
                    if cast(A_crd1[A_p_mid], i64) < j:
                        A_p = A_p_mid + 1
                    else:
                        A_p_top = A_p_mid
                del A_p_by
                del A_p_probe
                del A_p_top
                if A_p < A_p_end:
                    assume(0 <= A_p and A_p < A_n1)
                    assume(0 <= cast(A_crd1[A_p], i64) and cast(A_crd1[A_p], i64) < m)
                    A_p_found = cast(A_crd1[A_p], i64) == j
                if A_p_found:
                    assume(0 <= A_p and A_p < A_n1)
                    assume(0 <= cast(A_crd1[A_p], i64) and cast(A_crd1[A_p], i64) < m)
                    out = A_val[A_p]
                else:
                    out = 0.0
                return out
        "#]],
    );
}

/// The elements of a list without an order are found by its table; what no list drives visits every coordinate.
#[test]
fn tables() {
    let two = "def f(A: f64[n] @ format(hashed), B: f64[n] @ format(compressed), x: f64[n]) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += VALUE\n    return s\n";
    check(
        &two.replace("VALUE", "A[j] * B[j]"),
        expect![[r#"
        def f(A_pos0: i32[2], A_crd0: i32[A_n0], A_tpos0: i32[2], A_tbl0: i32[A_t0], A_val: f64[A_n0], B_pos0: i32[2], B_crd0: i32[B_n0], B_val: f64[B_n0], x: f64[n]) -> f64:
            s = empty((), f64)
            s = 0.0
            for j.p in range(cast(B_pos0[0], i64), cast(B_pos0[1], i64)):
                assume(0 <= j.p and j.p < B_n0)
                assume(0 <= cast(B_crd0[j.p], i64) and cast(B_crd0[j.p], i64) < n)
                j_A = empty((), i64)
                j_A_found = empty((), bool)
                j_A_found = False
                j_A_mask = empty((), i64)
                j_A_slot = empty((), i64)
                j_A_more = empty((), bool)
                j_A_mask = cast(A_tpos0[1], i64) - cast(A_tpos0[0], i64) - 1
                j_A_slot = (cast(B_crd0[j.p], i64) ^ cast(B_crd0[j.p], i64) >> 32) * -7046029254386353131 >> 32 & j_A_mask
                j_A_more = True
                while j_A_more:
                    assume(0 <= cast(A_tpos0[0], i64) + j_A_slot and cast(A_tpos0[0], i64) + j_A_slot < A_t0)
                    j_A = cast(A_tbl0[cast(A_tpos0[0], i64) + j_A_slot], i64) - 1
                    j_A_more = 0 <= j_A
                    if j_A_more:
                        assume(0 <= j_A and j_A < A_n0)
                        assume(0 <= cast(A_crd0[j_A], i64) and cast(A_crd0[j_A], i64) < n)
                        j_A_found = cast(A_crd0[j_A], i64) == cast(B_crd0[j.p], i64)
                        j_A_more = not j_A_found
                        j_A_slot = j_A_slot + 1 & j_A_mask
                del j_A_more
                del j_A_slot
                del j_A_mask
                if j_A_found:
                    assume(0 <= j_A and j_A < A_n0)
                    assume(0 <= cast(A_crd0[j_A], i64) and cast(A_crd0[j_A], i64) < n)
                    s += A_val[j_A] * B_val[j.p]
            return s
    "#]],
    );
    check(
        &two.replace("VALUE", "A[j] * x[j]"),
        expect![[r#"
        def f(A_pos0: i32[2], A_crd0: i32[A_n0], A_tpos0: i32[2], A_tbl0: i32[A_t0], A_val: f64[A_n0], B_pos0: i32[2], B_crd0: i32[B_n0], B_val: f64[B_n0], x: f64[n]) -> f64:
            s = empty((), f64)
            s = 0.0
            for j.p in range(cast(A_pos0[0], i64), cast(A_pos0[1], i64)):
                assume(0 <= j.p and j.p < A_n0)
                assume(0 <= cast(A_crd0[j.p], i64) and cast(A_crd0[j.p], i64) < n)
                s += A_val[j.p] * x[cast(A_crd0[j.p], i64)]
            return s
    "#]],
    );
    let scan = lower(&elaborate(&two.replace("VALUE", "A[j] + x[j]"))).expect("there is a rule");
    let said: Vec<&str> = scan.warnings.iter().map(|w| w.message.as_str()).collect();
    assert_eq!(said, ["the loop `j` visits every coordinate, although it traverses `A`"]);
}
