//! Interface to z3, the SMT solver: the only file that uses its types. z3 decides systems that isl cannot express:
//! those with products of unknowns.
//!
//! The unknowns are integers, but z3 is queried over the *reals*: a system without real solutions has no integer
//! solutions. z3's decision procedure for real polynomials proves that flattened indices are in range within a
//! millisecond; its integer procedure finds nothing in a hundred.
//!
//! z3's wrappers keep one context per thread by themselves. A query is bounded by z3's own resource count, not by time,
//! so that it has the same answer on every machine. When the budget is exceeded, the answer is `None`: unknown.

use z3::ast::{Int, Real};
use z3::{Params, SatResult, Solver};

/// z3 resources that one query may cost: a millisecond or two.
const RESOURCES: u32 = 8_000;

thread_local! {
    static SOLVER: Solver = {
        let solver = Solver::new_for_logic("QF_NRA").unwrap_or_default();
        let mut params = Params::new();
        params.set_u32("rlimit", RESOURCES);
        solver.set_params(&params);
        solver
    };
}

/// Returns z3's version.
pub(crate) fn version() -> String {
    z3::full_version().trim_start_matches("Z3 ").to_string()
}

/// Polynomial over integer unknowns: a constant, and terms with a coefficient and the positions of the factors.
pub(crate) struct Polynomial {
    pub(crate) constant: i128,
    pub(crate) terms: Vec<(i128, Vec<usize>)>,
}

/// Returns whether no numbers make every polynomial at least 0. `Some(false)` only means that some reals do, integers
/// may not.
pub(crate) fn is_empty(unknowns: usize, system: &[Polynomial]) -> Option<bool> {
    SOLVER.with(|solver| {
        solver.reset();
        let number = |c: i128| Int::from_i128(c).to_real();
        let x: Vec<Real> = (0..unknowns).map(|k| Real::new_const(k as u32)).collect();
        let zero = number(0);
        for p in system {
            let mut sum = number(p.constant);
            for (c, factors) in &p.terms {
                let mut product = number(*c);
                for f in factors {
                    product = Real::mul(&[&product, x.get(*f)?]);
                }
                sum = Real::add(&[&sum, &product]);
            }
            solver.assert(sum.ge(&zero));
        }
        match solver.check() {
            SatResult::Unsat => Some(true),
            SatResult::Sat => Some(false),
            SatResult::Unknown => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poly(constant: i128, terms: &[(i128, &[usize])]) -> Polynomial {
        Polynomial { constant, terms: terms.iter().map(|(c, f)| (*c, f.to_vec())).collect() }
    }

    #[test]
    fn decides_products() {
        // x >= 3, y >= 3, x * y <= 8
        let small = |limit| [poly(-3, &[(1, &[0])]), poly(-3, &[(1, &[1])]), poly(limit, &[(-1, &[0, 1])])];
        assert_eq!(is_empty(2, &small(8)), Some(true));
        assert_eq!(is_empty(2, &small(9)), Some(false));
        // 2x = 1 has no integer solution, but a real one.
        assert_eq!(is_empty(1, &[poly(-1, &[(2, &[0])]), poly(1, &[(-2, &[0])])]), Some(false));
    }

    #[test]
    fn flattened_indices_are_in_range() {
        // 0 <= i < n, 0 <= j < m, 0 <= k < p, and (i * m + j) * p + k >= n * m * p
        let [n, m, p, i, j, k] = [0, 1, 2, 3, 4, 5];
        let mut system = vec![poly(0, &[(1, &[i, m, p]), (1, &[j, p]), (1, &[k]), (-1, &[n, m, p])])];
        for (index, size) in [(i, n), (j, m), (k, p)] {
            system.push(poly(0, &[(1, &[index])]));
            system.push(poly(-1, &[(1, &[size]), (-1, &[index])]));
        }
        assert_eq!(is_empty(6, &system), Some(true));
    }

    #[test]
    fn gives_up_within_its_budget() {
        // Polynomials `(x + … )² …` in many unknowns at once, with no common solution.
        let unknowns = 9;
        let all: Vec<Vec<usize>> =
            (0..unknowns).flat_map(|i| (0..unknowns).map(move |j| vec![i, j, (i + j) % 7])).collect();
        let terms: Vec<(i128, &[usize])> = all.iter().enumerate().map(|(k, f)| (k as i128 % 11 - 5, &f[..])).collect();
        let system: Vec<Polynomial> = (0..6).map(|k| poly(-7 - k, &terms[k as usize * 13..])).collect();
        assert_eq!(is_empty(unknowns, &system), None);
        assert_eq!(is_empty(1, &[poly(0, &[(1, &[0])]), poly(-1, &[(-1, &[0])])]), Some(true));
    }
}
