//! Search for a state of the program that satisfies all facts of a query, by isl over all atoms that the facts mention.
//!
//! The forms over atoms are exact, except for atoms of which only a range is known (loaded elements, products of
//! unknowns), so "no" is a proof, and "yes" comes with a point that gives the values of those atoms.

use super::context::{Context, Def, Key, Mark};
use super::interval::INFINITY;
use super::linear::{Atom, Linear};
use crate::isl::Row;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Mutex;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Symbol};

/// Maximum size of the systems passed to isl; facts beyond it are left out, so that the answer is "yes" more often.
const MAX_ATOMS: usize = 48;
const MAX_ROWS: usize = 160;
/// Number of quotients below which a separate query without them does not pay off.
const FEW_QUOTIENTS: usize = 4;
/// Maximum nesting of `min` and `max` that is eliminated from one fact.
const MAX_EXTREMES: usize = 6;
/// Absolute value from which a bound is treated as the limit of its type, and left out.
const LARGE: i128 = 1 << 40;
/// Maximum depth of the case distinctions over choices between two facts, and over `min`, `max` and `select`.
const MAX_CHOICES: u32 = 8;

/// State in which the facts hold, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    values: FxHashMap<Atom, i64>,
    /// Values that the program would have to read: loaded elements without other constraints.
    pub(super) assumed: Vec<(Expr, i64)>,
    /// Whether every number of the point is certain, given those of `assumed`.
    pub(super) exact: bool,
}

impl Point {
    /// Returns the value of a form at the point.
    pub(super) fn of(&self, ctx: &Context, l: &Linear) -> Option<i64> {
        i64::try_from(self.sum(ctx, l)?).ok()
    }

    fn sum(&self, ctx: &Context, l: &Linear) -> Option<i128> {
        l.terms.iter().try_fold(l.constant, |s, (a, c)| s.checked_add(self.value(ctx, *a)?.checked_mul(*c)?))
    }

    /// Returns the value of an atom. An atom that no fact mentions is computed from its definition; without one, the
    /// lower end of its range is taken, since any number in the range will do.
    fn value(&self, ctx: &Context, a: Atom) -> Option<i128> {
        if let Some(v) = self.values.get(&a) {
            return Some(i128::from(*v));
        }
        let both = |x: &Linear, y: &Linear| Some((self.sum(ctx, x)?, self.sum(ctx, y)?));
        match &ctx.atoms[a.0 as usize].key {
            Key::Min(x, y) => both(x, y).map(|(x, y)| x.min(y)),
            Key::Max(x, y) => both(x, y).map(|(x, y)| x.max(y)),
            Key::Quotient(x, d) | Key::Remainder(x, d) => {
                let (x, d) = both(x, d).filter(|(_, d)| *d > 0)?;
                let quotient = matches!(ctx.atoms[a.0 as usize].key, Key::Quotient(..));
                Some(if quotient { x.div_euclid(d) } else { x.rem_euclid(d) })
            }
            Key::Product(factors) => factors.iter().try_fold(1i128, |p, f| p.checked_mul(self.value(ctx, *f)?)),
            Key::Expr(_) | Key::Trip(_) | Key::Select(..) => {
                let lo = ctx.atom_interval(a).lo;
                (lo.abs() < LARGE).then_some(lo)
            }
        }
    }
}

/// Assumed conditions, decomposed: conjunctions of facts are added to the context at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Assumptions {
    /// Pairs of alternatives. One of each pair must hold; both are tried, one after the other.
    pub(super) choices: Vec<[(Expr, bool); 2]>,
    /// Whether two assumptions exclude each other.
    pub(super) impossible: bool,
    /// Whether an assumption cannot be expressed by facts over integers: a comparison of floats, a loaded truth value.
    pub(super) vague: bool,
}

/// System of inequalities for isl.
#[derive(Clone, Debug)]
pub(super) struct System {
    pub(super) atoms: Vec<Atom>,
    /// Number of leading atoms to minimise, in lexicographical order.
    first: usize,
    pub(super) rows: Vec<Row>,
    /// Whether no fact was left out.
    pub(super) complete: bool,
}

impl System {
    /// Returns the rows with columns for these atoms first, then for the system's other atoms, and the number of the
    /// latter.
    pub(super) fn over(&self, atoms: &[Atom]) -> (usize, Vec<Row>) {
        let others: Vec<Atom> = self.atoms.iter().copied().filter(|a| !atoms.contains(a)).collect();
        let all = [atoms, &others].concat();
        let row = |row: &Row| {
            let mut out = vec![0; all.len() + 1];
            out[0] = row[0];
            for (a, c) in self.atoms.iter().zip(&row[1..]).filter(|(_, c)| **c != 0) {
                let at = all.iter().position(|b| a == b).unwrap_or_else(|| unreachable!("`all` has every atom"));
                out[1 + at] = *c;
            }
            out
        };
        (others.len(), self.rows.iter().map(row).collect())
    }
}

