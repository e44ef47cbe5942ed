//! Workspaces, local tensors into which elements are inserted: the copies that `cache` and `cache_reduction` make of
//! structured tensors, and the tensors that `set_format` stores so.

use expect_test::expect;
use std::sync::Arc;
use taffeta_analysis::pass::simplify;
use taffeta_ast::format::Format;
use taffeta_ast::gradient::Tape;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::stmt::Role;
use taffeta_ast::{Buffer, Func, StmtKind, Tensor, Value, print};
use taffeta_autodiff::{Kind, Request, differentiate};
use taffeta_schedule::{Arg, Handle, Refusal, Schedule};
use taffeta_structured::lower;
use testkit::{lowers, programs};

mod shapes;
use lowers::lowers;

type Steps = fn(&mut Schedule) -> Result<(), Refusal>;

/// Returns the program before and after the steps.
fn scheduled(text: &str, steps: Steps) -> (Func, Func) {
    let func = programs::elaborate(text);
    let mut s = Schedule::new(func.clone()).lowered_by(lowers);
    steps(&mut s).unwrap_or_else(|r| panic!("{}\n{text}", r.message));
    (func, simplify::run(s.func()))
}

fn refused(text: &str, steps: Steps) -> String {
    let mut s = Schedule::new(programs::elaborate(text)).lowered_by(lowers);
    match steps(&mut s) {
        Ok(()) => panic!("it is taken\n{}", print::func(s.func())),
        Err(r) => r.message.clone(),
    }
}

/// Returns the text of the lowered program after the steps. Checks that it computes the same as the program.
fn shown(text: &str, steps: Steps) -> String {
    let (func, after) = scheduled(text, steps);
    let lowered = lower(&after).unwrap_or_else(|e| panic!("{}\n{}", e.0[0].message, print::func(&after)));
    taffeta_ast::validate::dense(&lowered.func).unwrap_or_else(|e| panic!("{e}\n{}", print::func(&lowered.func)));
    for seed in 0..40 {
        programs::equal(&after, &lowered, seed);
        if keeps(&func, &after) {
            programs::equal(&func, &lowered, seed);
        }
    }
    print::func(&simplify::run(&lowered.func))
}

/// Returns whether the steps preserve the formats of a program's own tensors: the format determines which products with
/// infinities are 0.
fn keeps(before: &Func, after: &Func) -> bool {
    let mut own: Vec<Arc<Tensor>> = Vec::new();
    before.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            own.push(tensor.clone());
        }
    });
    let mut keeps = true;
    after.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            keeps &= own.iter().all(|t| t.symbol != tensor.symbol || t.format == tensor.format);
        }
    });
    keeps
}

const MASKED: &str = "
def f(A: f64[n, p] @ csr, B: f64[p, m] @ csr, C: f64[n, m] @ csr) -> f64:
    s: f64 = 0.0
    for i in range(n):
        for k in range(p):
            for j in range(m):
                s += A[i, k] * B[k, j] * C[i, locate(j)]
    return s
";

