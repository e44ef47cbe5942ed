//! Removal of dead tensors, stores, loops and branches.
//!
//! **Does**: removes local tensors that no live statement reads, with the stores and reductions into them: tensors that
//! are only used to compute each other go together. Removes loops and branches with empty bodies.
//!
//! **Requires**: a valid program, logical or lowered.
//!
//! **Ensures**: a live statement keeps its id and origin. A program that stops still stops, at the same statement. A
//! statement that could stop the program is kept unless it is proved not to: a store whose index is not proved in range
//! or whose value may fail (and with it the tensor), a declaration whose sizes may be negative or surely overflow, a
//! loop whose step may be 0, and every assertion.
//!
//! **Example**
//!
//! before
//! ```text
//! t = empty((n,), f32)
//! for i in range(n):
//!     t[i] = x[i, 0]
//!     if i < 3:
//!         pass
//!     y[i] = 1.0
//! ```
//! after
//! ```text
//! for i in range(n):
//!     y[i] = 1.0
//! ```
//!
//! (where `m` is known to be positive, so that `x[i, 0]` is in range)
//!
//! A dead declaration whose sizes only *might* be too large for a tensor is removed, since no code should run for the
//! sake of an error alone. [`run_with_size_checks`] keeps it, with an empty scope: C is generated from that form,
//! checks the sizes there without allocating memory, and so reports the interpreter's errors.
//!
//! **Leaves alone**: parameters and results, prints, calls of outside functions and their arguments, `while`,
//! structured tensors.

use crate::query::depend::Dependences;
use crate::query::reference::Reference;
use crate::query::walk::{Visitor, walk};
use crate::query::{Context, Interval, MAX_SIZE, effects};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::sync::Arc;
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Removes dead code. A removal may leave other tensors unread, so the sweep is repeated until it changes nothing, up
/// to eight times.
pub fn run(func: &Func) -> Func {
    sweep(func, Mode::default())
}

/// Removes dead code, but leaves an empty declaration of a tensor whose sizes are not proved to fit.
pub fn run_with_size_checks(func: &Func) -> Func {
    sweep(func, Mode { size_checks: true, ..Mode::default() })
}

/// Removes dead code, and also stores that only check indices which a live statement checks too. A program that stops
/// still stops, but maybe at another statement.
///
/// For a gradient: its forward pass is run for values that the backward pass reads, which often reads at the same
/// indices (`x[k[e]]`).
pub fn run_without_repeated_checks(func: &Func) -> Func {
    sweep(func, Mode { repeated_checks: false, ..Mode::default() })
}

/// Dead code that is kept.
#[derive(Clone, Copy)]
struct Mode {
    /// Whether empty declarations of tensors that might be too large are kept.
    size_checks: bool,
    /// Whether stores are kept whose index checks are repeated elsewhere.
    repeated_checks: bool,
}

impl Default for Mode {
    fn default() -> Mode {
        Mode { size_checks: false, repeated_checks: true }
    }
}

fn sweep(func: &Func, mode: Mode) -> Func {
    let mut func = func.clone();
    for _ in 0..8 {
        let reads = Reads::of(&func);
        let mut survey = Survey {
            mode,
            func: &func,
            dependences: OnceCell::new(),
            interface: func.interface().map(|t| &**t).collect(),
            live: reads.live([]),
            pinned: FxHashSet::default(),
            unproved: FxHashSet::default(),
            quiet: FxHashSet::default(),
        };
        walk(&func.body, &mut Context::new(&func), &mut survey);
        survey.live = reads.live(std::mem::take(&mut survey.pinned));
        let body = survey.sweep(&func.body, &mut FxHashSet::default());
        if body.same_node(&func.body) {
            break;
        }
        func = func.with_body(body);
    }
    func
}

/// Tensors by their readers.
struct Reads {
    /// Tensors read by statements other than stores into local tensors.
    roots: FxHashSet<Symbol>,
    /// For each local tensor, the tensors read by the stores and reductions into it.
    through: FxHashMap<Symbol, FxHashSet<Symbol>>,
}

