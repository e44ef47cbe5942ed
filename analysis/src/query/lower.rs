//! Lowering of integer expressions to linear forms: the mathematical value, wherever the expression is proved not to
//! wrap; an atom otherwise.

use super::context::{Context, Def, Key};
use super::interval::{Congruence, INFINITY, Interval, gcd};
use super::linear::{Atom, Linear};
use std::rc::Rc;
use taffeta_ast::expr::Literal;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind};

/// Maximum number of terms of a product that is expanded.
const MAX_TERMS: usize = 12;

pub(super) fn range_of(dtype: DType) -> Interval {
    dtype.int_range().map_or(Interval::ALL, |(lo, hi)| Interval::new(lo, hi))
}

impl Context {
    /// Returns the value of an integer expression (of `bool`, as 0 or 1) at this point.
    pub(super) fn linear(&mut self, e: &Expr) -> Linear {
        match e.kind() {
            ExprKind::Const(Literal::Int(c)) => return Linear::constant(*c),
            ExprKind::Const(Literal::Bool(b)) => return Linear::constant(i128::from(*b)),
            ExprKind::Var(s) if e.dtype().is_int() => return Linear::atom(self.variable(s)),
            _ => {}
        }
        if let Some((version, l)) = self.memo_linear.get(e)
            && *version == self.version
        {
            return l.clone();
        }
        let range = range_of(e.dtype());
        // Queries of the lowering are never thorough, since a thorough query would lower and query in turn.
        let earnest = std::mem::replace(&mut self.thorough, false);
        let lowered = self.lower(e);
        self.thorough = earnest;
        let l = match lowered {
            // (A shape is only known not to wrap in i64; operators in narrower types are not checked at run time.)
            Some(l) if (self.exact && e.dtype() == DType::I64) || self.lies_in(&l, range) => l,
            _ => Linear::atom(self.intern(Key::Expr(e.clone()), Def::Free, range)),
        };
        self.memo_linear.insert(e.clone(), (self.version, l.clone()));
        l
    }

    /// Returns the mathematical value of a node, which equals the program's value if it does not wrap; `None` where
    /// there is no form.
    fn lower(&mut self, e: &Expr) -> Option<Linear> {
        match e.kind() {
            ExprKind::Cast(inner) if inner.dtype().is_int() && e.dtype().is_int() => Some(self.linear(inner)),
            ExprKind::Apply(op, args) if e.dtype().is_int() => self.lower_op(*op, args, e),
            _ => None,
        }
    }

