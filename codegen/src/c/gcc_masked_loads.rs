//! Detection of adjacent loads under separate conditions in a loop: `y[3 * i + j] = x[3 * i + j] if c[3 * i + j] else
//! 0.0` for a `j` of 0 to 2.
//!
//! gcc before 12.4 and 13.3 unrolls the loop over `j`, combines such loads into masked vector loads, and confuses the
//! masks of their lanes (its bug 114375): silently wrong results, at `-O3` and in loops that a pragma vectorises. Where
//! [`has_adjacent_conditional_loads`] finds such loads, the program defines a macro for `taffeta_runtime.h`, which
//! disables if-conversion in these compilers. Other programs keep if-conversion, without which no loop with a branch is
//! vectorised: the bug needs two conditional loads from one tensor, and two sums or unconditional stores.

use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_ast::{Expr, ExprKind, Extent, Func, Op, Stmt, StmtKind, Symbol, poly};

/// Maximum trip count of loops that compilers may unroll completely (gcc: 16), which makes their loads adjacent.
const UNROLLED: i128 = 32;

/// Returns whether a loop of the program, with its short inner loops unrolled, has several conditional loads from one
/// tensor.
pub(super) fn has_adjacent_conditional_loads(func: &Func) -> bool {
    func.body.any(&mut |s| {
        let StmtKind::For { iter, body, .. } = s.kind() else { return false };
        let mut inside = Inside { iter: Some(iter.clone()), ..Inside::default() };
        inside.stmt(body, 1, false);
        inside.is_at_risk()
    })
}

/// Summary of one iteration of a loop.
#[derive(Default)]
struct Inside {
    iter: Option<Symbol>,
    /// Unconditional loads; a conditional load of the same element needs no mask.
    always: FxHashSet<Expr>,
    /// Conditional loads, with the number of unrolled copies of each.
    conditional: FxHashMap<Expr, i128>,
    /// Number of unconditional stores, and of sums over the loop.
    results: i128,
    /// Whether the loop contains one that is not unrolled; branches of outer loops are not if-converted.
    is_outer: bool,
}

impl Inside {
    fn is_at_risk(&self) -> bool {
        let mut of: FxHashMap<&Symbol, i128> = FxHashMap::default();
        for (load, times) in self.conditional.iter().filter(|(load, _)| !self.always.contains(load)) {
            if let ExprKind::Load(t, _) = load.kind() {
                *of.entry(t).or_default() += times;
            }
        }
        !self.is_outer && self.results >= 2 && of.values().any(|times| *times >= 2)
    }

    /// Summarises a statement. `times`: number of unrolled copies. `conditional`: whether it is in a branch.
    fn stmt(&mut self, s: &Stmt, times: i128, conditional: bool) {
        match s.kind() {
            StmtKind::For { extent, body, .. } => match length(extent) {
                Some(n) if n <= UNROLLED => self.stmt(body, times * n, conditional),
                // The inner loop is not unrolled, and is examined by itself.
                _ => self.is_outer = true,
            },
            StmtKind::While { .. } => self.is_outer = true,
            StmtKind::If { cond, then, otherwise } => {
                self.expr(cond, times, conditional);
                self.stmt(then, times, true);
                if let Some(otherwise) = otherwise {
                    self.stmt(otherwise, times, true);
                    // Stores in both branches count as unconditional.
                    self.results += 2;
                }
            }
            StmtKind::Store { tensor, indices, value } | StmtKind::ReduceTo { tensor, indices, value, .. } => {
                let element = Expr::load(tensor, indices.clone(), value.dtype());
                let sums = matches!(s.kind(), StmtKind::ReduceTo { .. });
                let mut moves = false;
                indices.iter().for_each(|a| a.index.walk(&mut |e| moves |= self.is_iter(e)));
                if !conditional || (sums && !moves) {
                    self.results += times;
                }
                if sums && !indices.is_empty() {
                    self.load(&element, times, conditional);
                }
                indices.iter().for_each(|a| self.expr(&a.index, times, conditional));
                self.expr(value, times, conditional);
            }
            kind => {
                kind.exprs().into_iter().for_each(|e| self.expr(e, times, conditional));
                kind.children().into_iter().for_each(|s| self.stmt(s, times, conditional));
            }
        }
    }

    fn is_iter(&self, e: &Expr) -> bool {
        matches!(e.kind(), ExprKind::Var(v) if Some(v) == self.iter.as_ref())
    }

    fn expr(&mut self, e: &Expr, times: i128, conditional: bool) {
        match e.kind() {
            ExprKind::Load(_, indices) if !indices.is_empty() => self.load(e, times, conditional),
            ExprKind::Apply(op @ (Op::And | Op::Or | Op::Select), args) => {
                let (first, rest) = args.split_first().unwrap_or_else(|| unreachable!("`{op:?}` without operands"));
                self.expr(first, times, conditional);
                rest.iter().for_each(|e| self.expr(e, times, true));
                return;
            }
            _ => {}
        }
        e.children().into_iter().for_each(|e| self.expr(e, times, conditional));
    }

    fn load(&mut self, e: &Expr, times: i128, conditional: bool) {
        if !conditional {
            self.always.insert(e.clone());
        } else {
            let most = self.conditional.entry(e.clone()).or_default();
            *most = (*most).max(times);
        }
    }
}

/// Returns the trip count of a loop, if the compiler can determine it.
fn length(extent: &Extent) -> Option<i128> {
    let Extent::Range { begin, end, step } = extent else { return None };
    let step = i128::from(step.as_int()?);
    let span = poly::Poly::of(&end.minus(begin))?.as_constant()?;
    (step != 0).then(|| (span + step - step.signum()).div_euclid(step).max(0))
}
