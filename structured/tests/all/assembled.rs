//! Results and local tensors with a pattern of their own: the arrays that programs make are those of the elements that
//! the interpreter stores, for operands in all formats.

use expect_test::{Expect, expect};
use std::sync::Arc;
use taffeta_analysis::pass::simplify;
use taffeta_ast::format::{Format, LevelKind};
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::stmt::{LoopProps, Parallel};
use taffeta_ast::{Buffer, Diagnostics, Func, Stmt, StmtKind, Tensor, Value, print};
use taffeta_structured::{Structured, lower};
use testkit::{programs, random};

/// Formats that are assembled by appending.
const RESULTS: [&str; 7] = [
    "csr",
    "dcsr",
    "coo",
    "format(dense, compressed(index=i64))",
    "format(compressed, compressed(index=u8))",
    "format(compressed(unique=False, index=i64), singleton(index=u16))",
    "format(dense, compressed, fill=1.5)",
];

/// Bodies that write `C` row by row, each element at most once.
const APPENDING: [&str; 8] = [
    "for i in range(n):\n        for j in range(n):\n            C[i, j] = A[i, j]",
    "for i in range(n):\n        for j in range(n):\n            C[i, j] = A[i, j] + B[i, j]",
    "for i in range(n):\n        for j in range(n):\n            C[i, j] += A[i, j] * B[i, j]",
    "for i in range(n):\n        for j in range(n):\n            C[i, j] -= A[i, j] - A[i, j]",
    "for i in range(n):\n        for j in range(n):\n            if A[i, j] > 4.0:\n                C[i, j] = B[i, j]",
    "for i in range(n):\n        if x[i] > 3.0:\n            for j in range(i, n):\n                \
     C[i, j] = A[i, j] * x[j]",
    "for i in range(n):\n        C[i, 0] = x[i]\n        for j in range(1, n):\n            C[i, j] = A[i, j - 1]",
    "for i in range(n):\n        for j in range(n):\n            t = A[i, j] * x[j]\n            \
     C[i, j] = min(t, B[i, j])",
];

/// Bodies that write rows of `C` one after the other, with several writes of an element or none in order.
const INSERTING: [&str; 6] = [
    "for i in range(n):\n        for k in range(n):\n            for j in range(n):\n                \
     C[i, j] += A[i, k] * B[k, j]",
    "for i in range(n):\n        for j in range(n):\n            for k in range(n):\n                \
     C[i, j] += A[i, k] * B[k, j]",
    "for i in range(n):\n        for j in range(n):\n            C[i, j] = A[i, j]\n        \
     for j in range(n):\n            C[i, j] += B[i, j]",
    "for i in range(n):\n        for j in range(n):\n            C[i, n - 1 - j] = A[i, j]",
    "for i in range(n):\n        for j in range(n):\n            C[i, (3 * j) % n] += A[i, j]",
    "for i in range(n):\n        for j in range(n):\n            C[i, j] = A[i, j]\n            C[i, j] *= x[j]",
];

/// Bodies that write elements of `C` in an order of which nothing is known, some of them several times.
const SCATTERING: [&str; 8] = [
    "for i in range(n):\n        for j in range(n):\n            C[j, i] = A[i, j]",
    "for i in range(n):\n        for j in range(n):\n            C[j, (i + j) % n] += A[i, j] * x[i]",
    "for k in range(n):\n        for i in range(n):\n            for j in range(n):\n                \
     C[i, j] += A[i, k] * B[k, j]",
    "for i in range(n):\n        for j in range(n):\n            C[i, j] += A[i, j]\n    \
     for i in range(n):\n        for j in range(n):\n            C[j, i] += B[i, j]",
    "for k in range(2):\n        for i in range(n):\n            for j in range(n):\n                \
     C[i, j] = max(C[i, j], A[j, i])",
    "for i in range(n):\n        for j in range(n):\n            if A[i, j] > 2.0:\n                \
     C[n - 1 - i, j // 2] -= A[i, j]",
    "for i in range(n):\n        for j in range(n):\n            C[(i * j) % n, i] *= A[i, j]",
    // The condition reads what is written beside the result, so that the loops cannot be run twice.
    "s: f64 = 0.0\n    for i in range(n):\n        for j in range(n):\n            s += A[i, j]\n            \
     if s > 3.0:\n                C[j, i] = A[i, j]",
];

