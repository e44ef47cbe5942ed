//! Bounding boxes: the box of elements of a tensor that a statement accesses (FreeTensor, section 4.2 and Figure 14),
//! and proofs that accesses cover a box.
//!
//! A box is *guessed* from the subscripts: iterators of loops inside the statement are replaced by the ends of their
//! ranges, innermost first, and the tightest bounds free of these iterators are kept. Bounds that read data written in
//! the statement are discarded, since their value would differ between accesses. The box is then *proved* at every
//! access, from all facts known there, to contain the access; a dimension whose proof fails is taken whole. A wrong
//! guess therefore costs memory and nothing else.
//!
//! Coverage of a box is proved with a witness: the iteration that accesses element `x` is computed from `x`, by solving
//! the subscripts for the iterators, and the bounds, conditions and subscripts are proved to hold in this iteration.

use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_analysis::query::reference::{Reference, Step};
use taffeta_analysis::query::walk::{self, Visitor};
use taffeta_analysis::query::{Context, effects};
use taffeta_ast::op::Op;
use taffeta_ast::poly::{Poly, tidy};
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Range of indices in one dimension.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// First index.
    pub lo: Expr,
    /// One past the last index; less than `lo` only if nothing is accessed.
    pub end: Expr,
    /// Number of indices; at least 0.
    pub size: Expr,
    /// Whether the range may begin before the tensor's first index. No index there is ever accessed.
    pub before: bool,
    /// Whether the range may end after the tensor's last index. No index there is ever accessed.
    pub behind: bool,
}

/// Maximum constant size of a side that may reach beyond the tensor.
const SMALL: i64 = 4096;
/// Maximum number of incomparable bounds of one dimension; a dimension with more is taken whole.
const MAX_BOUNDS: usize = 4;

/// Computes the smallest box found around all accesses of `tensor` in `stmt`: one side for each dimension.
///
/// `refs` are these accesses. All of them have subscripts, and the shape of the tensor has no loads.
pub(crate) fn around(func: &Func, stmt: &Stmt, tensor: &Tensor, refs: &[&Reference]) -> Vec<Side> {
    let Some(mut facts) = walk::at(func, stmt.id()) else { return whole(tensor) };
    let mut bound = changes_inside(stmt);
    // Before the statement, locals and results may be unwritten: only parameters surely can be read there.
    bound.extend(func.results.iter().map(|t| t.symbol.clone()));
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            bound.insert(tensor.symbol.clone());
        }
    });
    let guesses: Vec<Option<(Expr, Expr)>> =
        (0..tensor.ndim()).map(|k| guess(&mut facts, stmt, &bound, refs, k)).collect();
    // An access that may be out of range of the tensor must be out of range of the box as well.
    let mut in_range = vec![true; tensor.ndim()];
    at_accesses(func, stmt, &tensor.symbol, &mut |c, _, indices| {
        for (k, sure) in in_range.iter_mut().enumerate() {
            *sure = *sure && c.in_range(&tensor.symbol, k, &indices[k].index);
        }
    });
    let mut sides = whole(tensor);
    for (k, guess) in guesses.into_iter().enumerate() {
        if let Some((lo, end)) = guess
            && !facts.may_stop(&lo)
            && !facts.may_stop(&end)
        {
            sides[k] = side(&mut facts, lo, end, &tensor.shape[k], in_range[k]);
        }
    }
    let mut proved = vec![true; tensor.ndim()];
    at_accesses(func, stmt, &tensor.symbol, &mut |c, _, indices| {
        c.scoped(|c| {
            for (a, dim) in indices.iter().zip(&tensor.shape) {
                c.assume(&Expr::int(0).less_eq(&a.index));
                c.assume(&a.index.less(dim));
            }
            for (k, ok) in proved.iter_mut().enumerate() {
                let index = &indices[k].index;
                *ok = *ok && c.prove(&sides[k].lo.less_eq(index)) && c.prove(&index.less(&sides[k].end));
            }
        });
    });
    let all = whole(tensor);
    sides.into_iter().zip(all).zip(proved).map(|((side, whole), proved)| if proved { side } else { whole }).collect()
}

fn whole(tensor: &Tensor) -> Vec<Side> {
    let all = |d: &Expr| Side { lo: Expr::int(0), end: d.clone(), size: d.clone(), before: false, behind: false };
    tensor.shape.iter().map(all).collect()
}

