#![doc = include_str!("reorder.md")]
use crate::entry::{Entry, Run};
use crate::order;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Args, Value};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::query::depend::Dependence;
use taffeta_analysis::query::{Context, effects, uninitialized, walk};
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Extent, Func, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

pub(crate) const ENTRY: Entry = Entry {
    name: "reorder",
    signature: "s.reorder([L, …])",
    params: &["order"],
    summary: "Changes the order of nested loops.",
    doc: include_str!("reorder.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let loops = args.list("order")?.iter().map(|a| s.loop_(a)).collect::<Result<Vec<_>, _>>()?;
    let plan = check(s, &loops)?;
    Ok(apply(s, &plan))
}

/// Loop nest made perfect.
pub(crate) struct PerfectNest {
    /// Loops, outermost first.
    pub loops: Vec<Loop>,
    /// Declarations that stood between the loops, outermost first.
    pub declared: Vec<(Stmt, Arc<Tensor>)>,
    /// Body of the innermost loop.
    pub core: Stmt,
}

struct Plan {
    nest: PerfectNest,
    /// Positions of the loops in their new order.
    order: Vec<usize>,
}

fn check(s: &Schedule, wanted: &[Loop]) -> Result<Plan, Refusal> {
    // 1. Nested in each other.
    let chain = chain(s, wanted)?;
    // 2., 3. and 5. A perfect nest.
    let nest = perfect(s, &chain)?;
    let mut order: Vec<usize> = (0..nest.loops.len()).collect();
    let position = |l: &Loop| nest.loops.iter().position(|n| n.stmt.id() == l.stmt.id()).unwrap_or(0);
    let mut slots: Vec<usize> = wanted.iter().map(position).collect();
    slots.sort_unstable();
    for (slot, l) in slots.iter().zip(wanted) {
        order[*slot] = position(l);
    }
    // 4. Bounds.
    let plan = Plan { nest, order };
    plan.bounds(s)?;
    let place = |k: usize| plan.order.iter().position(|o| *o == k).unwrap_or(k);
    evaluated(s, &chain, &plan.nest, 4, &|inner, outer| place(inner) < place(outer))?;
    // 6. Dependences, in the perfect nest in its old order.
    let old: Vec<usize> = (0..plan.order.len()).collect();
    let before = tree::replace(s.func(), plan.nest.loops[0].stmt.id(), &plan.nest.build(&old, &[]));
    let ids: Vec<StmtId> = plan.nest.loops.iter().map(|l| l.stmt.id()).collect();
    match order::reversed(&before, &ids, &plan.order) {
        Some(d) => Err(plan.nest.turned(s.func(), d)),
        None => Ok(plan),
    }
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    let hulls = plan.bounds(s).unwrap_or_default();
    let new = plan.nest.build(&plan.order, &hulls);
    Change::new(tree::replace(s.func(), plan.nest.loops[0].stmt.id(), &new), Value::None)
}

/// Returns the statements from the outermost of these loops to the innermost one, if the loops lie on one path.
pub(crate) fn chain(s: &Schedule, wanted: &[Loop]) -> Result<Vec<Stmt>, Refusal> {
    let ids: Vec<StmtId> = wanted.iter().map(|l| l.stmt.id()).collect();
    if let Some(twice) = wanted.iter().enumerate().find(|(k, l)| ids[..*k].contains(&l.stmt.id())) {
        return Err(Refusal::illegal(1, format!("the loop `{}` is given twice", s.called(&twice.1.stmt))));
    }
    let path_of = |l: &Loop| tree::path(&s.func().body, l.stmt.id()).unwrap_or_default();
    let longest = wanted.iter().map(path_of).max_by_key(Vec::len).unwrap_or_default();
    let first = longest.iter().position(|s| ids.contains(&s.id()));
    let Some(first) = first else { return Err(Refusal::value("no loop is given")) };
    match wanted.iter().find(|l| !longest.iter().any(|s| s.id() == l.stmt.id())) {
        Some(outside) => {
            let inner = longest.last().map(|l| s.called(l)).unwrap_or_default();
            Err(Refusal::illegal(
                1,
                format!("the loops `{}` and `{inner}` are not nested in each other", s.called(&outside.stmt)),
            )
            .label(outside.stmt.origin().span(), "one loop")
            .label(longest.last().map_or(outside.stmt.origin().span(), |s| s.origin().span()), "the other one"))
        }
        None => Ok(longest[first..].to_vec()),
    }
}

/// Makes a chain of statements, from a loop to a loop, a perfect nest.
pub(crate) fn perfect(s: &Schedule, chain: &[Stmt]) -> Result<PerfectNest, Refusal> {
    let written = effects::writes(&chain[0]);
    let mut nest = PerfectNest { loops: Vec::new(), declared: Vec::new(), core: Stmt::nop() };
    // Constructs that move into the innermost loop, with the number of loops around each.
    let mut wrappers: Vec<(usize, Wrapper)> = Vec::new();
    for (k, stmt) in chain.iter().enumerate() {
        let depth = nest.loops.len();
        match stmt.kind() {
            StmtKind::For { .. } => {
                let l = Loop::of(stmt)
                    .ok_or_else(|| Refusal::target("expected a loop over integers").at(stmt.origin().span()))?;
                nest.loops.push(l);
            }
            StmtKind::VarDef { tensor, .. } => {
                // 3. The declaration can move out of the nest.
                let iters: Vec<&Symbol> = nest.loops.iter().map(|l| &l.iter).collect();
                if tensor.shape.iter().any(|e| effects::mentions(e, &iters) || !effects::loads(e).is_disjoint(&written))
                {
                    let text = format!("the shape of `{}` changes in the nest", tensor.symbol);
                    return Err(Refusal::illegal(3, text).label(stmt.origin().span(), "declared between the loops"));
                }
                // Outside of the nest the declaration is evaluated even if the nest does not run.
                let mut facts = walk::at(s.func(), chain[0].id());
                let sound =
                    |e: &Expr| facts.as_mut().is_some_and(|f| !f.may_stop(e) && f.prove(&Expr::int(0).less_eq(e)));
                let shape: Vec<&Expr> = tensor.shape.iter().collect();
                let is_written = uninitialized::early_read(s.func(), chain[0].id(), &[], &shape).is_none();
                if !is_written || !tensor.shape.iter().all(sound) {
                    let text = format!(
                        "the size of `{}` is not proved to be valid where the nest does not run",
                        tensor.symbol
                    );
                    return Err(Refusal::illegal(3, text).label(stmt.origin().span(), "declared between the loops"));
                }
                nest.declared.push((stmt.clone(), tensor.clone()));
            }
            StmtKind::If { cond, otherwise, .. } => {
                // 5. The condition has the same value inside.
                let inside_then = matches!(stmt.kind(), StmtKind::If { then, .. } if chain.get(k + 1).is_some_and(|n| then.id() == n.id()));
                if otherwise.is_some() || !inside_then {
                    let text = "a branch with an `else` stands between the loops".to_string();
                    return Err(Refusal::illegal(2, text).label(stmt.origin().span(), "this branch"));
                }
                if !effects::loads(cond).is_disjoint(&written) {
                    let text = "a condition between the loops reads values written in them".to_string();
                    return Err(Refusal::illegal(5, text).label(stmt.origin().span(), "this condition"));
                }
                wrappers.push((depth, Wrapper::Guard(stmt.clone())));
            }
            StmtKind::Seq(all) => {
                let at = chain.get(k + 1).and_then(|n| all.iter().position(|c| c.id() == n.id())).unwrap_or(0);
                let (before, after) = (all[..at].to_vec(), all[at + 1..].to_vec());
                wrappers.push((depth, Wrapper::Beside { block: stmt.id(), before, after }));
            }
            _ => return Err(Refusal::illegal(1, "the loops are not nested in each other")),
        }
    }
    nest.core = nest.loops.last().map_or_else(Stmt::nop, |l| l.body.clone());
    for (depth, w) in wrappers.into_iter().rev() {
        nest.core = w.around(s, &nest, depth)?;
    }
    Ok(nest)
}

/// Refuses bounds that may stop the program, or read unwritten data, where the perfect nest evaluates them: conditions
/// between the loops do not guard them there, and loops that they leave (`leaves(inner, outer)`) may not run at all.
pub(crate) fn evaluated(
    s: &Schedule,
    chain: &[Stmt],
    nest: &PerfectNest,
    condition: u32,
    leaves: &dyn Fn(usize, usize) -> bool,
) -> Result<(), Refusal> {
    for (k, l) in nest.loops.iter().enumerate().skip(1) {
        let above = chain.iter().take_while(|c| c.id() != l.stmt.id());
        let guarded = above.into_iter().any(|c| matches!(c.kind(), StmtKind::If { .. }));
        if !guarded && !(0..k).any(|m| leaves(k, m)) {
            continue;
        }
        let mut facts = walk::at(s.func(), chain[0].id());
        for (m, o) in nest.loops[..k].iter().enumerate() {
            if let (false, Some(f), StmtKind::For { iter, extent, body, .. }) =
                (leaves(k, m), &mut facts, o.stmt.kind())
            {
                f.enter_loop(iter, extent, body);
            }
        }
        let never_zero = l.step.equals(&Expr::int(0)).negate();
        let sound = facts.is_some_and(|mut f| {
            ![&l.begin, &l.end, &l.step].into_iter().any(|e| f.may_stop(e)) && f.prove(&never_zero)
        });
        if !sound {
            let text = format!(
                "computing the bounds of `{}` outside of the conditions and loops around it may stop the program",
                s.called(&l.stmt)
            );
            return Err(Refusal::illegal(condition, text)
                .label(l.stmt.origin().span(), "this loop")
                .help("compute the bounds before the nest, and assert that they are valid"));
        }
        let staying: Vec<&Stmt> = (0..k).filter(|m| !leaves(k, *m)).map(|m| &nest.loops[m].stmt).collect();
        let read = uninitialized::early_read(s.func(), chain[0].id(), &staying, &[&l.begin, &l.end, &l.step]);
        if let Some(t) = read {
            let text =
                format!("the bounds of `{}` read `{t}`, which may not be written before the nest", s.called(&l.stmt));
            return Err(Refusal::illegal(condition, text)
                .label(l.stmt.origin().span(), "this loop")
                .help(format!("write `{t}` before the nest in every run, or declare it with `zeros`")));
        }
    }
    Ok(())
}

/// Construct between two loops of a nest.
enum Wrapper {
    /// `if` without `else`.
    Guard(Stmt),
    /// Statements before and after the next loop, in a block.
    Beside { block: StmtId, before: Vec<Stmt>, after: Vec<Stmt> },
}

impl Wrapper {
    /// Moves this construct, which stands inside `depth` of the nest's loops, into the core of the nest.
    fn around(self, s: &Schedule, nest: &PerfectNest, depth: usize) -> Result<Stmt, Refusal> {
        let core = nest.core.clone();
        let (block, before, after) = match self {
            Wrapper::Guard(stmt) => {
                let StmtKind::If { cond, .. } = stmt.kind() else { return Ok(core) };
                return Ok(stmt.with_kind(StmtKind::If { cond: cond.clone(), then: core, otherwise: None }));
            }
            Wrapper::Beside { block, before, after } => (block, before, after),
        };
        // Facts at the statements themselves: conditions further in do not guard them.
        let mut facts = walk::at(s.func(), block);
        let (mut first, mut last) = (Expr::bool(true), Expr::bool(true));
        for l in &nest.loops[depth..] {
            // 2. The loop surely runs, and has the same bounds wherever the statement stands.
            let beside = before.iter().chain(&after).next().map_or(Origin::none(), |s| s.origin().clone());
            let refuse = |text: String| {
                Err(Refusal::illegal(2, text)
                    .label(beside.span(), format!("stands beside the loop `{}`", s.called(&l.stmt)))
                    .help(format!(
                        "split the nest there first: `s.fission(…)`, or move the statement out of the loop `{}`",
                        s.called(&l.stmt)
                    )))
            };
            let length = facts.as_mut().and_then(|f| l.trip_count(f));
            let Some(length) = length else {
                return refuse(format!("the step of `{}` is not a constant", s.called(&l.stmt)));
            };
            let runs = Expr::int(1).less_eq(&length);
            if !facts.as_mut().is_some_and(|f| f.prove(&runs)) {
                return refuse(format!("the nest is not perfect, and `{}` may not run at all", s.called(&l.stmt)));
            }
            let bounds: FxHashSet<Symbol> = [&l.begin, &l.end].into_iter().flat_map(effects::loads).collect();
            if before.iter().chain(&after).any(|s| !effects::writes(s).is_disjoint(&bounds)) {
                return refuse(format!("the bounds of `{}` change in the statement beside it", s.called(&l.stmt)));
            }
            if let (Some(f), StmtKind::For { iter, extent, body, .. }) = (&mut facts, l.stmt.kind()) {
                f.enter_loop(iter, extent, body);
            }
            let i = Expr::var(&l.iter);
            first = first.and(&i.equals(&l.begin));
            last = last.and(&i.equals(&l.value(&length.minus(&Expr::int(1)))));
        }
        let guarded = |cond: &Expr, stmts: Vec<Stmt>| {
            let origin = stmts.first().map_or(Origin::none(), |s| s.origin().derive("reorder", "guard"));
            let then = Stmt::seq(stmts, origin.clone());
            (!then.is_nop()).then(|| Stmt::new(StmtKind::If { cond: cond.clone(), then, otherwise: None }, origin))
        };
        let all = guarded(&first, before).into_iter().chain([core]).chain(guarded(&last, after));
        Ok(Stmt::seq(all, Origin::none()))
    }
}

impl Plan {
    /// Computes new bounds for the loops whose bounds mention iterators that move inside of them, and conditions that
    /// restrict the new iterations to the old ones.
    fn bounds(&self, s: &Schedule) -> Result<Vec<Hull>, Refusal> {
        let loops = &self.nest.loops;
        let place = |k: usize| self.order.iter().position(|o| *o == k).unwrap_or(k);
        let mut out = Vec::new();
        for (k, l) in loops.iter().enumerate() {
            // Outer loops that move inside.
            let crossed: Vec<&Loop> = (0..k).filter(|m| place(*m) > place(k)).map(|m| &loops[m]).collect();
            let iters: Vec<&Symbol> = crossed.iter().map(|m| &m.iter).collect();
            if ![&l.begin, &l.end, &l.step].iter().any(|e| effects::mentions(e, &iters)) {
                continue;
            }
            let hull = self.hull(l, &crossed);
            let refused = || {
                let text = format!(
                    "the bounds of `{}` are not affine in the iterator of the loop that it would leave",
                    s.called(&l.stmt)
                );
                Refusal::illegal(4, text).label(l.stmt.origin().span(), "this loop")
            };
            let hull = Hull { position: k, ..hull.ok_or_else(refused)? };
            if !self.covers(s, &hull, &iters) {
                let text = format!(
                    "the bounds of `{}` over all iterations of the loop that it would leave may wrap around",
                    s.called(&l.stmt)
                );
                return Err(Refusal::illegal(4, text).label(l.stmt.origin().span(), "this loop"));
            }
            out.push(hull);
        }
        Ok(out)
    }

    /// Returns whether the bounds of a hull surely contain all old iterations: by proof, or since nothing wraps.
    fn covers(&self, s: &Schedule, hull: &Hull, crossed: &[&Symbol]) -> bool {
        let Some(mut facts) = walk::at(s.func(), self.nest.loops[0].stmt.id()) else { return false };
        let loops = &self.nest.loops[..=hull.position];
        let enter = |l: &Loop, facts: &mut Context| {
            let extent = Extent::Range { begin: l.begin.clone(), end: l.end.clone(), step: l.step.clone() };
            facts.enter_loop(&l.iter, &extent, &l.body);
        };
        let inside = facts.scoped(|facts| {
            loops.iter().for_each(|l| enter(l, facts));
            let (i, up) = (Expr::var(&loops[hull.position].iter), loops[hull.position].step.as_int() > Some(0));
            let (from, to) = match up {
                true => (hull.begin.less_eq(&i), i.less(&hull.end)),
                false => (i.less_eq(&hull.begin), hull.end.less(&i)),
            };
            facts.prove(&from) && facts.prove(&to)
        });
        inside || {
            let (within, others): (Vec<&Loop>, Vec<&Loop>) =
                loops[..hull.position].iter().partition(|l| crossed.contains(&&l.iter));
            others.into_iter().for_each(|l| enter(l, &mut facts));
            let ends = |l: &Loop, facts: &mut Context| {
                let step = i128::from(l.step.as_int().unwrap_or(0));
                facts.sum_fits(&[(&l.end, 1), (&l.begin, -1)], -step) && facts.sum_fits(&[(&l.end, 1)], -step)
            };
            within.into_iter().all(|l| ends(l, &mut facts)) && facts.is_exact(&hull.begin) && facts.is_exact(&hull.end)
        }
    }

    fn hull(&self, l: &Loop, crossed: &[&Loop]) -> Option<Hull> {
        let step = l.step.as_int().filter(|s| s.abs() == 1)?;
        let (mut begin, mut end) = (l.begin.clone(), l.end.clone());
        for m in crossed.iter().rev() {
            let last = m.value(&m.length()?.minus(&Expr::int(1)));
            let (lo, hi) = if m.step.as_int()? > 0 { (&m.begin, &last) } else { (&last, &m.begin) };
            begin = extreme(&begin, &m.iter, lo, hi, step < 0)?;
            end = extreme(&end, &m.iter, lo, hi, step > 0)?;
        }
        let i = Expr::var(&l.iter);
        let inside =
            if step > 0 { l.begin.less_eq(&i).and(&i.less(&l.end)) } else { i.less_eq(&l.begin).and(&l.end.less(&i)) };
        Some(Hull { position: 0, begin, end, inside })
    }
}

/// Bounds of a loop over all iterations of the loops that it leaves.
pub(crate) struct Hull {
    position: usize,
    begin: Expr,
    end: Expr,
    /// Condition that the iteration is an old one.
    inside: Expr,
}

/// Returns the largest or smallest value of an expression over `lo <= iter <= hi`, or a bound of it.
pub(crate) fn extreme(e: &Expr, iter: &Symbol, lo: &Expr, hi: &Expr, largest: bool) -> Option<Expr> {
    if !effects::mentions(e, &[iter]) {
        return Some(e.clone());
    }
    let sub = |x: &Expr, largest| extreme(x, iter, lo, hi, largest);
    match e.kind() {
        ExprKind::Var(_) => Some(if largest { hi } else { lo }.clone()),
        ExprKind::Apply(op @ (Op::Add | Op::Min | Op::Max), a) => {
            Some(Expr::apply(*op, vec![sub(&a[0], largest)?, sub(&a[1], largest)?]))
        }
        ExprKind::Apply(Op::Sub, a) => Some(sub(&a[0], largest)?.minus(&sub(&a[1], !largest)?)),
        ExprKind::Apply(Op::Neg, a) => Some(Expr::apply(Op::Neg, vec![sub(&a[0], !largest)?])),
        ExprKind::Apply(Op::Mul, a) => {
            let c = a[1].as_int()?;
            Some(sub(&a[0], largest == (c >= 0))?.times(&a[1]))
        }
        ExprKind::Apply(Op::FloorDiv, a) if a[1].as_int()? > 0 => Some(sub(&a[0], largest)?.floor_div(&a[1])),
        _ => None,
    }
}

impl PerfectNest {
    /// Builds the refusal of an order that reverses a dependence of the perfect nest.
    pub(crate) fn turned(&self, func: &Func, d: Dependence) -> Refusal {
        let t = d.source.tensor.clone();
        let r = Refusal::dependence(6, "it would reverse a dependence", order::in_program_terms(func, d));
        match self.declared.iter().any(|(_, declared)| declared.symbol == t) {
            true => r.note(format!("`{t}` would be declared before the nest, and shared by all iterations")),
            false => r,
        }
    }

    /// Builds the nest with its loops in this order.
    pub(crate) fn build(&self, order: &[usize], hulls: &[Hull]) -> Stmt {
        let mut body = self.core.clone();
        for h in hulls {
            let origin = self.loops[h.position].stmt.origin().derive("reorder", "bounds");
            body = Stmt::new(StmtKind::If { cond: h.inside.clone(), then: body, otherwise: None }, origin);
        }
        for k in order.iter().rev() {
            let l = &self.loops[*k];
            let (begin, end) = match hulls.iter().find(|h| h.position == *k) {
                Some(h) => (h.begin.clone(), h.end.clone()),
                None => (l.begin.clone(), l.end.clone()),
            };
            body = l.with(begin, end, l.step.clone(), body);
        }
        for (stmt, tensor) in self.declared.iter().rev() {
            body = stmt.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body });
        }
        body
    }
}