/// Returns whether facts over integers express a condition only in part, or not at all.
fn is_vague(cond: &Expr) -> bool {
    match cond.kind() {
        ExprKind::Apply(Op::Not, args) => is_vague(&args[0]),
        ExprKind::Apply(Op::And | Op::BitAnd | Op::Or | Op::BitOr, args) if cond.dtype() == DType::Bool => {
            args.iter().any(is_vague)
        }
        ExprKind::Apply(op, args) if op.is_comparison() => !args[0].dtype().is_int(),
        ExprKind::Const(_) => false,
        _ => true,
    }
}

impl Context {
    /// Assumes that a condition evaluates to `holds`. Facts are added to the context, choices are collected.
    pub(super) fn decompose(&mut self, cond: &Expr, holds: bool, assumed: &mut Assumptions) {
        match self.known(cond) {
            // `x != y` may be known without `x < y` or `y < x`; then both cases are still needed.
            Some(known) if known == holds && !self.differ_somehow(cond, holds) => return,
            Some(known) if known == holds => {}
            Some(_) => assumed.impossible = true,
            None => {}
        }
        let is_bool = cond.dtype() == DType::Bool;
        match cond.kind() {
            ExprKind::Apply(Op::Not, args) => self.decompose(&args[0], !holds, assumed),
            ExprKind::Apply(op @ (Op::And | Op::BitAnd | Op::Or | Op::BitOr), args) if is_bool => {
                if matches!(op, Op::And | Op::BitAnd) == holds {
                    self.decompose(&args[0], holds, assumed);
                    self.decompose(&args[1], holds, assumed);
                } else {
                    self.know_that(cond, holds);
                    assumed.choices.push([(args[0].clone(), holds), (args[1].clone(), holds)]);
                }
            }
            ExprKind::Apply(op, args) if op.is_comparison() && args[0].dtype().is_int() => {
                self.know_that(cond, holds);
                if (*op == Op::Ne) == holds && matches!(op, Op::Ne | Op::Eq) {
                    let (less, more) = (args[0].less(&args[1]), args[1].less(&args[0]));
                    assumed.choices.push([(less, true), (more, true)]);
                }
            }
            ExprKind::Const(_) => self.know_that(cond, holds),
            _ => {
                self.know_that(cond, holds);
                assumed.vague = true;
            }
        }
    }

    /// Returns whether a condition says that two integers differ, while their order is not known.
    fn differ_somehow(&mut self, cond: &Expr, holds: bool) -> bool {
        let ExprKind::Apply(op @ (Op::Ne | Op::Eq), args) = cond.kind() else { return false };
        (*op == Op::Ne) == holds && args[0].dtype().is_int() && self.known(&args[0].less(&args[1])).is_none()
    }

    fn know_that(&mut self, cond: &Expr, holds: bool) {
        if holds { self.assume(cond) } else { self.assume_not(cond) }
    }

    /// Finds a state that satisfies everything assumed since `mark`, and one alternative of every choice; `None` if
    /// there is none. The values of `first` are made as small as possible, in this order.
    pub(super) fn point(&mut self, mark: Mark, assumed: &Assumptions, first: &[Symbol]) -> Option<Point> {
        self.choose(mark, assumed, first, MAX_CHOICES)
    }

    fn choose(&mut self, mark: Mark, assumed: &Assumptions, first: &[Symbol], fuel: u32) -> Option<Point> {
        if self.unreachable || assumed.impossible {
            return None;
        }
        let Some((choice, rest)) = assumed.choices.split_first() else {
            return self.solve(mark, first, fuel, assumed.vague);
        };
        if fuel == 0 {
            return self.solve(mark, first, 0, true);
        }
        choice.iter().find_map(|(cond, holds)| {
            self.scoped(|c| {
                // If the other alternative is refuted, the context has derived this one already, and `decompose`
                // returns early without a verdict on vagueness.
                let vague = assumed.vague || is_vague(cond);
                let mut assumed = Assumptions { choices: rest.to_vec(), impossible: false, vague };
                c.decompose(cond, *holds, &mut assumed);
                c.choose(mark, &assumed, first, fuel - 1)
            })
        })
    }

