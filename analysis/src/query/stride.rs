//! How an index grows with the loops around it: `i * n + 2 * j + k` by `n` with `i`, and by 2 with `j`.

use super::effects;
use taffeta_ast::poly::Poly;
use taffeta_ast::{Expr, ExprKind, Symbol};

/// By how much an expression grows where each of these iterators grows by 1.
///
/// # Errors
/// The number of an iterator in which it is not affine.
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
                // Once in each product, and not inside a quotient, a minimum, an element …
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

/// By how much an expression grows where the iterator grows by 1, if that is a constant.
pub fn constant_stride(e: &Expr, iter: &Symbol) -> Option<i64> {
    strides(e, &[iter]).ok()?.first()?.as_int()
}
