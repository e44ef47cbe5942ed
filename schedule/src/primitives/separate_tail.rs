#![doc = include_str!("separate_tail.md")]

use super::reorder::extreme;
use crate::eliminate_guards::{self, Eliminated};
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Args, Value};
use rustc_hash::FxHashSet;
use taffeta_analysis::pass::copy;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::op::Op;
use taffeta_ast::poly::{self, Poly};
use taffeta_ast::{DType, Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol};

pub(crate) const ENTRY: Entry = Entry {
    name: "separate_tail",
    signature: "s.separate_tail(L)",
    params: &["loop"],
    summary: "Cuts the range of a loop where conditions inside become constant.",
    doc: include_str!("separate_tail.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    Ok(apply(check(s, &l)?))
}

struct Plan {
    eliminated: Eliminated,
    parts: Vec<StmtId>,
}

fn check(s: &Schedule, l: &Loop) -> Result<Plan, Refusal> {
    let refuse = |n, text: String| Err(Refusal::illegal(n, text).label(l.stmt.origin().span(), "this loop"));
    // 1. The range can be cut.
    if l.step.as_int() != Some(1) {
        return refuse(1, format!("the step of `{}` is not 1", s.called(&l.stmt)));
    }
    let bounds: FxHashSet<Symbol> = [&l.begin, &l.end].into_iter().flat_map(effects::loads).collect();
    if !l.body.writes().is_disjoint(&bounds) {
        return refuse(1, format!("the bounds of `{}` change in its body", s.called(&l.stmt)));
    }
    // 2. The cuts.
    let mut known: Vec<Symbol> = s.func().sizes.clone();
    known.extend(s.around(l.stmt.id()).iter().filter_map(Loop::of).map(|l| l.iter));
    let mut facts = walk::at(s.func(), l.stmt.id()).unwrap_or_else(|| Context::new(s.func()));
    let mut together = None;
    for varying in [true, false] {
        let mut cuts = Cuts { target: l, varying, known: known.clone(), inner: vec![], from: vec![], to: vec![] };
        cuts.collect(&l.body, &mut facts);
        if cuts.from.is_empty() && cuts.to.is_empty() {
            let text = format!("no condition in `{}` becomes constant in a part of its range", s.called(&l.stmt));
            return refuse(2, text);
        }
        // 3. Facts in the main part.
        let Parts { stmt: new, main, loops: parts } = cuts.parts(&mut facts);
        if !facts.prove(&main.end.less_eq(&main.begin)) {
            together = Some((new, parts));
            break;
        }
    }
    let Some((new, mut parts)) = together else {
        let text = format!("the conditions in `{}` do not hold together in any part of its range", s.called(&l.stmt));
        return refuse(3, text);
    };
    let mut eliminated = eliminate_guards::run(&tree::replace(s.func(), l.stmt.id(), &new), l.stmt.id());
    if eliminated.count == 0 {
        return refuse(3, format!("no condition in `{}` is proved to hold in a part of its range", s.called(&l.stmt)));
    }
    for other in parts.clone().iter().filter(|p| **p != l.stmt.id()) {
        eliminated.func = eliminate_guards::run(&eliminated.func, *other).func;
        // The part may have nothing left in it.
        if tree::find(&eliminated.func.body, *other)
            .as_ref()
            .and_then(Loop::of)
            .is_some_and(|p| tree::has_no_effect(&p.body))
        {
            eliminated.func = tree::replace(&eliminated.func, *other, &Stmt::nop());
            parts.retain(|p| p != other);
        }
    }
    Ok(Plan { eliminated, parts })
}

fn apply(plan: Plan) -> Change {
    let made = Value::List(plan.parts.into_iter().map(Value::from).collect());
    Change { moved: plan.eliminated.moved, ..Change::new(plan.eliminated.func, made) }
}

/// Cuts of the range of a loop.
struct Cuts<'a> {
    target: &'a Loop,
    /// Whether `min` and `max` become the operand that changes with the loop, or the other one.
    varying: bool,
    /// Sizes, and iterators of the loops around.
    known: Vec<Symbol>,
    /// Loops between the target and a condition.
    inner: Vec<Loop>,
    /// Iterations from which on a condition holds.
    from: Vec<Expr>,
    /// Iterations before which a condition holds.
    to: Vec<Expr>,
}

