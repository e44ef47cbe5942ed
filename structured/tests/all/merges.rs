//! Merges and searches of several structured tensors: the text of the lowered programs, and their equality with the
//! logical programs.

use expect_test::expect;
use taffeta_ast::{Expr, Origin, Span, Stmt, StmtKind};
use taffeta_structured::lower;
use testkit::{golden, programs};

use golden::check;
use programs::elaborate;

#[test]
fn merges_of_several_fibres() {
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
                    for j_1 in range(max(j_next, cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64))), j):
                        assume(0 <= j_1 and j_1 < n)
                        assume(0 <= cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j_1 and cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j_1 < B_n0)
                        s += B_val[cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j_1]
                    if cast(A_crd0[j_A], i64) == j:
                        if j < cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64)):
                            s += A_val[j_A]
                        else:
                            assume(0 <= cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j and cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j < B_n0)
                            s += A_val[j_A] + B_val[cast(B_ofs0[j_B + 1], i64) - cast(B_end0[j_B], i64) + j]
                    elif not j < cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64)):
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
                    for j_1 in range(max(j_next, cast(B_end0[j_B], i64) - (cast(B_ofs0[j_B + 1], i64) - cast(B_ofs0[j_B], i64))), j + 1):
                        assume(0 <= j_1 and j_1 < n)
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
                    i = empty((), i64)
                    assume(0 <= i.p and i.p < A_n0)
                    i = cast(A_crd0[i.p], i64)
                    assume(0 <= i and i < n)
                    for j.p in range(i.p, i.p + 1):
                        assume(0 <= j.p and j.p < A_n0)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        y[i] += A_val[j.p] * x[cast(A_crd1[j.p], i64)]
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
                A_p_found = empty((), bool)
                A_p = empty((), i64)
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

/// Checks that elements of an unordered list are located by its hash table, and that a loop that no list drives visits
/// every coordinate.
#[test]
fn merges_with_hash_tables() {
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
                    j_A_found = empty((), bool)
                    j_A = empty((), i64)
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

/// Returns the text of a loop nest over sums of vectors, each stored as a list: `outer` of them in the outer loop,
/// `inner` of them in the inner loop.
fn nested(outer: usize, inner: usize) -> String {
    let names = |c: char, n: usize| (0..n).map(move |k| format!("{c}{k}"));
    let all = |c: char, n: usize, i: &str| names(c, n).map(|x| format!("{x}[{i}]")).collect::<Vec<_>>().join(" + ");
    let params = names('u', outer).chain(names('v', inner)).map(|x| format!("{x}: f64[n] @ format(compressed)"));
    format!(
        "def f({}) -> f64:\n    s = 0.0\n    for i in range(n):\n        for j in range(n):\n            \
         s += ({}) * ({})\n    \
         return s\n",
        params.collect::<Vec<_>>().join(", "),
        all('u', outer, "i"),
        all('v', inner, "j"),
    )
}

/// Checks that the combinations of nested loops multiply: the outermost loop is refused where they are too many for a C
/// compiler, though those of each loop are not. (Found by `make fuzz`, structured seed 753267000127: 40 MB of C.) The
/// combinations of inner loops are distinguished in one body; those of outer loops cannot be, since the inner loop
/// depends on which values derive from the fill.
#[test]
fn combinations_of_nested_loops_are_limited() {
    assert!(lower(&elaborate(&nested(3, 3))).is_ok());
    assert!(lower(&elaborate(&nested(4, 4))).is_ok());
    let text = nested(6, 4);
    let refused = lower(&elaborate(&text)).expect_err("six lists by four are lowered");
    let [one] = &refused.0[..] else { panic!("{refused}") };
    assert!(one.message.starts_with("too many combinations of stored and absent elements"), "{}", one.message);
    let at = one.span().start as usize;
    assert!(text[at..].starts_with("for i in"), "{}", &text[at..]);
}

/// Checks that a refusal points at the first statement of a sequence that has no span of its own, as steps and
/// gradients make them.
#[test]
fn refusals_of_sequences_point_at_the_first_statement() {
    let others: Vec<String> = (2..12).map(|k| format!("(B[(k[i] + {k}) % n] + x[i])")).collect();
    let text = format!(
        "def f(A: f64[n] @ format(hashed), B: f64[n] @ format(hashed), x: f64[n], k: i64[n]) -> f64[n]:\n    \
         y = zeros((n,), f64)\n    for i in range(n):\n        t = A[k[i] % n]\n        \
         y[i] = t / ({})\n    return y\n",
        others.join(" * "),
    );
    let func = elaborate(&text);
    let refused = lower(&func.with_body(without_places(&func.body))).expect_err("ten searches are lowered");
    assert!(refused.0[0].message.starts_with("too many combinations of stored and absent elements"), "{refused}");
    let at = refused.0[0].span().start as usize;
    assert!(text[at..].starts_with("t = A"), "{}", &text[at..]);
}

fn without_places(s: &Stmt) -> Stmt {
    let s = s.map(&mut without_places, &mut Expr::clone);
    match s.kind() {
        StmtKind::Seq(_) => Stmt::new(s.kind().clone(), Origin::source(Span::NONE)),
        _ => s,
    }
}
