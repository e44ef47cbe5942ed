//! Partitioning of loops that run beyond a tensor: an index that may be out of range is in a `select` or branch under a
//! condition on the loop's iterator, and the other case has an effect at every coordinate. The range is split where the
//! condition changes, before anything else is lowered: the part where it holds traverses stored elements, and the parts
//! before and behind it access nothing.
//!
//! ```text
//! for j in range(k):
//!     y[i] += select(0 <= i + j - h and i + j - h < n, A[i + j - h], 0.0) * w[j]
//!
//! for j in range(min(k, h - i)):
//!     y[i] += 0.0 * w[j]
//! for j in range(max(0, h - i), min(k, n + h - i)):
//!     y[i] += A[i + j - h] * w[j]                         at the positions of A alone
//! for j in range(max(0, n + h - i), k):
//!     y[i] += 0.0 * w[j]
//! ```
//!
//! The order of iterations is preserved. A loop is not split if nothing is gained: if its body has no effect where
//! nothing is stored, or has one there even if all conditions hold. Nor is a loop with more than a few such conditions.

use super::cursor::PATH;
use super::exprs::{first_effect, known, load, loads, range};
use super::state::{Bindings, Lower};
use crate::access;
use rustc_hash::FxHashSet;
use taffeta_analysis::pass::fill_propagation;
use taffeta_analysis::query::value_range::{self, Range};
use taffeta_analysis::query::{Context, MAX_SIZE, effects};
use taffeta_ast::poly::Poly;
use taffeta_ast::{DType, Expr, ExprKind, Extent, Literal, Op, Stmt, StmtKind, Symbol};

/// Maximum number of different intervals of one loop: each may have three parts in each part of another.
const MAX_INTERVALS: usize = 3;
/// Maximum number of intervals if it is known which of them begins first, and which ends first: most parts are empty
/// then.
const MAX_IN_ORDER: usize = 6;
/// Maximum number of splits per loop: one for each interval, and more where two of them meet.
const MAX_SPLITS: usize = 2 * MAX_IN_ORDER;
/// Bound on the magnitude of indices, under which expressions computed from them here do not wrap.
const MAX_MAGNITUDE: i128 = 1 << 60;

/// Bound of an iterator: it is less than `at` (`upper`), or at least `at`.
#[derive(Clone, PartialEq)]
struct IteratorBound {
    at: Expr,
    upper: bool,
}

/// Comparisons at a program point, with their truth values.
pub(super) type Facts = Vec<(Expr, bool)>;

impl Lower {
    /// Splits loops into parts of their ranges where accesses gain by it.
    pub(super) fn partition_loops(&self, s: &Stmt, bound: &Bindings) -> Stmt {
        self.partition_at_most(s, bound, MAX_SPLITS)
    }

    /// Splits a loop, which may be split at most `splits` times.
    fn partition_at_most(&self, s: &Stmt, bound: &Bindings, splits: usize) -> Stmt {
        let StmtKind::For { iter, extent, .. } = s.kind() else {
            return s.map(&mut |s| self.partition_loops(s, bound), &mut Expr::clone);
        };
        // An iterator of another step has no range that is used, and must not look like a size: it is removed.
        let mut inside = bound.clone();
        match range(extent) {
            Some(range) => inside.insert(iter.clone(), Some(range)),
            None => inside.remove(iter),
        };
        if splits > 0
            && let Some(parts) = self.parts_of(s, &inside)
        {
            let again = parts.iter().map(|s| self.partition_at_most(s, bound, splits - 1));
            return Stmt::seq(again, s.origin().derive("structured", "block"));
        }
        s.map(&mut |s| self.partition_loops(s, &inside), &mut Expr::clone)
    }