    /// Finds a state as [`Context::point`] does, with no choices left except those of `min`, `max` and `select`.
    fn solve(&mut self, mark: Mark, first: &[Symbol], fuel: u32, vague: bool) -> Option<Point> {
        let system = self.system(mark, first);
        if self.is_empty_without_quotients(&system) {
            return None;
        }
        let split = system
            .atoms
            .iter()
            .copied()
            .find(|a| matches!(self.atoms[a.0 as usize].def, Def::Min(..) | Def::Max(..) | Def::Select(..)));
        if let Some(a) = split
            && fuel > 0
        {
            if crate::isl::is_empty(system.atoms.len(), &system.rows) == Some(true) {
                return None;
            }
            return self.solve_by_cases(mark, a, first, fuel - 1, vague);
        }
        match memoised(&system) {
            Some(None) => None,
            Some(Some(values)) => {
                let mut point = self.describe(&system.atoms, &values);
                point.exact &= system.complete && !vague;
                Some(point)
            }
            None => Some(Point::default()),
        }
    }

    /// Returns whether the constraints without quotients and remainders exclude a common point. Bounds of tiles and
    /// wavefronts contain many quotients; each adds an unknown to isl's problem, and few constrain the accessed
    /// element.
    fn is_empty_without_quotients(&self, system: &System) -> bool {
        let divided = |a: &Atom| matches!(self.atoms[a.0 as usize].key, Key::Quotient(..) | Key::Remainder(..));
        let kept: Vec<usize> = (0..system.atoms.len()).filter(|k| !divided(&system.atoms[*k])).collect();
        if kept.len() + FEW_QUOTIENTS > system.atoms.len() {
            return false;
        }
        let is_kept = |r: &&Row| (0..system.atoms.len()).all(|k| r[k + 1] == 0 || kept.contains(&k));
        let without = |r: &Row| [r[0]].into_iter().chain(kept.iter().map(|k| r[k + 1])).collect();
        let rows: Vec<Row> = system.rows.iter().filter(is_kept).map(without).collect();
        crate::isl::is_empty(kept.len(), &rows) == Some(true)
    }

    /// Solves both cases of a `min`, `max` or `select` atom.
    fn solve_by_cases(&mut self, mark: Mark, a: Atom, first: &[Symbol], fuel: u32, vague: bool) -> Option<Point> {
        let def = self.atoms[a.0 as usize].def.clone();
        let (x, y) = match &def {
            Def::Min(x, y) | Def::Max(x, y) | Def::Select(_, x, y) => (x.clone(), y.clone()),
            _ => return self.solve(mark, first, 0, vague),
        };
        let mut case = |taken: &Linear, other: &Linear, holds: bool| {
            self.scoped(|c| {
                let mut assumed = Assumptions { vague, ..Assumptions::default() };
                // Within its case the atom equals the form, and is not split again.
                let before = std::mem::replace(&mut c.atoms[a.0 as usize].def, Def::Free);
                match &def {
                    Def::Min(..) => c.at_most(taken, other),
                    Def::Max(..) => c.at_most(other, taken),
                    Def::Select(cond, ..) => c.decompose(cond, holds, &mut assumed),
                    _ => {}
                }
                c.at_most(&Linear::atom(a), taken);
                c.at_most(taken, &Linear::atom(a));
                let found = c.choose(mark, &assumed, first, fuel);
                c.atoms[a.0 as usize].def = before;
                found
            })
        };
        case(&x, &y, true).or_else(|| case(&y, &x, false))
    }

    fn at_most(&mut self, x: &Linear, y: &Linear) {
        if let Some(d) = y.minus(x) {
            self.changed();
            self.add_fact(d);
        }
    }

    /// Returns the system of all atoms that the facts since `mark` mention, with every known constraint on them as a
    /// row that is at least 0.
    pub(super) fn system(&self, mark: Mark, first: &[Symbol]) -> System {
        let mut atoms: Vec<Atom> = first.iter().filter_map(|s| self.atom_of(&Key::Expr(Expr::var(s)))).collect();
        let count = atoms.len();
        let (mut rows, mut seen) = (Vec::new(), FxHashSet::default());
        let mut complete = true;
        let mut add = |l: &Linear, atoms: &mut Vec<Atom>, rows: &mut Vec<Linear>| {
            if !seen.insert(l.clone()) {
                return;
            }
            let new: Vec<Atom> = l.terms.iter().map(|t| t.0).filter(|a| !atoms.contains(a)).collect();
            if rows.len() < MAX_ROWS && atoms.len() + new.len() <= MAX_ATOMS {
                atoms.extend(new);
                rows.push(l.clone());
            } else {
                complete = false;
            }
        };
        for l in self.facts_since(mark) {
            for l in self.without_extremes(l, MAX_EXTREMES) {
                add(&l, &mut atoms, &mut rows);
            }
        }
        let mut next = 0;
        while next < atoms.len() {
            let a = atoms[next];
            next += 1;
            let info = &self.atoms[a.0 as usize];
            for l in info
                .laws
                .iter()
                .map(|k| &self.laws[*k as usize])
                .chain(info.facts.iter().map(|k| &self.facts[*k as usize]))
            {
                add(l, &mut atoms, &mut rows);
            }
            let interval = self.atom_interval(a);
            if interval.lo > -INFINITY && interval.lo.abs() < LARGE {
                add(&Linear::atom(a).plus_constant(-interval.lo), &mut atoms, &mut rows);
            }
            if interval.hi < INFINITY
                && interval.hi.abs() < LARGE
                && let Some(l) = Linear::constant(interval.hi).minus(&Linear::atom(a))
            {
                add(&l, &mut atoms, &mut rows);
            }
        }
        let row = |l: &Linear| -> Option<Row> {
            let mut row = vec![0i64; atoms.len() + 1];
            row[0] = i64::try_from(l.constant).ok()?;
            for (a, c) in &l.terms {
                let at = atoms.iter().position(|b| b == a)?;
                row[at + 1] = i64::try_from(*c).ok()?;
            }
            Some(row)
        };
        let found: Vec<Row> = rows.iter().filter_map(row).collect();
        let complete = complete && found.len() == rows.len();
        System { atoms, first: count, rows: found, complete }
    }

