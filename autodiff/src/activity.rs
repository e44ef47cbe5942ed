//! Activity analysis: the tensors with an adjoint depend on a requested input and influence a result.
//!
//! The analysis is per tensor: one write of a varied value makes the whole tensor varied. Integers and `bool`s carry no
//! derivative, nor does a value that passes through them (a comparison, an index, a cast to an integer).

use crate::custom_vjp::{Calls, floats};
use crate::partials;
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_ast::{Expr, ExprKind, Func, StmtKind, Symbol};

/// Calls `f` on the tensors that an expression's value changes with.
pub(crate) fn sources(e: &Expr, f: &mut dyn FnMut(&Symbol)) {
    if !e.dtype().is_float() {
        return;
    }
    match e.kind() {
        ExprKind::Load(t, _) => f(t),
        ExprKind::Cast(inner) => sources(inner, f),
        ExprKind::Apply(op, args) => {
            for (k, a) in args.iter().enumerate() {
                if partials::passes(*op, args, k) {
                    sources(a, f);
                }
            }
        }
        _ => {}
    }
}

/// Memo of the subexpressions that change with some tensors. Its keys are addresses, so that the expressions must stay
/// alive as long as the memo.
pub(crate) struct Varying<'a> {
    tensors: &'a FxHashSet<Symbol>,
    known: FxHashMap<usize, bool>,
}

impl<'a> Varying<'a> {
    pub fn new(tensors: &'a FxHashSet<Symbol>) -> Varying<'a> {
        Varying { tensors, known: FxHashMap::default() }
    }

    /// Returns whether the value changes with one of the tensors (see [`sources`]).
    pub fn contains(&mut self, e: &Expr) -> bool {
        if !e.dtype().is_float() {
            return false;
        }
        if let Some(known) = self.known.get(&e.address()) {
            return *known;
        }
        let varies = match e.kind() {
            ExprKind::Load(t, _) => self.tensors.contains(t),
            ExprKind::Cast(inner) => self.contains(inner),
            ExprKind::Apply(op, args) => {
                args.iter().enumerate().any(|(k, a)| self.contains(a) && partials::passes(*op, args, k))
            }
            _ => false,
        };
        self.known.insert(e.address(), varies);
        varies
    }
}

/// Returns the tensors that depend on `from` and influence `to`; those of `from` and `to` themselves count if they do
/// both.
///
/// A call with a custom gradient makes every result depend on every argument, whatever its body does; tensors inside it
/// have no adjoint.
pub(crate) fn active(
    func: &Func,
    calls: &Calls,
    from: &FxHashSet<Symbol>,
    to: &FxHashSet<Symbol>,
) -> FxHashSet<Symbol> {
    let mut flows: Vec<(Symbol, FxHashSet<Symbol>)> = Vec::new();
    for call in &calls.all {
        let args: FxHashSet<Symbol> = floats(&call.args).map(|p| p.tensor.clone()).collect();
        flows.extend(floats(&call.results).map(|p| (p.tensor.clone(), args.clone())));
    }
    calls.walk_outside(&func.body, &mut |s| {
        if let StmtKind::Store { tensor, value, .. } | StmtKind::ReduceTo { tensor, value, .. } = s.kind() {
            let mut found = FxHashSet::default();
            sources(value, &mut |t| {
                found.insert(t.clone());
            });
            flows.push((tensor.clone(), found));
        }
    });
    let mut forwards: FxHashMap<&Symbol, Vec<&Symbol>> = FxHashMap::default();
    let mut backwards: FxHashMap<&Symbol, Vec<&Symbol>> = FxHashMap::default();
    for (target, sources) in &flows {
        for source in sources {
            forwards.entry(source).or_default().push(target);
            backwards.entry(target).or_default().push(source);
        }
    }
    let (varied, useful) = (reached(from, &forwards), reached(to, &backwards));
    varied.intersection(&useful).cloned().collect()
}

/// Returns the tensors reachable from `from`, itself included.
fn reached(from: &FxHashSet<Symbol>, edges: &FxHashMap<&Symbol, Vec<&Symbol>>) -> FxHashSet<Symbol> {
    let mut found = from.clone();
    let mut todo: Vec<Symbol> = from.iter().cloned().collect();
    while let Some(t) = todo.pop() {
        for next in edges.get(&t).into_iter().flatten() {
            if found.insert((*next).clone()) {
                todo.push((*next).clone());
            }
        }
    }
    found
}
