//! Which tensors have an adjoint: what the inputs that are asked for influence, and what influences the results.
//!
//! Decided for whole tensors: a tensor that any statement writes a varied value into is varied. Integers and `bool`s
//! carry no derivative, nor does what passes through them (a comparison, an index, a cast to an integer).

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

/// Which parts of an expression change with some tensors. Each is looked at once, however often it is asked about: what
/// is asked about stays alive as long as this.
pub(crate) struct Varying<'a> {
    tensors: &'a FxHashSet<Symbol>,
    known: FxHashMap<usize, bool>,
}

impl<'a> Varying<'a> {
    pub fn new(tensors: &'a FxHashSet<Symbol>) -> Varying<'a> {
        Varying { tensors, known: FxHashMap::default() }
    }

    /// Whether the value changes with one of the tensors (see [`sources`]).
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

/// The tensors that `from` has an influence on and that have one on `to`, with `from` and `to` themselves where that
/// holds.
///
/// A call that has its own gradient has an influence of every argument on every result, whatever its body does; what is
/// inside of it has no adjoint.
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

/// What can be reached from `from`, itself included.
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