    /// Splits a fact into equivalent facts without some `min` and `max`: `i <= min(a, b)` is `i <= a` and `i <= b`. A
    /// `min` or `max` without other mentions then needs no case split, and its atom is not in the system.
    fn without_extremes(&self, l: &Linear, fuel: usize) -> Vec<Linear> {
        let taken = l.terms.iter().filter(|_| fuel > 0).find_map(|(a, c)| match &self.atoms[a.0 as usize].def {
            Def::Min(x, y) if *c > 0 => Some((*a, x, y)),
            Def::Max(x, y) if *c < 0 => Some((*a, x, y)),
            _ => None,
        });
        let Some((a, x, y)) = taken else { return vec![l.clone()] };
        match (l.substitute(a, x), l.substitute(a, y)) {
            (Some(p), Some(q)) => {
                [p, q].iter().flat_map(|l| self.without_extremes(&l.clone().tighten(), fuel - 1)).collect()
            }
            _ => vec![l.clone()],
        }
    }

    /// Builds a point from isl's numbers: finds the assumed elements, and whether all numbers are certain.
    fn describe(&self, atoms: &[Atom], values: &[i64]) -> Point {
        let mut p = Point { exact: true, ..Point::default() };
        p.values = atoms.iter().copied().zip(values.iter().copied()).collect();
        for (a, v) in atoms.iter().zip(values) {
            let info = &self.atoms[a.0 as usize];
            match (&info.key, &info.def) {
                (Key::Expr(e), Def::Free) => match e.kind() {
                    ExprKind::Var(_) => {}
                    ExprKind::Load(..) => p.assumed.push((e.clone(), *v)),
                    _ => p.exact = false,
                },
                (_, Def::Product(factors)) => {
                    let product = factors.iter().try_fold(1i128, |x, f| {
                        x.checked_mul(i128::from(
                            p.values.get(f).copied().or_else(|| i64::try_from(self.atom_interval(*f).lo).ok())?,
                        ))
                    });
                    p.exact &= product == Some(i128::from(*v));
                }
                (Key::Quotient(..) | Key::Remainder(..), _) => p.exact &= !self.divides_by_form(&info.key),
                (_, Def::Min(..) | Def::Max(..) | Def::Select(..)) => p.exact = false,
                _ => {}
            }
        }
        p
    }

    fn divides_by_form(&self, key: &Key) -> bool {
        matches!(key, Key::Quotient(_, d) | Key::Remainder(_, d) if d.as_constant().is_none())
    }
}

/// Memo of isl's answers, `None` where isl exceeded its budget. A system recurs after every step of a schedule that
/// does not concern it.
static KNOWN: Mutex<Option<Memo>> = Mutex::new(None);
type Memo = FxHashMap<(usize, usize, Vec<Row>), Option<Option<Vec<i64>>>>;
/// Maximum number of memoised answers.
const MAX_KNOWN: usize = 20_000;

fn memoised(system: &System) -> Option<Option<Vec<i64>>> {
    let key = (system.atoms.len(), system.first, system.rows.clone());
    let lock = || KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = lock().get_or_insert_default().get(&key) {
        return known.clone();
    }
    let answer = crate::isl::solution(system.atoms.len(), &system.rows, system.first);
    let mut memo = lock();
    let memo = memo.get_or_insert_default();
    if memo.len() >= MAX_KNOWN {
        memo.clear();
    }
    memo.insert(key, answer.clone());
    answer
}
