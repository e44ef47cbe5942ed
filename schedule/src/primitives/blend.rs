#![doc = include_str!("blend.md")]

use super::unroll::{self, Copies};
use crate::block::{self, Block};
use crate::entry::{Entry, Run};
use crate::order;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::Args;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Relation};
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, LoopProps, Stmt, StmtId, StmtKind, Symbol};

pub(crate) const ENTRY: Entry = Entry {
    name: "blend",
    signature: "s.blend(L)",
    params: &["loop"],
    summary: "Replaces a loop by copies of its body, interleaved statement by statement.",
    doc: include_str!("blend.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    let plan = check(s, &l)?;
    Ok(apply(s, &plan))
}

struct Plan {
    copies: Copies,
    /// Loops in the body that are jammed into one.
    joined: FxHashSet<StmtId>,
}

fn check(s: &Schedule, l: &Loop) -> Result<Plan, Refusal> {
    // 1. to 3. Copies.
    let copies = unroll::check(s, l)?;
    let mut joined = FxHashSet::default();
    find_joined(l, &l.body, &effects::writes(&l.body), &mut joined);
    // 4. Dependences.
    let ask = ReversalSearch {
        all: Dependences::inside(s.func(), &[l.stmt.id()]),
        around: order::around(s.func(), l.stmt.id()),
        target: l,
        joined: &joined,
    };
    if let Some(d) = ask.turned(&l.body, &mut Vec::new()) {
        let text = format!("interleaving iterations of `{}` would reverse a dependence", s.called(&l.stmt));
        return Err(Refusal::dependence(4, text, d));
    }
    // 5. Assumptions and shapes.
    if block::contains_assumption(&l.body) {
        return Err(block::assumption(5, &l.body));
    }
    let written = effects::writes(&l.body);
    let mut changed = None;
    l.body.walk(&mut |d| {
        if let StmtKind::VarDef { tensor, .. } = d.kind()
            && tensor.shape.iter().any(|e| !effects::loads(e).is_disjoint(&written))
        {
            changed = Some((d.clone(), tensor.symbol.clone()));
        }
    });
    match changed {
        Some((d, name)) => {
            let text = format!("the shape of `{name}` depends on values computed in the body");
            Err(Refusal::illegal(5, text).label(d.origin().span(), "declared here"))
        }
        None => Ok(Plan { copies, joined }),
    }
}

/// Finds the loops in the body of `l` that run the same iterations in every iteration of `l`.
fn find_joined(l: &Loop, s: &Stmt, written: &FxHashSet<Symbol>, out: &mut FxHashSet<StmtId>) {
    for item in &Block::of(s).items {
        let (Some(inner), StmtKind::For { props, .. }) = (Loop::of(item), item.kind()) else { continue };
        let bounds = [&inner.begin, &inner.end, &inner.step];
        let same = bounds.iter().all(|e| !effects::mentions(e, &[&l.iter]) && effects::loads(e).is_disjoint(written));
        if same && *props == LoopProps::default() {
            out.insert(item.id());
            find_joined(l, &inner.body, written, out);
        }
    }
}

/// Search for dependences that interleaving reverses: from an iteration of the loop to a later one, with the sink first
/// in the new order (joined loops, then textual position, then iteration).
struct ReversalSearch<'a> {
    all: Dependences<'a>,
    around: Vec<StmtId>,
    target: &'a Loop,
    joined: &'a FxHashSet<StmtId>,
}

impl ReversalSearch<'_> {
    /// Searches a block, within one iteration of the joined loops around it.
    fn turned(&self, s: &Stmt, outer: &mut Vec<StmtId>) -> Option<Dependence> {
        let block = Block::of(s);
        let holds = |items: &[Stmt], r: &taffeta_analysis::query::reference::Reference| {
            items.iter().any(|i| r.site.inside(i.id()))
        };
        // The sink stands before the source.
        for k in 1..block.items.len() {
            let (before, after) = block.items.split_at(k);
            let source = |r: &taffeta_analysis::query::reference::Reference| holds(&after[..1], r);
            let sink = |r: &taffeta_analysis::query::reference::Reference| holds(before, r);
            let found = self.first(&source, &sink, outer, None);
            if found.is_some() {
                return found;
            }
        }
        for item in block.items.iter().filter(|i| self.joined.contains(&i.id())) {
            let inside = |r: &taffeta_analysis::query::reference::Reference| {
                r.site.inside(item.id()) && r.site.stmt.id() != item.id()
            };
            // The sink is in an earlier iteration of a joined loop.
            let mut found = self.first(&inside, &inside, outer, Some(item.id()));
            if let (None, Some(l)) = (&found, Loop::of(item)) {
                outer.push(item.id());
                found = self.turned(&l.body, outer);
                outer.pop();
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn first(
        &self,
        source: &(dyn Fn(&taffeta_analysis::query::reference::Reference) -> bool + Sync),
        sink: &(dyn Fn(&taffeta_analysis::query::reference::Reference) -> bool + Sync),
        same: &[StmtId],
        earlier: Option<StmtId>,
    ) -> Option<Dependence> {
        let relate = |s: &Stmt| match s.id() {
            id if id == self.target.stmt.id() => Relation::Later,
            id if Some(id) == earlier => Relation::Earlier,
            id if same.contains(&id) || self.around.contains(&id) => Relation::Same,
            _ => Relation::Any,
        };
        self.all.first(&DependenceQuery { source, sink, relate: &relate, ..DependenceQuery::default() })
    }
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    let new = match plan.copies.bodies.as_slice() {
        [] => Stmt::nop(),
        bodies => interleaved(bodies, &plan.joined),
    };
    unroll::replaced(s, &plan.copies.target, &new)
}

/// Interleaves the copies of one block, statement by statement. `joined` has the ids of loops in the first copy.
fn interleaved(copies: &[Stmt], joined: &FxHashSet<StmtId>) -> Stmt {
    let blocks: Vec<Block> = copies.iter().map(Block::of).collect();
    let first = &blocks[0];
    let decls = (0..first.decls.len()).flat_map(|d| blocks.iter().filter_map(move |b| b.decls.get(d).cloned()));
    let all = Block { root: first.root.clone(), decls: decls.collect(), items: Vec::new() };
    let mut items = Vec::new();
    for (k, item) in first.items.iter().enumerate() {
        let versions: Vec<Stmt> = blocks.iter().filter_map(|b| b.items.get(k).cloned()).collect();
        match Loop::of(item) {
            Some(l) if joined.contains(&item.id()) => {
                let i = Expr::var(&l.iter);
                let bodies: Vec<Stmt> = versions
                    .iter()
                    .filter_map(Loop::of)
                    .map(|v| if v.iter == l.iter { v.body } else { tree::substitute(&v.body, &v.iter, &i) })
                    .collect();
                items.push(l.with_body(interleaved(&bodies, joined)));
            }
            _ => items.extend(versions),
        }
    }
    all.build(&items)
}
