//! What is known at a place of the program, asked by [`super::checks`].

use weft_ast::{Expr, ExprKind, Op, Symbol, poly};

/// The loops and branches around a place.
pub(super) struct Facts {
    sizes: Vec<Symbol>,
    scopes: Vec<Scope>,
}

enum Scope {
    /// `begin <= iter < end`
    Loop { iter: Symbol, begin: Expr, end: Expr },
    /// A loop of which nothing is known.
    Opaque,
    /// A condition without loads.
    Holds(Expr),
}

impl Facts {
    pub fn new(sizes: &[Symbol]) -> Facts {
        Facts { sizes: sizes.to_vec(), scopes: Vec::new() }
    }

    pub fn enter(&mut self, iter: &Symbol, begin: &Expr, end: &Expr, step: &Expr) {
        let forward = step.as_int().is_some_and(|s| s > 0);
        let scope = if forward {
            Scope::Loop { iter: iter.clone(), begin: begin.clone(), end: end.clone() }
        } else {
            Scope::Opaque
        };
        self.scopes.push(scope);
    }

    pub fn assume(&mut self, cond: &Expr) {
        self.scopes.push(Scope::Holds(cond.clone()));
    }

    pub fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Whether `cond` holds at this place, where `guards` hold too.
    pub fn holds(&self, cond: &Expr, guards: &[Expr]) -> bool {
        match cond.kind() {
            ExprKind::Apply(Op::And, a) => self.holds(&a[0], guards) && self.holds(&a[1], guards),
            ExprKind::Apply(Op::Or, a) => self.holds(&a[0], guards) || self.holds(&a[1], guards),
            ExprKind::Apply(Op::Le, a) => self.not_negative(&a[0], &a[1]),
            ExprKind::Apply(Op::Lt, a) => self.less(&a[0], &a[1]),
            ExprKind::Apply(Op::Ne, a) => match (a[0].as_int(), a[1].as_int()) {
                (Some(x), Some(y)) => x != y,
                _ => false,
            },
            _ => cond.as_bool() == Some(true),
        }
    }

    fn range(&self, e: &Expr) -> Option<(&Expr, &Expr)> {
        let ExprKind::Var(v) = e.kind() else { return None };
        self.scopes.iter().find_map(|s| match s {
            Scope::Loop { iter, begin, end } if iter == v => Some((begin, end)),
            _ => None,
        })
    }

    fn not_negative(&self, zero: &Expr, e: &Expr) -> bool {
        if zero.as_int() != Some(0) {
            return false;
        }
        match e.kind() {
            ExprKind::Const(_) => e.as_int().is_some_and(|v| v >= 0),
            ExprKind::Var(v) if self.sizes.contains(v) => true,
            ExprKind::Apply(Op::Mod, a) => a[1].as_int().is_some_and(|m| m > 0),
            _ => self.range(e).is_some_and(|(begin, _)| self.not_negative(zero, begin)),
        }
    }

    fn less(&self, e: &Expr, bound: &Expr) -> bool {
        if let (Some(a), Some(b)) = (e.as_int(), bound.as_int()) {
            return a < b;
        }
        if let (ExprKind::Apply(Op::Mod, a), Some(b)) = (e.kind(), bound.as_int()) {
            return a[1].as_int().is_some_and(|m| 0 < m && m <= b);
        }
        let Some((_, end)) = self.range(e) else { return false };
        poly::equal(end, bound) == Some(true)
            || matches!((end.as_int(), bound.as_int()), (Some(a), Some(b)) if a <= b)
    }
}
