//! Incremental proof of marks: finds the loops that earlier steps marked, to run in any order or as library calls, and
//! that a step may affect.
//!
//! The proof of a mark depends on the body of the loop, on the loops, conditions and assertions around it, and on the
//! declarations of the tensors that it uses. A step that keeps all of these as the same nodes keeps the proof. A proof
//! that also depends on values computed elsewhere in the program ([`proof_depends_on_outside`]) is repeated after every
//! step.

use crate::concurrent::is_marked;
use crate::tree;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Extent, Func, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Returns the marked loops of `new` whose proofs may differ from those in `old`, and the loops to prove `again` after
/// every step, in textual order.
pub fn changed(old: &Func, new: &Func, again: &FxHashSet<StmtId>) -> Vec<Stmt> {
    let marked = Marked::all(new);
    if marked.is_empty() || !old.interface().eq(new.interface()) || old.sizes != new.sizes {
        return marked.into_iter().map(|m| m.stmt).collect();
    }
    let known: FxHashMap<StmtId, Marked> = Marked::all(old).into_iter().map(|m| (m.stmt.id(), m)).collect();
    let same = |m: &Marked| known.get(&m.stmt.id()).is_some_and(|k| k.has_same_context(m));
    marked.into_iter().filter(|m| again.contains(&m.stmt.id()) || !same(m)).map(|m| m.stmt).collect()
}

/// Lists all marked loops of a program, in textual order.
pub fn every(func: &Func) -> Vec<Stmt> {
    let mut out = Vec::new();
    func.body.walk(&mut |s| out.extend(needs_proof(s).then(|| s.clone())));
    out
}

/// Returns whether a loop has a mark that needs a proof.
fn needs_proof(s: &Stmt) -> bool {
    is_marked(s) || is_library(s)
}

/// Returns whether a nest is run by a library call.
pub(crate) fn is_library(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::For { props, .. } if props.library)
}

/// Construct that contributes facts at a loop. The marks of enclosing loops do not matter.
#[derive(Clone, Debug, PartialEq)]
enum EnclosingFact {
    /// Iteration of a loop.
    Loop(Symbol, Extent),
    /// Iteration of a `while`.
    While(Expr),
    /// Branch in which the condition holds (`true`) or does not hold.
    Branch(Expr, bool),
    /// Assertion that was passed.
    Asserted(Expr),
}

/// Marked loop with its context.
struct Marked {
    stmt: Stmt,
    around: Vec<EnclosingFact>,
    /// Local tensors in scope at the loop.
    declared: Vec<Arc<Tensor>>,
}

impl Marked {
    fn all(func: &Func) -> Vec<Marked> {
        let mut search = MarkCollector::default();
        search.stmt(&func.body);
        search.out
    }

    fn has_same_context(&self, other: &Marked) -> bool {
        self.stmt.same_node(&other.stmt) && self.around == other.around && self.uses_the_same(other)
    }

    /// Returns whether the tensors that the loop uses have the same declarations.
    fn uses_the_same(&self, other: &Marked) -> bool {
        let (ours, theirs) = (&self.declared, &other.declared);
        if ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| Arc::ptr_eq(a, b)) {
            return true;
        }
        let used = mentioned(&self.stmt);
        let of = |all: &[Arc<Tensor>]| -> FxHashMap<Symbol, Arc<Tensor>> {
            let own = all.iter().filter(|t| used.contains(&t.symbol));
            own.map(|t| (t.symbol.clone(), t.clone())).collect()
        };
        of(ours) == of(theirs)
    }
}

#[derive(Default)]
struct MarkCollector {
    around: Vec<EnclosingFact>,
    declared: Vec<Arc<Tensor>>,
    out: Vec<Marked>,
}

impl MarkCollector {
    fn stmt(&mut self, s: &Stmt) {
        if needs_proof(s) {
            let (around, declared) = (self.around.clone(), self.declared.clone());
            self.out.push(Marked { stmt: s.clone(), around, declared });
        }
        let depth = self.around.len();
        match s.kind() {
            StmtKind::Seq(all) => {
                for s in all {
                    self.stmt(s);
                    if let StmtKind::Assert { cond, .. } | StmtKind::Assume { cond } = s.kind() {
                        self.around.push(EnclosingFact::Asserted(cond.clone()));
                    }
                }
                self.around.truncate(depth);
            }
            StmtKind::VarDef { tensor, body } => {
                self.declared.push(tensor.clone());
                self.stmt(body);
                self.declared.pop();
            }
            StmtKind::For { iter, extent, body, .. } => {
                self.inside(EnclosingFact::Loop(iter.clone(), extent.clone()), body);
            }
            StmtKind::While { cond, body } => self.inside(EnclosingFact::While(cond.clone()), body),
            StmtKind::If { cond, then, otherwise } => {
                self.inside(EnclosingFact::Branch(cond.clone(), true), then);
                if let Some(s) = otherwise {
                    self.inside(EnclosingFact::Branch(cond.clone(), false), s);
                }
            }
            _ => {}
        }
    }

    fn inside(&mut self, around: EnclosingFact, s: &Stmt) {
        self.around.push(around);
        self.stmt(s);
        self.around.pop();
    }
}

/// Collects the tensors that a statement uses, or whose sizes it queries.
fn mentioned(s: &Stmt) -> FxHashSet<Symbol> {
    let mut out = effects::writes(s);
    s.walk(&mut |s| {
        out.extend(s.kind().printed().into_iter().cloned());
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, _) | ExprKind::Measure(_, t) = e.kind() {
                    out.insert(t.clone());
                }
            });
        }
    });
    out
}

/// Returns whether the proof of a mark depends on more than the loop and its context: on elements read by conditions,
/// bounds and shapes around it, which other statements may write, or on integers computed elsewhere.
pub fn proof_depends_on_outside(func: &Func, stmt: &Stmt) -> bool {
    let Some(path) = tree::path(&func.body, stmt.id()) else { return true };
    // A tensor that the program does not write is not written by any step.
    let written = effects::writes(&func.body);
    let reads = |e: &Expr| !effects::loads(e).is_disjoint(&written);
    // Sequences on the path contribute the assertions in them.
    let asserted = |s: &Stmt| match s.kind() {
        StmtKind::Seq(all) => all.iter().any(|s| match s.kind() {
            StmtKind::Assert { cond, .. } | StmtKind::Assume { cond } => reads(cond),
            _ => false,
        }),
        StmtKind::While { .. } => true,
        kind => kind.exprs().into_iter().any(reads),
    };
    if path.iter().any(asserted) {
        return true;
    }
    let library = is_library(stmt);
    let (mut declared, mut scalars) = (FxHashSet::default(), FxHashSet::default());
    stmt.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            declared.insert(tensor.symbol.clone());
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, indices) = e.kind()
                    && (indices.is_empty() || library)
                    && e.dtype().is_int()
                    && written.contains(t)
                {
                    scalars.insert(t.clone());
                }
            });
        }
    });
    !scalars.is_subset(&declared)
}