/// Builds the side from `lo` to `end` (exclusive). A side that may reach beyond the tensor is clipped, unless it is
/// small and all accesses are in range.
fn side(facts: &mut Context, lo: Expr, end: Expr, dim: &Expr, in_range: bool) -> Side {
    let zero = Expr::int(0);
    let length = |lo: &Expr, end: &Expr, facts: &mut Context| {
        let size = tidy(&end.minus(lo));
        facts.shorten(&size)
    };
    let (mut lo, mut end) = (lo, end);
    let size = length(&lo, &end, facts);
    let small = size.as_int().is_some_and(|s| s <= SMALL) || facts.prove(&size.less_eq(dim));
    let (mut before, mut behind) = (!facts.prove(&zero.less_eq(&lo)), !facts.prove(&end.less_eq(dim)));
    if !(small && in_range) {
        if before {
            lo = lo.max_with(&zero);
        }
        if behind {
            end = end.min_with(dim);
        }
        (before, behind) = (false, false);
    }
    let mut size = length(&lo, &end, facts);
    if size.as_int().is_none() && !facts.sum_fits(&[(&end, 1), (&lo, -1)], 0) {
        // Where nothing is accessed, `end` may lie so far below `lo` that the difference overflows.
        size = end.max_with(&lo).minus(&lo);
    }
    if !facts.prove(&zero.less_eq(&size)) {
        size = size.max_with(&zero);
    }
    let k = Symbol::new("k");
    let extent = Extent::Range { begin: zero.clone(), end: size.clone(), step: Expr::int(1) };
    facts.scoped(|c| {
        c.enter_loop(&k, &extent, &Stmt::nop());
        let index = lo.plus(&Expr::var(&k));
        before = before && !c.prove(&zero.less_eq(&index));
        behind = behind && !c.prove(&index.less(dim));
    });
    Side { lo, end, size, before, behind }
}

/// Guesses the first index of all accesses in one dimension, and one past the last, as expressions that can be
/// evaluated before the statement.
fn guess(
    facts: &mut Context,
    stmt: &Stmt,
    bound: &FxHashSet<Symbol>,
    refs: &[&Reference],
    k: usize,
) -> Option<(Expr, Expr)> {
    let (mut lows, mut highs): (Vec<Expr>, Vec<Expr>) = (Vec::new(), Vec::new());
    for r in refs {
        let index = r.indices.as_ref()?.get(k)?;
        let (mut lo, mut hi) = (index.clone(), index.clone());
        for step in inside(r, stmt.id()).iter().rev() {
            let Step::Loop { iter, bounds, .. } = step else { continue };
            if !effects::mentions(&lo, &[iter]) && !effects::mentions(&hi, &[iter]) {
                continue;
            }
            let [begin, end, by] = bounds.as_ref()?;
            let by = by.as_int().filter(|s| *s != 0)?;
            let (first, last) = (begin, last(begin, end, by));
            let (least, most) = if by > 0 { (first, &last) } else { (&last, first) };
            let range = Range { iter, least, most };
            lo = tidy(&range.extreme(facts, &lo, false)?);
            hi = tidy(&range.extreme(facts, &hi, true)?);
        }
        for e in [&lo, &hi] {
            // A bound that the statement changes, or that may stop the program, cannot be evaluated before it.
            let mut known = !facts.may_stop(e);
            e.walk(&mut |e| {
                if let ExprKind::Var(s) | ExprKind::Load(s, _) = e.kind() {
                    known &= !bound.contains(s);
                }
            });
            if !known {
                return None;
            }
        }
        lows.push(lo);
        highs.push(tidy(&hi.plus(&Expr::int(1))));
    }
    let lo = best(facts, lows, |facts, a, b| facts.prove(&a.less_eq(b)), Expr::min_with)?;
    let end = best(facts, highs, |facts, a, b| facts.prove(&b.less_eq(a)), Expr::max_with)?;
    Some((facts.shorten(&lo), facts.shorten(&end)))
}

/// Returns the bound that covers all others, or `join` of the bounds that no other one covers.
fn best(
    facts: &mut Context,
    all: Vec<Expr>,
    covers: impl Fn(&mut Context, &Expr, &Expr) -> bool,
    join: impl Fn(&Expr, &Expr) -> Expr,
) -> Option<Expr> {
    let mut kept: Vec<Expr> = Vec::new();
    for e in all {
        if kept.iter().any(|k| covers(facts, k, &e)) {
            continue;
        }
        kept.retain(|k| !covers(facts, &e, k));
        kept.push(e);
    }
    if kept.len() > MAX_BOUNDS {
        return None;
    }
    kept.into_iter().reduce(|a, b| join(&a, &b))
}

