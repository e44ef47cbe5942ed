//! Partial results (privatised reductions) of concurrent loops, that is, of parallel or vectorised ones.
//!
//! **Does**: where a schedule protects the reductions of a loop into a tensor by partial results, declares the tensor
//! of partial results, as small as possible: a scalar for every element whose index is loop-invariant, and otherwise an
//! array of the varying dimensions alone. After the loop, partial results are combined with the tensor's previous
//! value.
//!
//! **Requires**: `checks` (accesses added here are in range, under conditions of their own where that is not proved),
//! and `hoist`. **Ensures**: each tensor listed as `Partial` by a concurrent loop is a local scalar or (in a parallel
//! loop) a whole array, of which every thread can have a copy. Ids and origins of existing statements are kept.
//!
//! ```text
//! for i in range(n):  # parallel, partial(y +)
//!     for j in range(m):
//!         y[b, j] += a[i, j]
//!                                    →
//! y_part = empty((m,), f32)
//! for y_part.d0 in range(m):
//!     y_part[y_part.d0] = -0.0
//! for i in range(n):  # parallel, partial(y_part +)
//!     for j in range(m):
//!         y_part[j] += a[i, j]
//! for y_part.d0 in range(m):
//!     y[b, y_part.d0] += y_part[y_part.d0]
//! ```
//!
//! A tensor is removed from a loop's list if nothing in the loop reduces into it.
//!
//! **Leaves alone**: local scalars, and arrays all of whose dimensions vary, that the loop uses for these reductions
//! only: C makes copies of them. (Other uses, in iterations that do not reduce into the same element, access the tensor
//! itself, whose name copies would shadow.)

use super::checks;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::expr::Access;
use taffeta_ast::stmt::{LoopProps, Role};
use taffeta_ast::{
    DType, Expr, ExprKind, Extent, Func, Literal, Op, Origin, ReduceOp, Reduction, Sharing, Stmt, StmtKind, Symbol,
    Tensor,
};

pub(super) fn run(func: &Func) -> Func {
    let tensors = func.interface().map(|t| (t.symbol.clone(), t.clone())).collect();
    let mut pass = Pass { tensors, locals: FxHashSet::default(), concurrent: false };
    let body = pass.stmt(&func.body, &mut Context::new(func));
    func.with_body(body)
}

/// Returns the initial value of partial results: the operator's identity, except -0.0 for float sums, since -0.0 + -0.0
/// must stay -0.0.
pub(crate) fn neutral(op: ReduceOp, dtype: DType) -> Literal {
    match op.identity(dtype) {
        Literal::Float(0.0) => Literal::Float(-0.0),
        other => other,
    }
}

struct Pass {
    tensors: FxHashMap<Symbol, Arc<Tensor>>,
    /// Tensors declared in the program.
    locals: FxHashSet<Symbol>,
    /// Whether the position is inside a parallel loop.
    concurrent: bool,
}

/// A tensor of partial results.
struct Partial {
    tensor: Arc<Tensor>,
    /// Tensor into which the partial results are combined.
    of: Arc<Tensor>,
    op: ReduceOp,
    /// Index in each dimension of `of`, where it is loop-invariant.
    fixed: Vec<Option<Expr>>,
}

impl Partial {
    /// Returns whether a reduction at these indices goes into the partial result.
    fn holds(&self, indices: &[Access]) -> bool {
        self.fixed.iter().zip(indices).all(|(f, a)| f.as_ref().is_none_or(|f| *f == a.index))
    }

    /// Projects indices to the dimensions of the partial result.
    fn indices(&self, indices: &[Access]) -> Vec<Access> {
        self.fixed.iter().zip(indices).filter(|(f, _)| f.is_none()).map(|(_, a)| a.clone()).collect()
    }
}

