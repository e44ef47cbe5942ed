//! Recurrences: the latency of an innermost iteration that needs an element stored by an earlier one.
//!
//! ```text
//! a[i, j] = (a[i, j - 1] + …) / 9.0        a store, a load of it, and all operations on the way back to the store
//! ```

use super::work::Work;
use crate::auto::target::Prices;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use taffeta_analysis::pass::substitute::rewrite_expr;
use taffeta_analysis::query::effects;
use taffeta_ast::{Expr, ExprKind, Symbol, poly};

/// Latency of store-to-load forwarding, in additions.
const FORWARDED: f64 = 2.0;
/// Maximum dependence distance searched, in iterations.
const BACK: i64 = 2;
/// Maximum number of operands visited in the search of one value.
const MAX_OPERANDS: usize = 256;

/// Symbolic values of the scalars computed in an iteration; no value mentions its own scalar.
#[derive(Default)]
pub(super) struct Scalars {
    values: FxHashMap<Symbol, Expr>,
    /// Scalars whose values were at some time computed from a tensor, by tensor.
    from: FxHashMap<Symbol, Vec<Symbol>>,
}

impl Scalars {
    pub(super) fn value(&self, scalar: &Symbol) -> Option<&Expr> {
        self.values.get(scalar)
    }

    /// Sets a scalar's value, and invalidates values computed from its previous one.
    pub(super) fn store(&mut self, scalar: &Symbol, value: &Expr) {
        self.values.remove(scalar);
        for reader in self.from.remove(scalar).unwrap_or_default() {
            if self.values.get(&reader).is_some_and(|known| effects::loads(known).contains(scalar)) {
                self.values.remove(&reader);
            }
        }
        let read = effects::loads(value);
        if !read.contains(scalar) {
            self.values.insert(scalar.clone(), value.clone());
            read.into_iter().for_each(|t| self.from.entry(t).or_default().push(scalar.clone()));
        }
    }
}

/// Returns the time in nanoseconds that each iteration of the loop waits for earlier ones, where `value` is stored to
/// an element of a tensor; 0 if `value` depends on none of the last `BACK` iterations. `scalars` holds the values of
/// the iteration's scalars.
pub(super) fn wait(
    iter: &Symbol,
    (tensor, at): (&Symbol, &[&Expr]),
    value: &Expr,
    scalars: &Scalars,
    prices: &Prices,
) -> f64 {
    let earlier = |k: i64| -> Vec<Expr> {
        let mut shifted = |e: &Expr| match e.kind() {
            ExprKind::Var(v) if v == iter => Some(Expr::var(iter).minus(&Expr::int(k))),
            _ => None,
        };
        at.iter().map(|e| rewrite_expr(e, &mut shifted, &mut FxHashMap::default())).collect()
    };
    (1..=BACK)
        .filter_map(|k| {
            let element = earlier(k);
            let is_it = |t: &Symbol, at: &[Expr]| {
                t == tensor && at.iter().zip(&element).all(|(a, b)| poly::equal(a, b) == Some(true))
            };
            // An element fixed in all iterations is a sum, not a recurrence along the loop.
            let moves = element.iter().zip(at).any(|(a, b)| poly::equal(a, b) != Some(true));
            let way = OperandSearch { left: Cell::new(MAX_OPERANDS), is_it: &is_it, scalars, prices }
                .latency_from_load(value)
                .filter(|_| moves)?;
            Some((way + FORWARDED * prices.latency) / k as f64)
        })
        .fold(0.0, f64::max)
}

/// Search of a value's direct and indirect operands for loads of an element.
struct OperandSearch<'a> {
    /// Remaining number of operands to visit.
    left: Cell<usize>,
    is_it: &'a dyn Fn(&Symbol, &[Expr]) -> bool,
    scalars: &'a Scalars,
    prices: &'a Prices,
}

impl OperandSearch<'_> {
    /// Returns the latency of the longest path of operations from a load of the element to the value.
    fn latency_from_load(&self, e: &Expr) -> Option<f64> {
        self.left.set(self.left.get().checked_sub(1)?);
        match e.kind() {
            ExprKind::Load(t, at) if at.is_empty() => {
                self.scalars.value(t).and_then(|value| self.latency_from_load(value))
            }
            ExprKind::Load(t, at) => {
                let at: Vec<Expr> = at.iter().map(|a| a.index.clone()).collect();
                (self.is_it)(t, &at).then_some(0.0)
            }
            ExprKind::Apply(op, args) => {
                let longest = args.iter().filter_map(|a| self.latency_from_load(a)).reduce(f64::max)?;
                Some(longest + Work::of(*op, e.dtype().size() as f64).latency(self.prices))
            }
            ExprKind::Cast(inner) => self.latency_from_load(inner),
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Measure(..) => None,
        }
    }
}