fn text(result: &str, operands: [&str; 2], body: &str, local: bool) -> String {
    let [a, b] = operands;
    let head = format!("def f(A: f64[n, n] @ {a}, B: f64[n, n] @ {b}, x: f64[n])");
    match local {
        false => format!(
            "{head} -> f64[n, n] @ {result}:\n    C = full((n, n), {}, f64)\n    {body}\n    return C\n",
            fill(result)
        ),
        true => format!(
            "{head} -> f64[n, n]:\n    C: f64[n, n] @ {result} = full((n, n), {}, f64)\n    {body}\n    \
             y = zeros((n, n), f64)\n    for i in range(n):\n        for j in range(n):\n            \
             y[j, i] = C[i, j] * 2.0\n    return y\n",
            fill(result)
        ),
    }
}

fn fill(format: &str) -> &str {
    if format.contains("fill=1.5") { "1.5" } else { "0.0" }
}

fn lowered(text: &str) -> (taffeta_ast::Func, Result<Structured, Diagnostics>) {
    let func = programs::elaborate(text);
    let structured = lower(&simplify::run(&func));
    (func, structured)
}

/// Checks programs on random operands, as results and as local tensors that are read afterwards.
fn check(bodies: &[&str]) {
    let formats: Vec<String> = random::formats(2).iter().map(Format::text).collect();
    let mut operand = 0;
    let mut next = || {
        operand += 1;
        formats[operand % formats.len()].as_str()
    };
    let mut lowers = 0;
    for result in RESULTS {
        for body in bodies {
            for local in [false, true] {
                let text = text(result, [next(), next()], body, local);
                let (func, structured) = lowered(&text);
                let structured = match structured {
                    Ok(structured) => structured,
                    // Some operands cannot be read in every way.
                    Err(d) if d.0.iter().all(|d| d.code == "lower::unsupported") => continue,
                    // Nor do lists of factors tell those that annihilate.
                    Err(d) if d.0[0].message.ends_with("and are multiplied") => continue,
                    Err(d) => panic!("{:?}\n{text}", d.0[0].message),
                };
                lowers += 1;
                taffeta_ast::validate::dense(&structured.func)
                    .unwrap_or_else(|e| panic!("{e}\n{text}\n{}", print::func(&structured.func)));
                (1..6).for_each(|seed| programs::equal(&func, &structured, seed));
            }
        }
    }
    let all = RESULTS.len() * bodies.len() * 2;
    assert!(lowers * 10 > all * 9, "only {lowers} of {all} programs are lowered");
}

#[test]
fn appended_elements_are_those_that_are_stored() {
    check(&APPENDING);
}

#[test]
fn rows_are_gathered_in_workspaces() {
    check(&INSERTING);
}

#[test]
fn writes_in_any_order_are_sorted() {
    check(&SCATTERING);
}

/// Gives the tensor `C` another format.
fn with_format(func: &Func, format: &Format) -> Func {
    let of = |t: &Arc<Tensor>| match t.symbol.name() {
        "C" => {
            let (pattern, fill) = (t.format.pattern, t.format.fill);
            Arc::new(Tensor { format: Format { pattern, fill, ..format.clone() }, ..(**t).clone() })
        }
        _ => t.clone(),
    };
    fn declared(s: &Stmt, of: &dyn Fn(&Arc<Tensor>) -> Arc<Tensor>) -> Stmt {
        let s = s.map(&mut |s| declared(s, of), &mut taffeta_ast::Expr::clone);
        match s.kind() {
            StmtKind::VarDef { tensor, body } => {
                s.with_kind(StmtKind::VarDef { tensor: of(tensor), body: body.clone() })
            }
            _ => s,
        }
    }
    Func { results: func.results.iter().map(of).collect(), ..func.with_body(declared(&func.body, &of)) }
}

