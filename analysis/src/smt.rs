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
pub struct Polynomial {
    /// Constant.
    pub constant: i128,
    /// Terms.
    pub terms: Vec<(i128, Vec<usize>)>,
}

/// Returns whether no numbers make every polynomial at least 0. `Some(false)` only means that some reals do, integers
/// may not.
pub fn is_empty(unknowns: usize, system: &[Polynomial]) -> Option<bool> {
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