impl Reads {
    fn of(func: &Func) -> Reads {
        let mut through = FxHashMap::default();
        let mut roots: FxHashSet<Symbol> = func.made.iter().map(|t| t.symbol.clone()).collect();
        func.body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind()
                && !roots.contains(&tensor.symbol)
            {
                through.insert(tensor.symbol.clone(), FxHashSet::default());
            }
        });
        func.body.walk(&mut |s| {
            let reads = s.kind().exprs().into_iter().flat_map(effects::loads);
            match s.kind() {
                StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => {
                    through.get_mut(tensor).unwrap_or(&mut roots).extend(reads);
                }
                StmtKind::Call { tensors, .. } => roots.extend(reads.chain(tensors.iter().cloned())),
                kind => roots.extend(reads.chain(kind.printed().into_iter().cloned())),
            }
        });
        Reads { roots, through }
    }

    /// Returns the tensors whose elements matter, given that those of the roots and of `pinned` do.
    fn live(&self, pinned: impl IntoIterator<Item = Symbol>) -> FxHashSet<Symbol> {
        let mut found: Vec<Symbol> = self.roots.iter().cloned().chain(pinned).collect();
        let mut live = FxHashSet::default();
        while let Some(tensor) = found.pop() {
            if live.insert(tensor.clone()) {
                found.extend(self.through.get(&tensor).into_iter().flatten().cloned());
            }
        }
        live
    }
}

/// Survey of the statements that may be removed.
struct Survey<'f> {
    mode: Mode,
    func: &'f Func,
    /// Dependences of the program, computed on the first query for repeated checks.
    dependences: OnceCell<Dependences<'f>>,
    /// Parameters and results; the caller's tensors fit.
    interface: Vec<&'f Tensor>,
    /// Tensors whose elements matter.
    live: FxHashSet<Symbol>,
    /// Tensors that stay even if they are dead, since their declaration or a store into them may stop the program.
    pinned: FxHashSet<Symbol>,
    /// Tensors that might be too large: their empty declarations are kept.
    unproved: FxHashSet<Symbol>,
    /// Loops and branches that cannot stop the program by themselves.
    quiet: FxHashSet<StmtId>,
}

impl Visitor for Survey<'_> {
    fn stmt(&mut self, stmt: &Stmt, facts: &mut Context) {
        match stmt.kind() {
            StmtKind::Store { tensor, indices, value } | StmtKind::ReduceTo { tensor, indices, value, .. }
                if !self.live.contains(tensor)
                    && (facts.element_may_stop(tensor, indices) || facts.may_stop(value))
                    && !self.is_checked_elsewhere(stmt, (tensor, indices, value), facts) =>
            {
                self.pinned.insert(tensor.clone());
            }
            StmtKind::VarDef { tensor, .. } => match fit(tensor, facts) {
                Fit::Unknown if self.interface.iter().any(|t| t.has_sizes(&tensor.shape)) => {}
                Fit::Unknown if self.mode.size_checks => drop(self.unproved.insert(tensor.symbol.clone())),
                Fit::Unknown | Fit::Proved => {}
                Fit::Refuted => drop(self.pinned.insert(tensor.symbol.clone())),
            },
            StmtKind::For { extent: Extent::Range { begin, end, step }, .. } => {
                let steps = step.as_int().is_some_and(|s| s != 0);
                if steps && ![begin, end, step].into_iter().any(|e| facts.may_stop(e)) {
                    self.quiet.insert(stmt.id());
                }
            }
            StmtKind::If { cond, .. } if !facts.may_stop(cond) => {
                self.quiet.insert(stmt.id());
            }
            _ => {}
        }
    }
}

/// Verdict on the sizes of a declaration.
enum Fit {
    /// Non-negative sizes, with a product that fits a tensor.
    Proved,
    /// Non-negative sizes, with a product that might be too large.
    Unknown,
    /// Size that might be negative or fail to evaluate, or product that is surely too large.
    Refuted,
}

fn fit(tensor: &Tensor, facts: &mut Context) -> Fit {
    let sizes: Vec<_> = tensor.shape.iter().map(|d| facts.bounds(d).interval).collect();
    let product = |size: fn(&Interval) -> i128| {
        let elements = sizes.iter().try_fold(1i128, |product, n| product.checked_mul(size(n).max(1)));
        elements.is_some_and(|n| n <= i128::from(MAX_SIZE))
    };
    if tensor.shape.iter().any(|d| facts.may_stop(d)) || sizes.iter().any(|n| n.lo < 0) || !product(|n| n.lo) {
        return Fit::Refuted;
    }
    if product(|n| n.hi) && tensor.shape.iter().all(|d| is_exact(d, facts)) { Fit::Proved } else { Fit::Unknown }
}

