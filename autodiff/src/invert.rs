//! Tensors whose old values are recovered by inverting the forward updates in the backward pass.
//!
//! Only exact inverses are used: integer addition wraps around, so that `x[I] -= e` inverts `x[I] += e`.
//! (Floating-point addition rounds, and its inverse gives another number.) While the backward pass of a statement runs,
//! all later updates have been inverted, so that the tensor has its value of then, without a tape.
//!
//! ```text
//! at = 0                                   for t~b in range(steps - 1, -1, -1):
//! for t in range(steps):                       at += -2
//!     y[t] = x[t] * k[at % n]       →          x.grad[t] += y.grad[t] * k[at % n]
//!     at += 2
//! ```
//!
//! A tensor is inverted if
//! 1. its type is an integer, its scope is the program, and it is declared outside of loops;
//! 2. it is added to in a loop, and every other write precedes all reads of it and additions to it;
//! 3. the added values, their indices, and the loops and branches around do not read it;
//! 4. where a loop body that adds to it is recomputed before its backward pass, all reads in an iteration precede the
//!    additions. It is then inverted for the whole iteration before the recomputation, and the added values have the
//!    program as their scope.

use crate::data::{Choice, Inverted, RecomputeScope};
use crate::facts::Facts;
use crate::request::Tape;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::stmt::Role;
use taffeta_ast::{ReduceOp, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Chooses the tensors to invert, in copies if they are in the interface or the backward pass is a separate program.
pub(crate) fn choose(
    facts: &Facts<'_>,
    tape: &Tape,
    scopes: &FxHashMap<Symbol, Choice>,
    separate: bool,
) -> FxHashMap<Symbol, Inverted> {
    let kept = |t: &Symbol| match tape {
        Tape::All => true,
        Tape::Named(names) => names.iter().any(|n| n == t.name()),
        Tape::None | Tape::Auto => false,
    };
    let local = |t: &Arc<Tensor>| !facts.func.interface().any(|i| i.symbol == t.symbol);
    let declared = facts.declared.values().filter(|d| d.loops.is_empty()).map(|d| &d.tensor);
    let exact = declared.filter(|t| t.dtype.is_int() && !kept(&t.symbol));
    exact
        .filter_map(|t| {
            let first_in = place(facts, &t.symbol, scopes)?;
            let symbol = Symbol::new(format!("{}.then", t.symbol));
            let copy = || Arc::new(Tensor { symbol, role: Role::Tape, ..(**t).clone() });
            let now = if local(t) && !separate { t.clone() } else { copy() };
            Some((t.symbol.clone(), Inverted { now, first_in }))
        })
        .collect()
}

/// Returns the loop at the start of whose body a tensor is inverted, or `Some(None)` if each statement is inverted in
/// its turn; `None` if the tensor cannot be inverted.
fn place(facts: &Facts<'_>, tensor: &Symbol, scopes: &FxHashMap<Symbol, Choice>) -> Option<Option<StmtId>> {
    let added: Vec<&Stmt> = facts.writers(tensor).filter(|s| is_sum(s)).collect();
    let mut read: FxHashSet<Symbol> = FxHashSet::default();
    for s in &added {
        let mut at = Some(s.id());
        while let Some(id) = at {
            read.extend(facts.stmts[&id].kind().exprs().into_iter().flat_map(effects::loads));
            at = facts.parents.get(&id).copied();
        }
    }
    let in_loops = added.iter().any(|s| !facts.around[&s.id()].is_empty());
    if !in_loops || read.contains(tensor) || facts.stored_later(tensor) {
        return None;
    }
    let again = |l: &&StmtId| scopes.values().any(|c| c.scope == RecomputeScope::Body(**l));
    let mut first_in: Vec<StmtId> =
        added.iter().filter_map(|s| facts.around[&s.id()].iter().find(again).copied()).collect();
    first_in.dedup();
    match first_in[..] {
        [] => Some(None),
        [l] => {
            let inside = added.iter().all(|s| facts.around[&s.id()].contains(&l));
            let there = read.iter().all(|t| scopes.get(t).is_none_or(|c| c.scope == RecomputeScope::Program));
            (inside && there && !facts.read_after(tensor, l)).then_some(Some(l))
        }
        _ => None,
    }
}

/// Returns whether a statement adds to its element.
fn is_sum(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::ReduceTo { op: ReduceOp::Add, .. })
}
