//! Marks on one loop, or on a list of loops at once, to run in any order; shared by `parallelize` and `vectorize`.
//!
//! All loops of a list are marked first, and then proved in the program that has all marks: the consequences of a mark
//! for the loops around and inside are checked once, not after each loop.

use crate::concurrent::{self, Obstacle};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Arg, Value};
use rustc_hash::FxHashMap;
use taffeta_analysis::query::depend::Dependences;
use taffeta_ast::{Expr, Func, LoopProps, Stmt, StmtId, StmtKind};

/// Resolves the loops that an argument names: one, or a list of distinct ones.
pub(super) fn targets(s: &Schedule, arg: &Arg) -> Result<Vec<Loop>, Refusal> {
    let Value::List(all) = &arg.value else { return Ok(vec![s.loop_(arg)?]) };
    let mut loops: Vec<Loop> = Vec::new();
    for value in all {
        let l = s.loop_(&Arg { name: None, value: value.clone(), span: arg.span })?;
        if loops.iter().any(|other| other.stmt.id() == l.stmt.id()) {
            return Err(Refusal::value(format!("the loop `{}` is given twice", s.called(&l.stmt))).at(arg.span));
        }
        loops.push(l);
    }
    if loops.is_empty() {
        return Err(Refusal::value("no loop is given".to_string()).at(arg.span));
    }
    Ok(loops)
}

/// Gives the loops other properties. [`proved`] updates their lists of shared reductions.
pub(super) fn with_marks(func: &Func, loops: &[Loop], mark: &dyn Fn(&LoopProps) -> LoopProps) -> Func {
    let ids: Vec<StmtId> = loops.iter().map(|l| l.stmt.id()).collect();
    func.with_body(marked(&func.body, &ids, mark))
}

fn marked(s: &Stmt, ids: &[StmtId], mark: &dyn Fn(&LoopProps) -> LoopProps) -> Stmt {
    let inner = s.map(&mut |c| marked(c, ids, mark), &mut Expr::clone);
    let StmtKind::For { iter, extent, props, body } = inner.kind() else { return inner };
    if !ids.contains(&s.id()) {
        return inner;
    }
    let props = mark(props);
    inner.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
}

/// Proves the marks of these loops in the program that has them; `refuse` converts an obstacle to a refusal.
pub(super) fn proved(
    after: Func,
    loops: &[Loop],
    returned: &Arg,
    refuse: &dyn Fn(&Loop, Obstacle) -> Refusal,
) -> Result<Change, Refusal> {
    let mut lists = FxHashMap::default();
    for l in loops {
        let id = l.stmt.id();
        let Some(stmt) = tree::find(&after.body, id) else { continue };
        let shared = concurrent::shared(&Dependences::inside(&after, &[id]), &stmt).map_err(|o| refuse(l, o))?;
        lists.insert(id, shared);
    }
    let made = match &returned.value {
        Value::List(_) => Value::List(loops.iter().map(|l| l.stmt.id().into()).collect()),
        _ => loops.first().map_or(Value::None, |l| l.stmt.id().into()),
    };
    let body = concurrent::share(&after.body, &mut lists);
    let proved = loops.iter().map(|l| l.stmt.id()).collect();
    Ok(Change { proved, ..Change::new(after.with_body(body), made) })
}
