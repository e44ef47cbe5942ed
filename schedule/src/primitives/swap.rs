#![doc = include_str!("swap.md")]
use crate::block::Block;
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree;
use crate::value::{Args, Value};
use taffeta_ast::Stmt;

pub(crate) const ENTRY: Entry = Entry {
    name: "swap",
    signature: "s.swap([S, …])",
    params: &["order"],
    summary: "Changes the order of statements of a block.",
    doc: include_str!("swap.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let wanted = args.list("order")?.iter().map(|a| s.stmt(a)).collect::<Result<Vec<_>, _>>()?;
    Ok(apply(s, &check(s, &wanted)?))
}

struct Plan {
    block: Block,
    /// Positions of the items in their new order.
    order: Vec<usize>,
}

fn check(s: &Schedule, wanted: &[Stmt]) -> Result<Plan, Refusal> {
    // 1. One block.
    let first = wanted.first().ok_or_else(|| Refusal::value("no statement is given"))?;
    let at = |s: &Stmt| s.origin().span();
    let block = Block::around(s.func(), first.id())
        .ok_or_else(|| Refusal::illegal(1, "the statement is not in a block").label(at(first), "this statement"))?;
    let mut named = Vec::new();
    for w in wanted {
        let Some(p) = block.items.iter().position(|i| i.id() == w.id()) else {
            return Err(Refusal::illegal(1, "the statements are not in the same block")
                .label(at(first), "one statement")
                .label(at(w), "the other one"));
        };
        if named.contains(&p) {
            return Err(Refusal::illegal(1, "a statement is given twice").label(at(w), "this one"));
        }
        named.push(p);
    }
    let mut slots = named.clone();
    slots.sort_unstable();
    let mut order: Vec<usize> = (0..block.items.len()).collect();
    for (slot, p) in slots.iter().zip(&named) {
        order[*slot] = *p;
    }
    // 2. Dependences.
    block.check(s.func(), &order, 2)?;
    Ok(Plan { block, order })
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    if plan.order.is_sorted() {
        return Change::new(s.func().clone(), Value::None);
    }
    let items: Vec<Stmt> = plan.order.iter().map(|p| plan.block.items[*p].clone()).collect();
    let new = plan.block.build(&items);
    Change::new(tree::replace(s.func(), plan.block.root.id(), &new), Value::None)
}
