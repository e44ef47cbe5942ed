//! Queries of a [`Context`]: whether a condition is proved or refuted, the bounds of a value, and whether an evaluation
//! may stop the program.

use super::context::{Context, Mark};
use super::entail::QUICK;
use super::interval::{Congruence, INFINITY, Interval};
use super::linear::Linear;
use super::lower::range_of;
use taffeta_ast::expr::Literal;
use taffeta_ast::op::Op;
use taffeta_ast::{Access, DType, Expr, ExprKind, Symbol};

/// Maximum nesting of guards that are analysed: each guard adds its own facts, so deeper shared operands would be
/// visited once for every path to them.
const GUARDS: u32 = 3;

/// Abstract value of an integer expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Interval of the value, within the range of its type.
    pub interval: Interval,
    /// Residue class of the value.
    pub congruence: Congruence,
}

/// Returns the comparison that holds where `op` does not.
pub(crate) fn complement(op: Op) -> Op {
    match op {
        Op::Eq => Op::Ne,
        Op::Ne => Op::Eq,
        Op::Lt => Op::Ge,
        Op::Le => Op::Gt,
        Op::Gt => Op::Le,
        Op::Ge => Op::Lt,
        other => other,
    }
}

/// Index that is not proved to be in range.
#[derive(Clone, Debug)]
pub struct Unproved {
    /// Indexed tensor.
    pub tensor: Symbol,
    /// Indexed dimension.
    pub dim: usize,
    /// Index.
    pub index: Expr,
}

impl Context {
    /// Proves that the condition holds whenever this point is reached (and its evaluation does not stop the program).
    pub fn prove(&mut self, cond: &Expr) -> bool {
        self.thoroughly(|c| c.decide(cond, true))
    }

    /// Proves that the condition does not hold whenever this point is reached (and its evaluation does not stop the
    /// program).
    pub fn refute(&mut self, cond: &Expr) -> bool {
        self.thoroughly(|c| c.decide(cond, false))
    }

    /// Bounds the value of an integer expression here, if its evaluation does not stop the program.
    pub fn bounds(&mut self, e: &Expr) -> Bounds {
        let l = self.linear(e);
        let class = self.congruence(&l);
        let whole = range_of(e.dtype()).meet(self.interval(&l));
        let lo = self.lower_bound(&l, INFINITY, QUICK);
        let hi = match l.scale(-1) {
            Some(n) => -self.lower_bound(&n, INFINITY, QUICK),
            None => INFINITY,
        };
        Bounds { interval: whole.meet(Interval { lo, hi }), congruence: class }
    }

    /// Returns whether evaluating the expression may stop the program here: an index that is not proved to be in range,
    /// a divisor that is not proved to be nonzero, a cast from float to integer.
    pub fn may_stop(&mut self, e: &Expr) -> bool {
        if self.unreachable || e.children().is_empty() {
            return false;
        }
        if let Some((version, known)) = self.memo_stop.get(e)
            && *version == self.version
        {
            return *known;
        }
        let version = self.version;
        let answer = self.may_stop_node(e);
        self.memo_stop.insert(e.clone(), (version, answer));
        answer
    }

    fn may_stop_node(&mut self, e: &Expr) -> bool {
        match e.kind() {
            ExprKind::Load(t, indices) => {
                indices.iter().enumerate().any(|(k, a)| self.may_stop(&a.index) || !self.in_range(t, k, &a.index))
            }
            ExprKind::Apply(op, args) if op.is_lazy() => {
                self.may_stop(&args[0])
                    || self.guarded(&args[0], *op != Op::Or, |c| c.may_stop(&args[1]))
                    || (*op == Op::Select && self.guarded(&args[0], false, |c| c.may_stop(&args[2])))
            }
            ExprKind::Apply(op, args) => {
                args.iter().any(|a| self.may_stop(a))
                    || (op.info().may_fail_on_int && e.dtype().is_int() && !self.has_value(*op, &args[0], &args[1]))
            }
            ExprKind::Cast(inner) => (inner.dtype().is_float() && e.dtype().is_int()) || self.may_stop(inner),
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Measure(..) => false,
        }
    }

    /// Collects the indices that are not proved to be in range where an expression is evaluated. Returns false if it
    /// may stop the program for another reason.
    pub fn unproved(&mut self, e: &Expr, out: &mut Vec<Unproved>) -> bool {
        if !self.may_stop(e) {
            return true;
        }
        match e.kind() {
            ExprKind::Load(t, indices) => self.unproved_indices(t, indices, out),
            ExprKind::Apply(op, args) if op.is_lazy() => {
                self.unproved(&args[0], out)
                    && self.guarded(&args[0], *op != Op::Or, |c| c.unproved(&args[1], out))
                    && (*op != Op::Select || self.guarded(&args[0], false, |c| c.unproved(&args[2], out)))
            }
            ExprKind::Apply(op, args) => {
                let fails = op.info().may_fail_on_int && e.dtype().is_int() && !self.has_value(*op, &args[0], &args[1]);
                !fails && args.iter().all(|a| self.unproved(a, out))
            }
            ExprKind::Cast(inner) => !(inner.dtype().is_float() && e.dtype().is_int()) && self.unproved(inner, out),
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Measure(..) => true,
        }
    }