/// Checks that results and local tensors in every format have the arrays of the elements that the interpreter stores.
#[test]
fn every_format_is_assembled() {
    let operands: Vec<String> = random::formats(2).iter().map(Format::text).collect();
    let bodies: Vec<&str> = APPENDING.into_iter().chain(INSERTING).chain(SCATTERING).collect();
    let all = random::formats(2).into_iter().chain(random::remapped()).filter(|f| !f.is_dense());
    let (mut number, mut lowers) = (0, 0);
    for format in all {
        // Elements of a local tensor that it cannot hold are errors in the interpreter where they are written.
        let has_errors = format.is_symmetric() || format.levels.iter().any(|l| l.kind == LevelKind::Point);
        for local in if !has_errors { &[false, true][..] } else { &[false] } {
            number += 1;
            let body = bodies[(number * 5) % bodies.len()];
            let next = |k: usize| operands[(number * 7 + k) % operands.len()].as_str();
            let text = text("csr", [next(0), next(3)], body, *local);
            let func = with_format(&programs::elaborate(&text), &format);
            let structured = match lower(&simplify::run(&func)) {
                Ok(structured) => structured,
                Err(d) if d.0.iter().all(|d| d.code == "lower::unsupported") => continue,
                // A list of writes cannot be sorted if they combine in different ways.
                Err(d) if d.0[0].message.ends_with("by different operators") => continue,
                Err(d) if d.0[0].message.ends_with("and are multiplied") => continue,
                Err(d) => panic!("{:?}\n{format}\n{text}", d.0[0].message),
            };
            lowers += 1;
            let valid = taffeta_ast::validate::dense(&structured.func);
            valid.unwrap_or_else(|e| panic!("{e}\n{text}\n{}", print::func(&structured.func)));
            (1..5).for_each(|seed| programs::equal(&func, &structured, seed));
        }
    }
    assert!(lowers * 10 > number * 9, "only {lowers} of {number} programs are lowered");
}

/// Checks tensors that the same statements write, each in its own way.
#[test]
fn several_tensors_are_assembled_side_by_side() {
    let formats =
        ["csr", "csc", "dcsr", "coo", "dia", "ell", "bcsr(2, 2)", "format(dense, bytemap)", "format(dense, runlength)"];
    let operands: Vec<String> = random::formats(2).iter().map(Format::text).collect();
    let bodies = [
        "C[i, j] = A[i, j]\n            D[j, i] += A[i, j]",
        "C[i, j] = A[i, j] + B[i, j]\n            D[i, (3 * j) % n] += B[i, j]",
        "if A[i, j] > 2.0:\n                C[j, i] = A[i, j]\n                D[i, j] = B[i, j]",
    ];
    let (mut number, mut lowers) = (0, 0);
    for (k, c) in formats.iter().enumerate() {
        for d in &formats[k..] {
            number += 1;
            let next = |k: usize| operands[(number * 7 + k) % operands.len()].as_str();
            let text = format!(
                "def f(A: f64[n, n] @ {}, B: f64[n, n] @ {}, x: f64[n]) -> (f64[n, n] @ {c}, f64[n, n] @ {d}):\n    \
                 C = zeros((n, n), f64)\n    D = zeros((n, n), f64)\n    for i in range(n):\n        \
                 for j in range(n):\n            {}\n    return C, D\n",
                next(0),
                next(3),
                bodies[number % bodies.len()]
            );
            let (func, structured) = lowered(&text);
            let structured = match structured {
                Ok(structured) => structured,
                Err(d) if d.0.iter().all(|d| d.code == "lower::unsupported") => continue,
                Err(d) => panic!("{:?}\n{text}", d.0[0].message),
            };
            lowers += 1;
            (1..4).for_each(|seed| programs::equal(&func, &structured, seed));
        }
    }
    assert!(lowers * 10 > number * 9, "only {lowers} of {number} programs are lowered");
}

/// Body whose writes have no workspace of their own.
const TWICE: &str = "t[(3 * j) % n] += A[i, j]\n            t[(2 * j) % n] += B[i, j]";

/// Checks vectors that are assembled in each iteration of a loop that merges rows.
#[test]
fn vectors_are_assembled_in_loops() {
    let formats: Vec<String> = random::formats(2).iter().map(Format::text).collect();
    for (k, a) in formats.iter().enumerate() {
        let b = &formats[(k * 7 + 3) % formats.len()];
        let writes = ["t[j] = A[i, j] + B[i, j]", "t[n - 1 - j] += A[i, j] + B[i, j]", TWICE];
        for write in writes {
            let text = format!(
                "def f(A: f64[n, n] @ {a}, B: f64[n, n] @ {b}, x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n    \
                 for i in range(n):\n        t: f64[n] @ format(compressed) = zeros((n,), f64)\n        \
                 for j in range(n):\n            {write}\n        for j in range(n):\n            \
                 y[i] += t[j] * x[j]\n    return y\n"
            );
            let (func, structured) = lowered(&text);
            match structured {
                Ok(structured) => (1..5).for_each(|seed| programs::equal(&func, &structured, seed)),
                Err(d) if d.0.iter().all(|d| d.code == "lower::unsupported") => {}
                Err(d) => panic!("{:?}\n{text}", d.0[0].message),
            }
        }
    }
}

