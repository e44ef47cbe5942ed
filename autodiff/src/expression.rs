//! Derivatives of one expression, in reverse and forward mode.

use crate::activity::Varying;
use crate::partials::{PartialDerivative, partial, product, working};
use rustc_hash::FxHashSet;
use taffeta_ast::{Expr, ExprKind, Symbol};

/// Summand of the adjoint of an element that an expression reads.
pub(crate) struct Contribution {
    /// Element, as a load of the expression.
    pub load: Expr,
    /// Value to add.
    pub value: Expr,
    /// Conditions, with the value of each, under which the element is read and its index is in range.
    pub guards: Vec<(Expr, bool)>,
}

/// Propagates the adjoint `d` of `e` to the elements of `active` tensors that `e` reads: one entry for each element and
/// its guards, in the order of the reads. Derivatives are computed in the `working` type of the values that they belong
/// to.
pub(crate) fn reverse(e: &Expr, d: &Expr, active: &FxHashSet<Symbol>) -> Vec<Contribution> {
    let mut r =
        Reverse { varying: Varying::new(active), guards: Vec::new(), surely: FxHashSet::default(), out: Vec::new() };
    always(e, &mut r.surely);
    r.visit(e, d.clone());
    r.out
}

struct Reverse<'a> {
    varying: Varying<'a>,
    /// Conditions around the current operand under which it is evaluated.
    guards: Vec<(Expr, bool)>,
    /// Elements that are read unconditionally, whose indices must be in range.
    surely: FxHashSet<Expr>,
    out: Vec<Contribution>,
}

impl Reverse<'_> {
    fn visit(&mut self, e: &Expr, d: Expr) {
        if !self.varying.contains(e) {
            return;
        }
        match e.kind() {
            ExprKind::Load(..) => self.add(e, d),
            ExprKind::Cast(inner) => self.visit(inner, d.cast(working(inner.dtype()))),
            ExprKind::Apply(op, args) => {
                for (k, a) in args.iter().enumerate() {
                    if !self.varying.contains(a) {
                        continue;
                    }
                    match partial(*op, args, k, &d) {
                        PartialDerivative::None => {}
                        PartialDerivative::Scaled(d) => self.visit(a, d),
                        PartialDerivative::Where { cond, holds, lazy } => self.branch(a, &d, cond, holds, lazy),
                    }
                }
            }
            _ => {}
        }
    }

    /// Visits an operand that is the value only where `cond` is equal to `holds`. Multiplication by 0 elsewhere would
    /// make NaN of infinities.
    fn branch(&mut self, e: &Expr, d: &Expr, cond: Expr, holds: bool, lazy: bool) {
        let first = self.out.len();
        if lazy {
            self.guards.push((cond.clone(), holds));
        }
        let before = std::mem::take(&mut self.out);
        self.visit(e, d.clone());
        let inner = std::mem::replace(&mut self.out, before);
        debug_assert_eq!(first, self.out.len());
        if lazy {
            self.guards.pop();
        }
        for c in inner {
            // Where the element may be read, so may its adjoint: a select is better code than a branch.
            let read = c.guards.is_empty() || !lazy;
            let value = if read {
                let zero = Expr::float(0.0, c.value.dtype());
                if holds { cond.select(&c.value, &zero) } else { cond.select(&zero, &c.value) }
            } else {
                c.value
            };
            self.merge(Contribution { load: c.load, value, guards: c.guards });
        }
    }

    fn add(&mut self, load: &Expr, d: Expr) {
        let guards = if self.surely.contains(load) { Vec::new() } else { self.guards.clone() };
        self.merge(Contribution { load: load.clone(), value: d, guards });
    }

    fn merge(&mut self, c: Contribution) {
        match self.out.iter_mut().find(|o| o.load == c.load && o.guards == c.guards) {
            Some(o) => o.value = o.value.plus(&c.value),
            None => self.out.push(c),
        }
    }
}

/// Collects the loads that every evaluation of `e` makes.
fn always(e: &Expr, out: &mut FxHashSet<Expr>) {
    match e.kind() {
        ExprKind::Apply(op, args) if op.is_lazy() => always(&args[0], out),
        _ => {
            if matches!(e.kind(), ExprKind::Load(..)) {
                out.insert(e.clone());
            }
            for c in e.children() {
                always(c, out);
            }
        }
    }
}

/// Builds the tangent of `e` from the tangents of its loads, in the `working` type; returns `None` if `e` does not
/// change.
pub(crate) fn forward(e: &Expr, active: &FxHashSet<Symbol>, tangent: &dyn Fn(&Expr) -> Expr) -> Option<Expr> {
    change(e, &mut Varying::new(active), tangent)
}

fn change(e: &Expr, varying: &mut Varying<'_>, tangent: &dyn Fn(&Expr) -> Expr) -> Option<Expr> {
    if !varying.contains(e) {
        return None;
    }
    match e.kind() {
        ExprKind::Load(..) => Some(tangent(e)),
        ExprKind::Cast(inner) => Some(change(inner, varying, tangent)?.cast(working(e.dtype()))),
        ExprKind::Apply(op, args) => {
            let mut sum: Option<Expr> = None;
            for (k, a) in args.iter().enumerate() {
                let Some(d) = change(a, varying, tangent) else { continue };
                let term = match partial(*op, args, k, &d) {
                    PartialDerivative::None => continue,
                    PartialDerivative::Scaled(d) => product(&Expr::float(1.0, d.dtype()), &d),
                    PartialDerivative::Where { cond, holds, .. } => {
                        let zero = Expr::float(0.0, d.dtype());
                        if holds { cond.select(&d, &zero) } else { cond.select(&zero, &d) }
                    }
                };
                sum = Some(sum.map_or(term.clone(), |s| s.plus(&term)));
            }
            sum
        }
        _ => None,
    }
}