impl Pass {
    fn stmt(&mut self, s: &Stmt, facts: &mut Context) -> Stmt {
        let s = &without_unused(s);
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            self.tensors.insert(tensor.symbol.clone(), tensor.clone());
            self.locals.insert(tensor.symbol.clone());
        }
        let partials = self.partials(s, facts);
        let renamed = renamed(s, &partials);
        for p in &partials {
            self.tensors.insert(p.tensor.symbol.clone(), p.tensor.clone());
            self.locals.insert(p.tensor.symbol.clone());
        }
        let outside = self.concurrent;
        self.concurrent |= matches!(s.kind(), StmtKind::For { props, .. } if props.parallel.is_some());
        // The new tensors are left out of the facts, since the body needs no facts about them.
        let mut new = walk::map(&renamed, facts, &mut |inside, facts| self.stmt(inside, facts));
        self.concurrent = outside;
        if !partials.is_empty() {
            new = self.around(new, s, &partials, facts);
        }
        facts.after(s);
        new
    }

    /// Plans the partial results of a loop.
    fn partials(&self, s: &Stmt, facts: &mut Context) -> Vec<Partial> {
        let StmtKind::For { props, .. } = s.kind() else { return Vec::new() };
        let variant = variant(s);
        let mut out: Vec<Partial> = Vec::new();
        for Reduction { tensor, op, sharing } in &props.reductions {
            let Some(of) = self.tensors.get(tensor) else { continue };
            let alone = !is_used_otherwise(s, tensor, *op);
            if *sharing != Sharing::Partial || (of.ndim() == 0 && self.locals.contains(tensor) && alone) {
                continue;
            }
            let mut same = |k: usize, e: &Expr| {
                // A shape read from memory may have changed since the declaration, so indices cannot be compared with
                // it.
                let fixed = |t: &Arc<Tensor>| t.shape.iter().all(|d| effects::loads(d).is_empty());
                let ranged = effects::loads(&of.shape[k]).is_empty() || facts.in_range(tensor, k, e);
                let valued = || effects::loads(e).iter().all(|t| self.tensors.get(t).is_some_and(fixed));
                ranged && !changes(e, &variant) && (valued() || !facts.may_stop(e))
            };
            let (mut whole, mut parts): (Vec<Option<Expr>>, Vec<Vec<Option<Expr>>>) = (Vec::new(), Vec::new());
            let mut first = true;
            s.walk(&mut |inner| {
                let StmtKind::ReduceTo { tensor: t, indices, op: o, .. } = inner.kind() else { return };
                if t != tensor || o != op {
                    return;
                }
                let fixed: Vec<Option<Expr>> =
                    indices.iter().enumerate().map(|(k, a)| same(k, &a.index).then(|| a.index.clone())).collect();
                if fixed.iter().all(Option::is_some) {
                    if !parts.contains(&fixed) {
                        parts.push(fixed);
                    }
                } else if std::mem::take(&mut first) {
                    whole = fixed;
                } else {
                    whole.iter_mut().zip(fixed).for_each(|(w, f)| *w = w.take().filter(|w| Some(w) == f.as_ref()));
                }
            });
            // Elements whose index varies with the lane are never updated by two lanes.
            if props.parallel.is_some() && (whole.iter().any(Option::is_some) || !whole.is_empty() && !alone) {
                parts.push(whole);
            }
            out.extend(parts.into_iter().map(|fixed| partial(of, *op, fixed)));
        }
        out
    }
}

/// Removes reductions from a loop's list if nothing in the loop reduces into their tensors: their branch was decided
/// and removed, or is in another of the loops into which a traversal of structured tensors was split.
fn without_unused(s: &Stmt) -> Stmt {
    let StmtKind::For { iter, extent, props, body } = s.kind() else { return s.clone() };
    if props.reductions.is_empty() {
        return s.clone();
    }
    let mut into = FxHashSet::default();
    body.walk(&mut |s| {
        if let StmtKind::ReduceTo { tensor, .. } = s.kind() {
            into.insert(tensor.clone());
        }
    });
    if props.reductions.iter().all(|r| into.contains(&r.tensor)) {
        return s.clone();
    }
    let mut props = props.clone();
    props.reductions.retain(|r| into.contains(&r.tensor));
    s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
}

/// Returns whether a loop uses a tensor for anything but reductions by this operator.
fn is_used_otherwise(s: &Stmt, tensor: &Symbol, op: ReduceOp) -> bool {
    let mut found = effects::is_read(s, tensor);
    s.walk(&mut |s| match s.kind() {
        StmtKind::Store { tensor: t, .. } => found |= t == tensor,
        StmtKind::ReduceTo { tensor: t, op: o, .. } => found |= t == tensor && *o != op,
        _ => {}
    });
    found
}

