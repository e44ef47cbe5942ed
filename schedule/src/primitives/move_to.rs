#![doc = include_str!("move_to.md")]

use super::fission;
use crate::block::Block;
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::Args;
use taffeta_ast::{Func, Stmt, StmtId};

pub(crate) const ENTRY: Entry = Entry {
    name: "move_to",
    signature: "s.move_to(S, after=S2)",
    params: &["stmt", "after", "before"],
    summary: "Moves a statement after or before another one.",
    doc: include_str!("move_to.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let stmt = s.stmt(args.need("stmt")?)?;
    let (to, after) = match (args.get("after"), args.get("before")) {
        (Some(a), None) => (s.stmt(a)?, true),
        (None, Some(b)) => (s.stmt(b)?, false),
        (None, None) => return Err(Refusal::usage("neither `after` nor `before` is given")),
        (Some(_), Some(_)) => return Err(Refusal::usage("`after` and `before` exclude each other")),
    };
    Ok(apply(check(s, &stmt, &to, after)?))
}

struct Plan {
    /// Program with the loops around the statement cut.
    func: Func,
    block: Block,
    order: Vec<usize>,
    moved: StmtId,
}

fn check(s: &Schedule, stmt: &Stmt, to: &Stmt, after: bool) -> Result<Plan, Refusal> {
    let mut func = s.func().clone();
    let mut block = Block::around(&func, to.id());
    // 1. In the block of the other statement, or further inside.
    let places = |b: &Option<Block>| {
        let b = b.as_ref()?;
        Some((b.position(stmt.id())?, b.position(to.id())?)).filter(|(p, q)| p != q)
    };
    let Some((mut p, _)) = places(&block) else {
        return Err(Refusal::illegal(1, "the statement is not in the block of the other one")
            .label(stmt.origin().span(), "this statement")
            .label(to.origin().span(), "the other one")
            .help("statements move out of loops, not into them: use `s.fuse(…)` to join loops"));
    };
    // 2. Out of its loops.
    let mut moved = stmt.id();
    if let Some(outer) = block.as_ref().map(|b| b.items[p].clone()).filter(|o| o.id() != stmt.id()) {
        (func, moved) = alone(&func, &outer, stmt)?;
        block = Block::around(&func, to.id());
        p = block.as_ref().and_then(|b| b.position(moved)).unwrap_or(0);
    }
    let gone = || Refusal::illegal(1, "the statement is not in a block");
    let block = block.ok_or_else(gone)?;
    let q = block.position(to.id()).ok_or_else(gone)?;
    let mut order: Vec<usize> = (0..block.items.len()).filter(|k| *k != p).collect();
    let at = order.iter().position(|k| *k == q).unwrap_or(0) + usize::from(after);
    order.insert(at, p);
    // 3. Dependences.
    block.check(&func, &order, 3)?;
    Ok(Plan { func, block, order, moved })
}

/// Cuts the loop around a statement before and after the statement. Returns the loop that holds nothing else.
fn alone(before: &Func, outer: &Stmt, stmt: &Stmt) -> Result<(Func, StmtId), Refusal> {
    let inside = || {
        Refusal::illegal(2, "the statement is inside a statement that is not a loop over integers")
            .label(outer.origin().span(), "this one")
            .label(stmt.origin().span(), "the statement")
    };
    let mut func = before.clone();
    let mut holds = outer.id();
    for after in [true, false] {
        let (now, at) = (tree::find(&func.body, holds), tree::find(&func.body, stmt.id()));
        let l = now.as_ref().and_then(Loop::of).ok_or_else(inside)?;
        let at = at.ok_or_else(inside)?;
        match fission::cut(before, &func, &l, &at, after) {
            Ok(c) => {
                holds = if after { c.first } else { c.second };
                func = c.func;
            }
            // Nothing stands on that side.
            Err(r) if r.condition == 1 => {}
            Err(mut r) => {
                r.condition = 2;
                return Err(r);
            }
        }
    }
    Ok((func, holds))
}

fn apply(plan: Plan) -> Change {
    let items: Vec<Stmt> = plan.order.iter().map(|p| plan.block.items[*p].clone()).collect();
    let new = plan.block.build(&items);
    Change::new(tree::replace(&plan.func, plan.block.root.id(), &new), plan.moved.into())
}
