//! Estimates of changed programs by a model that remembers the loops of earlier ones.

use crate::primitives::common::entry;
use std::sync::Arc;
use taffeta_analysis::tree;
use taffeta_ast::build::{branch, local, var_def};
use taffeta_ast::{DType, Expr, Extent, Func, LoopProps, Parallel, Stmt, StmtId, StmtKind, print};
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::{Target, rules};
use taffeta_schedule::testing::LoopMemo;

const PROGRAM: &str = "
def f(q: f32[n, 64], k: f32[n, 64], v: inout[f32[n, 64]], t: inout[f32[n, n]]):
    for i in range(n):
        score = zeros((65,), f32)
        for j in range(65):
            if i + j < n:
                for c in range(64):
                    score[j] += q[i, c] * k[i + j, c]
        for j in range(65):
            if i + j < n:
                v[i] += score[j] * k[i + j]
    for i in range(n):
        for j in range(i):
            for l in range(j, n):
                t[i, j] += t[l, i] * exp(t[l, j])
        for j in range(n):
            t[i, j] = t[i, j] / 2.0
    for i in range(n):
        for c in range(64):
            v[i, c] += 2.0 * k[i, c]
        for c in range(64):
            v[i, c] *= q[i, c] + k[i, c]
";

/// Returns variants of the program that change the place of the statements in a loop: threads, other iterations, a
/// condition, a large array, or no first statement.
fn others(func: &Func, id: StmtId) -> Vec<Func> {
    let Some(l) = tree::find(&func.body, id) else { return Vec::new() };
    let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } = l.kind() else {
        return Vec::new();
    };
    let with = |by: [i64; 2], props: &LoopProps, body: Stmt| {
        let [begin, end] = [(begin, by[0]), (end, by[1])].map(|(e, by)| e.plus(&Expr::int(by)));
        let (extent, props) = (Extent::Range { begin, end, step: step.clone() }, props.clone());
        tree::replace(func, id, &l.with_kind(StmtKind::For { iter: iter.clone(), extent, props, body }))
    };
    let threads = LoopProps { parallel: Some(Parallel::default()), ..props.clone() };
    let large = local("large", DType::F64, [&Expr::int(1 << 22)]);
    let sometimes = branch(&Expr::var(iter).less(&Expr::int(2)), body.clone(), None);
    let mut out = vec![
        with([0, 0], &threads, body.clone()),
        with([3, 0], props, body.clone()),
        with([3, 3], props, body.clone()),
        with([0, 0], props, sometimes),
        with([0, 0], props, var_def(&large, body.clone())),
    ];
    if let StmtKind::Seq(all) = body.kind() {
        let rest = all.iter().enumerate().map(|(k, s)| if k == 0 { Stmt::nop() } else { s.clone() });
        out.push(with([0, 0], props, body.with_kind(StmtKind::Seq(rest.collect()))));
    }
    out
}

#[test]
fn incremental_estimates_equal_fresh_ones() {
    let (func, _) = entry(PROGRAM);
    // The tensors fit into the first cache level, and into none.
    for n in [7, 100_000] {
        let target = Target { sizes: [("n".to_string(), n)].into(), ..Target::portable(2) };
        let mut s = Schedule::new(func.clone()).aimed_at(Arc::new(target.clone()));
        let mut programs = vec![func.clone()];
        for rule in rules() {
            s.call(rule.method, &[]).unwrap_or_else(|r| panic!("{}", r.message));
            programs.push(s.func().clone());
        }
        for new in [LoopMemo::before_marks, LoopMemo::during_marks] {
            let mut memo = new(&target);
            let mut check = |func: &Func| {
                let fresh = new(&target).estimate(func);
                assert_eq!(memo.estimate(func).to_bits(), fresh.to_bits(), "{n}: {}", print::func(func));
            };
            for func in programs.iter().step_by(4) {
                check(func);
                let mut loops = Vec::new();
                func.body.walk(&mut |s| loops.push(s.id()));
                for other in loops.into_iter().flat_map(|l| others(func, l)) {
                    check(&other);
                    check(func);
                }
            }
        }
    }
}