#[test]
fn rows_are_cached_in_workspaces() {
    let text = shown(MASKED, |s| s.call("cache", &[Arg::from("k"), Arg::from("C")]).map(drop));
    expect![[r#"
        def f(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], B_pos1: i32[p + 1], B_crd1: i32[B_n1], B_val: f64[B_n1], C_pos1: i32[n + 1], C_crd1: i32[C_n1], C_val: f64[C_n1]) -> f64:
            s = empty((), f64)
            C_cache_val = empty((m,), f64)
            C_cache_map1 = empty((m,), u8)
            C_cache_crd1 = empty((m,), i32)
            C_cache_n1 = empty((1,), i32)
            C_cache_n1[0] = 0
            for C_cache.at in range(m):
                C_cache_map1[C_cache.at] = 0
            s = 0.0
            for i in range(n):
                if 0 < m:
                    for C.cache.d1.p in range(cast(C_pos1[i], i64), cast(C_pos1[i + 1], i64)):
                        assume(0 <= C.cache.d1.p and C.cache.d1.p < C_n1)
                        assume(0 <= cast(C_crd1[C.cache.d1.p], i64) and cast(C_crd1[C.cache.d1.p], i64) < m)
                        assume(cast(C_cache_n1[0], i64) < m)
                        C_cache_map1[cast(C_crd1[C.cache.d1.p], i64)] = 1
                        C_cache_crd1[cast(C_cache_n1[0], i64)] = C_crd1[C.cache.d1.p]
                        C_cache_n1[0] = cast(cast(C_cache_n1[0], i64) + 1, i32)
                        C_cache_val[cast(C_crd1[C.cache.d1.p], i64)] = C_val[C.cache.d1.p]
                for k.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                    assume(0 <= k.p and k.p < A_n1)
                    assume(0 <= cast(A_crd1[k.p], i64) and cast(A_crd1[k.p], i64) < p)
                    if 0 < m:
                        for j.p in range(cast(B_pos1[cast(A_crd1[k.p], i64)], i64), cast(B_pos1[cast(A_crd1[k.p], i64) + 1], i64)):
                            assume(0 <= j.p and j.p < B_n1)
                            assume(0 <= cast(B_crd1[j.p], i64) and cast(B_crd1[j.p], i64) < m)
                            if 0 < cast(C_cache_map1[cast(B_crd1[j.p], i64)], i64):
                                s += A_val[k.p] * B_val[j.p] * C_cache_val[cast(B_crd1[j.p], i64)]
                assume(cast(C_cache_n1[0], i64) <= m)
                for C_cache.p in range(cast(C_cache_n1[0], i64)):
                    assume(0 <= cast(C_cache_crd1[C_cache.p], i64) and cast(C_cache_crd1[C_cache.p], i64) < m)
                    C_cache_map1[cast(C_cache_crd1[C_cache.p], i64)] = 0
                C_cache_n1[0] = 0
            return s
    "#]].assert_eq(&text);
}

const TRIANGLES: &str = "
def f(A: f64[n, n] @ csr) -> f64:
    s: f64 = 0.0
    for i in range(n):
        t = zeros((n,), f64)
        for j in range(n):
            t[j] = A[i, j]
        for k in range(n):
            for j in range(n):
                s += A[i, k] * A[k, j] * t[j]
    return s
";

#[test]
fn copies_store_only_nonzero_elements() {
    let text = shown(TRIANGLES, |s| s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")]).map(drop));
    expect![[r#"
        def f(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1]) -> f64:
            s = empty((), f64)
            t_val = empty((n,), f64)
            t_map0 = empty((n,), u8)
            t_crd0 = empty((n,), i32)
            t_n0 = empty((1,), i32)
            t_n0[0] = 0
            for t.at in range(n):
                t_map0[t.at] = 0
            s = 0.0
            for i in range(n):
                for j.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                    assume(0 <= j.p and j.p < A_n1)
                    assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < n)
                    assume(cast(t_n0[0], i64) < n)
                    t_map0[cast(A_crd1[j.p], i64)] = 1
                    t_crd0[cast(t_n0[0], i64)] = A_crd1[j.p]
                    t_n0[0] = cast(cast(t_n0[0], i64) + 1, i32)
                    t_val[cast(A_crd1[j.p], i64)] = A_val[j.p]
                for k.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                    assume(0 <= k.p and k.p < A_n1)
                    assume(0 <= cast(A_crd1[k.p], i64) and cast(A_crd1[k.p], i64) < n)
                    for j.p in range(cast(A_pos1[cast(A_crd1[k.p], i64)], i64), cast(A_pos1[cast(A_crd1[k.p], i64) + 1], i64)):
                        assume(0 <= j.p and j.p < A_n1)
                        assume(0 <= cast(A_crd1[j.p], i64) and cast(A_crd1[j.p], i64) < n)
                        if 0 < cast(t_map0[cast(A_crd1[j.p], i64)], i64):
                            s += A_val[k.p] * A_val[j.p] * t_val[cast(A_crd1[j.p], i64)]
                assume(cast(t_n0[0], i64) <= n)
                for t.p in range(cast(t_n0[0], i64)):
                    assume(0 <= cast(t_crd0[t.p], i64) and cast(t_crd0[t.p], i64) < n)
                    t_map0[cast(t_crd0[t.p], i64)] = 0
                t_n0[0] = 0
            return s
    "#]].assert_eq(&text);
}

const PRODUCT: &str = "
def f(A: f64[n, p] @ csr, B: f64[p, m] @ csr) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        t = zeros((m,), f64)
        for k in range(p):
            for j in range(m):
                t[j] += A[i, k] * B[k, j]
        for j in range(m):
            y[i] += t[j] * t[j]
    return y
";

#[test]
fn sums_are_inserted_into_workspaces() {
    let text = shown(PRODUCT, |s| s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")]).map(drop));
    expect![[r#"
        def f(A_pos1: i32[n + 1], A_crd1: i32[A_n1], A_val: f64[A_n1], B_pos1: i32[p + 1], B_crd1: i32[B_n1], B_val: f64[B_n1]) -> f64[n]:
            y = empty((n,), f64)
            t_val = empty((m,), f64)
            t_map0 = empty((m,), u8)
            t_crd0 = empty((m,), i32)
            t_n0 = empty((1,), i32)
            t_n0[0] = 0
            for t.at in range(m):
                t_map0[t.at] = 0
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range(n):
                for k.p in range(cast(A_pos1[i], i64), cast(A_pos1[i + 1], i64)):
                    assume(0 <= k.p and k.p < A_n1)
                    assume(0 <= cast(A_crd1[k.p], i64) and cast(A_crd1[k.p], i64) < p)
                    for j.p in range(cast(B_pos1[cast(A_crd1[k.p], i64)], i64), cast(B_pos1[cast(A_crd1[k.p], i64) + 1], i64)):
                        assume(0 <= j.p and j.p < B_n1)
                        assume(0 <= cast(B_crd1[j.p], i64) and cast(B_crd1[j.p], i64) < m)
                        if 0 < cast(t_map0[cast(B_crd1[j.p], i64)], i64):
                            t_val[cast(B_crd1[j.p], i64)] += A_val[k.p] * B_val[j.p]
                        else:
                            assume(cast(t_n0[0], i64) < m)
                            t_map0[cast(B_crd1[j.p], i64)] = 1
                            t_crd0[cast(t_n0[0], i64)] = B_crd1[j.p]
                            t_n0[0] = cast(cast(t_n0[0], i64) + 1, i32)
                            t_val[cast(B_crd1[j.p], i64)] = 0.0
                            t_val[cast(B_crd1[j.p], i64)] += A_val[k.p] * B_val[j.p]
                for j.p in range(cast(t_n0[0], i64)):
                    assume(0 <= j.p and j.p < m)
                    assume(0 <= cast(t_crd0[j.p], i64) and cast(t_crd0[j.p], i64) < m)
                    y[i] += t_val[cast(t_crd0[j.p], i64)] * t_val[cast(t_crd0[j.p], i64)]
                assume(cast(t_n0[0], i64) <= m)
                for t.p in range(cast(t_n0[0], i64)):
                    assume(0 <= cast(t_crd0[t.p], i64) and cast(t_crd0[t.p], i64) < m)
                    t_map0[cast(t_crd0[t.p], i64)] = 0
                t_n0[0] = 0
            return y
    "#]].assert_eq(&text);
}

/// Programs with a workspace `t`, and the steps that make it.
const PROGRAMS: &[(&str, Steps)] = &[
    // Written twice, and read where it is written.
    (
        "
def f(A: f64[n, m] @ FORMAT, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        t = zeros((m,), f64)
        for j in range(m):
            t[j] = A[i, j]
        for j in range(m):
            t[j] = t[j] * 2.0
        for j in range(m):
            t[j] += A[i, j] * x[j]
        for j in range(m):
            y[i] += t[j] * x[j]
    return y
",
        |s| s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")]).map(drop),
    ),
    // All rows in one workspace, and read in another order.
    (
        "
def f(A: f64[n, m] @ FORMAT, x: f64[m]) -> f64[m]:
    y = zeros((m,), f64)
    t = zeros((n, m), f64)
    for i in range(n):
        for j in range(m):
            t[i, j] = A[i, j] * x[j]
    for i in range(n):
        for j in range(m):
            y[j] += t[i, j] * A[i, j]
    return y
",
        |s| s.call("set_format", &[Arg::from("t"), Arg::from("format(dense, bytemap)")]).map(drop),
    ),
    // The fill of a minimum.
    (
        "
def f(A: f64[n, m] @ FORMAT, x: f64[m]) -> f64[n]:
    y = full((n,), inf, f64)
    for i in range(n):
        t = full((m,), inf, f64)
        for j in range(m):
            if A[i, j] != 0.0:
                t[j] = min(t[j], A[i, j] + x[j])
        for j in range(m):
            y[i] = min(y[i], t[j])
    return y
",
        |s| s.call("set_format", &[Arg::from("t"), Arg::from("format(bytemap, fill=inf)")]).map(drop),
    ),
    // At computed indices.
    (
        "
def f(A: f64[n, m] @ FORMAT, x: f64[m], k: i64[m]) -> f64[n]:
    y = zeros((n,), f64)
    t = zeros((8,), f64)
    for i in range(n):
        for j in range(m):
            t[k[j]] += A[i, j]
        for j in range(m):
            y[i] += t[k[j]] * x[j]
    for i in range(n):
        for l in range(8):
            y[i] += t[l]
    return y
",
        |s| s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")]).map(drop),
    ),
    // Rows on threads.
    (
        "
def f(A: f64[n, m] @ FORMAT, B: f64[m, m] @ FORMAT, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        t = zeros((m,), f64)
        for k in range(m):
            for j in range(m):
                t[j] += A[i, k] * B[k, j]
        for j in range(m):
            y[i] += t[j] * x[j]
    return y
",
        |s| {
            s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")])?;
            s.call("parallelize", &[Arg::from("i")]).map(drop)
        },
    ),
    // A row of another tensor.
    (
        "
def f(A: f64[n, m] @ FORMAT, B: f64[n, m] @ FORMAT, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * B[i, j] * x[j]
    return y
",
        |s| s.call("cache", &[Arg::from("j"), Arg::from("B")]).map(drop),
    ),
    // In both cases of a search.
    (
        "
def f(A: f64[n, m] @ FORMAT, x: f64[m], k: i64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            c = A[i, k[j] % m]
            t = zeros((m,), f64)
            for l in range(m):
                t[l] = A[i, l] * c
            for l in range(m):
                y[i] += t[l] * x[l] + c * x[j]
    return y
",
        |s| s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")]).map(drop),
    ),
    // Reductions into a tensor over another one's pattern.
    (
        "
def f(A: f64[n, m] @ FORMAT, x: f64[m], B: f64[n, m]) -> f64[n]:
    y = zeros((n,), f64)
    C: f64[n, m] @ pattern(A) = zeros((n, m), f64)
    for i in range(n):
        for l in range(3):
            for j in range(m):
                C[i, j] += A[i, j] * x[j]
    for i in range(n):
        for j in range(m):
            y[i] += C[i, j] * B[i, j]
    return y
",
        |s| s.call("cache_reduction", &[Arg::from("l"), Arg::from("C")]).map(drop),
    ),
];

const FORMATS: &[&str] = &[
    "csr",
    "dcsr",
    "coo",
    "band",
    "vbl",
    "rle",
    "hashmap",
    "format(dense, bytemap)",
    "format(dense, bitmap)",
    "ell",
    "bcsr(2, 3)",
    "csc",
];

#[test]
fn programs_with_workspaces_compute_the_same() {
    let (mut taken, mut not) = (0, Vec::new());
    for (k, (text, steps)) in PROGRAMS.iter().enumerate() {
        for format in FORMATS {
            let text = text.replace("FORMAT", format);
            let func = programs::elaborate(&text);
            let mut s = Schedule::new(func.clone()).lowered_by(lowers);
            if let Err(r) = steps(&mut s) {
                not.push(format!("{k} {format}: {}", r.message));
                continue;
            }
            taken += 1;
            let after = simplify::run(s.func());
            let lowered = lower(&after).unwrap_or_else(|e| panic!("{}\n{text}", e.0[0].message));
            taffeta_ast::validate::dense(&lowered.func)
                .unwrap_or_else(|e| panic!("{e}\n{text}{}", print::func(&lowered.func)));
            for seed in 0..30 {
                let result = std::panic::catch_unwind(|| programs::equal(&after, &lowered, seed));
                assert!(result.is_ok(), "{text}\n{}", print::func(&after));
                if !keeps(&func, &after) {
                    continue;
                }
                let result = std::panic::catch_unwind(|| programs::equal(&func, &lowered, seed));
                assert!(result.is_ok(), "the program before\n{text}\n{}", print::func(&after));
            }
        }
    }
    println!("{taken} taken, {not:#?}");
    assert!(taken > 80, "{taken} taken, {not:#?}");
}

/// Checks workspaces that the program declares, without a schedule, and their gradients.
#[test]
fn programs_declare_workspaces() {
    let text = "def f(A: f64[n, p] @ csr, B: f64[p, m] @ csr, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        t: f64[m] @ format(bytemap) = zeros((m,), f64)
        for k in range(p):
            for j in range(m):
                t[j] += A[i, k] * B[k, j]
        for j in range(m):
            y[i] += t[j] * t[j] * x[j]
    return y
";
    let func = programs::elaborate(text);
    let wrt = ["A", "B", "x"].map(String::from);
    let gradient =
        differentiate(&Request::new(Kind::ValueAndVjp, "df", &func, &wrt)).unwrap_or_else(|e| panic!("{e:?}"));
    for func in [func, gradient] {
        let func = simplify::run(&func);
        let lowered = lower(&func).unwrap_or_else(|e| panic!("{}\n{}", e.0[0].message, print::func(&func)));
        for seed in 0..40 {
            programs::equal(&func, &lowered, seed);
        }
    }
}

/// Checks that a workspace holds only elements that were written: a declaration, which steps may move, writes nothing.
#[test]
fn workspaces_contain_only_written_elements() {
    let text = "def f(A: f64[n] @ format(compressed)) -> f64:
    s: f64 = 0.0
    t: f64[n] @ format(bytemap) = empty((n,), f64)
    for i in range(n):
        t[i] += A[i] + 1.0
    for i in range(n):
        s += t[i]
    return s
";
    let run = |text: &str| {
        let func = programs::elaborate(text);
        let dense = Value::new(vec![2], Buffer::F64(vec![1.0, 2.0])).expect("it fits");
        let inputs = Inputs { sizes: [("n".to_string(), 2)].into(), params: vec![dense] };
        interp::run(&func, &inputs).map(|o| o.results[0].numbers()).map_err(|e| e.to_string())
    };
    assert!(run(text).is_err_and(|e| e.contains("t[0]") || e.contains("`t`")), "{:?}", run(text));
    assert_eq!(run(&text.replace("empty", "zeros")), Ok(vec![5.0]));
}

/// Checks that the tapes of a gradient can be given a format, like other local tensors.
#[test]
fn tapes_can_have_formats() {
    let text = "def f(A: f64[n, m] @ csr, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        t = zeros((m,), f64)
        for j in range(m):
            t[j] = A[i, j] * x[j]
        for j in range(m):
            t[j] = t[j] * t[j]
        for j in range(m):
            y[i] += t[j] * t[j]
    return y
";
    let func = programs::elaborate(text);
    let wrt = ["A", "x"].map(String::from);
    let request = Request { tape: Tape::All, ..Request::new(Kind::Vjp, "df", &func, &wrt) };
    let gradient = differentiate(&request).unwrap_or_else(|e| panic!("{e:?}"));
    let mut tapes = Vec::new();
    gradient.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && tensor.role == Role::Tape
            && tensor.format.is_dense()
            && tensor.ndim() > 0
        {
            tapes.push((tensor.symbol.clone(), tensor.ndim()));
        }
    });
    assert!(!tapes.is_empty(), "{}", print::func(&gradient));
    for (tape, ndim) in tapes {
        let mut s = Schedule::new(gradient.clone()).lowered_by(lowers);
        let format = Format::workspace(ndim, None).to_string();
        let args = [Arg::from(taffeta_schedule::Value::Handle(Handle::Tensor(tape))), Arg::from(format.as_str())];
        s.call("set_format", &args).unwrap_or_else(|r| panic!("{}\n{}", r.message, print::func(&gradient)));
        let after = simplify::run(s.func());
        let lowered = lower(&after).unwrap_or_else(|e| panic!("{}\n{}", e.0[0].message, print::func(&after)));
        for seed in 0..40 {
            programs::equal(&after, &lowered, seed);
        }
    }
}

const COPIED: &str = "
def f(A: f64[n, m] @ csr, R: f64[n, m] @ rle, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    t = zeros((m,), f64)
    for i in range(n):
        for j in range(m):
            t[j] += A[i, j]
        for j in range(m):
            y[i] += t[j] * x[j]
    return y
";

#[test]
fn invalid_formats_are_refused() {
    let found = [
        refused(COPIED, |s| s.call("set_format", &[Arg::from("A"), Arg::from("dense")]).map(drop)),
        refused(COPIED, |s| s.call("set_format", &[Arg::from("t"), Arg::from("csr")]).map(drop)),
        refused(COPIED, |s| s.call("set_format", &[Arg::from("t"), Arg::from("pattern(A)")]).map(drop)),
        refused(COPIED, |s| s.call("set_format", &[Arg::from("t"), Arg::from("pattern(x)")]).map(drop)),
        refused(COPIED, |s| s.call("set_format", &[Arg::from("t"), Arg::from("format(bytemap, fill=a)")]).map(drop)),
        refused(COPIED, |s| {
            s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")])?;
            s.call("parallelize", &[Arg::from("j#1")]).map(drop)
        }),
        refused(COPIED, |s| {
            s.call("parallelize", &[Arg::from("j#1")])?;
            s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")]).map(drop)
        }),
        refused(WRITTEN, |s| s.call("cache", &[Arg::from("l"), Arg::from("C")]).map(drop)),
        refused(WRITTEN, |s| s.call("set_format", &[Arg::from("C"), Arg::from("dense")]).map(drop)),
    ];
    expect![[r#"
        `A` is a parameter or a result: its annotation determines the format
        a local tensor cannot have the format `csr`
        cannot store a tensor of shape [m] in the pattern of `A`, whose shape is [n, m]
        `x` is dense, and has no pattern
        the fill `a` is not a value of type f64
        cannot lower loops over stored elements of `t` after `parallelize`: the loop `j` cannot be parallel or vectorised: it inserts into `t`, declared outside of it
        cannot lower `t`, which `set_format` stores as format(bytemap): the loop `j` cannot be parallel or vectorised: it inserts into `t`, declared outside of it
        cannot cache the structured tensor `C`, which the statement writes
        `C` would not keep its values: one stored value of format(dense, runlength) stands for several elements"#]].assert_eq(&found.join("\n"));
}

const WRITTEN: &str = "
def f(A: f64[n, m] @ rle, x: f64[m], B: f64[n, m]) -> f64[n]:
    y = zeros((n,), f64)
    C: f64[n, m] @ pattern(A) = zeros((n, m), f64)
    for i in range(n):
        for l in range(3):
            for j in range(m):
                C[i, j] += A[i, j] * x[j]
    for i in range(n):
        for j in range(m):
            y[i] += C[i, j] * B[i, j]
    return y
";

/// Checks that writing the fill outside of the pattern has no effect, and writing another value is an error.
#[test]
fn writes_of_the_fill_outside_of_the_pattern_are_dropped() {
    let text = |a: &str, b: &str| {
        format!(
            "def f(A: f64[n, m] @ {a}, B: f64[n, m] @ {b}) -> f64[n, m] @ pattern(A):\n    C = zeros((n, m), f64)\n    for i in range(n):\n        for j in range(m):\n            C[i, j] = A[i, j] + B[i, j] * A[i, j]\n            C[i, j] += B[i, j] * A[i, j]\n            C[i, j] *= B[i, j]\n    return C\n"
        )
    };
    for a in ["csr", "dcsr", "coo", "format(dense, bytemap)", "bcsr(2, 3)", "ell"] {
        for b in FORMATS {
            let text = text(a, b);
            let func = programs::elaborate(&text);
            let lowered = lower(&func).unwrap_or_else(|e| panic!("{}\n{text}", e.0[0].message));
            for seed in 0..20 {
                programs::compared(&func, &lowered, seed, false);
            }
        }
    }
    // If B has elements outside of A's pattern, the error names the element; otherwise there is no error.
    for a in ["csr", "dcsr", "hashmap"] {
        for b in ["csr", "dcsr", "coo", "csc"] {
            let text = text(a, b).replace(" * A[i, j]\n            C[i, j] +=", "\n            C[i, j] +=");
            let func = programs::elaborate(&text);
            let lowered = lower(&func).unwrap_or_else(|e| panic!("{}\n{text}", e.0[0].message));
            for seed in 0..60 {
                programs::compared(&func, &lowered, seed, false);
            }
        }
    }
}

/// Checks a region that leaves no access to a workspace: the rest of its scope is lowered as usual.
#[test]
fn workspaces_unread_in_a_region() {
    for rest in ["y[i2, i1] *= x[i2]", "for l in range(m):\n                    y[i2, l] += x[l] * A[i1, l]"] {
        let text = format!(
            "
def f(A: f64[m, m] @ format(compressed, compressed), B: f64[m, m] @ pattern(A), x: f64[m]) -> (f64, f64[m, m] @ \
             pattern(A, drop=True)):
    s = cast(0.0, f64)
    y: f64[m, m] @ pattern(A, drop=True) = zeros((m, m), f64)
    for i1 in range(m):
        for i2 in range(m):
            t: f64[1, 1] @ format(dense, bytemap) = empty((1, 1), f64)
            t[0, 0] = A[i1, i2]
            if B[i1, (i2 + i2) % m] < 2.5:
                {rest}
            else:
                s = t[0, 0]
    return s, y
"
        );
        shown(&text, |_| Ok(()));
    }
}