    /// Collects the unproved indices of an element of a live tensor, and those of loads in the index expressions.
    /// Returns false if the evaluation of an index may stop the program for another reason.
    pub fn unproved_indices(&mut self, tensor: &Symbol, indices: &[Access], out: &mut Vec<Unproved>) -> bool {
        indices.iter().enumerate().all(|(k, a)| {
            if !self.unproved(&a.index, out) {
                return false;
            }
            if !self.in_range(tensor, k, &a.index) {
                out.push(Unproved { tensor: tensor.clone(), dim: k, index: a.index.clone() });
            }
            true
        })
    }

    /// Returns whether addressing an element of a live tensor may stop the program.
    pub fn element_may_stop(&mut self, tensor: &Symbol, indices: &[Access]) -> bool {
        indices.iter().enumerate().any(|(k, a)| self.may_stop(&a.index) || !self.in_range(tensor, k, &a.index))
    }

    /// Proves `0 <= index < dim` for dimension `k` of a live tensor, if the index has a value.
    pub fn in_range(&mut self, tensor: &Symbol, k: usize, index: &Expr) -> bool {
        let Some(dim) = self.shapes.get(tensor).and_then(|dims| dims.get(k)).cloned() else { return false };
        self.thoroughly(|c| {
            let l = c.linear(index);
            c.entails(&l) && dim.minus(&l).is_some_and(|rest| c.entails(&rest.plus_constant(-1)))
        })
    }

    /// Proves that an integer division, shift or power does not stop the program.
    fn has_value(&mut self, op: Op, a: &Expr, b: &Expr) -> bool {
        let divisor = self.linear(b);
        if !matches!(op, Op::FloorDiv | Op::Mod) {
            return self.holds(&divisor);
        }
        let positive = self.holds(&divisor.plus_constant(-1));
        let negative = |c: &mut Context| divisor.scale(-1).is_some_and(|d| c.holds(&d.plus_constant(-1)));
        if !positive && !negative(self) {
            return false;
        }
        // The smallest integer over -1 has no value.
        let range = range_of(a.dtype());
        let minus_one = !positive && range.lo < 0 && self.interval(&divisor).hi >= -1;
        !minus_one || {
            let dividend = self.linear(a);
            self.holds(&dividend.plus_constant(-range.lo - 1))
        }
    }

    /// Proves that the mathematical value of `Σ c · e + constant`, over i64 expressions that have a value here, fits an
    /// i64. (The expressions themselves may wrap: their values are the program's.)
    pub fn sum_fits(&mut self, terms: &[(&Expr, i64)], constant: i128) -> bool {
        if self.unreachable {
            return true;
        }
        let mut sum = Some(Linear::constant(constant));
        for (e, c) in terms {
            let l = self.linear(e);
            sum = sum.and_then(|s| s.combine(1, &l, i128::from(*c)));
        }
        sum.is_some_and(|l| self.lies_in(&l, range_of(DType::I64)))
    }

    /// Proves that the mathematical value of `a * b` fits an i64.
    pub fn product_fits(&mut self, a: &Expr, b: &Expr) -> bool {
        let (a, b) = (self.linear(a), self.linear(b));
        self.unreachable || self.product(&a, &b).is_some_and(|l| self.lies_in(&l, range_of(DType::I64)))
    }

    /// Returns whether no operation of an integer expression or a condition may wrap here. Indices of loads are not
    /// inspected.
    pub fn is_exact(&mut self, e: &Expr) -> bool {
        if self.unreachable || e.children().is_empty() {
            return true;
        }
        let exact = match e.kind() {
            ExprKind::Apply(Op::Min | Op::Max | Op::Select, _) => true,
            ExprKind::Apply(op, args) if e.dtype() == DType::I64 => match op {
                Op::Add => self.sum_fits(&[(&args[0], 1), (&args[1], 1)], 0),
                Op::Sub => self.sum_fits(&[(&args[0], 1), (&args[1], -1)], 0),
                Op::Neg | Op::Abs => self.sum_fits(&[(&args[0], -1)], 0),
                Op::Mul => self.product_fits(&args[0], &args[1]),
                Op::FloorDiv | Op::Mod => args[1].as_int().is_some_and(|d| d >= 1),
                _ => false,
            },
            ExprKind::Apply(..) => !e.dtype().is_int(),
            ExprKind::Cast(inner) => inner.dtype().is_int() && e.dtype() == DType::I64,
            ExprKind::Load(..) => return true,
            _ => false,
        };
        exact && e.children().into_iter().all(|c| self.is_exact(c))
    }

