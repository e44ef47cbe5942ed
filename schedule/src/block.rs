//! A block as the user sees it: a flat list of statements, among which declarations open scopes. In the tree a
//! declaration encloses the rest of its block; in the flat form statements can move across it. Primitives that reorder
//! statements flatten a block ([`Block::around`]), check the new order ([`Block::check`]), and rebuild the tree
//! ([`Block::build`]).

use crate::order;
use crate::refusal::Refusal;
use crate::tree;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Relation};
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Func, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Declaration in a block.
#[derive(Clone, Debug)]
pub struct Decl {
    /// Declaring statement.
    pub stmt: Stmt,
    /// Declared tensor.
    pub tensor: Arc<Tensor>,
    /// Whether its scope extends to the end of the block.
    to_end: bool,
}

impl Decl {
    /// Wraps another body in the declaration, which keeps its id.
    pub fn around(&self, body: Stmt) -> Stmt {
        self.stmt.with_kind(StmtKind::VarDef { tensor: self.tensor.clone(), body })
    }
}

/// Statements and declarations of a block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Statement that forms the block: the body of a loop, a branch, or the program.
    pub root: Stmt,
    /// Declarations in textual order.
    pub decls: Vec<Decl>,
    /// Statements other than sequences and declarations, in textual order.
    pub items: Vec<Stmt>,
}

impl Block {
    /// Flattens a statement into a block.
    pub fn of(root: &Stmt) -> Block {
        let mut b = Block { root: root.clone(), decls: Vec::new(), items: Vec::new() };
        b.collect(root, true);
        b
    }

    /// Returns the block that contains a statement.
    pub fn around(func: &Func, id: StmtId) -> Option<Block> {
        let path = tree::path(&func.body, id)?;
        let outside = |s: &Stmt| !matches!(s.kind(), StmtKind::Seq(_) | StmtKind::VarDef { .. });
        let above = path[..path.len() - 1].iter().rposition(outside);
        Some(Block::of(&path[above.map_or(0, |k| k + 1)]))
    }

    fn collect(&mut self, s: &Stmt, last: bool) {
        match s.kind() {
            StmtKind::Seq(all) => {
                for (k, c) in all.iter().enumerate() {
                    self.collect(c, last && k + 1 == all.len());
                }
            }
            StmtKind::VarDef { tensor, body } => {
                self.decls.push(Decl { stmt: s.clone(), tensor: tensor.clone(), to_end: last });
                self.collect(body, last);
            }
            _ => self.items.push(s.clone()),
        }
    }

    /// Returns the position of the item that is, or contains, the statement with this id.
    pub fn position(&self, id: StmtId) -> Option<usize> {
        self.items.iter().position(|s| tree::find(s, id).is_some())
    }

    /// Checks whether the items may run in another order (positions of `items`). Refuses with `condition` if a
    /// dependence would be reversed, an assumption would run earlier, or the shape of a declaration reads data that the
    /// block writes.
    pub fn check(&self, func: &Func, order: &[usize], condition: u32) -> Result<(), Refusal> {
        let jumps =
            |p: usize| -> Vec<usize> { order.iter().take_while(|o| **o != p).copied().filter(|q| *q > p).collect() };
        let moved: Vec<(usize, Vec<usize>)> =
            (0..self.items.len()).map(|p| (p, jumps(p))).filter(|(_, over)| !over.is_empty()).collect();
        let (Some((first, _)), Some(last)) = (moved.first(), moved.iter().flat_map(|(_, over)| over).max()) else {
            return Ok(());
        };
        let asked = self.dependences(func, *first..=*last);
        for (p, over) in moved {
            self.shapes(condition)?;
            if let Some(q) = over.iter().find(|q| contains_assumption(&self.items[**q])) {
                return Err(assumption(condition, &self.items[*q]));
            }
            if let Some(d) = asked(p, &over) {
                return Err(Refusal::dependence(condition, "it would reverse a dependence", d));
            }
        }
        Ok(())
    }

