#![doc = include_str!("fission.md")]

use super::reorder::extreme;
use crate::block::{self, uses};
use crate::entry::{Entry, Run};
use crate::order;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::selector;
use crate::tree::{self, Loop};
use crate::value::{Args, Value};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::pass::rewrite_accesses;
use taffeta_analysis::query::depend::{DependenceQuery, Dependences, Relation};
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::format::Format;
use taffeta_ast::stmt::Memory;
use taffeta_ast::{Access, Expr, Extent, Func, LoopProps, Stmt, StmtId, StmtKind, Symbol, Tensor};

pub(crate) const ENTRY: Entry = Entry {
    name: "fission",
    signature: "a, b = s.fission(L, after=S)",
    params: &["loop", "after", "before"],
    summary: "Cuts the body of a loop into two loops.",
    doc: include_str!("fission.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    let (at, after) = match (args.get("after"), args.get("before")) {
        (Some(a), None) => (s.stmt(a)?, true),
        (None, Some(b)) => (s.stmt(b)?, false),
        (None, None) => return Err(Refusal::usage("neither `after` nor `before` is given")),
        (Some(_), Some(_)) => return Err(Refusal::usage("`after` and `before` exclude each other")),
    };
    let cut = cut(s.func(), s.func(), &l, &at, after)?;
    Ok(Change::new(cut.func, Value::List(vec![cut.first.into(), cut.second.into()])))
}

/// Loop cut in two.
pub(crate) struct Cut {
    pub func: Func,
    pub first: StmtId,
    pub second: StmtId,
}

/// Returns the name that a loop of the program `now` has in the program `before`, from which `now` was made by cutting
/// loops. A loop that was cut has another id, and the same depth.
pub(crate) fn called_before(before: &Func, now: &Func, l: &Stmt) -> String {
    let loops = |func: &Func, id: StmtId| -> Vec<Stmt> {
        tree::path(&func.body, id).unwrap_or_default().into_iter().filter(|s| selector::name(s).is_some()).collect()
    };
    let mut original = tree::find(&before.body, l.id());
    l.walk(&mut |inner| {
        if original.is_none() {
            let depth = loops(now, l.id()).len();
            original = loops(before, inner.id()).get(depth.wrapping_sub(1)).cloned();
        }
    });
    original.map_or_else(|| selector::called(now, l), |l| selector::called(before, &l))
}

/// Cuts a loop, and the loops in it around the statement, after or before the statement. `before` is the program before
/// other loops were cut, whose names of loops appear in messages.
pub(crate) fn cut(before: &Func, func: &Func, l: &Loop, at: &Stmt, after: bool) -> Result<Cut, Refusal> {
    // 1. In the loop.
    let path = tree::path(&l.stmt, at.id()).filter(|p| p.len() > 1).ok_or_else(|| {
        let name = called_before(before, func, &l.stmt);
        Refusal::illegal(1, format!("the statement is not in the loop `{name}`"))
            .label(at.origin().span(), "this statement")
            .label(l.stmt.origin().span(), "this loop")
    })?;
    let inner = path[1..path.len() - 1].iter().rev().find(|s| matches!(s.kind(), StmtKind::For { .. }));
    let Some(inner) = inner else { return Ok(apply(func, &check(before, func, l, &path, after)?)) };
    let inner = Loop::of(inner).ok_or_else(|| {
        Refusal::illegal(1, "cannot cut a loop over the reals").label(inner.origin().span(), "this loop")
    })?;
    // The innermost loop is cut first; if it has nothing on one side, the cut goes beside it.
    match cut(before, func, &inner, at, after) {
        Ok(c) => {
            let find = |id| tree::find(&c.func.body, id);
            match (find(l.stmt.id()).as_ref().and_then(Loop::of), find(c.first)) {
                (Some(l), Some(first)) => cut(before, &c.func, &l, &first, true),
                _ => Err(Refusal::illegal(1, "the loop is no longer in the program")),
            }
        }
        Err(r) if r.condition == 1 => cut(before, func, l, &inner.stmt, after),
        Err(r) => Err(r),
    }
}

struct Plan {
    target: Loop,
    first: Stmt,
    second: Stmt,
    /// Tensors that both halves use, expanded by a dimension over the loop; outermost first.
    shared: Vec<(Stmt, Arc<Tensor>)>,
}

