//! Removes what nobody reads and what does nothing.
//!
//! **Does**: removes local tensors that nothing reads which stays, with the stores and reductions into them: tensors
//! that are only computed from each other go together. Removes loops and branches whose body is empty.
//!
//! **Requires**: a valid program, logical or lowered.
//!
//! **Ensures**: what stays keeps its id and origin. A program that stops still stops, at the same statement. What could
//! stop it is kept unless it is proved that it does not: a store whose index is not proved to be in range or whose
//! value may fail (and with it the tensor), a declaration whose sizes may be negative or surely overflow, a loop whose
//! step may be 0, and every assertion.
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
//! A declaration whose sizes only *might* be too large for a tensor goes with the rest, since nothing is to be computed
//! for the sake of an error. [`run_with_size_checks`] leaves it, with nothing in its scope: C is made from that, checks
//! the sizes there and needs no memory for it, and so reports what the interpreter reports.
//!
//! **Leaves alone**: parameters and results, prints, calls of outside functions and what they are given, `while`,
//! structured tensors.

use crate::query::depend::Dependences;
use crate::query::reference::Reference;
use crate::query::walk::{Visitor, walk};
use crate::query::{Context, Interval, MAX_SIZE, effects};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::sync::Arc;
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// The program without what is dead. Removing one thing may leave others unread, so it is repeated while it helps.
pub fn run(func: &Func) -> Func {
    sweep(func, Mode::default())
}

/// The program without what is dead. Of a tensor whose sizes are not proved to fit, an empty declaration is left.
pub fn run_with_size_checks(func: &Func) -> Func {
    sweep(func, Mode { size_checks: true, ..Mode::default() })
}

/// The program without what is dead, and without what only checks indices that something which stays checks too. A
/// program that stops still stops, but where that is.
///
/// For a gradient: its forward pass is made for the sake of what the backward pass reads, which often reads at the same
/// indices (`x[k[e]]`).
pub fn run_without_repeated_checks(func: &Func) -> Func {
    sweep(func, Mode { repeated_checks: false, ..Mode::default() })
}

/// What is kept of what is dead.
#[derive(Clone, Copy)]
struct Mode {
    /// The declaration of a tensor that might be too large, empty.
    size_checks: bool,
    /// Stores that check indices which others check too.
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

/// Which tensors are read by what.
struct Reads {
    /// Read by what is not a store into a local tensor.
    roots: FxHashSet<Symbol>,
    /// Read by the stores and reductions into a local tensor.
    through: FxHashMap<Symbol, FxHashSet<Symbol>>,
}

impl Reads {
    fn of(func: &Func) -> Reads {
        let mut through = FxHashMap::default();
        func.body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind() {
                through.insert(tensor.symbol.clone(), FxHashSet::default());
            }
        });
        let mut roots = FxHashSet::default();
        func.body.walk(&mut |s| {
            let reads = s.kind().exprs().into_iter().flat_map(effects::loads);
            match s.kind() {
                StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => {
                    through.get_mut(tensor).unwrap_or(&mut roots).extend(reads);
                }
                StmtKind::Eval { args, .. } => roots.extend(reads.chain(args.iter().cloned())),
                kind => roots.extend(reads.chain(kind.printed().into_iter().cloned())),
            }
        });
        Reads { roots, through }
    }

    /// The tensors whose elements matter, if those of the roots and of `pinned` do.
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

/// What may be removed.
struct Survey<'f> {
    mode: Mode,
    func: &'f Func,
    /// Of the program, where it is asked which checks are repeated.
    dependences: OnceCell<Dependences<'f>>,
    /// Parameters and results: the caller's tensors fit.
    interface: Vec<&'f Tensor>,
    /// Tensors whose elements matter.
    live: FxHashSet<Symbol>,
    /// Tensors whose declaration, or a store into which, may stop the program.
    pinned: FxHashSet<Symbol>,
    /// Tensors that might be too large: an empty declaration of them is left.
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

/// What is known of the sizes of a declaration.
enum Fit {
    /// None is negative, and their product is that of a tensor.
    Proved,
    /// None is negative, and their product might be too large.
    Unknown,
    /// One might be negative or have no value, or the product is surely too large.
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

/// Whether no step of computing a size can wrap, which is an error there.
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
    /// Whether all that could stop a store which is dead are indices that something which stays checks too.
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

    /// The statement without what is dead. `gone` are the dead tensors around it, which it may write.
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

/// An empty declaration, which stops the program where the tensor is too large, and what was in its scope after it.
fn checked(declaration: &Stmt, tensor: &Arc<Tensor>, rest: Stmt) -> Stmt {
    if matches!(declaration.kind(), StmtKind::VarDef { body, .. } if body.is_nop()) {
        return declaration.clone();
    }
    let empty = declaration.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: Stmt::nop() });
    Stmt::seq([empty, rest], declaration.origin().derive("dead", "sequence"))
}