/// Returns the iterator's last value in a loop that runs at least once.
fn last(begin: &Expr, end: &Expr, by: i64) -> Expr {
    match by {
        1 => end.minus(&Expr::int(1)),
        -1 => end.plus(&Expr::int(1)),
        _ => {
            let span = if by > 0 { end.minus(begin) } else { begin.minus(end) };
            let trips = span.minus(&Expr::int(1)).floor_div(&Expr::int(by.abs()));
            begin.plus(&trips.times(&Expr::int(by)))
        }
    }
}

/// Range of an iterator's values.
struct Range<'a> {
    iter: &'a Symbol,
    least: &'a Expr,
    most: &'a Expr,
}

impl Range<'_> {
    /// Returns the largest or smallest value of an expression over the range, or a bound of it.
    fn extreme(&self, facts: &mut Context, e: &Expr, largest: bool) -> Option<Expr> {
        if !effects::mentions(e, &[self.iter]) {
            return Some(e.clone());
        }
        let poly = Poly::of(e)?;
        let mut sum = Expr::int(0);
        // Coefficient of the iterator, over all terms that are linear in it.
        let mut slope = Expr::int(0);
        let mut terms: Vec<(&[Expr], i128)> = poly.terms().collect();
        terms.sort_by_key(|(m, _)| m.len());
        for (monomial, c) in terms {
            let c = Expr::int(i64::try_from(c).ok()?);
            let with: Vec<usize> =
                (0..monomial.len()).filter(|k| effects::mentions(&monomial[*k], &[self.iter])).collect();
            let others = |skip: Option<usize>| {
                let rest = monomial.iter().enumerate().filter(|(k, _)| Some(*k) != skip);
                rest.fold(c.clone(), |p, (_, f)| f.times(&p))
            };
            match with.as_slice() {
                [] => sum = sum.plus(&others(None)),
                [k] if monomial[*k] == Expr::var(self.iter) => slope = slope.plus(&others(Some(*k))),
                [k] => {
                    let factor = tidy(&others(Some(*k)));
                    let up = self.sign(facts, &factor)?;
                    sum = sum.plus(&self.atom(facts, &monomial[*k], largest == up)?.times(&factor));
                }
                _ => return None,
            }
        }
        let slope = tidy(&slope);
        if slope.as_int() != Some(0) {
            let up = self.sign(facts, &slope)?;
            let value = if largest == up { self.most } else { self.least };
            sum = sum.plus(&value.times(&slope));
        }
        Some(sum)
    }

    /// Returns whether a factor is proved to be non-negative (`true`) or non-positive (`false`).
    fn sign(&self, facts: &mut Context, factor: &Expr) -> Option<bool> {
        if facts.prove(&Expr::int(0).less_eq(factor)) {
            return Some(true);
        }
        facts.prove(&factor.less_eq(&Expr::int(0))).then_some(false)
    }

    /// Bounds a term that is neither a sum nor a product.
    fn atom(&self, facts: &mut Context, e: &Expr, largest: bool) -> Option<Expr> {
        let ExprKind::Apply(op, args) = e.kind() else { return None };
        let positive = || args[1].as_int().filter(|d| *d > 0);
        Some(match op {
            Op::Min | Op::Max => {
                let (a, b) = (self.extreme(facts, &args[0], largest)?, self.extreme(facts, &args[1], largest)?);
                let (less, more) = if *op == Op::Min { (&a, &b) } else { (&b, &a) };
                if facts.prove(&less.less_eq(more)) {
                    a
                } else if facts.prove(&more.less_eq(less)) {
                    b
                } else {
                    Expr::apply(*op, vec![a, b])
                }
            }
            Op::FloorDiv => self.extreme(facts, &args[0], largest)?.floor_div(&Expr::int(positive()?)),
            Op::Mod if largest => Expr::int(positive()? - 1),
            Op::Mod => positive().map(|_| Expr::int(0))?,
            _ => return None,
        })
    }
}

/// Returns the part of a reference's path from the statement on. Its loops are the statement itself and the loops
/// inside.
pub(crate) fn inside(r: &Reference, id: StmtId) -> &[Step] {
    let path = &r.site.path;
    let from = path.iter().position(|s| s.stmt().id() == id).unwrap_or(path.len());
    &path[from..]
}

