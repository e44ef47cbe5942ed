//! Makes a gradient as short as a person would write it.
//!
//! - A backward loop that carries no dependence runs forwards: that is what caches, and people, expect.
//! - Where a sum is the first that touches every element of an adjoint, it becomes a store, and the zeros before it go
//!   away.
//! - Sums into one scalar that stand side by side become one.
//! - Scopes of declarations reach to the end of their block.
//!
//! Each is asked of the dependence analysis of the gradient itself.

use crate::data::BackwardInfo;
use rustc_hash::FxHashSet;
use taffeta_analysis::pass;
use taffeta_analysis::query::depend::{Ask, Dependences, Relation};
use taffeta_analysis::query::effects;
use taffeta_analysis::query::reference::Reference;
use taffeta_ast::validate::Invariant;
use taffeta_ast::{Expr, ExprKind, Extent, Func, ReduceOp, Stmt, StmtId, StmtKind, Symbol, validate};

/// The same gradient, shorter.
pub(crate) fn run(func: &Func, info: &BackwardInfo) -> Func {
    // Dependences are asked of a program in which everything has its scope; `widen_scopes` would hide that something has
    // none.
    debug_assert!(scoped(func), "{:?}", validate::logical(func));
    let func = forwards(func, info);
    let func = sums_to_stores(&func, info);
    let adjoints = info.zeros.iter().map(|(t, _)| t.clone()).collect();
    let func = func.with_body(merge_sums(&func.body, &adjoints));
    let func = pass::simplify::run(&pass::dead::run(&pass::simplify::run(&func)));
    func.with_body(widen_scopes(&func.body))
}

/// Whether what is mentioned is declared there. (A pass of a pair may still have results that are as long as values
/// say.)
fn scoped(func: &Func) -> bool {
    validate::logical(func).err().is_none_or(|found| found.0.iter().all(|v| v.invariant != Invariant::Scope))
}

/// Declarations with scopes to the end of their blocks, as they are written: what ends earlier has no text.
fn widen_scopes(s: &Stmt) -> Stmt {
    let s = s.map(&mut widen_scopes, &mut Expr::clone);
    let StmtKind::Seq(all) = s.kind() else { return s };
    let declares = |s: &Stmt| matches!(s.kind(), StmtKind::VarDef { .. });
    let Some(k) = all.iter().position(declares).filter(|k| k + 1 < all.len()) else { return s };
    let StmtKind::VarDef { tensor, body } = all[k].kind() else { return s };
    let rest = Stmt::seq([body.clone()].into_iter().chain(all[k + 1..].iter().cloned()), body.origin().clone());
    let scope = all[k].with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: widen_scopes(&rest) });
    Stmt::seq(all[..k].iter().cloned().chain([scope]), s.origin().clone())
}

/// Backward loops that may run forwards, turned round.
fn forwards(func: &Func, info: &BackwardInfo) -> Func {
    let dependences = Dependences::new(func);
    let mut free: FxHashSet<StmtId> = FxHashSet::default();
    let mut around: Vec<StmtId> = Vec::new();
    visit(&func.body, &mut around, &mut |l, around| {
        if info.forwards.contains_key(&l) {
            let relate = |s: &Stmt| match () {
                () if s.id() == l => Relation::Later,
                () if around.contains(&s.id()) => Relation::Same,
                () => Relation::Any,
            };
            let inside = |r: &Reference| r.site.stmt.id() != l && r.site.inside(l);
            let ask = Ask { source: &inside, sink: &inside, relate: &relate, ..Ask::default() };
            if dependences.first(&ask).is_none() {
                free.insert(l);
            }
        }
    });
    func.with_body(edit(&func.body, &mut |s| match s.kind() {
        StmtKind::For { iter, props, body, .. } if free.contains(&s.id()) => {
            let [begin, end, step] = info.forwards[&s.id()].clone();
            let extent = Extent::Range { begin, end, step };
            Some(s.with_kind(StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body: body.clone() }))
        }
        _ => None,
    }))
}

/// Sums that touch elements first, as stores.
fn sums_to_stores(func: &Func, info: &BackwardInfo) -> Func {
    let dependences = Dependences::new(func);
    let mut stores: FxHashSet<StmtId> = FxHashSet::default();
    let mut gone: FxHashSet<StmtId> = FxHashSet::default();
    for (adjoint, zeros) in &info.zeros {
        let all: Vec<&Reference> =
            dependences.references().iter().filter(|r| r.tensor == *adjoint && !r.site.inside(*zeros)).collect();
        for r in all.iter().filter(|r| matches!(r.site.stmt.kind(), StmtKind::ReduceTo { op: ReduceOp::Add, tensor, value, .. } if tensor == adjoint && !effects::mentions(value, &[adjoint]))) {
            let source = |a: &Reference| a.tensor == *adjoint && !a.site.inside(*zeros);
            let sink = |b: &Reference| b.tensor == *adjoint && b.site.stmt.id() == r.site.stmt.id() && b.kind.writes();
            let ask = Ask { source: &source, sink: &sink, commute: false, ..Ask::default() };
            if covers(r) && dependences.first(&ask).is_none() {
                stores.insert(r.site.stmt.id());
                gone.insert(*zeros);
                break;
            }
        }
    }
    func.with_body(edit(&func.body, &mut |s| match s.kind() {
        _ if gone.contains(&s.id()) => Some(Stmt::nop()),
        StmtKind::ReduceTo { tensor, indices, value, .. } if stores.contains(&s.id()) => {
            let (tensor, indices, value) = (tensor.clone(), indices.clone(), value.clone());
            Some(s.with_kind(StmtKind::Store { tensor, indices, value }))
        }
        _ => None,
    }))
}

