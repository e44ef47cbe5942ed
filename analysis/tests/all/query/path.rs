//! Paths to statements, and the time and memory that they take.

use rustc_hash::FxHashSet;
use taffeta_analysis::query::reference::{Path, Reference, Step, references};
use taffeta_analysis::testing::path::{Node, last, up_to};
use taffeta_ast::build::{Builder, assert, block, branch, local, looped, store, var_def};
use taffeta_ast::{DType, Expr, Func, Stmt, StmtKind, Symbol};

/// Returns a program of nested declarations with stores and some assertions, in a loop and a branch.
fn chain(n: i64) -> Func {
    let mut b = Builder::new("f");
    let size = b.size("n");
    let y = b.result("y", DType::F64, [&size]);
    let (i, one) = (Symbol::new("i"), Expr::float(1.0, DType::F64));
    let at = Expr::var(&i);
    let mut body = store(&y, [&at], &one);
    for k in 0..n {
        let t = local("t", DType::F64, []);
        let mut inside = vec![store(&t, [], &one), store(&y, [&at], &t.load([])), body];
        if k % 3 == 0 {
            inside.insert(1, assert(&Expr::int(k).less(&size), Vec::new()));
        }
        body = var_def(&t, block(inside));
    }
    b.finish(looped(&i, &size, branch(&at.less(&Expr::int(7)), body, None)))
}

/// Counts the nodes of all paths.
fn nodes(all: &[Reference]) -> usize {
    let mut seen: FxHashSet<*const Node> = FxHashSet::default();
    for r in all {
        let way = std::iter::successors(last(&r.site.path), |n| n.before.as_deref());
        seen.extend(way.map(std::ptr::from_ref));
    }
    seen.len()
}

#[test]
fn paths_share_common_prefixes() {
    let counts = [10, 20, 40].map(|n| nodes(&references(&chain(n))));
    assert_eq!((counts[1] - counts[0]) * 2, counts[2] - counts[1], "{counts:?}");
}

#[test]
fn paths_agree_with_slices() {
    let all = references(&chain(7));
    for a in &all {
        let way: &[Step] = &a.site.path;
        let says = |(k, s): &(usize, &Step)| match s {
            Step::Child { seq, position, .. } => {
                let StmtKind::Seq(all) = seq.kind() else { panic!("step {k} is into a sequence") };
                all[..*position].iter().any(|s| matches!(s.kind(), StmtKind::Assert { .. }))
            }
            Step::Scope { .. } => false,
            Step::Loop { .. } | Step::Branch { .. } => true,
        };
        let constraints: Vec<usize> = way.iter().enumerate().filter(says).map(|(k, _)| k).collect();
        assert_eq!(a.site.path.constraints().into_iter().map(|(k, _)| k).collect::<Vec<_>>(), constraints);
        assert_eq!(a.site.loops().count(), way.iter().filter(|s| matches!(s, Step::Loop { .. })).count());
        for b in &all {
            let common = way.iter().zip(&b.site.path).take_while(|(x, y)| x.same(y)).count();
            let (forked, next) = a.site.path.fork(&b.site.path);
            assert_eq!(forked, common);
            let there = [way.get(common), b.site.path.get(common)];
            assert!(next.iter().zip(there).all(|(x, y)| x.map(|x| x.stmt().id()) == y.map(|y| y.stmt().id())));
        }
    }
}

#[test]
fn long_paths_do_not_overflow_the_stack() {
    let tensors = (0..200_000).map(|_| local("t", DType::F64, []));
    let way: Path = tensors.map(|tensor| Step::Scope { stmt: Stmt::nop(), tensor }).collect();
    assert_eq!((way.len(), way.constraints().len()), (200_000, 0));
}

#[test]
fn every_step_is_reached_in_few_jumps() {
    let way: Path = (0..5_000).map(|_| Step::Child { seq: Stmt::nop(), position: 0, asserted: false }).collect();
    let mut most = 0;
    for steps in 1..=way.len() {
        let mut at = last(&way).expect("an end");
        let mut moves = 0;
        while at.length > steps {
            let jump = at.jump.as_deref().filter(|j| j.length >= steps);
            at = jump.or(at.before.as_deref()).expect("not the root");
            moves += 1;
        }
        most = most.max(moves);
        assert_eq!(up_to(steps, last(&way)).map(|n| n.length), Some(steps));
    }
    assert!(most <= 40, "{most} moves");
}
