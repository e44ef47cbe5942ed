#![doc = include_str!("merge.md")]

use super::reorder::{PerfectNest, chain, perfect};
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::Args;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::{Expr, Extent, LoopProps, StmtKind, Symbol};

pub(crate) const ENTRY: Entry = Entry {
    name: "merge",
    signature: "l = s.merge(outer, inner)",
    params: &["outer", "inner"],
    summary: "Merges two nested loops into one.",
    doc: include_str!("merge.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let (outer, inner) = (s.loop_(args.need("outer")?)?, s.loop_(args.need("inner")?)?);
    Ok(apply(s, &check(s, &outer, &inner)?))
}

struct Plan {
    nest: PerfectNest,
    /// Trip count of the inner loop.
    inner: Expr,
    length: Expr,
}

fn check(s: &Schedule, outer: &Loop, inner: &Loop) -> Result<Plan, Refusal> {
    // 1. Directly inside.
    let chain = chain(s, &[outer.clone(), inner.clone()])?;
    let refuse = |n, text: String| Err(Refusal::illegal(n, text).label(inner.stmt.origin().span(), "the inner loop"));
    if chain[0].id() != outer.stmt.id() {
        return refuse(1, format!("`{}` is not inside `{}`", s.called(&inner.stmt), s.called(&outer.stmt)));
    }
    if chain[1..chain.len() - 1].iter().any(|s| matches!(s.kind(), StmtKind::For { .. })) {
        return refuse(
            1,
            format!("another loop stands between `{}` and `{}`", s.called(&outer.stmt), s.called(&inner.stmt)),
        );
    }
    // 2. Perfect.
    let nest = perfect(s, &chain).map_err(|mut r| {
        r.condition = 2;
        r
    })?;
    // 3. Trip counts are known, and there are no marks.
    crate::requirements::require_unmarked(s.func(), 3, outer)?;
    crate::requirements::require_unmarked(s.func(), 3, inner)?;
    let mut facts = walk::at(s.func(), outer.stmt.id()).unwrap_or_else(|| Context::new(s.func()));
    let (Some(n), Some(m)) = (outer.trip_count(&mut facts), inner.trip_count(&mut facts)) else {
        return refuse(3, "the step of a loop is not a constant".into());
    };
    // 4. The bounds of the inner loop are the same in all iterations; those of the outer one are evaluated in the body.
    crate::requirements::require_invariant_bounds(4, outer, &|| s.called(&outer.stmt))?;
    let bounds: FxHashSet<Symbol> = [&inner.begin, &inner.end].into_iter().flat_map(effects::loads).collect();
    if [&inner.begin, &inner.end].into_iter().any(|e| effects::mentions(e, &[&outer.iter]))
        || !outer.body.writes().is_disjoint(&bounds)
    {
        return refuse(
            4,
            format!("the bounds of `{}` change in the loop `{}`", s.called(&inner.stmt), s.called(&outer.stmt)),
        );
    }
    super::reorder::evaluated(s, &chain, &nest, 4, &|_, _| true)?;
    // The product of two negative trip counts would be positive.
    let zero = Expr::int(0);
    let natural = |e: &Expr, facts: &mut Context| facts.prove(&zero.less_eq(e));
    let m_natural = if natural(&n, &mut facts) || natural(&m, &mut facts) { m.clone() } else { m.max_with(&zero) };
    // (With the maximum, the product is 0 where `m` is negative, and `n * m` otherwise.)
    let length = if facts.product_fits(&n, &m) {
        n.times(&m_natural)
    } else {
        // More iterations than 64 bits can count never end, so a smaller count is as good.
        let n = n.max_with(&zero);
        let most = Expr::int(i64::MAX).floor_div(&n.max_with(&Expr::int(1)));
        n.times(&m.max_with(&zero).min_with(&most))
    };
    Ok(Plan { nest, inner: m, length })
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    let Plan { nest, inner: m, length } = plan;
    let [outer, inner] = [&nest.loops[0], &nest.loops[nest.loops.len() - 1]];
    let iter = Symbol::new(format!("{}~{}", outer.iter, inner.iter));
    let both = Expr::var(&iter);
    let body = tree::substitute(&nest.core, &inner.iter, &inner.value(&both.modulo(m)));
    let body = tree::substitute(&body, &outer.iter, &outer.value(&both.floor_div(m)));
    let extent = Extent::Range { begin: Expr::int(0), end: length.clone(), step: Expr::int(1) };
    let merged = outer.stmt.with_kind(StmtKind::For { iter, extent, props: LoopProps::default(), body });
    let mut new = merged.clone();
    for (stmt, tensor) in nest.declared.iter().rev() {
        new = stmt.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: new });
    }
    Change::new(tree::replace(s.func(), outer.stmt.id(), &new), merged.id().into())
        .moved(inner.stmt.id(), [merged.id()])
}