    /// Returns the parts of a loop, if it is to be split.
    fn parts_of(&self, s: &Stmt, inside: &Bindings) -> Option<Vec<Stmt>> {
        let StmtKind::For { iter, extent, body, .. } = s.kind() else { return None };
        let [begin, end] = range(extent)?;
        let written = effects::writes(body);
        // A copy renames structured tensors declared inside, but not their fibres.
        if [&begin, &end].iter().any(|e| loads(e, &written)) || body.declares_structured() {
            return None;
        }
        let interval = self.interval(iter, body, inside)?;
        if !self.gains(s, iter, inside) {
            return None;
        }
        let [low, high] = interval.map(|cut| cut.map(|c| c.at));
        let from = low.as_ref().map_or(begin.clone(), |low| self.larger(&begin, low, inside));
        let to = high.as_ref().map_or(end.clone(), |high| self.smaller(&end, high, inside));
        let before = low.as_ref().map(|low| [begin.clone(), self.smaller(&end, low, inside)]);
        let behind = high.as_ref().map(|high| {
            // If the interval may end before it begins, no iteration may be in two parts.
            let begins = match &low {
                Some(low) if !self.is_natural(&high.minus(low), inside) => &from,
                _ => &begin,
            };
            [self.larger(begins, high, inside), end.clone()]
        });
        let mut parts = Vec::new();
        for (part, keeps_id) in [(before, false), (Some([from, to]), true), (behind, false)] {
            let Some(part) = part.filter(|[b, e]| !self.is_natural(&b.minus(e), inside)) else { continue };
            let mut within = inside.clone();
            within.insert(iter.clone(), Some(part.clone()));
            let body = resolved(body, &|e| self.decided(&self.bound_of(e, true, iter, &within)?, iter, &within));
            if body.is_nop() {
                continue;
            }
            let StmtKind::For { props, .. } = s.kind() else { unreachable!("only loops are partitioned") };
            let [begin, end] = part;
            let extent = Extent::Range { begin, end, step: Expr::int(1) };
            let part = s.with_kind(StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body });
            parts.push(if keeps_id { part } else { self.copied(&part, "partition") });
        }
        Some(parts)
    }

    /// Returns the first interval in which the conditions of an access on an iterator hold; an end is `None` if the
    /// loop's own end applies. Returns `None` if no access has conditions, or too many accesses have different ones.
    fn interval(&self, iter: &Symbol, body: &Stmt, inside: &Bindings) -> Option<[Option<IteratorBound>; 2]> {
        let (mut found, mut holds): (Vec<[Option<IteratorBound>; 2]>, bool) = (Vec::new(), false);
        self.each_guarded(body, &mut |e, facts| {
            let Some((_, at)) = load(e) else { return };
            if !at[PATH..].iter().any(|a| effects::mentions(&a.index, &[iter])) {
                return;
            }
            let mut own = [None, None];
            for cut in facts.iter().filter_map(|(cond, holds)| self.bound_of(cond, *holds, iter, inside)) {
                match self.decided(&cut, iter, inside) {
                    Some(always) => holds |= always,
                    None => drop(own[usize::from(cut.upper)].get_or_insert(cut)),
                }
            }
            if own.iter().any(Option::is_some) && !found.contains(&own) {
                found.push(own);
            }
        });
        match found.len() {
            0 if holds => Some([None, None]),
            1..=MAX_INTERVALS => found.into_iter().next(),
            _ if found.len() <= MAX_IN_ORDER && self.in_order(&found, inside) => found.into_iter().next(),
            _ => None,
        }
    }

    /// Returns whether it is known, for each two intervals, which of them begins first and which ends first.
    fn in_order(&self, all: &[[Option<IteratorBound>; 2]], inside: &Bindings) -> bool {
        let ordered = |a: &Option<IteratorBound>, b: &Option<IteratorBound>| match (a, b) {
            (Some(a), Some(b)) => [a.at.minus(&b.at), b.at.minus(&a.at)].iter().any(|e| self.is_natural(e, inside)),
            _ => true,
        };
        all.iter().all(|a| all.iter().all(|b| ordered(&a[0], &b[0]) && ordered(&a[1], &b[1])))
    }

    /// Returns whether the statement contains a loop whose body has an effect where nothing is stored, but has none
    /// there if all conditions of its accesses hold, at least one of which is on this iterator.
    fn gains(&self, s: &Stmt, iter: &Symbol, inside: &Bindings) -> bool {
        let mut gains = false;
        s.walk(&mut |s| {
            let StmtKind::For { body, .. } = s.kind() else { return };
            if gains {
                return;
            }
            let mut facts = Facts::new();
            self.each_guarded(body, &mut |_, holds| facts.extend(holds.iter().cloned()));
            let here = facts.iter().any(|(cond, holds)| self.bound_of(cond, *holds, iter, inside).is_some());
            gains = here && {
                let all = resolved(body, &|e| facts.iter().find(|(cond, _)| cond == e).map(|(_, holds)| *holds));
                let has_effect = |body: &Stmt| first_effect(&self.empty(body)).is_some();
                has_effect(body) && !has_effect(&all)
            };
        });
        gains
    }

    /// Rewrites a statement for the case that no element is stored.
    fn empty(&self, s: &Stmt) -> Stmt {
        let fill = |e: &Expr| {
            let tensor = &self.tensors[&self.fibres.get(load(e)?.0)?.0].tensor;
            Some(tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype)))
        };
        fill_propagation::run(s, &[], &self.several.borrow(), &fill, &|s, element| self.outside(s, element))
    }

    /// Converts a comparison to a bound of an iterator, if it compares integers and depends on the iterator by a linear
    /// term with coefficient 1 or -1.
    fn bound_of(&self, cond: &Expr, holds: bool, iter: &Symbol, inside: &Bindings) -> Option<IteratorBound> {
        let ExprKind::Apply(op, args) = cond.kind() else { return None };
        let [a, b] = &args[..] else { return None };
        let ([less, more], by) = match (op, holds) {
            (Op::Lt, true) | (Op::Ge, false) => ([a, b], 1),
            (Op::Le, true) | (Op::Gt, false) => ([a, b], 0),
            (Op::Gt, true) | (Op::Le, false) => ([b, a], 1),
            (Op::Ge, true) | (Op::Lt, false) => ([b, a], 0),
            _ => return None,
        };
        if [a, b].iter().any(|e| e.dtype() != DType::I64) || !effects::mentions(cond, &[iter]) {
            return None;
        }
        if self.magnitude(a, inside)? + self.magnitude(b, inside)? >= MAX_MAGNITUDE {
            return None;
        }
        // Slack of the comparison, at least 0 where it holds.
        let (slack, own) = (more.minus(less).minus(&Expr::int(by)), Expr::var(iter));
        let poly = Poly::of(&slack)?;
        let (_, by) = poly.terms().find(|(atoms, _)| matches!(atoms, [one] if *one == own))?;
        let at = match by {
            1 => own.minus(&slack),
            -1 => slack.plus(&own).plus(&Expr::int(1)),
            _ => return None,
        };
        let at = shown(&at)?;
        (!effects::mentions(&at, &[iter]) && known(&at, inside)).then_some(IteratorBound { at, upper: by == -1 })
    }

    /// Returns whether a bound holds in all iterations of a loop (`true`) or in none (`false`); `None` if it varies or
    /// is unknown.
    fn decided(&self, cut: &IteratorBound, iter: &Symbol, inside: &Bindings) -> Option<bool> {
        let [begin, end] = inside.get(iter)?.as_ref()?;
        if self.is_natural(&begin.minus(&cut.at), inside) {
            return Some(!cut.upper);
        }
        self.is_natural(&cut.at.minus(end), inside).then_some(cut.upper)
    }

    fn larger(&self, a: &Expr, b: &Expr, inside: &Bindings) -> Expr {
        if self.is_natural(&a.minus(b), inside) {
            a.clone()
        } else if self.is_natural(&b.minus(a), inside) {
            b.clone()
        } else {
            a.max_with(b)
        }
    }

    fn smaller(&self, a: &Expr, b: &Expr, inside: &Bindings) -> Expr {
        if self.is_natural(&b.minus(a), inside) {
            a.clone()
        } else if self.is_natural(&a.minus(b), inside) {
            b.clone()
        } else {
            a.min_with(b)
        }
    }

    /// Returns whether the ranges of the iterators in an integer expression prove that it is not negative. Ranges of
    /// other iterators are not used: their loops may be empty.
    fn is_natural(&self, e: &Expr, bound: &Bindings) -> bool {
        let mut facts = Context::empty();
        self.enter_ranges(e, bound, &mut FxHashSet::default(), &mut facts);
        facts.prove(&Expr::int(0).less_eq(e))
    }

    /// Assumes that the sizes and iterators in an expression are in their ranges, from the outermost loop inwards.
    fn enter_ranges(&self, e: &Expr, bound: &Bindings, entered: &mut FxHashSet<Symbol>, facts: &mut Context) {
        e.walk(&mut |e| {
            let ExprKind::Var(s) = e.kind() else { return };
            if !entered.insert(s.clone()) {
                return;
            }
            if self.sizes.contains(s) {
                facts.size(s);
            } else if let Some(Some([begin, end])) = bound.get(s) {
                [begin, end].into_iter().for_each(|end| self.enter_ranges(end, bound, entered, facts));
                facts.assume(&begin.less_eq(e));
                facts.assume(&e.less(end));
            }
        });
    }

    /// Bounds the magnitude of an integer expression of sizes, constants and iterators that is computed without
    /// wrapping.
    fn magnitude(&self, e: &Expr, bound: &Bindings) -> Option<i128> {
        let mut leaf = |e: &Expr| self.leaf(e, bound);
        let (lo, hi) = value_range::of(e, &mut leaf).filter(|_| value_range::is_exact(e, &mut leaf))?;
        Some(lo.abs().max(hi.abs())).filter(|most| *most < MAX_MAGNITUDE)
    }

    fn leaf(&self, e: &Expr, bound: &Bindings) -> Option<Range> {
        let ExprKind::Var(s) = e.kind() else { return None };
        if self.sizes.contains(s) {
            return Some((0, MAX_SIZE.into()));
        }
        let [begin, end] = bound.get(s)?.as_ref()?;
        let [begin, end] = [begin, end].map(|e| value_range::of(e, &mut |e| self.leaf(e, bound)));
        let (begin, end) = (begin?, end?);
        Some((begin.0.min(end.0), begin.1.max(end.1)))
    }

    /// Calls `f` on each access of a statement to a fibre, with the comparisons under which it is evaluated.
    fn each_guarded(&self, s: &Stmt, f: &mut dyn FnMut(&Expr, &Facts)) {
        self.guarded_in(s, &mut Facts::new(), f);
    }

    fn guarded_in(&self, s: &Stmt, facts: &mut Facts, f: &mut dyn FnMut(&Expr, &Facts)) {
        access::exprs(s).iter().for_each(|e| self.guarded_by(e, facts, f));
        let mut under = |s: &Stmt, cond: Option<(&Expr, bool)>| {
            let before = facts.len();
            cond.into_iter().for_each(|(cond, holds)| conjuncts(cond, holds, facts));
            self.guarded_in(s, facts, f);
            facts.truncate(before);
        };
        match s.kind() {
            StmtKind::If { cond, then, otherwise } => {
                under(then, Some((cond, true)));
                otherwise.iter().for_each(|s| under(s, Some((cond, false))));
            }
            kind => kind.children().into_iter().for_each(|s| under(s, None)),
        }
    }

    fn guarded_by(&self, e: &Expr, facts: &mut Facts, f: &mut dyn FnMut(&Expr, &Facts)) {
        let ExprKind::Apply(op @ (Op::And | Op::Or | Op::Select), args) = e.kind() else {
            if load(e).is_some_and(|(t, _)| self.fibres.contains_key(t)) {
                f(e, facts);
            }
            return e.children().into_iter().for_each(|e| self.guarded_by(e, facts, f));
        };
        self.guarded_by(&args[0], facts, f);
        for (k, operand) in args[1..].iter().enumerate() {
            let before = facts.len();
            conjuncts(&args[0], k == 0 && *op != Op::Or, facts);
            self.guarded_by(operand, facts, f);
            facts.truncate(before);
        }
    }
}

