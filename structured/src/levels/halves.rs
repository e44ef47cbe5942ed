//! Halves of a matrix: the common part of triangular and symmetric levels. The rows of the lower half are stored one
//! after the other, row `i` with `i + 1` elements; those of the upper half, row `i` with `size - i`. Below a `dense`
//! level of the same size, position `p` is row `i`; the matrices before it have `(p - i) * (size + 1) / 2` elements.

use crate::level::{Counts, Misfit, Packing, Parent};
use taffeta_ast::Expr;

/// Returns the number of positions for the rows above, which are rows of matrices of this size.
pub(super) fn positions(counts: &Counts) -> Expr {
    half(&counts.above.times(&counts.size.plus(&Expr::int(1))))
}

/// Computes the number of positions for elements being packed, if it is within the limit.
pub(super) fn count(entries: &Packing<'_>) -> Result<i64, Misfit> {
    let twice = entries.count.checked_mul(entries.size + 1).filter(|n| *n <= crate::level::MAX_POSITIONS);
    twice.map(|n| n / 2).ok_or(Misfit::TooMany)
}

fn half(e: &Expr) -> Expr {
    e.floor_div(&Expr::int(2))
}

/// Returns the first position of the matrix that contains a position of the level above.
fn base(above: &Parent, size: &Expr) -> Expr {
    half(&above.positions.first.minus(&above.coordinate).times(&size.plus(&Expr::int(1))))
}

/// Returns the position of an element of the lower half, in the matrix that contains `above`.
pub(super) fn lower(above: &Parent, size: &Expr, row: &Expr, column: &Expr) -> Expr {
    base(above, size).plus(&half(&row.times(&row.plus(&Expr::int(1))))).plus(column)
}

/// Returns the position of an element of the upper half, in the matrix that contains `above`.
pub(super) fn upper(above: &Parent, size: &Expr, row: &Expr, column: &Expr) -> Expr {
    let elements = row.times(&size.times(&Expr::int(2)).minus(row).minus(&Expr::int(1)));
    base(above, size).plus(&half(&elements)).plus(column)
}

/// Computes [`lower`] under position `above` of the level above, which has coordinate `at`.
pub(super) fn lower_position([above, at]: [i64; 2], size: i64, row: i64, column: i64) -> i64 {
    (above - at) * (size + 1) / 2 + row * (row + 1) / 2 + column
}

/// Computes [`upper`] under position `above` of the level above, which has coordinate `at`.
pub(super) fn upper_position([above, at]: [i64; 2], size: i64, row: i64, column: i64) -> i64 {
    (above - at) * (size + 1) / 2 + row * (2 * size - row - 1) / 2 + column
}
