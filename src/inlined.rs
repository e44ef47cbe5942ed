//! Inlining of array expressions over structured tensors. `tanh(A) @ x` materialises `tanh(A)` and multiplies it by
//! `x`. If a single statement reads such a temporary, its elements are computed there, and the loops visit the stored
//! elements of `A`, as in a program written element by element. This is the schedule step `inline`, with its legality
//! check. A temporary read by rows and stored by columns (`transpose(A) @ x`) needs its loops in storage order
//! (`auto_storage`); so does a program whose loops cannot follow the storage in their own order, such as those over a
//! matrix in unordered blocks.

use crate::scheduler::lowers;
use std::collections::HashSet;
use std::sync::Arc;
use taffeta_ast::{ExprKind, Func, Stmt, StmtKind, Symbol, Tensor};
use taffeta_schedule::auto::{LazyTarget, Target};
use taffeta_schedule::{Arg, Handle, Schedule, Value};

/// Inlines array expressions over structured tensors into their readers, in a program without a schedule. The result is
/// the same on all machines.
pub(crate) fn inlined(func: Func, strict_floats: bool) -> Func {
    if !func.is_structured() || !func.custom_vjps.is_empty() {
        return func;
    }
    let aim = LazyTarget::at(move || Target { strict_floats, ..Target::portable(1) });
    let mut schedule = Schedule::new(func).lowered_by(lowers).aimed_at(aim).trying();
    let mut refused = HashSet::default();
    let mut found = false;
    while let Some(next) = temporary(schedule.func(), &refused) {
        match schedule.call("inline", &[Arg::from(Value::Handle(Handle::Tensor(next.clone())))]) {
            Ok(_) => found = true,
            Err(why) => {
                tracing::debug!("`{next}` stays a tensor: {}", why.message);
                refused.insert(next);
            }
        }
    }
    if (found || lowers(schedule.func()).is_err())
        && let Err(why) = schedule.call("auto_storage", &[])
    {
        tracing::debug!("the loops stay in their order: {}", why.message);
    }
    schedule.into_func()
}

/// Finds a dense local tensor that is computed from structured ones and read by a single statement.
fn temporary(func: &Func, refused: &HashSet<Symbol>) -> Option<Symbol> {
    let mut locals: Vec<Arc<Tensor>> = Vec::new();
    let mut stored: HashSet<Symbol> =
        func.interface().filter(|t| !t.format.is_dense()).map(|t| t.symbol.clone()).collect();
    func.body.walk(&mut |s| {
        let StmtKind::VarDef { tensor, .. } = s.kind() else { return };
        match tensor.format.is_dense() {
            true if !tensor.shape.is_empty() && !refused.contains(&tensor.symbol) => locals.push(tensor.clone()),
            true => {}
            false => drop(stored.insert(tensor.symbol.clone())),
        }
    });
    let is_temporary = |t: &&Arc<Tensor>| {
        let (mut made, mut readers) = (false, 0);
        func.body.walk(&mut |s| {
            made |= written(s) == Some(&t.symbol) && reads_any(s, &stored);
            readers += usize::from(reads(s, &t.symbol));
        });
        made && readers == 1
    };
    locals.iter().find(is_temporary).map(|t| t.symbol.clone())
}

fn written(s: &Stmt) -> Option<&Symbol> {
    match s.kind() {
        StmtKind::Store { tensor, .. } => Some(tensor),
        _ => None,
    }
}

fn reads_any(s: &Stmt, tensors: &HashSet<Symbol>) -> bool {
    let mut is_read = |e: &taffeta_ast::Expr| matches!(e.kind(), ExprKind::Load(t, _) if tensors.contains(t));
    s.kind().exprs().into_iter().any(|e| e.any(&mut is_read))
}

/// Returns whether a statement itself reads a tensor.
fn reads(s: &Stmt, tensor: &Symbol) -> bool {
    let mut is_read = |e: &taffeta_ast::Expr| matches!(e.kind(), ExprKind::Load(t, _) if t == tensor);
    s.kind().printed().contains(&tensor) || s.kind().exprs().into_iter().any(|e| e.any(&mut is_read))
}
