//! Simplification of a gradient, to the length at which a person would write it.
//!
//! - A backward loop that carries no dependence runs forwards, as caches and readers expect.
//! - The first sum into every element of an adjoint becomes a store, and the zeros before it are removed.
//! - A tensor that is stored once and then rounded into a result is stored there.
//! - Sums into one scalar that stand side by side are merged.
//! - Scopes of declarations extend to the end of their block.
//!
//! Each step is checked on the gradient itself, by dependences or effects.

use crate::data::BackwardInfo;
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_analysis::pass;
use taffeta_analysis::query::depend::{DependenceQuery, Dependences, Relation};
use taffeta_analysis::query::effects;
use taffeta_analysis::query::reference::Reference;
use taffeta_ast::validate::Invariant;
use taffeta_ast::{Expr, Extent, Func, ReduceOp, Stmt, StmtId, StmtKind, Symbol, Tensor, validate};

/// Simplifies a gradient.
pub(crate) fn run(func: &Func, info: &BackwardInfo) -> Func {
    // The dependence analysis needs every tensor in scope; `widen_scopes` would hide one that is not.
    debug_assert!(scoped(func), "{:?}", validate::logical(func));
    let func = forwards(func, info);
    let func = sums_to_stores(&func, info);
    let func = stores_rounded(&func, info);
    let adjoints = info.zeros.iter().map(|(t, _)| t.clone()).collect();
    let func = func.with_body(merge_sums(&func.body, &adjoints));
    let func = pass::simplify::run(&func);
    // Schedules do not see forward nests that only repeat checks of the backward pass.
    let func = pass::simplify::run(&pass::dead::run_without_repeated_checks(&func));
    func.with_body(widen_scopes(&func.body))
}

/// Returns whether every tensor is used in its scope. (A pass of a pair may still have results whose lengths depend on
/// values.)
fn scoped(func: &Func) -> bool {
    validate::logical(func).err().is_none_or(|found| found.0.iter().all(|v| v.invariant != Invariant::Scope))
}

/// Extends the scopes of declarations to the ends of their blocks. The language has no shorter scopes.
fn widen_scopes(s: &Stmt) -> Stmt {
    match s.kind() {
        StmtKind::Seq(_) | StmtKind::VarDef { .. } => {}
        _ => return s.map(&mut widen_scopes, &mut Expr::clone),
    }
    // Declarations around the next statement, each with the statements before it in its block.
    let mut around: Vec<(Vec<Stmt>, Stmt)> = Vec::new();
    let mut block: Vec<Stmt> = Vec::new();
    let mut next = vec![s.clone()];
    while let Some(s) = next.pop() {
        match s.kind() {
            StmtKind::Seq(all) => next.extend(all.iter().rev().cloned()),
            StmtKind::VarDef { body, .. } => {
                next.push(body.clone());
                around.push((std::mem::take(&mut block), s));
            }
            _ => block.push(widen_scopes(&s)),
        }
    }
    let mut body = Stmt::seq(block, s.origin().clone());
    for (before, scope) in around.into_iter().rev() {
        let StmtKind::VarDef { tensor, .. } = scope.kind() else { unreachable!("scopes are declarations") };
        let scope = scope.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body });
        body = Stmt::seq(before.into_iter().chain([scope]), s.origin().clone());
    }
    body
}