fn partial(of: &Arc<Tensor>, op: ReduceOp, fixed: Vec<Option<Expr>>) -> Partial {
    let shape = fixed.iter().zip(&of.shape).filter(|(f, _)| f.is_none()).map(|(_, d)| d.clone()).collect();
    let symbol = Symbol::new(format!("{}_part", of.symbol));
    let tensor = Arc::new(Tensor::dense(symbol, of.dtype, shape, Role::Workspace));
    Partial { tensor, of: of.clone(), op, fixed }
}

/// Returns the symbols whose values may differ between iterations.
pub(super) fn variant(s: &Stmt) -> FxHashSet<Symbol> {
    let mut symbols = effects::writes(s);
    s.walk(&mut |s| {
        if let StmtKind::For { iter, .. } = s.kind() {
            symbols.insert(iter.clone());
        }
    });
    symbols
}

/// Returns whether an expression mentions a variant symbol.
pub(super) fn changes(e: &Expr, variant: &FxHashSet<Symbol>) -> bool {
    e.any(&mut |e| matches!(e.kind(), ExprKind::Var(s) | ExprKind::Load(s, _) if variant.contains(s)))
}

/// Returns the smallest partial result into which a reduction can go.
fn target<'p>(partials: &'p [Partial], tensor: &Symbol, op: ReduceOp, indices: &[Access]) -> Option<&'p Partial> {
    let fits = partials.iter().filter(|p| p.of.symbol == *tensor && p.op == op && p.holds(indices));
    fits.min_by_key(|p| p.tensor.ndim())
}

/// Redirects the reductions in a statement to the partial results.
fn renamed(s: &Stmt, partials: &[Partial]) -> Stmt {
    if partials.is_empty() {
        return s.clone();
    }
    match s.kind() {
        StmtKind::ReduceTo { tensor, indices, op, value } => match target(partials, tensor, *op, indices) {
            Some(p) => s.with_kind(StmtKind::ReduceTo {
                tensor: p.tensor.symbol.clone(),
                indices: p.indices(indices),
                op: *op,
                value: value.clone(),
            }),
            None => s.clone(),
        },
        StmtKind::For { iter, extent, props, body } => {
            // List the partial results in place of the tensors, for this loop and those inside.
            let mut reductions: Vec<Reduction> = Vec::new();
            let variant = variant(s);
            for r in &props.reductions {
                body.walk(&mut |inner| {
                    let StmtKind::ReduceTo { tensor, indices, op, .. } = inner.kind() else { return };
                    if *tensor == r.tensor && *op == r.op {
                        let part = target(partials, tensor, *op, indices);
                        // Lanes never update one element at the same time if its index varies with the lane. (An
                        // invariant element that is still listed has no partial result, and is refused later.)
                        let lanes = props.parallel.is_none() && indices.iter().any(|a| changes(&a.index, &variant));
                        if part.is_none() && lanes {
                            return;
                        }
                        let to = part.map_or(tensor, |p| &p.tensor.symbol);
                        let new = Reduction { tensor: to.clone(), ..r.clone() };
                        if !reductions.contains(&new) {
                            reductions.push(new);
                        }
                    }
                });
            }
            let props = LoopProps { reductions, ..props.clone() };
            let (iter, extent, body) = (iter.clone(), extent.clone(), renamed(body, partials));
            s.with_kind(StmtKind::For { iter, extent, props, body })
        }
        _ => s.map(&mut |inner| renamed(inner, partials), &mut Expr::clone),
    }
}

impl Pass {
    /// Wraps the loop into the declaration, initialisation and combination of its partial results.
    fn around(&self, new: Stmt, s: &Stmt, partials: &[Partial], facts: &mut Context) -> Stmt {
        let origin = s.origin().derive("reductions", "partial");
        let clear = partials.iter().map(|p| {
            let start = Expr::literal(neutral(p.op, p.tensor.dtype), p.tensor.dtype);
            over(&p.tensor, &origin, |at| {
                let indices = at.iter().cloned().map(Access::from).collect();
                StmtKind::Store { tensor: p.tensor.symbol.clone(), indices, value: start }
            })
        });
        let combine = partials.iter().map(|p| self.combine(s, &new, p, &origin, facts));
        let combine: Vec<Stmt> = combine.collect();
        let body = Stmt::seq(clear.chain([new]).chain(combine), origin.clone());
        partials
            .iter()
            .rev()
            .fold(body, |body, p| Stmt::new(StmtKind::VarDef { tensor: p.tensor.clone(), body }, origin.clone()))
    }

