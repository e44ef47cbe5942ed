//! The fence around z3, the SMT solver: the only file with its types. It is asked what isl cannot express: systems with
//! products of unknowns.
//!
//! The unknowns are integers, and z3 is asked about *reals*: where no reals solve a system, no integers do. Its
//! decision procedure for real polynomials shows that flattened indices are in range within a millisecond; its integer
//! one finds nothing in a hundred.
//!
//! z3's wrappers keep one context for each thread by themselves. A question is bounded by z3's own count of resources,
//! not by time, so that the same question has the same answer on every machine. Out of budget, the answer is `None`:
//! nothing is known.

use z3::ast::{Int, Real};
use z3::{Params, SatResult, Solver};

/// Resources that one question may cost: a millisecond or two.
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

/// z3's version.
pub(crate) fn version() -> String {
    z3::full_version().trim_start_matches("Z3 ").to_string()
}

/// A polynomial over integer unknowns: a constant, and terms with a coefficient and the positions of the factors.
pub(crate) struct Polynomial {
    pub(crate) constant: i128,
    pub(crate) terms: Vec<(i128, Vec<usize>)>,
}

/// Whether no numbers make every polynomial at least 0. Where some reals do, integers may or may not: `Some(false)`
/// only says that z3 is done.
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
    fn knows_products() {
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
        // (x + … )² … of many unknowns at once, with no solution.
        let unknowns = 9;
        let all: Vec<Vec<usize>> =
            (0..unknowns).flat_map(|i| (0..unknowns).map(move |j| vec![i, j, (i + j) % 7])).collect();
        let terms: Vec<(i128, &[usize])> = all.iter().enumerate().map(|(k, f)| (k as i128 % 11 - 5, &f[..])).collect();
        let system: Vec<Polynomial> = (0..6).map(|k| poly(-7 - k, &terms[k as usize * 13..])).collect();
        assert_eq!(is_empty(unknowns, &system), None);
        assert_eq!(is_empty(1, &[poly(0, &[(1, &[0])]), poly(-1, &[(-1, &[0])])]), Some(true));
    }
}
