//! Proof that a form is at least 0, by methods in order of cost:
//!
//! 1. intervals of the atoms;
//! 2. elimination: the youngest atom of the form is replaced by its bound from a fact, a law or its interval,
//!    repeatedly. Facts are multiplied by non-negative atoms where the form has a product: that is how `i*m + j < n*m`
//!    follows from `i < n` and `j < m`;
//! 3. cases: `min(a, b)` is `a` where `a <= b`, and `b` elsewhere; an atom that is at least `min(a, b)` is at least `a`
//!    or at least `b`;
//! 4. isl: whether the facts and the negated form have an integer point in common;
//! 5. z3, if there are products: whether the facts and the negated form have a real point in common.

use super::context::{Context, Def};
use super::interval::INFINITY;
use super::linear::{Atom, Linear};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Maximum number of eliminations for an intermediate query.
pub(super) const QUICK: u32 = 32;
/// Maximum number of eliminations for a query of a caller.
pub(super) const THOROUGH: u32 = 96;
/// Maximum length of a chain of eliminations.
const DEPTH: u32 = 8;
/// Maximum size of the systems passed to isl.
const MAX_ATOMS: usize = 16;
const MAX_ROWS: usize = 40;
/// Absolute value from which a bound is taken for the end of a type's range, which says nothing.
const LARGE: i128 = 1 << 40;
/// Maximum number of unsuccessful solver calls per walk, which bounds the time for a large program without proofs.
const MAX_FAILURES: Failures = Failures { isl: 100, z3: 6 };
/// Maximum nesting of case distinctions.
const CASES: u32 = 3;

/// Numbers of unsuccessful solver calls.
#[derive(Clone, Copy, Default)]
pub(super) struct Failures {
    isl: u32,
    z3: u32,
}

/// Form in the search for a lower bound of `g`: `scale * g >= form`, after `depth` eliminations.
struct Step {
    form: Linear,
    scale: i128,
    depth: u32,
}

impl Context {
    /// Proves that the form is at least 0, by cheap methods only.
    pub(super) fn entails_cheaply(&mut self, g: &Linear) -> bool {
        self.unreachable || self.interval(g).lo >= 0 || self.lower_bound(g, 0, QUICK) >= 0
    }

    /// Proves that the form is at least 0.
    pub(super) fn entails(&mut self, g: &Linear) -> bool {
        self.entails_in_cases(g, CASES)
    }

    fn entails_in_cases(&mut self, g: &Linear, cases: u32) -> bool {
        if self.unreachable || self.interval(g).lo >= 0 {
            return true;
        }
        if g.terms.is_empty() {
            return false;
        }
        if self.lower_bound(g, 0, THOROUGH) >= 0 {
            return true;
        }
        let split = g
            .terms
            .iter()
            .rev()
            .map(|t| t.0)
            .find(|a| matches!(self.atoms[a.0 as usize].def, Def::Min(..) | Def::Max(..) | Def::Select(..)));
        if let Some(a) = split
            && cases > 0
            && self.entails_by_cases(g, a, cases - 1)
        {
            return true;
        }
        self.entails_by_alternatives(g) || (self.could_hold(g) && self.no_counterexample(g))
    }

    /// Proves that the form is at least 0 by a fact with alternatives: `k >= min(a, b)` means that `k >= a` or `k >=
    /// b`, while laws only bound `min` from above. Both cases must be proved, by cheap methods, for one such fact about
    /// the form's atoms (at most as many facts are tried as the form has atoms).
    fn entails_by_alternatives(&mut self, g: &Linear) -> bool {
        let alternatives = |l: &Linear| {
            l.terms.iter().find_map(|&(a, c)| match &self.atoms[a.0 as usize].def {
                Def::Min(x, y) if c < 0 => Some([l.substitute(a, x)?, l.substitute(a, y)?]),
                Def::Max(x, y) if c > 0 => Some([l.substitute(a, x)?, l.substitute(a, y)?]),
                _ => None,
            })
        };
        let bounds = g.terms.iter().flat_map(|&(a, c)| {
            let facts = self.atoms[a.0 as usize].facts.iter().rev().map(|f| &self.facts[*f as usize]);
            facts.filter(move |f| (f.coefficient(a) > 0) == (c > 0))
        });
        let either: Vec<[Linear; 2]> = bounds.filter_map(alternatives).take(g.terms.len()).collect();
        either.into_iter().any(|cases| {
            cases.into_iter().all(|fact| {
                self.scoped(|c| {
                    c.changed();
                    c.add_fact(fact);
                    c.unreachable || c.interval(g).lo >= 0 || c.lower_bound(g, 0, QUICK) >= 0
                })
            })
        })
    }

