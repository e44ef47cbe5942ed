//! Systems of linear inequalities over a few indices, with symbolic constant terms: change of basis, and projection.

use taffeta_ast::poly::Poly;

/// Integer matrix, by rows.
pub type Matrix = Vec<Vec<i64>>;

/// Inequality `new · u + rest >= 0` over indices `u`; `rest` is a sum of terms that are no indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Coefficients of the indices.
    pub new: Vec<i64>,
    /// Symbolic constant term.
    pub rest: Poly,
}

/// Returns `row · m`; `None` on overflow.
pub fn times(row: &[i64], m: &Matrix) -> Option<Vec<i64>> {
    (0..m.len())
        .map(|k| row.iter().zip(m).try_fold(0i64, |sum, (a, r)| sum.checked_add(a.checked_mul(r[k])?)))
        .collect()
}

/// Inverts a square matrix of determinant 1 or -1 by integer row operations. Returns `None` for any other matrix, and
/// on overflow.
pub fn inverse(m: &Matrix) -> Option<Matrix> {
    let n = m.len();
    let mut left = m.clone();
    let mut right: Matrix = (0..n).map(|i| (0..n).map(|j| i64::from(i == j)).collect()).collect();
    for k in 0..n {
        // Runs Euclid's algorithm on the column, until one row is left with a non-zero entry.
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

/// Subtracts `q` times row `k` from row `r`.
fn subtract(m: &mut Matrix, r: usize, k: usize, q: i64) -> Option<()> {
    for c in 0..m[r].len() {
        m[r][c] = m[r][c].checked_sub(q.checked_mul(m[k][c])?)?;
    }
    Some(())
}

/// Returns for each index the constraints that bound it by the indices before it: its own ones, and those derived by
/// eliminating the indices after it (Fourier-Motzkin). A derived constraint that overflows is dropped, since others
/// imply it.
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
    let rest = Poly::default().plus(&a.rest, x.into())?.plus(&b.rest, y.into())?;
    Some(Constraint { new, rest })
}