/// Checks a cut. `path` leads from the loop to the statement, with no loop in between.
fn check(before: &Func, func: &Func, target: &Loop, path: &[Stmt], after: bool) -> Result<Plan, Refusal> {
    let name = || called_before(before, func, &target.stmt);
    let mut halves = Halves { path, after, shared: Vec::new() };
    let (first, second) = halves.of(&target.body)?;
    // 1. Something on both sides.
    if tree::has_no_effect(&first) || tree::has_no_effect(&second) {
        let side = if tree::has_no_effect(&first) { "before" } else { "after" };
        return Err(Refusal::illegal(1, format!("there is nothing {side} the cut in the loop `{}`", name()))
            .label(path[path.len() - 1].origin().span(), "this statement"));
    }
    // 2. No marks, and a known trip count.
    crate::requirements::require_unmarked(func, 2, target)?;
    let mut facts = walk::at(func, target.stmt.id()).unwrap_or_else(|| Context::new(func));
    let Some(length) = target.trip_count(&mut facts) else {
        return Err(Refusal::illegal(2, format!("the step of `{}` is not a constant", name()))
            .label(target.stmt.origin().span(), "this loop"));
    };
    // 3. The bounds are evaluated again.
    let bounds: FxHashSet<Symbol> = [&target.begin, &target.end].into_iter().flat_map(effects::loads).collect();
    if !first.writes().is_disjoint(&bounds) {
        return Err(Refusal::illegal(3, format!("the bounds of `{}` change in the first half", name()))
            .label(target.stmt.origin().span(), "this loop"));
    }
    // 4. Tensors that both halves use.
    let mut plan = Plan { target: target.clone(), first, second, shared: Vec::new() };
    for (stmt, tensor) in halves.shared {
        plan.expand(func, &stmt, &tensor, &length, &name)?;
    }
    // 5. Dependences, in the program with these tensors expanded.
    let both = Stmt::seq([plan.first.clone(), plan.second.clone()], target.body.origin().clone());
    let expanded = tree::replace(func, target.stmt.id(), &plan.declared(target.with_body(both)));
    let ids = |s: &Stmt| {
        let mut all = FxHashSet::default();
        s.walk(&mut |s| {
            all.insert(s.id());
        });
        all
    };
    let (first, second) = (ids(&plan.first), ids(&plan.second));
    let around = order::around(func, target.stmt.id());
    let found = Dependences::inside(&expanded, &[target.stmt.id()]).first(&DependenceQuery {
        source: &|r| second.contains(&r.site.stmt.id()),
        sink: &|r| first.contains(&r.site.stmt.id()),
        relate: &|s| match s.id() {
            id if id == target.stmt.id() => Relation::Later,
            id if around.contains(&id) => Relation::Same,
            _ => Relation::Any,
        },
        ..DependenceQuery::default()
    });
    if let Some(d) = found {
        let text = format!("the first half depends on the second half in earlier iterations of `{}`", name());
        return Err(Refusal::dependence(5, text, d));
    }
    // 6. Assumptions.
    match block::contains_assumption(&plan.first) {
        true => Err(block::assumption(6, &plan.first)),
        false => Ok(plan),
    }
}

fn apply(func: &Func, plan: &Plan) -> Cut {
    let Plan { target, first, second, .. } = plan;
    let (one, iter) = (target.with_body(first.clone()), target.iter.fresh());
    let body = tree::substitute(second, &target.iter, &Expr::var(&iter));
    let extent = Extent::Range { begin: target.begin.clone(), end: target.end.clone(), step: target.step.clone() };
    let kind = StmtKind::For { iter, extent, props: LoopProps::default(), body };
    let two = Stmt::new(kind, target.stmt.origin().derive("fission", "second"));
    let (a, b) = (one.id(), two.id());
    let new = plan.declared(Stmt::seq([one, two], target.stmt.origin().derive("fission", "both")));
    // The new statements may be a sequence in a sequence, which `tree::replace` splices.
    Cut { func: tree::replace(func, target.stmt.id(), &new), first: a, second: b }
}

impl Plan {
    /// Declares the shared tensors around a statement.
    fn declared(&self, body: Stmt) -> Stmt {
        self.shared
            .iter()
            .rev()
            .fold(body, |body, (s, tensor)| s.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body }))
    }

    /// Expands a tensor that both halves use by a dimension over the loop.
    fn expand(
        &mut self,
        func: &Func,
        stmt: &Stmt,
        tensor: &Arc<Tensor>,
        length: &Expr,
        called: &dyn Fn() -> String,
    ) -> Result<(), Refusal> {
        let l = &self.target;
        let name = &tensor.symbol;
        let refuse = |text: String| Err(Refusal::illegal(4, text).label(stmt.origin().span(), "declared here"));
        if tensor.format != Format::dense(tensor.ndim()) {
            return refuse(format!("`{name}` is used in both halves, and is not dense"));
        }
        if passed(&self.first, name) || passed(&self.second, name) {
            return refuse(format!("`{name}` is used in both halves, and is passed to an outside function"));
        }
        // Both halves count iterations from the begin.
        crate::requirements::require_invariant_bounds(4, l, called)?;
        let written = effects::writes(&l.body);
        let last = l.value(&length.minus(&Expr::int(1)));
        let (lo, hi) = if l.step.as_int() > Some(0) { (&l.begin, &last) } else { (&last, &l.begin) };
        let mut shape = vec![length.clone()];
        for dim in &tensor.shape {
            let fixed = !dim.may_fail() && effects::loads(dim).is_disjoint(&written);
            let Some(most) = extreme(dim, &l.iter, lo, hi, true).filter(|_| fixed) else {
                return refuse(format!(
                    "`{name}` is used in both halves, and its size {} is not known before the loop `{}`",
                    taffeta_ast::print::expr(dim),
                    called()
                ));
            };
            shape.push(most);
        }
        // A size may be negative where the loop, or the part under its conditions, does not run.
        let mut facts = walk::at(func, l.stmt.id());
        for dim in &mut shape {
            let zero = Expr::int(0);
            if !facts.as_mut().is_some_and(|f| f.prove(&zero.less_eq(dim))) {
                *dim = dim.max_with(&zero);
            }
        }
        let i = Expr::var(&l.iter);
        let number = match l.step.as_int() {
            Some(1) => i.minus(&l.begin),
            Some(-1) => l.begin.minus(&i),
            _ => i.minus(&l.begin).floor_div(&l.step),
        };
        let with = |indices: Vec<Access>| -> Vec<Access> {
            std::iter::once(Access::from(number.clone())).chain(indices).collect()
        };
        let names = [(name.clone(), name.clone())].into_iter().collect();
        for half in [&mut self.first, &mut self.second] {
            *half = rewrite_accesses::run(half, &names, &with);
        }
        let format = Format::dense(shape.len());
        let tensor = Tensor { shape, format, memory: Memory::Auto, ..(**tensor).clone() };
        self.shared.push((stmt.clone(), Arc::new(tensor)));
        Ok(())
    }
}