    /// Makes the statement after the loop that combines partial results into their tensor.
    fn combine(&self, s: &Stmt, new: &Stmt, p: &Partial, origin: &Origin, facts: &mut Context) -> Stmt {
        let combine = over(&p.tensor, origin, |at| {
            let mut rest = at.iter();
            let index = |f: &Option<Expr>| f.clone().or_else(|| rest.next().cloned()).map(Access::from);
            let indices = p.fixed.iter().filter_map(index).collect();
            let value = p.tensor.load(at.iter().cloned());
            StmtKind::ReduceTo { tensor: p.of.symbol.clone(), indices, op: p.op, value }
        });
        // If the loop does not run or does not reach the reduction, the index may be out of range.
        let mut cond = match s.kind() {
            // Only if the loop does not overwrite the tensors read by its bounds.
            StmtKind::For { extent: Extent::Range { begin, end, step }, body, .. }
                if effects::loads(begin).union(&effects::loads(end)).all(|t| !effects::writes(body).contains(t)) =>
            {
                runs([begin, end, step], facts)
            }
            _ => Expr::bool(true),
        };
        for (k, index) in p.fixed.iter().enumerate() {
            let Some(index) = index else { continue };
            cond = cond.and(&checks::in_range(&self.tensors, (&p.of, k), index, facts));
        }
        // If nothing was reduced, another thread may be updating the element.
        if self.concurrent && p.tensor.ndim() == 0 && !surely_reduces(new, &p.tensor.symbol) {
            cond = cond.and(&is_not_neutral(p));
        }
        match cond.as_bool() {
            Some(true) => combine,
            _ => Stmt::new(StmtKind::If { cond, then: combine, otherwise: None }, origin.clone()),
        }
    }
}

/// Returns whether every iteration of a loop updates the tensor.
fn surely_reduces(s: &Stmt, tensor: &Symbol) -> bool {
    match s.kind() {
        StmtKind::ReduceTo { tensor: t, .. } => t == tensor,
        StmtKind::Seq(_) | StmtKind::VarDef { .. } | StmtKind::For { .. } => {
            s.kind().children().into_iter().any(|c| surely_reduces(c, tensor))
        }
        _ => false,
    }
}

/// Returns the condition that a partial result differs from its initial value, including the sign of zero.
fn is_not_neutral(p: &Partial) -> Expr {
    let (now, dtype) = (p.tensor.load([]), p.tensor.dtype);
    let start = Expr::literal(neutral(p.op, dtype), dtype);
    let other = Expr::apply(Op::Ne, vec![now.clone(), start]);
    if p.op == ReduceOp::Add && dtype.is_float() {
        let one = Expr::float(1.0, dtype);
        let positive = Expr::float(0.0, dtype).less(&Expr::apply(Op::Div, vec![one, now]));
        return other.or(&positive);
    }
    other
}

/// Returns the condition that a loop has iterations.
fn runs([begin, end, step]: [&Expr; 3], facts: &mut Context) -> Expr {
    let cond = match step.as_int().map(i64::signum) {
        Some(1) => begin.less(end),
        Some(-1) => end.less(begin),
        _ => begin.less(end).or(&end.less(begin)),
    };
    if facts.prove(&cond) { Expr::bool(true) } else { cond }
}

/// Makes a loop nest that runs a statement for every element of a tensor.
fn over(t: &Tensor, origin: &Origin, inner: impl FnOnce(&[Expr]) -> StmtKind) -> Stmt {
    let iters: Vec<Symbol> = (0..t.ndim()).map(|d| Symbol::new(format!("{}.d{d}", t.symbol))).collect();
    let at: Vec<Expr> = iters.iter().map(Expr::var).collect();
    let mut s = Stmt::new(inner(&at), origin.clone());
    for (iter, end) in iters.into_iter().zip(&t.shape).rev() {
        let extent = Extent::Range { begin: Expr::int(0), end: end.clone(), step: Expr::int(1) };
        s = Stmt::new(StmtKind::For { iter, extent, props: LoopProps::default(), body: s }, origin.clone());
    }
    s
}
