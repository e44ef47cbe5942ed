//! Axes of views and elementwise values, as placeholders in expressions.
//!
//! Axis 0 is the *last* dimension, so that values are broadcast without renaming. All values share the placeholders,
//! which never reach the tree: a loop's iterator or an index replaces them.

use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use taffeta_ast::expr::Protocol;
use taffeta_ast::{Access, Expr, ExprKind, Symbol};

/// Maximum number of dimensions of a tensor.
pub(crate) const MAX_NDIM: usize = 32;

fn symbols() -> &'static [Symbol] {
    static AXES: OnceLock<Vec<Symbol>> = OnceLock::new();
    AXES.get_or_init(|| (0..MAX_NDIM).map(|k| Symbol::new(format!("axis{k}"))).collect())
}

/// Returns the placeholder of dimension `d` of `ndim`.
pub(crate) fn var(ndim: usize, d: usize) -> Expr {
    Expr::var(&symbols()[ndim - 1 - d])
}

/// Returns the axis (counted from the last dimension) of a placeholder.
fn position(s: &Symbol) -> Option<usize> {
    static POSITIONS: OnceLock<FxHashMap<u64, usize>> = OnceLock::new();
    let positions = POSITIONS.get_or_init(|| symbols().iter().enumerate().map(|(k, s)| (s.id(), k)).collect());
    positions.get(&s.id()).copied()
}

/// Substitutes `at[d]` for dimension `d` of `at.len()` in `e`.
pub(crate) fn substitute(e: &Expr, at: &[Expr]) -> Expr {
    if at.is_empty() || !mentions_any(e) {
        return e.clone();
    }
    e.rewrite(&mut |e| match e.kind() {
        ExprKind::Var(s) => match position(s) {
            Some(k) if k < at.len() => at[at.len() - 1 - k].clone(),
            _ => e,
        },
        _ => e,
    })
}

/// Substitutes `at[d]` for dimension `d` in an access. The protocol of `at[d]` passes to the index that it is
/// substituted into.
pub(crate) fn subscripted(a: &Access, at: &[Access]) -> Access {
    Access { protocol: direct(&a.index, at).unwrap_or(a.protocol), index: subscripted_expr(&a.index, at) }
}

/// Substitutes `at[d]` for dimension `d` in an expression. The protocols of `at` pass to the accesses in the
/// expression.
pub(crate) fn subscripted_expr(e: &Expr, at: &[Access]) -> Expr {
    let indices: Vec<Expr> = at.iter().map(|a| a.index.clone()).collect();
    if at.iter().all(|a| a.protocol == Protocol::Default) {
        return substitute(e, &indices);
    }
    let said = e.rewrite(&mut |e| match e.kind() {
        ExprKind::Load(t, own) => {
            let with = |a: &Access| Access { protocol: direct(&a.index, at).unwrap_or(a.protocol), ..a.clone() };
            Expr::load(t, own.iter().map(with).collect(), e.dtype())
        }
        _ => e,
    });
    substitute(&said, &indices)
}

/// Returns the protocol of the index that replaces a placeholder in `index` (outside of loads in it).
fn direct(index: &Expr, at: &[Access]) -> Option<Protocol> {
    match index.kind() {
        ExprKind::Var(s) => {
            let k = position(s).filter(|k| *k < at.len())?;
            Some(at[at.len() - 1 - k].protocol).filter(|p| *p != Protocol::Default)
        }
        ExprKind::Load(..) => None,
        _ => index.children().into_iter().find_map(|e| direct(e, at)),
    }
}

/// Returns whether `e` mentions a placeholder.
pub(crate) fn mentions_any(e: &Expr) -> bool {
    e.mentions(&|s| position(s).is_some())
}

/// Returns the dimension (counted from the last) that `e` is affine in, if it is exactly one with a non-zero factor:
/// `axis`, `axis + b`, `a * axis + b` with `b` free of placeholders.
pub(crate) fn single_affine(e: &Expr) -> Option<usize> {
    use taffeta_ast::Op;
    match e.kind() {
        ExprKind::Var(s) => position(s),
        ExprKind::Apply(Op::Add, a) => match (mentions_any(&a[0]), mentions_any(&a[1])) {
            (true, false) => single_affine(&a[0]),
            (false, true) => single_affine(&a[1]),
            _ => None,
        },
        ExprKind::Apply(Op::Sub, a) => match (mentions_any(&a[0]), mentions_any(&a[1])) {
            (true, false) => single_affine(&a[0]),
            (false, true) => single_affine(&a[1]),
            _ => None,
        },
        ExprKind::Apply(Op::Neg, a) => single_affine(&a[0]),
        ExprKind::Apply(Op::Mul, a) if a[1].as_int().is_some_and(|c| c != 0) => single_affine(&a[0]),
        _ => None,
    }
}