    /// Returns whether a solver call is worthwhile: every term of the form is bounded on the relevant side by a fact, a
    /// law or a number that is not just the end of its type's range. An index that was loaded and never checked is not
    /// bounded.
    fn could_hold(&self, g: &Linear) -> bool {
        g.terms.iter().all(|(a, c)| match &self.atoms[a.0 as usize].def {
            Def::Product(factors) => factors.iter().all(|f| self.is_bounded(*f, true) || self.is_bounded(*f, false)),
            _ => self.is_bounded(*a, *c > 0),
        })
    }

    fn is_bounded(&self, a: Atom, below: bool) -> bool {
        let info = &self.atoms[a.0 as usize];
        let bound = if below { info.interval.lo } else { info.interval.hi };
        let right = |l: &Linear| (l.coefficient(a) > 0) == below;
        bound.abs() < LARGE
            || info.facts.iter().any(|f| right(&self.facts[*f as usize]))
            || info.laws.iter().any(|f| right(&self.laws[*f as usize]))
    }

    /// Proves that no numbers satisfy the facts about the form's atoms and make the form negative.
    fn no_counterexample(&mut self, g: &Linear) -> bool {
        if self.failures.isl >= MAX_FAILURES.isl {
            return false;
        }
        let Some(contrary) = g.scale(-1).map(|n| n.plus_constant(-1)) else { return false };
        let (atoms, mut system) = self.around(g, true);
        if system.is_empty() {
            return false;
        }
        system.push(contrary.clone());
        let row = |l: &Linear| -> Option<crate::isl::Row> {
            let mut row = vec![i64::try_from(l.constant).ok()?];
            for a in &atoms {
                row.push(i64::try_from(l.coefficient(*a)).ok()?);
            }
            Some(row)
        };
        let rows: Option<Vec<_>> = system.iter().map(row).collect();
        if rows.and_then(|rows| crate::isl::is_empty(atoms.len(), &rows)) == Some(true) {
            return true;
        }
        self.failures.isl += 1;
        let has_product = |a: &Atom| matches!(self.atoms[a.0 as usize].def, Def::Product(_));
        if self.failures.z3 >= MAX_FAILURES.z3 || !g.terms.iter().any(|(a, _)| has_product(a)) {
            return false;
        }
        let (_, mut system) = self.around(g, false);
        system.push(contrary);
        let mut unknowns: Vec<Atom> = Vec::new();
        let polynomials: Vec<_> = system.iter().map(|l| self.polynomial(l, &mut unknowns)).collect();
        let proved = crate::smt::is_empty(unknowns.len(), &polynomials) == Some(true);
        self.failures.z3 += u32::from(!proved);
        proved
    }

    /// Expands the products of a form, over unknowns that are numbered on demand.
    fn polynomial(&self, l: &Linear, unknowns: &mut Vec<Atom>) -> crate::smt::Polynomial {
        let mut number = |f: &Atom| {
            unknowns.iter().position(|u| u == f).unwrap_or_else(|| {
                unknowns.push(*f);
                unknowns.len() - 1
            })
        };
        let terms = l.terms.iter().map(|(a, c)| (*c, self.factors(*a).iter().map(&mut number).collect())).collect();
        crate::smt::Polynomial { constant: l.constant, terms }
    }

