//! The axes of views and elementwise values, as placeholders in expressions.
//!
//! Axis 0 is the *last* dimension, so that values meet in broadcasting without any renaming. The placeholders are
//! shared by all values and never reach the tree: a loop's iterator, or an index, takes their place.

use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use taffeta_ast::expr::Protocol;
use taffeta_ast::{Access, Expr, ExprKind, Symbol};

/// More dimensions than any tensor may have.
pub(crate) const MAX_NDIM: usize = 32;

fn symbols() -> &'static [Symbol] {
    static AXES: OnceLock<Vec<Symbol>> = OnceLock::new();
    AXES.get_or_init(|| (0..MAX_NDIM).map(|k| Symbol::new(format!("axis{k}"))).collect())
}

/// The placeholder of dimension `d` of `ndim`.
pub(crate) fn var(ndim: usize, d: usize) -> Expr {
    Expr::var(&symbols()[ndim - 1 - d])
}

/// Which axis (counted from the last dimension) a symbol is the placeholder of.
fn position(s: &Symbol) -> Option<usize> {
    static POSITIONS: OnceLock<FxHashMap<u64, usize>> = OnceLock::new();
    let positions = POSITIONS.get_or_init(|| symbols().iter().enumerate().map(|(k, s)| (s.id(), k)).collect());
    positions.get(&s.id()).copied()
}

/// `e` with `at[d]` in place of dimension `d` of `at.len()`.
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

/// The access with `at[d]` in place of dimension `d`. How `at[d]` is found is said of the index that it stands in.
pub(crate) fn subscripted(a: &Access, at: &[Access]) -> Access {
    Access { protocol: direct(&a.index, at).unwrap_or(a.protocol), index: subscripted_expr(&a.index, at) }
}

/// The same for an expression, whose accesses it is said of.
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

/// The protocol of what stands in an index for a placeholder in it (not in what it reads).
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

/// Whether any placeholder is in `e`.
pub(crate) fn mentions_any(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Var(s) => position(s).is_some(),
        _ => e.children().into_iter().any(mentions_any),
    }
}

/// The dimension (counted from the last) that `e` is an affine function of with a factor that is not 0, if it is of
/// exactly one: `axis`, `axis + b`, `a * axis + b` with `b` free of placeholders.
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