    /// Builds a query for a dependence of some later items on item `p`, within one iteration of the loops around the
    /// block. The query covers the items in `among` only.
    pub fn dependences<'a>(
        &'a self,
        func: &'a Func,
        among: RangeInclusive<usize>,
    ) -> impl Fn(usize, &[usize]) -> Option<Dependence> + 'a {
        let ids: Vec<StmtId> = self.items[among].iter().map(Stmt::id).collect();
        let all = Dependences::inside(func, &ids);
        let around = order::around(func, self.root.id());
        move |p, later| {
            all.first(&DependenceQuery {
                source: &|r| r.site.inside(self.items[p].id()),
                sink: &|r| later.iter().any(|q| r.site.inside(self.items[*q].id())),
                relate: &|s| if around.contains(&s.id()) { Relation::Same } else { Relation::Any },
                ..DependenceQuery::default()
            })
        }
    }

    /// Refuses a declaration whose shape reads a tensor written in the block: moving the declaration could change the
    /// shape.
    fn shapes(&self, condition: u32) -> Result<(), Refusal> {
        let changed = |d: &&Decl| {
            d.tensor.shape.iter().any(|e| {
                let loads = effects::loads(e);
                !loads.is_empty() && self.items.iter().any(|s| !effects::writes(s).is_disjoint(&loads))
            })
        };
        match self.decls.iter().find(changed) {
            Some(d) => {
                let text = format!("the shape of `{}` depends on values computed in the block", d.tensor.symbol);
                Err(Refusal::illegal(condition, text).label(d.stmt.origin().span(), "declared here"))
            }
            None => Ok(()),
        }
    }

    /// Rebuilds the block from new items, derived from the old ones. Every declaration opens before the first item that
    /// uses its tensor.
    pub fn build(&self, items: &[Stmt]) -> Stmt {
        let mut scopes: Vec<Scope<'_>> = Vec::new();
        let mut users: FxHashMap<Symbol, (usize, usize)> = FxHashMap::default();
        for (k, s) in items.iter().enumerate() {
            for tensor in used(s) {
                users.entry(tensor).or_insert((k, k)).1 = k;
            }
        }
        for d in &self.decls {
            // An unused declaration opens before the last item, inside any declaration that its shape needs.
            let nowhere = items.len().saturating_sub(1);
            let (from, last) = users.get(&d.tensor.symbol).map_or((nowhere, nowhere), |(from, to)| (*from, to + 1));
            scopes.push(Scope { decl: d, from, to: if d.to_end { items.len() } else { last } });
        }
        // A shape that reads another tensor of the block must lie within the scope of that tensor.
        for k in (0..scopes.len()).rev() {
            let (from, to) = (scopes[k].from, scopes[k].to);
            let shape = scopes[k].decl.tensor.shape.clone();
            for s in &mut scopes[..k] {
                if shape.iter().any(|e| effects::loads(e).contains(&s.decl.tensor.symbol)) {
                    (s.from, s.to) = (s.from.min(from), s.to.max(to));
                }
            }
        }
        scopes.sort_by_key(|s| s.from);
        // Two scopes are nested or disjoint.
        for a in (0..scopes.len()).rev() {
            for b in a + 1..scopes.len() {
                if scopes[b].from < scopes[a].to || scopes[b].from == scopes[a].from {
                    scopes[a].to = scopes[a].to.max(scopes[b].to);
                }
            }
        }
        nest(items, &scopes, 0, items.len(), self.root.origin())
    }
}

/// Scope of a declaration, as a half-open range of items.
struct Scope<'a> {
    decl: &'a Decl,
    from: usize,
    to: usize,
}

fn nest(items: &[Stmt], scopes: &[Scope<'_>], from: usize, to: usize, origin: &Origin) -> Stmt {
    let (mut out, mut at, mut next) = (Vec::new(), from, 0);
    loop {
        match scopes.get(next) {
            Some(s) if s.from == at => {
                let inside = scopes[next + 1..].iter().take_while(|i| i.from < s.to || i.from == s.from).count();
                let body = nest(items, &scopes[next + 1..=next + inside], s.from, s.to, origin);
                out.push(s.decl.around(body));
                (at, next) = (s.to, next + 1 + inside);
            }
            _ if at < to => {
                out.push(items[at].clone());
                at += 1;
            }
            _ => return Stmt::seq(out, origin.derive("block", "rest")),
        }
    }
}

/// Collects the tensors that a statement or its substatements read or write.
fn used(s: &Stmt) -> FxHashSet<Symbol> {
    let mut out = FxHashSet::default();
    s.walk(&mut |s| {
        match s.kind() {
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => _ = out.insert(tensor.clone()),
            StmtKind::Call { tensors, .. } => out.extend(tensors.iter().cloned()),
            kind => out.extend(kind.printed().into_iter().cloned()),
        }
        s.kind().exprs().into_iter().for_each(|e| out.extend(effects::loads(e)));
    });
    out
}

/// Returns whether a statement or one of its substatements reads or writes the tensor.
pub fn uses(s: &Stmt, tensor: &Symbol) -> bool {
    s.any(&mut |s| match s.kind() {
            StmtKind::Store { tensor: t, .. } | StmtKind::ReduceTo { tensor: t, .. } => t == tensor,
            StmtKind::Call { tensors, .. } => tensors.contains(tensor),
            kind => kind.printed().contains(&tensor),
        } || s.kind().exprs().into_iter().any(|e| reads(e, tensor)))
}

fn reads(e: &Expr, tensor: &Symbol) -> bool {
    let leaf = e.children().is_empty() && !matches!(e.kind(), ExprKind::Load(..));
    !leaf && effects::loads(e).contains(tensor)
}

/// Returns whether the statement contains an assumption. An assumption must not run earlier than written: it may hold
/// only because the statements before it did not stop the program.
pub fn contains_assumption(s: &Stmt) -> bool {
    s.any(&mut |s| matches!(s.kind(), StmtKind::Assume { .. }))
}

/// Builds the refusal of a step that would run an assumption earlier.
pub fn assumption(condition: u32, s: &Stmt) -> Refusal {
    Refusal::illegal(condition, "an assumption would run earlier than it is written")
        .label(s.origin().span(), "the assumption is in here")
}
