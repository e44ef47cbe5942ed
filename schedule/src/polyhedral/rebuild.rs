//! Loop generation: statements that run the leaves of a model in a given order.

use super::extract::PolyhedralModel;
use crate::eliminate_guards;
use crate::tree;
use rustc_hash::FxHashSet;
use taffeta_analysis::pass::copy;
use taffeta_analysis::polyhedral::{self, Dimension, Term, Tree};
use taffeta_analysis::query::{Context, walk};
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Extent, Func, LoopProps, Origin, Stmt, StmtId, StmtKind, poly};

/// Program with the leaves of a model in another order.
pub struct Rebuilt {
    /// Rewritten program.
    pub func: Func,
    /// Statement that replaces the root of the model.
    pub root: StmtId,
    /// Instances of each leaf.
    pub instances: Vec<Vec<StmtId>>,
    /// New loops in textual order, each with the dimension of the order that it scans.
    pub loops: Vec<(usize, StmtId)>,
    /// Removed leaves and branches, each with the statements that replace it. (The first instance of a leaf keeps its
    /// id.)
    pub moved: Vec<(StmtId, Vec<StmtId>)>,
}

/// Replaces the root of a model by loops. `step` is the name of the primitive. Returns `None` if isl finds no loops, or
/// their computations may wrap.
pub fn rebuild(
    model: &PolyhedralModel,
    order: &[Vec<Term>],
    dimensions: &[Dimension],
    step: &'static str,
) -> Option<Rebuilt> {
    let tree = polyhedral::generate(&model.region, order, dimensions)?;
    let origin = model.leaves.first().and_then(|l| l.loops.first()).map_or(Origin::none(), |l| l.stmt.origin().clone());
    let mut b = Builder { model, step, origin, instances: vec![Vec::new(); model.leaves.len()], loops: Vec::new() };
    let new = b.stmt(&tree);
    let Builder { instances, loops, .. } = b;
    let mut moved: Vec<(StmtId, Vec<StmtId>)> = Vec::new();
    for (leaf, own) in model.leaves.iter().zip(&instances) {
        if !own.contains(&leaf.stmt.id()) {
            moved.push((leaf.stmt.id(), own.clone()));
        }
    }
    let func = tree::replace(&model.func, model.root, &new);
    if !is_exact(&func, &new, &instances) {
        return None;
    }
    let eliminated = eliminate_guards::run(&func, new.id());
    moved.extend(eliminated.moved);
    Some(Rebuilt { func: eliminated.func, root: new.id(), instances, loops, moved })
}

/// Returns whether no loop bound, and no condition around the leaves, may wrap: isl computes with mathematical
/// integers.
fn is_exact(func: &Func, new: &Stmt, leaves: &[Vec<StmtId>]) -> bool {
    fn visit(s: &Stmt, facts: &mut Context, leaves: &FxHashSet<StmtId>) -> bool {
        if leaves.contains(&s.id()) {
            return true;
        }
        let exact = match s.kind() {
            StmtKind::For { extent: Extent::Range { begin, end, .. }, .. } => {
                facts.is_exact(begin) && facts.is_exact(end)
            }
            StmtKind::If { cond, .. } => facts.is_exact(cond),
            StmtKind::Seq(_) => true,
            _ => return true,
        };
        let mut inside = exact;
        walk::inside(s, facts, &mut |c, facts| inside = inside && visit(c, facts, leaves));
        inside
    }
    let leaves = leaves.iter().flatten().copied().collect();
    walk::at(func, new.id()).is_some_and(|mut facts| visit(new, &mut facts, &leaves))
}

struct Builder<'m> {
    model: &'m PolyhedralModel,
    step: &'static str,
    origin: Origin,
    /// Instances of each leaf.
    instances: Vec<Vec<StmtId>>,
    loops: Vec<(usize, StmtId)>,
}

impl Builder<'_> {
    fn stmt(&mut self, t: &Tree) -> Stmt {
        match t {
            Tree::Loop { dimension, iter, begin, end, step, body } => {
                let at = self.loops.len();
                self.loops.push((*dimension, StmtId::fresh()));
                let extent =
                    Extent::Range { begin: normalize_sums(begin), end: normalize_sums(end), step: Expr::int(*step) };
                let body = self.stmt(body);
                let kind = StmtKind::For { iter: iter.clone(), extent, props: LoopProps::default(), body };
                let new = Stmt::new(kind, self.origin.derive(self.step, "loop"));
                self.loops[at].1 = new.id();
                new
            }
            Tree::Branch { cond, then, otherwise } => {
                let then = self.stmt(then);
                let otherwise = otherwise.as_ref().map(|o| self.stmt(o));
                let kind = StmtKind::If { cond: normalize_sums(cond), then, otherwise };
                Stmt::new(kind, self.origin.derive(self.step, "guard"))
            }
            Tree::Block(all) => {
                let all: Vec<Stmt> = all.iter().map(|t| self.stmt(t)).collect();
                Stmt::seq(all, self.origin.derive(self.step, "block"))
            }
            Tree::Run(leaf, indices) => self.run(*leaf, indices),
        }
    }

    /// Creates an instance of a leaf. The first one is the leaf itself, further ones are copies.
    fn run(&mut self, leaf: usize, indices: &[Expr]) -> Stmt {
        let Some(whole) = self.model.leaves.get(leaf) else { return Stmt::nop() };
        let mut stmt = whole.stmt.clone();
        if !self.instances[leaf].is_empty() {
            stmt = copy::statement(&stmt, self.step, "copy");
        }
        for (l, value) in whole.loops.iter().zip(indices) {
            stmt = tree::substitute(&stmt, &l.iter, &normalize_sums(value));
        }
        self.instances[leaf].push(stmt.id());
        stmt
    }
}

/// Normalises the sums in an expression, at every depth.
fn normalize_sums(e: &Expr) -> Expr {
    match e.kind() {
        // An expression of another type is a parameter, and stays as it is.
        ExprKind::Apply(op, _) if matches!(e.dtype(), DType::I64 | DType::Bool) => {
            let inner = e.map_children(&mut normalize_sums);
            let is_sum = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Neg);
            if is_sum { poly::normalized_sum(&inner) } else { inner }
        }
        _ => e.clone(),
    }
}