    fn lower_op(&mut self, op: Op, args: &[Expr], e: &Expr) -> Option<Linear> {
        if op == Op::Select {
            return self.select(e, &args[0], &args[1], &args[2]);
        }
        let a = self.linear(&args[0]);
        let b = match args.get(1) {
            Some(b) => self.linear(b),
            None => Linear::default(),
        };
        let power = |b: &Linear| b.as_constant().filter(|s| (0..63).contains(s)).map(|s| 1i128 << s);
        match op {
            Op::Add => a.plus(&b),
            Op::Sub => a.minus(&b),
            Op::Neg => a.scale(-1),
            Op::Mul => self.product(&a, &b),
            Op::Shl => a.scale(power(&b)?),
            Op::Shr => Some(self.divide(&a, &Linear::constant(power(&b)?))?.0),
            Op::FloorDiv => Some(self.divide(&a, &b)?.0),
            Op::Mod => Some(self.divide(&a, &b)?.1),
            Op::Min => self.smaller(a, b),
            Op::Max => Some(self.larger(a, b)),
            Op::Abs => {
                let negative = a.scale(-1)?;
                Some(self.larger(a, negative))
            }
            Op::Sign => self.ranged(e, Interval::new(-1, 1)),
            // In two's complement, a mask of the lowest bits is the remainder by their power of two.
            Op::BitAnd => match b.as_constant() {
                Some(mask) if mask >= 0 && (mask + 1) & mask == 0 => {
                    Some(self.divide(&a, &Linear::constant(mask + 1))?.1)
                }
                Some(mask) if mask >= 0 => self.ranged(e, Interval::new(0, mask)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns an atom for an expression of which only a range is known, which holds for any operands.
    fn ranged(&mut self, e: &Expr, interval: Interval) -> Option<Linear> {
        let a = self.intern(Key::Expr(e.clone()), Def::Free, interval.meet(range_of(e.dtype())));
        Some(Linear::atom(a))
    }

    /// Proves that the value of a form lies in an interval.
    pub(super) fn lies_in(&mut self, l: &Linear, range: Interval) -> bool {
        if self.interval(l).within(range) {
            return true;
        }
        for (a, _) in l.terms.clone() {
            self.bound_product(a);
        }
        if self.interval(l).within(range) {
            return true;
        }
        let above = l.plus_constant(-range.lo);
        let below = Linear::constant(range.hi).minus(l);
        self.entails_cheaply(&above) && below.is_some_and(|b| self.entails_cheaply(&b))
    }

    /// Returns `a * b`.
    pub(super) fn product(&mut self, a: &Linear, b: &Linear) -> Option<Linear> {
        if let Some(c) = b.as_constant() {
            return a.scale(c);
        }
        if let Some(c) = a.as_constant() {
            return b.scale(c);
        }
        if (a.terms.len() + 1) * (b.terms.len() + 1) > MAX_TERMS {
            return None;
        }
        // `(A + c)(B + d) = AB + dA + cB + cd`, for `A` and `B` without constants
        let mut sum = a.combine(b.constant, b, a.constant)?.plus_constant(-a.constant.checked_mul(b.constant)?);
        for (x, c) in &a.terms {
            for (y, d) in &b.terms {
                let p = self.multiply(*x, *y)?;
                sum = sum.combine(1, &Linear::atom(p), c.checked_mul(*d)?)?;
            }
        }
        Some(sum)
    }

    /// Returns the atom for the product of two atoms, of up to six factors.
    fn multiply(&mut self, a: Atom, b: Atom) -> Option<Atom> {
        let mut factors: Vec<Atom> = self.factors(a).iter().chain(self.factors(b).iter()).copied().collect();
        if factors.len() > 6 {
            return None;
        }
        factors.sort();
        let factors: Rc<[Atom]> = factors.into();
        // A square is never negative.
        let square = factors.len().is_multiple_of(2) && factors.chunks(2).all(|c| c[0] == c[1]);
        let interval = if square { Interval::new(0, INFINITY) } else { Interval::ALL };
        Some(self.intern(Key::Product(factors.clone()), Def::Product(factors), interval))
    }

    /// Bounds a product atom by [`super::MAX_SIZE`], if its factors are at most those of a product that is known to be
    /// at most that size.
    fn bound_product(&mut self, a: Atom) {
        let factors = self.factors(a);
        let limit = i128::from(super::MAX_SIZE);
        if factors.len() < 2
            || self.atom_interval(a).hi <= limit
            || factors.iter().any(|f| self.atom_interval(*f).lo < 0)
        {
            return;
        }
        let bounded =
            (0..self.products.len()).rev().any(|i| self.dominated(&factors, &mut self.products[i].clone().to_vec()));
        if bounded {
            self.refine(a, Interval::new(0, limit), Congruence::ALL);
        }
    }

    /// Returns whether each factor can be matched with an element of `above` of its own that is at least as large.
    fn dominated(&mut self, factors: &[Atom], above: &mut Vec<Atom>) -> bool {
        let Some((first, rest)) = factors.split_first() else { return true };
        for i in 0..above.len() {
            let candidate = above[i];
            let less = candidate == *first
                || Linear::atom(candidate).minus(&Linear::atom(*first)).is_some_and(|d| self.entails_cheaply(&d));
            if less {
                above.swap_remove(i);
                if self.dominated(rest, above) {
                    return true;
                }
                above.push(candidate);
                let last = above.len() - 1;
                above.swap(i, last);
            }
        }
        false
    }

    /// Returns the floor of the quotient, and the remainder with the sign of the divisor.
    pub(super) fn divide(&mut self, a: &Linear, b: &Linear) -> Option<(Linear, Linear)> {
        match b.as_constant() {
            Some(0) => None,
            Some(d) if d < 0 => {
                // `a // -d = -a // d`, and `a % -d = -(-a % d)`
                let (q, r) = self.divide_by(&a.scale(-1)?, -d)?;
                Some((q, r.scale(-1)?))
            }
            Some(d) => self.divide_by(a, d),
            None => self.divide_by_form(a, b),
        }
    }

    /// Returns quotient and remainder by a positive constant.
    fn divide_by(&mut self, a: &Linear, d: i128) -> Option<(Linear, Linear)> {
        if d == 1 {
            return Some((a.clone(), Linear::default()));
        }
        // `a = d * whole + rest`
        let mut whole = Linear::constant(a.constant.div_euclid(d));
        let mut rest = Linear::constant(a.constant.rem_euclid(d));
        for &(x, c) in &a.terms {
            let target = if c % d == 0 { (&mut whole, c / d) } else { (&mut rest, c) };
            *target.0 = target.0.combine(1, &Linear::atom(x), target.1)?;
        }
        let (q, r) = self.divide_rest(&rest, d)?;
        Some((whole.plus(&q)?, r))
    }

    fn divide_rest(&mut self, rest: &Linear, d: i128) -> Option<(Linear, Linear)> {
        let span = self.interval(rest);
        // A form within one period needs no new atom. Facts may prove this where intervals do not.
        if let Some(q) = self.single_quotient(rest, span, d) {
            let q = Linear::constant(q);
            let r = rest.combine(1, &q, -d)?;
            return Some((q, r));
        }
        // `(g*x + c) // (g*e) = (x + c // g) // e`
        let g = gcd(rest.content(), d);
        if g > 1 {
            let (q, _) = self.divide_by(&rest.clone().tighten_by(g), d / g)?;
            let r = rest.combine(1, &q, -d)?;
            return Some((q, r));
        }
        // `(n // e + c) // d = (n + c*e) // (d*e)`
        if let [(x, 1)] = rest.terms[..]
            && let Def::Quotient(n, e) = self.atoms[x.0 as usize].def.clone()
            && let (Some(both), Some(shift)) = (d.checked_mul(e), rest.constant.checked_mul(e))
        {
            let (q, _) = self.divide_by(&n.plus_constant(shift), both)?;
            let r = rest.combine(1, &q, -d)?;
            return Some((q, r));
        }
        let den = Linear::constant(d);
        let (q_key, r_key) = (Key::Quotient(rest.clone(), den.clone()), Key::Remainder(rest.clone(), den));
        let new = !self.has(&q_key);
        let q = self.intern(q_key, Def::Quotient(rest.clone(), d), Interval::ALL);
        let r = self.intern(r_key, Def::Free, Interval::new(0, d - 1));
        let (quotient, remainder) = (Linear::atom(q), Linear::atom(r));
        if new {
            let law = rest.combine(1, &quotient, -d).and_then(|l| l.minus(&remainder));
            self.add_law(law.as_ref().and_then(|l| l.scale(-1)));
            self.add_law(law);
        }
        self.refine(q, span.floor_div(d), Congruence::ALL);
        if span.lo >= 0 {
            self.refine(r, Interval::new(0, span.hi), Congruence::ALL);
        }
        match self.congruence(rest).remainder(d) {
            Some(known) => {
                self.refine(r, Interval::point(known), Congruence::point(known));
                Some((quotient, Linear::constant(known)))
            }
            None => Some((quotient, remainder)),
        }
    }

    /// Returns the quotient by `d`, if it is the same for every value of the form.
    fn single_quotient(&mut self, l: &Linear, span: Interval, d: i128) -> Option<i128> {
        let single = |s: Interval| {
            let q = s.floor_div(d);
            (s.lo > -INFINITY && s.hi < INFINITY).then(|| q.as_point()).flatten()
        };
        single(span).or_else(|| {
            // The facts are only queried for the quotient 0, as for `i % n` and `(i + 1) % n`.
            let below = Linear::constant(d - 1).minus(l)?;
            (self.entails_cheaply(l) && self.entails_cheaply(&below)).then_some(0)
        })
    }

    /// Returns quotient and remainder by a form that is proved to be positive: `(i*m + j) // m`.
    fn divide_by_form(&mut self, a: &Linear, d: &Linear) -> Option<(Linear, Linear)> {
        if !self.entails_cheaply(&d.plus_constant(-1)) {
            return None;
        }
        let (mut whole, mut rest) = (Linear::default(), a.clone());
        if let Some(divisor) = d.as_atom() {
            for &(x, c) in &a.terms {
                let mut factors = self.factors(x).to_vec();
                if let Some(i) = factors.iter().position(|f| *f == divisor) {
                    factors.remove(i);
                    let mut quotient = Linear::constant(1);
                    for f in factors {
                        quotient = self.product(&quotient, &Linear::atom(f))?;
                    }
                    whole = whole.combine(1, &quotient, c)?;
                    rest = rest.substitute(x, &Linear::default())?;
                }
            }
        }
        let inside = d.minus(&rest)?.plus_constant(-1);
        let (q_key, r_key) = (Key::Quotient(rest.clone(), d.clone()), Key::Remainder(rest.clone(), d.clone()));
        if self.entails_cheaply(&rest) && self.entails_cheaply(&inside) {
            // Facts that were added about the remainder's atom before hold for the form.
            if let Some(known) = self.atom_of(&r_key) {
                self.equate(&rest, known);
            }
            return Some((whole, rest));
        }
        let q = self.intern(q_key, Def::Free, Interval::ALL);
        let r = self.intern(r_key, Def::Free, Interval::ALL);
        let (quotient, remainder) = (Linear::atom(q), Linear::atom(r));
        // Facts, not laws, since they only hold where the divisor is positive.
        self.refine(r, Interval::new(0, self.interval(d).hi.saturating_sub(1)), Congruence::ALL);
        if self.interval(&rest).lo >= 0 {
            self.refine(q, Interval::new(0, self.interval(&rest).hi), Congruence::ALL);
        }
        self.add_fact(d.minus(&remainder)?.plus_constant(-1));
        if let Some(multiple) = self.product(d, &quotient) {
            let law = rest.minus(&multiple)?.minus(&remainder)?;
            self.add_fact(law.scale(-1)?);
            self.add_fact(law);
        }
        Some((whole.plus(&quotient)?, remainder))
    }

    /// Adds the fact that a form equals an atom, unless this is known.
    fn equate(&mut self, l: &Linear, atom: Atom) {
        let atom = Linear::atom(atom);
        for half in [l.minus(&atom), atom.minus(l)].into_iter().flatten() {
            if !self.entails_cheaply(&half) {
                self.add_fact(half);
            }
        }
    }

    fn smaller(&mut self, a: Linear, b: Linear) -> Option<Linear> {
        let difference = b.minus(&a)?;
        if self.entails_cheaply(&difference) {
            return Some(a);
        }
        if self.entails_cheaply(&difference.scale(-1)?) {
            return Some(b);
        }
        let (x, y) = (self.interval(&a), self.interval(&b));
        let key = Key::Min(a.clone(), b.clone());
        let new = !self.has(&key);
        let m = self.intern(key, Def::Min(a.clone(), b.clone()), Interval::ALL);
        if new {
            self.add_law(a.minus(&Linear::atom(m)));
            self.add_law(b.minus(&Linear::atom(m)));
        }
        self.refine(m, Interval::new(x.lo.min(y.lo), x.hi.min(y.hi)), self.congruence(&a).join(self.congruence(&b)));
        Some(Linear::atom(m))
    }

    fn larger(&mut self, a: Linear, b: Linear) -> Linear {
        let Some(difference) = b.minus(&a) else { return self.unknown_larger(a, b) };
        if self.entails_cheaply(&difference) {
            return b;
        }
        if difference.scale(-1).is_some_and(|d| self.entails_cheaply(&d)) {
            return a;
        }
        self.unknown_larger(a, b)
    }

    fn unknown_larger(&mut self, a: Linear, b: Linear) -> Linear {
        let (x, y) = (self.interval(&a), self.interval(&b));
        let key = Key::Max(a.clone(), b.clone());
        let new = !self.has(&key);
        let m = self.intern(key, Def::Max(a.clone(), b.clone()), Interval::ALL);
        if new {
            self.add_law(Linear::atom(m).minus(&a));
            self.add_law(Linear::atom(m).minus(&b));
        }
        self.refine(m, Interval::new(x.lo.max(y.lo), x.hi.max(y.hi)), self.congruence(&a).join(self.congruence(&b)));
        Linear::atom(m)
    }

    fn select(&mut self, e: &Expr, cond: &Expr, then: &Expr, otherwise: &Expr) -> Option<Linear> {
        if self.decide(cond, true) {
            return Some(self.linear(then));
        }
        if self.decide(cond, false) {
            return Some(self.linear(otherwise));
        }
        let branch = |c: &mut Context, holds: bool, value: &Expr| {
            c.guarded(cond, holds, |c| {
                let l = c.linear(value);
                let (interval, class) = (c.interval(&l), c.congruence(&l));
                (l, interval, class)
            })
        };
        let (a, x, p) = branch(self, true, then);
        let (b, y, q) = branch(self, false, otherwise);
        if a == b {
            return Some(a);
        }
        // The key is the whole expression, so that a write to any tensor in it invalidates the key.
        let key = Key::Select(e.clone(), a.clone(), b.clone());
        let m = self.intern(key, Def::Select(cond.clone(), a, b), Interval::ALL);
        self.refine(m, x.join(y), p.join(q));
        Some(Linear::atom(m))
    }
}