/// Checks that loops on threads do not append, whatever their steps.
#[test]
fn loops_on_threads_do_not_append() {
    for range in ["range(n)", "range(0, n, 2)"] {
        let text = format!(
            "def f(A: f64[n, n] @ csr) -> f64[n, n] @ csr:\n    C = zeros((n, n), f64)\n    for i in {range}:\n        \
             for j in range(n):\n            C[i, j] = A[i, j]\n    return C\n"
        );
        let func = programs::elaborate(&text);
        let parallel = |s: &Stmt| match s.kind() {
            StmtKind::For { iter, extent, body, .. } if iter.name() == "i" => {
                let props = LoopProps { parallel: Some(Parallel::default()), ..LoopProps::default() };
                s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
            }
            _ => s.clone(),
        };
        fn everywhere(s: &Stmt, f: &dyn Fn(&Stmt) -> Stmt) -> Stmt {
            f(&s.map(&mut |s| everywhere(s, f), &mut taffeta_ast::Expr::clone))
        }
        let d = lower(&func.with_body(everywhere(&func.body, &parallel))).expect_err("it is refused");
        assert!(d.0[0].message.contains("cannot be parallel"), "{:?}", d.0[0].message);
    }
}

/// Checks the lowered program of a text.
fn golden(text: &str, expect: Expect) {
    let (_, structured) = lowered(text);
    expect.assert_eq(&print::func(&structured.expect("it is lowered").func));
}