/// Returns the normal form of an integer; if all terms but the constant are negative, the constant comes first.
fn shown(e: &Expr) -> Option<Expr> {
    let poly = Poly::of(e)?;
    let constant = poly.terms().find_map(|(atoms, by)| if atoms.is_empty() { i64::try_from(by).ok() } else { None });
    match constant.map(Expr::int) {
        Some(first) if poly.terms().all(|(atoms, by)| atoms.is_empty() || by < 0) => {
            Some(first.minus(&Poly::of(&first.minus(e))?.expression(DType::I64)?))
        }
        _ => poly.expression(DType::I64),
    }
}

/// Collects the comparisons whose truth values follow if a condition holds, or does not hold.
pub(super) fn conjuncts(cond: &Expr, holds: bool, out: &mut Facts) {
    match cond.kind() {
        ExprKind::Apply(op, args) if (*op, holds) == (Op::And, true) || (*op, holds) == (Op::Or, false) => {
            args.iter().for_each(|c| conjuncts(c, holds, out));
        }
        ExprKind::Apply(Op::Not, args) => conjuncts(&args[0], !holds, out),
        ExprKind::Apply(op, _) if op.is_comparison() => out.push((cond.clone(), holds)),
        _ => {}
    }
}

/// Replaces conditions that are decided, and simplifies the branches that depend on them.
pub(super) fn resolved(s: &Stmt, decide: &dyn Fn(&Expr) -> Option<bool>) -> Stmt {
    let own = access::rebuild_here(s, &mut |e| match e.dtype() {
        DType::Bool => decide(&e).map_or(e, Expr::bool),
        _ => e,
    });
    let cond = match own.kind() {
        StmtKind::If { cond, .. } => cond.as_bool(),
        _ => None,
    };
    match own.kind() {
        StmtKind::If { then, otherwise, .. } if cond.is_some() => match (cond, otherwise) {
            (Some(true), _) => resolved(then, decide),
            (_, Some(otherwise)) => resolved(otherwise, decide),
            _ => Stmt::nop(),
        },
        kind => {
            let before = kind.inside().any(|s| !s.is_nop());
            let new = own.map(&mut |s| resolved(s, decide), &mut Expr::clone);
            match new.kind() {
                // A loop or branch that has become empty is dropped.
                StmtKind::For { body, .. } if before && body.is_nop() => Stmt::nop(),
                StmtKind::If { cond, then, otherwise } if before && then.is_nop() => match otherwise {
                    Some(otherwise) if !otherwise.is_nop() => {
                        let (cond, then) = (cond.negate(), otherwise.clone());
                        new.with_kind(StmtKind::If { cond, then, otherwise: None })
                    }
                    _ => Stmt::nop(),
                },
                _ => new,
            }
        }
    }
}
