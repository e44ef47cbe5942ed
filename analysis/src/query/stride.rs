//! Strides of an index in the loops around it: `i * n + 2 * j + k` has stride `n` in `i`, and 2 in `j`.

use super::effects;
use taffeta_ast::poly::Poly;
use taffeta_ast::{Expr, ExprKind, Symbol};

/// Returns the strides of an expression: its increments when one of these iterators is incremented by 1.
///
/// # Errors
/// The position, in `iters`, of an iterator in which the expression is not affine.
pub fn strides(e: &Expr, iters: &[&Symbol]) -> Result<Vec<Expr>, usize> {
    let mut out = vec![Expr::int(0); iters.len()];
    let mentioned = |e: &Expr| iters.iter().position(|i| effects::mentions(e, &[i]));
    let unknown = || mentioned(e).map_or(Ok(vec![Expr::int(0); iters.len()]), Err);
    let Some(poly) = Poly::of(e) else { return unknown() };
    for (monomial, c) in poly.terms() {
        let Ok(c) = i64::try_from(c) else { return unknown() };
        let (mut of, mut rest) = (None, Expr::int(c));
        for atom in monomial {
            match (mentioned(atom), of) {
                // An iterator may occur once in each product, and not inside a quotient, a minimum, an element …
                (Some(k), None) if matches!(atom.kind(), ExprKind::Var(_)) => of = Some(k),
                (Some(k), _) => return Err(k),
                (None, _) => rest = rest.times(atom),
            }
        }
        if let Some(k) = of {
            out[k] = out[k].plus(&rest);
        }
    }
    Ok(out)
}

/// Returns the stride of an expression in an iterator, if the stride is constant.
pub fn constant_stride(e: &Expr, iter: &Symbol) -> Option<i64> {
    strides(e, &[iter]).ok()?.first()?.as_int()
}