#[test]
fn scaled_matrices_are_appended() {
    golden(
        "def f(A: f64[n, m] @ csr) -> f64[n, m] @ csr:\n    return 2.0 * A\n",
        expect![[r#"
            def f(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1]):
                out_n1 = empty((), i64)
                out_opened1 = empty((), i64)
                out_room1 = empty((), i64)
                out_room1 = 0
                out_pos1 = empty((n + 1,), i32)
                out_val = empty((out_room1,), f64)
                out_crd1 = empty((out_room1,), i32)
                assert m <= 2147483648, f"a dimension of size {m} of `out` is too large for indices of type i32: write `index=i64`"  # index
                out_opened1 = 0
                out_n1 = 0
                grow(out_room1, out_crd1, out_val, out_n1 + A_n1)
                for out.d0 in range(n):
                    grow(out_room1, out_crd1, out_val, out_n1 + (cast(A_pos1[out.d0 + 1], i64) - cast(A_pos1[out.d0], i64)))
                    assume(0 <= out_opened1)
                    for out.r in range(out_opened1, out.d0 + 1):
                        out_pos1[out.r] = cast(out_n1, i32)
                    out_opened1 = out.d0 + 1
                    for out.d1.p in range(cast(A_pos1[out.d0], i64), cast(A_pos1[out.d0 + 1], i64)):
                        assume(0 <= out.d1.p and out.d1.p < A_n1)
                        assume(0 <= cast(A_crd1[out.d1.p], i64) and cast(A_crd1[out.d1.p], i64) < m)
                        assert 0 <= cast(A_crd1[out.d1.p], i64) and cast(A_crd1[out.d1.p], i64) < m, f"index {cast(A_crd1[out.d1.p], i64)} is out of range for dimension 1 of `out`, which has size {m}"  # index
                        assume(0 <= out_n1)
                        assume(out_n1 < 140737488355328)
                        assume(out_n1 < out_room1)
                        out_crd1[out_n1] = cast(cast(A_crd1[out.d1.p], i64), i32)
                        out_val[out_n1] = 2.0 * A_val[out.d1.p]
                        out_n1 = out_n1 + 1
                assume(0 <= out_opened1)
                for out.r in range(out_opened1, n + 1):
                    out_pos1[out.r] = cast(out_n1, i32)
                out_opened1 = n + 1
                assert out_n1 <= 2147483647, f"`out` has {out_n1} elements, more than indices of type i32 count: write `index=i64`"  # index
                fit(out_room1, out_crd1, out_val, out_n1)
        "#]],
    );
}

#[test]
fn rows_of_products_are_sorted() {
    golden(
        "def f(A: f64[n, p] @ csr, B: f64[p, m] @ csr) -> f64[n, m] @ csr:\n    C = zeros((n, m), f64)\n    \
         for i in range(n):\n        for k in range(p):\n            for j in range(m):\n                \
         C[i, j] += A[i, k] * B[k, j]\n    return C\n",
        expect![[r#"
            def f(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], B_pos1: i32[p + 1], B_crd1: i32[B_n1], B_val: f64[B_n1]):
                C_n1 = empty((), i64)
                C_opened1 = empty((), i64)
                C_room1 = empty((), i64)
                C_room1 = 0
                C_pos1 = empty((n + 1,), i32)
                C_val = empty((C_room1,), f64)
                C_crd1 = empty((C_room1,), i32)
                assert m <= 2147483648, f"a dimension of size {m} of `C` is too large for indices of type i32: write `index=i64`"  # index
                C_opened1 = 0
                C_n1 = 0
                C_row_val = empty((m,), f64)
                C_row_map0 = empty((m,), u8)
                C_row_crd0 = empty((m,), i32)
                C_row_n0 = empty((1,), i32)
                for C_row.at in range(1):
                    C_row_n0[C_row.at] = 0
                for C_row.at in range(m):
                    C_row_map0[C_row.at] = 0
                for i in range(n):
                    for k.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                        assume(0 <= k.p and k.p < A_n1)
                        assume(0 <= cast(A_crd1[k.p], i64) and cast(A_crd1[k.p], i64) < p)
                        for j.p in range(cast(B_pos1[cast(A_crd1[k.p], i64)], i64), cast(B_pos1[cast(A_crd1[k.p], i64) + 1], i64)):
                            assume(0 <= j.p and j.p < B_n1)
                            assume(0 <= cast(B_crd1[j.p], i64) and cast(B_crd1[j.p], i64) < m)
                            assert 0 <= cast(B_crd1[j.p], i64) and cast(B_crd1[j.p], i64) < m, f"index {cast(B_crd1[j.p], i64)} is out of range for dimension 1 of `C`, which has size {m}"  # index
                            if 0 < cast(C_row_map0[cast(B_crd1[j.p], i64)], i64):
                                C_row_val[cast(B_crd1[j.p], i64)] += A_val[k.p] * B_val[j.p]
                            else:
                                assert 0 <= cast(B_crd1[j.p], i64) and cast(B_crd1[j.p], i64) < m, f"index {cast(B_crd1[j.p], i64)} is out of range for dimension 1 of `C`, which has size {m}"  # index
                                assume(cast(C_row_n0[0], i64) < m)
                                C_row_map0[cast(B_crd1[j.p], i64)] = 1
                                C_row_crd0[cast(C_row_n0[0], i64)] = cast(cast(B_crd1[j.p], i64), i32)
                                C_row_n0[0] = cast(cast(C_row_n0[0], i64) + 1, i32)
                                C_row_val[cast(B_crd1[j.p], i64)] = 0.0
                                C_row_val[cast(B_crd1[j.p], i64)] += A_val[k.p] * B_val[j.p]
                    sort(C_row_crd0, 0, cast(C_row_n0[0], i64))
                    grow(C_room1, C_crd1, C_val, C_n1 + cast(C_row_n0[0], i64))
                    assume(0 <= C_opened1)
                    for C.r in range(C_opened1, i + 1):
                        C_pos1[C.r] = cast(C_n1, i32)
                    C_opened1 = i + 1
                    for C.d1.p in range(cast(C_row_n0[0], i64)):
                        assume(0 <= C.d1.p and C.d1.p < m)
                        assume(0 <= cast(C_row_crd0[C.d1.p], i64) and cast(C_row_crd0[C.d1.p], i64) < m)
                        assert 0 <= cast(C_row_crd0[C.d1.p], i64) and cast(C_row_crd0[C.d1.p], i64) < m, f"index {cast(C_row_crd0[C.d1.p], i64)} is out of range for dimension 1 of `C`, which has size {m}"  # index
                        assume(0 <= C_n1)
                        assume(C_n1 < 140737488355328)
                        assume(C_n1 < C_room1)
                        C_crd1[C_n1] = cast(cast(C_row_crd0[C.d1.p], i64), i32)
                        C_val[C_n1] = C_row_val[cast(C_row_crd0[C.d1.p], i64)]
                        C_n1 = C_n1 + 1
                    assume(cast(C_row_n0[0], i64) <= m)
                    for C_row.p in range(cast(C_row_n0[0], i64)):
                        assume(0 <= cast(C_row_crd0[C_row.p], i64) and cast(C_row_crd0[C_row.p], i64) < m)
                        C_row_map0[cast(C_row_crd0[C_row.p], i64)] = 0
                    C_row_n0[0] = 0
                assume(0 <= C_opened1)
                for C.r in range(C_opened1, n + 1):
                    C_pos1[C.r] = cast(C_n1, i32)
                C_opened1 = n + 1
                assert C_n1 <= 2147483647, f"`C` has {C_n1} elements, more than indices of type i32 count: write `index=i64`"  # index
                fit(C_room1, C_crd1, C_val, C_n1)
        "#]],
    );
}

/// Checks that coordinates beyond their type are errors where they are stored, whatever the size of the dimension.
#[test]
fn coordinates_beyond_their_type_are_named() {
    let text = "def f(x: f64[n], step: i64) -> f64[n] @ format(compressed(index=u8)):\n    y = zeros((n,), f64)\n    \
                for i in range(n):\n        if i % step == 0:\n            y[i] = x[i]\n    return y\n";
    let structured = lowered(text).1.expect("it is lowered");
    let run = |step: i64| {
        let x = Value::new(vec![600], Buffer::F64(vec![1.5; 600])).expect("a vector");
        let step = Value::scalar(Buffer::I64(vec![step])).expect("a scalar");
        interp::run(&structured.func, &Inputs { sizes: [("n".to_string(), 600)].into(), params: vec![x, step] })
    };
    assert!(run(1000).is_ok(), "index 0 fits");
    let error = run(7).expect_err("index 259 does not fit").to_string();
    let message = "an element of `y` has index 259 in dimension 0, too large for indices of type u8: write `index=i32`";
    assert!(error.contains(message), "{error}");
}

fn refused(text: &str, message: &str) {
    let (_, structured) = lowered(text);
    let d = structured.err().unwrap_or_else(|| panic!("it is lowered: {text}"));
    assert_eq!((d.0[0].code, d.0[0].message.as_str()), ("storage::assembly", message), "{text}");
}

#[test]
fn writes_of_columns_are_sorted_into_lists_of_rows() {
    golden(
        "def f(A: f64[n, m] @ csr) -> f64[m, n] @ dcsr:\n    C = zeros((m, n), f64)\n    for i in range(n):\n        \
         for j in range(m):\n            C[j, i] += A[i, j]\n    return C\n",
        expect![[r#"
            def f(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1]):
                C_n1 = empty((), i64)
                C_opened1 = empty((), i64)
                C_n0 = empty((), i64)
                C_opened0 = empty((), i64)
                C_room1 = empty((), i64)
                C_parents1 = empty((), i64)
                C_room0 = empty((), i64)
                C_room0 = 0
                C_parents1 = 0
                C_room1 = 0
                C_pos0 = empty((2,), i32)
                C_val = empty((C_room1,), f64)
                C_crd1 = empty((C_room1,), i32)
                C_pos1 = empty((C_parents1,), i32)
                C_crd0 = empty((C_room0,), i32)
                assert m <= 2147483648, f"a dimension of size {m} of `C` is too large for indices of type i32: write `index=i64`"  # index
                assert n <= 2147483648, f"a dimension of size {n} of `C` is too large for indices of type i32: write `index=i64`"  # index
                C_opened0 = 0
                C_n0 = 0
                C_opened1 = 0
                C_n1 = 0
                grow(C_parents1, C_pos1, 1)
                C_list_n0 = empty((), i64)
                C_list_room0 = empty((), i64)
                C_list_room0 = 0
                C_list_val = empty((C_list_room0,), f64)
                C_list_crd1 = empty((C_list_room0,), i32)
                C_list_crd0 = empty((C_list_room0,), i32)
                C_list_n0 = 0
                grow(C_list_room0, C_list_crd0, C_list_crd1, C_list_val, C_list_n0 + A_n1)
                for i in range(n):
                    grow(C_list_room0, C_list_crd0, C_list_crd1, C_list_val, C_list_n0 + (cast(A_pos1[i + 1], i64) - cast(A_pos1[i], i64)))
                    for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        assert 0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m, f"index {cast(A_crd1[j.p], i64)} is out of range for dimension 0 of `C`, which has size {m}"  # index
                        assume(0 <= C_list_n0)
                        assume(C_list_n0 < 140737488355328)
                        assume(C_list_n0 < C_list_room0)
                        C_list_crd0[C_list_n0] = cast(cast(A_crd1[j.p], i64), i32)
                        assume(0 <= C_list_n0 and C_list_n0 < C_list_room0)
                        C_list_crd1[C_list_n0] = cast(i, i32)
                        C_list_val[C_list_n0] = A_val[j.p]
                        C_list_n0 = C_list_n0 + 1
                C_elements = empty((), i64)
                C_order = empty((C_list_n0,), i64)
                order(C_order, C_list_crd0, C_list_crd1, C_list_n0)
                C_elements = 0
                for C.p in range(C_list_n0):
                    if 0 < C_elements and C_list_crd0[C_order[C.p]] == C_list_crd0[C_order[C_elements - 1]] and C_list_crd1[C_order[C.p]] == C_list_crd1[C_order[C_elements - 1]]:
                        C_list_val[C_order[C_elements - 1]] = C_list_val[C_order[C_elements - 1]] + C_list_val[C_order[C.p]]
                    else:
                        C_list_val[C_order[C.p]] = 0.0 + C_list_val[C_order[C.p]]
                        C_order[C_elements] = C_order[C.p]
                        C_elements = C_elements + 1
                for C.q in range(C_elements):
                    assume(0 <= C_opened0)
                    for C.r in range(C_opened0, 1):
                        C_pos0[C.r] = cast(C_n0, i32)
                    C_opened0 = 1
                    if C_n0 == cast(C_pos0[0], i64) or not cast(C_crd0[C_n0 - 1], i64) == cast(C_list_crd0[C_order[C.q]], i64):
                        assume(0 <= C_n0)
                        assume(C_n0 < 140737488355328)
                        grow(C_room0, C_crd0, C_n0 + 1)
                        assume(C_n0 < C_room0)
                        grow(C_parents1, C_pos1, C_n0 + 2)
                        assume(C_n0 + 2 <= C_parents1)
                        C_crd0[C_n0] = cast(cast(C_list_crd0[C_order[C.q]], i64), i32)
                        C_n0 = C_n0 + 1
                    assume(0 <= C_opened1)
                    for C.r in range(C_opened1, C_n0):
                        C_pos1[C.r] = cast(C_n1, i32)
                    C_opened1 = C_n0
                    assume(0 <= C_n1)
                    assume(C_n1 < 140737488355328)
                    grow(C_room1, C_crd1, C_val, C_n1 + 1)
                    assume(C_n1 < C_room1)
                    C_crd1[C_n1] = cast(cast(C_list_crd1[C_order[C.q]], i64), i32)
                    C_val[C_n1] = C_list_val[C_order[C.q]]
                    C_n1 = C_n1 + 1
                del C_order
                del C_elements
                assume(0 <= C_opened0)
                for C.r in range(C_opened0, 2):
                    C_pos0[C.r] = cast(C_n0, i32)
                C_opened0 = 2
                assert C_n0 <= 2147483647, f"`C` has {C_n0} elements, more than indices of type i32 count: write `index=i64`"  # index
                assume(0 <= C_opened1)
                for C.r in range(C_opened1, C_n0 + 1):
                    C_pos1[C.r] = cast(C_n1, i32)
                C_opened1 = C_n0 + 1
                assert C_n1 <= 2147483647, f"`C` has {C_n1} elements, more than indices of type i32 count: write `index=i64`"  # index
                fit(C_room0, C_crd0, C_n0)
                fit(C_parents1, C_pos1, C_n0 + 1)
                fit(C_room1, C_crd1, C_val, C_n1)
        "#]],
    );
}

#[test]
fn writes_of_columns_are_counted_and_filled_into_rows() {
    golden(
        "def f(A: f64[n, m] @ csr) -> f64[m, n] @ csr:\n    C = zeros((m, n), f64)\n    for i in range(n):\n        \
         for j in range(m):\n            C[j, i] += A[i, j]\n    return C\n",
        expect![[r#"
            def f(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1]):
                C_next1 = empty((), i64)
                C_total1 = empty((), i64)
                C_n1 = empty((), i64)
                C_room1 = empty((), i64)
                C_room1 = 0
                C_pos1 = empty((m + 1,), i32)
                C_val = empty((C_room1,), f64)
                C_crd1 = empty((C_room1,), i32)
                assert n <= 2147483648, f"a dimension of size {n} of `C` is too large for indices of type i32: write `index=i64`"  # index
                C_n1 = 0
                C_total1 = 0
                C_next1 = 0
                for C_pos1.q in range(m + 1):
                    assume(0 <= C_pos1.q and C_pos1.q < m + 1)
                    C_pos1[C_pos1.q] = 0
                for i in range(n):
                    for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        assert 0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m, f"index {cast(A_crd1[j.p], i64)} is out of range for dimension 0 of `C`, which has size {m}"  # index
                        C_total1 = C_total1 + 1
                        C_pos1[cast(A_crd1[j.p], i64) + 1] = cast(cast(C_pos1[cast(A_crd1[j.p], i64) + 1], i64) + 1, i32)
                assert C_total1 <= 2147483647, f"`C` has {C_total1} elements, more than indices of type i32 count: write `index=i64`"  # index
                for C_pos1.r in range(m):
                    C_pos1[C_pos1.r + 1] = cast(cast(C_pos1[C_pos1.r + 1], i64) + cast(C_pos1[C_pos1.r], i64), i32)
                assume(0 <= C_n1)
                assume(C_n1 < 140737488355328)
                grow(C_room1, C_crd1, C_val, C_n1 + C_total1)
                assume(C_n1 + C_total1 <= C_room1)
                C_n1 = C_total1
                for i in range(n):
                    for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m)
                        assert 0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < m, f"index {cast(A_crd1[j.p], i64)} is out of range for dimension 0 of `C`, which has size {m}"  # index
                        C_next1 = cast(C_pos1[cast(A_crd1[j.p], i64)], i64)
                        assume(0 <= C_next1 and C_next1 < C_n1)
                        C_crd1[C_next1] = cast(i, i32)
                        assume(0 <= C_next1 and C_next1 < C_room1)
                        C_val[C_next1] = 0.0 + A_val[j.p]
                        C_pos1[cast(A_crd1[j.p], i64)] = cast(C_next1 + 1, i32)
                for C_pos1.r in range(m):
                    C_pos1[m - C_pos1.r] = cast(cast(C_pos1[m - C_pos1.r - 1], i64), i32)
                C_pos1[0] = 0
                fit(C_room1, C_crd1, C_val, C_n1)
        "#]],
    );
}

#[test]
fn sorted_writes_are_reported_with_the_reason() {
    let warned = |format: &str, body: &str| {
        let head = format!("def f(A: f64[n, n] @ csr) -> f64[n, n] @ {format}:\n    C = zeros((n, n), f64)");
        let (_, structured) = lowered(&format!("{head}\n    {body}\n    return C\n"));
        let warnings = structured.expect("it is lowered").warnings;
        let [d] = &warnings[..] else { panic!("{warnings:?}") };
        assert_eq!(d.code, "structured::sorted");
        d.message.clone()
    };
    // (Each element of `csr` is written once here, so that rows are counted and filled.)
    assert_eq!(
        warned("dcsr", "for i in range(n):\n        for j in range(n):\n            C[j, i] = A[i, j]"),
        "the writes of `C` are sorted: they are not in the order of dimension 0, which level 0 stores"
    );
    let twice = "for k in range(2):\n        for i in range(n):\n            for j in range(n):\n                ";
    assert_eq!(
        warned("csr", &format!("{twice}C[i, j] += A[i, j]")),
        "the writes of `C` are sorted: they are not in the order of dimension 0, which level 0 stores"
    );
}

#[test]
fn other_programs_are_refused_with_the_missing_fact() {
    refused(
        "def f(A: f64[n, n] @ csr) -> f64[n, n] @ csr:\n    C = zeros((n, n), f64)\n    for i in range(n):\n        \
         for j in range(n):\n            C[j, i] += A[i, j]\n            C[i, j] = A[i, j]\n    return C\n",
        "cannot assemble `C`: elements are written in no order of its levels, and by different operators",
    );
    refused(
        "def f(A: f64[n, n] @ csr) -> f64[n, n] @ csr:\n    C = zeros((n, n), f64)\n    for i in range(n):\n        \
         for j in range(n):\n            C[(i + j) % n, i] = A[i, j]\n            C[0, 0] = A[i, j]\n    return C\n",
        "cannot assemble `C`: elements are written in no order of its levels, and may be assigned several times",
    );
    refused(
        "def f(A: f64[n, n] @ csr) -> f64[n]:\n    C: f64[n, n] @ csr = zeros((n, n), f64)\n    y = zeros((n,), f64)\n    \
         for i in range(n):\n        for j in range(n):\n            C[i, j] = A[i, j]\n            y[i] += C[0, i]\n    \
         return y\n",
        "`C` is read between writes to it, while it is assembled",
    );
    let twice = "for i in range(n):\n        for j in range(n):\n            C[i, j] = A[i, j]\n";
    refused(
        &format!(
            "def f(A: f64[n, n] @ csr) -> f64[n, n] @ format(dense, compressed, fill=inf):\n    \
             C = zeros((n, n), f64)\n    {twice}    return C\n"
        ),
        "cannot assemble `C`: it is 0 everywhere at first, while its fill is inf",
    );
    refused(
        &format!(
            "def f(A: f64[n, n] @ csr) -> f64[n, n] @ csr:\n    C = zeros((n, n), f64)\n    {twice}    C += A\n    \
             return C\n"
        ),
        "cannot assemble `C`: several statements write its elements, one after the other, and by different operators",
    );
}