/// Reverses the backward loops that carry no dependence, so that they run forwards.
fn forwards(func: &Func, info: &BackwardInfo) -> Func {
    let dependences = Dependences::new(func);
    let mut within: FxHashMap<StmtId, Vec<&Reference>> = FxHashMap::default();
    for r in dependences.references() {
        for (l, _) in r.site.loops().filter(|(l, _)| info.forwards.contains_key(&l.id()) && l.id() != r.site.stmt.id())
        {
            within.entry(l.id()).or_default().push(r);
        }
    }
    let mut free: FxHashSet<StmtId> = FxHashSet::default();
    let mut around: Vec<StmtId> = Vec::new();
    visit(&func.body, &mut around, &mut |l, around| {
        if info.forwards.contains_key(&l) {
            let relate = |s: &Stmt| match () {
                () if s.id() == l => Relation::Later,
                () if around.contains(&s.id()) => Relation::Same,
                () => Relation::Any,
            };
            let ask = DependenceQuery { relate: &relate, ..DependenceQuery::default() };
            let inside = within.get(&l).map(Vec::as_slice).unwrap_or_default();
            if dependences.first_among(inside, &ask).is_none() {
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

/// Turns a sum that is the first access to every element of an adjoint into a store, and removes the zeros before it.
fn sums_to_stores(func: &Func, info: &BackwardInfo) -> Func {
    let dependences = Dependences::new(func);
    let mut stores: FxHashSet<StmtId> = FxHashSet::default();
    let mut gone: FxHashSet<StmtId> = FxHashSet::default();
    // All statements that set adjoints to 0, each of which mentions its own adjoint alone.
    let mut zeroing: FxHashSet<StmtId> = info.zeros.iter().map(|(_, zeros)| *zeros).collect();
    func.body.walk(&mut |s| {
        if zeroing.contains(&s.id()) {
            zeroing.extend(s.kind().children().iter().map(|c| c.id()));
        }
    });
    // Where one stored value stands for several elements, its adjoint is the sum of theirs.
    let summing = non_injective(func);
    for (adjoint, zeros) in info.zeros.iter().filter(|(adjoint, _)| !summing.contains(adjoint)) {
        let all: Vec<&Reference> = dependences.of(adjoint).filter(|r| !zeroing.contains(&r.site.stmt.id())).collect();
        for r in all.iter().filter(|r| is_sum_into(&r.site.stmt, adjoint) && covers(r)) {
            let sink = |b: &Reference| b.site.stmt.id() == r.site.stmt.id() && b.kind.writes();
            let ask = DependenceQuery { sink: &sink, commute: false, ..DependenceQuery::default() };
            if dependences.first_among(&all, &ask).is_none() {
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

/// Removes the rounding of tensors that one store alone writes and nothing else reads: the store rounds.
fn stores_rounded(func: &Func, info: &BackwardInfo) -> Func {
    info.rounded.iter().fold(func.clone(), |func, (sum, into, rounds)| {
        let mut writers: Vec<Stmt> = Vec::new();
        func.body.walk(&mut |s| {
            if let StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } = s.kind()
                && tensor == sum
            {
                writers.push(s.clone());
            }
        });
        let without = edit(&func.body, &mut |s| (s.id() == *rounds).then(Stmt::nop));
        let [only] = writers.as_slice() else { return func };
        let StmtKind::Store { indices, value, .. } = only.kind() else { return func };
        if effects::is_read(&without, sum) {
            return func;
        }
        let (tensor, value) = (into.symbol.clone(), value.clone().cast(into.dtype));
        let stored = only.with_kind(StmtKind::Store { tensor, indices: indices.clone(), value });
        let body = edit(&without, &mut |s| (s.id() == only.id()).then(|| stored.clone()));
        func.with_body(without_declaration(&body, sum))
    })
}

/// Removes the declaration of a tensor that the statement does not mention.
fn without_declaration(s: &Stmt, symbol: &Symbol) -> Stmt {
    match s.kind() {
        StmtKind::VarDef { tensor, body } if tensor.symbol == *symbol => body.clone(),
        _ => s.map(&mut |s| without_declaration(s, symbol), &mut Expr::clone),
    }
}

/// Returns the tensors in which one stored value stands for several elements.
fn non_injective(func: &Func) -> FxHashSet<Symbol> {
    let mut out: FxHashSet<Symbol> = FxHashSet::default();
    let mut note = |t: &Tensor| {
        if !t.format.is_injective() {
            out.insert(t.symbol.clone());
        }
    };
    func.interface().for_each(|t| note(t));
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            note(tensor);
        }
    });
    out
}

/// Returns whether a statement adds a value that does not depend on a tensor to elements of that tensor.
fn is_sum_into(s: &Stmt, adjoint: &Symbol) -> bool {
    match s.kind() {
        StmtKind::ReduceTo { op: ReduceOp::Add, tensor, value, .. } => {
            tensor == adjoint && !effects::loads(value).contains(adjoint)
        }
        _ => false,
    }
}

/// Returns whether a statement surely runs once for every element, inside its tensor's scope: its indices are the
/// iterators of the loops around it, which span the dimensions, and no branch encloses it.
fn covers(r: &Reference) -> bool {
    use taffeta_analysis::query::reference::Step;
    let Some(indices) = &r.indices else { return false };
    let mut left: Vec<(&Expr, &Expr)> = indices.iter().zip(&r.declared.shape).collect();
    let scope = r.scope();
    for (_, step) in r.site.path.constraints().into_iter().filter(|(k, _)| *k >= scope) {
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

/// Merges sums into scalar adjoints with the store before them, if no statement in between interferes with either.
fn merge_sums(s: &Stmt, adjoints: &FxHashSet<Symbol>) -> Stmt {
    let s = s.map(&mut |s| merge_sums(s, adjoints), &mut Expr::clone);
    let StmtKind::Seq(all) = s.kind() else { return s };
    // Effects of blocks are collected where they are needed alone: blocks nest as deep as the declarations.
    let is_sum = |s: &Stmt| match s.kind() {
        StmtKind::ReduceTo { tensor, indices, op: ReduceOp::Add, .. } => {
            indices.is_empty() && adjoints.contains(tensor)
        }
        _ => false,
    };
    if !all.iter().any(is_sum) {
        return s;
    }
    let mut out: Vec<Stmt> = Vec::new();
    let mut touched = Touched::default();
    for next in all {
        if let Some(k) = merge_target(&out, next, adjoints, &touched)
            && let (StmtKind::Store { tensor, indices, value: first }, StmtKind::ReduceTo { value, .. }) =
                (out[k].kind(), next.kind())
        {
            let zero = matches!(first.as_literal(), Some(taffeta_ast::Literal::Float(v)) if v == 0.0);
            let value = if zero { value.clone() } else { first.plus(value) };
            let kind = StmtKind::Store { tensor: tensor.clone(), indices: indices.clone(), value };
            out[k] = out[k].with_kind(kind);
            touched.add(&out[k], k);
            continue;
        }
        touched.add(next, out.len());
        out.push(next.clone());
    }
    if out.len() == all.len() { s } else { s.with_kind(StmtKind::Seq(out)) }
}

/// Last positions in a block at which tensors are written and read.
#[derive(Default)]
struct Touched {
    written: FxHashMap<Symbol, usize>,
    read: FxHashMap<Symbol, usize>,
}

impl Touched {
    /// Records the effects of the statement at a position: an appended one, or the replacement of an earlier one.
    fn add(&mut self, s: &Stmt, k: usize) {
        let note = |map: &mut FxHashMap<Symbol, usize>, t: Symbol| {
            let last = map.entry(t).or_insert(k);
            *last = k.max(*last);
        };
        effects::writes(s).into_iter().for_each(|t| note(&mut self.written, t));
        effects::reads_by_others(s).into_iter().for_each(|t| note(&mut self.read, t));
    }
}

/// Returns the position of the store that `next` can be merged with: no statement after it reads or writes the tensor,
/// or writes an operand of `next`.
fn merge_target(before: &[Stmt], next: &Stmt, adjoints: &FxHashSet<Symbol>, touched: &Touched) -> Option<usize> {
    let StmtKind::ReduceTo { tensor, indices, op: ReduceOp::Add, value } = next.kind() else { return None };
    let reads = effects::loads(value);
    if !indices.is_empty() || !adjoints.contains(tensor) || reads.contains(tensor) {
        return None;
    }
    let k = *touched.written.get(tensor)?;
    let StmtKind::Store { tensor: stored, value: first, .. } = before[k].kind() else { return None };
    let later = |at: Option<&usize>| at.is_some_and(|at| *at > k);
    let disturbed = later(touched.read.get(tensor)) || reads.iter().any(|t| later(touched.written.get(t)));
    (stored == tensor && !disturbed && !effects::loads(first).contains(tensor)).then_some(k)
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

/// Replaces statements, outermost first; replacements are traversed as well.
fn edit(s: &Stmt, f: &mut dyn FnMut(&Stmt) -> Option<Stmt>) -> Stmt {
    let s = f(s).unwrap_or_else(|| s.clone());
    s.map(&mut |s| edit(s, f), &mut Expr::clone)
}