/// Returns whether no operation in a size can wrap, which is an error in a declaration.
fn is_exact(size: &Expr, facts: &mut Context) -> bool {
    let mut exact = true;
    size.walk(&mut |e| {
        if let (ExprKind::Apply(..), Some((lo, hi))) = (e.kind(), e.dtype().int_range()) {
            let values = facts.bounds(e).interval;
            exact &= lo < values.lo && values.hi < hi;
        }
    });
    exact
}

impl<'f> Survey<'f> {
    /// Returns whether a dead store can only be stopped by index checks that are repeated in a live statement.
    fn is_checked_elsewhere(
        &self,
        stmt: &Stmt,
        (tensor, indices, value): (&Symbol, &[Access], &Expr),
        facts: &mut Context,
    ) -> bool {
        if self.mode.repeated_checks {
            return false;
        }
        let mut checks = Vec::new();
        if !facts.unproved_indices(tensor, indices, &mut checks) || !facts.unproved(value, &mut checks) {
            return false;
        }
        let dependences = self.dependences.get_or_init(|| Dependences::new(self.func));
        let stays = |r: &Reference| match r.site.stmt.kind() {
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => {
                self.live.contains(tensor) || self.interface.iter().any(|t| t.symbol == *tensor)
            }
            _ => false,
        };
        checks.iter().all(|check| dependences.is_checked_elsewhere(stmt.id(), check, &stays))
    }

    fn is_dead(&self, tensor: &Symbol) -> bool {
        !self.live.contains(tensor)
    }

    /// Removes the dead code in a statement. `gone` holds the dead tensors around it, which the statement may write.
    fn sweep(&self, stmt: &Stmt, gone: &mut FxHashSet<Symbol>) -> Stmt {
        let new = match stmt.kind() {
            StmtKind::VarDef { tensor, body } if self.is_dead(&tensor.symbol) => {
                let inner = gone.insert(tensor.symbol.clone());
                let body = self.sweep(body, gone);
                if inner {
                    gone.remove(&tensor.symbol);
                }
                return match self.unproved.contains(&tensor.symbol) {
                    true => checked(stmt, tensor, body),
                    false => body,
                };
            }
            StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } if gone.contains(tensor) => {
                return Stmt::nop();
            }
            StmtKind::For { iter, extent, props, body }
                if props.reductions.iter().any(|r| gone.contains(&r.tensor)) =>
            {
                let mut props = props.clone();
                props.reductions.retain(|r| !gone.contains(&r.tensor));
                let (iter, extent, body) = (iter.clone(), extent.clone(), self.sweep(body, gone));
                stmt.with_kind(StmtKind::For { iter, extent, props, body })
            }
            StmtKind::Seq(stmts) => {
                let new: Vec<Stmt> = stmts.iter().map(|s| self.sweep(s, gone)).collect();
                if new.iter().zip(stmts).all(|(a, b)| a.same_node(b)) && !new.iter().any(Stmt::is_nop) {
                    return stmt.clone();
                }
                let flat = Stmt::seq(new.into_iter().filter(|s| !s.is_nop()), stmt.origin().clone());
                return match flat.kind() {
                    StmtKind::Seq(_) => stmt.with_kind(flat.kind().clone()),
                    _ => flat,
                };
            }
            _ => stmt.map(&mut |s| self.sweep(s, gone), &mut Expr::clone),
        };
        let empty = match new.kind() {
            StmtKind::For { body, .. } => body.is_nop(),
            StmtKind::If { then, otherwise, .. } => then.is_nop() && otherwise.as_ref().is_none_or(Stmt::is_nop),
            _ => false,
        };
        if empty && self.quiet.contains(&new.id()) { Stmt::nop() } else { new }
    }
}

/// Returns an empty declaration, which stops the program where the tensor is too large, followed by the former scope.
fn checked(declaration: &Stmt, tensor: &Arc<Tensor>, rest: Stmt) -> Stmt {
    if matches!(declaration.kind(), StmtKind::VarDef { body, .. } if body.is_nop()) {
        return declaration.clone();
    }
    let empty = declaration.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: Stmt::nop() });
    Stmt::seq([empty, rest], declaration.origin().derive("dead", "sequence"))
}