    /// Collects the constraints on a form's atoms, and on atoms that these mention, up to the size limits: facts, laws
    /// and intervals; for products the facts about their factors, either multiplied or as they are. All forms are at
    /// least 0.
    fn around(&mut self, g: &Linear, multiplied: bool) -> (Vec<Atom>, Vec<Linear>) {
        let mut atoms: Vec<Atom> = g.terms.iter().map(|t| t.0).collect();
        let (mut system, mut seen) = (Vec::new(), FxHashSet::default());
        let mut next = 0;
        while next < atoms.len() {
            let a = atoms[next];
            next += 1;
            if !multiplied && let Def::Product(factors) = self.atoms[a.0 as usize].def.clone() {
                for f in factors.iter() {
                    if !atoms.contains(f) {
                        atoms.push(*f);
                    }
                }
                continue;
            }
            for positive in [true, false] {
                let mut choice = 0;
                while let Some(l) = self.bound_of(a, positive, &mut choice) {
                    let new: Vec<Atom> = l.terms.iter().map(|t| t.0).filter(|b| !atoms.contains(b)).collect();
                    // The end of a size's range is not informative, and large numbers cost time.
                    let telling = l.terms.len() > 1 || l.constant.abs() < LARGE;
                    let fits = atoms.len() + new.len() <= MAX_ATOMS && system.len() < MAX_ROWS;
                    if telling && fits && seen.insert(l.clone()) {
                        atoms.extend(new);
                        system.push(l);
                    }
                }
            }
        }
        (atoms, system)
    }

    /// Proves the form in both cases of one of its atoms.
    fn entails_by_cases(&mut self, g: &Linear, a: Atom, cases: u32) -> bool {
        let def = self.atoms[a.0 as usize].def.clone();
        let mut case = |value: &Linear, learn: &dyn Fn(&mut Context)| {
            let Some(g) = g.substitute(a, value) else { return false };
            self.guards += 1;
            let proved = self.scoped(|c| {
                c.changed();
                learn(c);
                let difference = Linear::atom(a).minus(value);
                let negative = difference.as_ref().and_then(|d| d.scale(-1));
                for d in difference.into_iter().chain(negative) {
                    c.add_fact(d);
                }
                c.entails_in_cases(&g, cases)
            });
            self.guards -= 1;
            proved
        };
        // `a - b >= 0`
        let at_least = |a: &Linear, b: &Linear| {
            let d = a.minus(b);
            move |c: &mut Context| {
                if let Some(d) = &d {
                    c.add_fact(d.clone());
                }
            }
        };
        match def {
            Def::Min(x, y) => case(&x, &at_least(&y, &x)) && case(&y, &at_least(&x, &y)),
            Def::Max(x, y) => case(&x, &at_least(&x, &y)) && case(&y, &at_least(&y, &x)),
            Def::Select(cond, x, y) => case(&x, &|c| c.assume(&cond)) && case(&y, &|c| c.assume_not(&cond)),
            _ => false,
        }
    }

    /// Returns a lower bound of the form: the best that `fuel` eliminations find, or the first that reaches `target`.
    ///
    /// The frontier holds forms `h` with `scale * g >= h`. The simplest form goes first, so that a long chain of facts
    /// that leads nowhere does not use up the fuel of a short one.
    pub(super) fn lower_bound(&mut self, g: &Linear, target: i128, fuel: u32) -> i128 {
        let mut best = self.least(g);
        let mut frontier = vec![Step { form: g.clone(), scale: 1, depth: 0 }];
        let mut seen = FxHashSet::default();
        let mut fuel = fuel;
        while best < target && !frontier.is_empty() {
            let next = (0..frontier.len()).min_by_key(|i| frontier[*i].form.terms.len() as u32 + frontier[*i].depth);
            let Step { form, scale, depth } = frontier.swap_remove(next.unwrap_or(0));
            let Some(&(atom, c)) = form.terms.last() else { continue };
            let mut choice = 0;
            while let Some(fact) = self.bound_of(atom, c > 0, &mut choice) {
                if fuel == 0 {
                    return best;
                }
                fuel -= 1;
                let f = fact.coefficient(atom);
                // `f * form = c * fact + rest`, for `f` and `c` made positive, so `form >= rest / f`.
                let common = super::interval::gcd(f, c);
                let (j, k) = (f.abs() / common, c.abs() / common);
                let (Some(rest), Some(scale)) = (form.combine(j, &fact, -k), scale.checked_mul(j)) else { continue };
                let least = self.least(&rest);
                if least > -INFINITY {
                    best = best.max(-((-least).div_euclid(scale)));
                    if best >= target {
                        break;
                    }
                }
                if depth < DEPTH && seen.insert(rest.clone()) {
                    frontier.push(Step { form: rest, scale, depth: depth + 1 });
                }
            }
        }
        best
    }