/// Collects the symbols whose values inside a statement may differ from those before it: iterators bound in it, and
/// tensors declared or written in it.
fn changes_inside(stmt: &Stmt) -> FxHashSet<Symbol> {
    let mut out = effects::writes(stmt);
    stmt.walk(&mut |s| {
        if let StmtKind::For { iter, .. } = s.kind() {
            out.insert(iter.clone());
        }
    });
    out
}

// ---- facts at accesses

/// Calls `f` at every access of a tensor inside a statement, with the facts that hold there and the accessing
/// statement.
pub(crate) fn at_accesses(
    func: &Func,
    stmt: &Stmt,
    tensor: &Symbol,
    f: &mut dyn FnMut(&mut Context, &Stmt, &[Access]),
) {
    let mut ids = FxHashSet::default();
    stmt.walk(&mut |s| {
        ids.insert(s.id());
    });
    let mut facts = Context::new(func);
    walk::walk(&func.body, &mut facts, &mut AtAccesses { ids, tensor, f });
}

struct AtAccesses<'a> {
    ids: FxHashSet<StmtId>,
    tensor: &'a Symbol,
    f: &'a mut dyn FnMut(&mut Context, &Stmt, &[Access]),
}

impl Visitor for AtAccesses<'_> {
    fn stmt(&mut self, stmt: &Stmt, facts: &mut Context) {
        if let StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } = stmt.kind()
            && tensor == self.tensor
            && self.ids.contains(&stmt.id())
        {
            (self.f)(facts, stmt, indices);
        }
    }

    fn expr(&mut self, expr: &Expr, stmt: &Stmt, facts: &mut Context) {
        if self.ids.contains(&stmt.id()) && effects::loads(expr).contains(self.tensor) {
            self.operand(expr, stmt, facts, &mut FxHashSet::default());
        }
    }
}

impl AtAccesses<'_> {
    fn operand(&mut self, e: &Expr, stmt: &Stmt, facts: &mut Context, seen: &mut FxHashSet<usize>) {
        if !seen.insert(e.address()) {
            return;
        }
        if let ExprKind::Apply(op, args) = e.kind()
            && op.is_lazy()
        {
            self.operand(&args[0], stmt, facts, seen);
            let mut branch = |holds: bool, e: &Expr| {
                let guard = facts.enter_guard(&args[0], holds);
                self.operand(e, stmt, facts, &mut FxHashSet::default());
                facts.leave_guard(guard);
            };
            branch(*op != Op::Or, &args[1]);
            if *op == Op::Select {
                branch(false, &args[2]);
            }
            return;
        }
        for c in e.children() {
            self.operand(c, stmt, facts, seen);
        }
        if let ExprKind::Load(t, indices) = e.kind()
            && t == self.tensor
        {
            (self.f)(facts, stmt, indices);
        }
    }
}

// ---- coverage of a box

/// Proves that the reference, on its path from step `from` on, accesses every element of the box that lies in the
/// tensor. `facts` hold at step `from`, or at a later statement whose path is the same up to that step.
pub(crate) fn covers(facts: &mut Context, r: &Reference, from: usize, sides: &[Side]) -> bool {
    let Some(indices) = &r.indices else { return false };
    let steps = &r.site.path[from.min(r.site.path.len())..];
    let loaded = |e: &Expr| !effects::loads(e).is_empty();
    if indices.iter().any(loaded) || r.guards.iter().any(|(g, _)| loaded(g)) {
        return false;
    }
    facts.scoped(|c| {
        let element: Vec<Expr> = sides.iter().map(|_| Expr::var(&Symbol::new("x"))).collect();
        for ((x, side), dim) in element.iter().zip(sides).zip(&r.declared.shape) {
            for cond in [side.lo.less_eq(x), x.less(&side.end), Expr::int(0).less_eq(x), x.less(dim)] {
                c.assume(&cond);
            }
        }
        let Some(witness) = Witness::of(steps, indices, &element) else { return false };
        let holds = |cond: &Expr, value: bool, c: &mut Context| {
            let cond = witness.value(cond);
            !loaded(&cond) && if value { c.prove(&cond) } else { c.refute(&cond) }
        };
        steps.iter().all(|step| match step {
            Step::Child { .. } | Step::Scope { .. } => true,
            Step::Branch { cond, then, .. } => holds(cond, *then, c),
            Step::Loop { bounds: None, .. } => false,
            Step::Loop { iter, bounds: Some([begin, end, by]), .. } => {
                let i = Expr::var(iter);
                let ends = match by.as_int() {
                    Some(s) if s > 0 => begin.less_eq(&i).and(&i.less(end)),
                    Some(s) if s < 0 => i.less_eq(begin).and(&end.less(&i)),
                    _ => return false,
                };
                let on = i.minus(begin).modulo(by).equals(&Expr::int(0));
                holds(&ends, true, c) && holds(&on, true, c)
            }
        }) && r.guards.iter().all(|(cond, value)| holds(cond, *value, c))
            && indices.iter().zip(&element).all(|(index, x)| holds(&index.equals(x), true, c))
    })
}