/// Returns whether a tensor is passed to a run-time routine.
fn passed(s: &Stmt, tensor: &Symbol) -> bool {
    s.any(&mut |s| matches!(s.kind(), StmtKind::Call { tensors, .. } if tensors.contains(tensor)))
}

/// Division of a loop's body at a cut.
struct Halves<'a> {
    path: &'a [Stmt],
    after: bool,
    shared: Vec<(Stmt, Arc<Tensor>)>,
}

impl Halves<'_> {
    /// Splits a statement on the path to the cut into the parts before and after the cut, within one iteration.
    fn of(&mut self, s: &Stmt) -> Result<(Stmt, Stmt), Refusal> {
        if s.id() == self.path[self.path.len() - 1].id() {
            return Ok(if self.after { (s.clone(), Stmt::nop()) } else { (Stmt::nop(), s.clone()) });
        }
        let on_the_way = |c: &Stmt| self.path.iter().any(|p| p.id() == c.id());
        match s.kind() {
            StmtKind::Seq(all) => {
                let k = all.iter().position(on_the_way).unwrap_or(0);
                let (a, b) = self.of(&all[k])?;
                let first = Stmt::seq(all[..k].iter().cloned().chain([a]), s.origin().clone());
                let second = Stmt::seq([b].into_iter().chain(all[k + 1..].iter().cloned()), s.origin().clone());
                Ok((first, second))
            }
            StmtKind::VarDef { tensor, body } => {
                let (a, b) = self.of(body)?;
                let around = |body| s.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body });
                match (uses(&a, &tensor.symbol), uses(&b, &tensor.symbol)) {
                    (_, false) => Ok((around(a), b)),
                    (false, true) => {
                        // 3. The shape is evaluated after the first half.
                        let shape: FxHashSet<Symbol> = tensor.shape.iter().flat_map(effects::loads).collect();
                        self.unchanged(&shape, &a, s, "a shape")?;
                        Ok((a, around(b)))
                    }
                    (true, true) => {
                        self.shared.insert(0, (s.clone(), tensor.clone()));
                        Ok((a, b))
                    }
                }
            }
            StmtKind::If { cond, then, otherwise } => {
                let branch = |s: &Stmt, cond: Expr, then: Stmt| match tree::has_no_effect(&then) {
                    true => Stmt::nop(),
                    false => {
                        Stmt::new(StmtKind::If { cond, then, otherwise: None }, s.origin().derive("fission", "second"))
                    }
                };
                let (kind, second) = match otherwise {
                    Some(o) if on_the_way(o) => {
                        let (a, b) = self.of(o)?;
                        let kind = StmtKind::If { cond: cond.clone(), then: then.clone(), otherwise: Some(a) };
                        (kind, branch(s, cond.negate(), b))
                    }
                    _ => {
                        let (a, b) = self.of(then)?;
                        let kind = StmtKind::If { cond: cond.clone(), then: a, otherwise: otherwise.clone() };
                        (kind, branch(s, cond.clone(), b))
                    }
                };
                let first = s.with_kind(kind);
                if second.is_nop() {
                    return Ok((first, second));
                }
                if tree::has_no_effect(&first) {
                    return Ok((Stmt::nop(), s.clone()));
                }
                // 3. The condition has the same value after the first half.
                self.unchanged(&effects::loads(cond), &first, s, "a condition")?;
                Ok((first, second))
            }
            _ => Err(Refusal::illegal(1, "the cut is inside a statement that cannot be cut")
                .label(s.origin().span(), "this statement")),
        }
    }

    fn unchanged(&self, loads: &FxHashSet<Symbol>, first: &Stmt, s: &Stmt, what: &str) -> Result<(), Refusal> {
        if effects::writes(first).is_disjoint(loads) {
            return Ok(());
        }
        Err(Refusal::illegal(3, format!("{what} around the cut reads values that the first half writes"))
            .label(s.origin().span(), "this statement"))
    }
}