    /// Returns the minimum of a form by the intervals of its atoms, rounded up by the content of its coefficients.
    fn least(&self, g: &Linear) -> i128 {
        let (lo, content) = (self.interval(g).lo, g.content());
        if content > 1 && lo > -INFINITY { lo + (g.constant - lo).rem_euclid(content) } else { lo }
    }

    /// Returns the next form that is at least 0 and in which the atom has a coefficient of this sign. `next` counts
    /// through the facts (latest first), the laws, for a product the facts about its factors, and the interval.
    fn bound_of(&mut self, atom: Atom, positive: bool, next: &mut usize) -> Option<Linear> {
        let fits = |l: &Linear| (l.coefficient(atom) > 0) == positive;
        let info = &self.atoms[atom.0 as usize];
        let (facts, laws) = (info.facts.len(), info.laws.len());
        while *next < facts + laws {
            let i = *next;
            *next += 1;
            let l = if i < facts {
                &self.facts[info.facts[facts - 1 - i] as usize]
            } else {
                &self.laws[info.laws[i - facts] as usize]
            };
            if fits(l) {
                return Some(l.clone());
            }
        }
        let product = match info.def.clone() {
            Def::Product(factors) => self.bound_of_product(atom, &factors, positive, next, facts + laws),
            _ => None,
        };
        if product.is_some() {
            return product;
        }
        // The counter jumps far beyond the facts, so that the interval is returned once.
        const INTERVAL: usize = 1 << 30;
        if *next < INTERVAL {
            *next = INTERVAL;
            let interval = self.atom_interval(atom);
            if positive && interval.lo > -INFINITY {
                return Some(Linear::atom(atom).plus_constant(-interval.lo));
            }
            if !positive && interval.hi < INFINITY {
                return Linear::constant(interval.hi).minus(&Linear::atom(atom));
            }
        }
        None
    }

    /// Returns the next fact about one factor, multiplied by the other factors, if they are not negative.
    fn bound_of_product(
        &mut self,
        atom: Atom,
        factors: &Rc<[Atom]>,
        positive: bool,
        next: &mut usize,
        start: usize,
    ) -> Option<Linear> {
        while *next < 1 << 20 {
            let mut i = *next - start;
            let mut choice = None;
            for (k, x) in factors.iter().enumerate() {
                let info = &self.atoms[x.0 as usize];
                let (facts, laws) = (info.facts.len(), info.laws.len());
                if i < facts {
                    choice = Some((k, self.facts[info.facts[facts - 1 - i] as usize].clone()));
                    break;
                }
                if i < facts + laws {
                    choice = Some((k, self.laws[info.laws[i - facts] as usize].clone()));
                    break;
                }
                i -= facts + laws;
            }
            let (k, fact) = choice?;
            *next += 1;
            if (fact.coefficient(factors[k]) > 0) != positive {
                continue;
            }
            let others = factors.iter().enumerate().filter(|(i, _)| *i != k).map(|(_, f)| *f);
            if others.clone().any(|f| self.atom_interval(f).lo < 0) {
                continue;
            }
            let product = others.into_iter().try_fold(fact, |p, f| self.product(&p, &Linear::atom(f)));
            if let Some(p) = product
                && p.coefficient(atom) != 0
                && (p.coefficient(atom) > 0) == positive
            {
                return Some(p);
            }
        }
        None
    }
}
