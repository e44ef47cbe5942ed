//! Notation of handles in schedule functions: a selector that denotes the same statement or tensor in the current
//! program.

use crate::selector;
use taffeta_ast::{Func, Stmt, StmtKind, Symbol};

/// Writes a statement as in a schedule function: `"i#2"`, `"L1"`, `s.writes("y")[1]`; `None` if no selector denotes it.
pub(crate) fn stmt(func: &Func, stmt: &Stmt) -> Option<String> {
    let is = |found: Result<Stmt, _>| found.is_ok_and(|s: Stmt| s.id() == stmt.id());
    if selector::name(stmt).is_some() {
        let called = selector::called(func, stmt);
        // Some primitives search loops only, and some also labels: the selector must denote this loop in both.
        let meant = is(selector::loop_(func, &called)) && is(selector::stmt(func, &called));
        return meant.then(|| format!("{called:?}"));
    }
    if let Some(label) = stmt.origin().labels().iter().find(|l| is(selector::stmt(func, l))) {
        return Some(format!("{label:?}"));
    }
    let (StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. }) = stmt.kind() else { return None };
    let number = selector::writes(func, tensor).iter().position(|w| w.id() == stmt.id())?;
    Some(format!("s.writes({})[{number}]", self::tensor(func, tensor)?))
}

/// Writes a tensor as in a schedule function: `"t"`, `"t#2"`. One of several tensors of a name always gets its number:
/// without a number, the meaning of the name depends on the step.
pub(crate) fn tensor(func: &Func, t: &Symbol) -> Option<String> {
    let same = selector::tensors(func).iter().filter(|d| d.symbol().name() == t.name()).count();
    let numbered = (1..=same).map(|n| format!("{}#{n}", t.name()));
    let plain = (same == 1).then(|| t.name().to_string());
    let means = |name: &String| selector::tensor(func, name, None).is_ok_and(|d| d.symbol() == t);
    plain.into_iter().chain(numbered).find(means).map(|name| format!("{name:?}"))
}