/// Whether a statement surely runs once, inside its tensor's scope, for every element: its indices are the iterators of
/// the loops around it, which run through all of the dimension, and it is in no branch.
fn covers(r: &Reference) -> bool {
    use taffeta_analysis::query::reference::Step;
    let Some(indices) = &r.indices else { return false };
    let mut left: Vec<(&Expr, &Expr)> = indices.iter().zip(&r.declared.shape).collect();
    for step in &r.site.path[r.scope()..] {
        match step {
            Step::Child { .. } | Step::Scope { .. } => {}
            Step::Branch { .. } => return false,
            Step::Loop { iter, bounds, .. } => {
                let iter = Expr::var(iter);
                let Some(k) = left.iter().position(|(i, _)| **i == iter) else { return false };
                let (_, dim) = left.swap_remove(k);
                let Some([begin, end, step]) = bounds else { return false };
                let (zero, last) = (Expr::int(0), taffeta_ast::poly::tidy(&dim.minus(&Expr::int(1))));
                let upwards = *begin == zero && end == dim && step.as_int() == Some(1);
                let downwards = *begin == last && end.as_int() == Some(-1) && step.as_int() == Some(-1);
                if !upwards && !downwards {
                    return false;
                }
            }
        }
    }
    left.is_empty()
}

/// Sums into scalar adjoints, put together with the store before them where nothing in between has to do with either.
fn merge_sums(s: &Stmt, adjoints: &FxHashSet<Symbol>) -> Stmt {
    let s = s.map(&mut |s| merge_sums(s, adjoints), &mut Expr::clone);
    let StmtKind::Seq(all) = s.kind() else { return s };
    let mut out: Vec<Stmt> = Vec::new();
    for next in all {
        if let Some(k) = joinable(&out, next, adjoints)
            && let (StmtKind::Store { tensor, indices, value: first }, StmtKind::ReduceTo { value, .. }) =
                (out[k].kind(), next.kind())
        {
            let zero = matches!(first.as_literal(), Some(taffeta_ast::Literal::Float(v)) if v == 0.0);
            let value = if zero { value.clone() } else { first.plus(value) };
            let kind = StmtKind::Store { tensor: tensor.clone(), indices: indices.clone(), value };
            out[k] = out[k].with_kind(kind);
            continue;
        }
        out.push(next.clone());
    }
    if out.len() == all.len() { s } else { s.with_kind(StmtKind::Seq(out)) }
}

/// Which of the statements before `next` it can become a part of.
fn joinable(before: &[Stmt], next: &Stmt, adjoints: &FxHashSet<Symbol>) -> Option<usize> {
    let StmtKind::ReduceTo { tensor, indices, op: ReduceOp::Add, value } = next.kind() else { return None };
    if !indices.is_empty() || !adjoints.contains(tensor) || effects::mentions(value, &[tensor]) {
        return None;
    }
    let reads = effects::loads(value);
    for (k, s) in before.iter().enumerate().rev() {
        if let StmtKind::Store { tensor: t, value: first, .. } = s.kind()
            && t == tensor
        {
            return (!effects::mentions(first, &[tensor])).then_some(k);
        }
        let mut touches = effects::writes(s).iter().any(|w| reads.contains(w) || w == tensor);
        s.walk_exprs(&mut |e| touches |= matches!(e.kind(), ExprKind::Load(t, _) if t == tensor));
        if touches {
            return None;
        }
    }
    None
}

/// Calls `f` on every loop, with the loops around it.
fn visit(s: &Stmt, around: &mut Vec<StmtId>, f: &mut dyn FnMut(StmtId, &[StmtId])) {
    let is_loop = matches!(s.kind(), StmtKind::For { .. });
    if is_loop {
        f(s.id(), around);
        around.push(s.id());
    }
    for c in s.kind().children() {
        visit(c, around, f);
    }
    if is_loop {
        around.pop();
    }
}

/// Replaces statements, outermost first; what is replaced is looked into as well.
fn edit(s: &Stmt, f: &mut dyn FnMut(&Stmt) -> Option<Stmt>) -> Stmt {
    let s = f(s).unwrap_or_else(|| s.clone());
    s.map(&mut |s| edit(s, f), &mut Expr::clone)
}
