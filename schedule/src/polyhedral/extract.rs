//! Extraction of a part of a program as statements with iteration domains.

use crate::refusal::Refusal;
use crate::requirements::require_unmarked;
use crate::selector;
use crate::tree::{self, Loop};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::polyhedral::{Condition, Region, Statement, Term};
use taffeta_analysis::query::relation::Leaf;
use taffeta_analysis::query::{Context, MAX_SIZE, effects, uninitialized, walk};
use taffeta_ast::op::Op;
use taffeta_ast::poly::Poly;
use taffeta_ast::{DType, Expr, ExprKind, Func, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Maximum coefficients and constants of affine sums: larger ones might let the sums wrap.
const LARGEST_COEFFICIENT: i64 = 1 << 12;
const LARGEST_NUMBER: i64 = 1 << 40;

/// Part of a program in the polyhedral model.
pub struct PolyhedralModel {
    /// Program whose loops in the part count upwards by one, with the part's declarations moved around it.
    pub func: Func,
    /// Modelled statement, without those declarations.
    pub root: StmtId,
    /// Iteration domains and parameters.
    pub region: Region,
    /// Leaves: the statements that stay whole, in textual order.
    pub leaves: Vec<Whole>,
    /// Statements kept whole since they are not affine, each with the reason.
    pub opaque: Vec<(Stmt, String)>,
}

/// Statement that stays in one piece.
pub struct Whole {
    /// Leaf statement.
    pub stmt: Stmt,
    /// Loops around it in the region, outermost first.
    pub loops: Vec<Loop>,
    /// Textual position: one number for the outermost block, and one for the body of each loop, from the outside in.
    pub text: Vec<i64>,
}

impl PolyhedralModel {
    /// Returns the leaves in the form of the dependence analysis.
    pub fn known_leaves(&self) -> Vec<Leaf> {
        let ids = |w: &Whole| w.loops.iter().map(|l| l.stmt.id()).collect();
        self.leaves.iter().map(|w| Leaf { stmt: w.stmt.id(), loops: ids(w) }).collect()
    }
}

/// Builds the model of a statement. Loops inside `depth` others of the statement are kept whole. `conditions` number
/// the primitive's conditions in refusals: affinity, and marks.
pub fn model(func: &Func, target: &Stmt, depth: usize, conditions: [u32; 2]) -> Result<PolyhedralModel, Refusal> {
    let (normal, _) = normalised(target);
    let written = effects::writes(&normal);
    let func = tree::replace(func, target.id(), &normal);
    let Some(facts) = walk::at(&func, normal.id()) else {
        return Err(Refusal::target("the statement is not in the program"));
    };
    let mut e = Extractor {
        func: func.clone(),
        whole: normal.id(),
        condition: conditions[0],
        special: conditions[1],
        depth,
        facts,
        written,
        inner: iterators(&normal),
        loops: Vec::new(),
        conditions: Vec::new(),
        text: vec![0],
        parameters: Vec::new(),
        declared: Vec::new(),
        statements: Vec::new(),
        leaves: Vec::new(),
        opaque: Vec::new(),
    };
    e.stmt(&normal)?;
    let known = e.known();
    let region = Region { parameters: e.parameters, known, statements: e.statements };
    // Declarations move out of the region.
    let (declared, leaves, opaque) = (e.declared, e.leaves, e.opaque);
    let inside = without(&normal, &declared);
    let root = inside.id();
    let mut outside = inside;
    for (stmt, tensor) in declared.iter().rev() {
        outside = stmt.with_kind(StmtKind::VarDef { tensor: tensor.clone(), body: outside });
    }
    let func = tree::replace(&func, normal.id(), &outside);
    Ok(PolyhedralModel { func, root, region, leaves, opaque })
}

/// Normalises unmarked loops with constant steps to count upwards by one. Ids are kept.
fn normalised(s: &Stmt) -> (Stmt, bool) {
    let mut changed = false;
    let inside = s.map(
        &mut |s| {
            let (new, c) = normalised(s);
            changed |= c;
            new
        },
        &mut Expr::clone,
    );
    let inside = if changed { inside } else { s.clone() };
    let Some(l) = Loop::of(&inside) else { return (inside, changed) };
    let plain = matches!(l.stmt.kind(), StmtKind::For { props, .. } if *props == taffeta_ast::LoopProps::default());
    let apart = match (l.begin.as_int(), l.end.as_int()) {
        (Some(begin), Some(end)) => i128::from(end) - i128::from(begin),
        _ => 0,
    };
    let fits = apart.abs() <= i128::from(i64::MAX / 2);
    match (l.length(), l.step.as_int()) {
        (Some(length), Some(step)) if step != 1 && plain && fits => {
            let body = tree::substitute(&l.body, &l.iter, &l.value(&Expr::var(&l.iter)));
            (l.with(Expr::int(0), length, Expr::int(1), body), true)
        }
        _ => (inside, changed),
    }
}

fn iterators(s: &Stmt) -> Vec<Symbol> {
    let mut out = Vec::new();
    s.walk(&mut |s| {
        if let StmtKind::For { iter, .. } = s.kind() {
            out.push(iter.clone());
        }
    });
    out
}

/// Removes these declarations from a statement.
fn without(s: &Stmt, declared: &[(Stmt, Arc<Tensor>)]) -> Stmt {
    match s.kind() {
        StmtKind::VarDef { body, .. } if declared.iter().any(|(d, _)| d.id() == s.id()) => without(body, declared),
        _ => s.map(&mut |s| without(s, declared), &mut Expr::clone),
    }
}

struct Extractor {
    /// Program that contains the region.
    func: Func,
    /// Region, by the id of its statement.
    whole: StmtId,
    condition: u32,
    special: u32,
    depth: usize,
    /// Facts that hold before the region.
    facts: Context,
    written: FxHashSet<Symbol>,
    /// Iterators of all loops in the region.
    inner: Vec<Symbol>,
    loops: Vec<Loop>,
    conditions: Vec<Condition>,
    text: Vec<i64>,
    parameters: Vec<Expr>,
    declared: Vec<(Stmt, Arc<Tensor>)>,
    statements: Vec<Statement>,
    leaves: Vec<Whole>,
    opaque: Vec<(Stmt, String)>,
}

impl Extractor {
    fn stmt(&mut self, s: &Stmt) -> Result<(), Refusal> {
        if let StmtKind::For { .. } = s.kind()
            && let Some(l) = Loop::of(s)
        {
            require_unmarked(&self.func, self.special, &l)?;
        }
        if let StmtKind::Assume { .. } = s.kind() {
            return Err(crate::block::assumption(self.special, s));
        }
        match s.kind() {
            StmtKind::Seq(all) => {
                for s in all {
                    self.stmt(s)?;
                }
                Ok(())
            }
            StmtKind::For { .. } if self.loops.len() < self.depth => match self.range(s) {
                Ok((l, conditions)) => {
                    let before = self.conditions.len();
                    self.conditions.extend(conditions);
                    self.loops.push(l.clone());
                    self.text.push(0);
                    self.stmt(&l.body)?;
                    self.text.pop();
                    self.loops.pop();
                    self.conditions.truncate(before);
                    self.next();
                    Ok(())
                }
                Err(why) => self.whole(s, Some(why)),
            },
            StmtKind::If { cond, then, otherwise } => match self.condition(cond) {
                Ok(c) => {
                    self.conditions.push(c.clone());
                    self.stmt(then)?;
                    self.conditions.pop();
                    if let Some(o) = otherwise {
                        self.conditions.push(Condition::Not(Box::new(c)));
                        self.stmt(o)?;
                        self.conditions.pop();
                    }
                    Ok(())
                }
                Err(why) => self.whole(s, Some(why)),
            },
            StmtKind::VarDef { tensor, body } if self.loops.len() < self.depth && self.can_leave(s, tensor) => {
                self.declared.push((s.clone(), tensor.clone()));
                self.stmt(body)
            }
            StmtKind::While { .. } => self.whole(s, Some("it is a `while` loop".into())),
            _ => self.whole(s, None),
        }
    }

    fn next(&mut self) {
        if let Some(last) = self.text.last_mut() {
            *last += 1;
        }
    }

    /// Adds a statement as a leaf. `why` is the reason that a loop or branch is opaque, such as bounds that are not
    /// affine. Outside of all loops such a statement is refused.
    fn whole(&mut self, s: &Stmt, why: Option<String>) -> Result<(), Refusal> {
        let mut assumed = None;
        s.walk(&mut |s| {
            if matches!(s.kind(), StmtKind::Assume { .. }) {
                assumed = Some(s.clone());
            }
        });
        if let Some(a) = assumed {
            return Err(crate::block::assumption(self.special, &a));
        }
        if let Some(why) = why {
            if self.loops.is_empty() {
                return Err(Refusal::illegal(self.condition, format!("the region is not affine: {why}"))
                    .label(s.origin().span(), "this statement"));
            }
            self.opaque.push((s.clone(), why));
        }
        let domain = Condition::All(self.conditions.clone());
        self.statements.push(Statement { indices: self.loops.len(), domain });
        self.leaves.push(Whole { stmt: s.clone(), loops: self.loops.clone(), text: self.text.clone() });
        self.next();
        Ok(())
    }

    /// Returns whether a declaration can move around the region: its shape is known there, and it stands outside of the
    /// loops, or declares an array whose scope has loops. A declaration for one iteration alone stays in it.
    fn can_leave(&mut self, s: &Stmt, tensor: &Tensor) -> bool {
        let has_loops = s.any(&mut |s| matches!(s.kind(), StmtKind::For { .. }));
        (self.loops.is_empty() || has_loops && !tensor.shape.is_empty()) && self.sound(tensor)
    }

    fn sound(&mut self, tensor: &Tensor) -> bool {
        tensor.shape.iter().all(|e| {
            let fixed = self.is_invariant(e) && self.facts.prove(&Expr::int(0).less_eq(e));
            fixed && self.early_read(e).is_none()
        })
    }

    /// Returns a loop with affine bounds, and their constraints on its iterator.
    fn range(&mut self, s: &Stmt) -> Result<(Loop, Vec<Condition>), String> {
        let l = Loop::of(s).ok_or("it is not a loop over integers")?;
        if l.step.as_int() != Some(1) {
            return Err(format!("the step of `{}` is not a constant", selector::called(&self.func, s)));
        }
        let index = Term::Index(self.loops.len());
        let (begin, end) = (self.term(&l.begin)?, self.term(&l.end)?);
        let from = at_most(begin, index.clone(), 0, true);
        let to = at_most(index, end, 1, false);
        Ok((l, vec![from, to]))
    }

    /// Converts a condition over integers.
    fn condition(&mut self, e: &Expr) -> Result<Condition, String> {
        if let Some(known) = e.as_bool() {
            return Ok(if known { Condition::All(vec![]) } else { Condition::Any(vec![]) });
        }
        let not_affine = || format!("its condition `{}` is not affine", taffeta_ast::print::expr(e));
        let ExprKind::Apply(op, a) = e.kind() else { return Err(not_affine()) };
        let difference = |c: &mut Self, x: &Expr, y: &Expr, less: i64| -> Result<Term, String> {
            if x.dtype() != DType::I64 || y.dtype() != DType::I64 {
                return Err(not_affine());
            }
            let (x, y) = (c.term(x)?, c.term(y)?);
            Ok(Term::Sum(vec![(1, y), (-1, x), (-less, Term::Number(1))]))
        };
        let at_least_0 = |t: Term| not_negative(vec![(1, t)]);
        Ok(match op {
            Op::And | Op::BitAnd => Condition::All(vec![self.condition(&a[0])?, self.condition(&a[1])?]),
            Op::Or | Op::BitOr => Condition::Any(vec![self.condition(&a[0])?, self.condition(&a[1])?]),
            Op::Not => Condition::Not(Box::new(self.condition(&a[0])?)),
            Op::Lt => at_least_0(difference(self, &a[0], &a[1], 1)?),
            Op::Le => at_least_0(difference(self, &a[0], &a[1], 0)?),
            Op::Gt => at_least_0(difference(self, &a[1], &a[0], 1)?),
            Op::Ge => at_least_0(difference(self, &a[1], &a[0], 0)?),
            Op::Eq => Condition::Zero(difference(self, &a[0], &a[1], 0)?),
            Op::Ne => Condition::Not(Box::new(Condition::Zero(difference(self, &a[0], &a[1], 0)?))),
            _ => return Err(not_affine()),
        })
    }

    /// Converts an integer to a term; the error says why it is not affine.
    fn term(&mut self, e: &Expr) -> Result<Term, String> {
        let not_affine = || format!("`{}` is not affine", taffeta_ast::print::expr(e));
        let sum = if e.dtype() == DType::I64 { Poly::affine(e).ok_or_else(not_affine)? } else { Poly::atom(e) };
        let within =
            |c: i128, largest: i64| i64::try_from(c).ok().filter(|c| c.unsigned_abs() <= largest.unsigned_abs());
        let constant = within(sum.constant_term(), LARGEST_NUMBER).ok_or_else(not_affine)?;
        let mut parts = vec![(1, Term::Number(constant))];
        for (e, c) in sum.linear_terms() {
            parts.push((within(c, LARGEST_COEFFICIENT).ok_or_else(not_affine)?, self.atom(e)?));
        }
        if let [_, (1, _)] = parts[..]
            && constant == 0
            && let Some((_, only)) = parts.pop()
        {
            return Ok(only);
        }
        Ok(Term::Sum(parts))
    }

    /// Converts an expression that is not a sum to a term.
    fn atom(&mut self, e: &Expr) -> Result<Term, String> {
        if let ExprKind::Var(s) = e.kind()
            && let Some(k) = self.loops.iter().position(|l| l.iter == *s)
        {
            return Ok(Term::Index(k));
        }
        if let Some(k) = self.parameter(e) {
            return Ok(Term::Parameter(k));
        }
        let not_affine = || format!("`{}` is not affine", taffeta_ast::print::expr(e));
        if self.is_invariant(e) {
            let text = taffeta_ast::print::expr(e);
            if let Some(t) = self.early_read(e) {
                return Err(format!("`{text}` reads `{t}`, which may not be written before the loops"));
            }
            return Err(format!("sums of `{text}` may overflow: {}", self.missing_bound(e)));
        }
        let ExprKind::Apply(op, a) = e.kind() else { return Err(not_affine()) };
        if e.dtype() != DType::I64 {
            return Err(not_affine());
        }
        let by = a.get(1).and_then(Expr::as_int).filter(|d| (1..=LARGEST_COEFFICIENT).contains(d));
        match (op, by) {
            (Op::FloorDiv, Some(d)) => Ok(Term::Quotient(Box::new(self.term(&a[0])?), d)),
            (Op::Mod, Some(d)) => {
                let whole = self.term(&a[0])?;
                let quotient = Term::Quotient(Box::new(whole.clone()), d);
                Ok(Term::Sum(vec![(1, whole), (-d, quotient)]))
            }
            (Op::Min, _) => Ok(Term::Least(vec![self.term(&a[0])?, self.term(&a[1])?])),
            (Op::Max, _) => Ok(Term::Greatest(vec![self.term(&a[0])?, self.term(&a[1])?])),
            _ => Err(not_affine()),
        }
    }

    /// Describes the missing bound of an integer, and how to write it.
    fn missing_bound(&mut self, e: &Expr) -> String {
        let range = self.facts.bounds(e).interval;
        let (text, limit) = (taffeta_ast::print::expr(e), i128::from(MAX_SIZE));
        let (low, high) = (format!("{} <= {text}", range.lo.max(0)), format!("{text} <= {}", range.hi.min(1_000_000)));
        match (range.lo < -limit, range.hi > limit) {
            (true, false) => format!("it has no lower bound; write `assert {low}` before the loops"),
            (false, true) => format!("it has no upper bound; write, say, `assert {high}` before the loops"),
            _ => format!("it has no bounds; write, say, `assert {low} and {high}` before the loops"),
        }
    }

    /// Returns whether the expression is an integer that has a value before the region, and the same one in all of it.
    fn is_invariant(&mut self, e: &Expr) -> bool {
        let iters: Vec<&Symbol> = self.inner.iter().collect();
        let changes = effects::mentions(e, &iters) || !effects::loads(e).is_disjoint(&self.written);
        !changes && e.dtype().is_int() && !self.facts.may_stop(e)
    }

    /// Returns a tensor that the expression reads, and that may be unwritten before the region.
    fn early_read(&self, e: &Expr) -> Option<Symbol> {
        uninitialized::early_read(&self.func, self.whole, &[], &[e])
    }

    /// Returns the number of the parameter for an expression, which it adds if necessary; `None` unless the expression
    /// is an integer that is constant in the region, has a value before it, and is bounded so that sums do not wrap.
    fn parameter(&mut self, e: &Expr) -> Option<usize> {
        let wide = if e.dtype() == DType::I64 { e.clone() } else { e.clone().cast(DType::I64) };
        if let Some(k) = self.parameters.iter().position(|p| *p == wide) {
            return Some(k);
        }
        if !self.is_invariant(e) || self.early_read(e).is_some() {
            return None;
        }
        let range = self.facts.bounds(e).interval;
        let limit = i128::from(MAX_SIZE);
        if range.lo < -limit || range.hi > limit {
            return None;
        }
        self.parameters.push(wide);
        Some(self.parameters.len() - 1)
    }

    /// Returns the known bounds of the parameters.
    fn known(&mut self) -> Condition {
        let mut all = Vec::new();
        for (k, e) in self.parameters.clone().iter().enumerate() {
            let range = self.facts.bounds(e).interval;
            let small = |v: i128| i64::try_from(v).ok().filter(|v| v.abs() < 1 << 20);
            let p = || Term::Parameter(k);
            if let Some(lo) = small(range.lo) {
                all.push(Condition::NotNegative(Term::Sum(vec![(1, p()), (-lo, Term::Number(1))])));
            }
            if let Some(hi) = small(range.hi) {
                all.push(Condition::NotNegative(Term::Sum(vec![(-1, p()), (hi, Term::Number(1))])));
            }
        }
        Condition::All(all)
    }
}

/// Builds `small + less <= large`, as a conjunction over the operands of `small` if it is a `max` (with `lower`), or of
/// `large` if it is a `min` (without).
fn at_most(small: Term, large: Term, less: i64, lower: bool) -> Condition {
    match (small, large) {
        (Term::Greatest(all), large) if lower => {
            Condition::All(all.into_iter().map(|t| at_most(t, large.clone(), less, lower)).collect())
        }
        (small, Term::Least(all)) if !lower => {
            Condition::All(all.into_iter().map(|t| at_most(small.clone(), t, less, lower)).collect())
        }
        (small, large) => not_negative(vec![(1, large), (-1, small), (-less, Term::Number(1))]),
    }
}

/// Builds `sum >= 0`, without a quotient if there is only one: `a <= e // d` becomes `d * a <= e`, and `e // d <= a`
/// becomes `e <= d * a + d - 1`.
fn not_negative(parts: Vec<(i64, Term)>) -> Condition {
    let flat = flat(&parts, 1);
    let is_quotient = |(_, t): &&(i64, Term)| matches!(t, Term::Quotient(..));
    let mut quotients = flat.iter().filter(is_quotient);
    if let (Some((sign @ (1 | -1), Term::Quotient(inner, by))), None) = (quotients.next(), quotients.next()) {
        let rest = flat.iter().filter(|p| !is_quotient(p));
        let scaled: Option<Vec<(i64, Term)>> = rest.map(|(c, t)| Some((c.checked_mul(*by)?, t.clone()))).collect();
        if let Some(mut all) = scaled {
            all.push((*sign, (**inner).clone()));
            if *sign < 0 {
                all.push((by - 1, Term::Number(1)));
            }
            return not_negative(all);
        }
    }
    Condition::NotNegative(Term::Sum(flat))
}

/// Flattens a sum of sums.
fn flat(parts: &[(i64, Term)], by: i64) -> Vec<(i64, Term)> {
    let mut out = Vec::new();
    for (c, t) in parts {
        let c = c.saturating_mul(by);
        match t {
            Term::Sum(inner) => out.extend(flat(inner, c)),
            _ => out.push((c, t.clone())),
        }
    }
    out
}