/// Parts of a loop that is cut.
struct Parts {
    /// All parts, one after the other.
    stmt: Stmt,
    main: Loop,
    /// Loops of all parts.
    loops: Vec<StmtId>,
}

impl Cuts<'_> {
    fn collect(&mut self, s: &Stmt, facts: &mut Context) {
        if let StmtKind::If { cond, .. } = s.kind() {
            for c in cond.conjuncts() {
                self.condition(&c, facts);
            }
        }
        let l = Loop::of(s);
        if let Some(l) = &l {
            self.bound(&l.begin, facts);
            self.bound(&l.end, facts);
            self.inner.push(l.clone());
        }
        for c in s.kind().children() {
            self.collect(c, facts);
        }
        if l.is_some() {
            self.inner.pop();
        }
    }

    /// Adds cuts that make `min` and `max` in bounds equal to one of their operands in the main part.
    fn bound(&mut self, e: &Expr, facts: &mut Context) {
        let ExprKind::Apply(op @ (Op::Min | Op::Max), a) = e.kind() else { return };
        let ours = |e: &Expr| effects::mentions(e, &[&self.target.iter]);
        let (x, y) = if ours(&a[0]) == self.varying { (&a[0], &a[1]) } else { (&a[1], &a[0]) };
        let cond = if *op == Op::Min { x.less_eq(y) } else { y.less_eq(x) };
        self.condition(&cond, facts);
        self.bound(&a[0], facts);
        self.bound(&a[1], facts);
    }

    fn condition(&mut self, cond: &Expr, facts: &mut Context) {
        let ExprKind::Apply(op, a) = cond.kind() else { return };
        if a.len() != 2 || a[0].dtype() != DType::I64 {
            return;
        }
        let one = Expr::int(1);
        // The condition holds where this difference is at least 0.
        match op {
            Op::Lt => self.at_least_0(&a[1].minus(&a[0]).minus(&one)),
            Op::Le => self.at_least_0(&a[1].minus(&a[0])),
            Op::Gt => self.at_least_0(&a[0].minus(&a[1]).minus(&one)),
            Op::Ge => self.at_least_0(&a[0].minus(&a[1])),
            Op::Eq | Op::Ne => self.equal(&a[0].minus(&a[1]), facts),
            _ => {}
        }
    }

    /// Splits a form that is linear in the loop's iterator into its coefficient and the rest, which has known symbols
    /// only.
    fn form(&self, e: &Expr) -> Option<(i64, Poly)> {
        let sum = Poly::affine(e)?;
        let c = i64::try_from(sum.coefficient(&self.target.iter)).ok()?;
        let rest = sum.without(&self.target.iter);
        let whole = rest.sum();
        let mut free = !whole.may_fail() && effects::loads(&whole).is_empty();
        whole.walk(&mut |e| free &= !matches!(e.kind(), ExprKind::Var(v) if !self.known.contains(v)));
        (c != 0 && free).then_some((c, rest))
    }

    fn at_least_0(&mut self, e: &Expr) {
        // Take the worst iteration of the loops inside.
        let mut e = poly::normalized_sum(e);
        for l in self.inner.iter().rev() {
            let (Some(length), Some(step)) = (l.length(), l.step.as_int()) else { return };
            let last = l.value(&length.minus(&Expr::int(1)));
            let (lo, hi) = if step > 0 { (&l.begin, &last) } else { (&last, &l.begin) };
            let Some(least) = extreme(&e, &l.iter, lo, hi, false) else { return };
            e = poly::normalized_sum(&least);
        }
        let Some((c, rest)) = self.form(&e) else { return };
        if c > 0 {
            // i >= ceil(-rest / c)
            let Some(negated) = Poly::default().plus(&rest, -1) else { return };
            self.from.push(poly::normalized_sum(&tree::ceil_div(&negated.sum(), c)));
        } else if let Some(d) = c.checked_neg() {
            self.to.push(poly::normalized_sum(&rest.sum().floor_div(&Expr::int(d)).plus(&Expr::int(1))));
        }
    }

    /// Cuts off a single iteration: the first one or the last one.
    fn equal(&mut self, e: &Expr, facts: &mut Context) {
        let Some((c, rest)) = self.form(&poly::normalized_sum(e)) else { return };
        let at = match c {
            1 => Poly::default().plus(&rest, -1).map(|r| r.sum()),
            -1 => Some(rest.sum()),
            _ => None,
        };
        let Some(at) = at else { return };
        let next = poly::normalized_sum(&at.plus(&Expr::int(1)));
        if facts.prove(&at.less_eq(&self.target.begin)) {
            self.from.push(next);
        } else if facts.prove(&self.target.end.less_eq(&next)) {
            self.to.push(at);
        }
    }

    /// Builds the parts.
    fn parts(&self, facts: &mut Context) -> Parts {
        let l = self.target;
        let join = |all: &[Expr], largest: bool| {
            let mut distinct: Vec<Expr> = Vec::new();
            all.iter().for_each(|e| {
                if !distinct.contains(e) {
                    distinct.push(e.clone());
                }
            });
            distinct.into_iter().reduce(|a, b| if largest { a.max_with(&b) } else { a.min_with(&b) })
        };
        let larger = |a: &Expr, b: &Expr, facts: &mut Context| match () {
            () if facts.prove(&b.less_eq(a)) => a.clone(),
            () if facts.prove(&a.less_eq(b)) => b.clone(),
            () => a.max_with(b),
        };
        let smaller = |a: &Expr, b: &Expr, facts: &mut Context| match () {
            () if facts.prove(&a.less_eq(b)) => a.clone(),
            () if facts.prove(&b.less_eq(a)) => b.clone(),
            () => a.min_with(b),
        };
        // The main part runs from `first` to `last`, and may be empty. The head ends where the main part begins, but
        // not after the end of the loop; the tail begins where both have ended.
        let first = join(&self.from, true).map(|e| larger(&facts.shorten(&e), &l.begin, facts));
        let begin = first.clone().unwrap_or_else(|| l.begin.clone());
        let last = join(&self.to, false).map(|e| smaller(&facts.shorten(&e), &l.end, facts));
        let head_end = first.as_ref().map(|e| smaller(e, &l.end, facts));
        let tail_begin = last.as_ref().map(|e| larger(e, &begin, facts));
        let copy = |lo: &Expr, hi: &Expr, role| {
            let new = copy::statement(&l.stmt, "separate_tail", role);
            Loop::of(&new).map(|n| n.with(lo.clone(), hi.clone(), l.step.clone(), n.body.clone()))
        };
        let head = head_end.as_ref().and_then(|e| copy(&l.begin, e, "head"));
        let tail = tail_begin.as_ref().and_then(|e| copy(e, &l.end, "tail"));
        let end = last.unwrap_or_else(|| l.end.clone());
        let main = l.with(begin.clone(), end.clone(), l.step.clone(), l.body.clone());
        let all: Vec<Stmt> = head.into_iter().chain([main.clone()]).chain(tail).collect();
        let ids = all.iter().map(Stmt::id).collect();
        let main = Loop { stmt: main, begin, end, ..l.clone() };
        Parts { stmt: Stmt::seq(all, l.stmt.origin().derive("separate_tail", "parts")), main, loops: ids }
    }
}