    /// Proves that two integers differ by reasoning about products, which isl cannot do: `i*m + j` differs from `k*m +
    /// l` where `i < k`, `j < m` and `l >= 0`.
    pub(super) fn differ(&mut self, a: &Expr, b: &Expr) -> bool {
        let (x, y) = (self.linear(a), self.linear(b));
        let Some(d) = x.minus(&y) else { return false };
        let product = |a: &super::linear::Atom| matches!(self.atoms[a.0 as usize].def, super::context::Def::Product(_));
        if !d.terms.iter().any(|(a, _)| product(a)) {
            return false;
        }
        self.thoroughly(|c| {
            c.entails(&d.plus_constant(-1)) || d.scale(-1).is_some_and(|n| c.entails(&n.plus_constant(-1)))
        })
    }

    /// Runs `f` in a scope in which the condition holds (or does not).
    pub fn guarded<R>(&mut self, cond: &Expr, holds: bool, f: impl FnOnce(&mut Context) -> R) -> R {
        let guard = self.enter_guard(cond, holds);
        let r = f(self);
        self.leave_guard(guard);
        r
    }

    /// Begins a scope in which the condition holds (or does not), to be ended by [`Context::leave_guard`].
    pub fn enter_guard(&mut self, cond: &Expr, holds: bool) -> Mark {
        let mark = self.mark();
        self.guards += 1;
        if self.guards <= GUARDS {
            if holds { self.assume(cond) } else { self.assume_not(cond) }
        }
        mark
    }

    /// Ends the scope that [`Context::enter_guard`] began.
    pub fn leave_guard(&mut self, mark: Mark) {
        self.guards -= 1;
        self.pop(mark);
    }

    /// Returns the value of an integer expression as a literal, if it can only have one.
    pub fn constant(&mut self, e: &Expr) -> Option<Expr> {
        let l = self.linear(e);
        let value = self.interval(&l).as_point()?;
        Some(Expr::literal(Literal::Int(value), e.dtype()))
    }

    /// Returns the version of the facts: a result that was computed for a version holds whenever the context has it.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Runs `f` with all methods of proof enabled.
    fn thoroughly<R>(&mut self, f: impl FnOnce(&mut Context) -> R) -> R {
        let before = std::mem::replace(&mut self.thorough, true);
        let r = f(self);
        self.thorough = before;
        r
    }

    /// Proves that the condition holds (or does not).
    pub(super) fn decide(&mut self, cond: &Expr, holds: bool) -> bool {
        if self.unreachable {
            return true;
        }
        if let Some(b) = cond.as_bool() {
            return b == holds;
        }
        let key = (cond.clone(), holds, self.thorough);
        if let Some((version, known)) = self.memo_prove.get(&key)
            && *version == self.version
        {
            return *known;
        }
        let version = self.version;
        let answer = self.known(cond) == Some(holds) || self.decide_node(cond, holds);
        self.memo_prove.insert(key, (version, answer));
        answer
    }

    fn decide_node(&mut self, cond: &Expr, holds: bool) -> bool {
        let ExprKind::Apply(op, args) = cond.kind() else { return false };
        match op {
            Op::Not => self.decide(&args[0], !holds),
            Op::And | Op::Or if (*op == Op::And) == holds => {
                self.decide(&args[0], holds) && self.guarded(&args[0], holds, |c| c.decide(&args[1], holds))
            }
            Op::And | Op::Or => {
                self.decide(&args[0], holds) || self.guarded(&args[0], !holds, |c| c.decide(&args[1], holds))
            }
            Op::BitAnd | Op::BitOr if (*op == Op::BitAnd) == holds => {
                self.decide(&args[0], holds) && self.decide(&args[1], holds)
            }
            Op::BitAnd | Op::BitOr => self.decide(&args[0], holds) || self.decide(&args[1], holds),
            Op::Select => {
                self.guarded(&args[0], true, |c| c.decide(&args[1], holds))
                    && self.guarded(&args[0], false, |c| c.decide(&args[2], holds))
            }
            _ if op.is_comparison() && args[0].dtype().is_int() => {
                let op = if holds { *op } else { complement(*op) };
                let (a, b) = (self.linear(&args[0]), self.linear(&args[1]));
                self.compares(op, &a, &b)
            }
            _ => false,
        }
    }

    fn compares(&mut self, op: Op, a: &Linear, b: &Linear) -> bool {
        let Some(d) = a.minus(b) else { return false };
        let Some(n) = d.scale(-1) else { return false };
        match op {
            Op::Lt => self.holds(&n.plus_constant(-1)),
            Op::Le => self.holds(&n),
            Op::Gt => self.holds(&d.plus_constant(-1)),
            Op::Ge => self.holds(&d),
            Op::Eq => self.holds(&d) && self.holds(&n),
            _ => {
                let class = self.congruence(&d);
                class.residue != 0 || self.holds(&d.plus_constant(-1)) || self.holds(&n.plus_constant(-1))
            }
        }
    }

    fn holds(&mut self, g: &Linear) -> bool {
        if self.thorough { self.entails(g) } else { self.entails_cheaply(g) }
    }
}