/// Iteration that accesses an element.
pub(crate) struct Witness {
    /// Values of the loops' iterators, in terms of the element's indices.
    pub values: FxHashMap<Symbol, Expr>,
}

impl Witness {
    /// Guesses the iteration of the loops on the path `steps` in which `indices` equal `element`. The caller must prove
    /// it.
    pub fn of(steps: &[Step], indices: &[Expr], element: &[Expr]) -> Option<Witness> {
        let mut w = Witness { values: FxHashMap::default() };
        let loops: Vec<(&Symbol, &Expr)> = steps
            .iter()
            .filter_map(|s| match s {
                Step::Loop { iter, bounds: Some([begin, ..]), .. } => Some((iter, begin)),
                _ => None,
            })
            .collect();
        // Solving one dimension may make another one solvable. Indices with a single unknown iterator come first.
        for most in [1, usize::MAX, 1] {
            for _ in 0..indices.len() {
                for (index, x) in indices.iter().zip(element) {
                    w.solve(&loops, index, x, most);
                }
            }
        }
        // Any value will do for the remaining iterators: take the first one.
        for (iter, begin) in loops {
            if !w.values.contains_key(iter) {
                let first = w.value(begin);
                w.values.insert(iter.clone(), first);
            }
        }
        Some(w)
    }

    /// Solves an index that is a sum of at most `most` unknown iterators with constant factors: `4*i + j = x` gives
    /// `i = x // 4, j = x % 4`.
    fn solve(&mut self, loops: &[(&Symbol, &Expr)], index: &Expr, x: &Expr, most: usize) -> Option<()> {
        let index = self.value(index);
        let mut rest = Expr::int(0);
        let mut unknown: Vec<(i64, &Symbol, &Expr)> = Vec::new();
        for (monomial, c) in Poly::of(&index)?.terms() {
            let c = i64::try_from(c).ok()?;
            let open = |e: &Expr| loops.iter().any(|(i, _)| !self.values.contains_key(i) && effects::mentions(e, &[i]));
            match monomial {
                [one] if loops.iter().any(|(i, _)| *one == Expr::var(i)) && open(one) => {
                    let (iter, begin) = loops.iter().find(|(i, _)| *one == Expr::var(i))?;
                    unknown.push((c, iter, begin));
                }
                _ if monomial.iter().any(open) => return None,
                _ => rest = rest.plus(&monomial.iter().fold(Expr::int(c), |p, f| f.times(&p))),
            }
        }
        if unknown.len() > most {
            return None;
        }
        let target = tidy(&x.minus(&rest));
        if let [(c @ (1 | -1), iter, _)] = unknown.as_slice() {
            let value = if *c == 1 { target } else { tidy(&Expr::int(0).minus(&target)) };
            self.values.insert((*iter).clone(), value);
            return Some(());
        }
        unknown.sort_by_key(|(c, ..)| std::cmp::Reverse(*c));
        if unknown.last().is_some_and(|(c, ..)| *c < 1) || unknown.windows(2).any(|w| w[0].0 == w[1].0) {
            return None;
        }
        let mut left = target;
        for (c, _, begin) in &unknown {
            left = left.minus(&self.value(begin).times(&Expr::int(*c)));
        }
        left = tidy(&left);
        let count = unknown.len();
        for (k, (c, iter, begin)) in unknown.into_iter().enumerate() {
            let number = left.floor_div(&Expr::int(c));
            let value = tidy(&self.value(begin).plus(&number));
            self.values.insert(iter.clone(), value);
            if k + 1 < count {
                left = left.modulo(&Expr::int(c));
            }
        }
        Some(())
    }

    /// Substitutes the values of this iteration in an expression.
    pub fn value(&self, e: &Expr) -> Expr {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(s) => self.values.get(s).cloned().unwrap_or(e),
            _ => e,
        })
    }
}
