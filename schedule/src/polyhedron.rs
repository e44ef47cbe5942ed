//! Systems of inequalities over a few indices, whose constants are expressions: change of basis, and projection.

use crate::affine::Affine;

/// Rows of integers.
pub type Matrix = Vec<Vec<i64>>;

/// `new · u + rest >= 0` for indices `u`; `rest` is a sum of what is not an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The coefficients of the indices.
    pub new: Vec<i64>,
    /// What is added.
    pub rest: Affine,
}

/// `row · m`
pub fn times(row: &[i64], m: &Matrix) -> Option<Vec<i64>> {
    (0..m.len())
        .map(|k| row.iter().zip(m).try_fold(0i64, |sum, (a, r)| sum.checked_add(a.checked_mul(r[k])?)))
        .collect()
}

/// The inverse of a square matrix whose determinant is 1 or -1, by integer operations on rows; `None` for any other
/// one.
pub fn inverse(m: &Matrix) -> Option<Matrix> {
    let n = m.len();
    let mut left = m.clone();
    let mut right: Matrix = (0..n).map(|i| (0..n).map(|j| i64::from(i == j)).collect()).collect();
    for k in 0..n {
        // Euclid's algorithm in the column, until one row is left with a number in it.
        loop {
            let pivot = (k..n).filter(|r| left[*r][k] != 0).min_by_key(|r| left[*r][k].unsigned_abs())?;
            left.swap(k, pivot);
            right.swap(k, pivot);
            let Some(other) = (k + 1..n).find(|r| left[*r][k] != 0) else { break };
            let q = left[other][k].checked_div(left[k][k])?;
            subtract(&mut left, other, k, q)?;
            subtract(&mut right, other, k, q)?;
        }
        match left[k][k] {
            1 => {}
            -1 => {
                for x in left[k].iter_mut().chain(right[k].iter_mut()) {
                    *x = x.checked_neg()?;
                }
            }
            _ => return None,
        }
    }
    for k in (0..n).rev() {
        for r in 0..k {
            let q = left[r][k];
            subtract(&mut left, r, k, q)?;
            subtract(&mut right, r, k, q)?;
        }
    }
    Some(right)
}

/// Row `r` less `q` times row `k`.
fn subtract(m: &mut Matrix, r: usize, k: usize, q: i64) -> Option<()> {
    for c in 0..m[r].len() {
        m[r][c] = m[r][c].checked_sub(q.checked_mul(m[k][c])?)?;
    }
    Some(())
}

/// For each index, what bounds it by the indices before it: its own constraints, and those that follow by leaving out
/// the indices after it (Fourier-Motzkin). A constraint that overflows is left out where it only follows from others.
pub fn levels(bounds: &[Constraint], count: usize) -> Vec<Vec<Constraint>> {
    let mut out = vec![Vec::new(); count];
    let mut rest: Vec<Constraint> = bounds.to_vec();
    for k in (0..count).rev() {
        let (own, mut others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|c| c.new[k] != 0);
        for a in own.iter().filter(|c| c.new[k] > 0) {
            for b in own.iter().filter(|c| c.new[k] < 0) {
                if let Some(c) = eliminate(a, b, k)
                    && c.new.iter().any(|x| *x != 0)
                    && !others.contains(&c)
                {
                    others.push(c);
                }
            }
        }
        out[k] = own;
        rest = others;
    }
    out
}

fn eliminate(a: &Constraint, b: &Constraint, k: usize) -> Option<Constraint> {
    let (x, y) = (b.new[k].checked_neg()?, a.new[k]);
    let new = a
        .new
        .iter()
        .zip(&b.new)
        .map(|(p, q)| p.checked_mul(x)?.checked_add(q.checked_mul(y)?))
        .collect::<Option<Vec<i64>>>()?;
    let rest = Affine::constant(0).plus(&a.rest, x)?.plus(&b.rest, y)?;
    Some(Constraint { new, rest })
}
