//! Random expressions of a given type. An operator never has only literals as operands: the front end would fold it.

use super::{Floats, Gen, Interval};
use crate::dtype::{DType, Kind};
use crate::expr::Expr;
use crate::literal::Literal;
use crate::op::Op;
use crate::stmt::Tensor;
use rand::Rng;
use std::sync::Arc;

const COMPARISONS: [Op; 6] = [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge];
const INT_BINARY: [Op; 13] = [
    Op::Add,
    Op::Sub,
    Op::Mul,
    Op::FloorDiv,
    Op::Mod,
    Op::Min,
    Op::Max,
    Op::BitAnd,
    Op::BitOr,
    Op::BitXor,
    Op::Shl,
    Op::Shr,
    Op::Pow,
];
const INT_UNARY: [Op; 4] = [Op::Neg, Op::Abs, Op::Sign, Op::BitNot];
/// Operators that keep small integers small.
const EXACT_BINARY: [Op; 4] = [Op::Add, Op::Sub, Op::Min, Op::Max];
const EXACT_UNARY: [Op; 7] = [Op::Neg, Op::Abs, Op::Sign, Op::Floor, Op::Ceil, Op::Round, Op::Trunc];

impl Gen<'_> {
    /// Returns whether this point is unreachable: some enclosing loop has no iterations.
    fn dead(&self) -> bool {
        self.iters.iter().any(|(_, i)| i.lo > i.hi)
    }

    /// Chooses an iterator or a size.
    pub(super) fn atom(&mut self) -> (Expr, Interval) {
        let k = self.below(self.iters.len() + self.sizes.len());
        if let Some((symbol, interval)) = self.iters.get(k) {
            return (Expr::var(symbol), *interval);
        }
        let (symbol, value) = &self.sizes[k - self.iters.len()];
        (Expr::var(symbol), Interval { lo: *value, hi: *value })
    }

    /// Generates an index for a dimension of size `size`; `extent` bounds the value of the size.
    fn index(&mut self, size: &Expr, extent: Interval) -> Option<Expr> {
        let risky = self.risk();
        let fits = |i: Interval| risky || (i.lo >= 0 && i.hi < extent.lo);
        let dead = self.dead();
        let mut found: Vec<Expr> = Vec::new();
        for (symbol, interval) in &self.iters {
            let i = Expr::var(symbol);
            for c in -1..=1 {
                if dead || fits(Interval { lo: interval.lo + c, hi: interval.hi + c }) {
                    found.push(i.plus(&Expr::int(c)));
                }
            }
            if dead || (interval.lo >= 0 && interval.hi < extent.lo) {
                found.push(size.minus(&Expr::int(1)).minus(&i));
            }
        }
        if found.is_empty() || self.chance(0.2) {
            for c in 0..extent.lo.min(4) {
                found.push(Expr::int(c));
                // Distance from the end; a negative constant would itself count from the end.
                found.push(size.minus(&Expr::int(c + 1)));
            }
            if extent.lo > 0 {
                let k = self.atom().0;
                found.push(k.modulo(size));
                if let Some(indirect) = self.load_of(|t| t.dtype.is_int(), 0) {
                    let k = indirect.cast(DType::I64);
                    found.push(if risky { k } else { k.modulo(size) });
                }
            }
        }
        found.retain(|e| e.as_int().is_none_or(|c| c >= 0));
        let k = self.below(found.len());
        found.into_iter().nth(k)
    }

    /// Generates indices for an element of a tensor.
    pub(super) fn indices(&mut self, tensor: &Arc<Tensor>, extents: &[Interval]) -> Option<Vec<Expr>> {
        tensor.shape.iter().zip(extents).map(|(size, extent)| self.index(size, *extent)).collect()
    }

    /// Generates the load of an element; indirect indices nest at most `depth` deep.
    fn load_of(&mut self, wanted: impl Fn(&Tensor) -> bool, depth: usize) -> Option<Expr> {
        let known: Vec<_> = self.tensors.iter().filter(|k| wanted(&k.tensor)).cloned().collect();
        let k = self.below(known.len());
        let known = known.into_iter().nth(k)?;
        if depth == 0 && known.extents.len() > 1 {
            return None;
        }
        let indices = if depth == 0 {
            // Constants alone: no further indirection.
            let extents = known.extents.iter();
            extents.map(|e| (e.lo > 0).then(|| Expr::int(self.rng.random_range(0..e.lo)))).collect()
        } else {
            self.indices(&known.tensor, &known.extents)
        };
        Some(known.tensor.load(indices?))
    }

    pub(super) fn literal(&mut self, dtype: DType) -> Expr {
        let v = match (dtype.kind(), self.options.floats) {
            (Kind::Float, Floats::Exact) => Literal::Float(f64::from(self.rng.random_range(-3..5))),
            _ => self.element(dtype),
        };
        Expr::literal(v, dtype)
    }

    /// Generates a load, an iterator or a size, converted to the type.
    fn leaf(&mut self, dtype: DType) -> Expr {
        if self.chance(0.75)
            && let Some(load) = self.load_of(|t| t.dtype == dtype, 1)
        {
            return load;
        }
        let from = if self.chance(0.5) { self.load_of(|_| true, 1) } else { None };
        let from = match from {
            Some(load) => load,
            None => self.atom().0,
        };
        self.convert(from, dtype)
    }

    /// Converts without failure, keeping exact floats small.
    fn convert(&mut self, e: Expr, dtype: DType) -> Expr {
        let from = e.dtype();
        match (from.kind(), dtype.kind()) {
            (Kind::Float, Kind::Int) if !self.risk() => {
                let nan = Expr::apply(Op::IsNan, vec![e.clone()]);
                let (lo, hi) = if dtype.is_unsigned_int() { (0.0, 100.0) } else { (-100.0, 100.0) };
                let within = e.min_with(&Expr::float(hi, from)).max_with(&Expr::float(lo, from));
                nan.select(&Expr::float(0.0, from), &within).cast(dtype)
            }
            (Kind::Int, Kind::Float) if self.options.floats == Floats::Exact => {
                e.modulo(&Expr::literal(Literal::Int(8), from)).cast(dtype)
            }
            _ => e.cast(dtype),
        }
    }

    /// Generates an expression that may be a literal.
    pub(super) fn expr(&mut self, dtype: DType, depth: usize) -> Expr {
        if self.chance(0.2) { self.literal(dtype) } else { self.operand(dtype, depth) }
    }

    /// Generates an expression that is not a literal.
    pub(super) fn operand(&mut self, dtype: DType, depth: usize) -> Expr {
        if depth == 0 || self.chance(0.25) {
            return self.leaf(dtype);
        }
        if self.chance(0.1) {
            let cond = self.operand(DType::Bool, depth - 1);
            let (a, b) = (self.operand(dtype, depth - 1), self.expr(dtype, depth - 1));
            return cond.select(&a, &b);
        }
        if self.chance(0.1) {
            let from = self.dtype();
            let e = self.operand(from, depth - 1);
            return self.convert(e, dtype);
        }
        match dtype.kind() {
            Kind::Bool => self.condition(depth - 1),
            Kind::Int => self.integer(dtype, depth - 1),
            Kind::Float => match self.options.floats {
                Floats::Exact => self.exact(dtype, depth - 1),
                Floats::Any => self.float(dtype, depth - 1),
            },
        }
    }

    fn condition(&mut self, depth: usize) -> Expr {
        let (op, operands) = match self.below(8) {
            0 => (Op::Not, DType::Bool),
            1 => (Op::And, DType::Bool),
            2 => (Op::Or, DType::Bool),
            3 => ([Op::BitAnd, Op::BitOr, Op::BitXor, Op::Eq, Op::Ne][self.below(5)], DType::Bool),
            _ => (COMPARISONS[self.below(6)], self.dtype()),
        };
        // `bool` has equality only.
        let op = if operands == DType::Bool && matches!(op, Op::Lt | Op::Le | Op::Gt | Op::Ge) { Op::Ne } else { op };
        let mut args = vec![self.operand(operands, depth)];
        if op.info().arity == 2 {
            args.push(self.expr(operands, depth));
        }
        Expr::apply(op, args)
    }

    fn integer(&mut self, dtype: DType, depth: usize) -> Expr {
        if self.chance(0.2) {
            let e = self.operand(dtype, depth);
            return Expr::apply(INT_UNARY[self.below(INT_UNARY.len())], vec![e]);
        }
        let op = INT_BINARY[self.below(INT_BINARY.len())];
        let number = |v: i64| Expr::literal(Literal::Int(i128::from(v)), dtype);
        let a = self.operand(dtype, depth);
        let mut b = self.expr(dtype, depth);
        if !self.risk() {
            let small = |e: &Expr, mask: i64| Expr::apply(Op::BitAnd, vec![e.clone(), number(mask)]);
            b = match op {
                // A divisor from 1 to 4, or a constant that is neither 0 nor -1.
                Op::FloorDiv | Op::Mod if self.chance(0.5) => small(&b, 3).plus(&number(1)),
                Op::FloorDiv | Op::Mod if dtype.is_signed_int() && self.chance(0.3) => number(-3),
                Op::FloorDiv | Op::Mod => number(self.rng.random_range(2..6)),
                Op::Shl | Op::Shr => small(&b, 15),
                Op::Pow => small(&b, 3),
                _ => b,
            };
        }
        Expr::apply(op, vec![a, b])
    }

    fn exact(&mut self, dtype: DType, depth: usize) -> Expr {
        let a = self.operand(dtype, depth);
        match self.below(6) {
            0 => Expr::apply(EXACT_UNARY[self.below(EXACT_UNARY.len())], vec![a]),
            1 => a.modulo(&Expr::float([3.0, -4.0, 5.0][self.below(3)], dtype)),
            2 => a.floor_div(&Expr::float([2.0, -3.0, 4.0][self.below(3)], dtype)),
            3 => {
                let b = self.expr(dtype, depth);
                a.times(&b).modulo(&Expr::float(16.0, dtype))
            }
            _ => {
                let b = self.expr(dtype, depth);
                Expr::apply(EXACT_BINARY[self.below(EXACT_BINARY.len())], vec![a, b])
            }
        }
    }

    fn float(&mut self, dtype: DType, depth: usize) -> Expr {
        let usable = |op: &&Op| {
            let info = op.info();
            info.domain.accepts(dtype) && !info.gives_bool && **op != Op::Select
        };
        let ops: Vec<Op> = Op::ALL.iter().filter(usable).copied().collect();
        let op = ops[self.below(ops.len())];
        let mut args = vec![self.operand(dtype, depth)];
        while args.len() < op.info().arity {
            args.push(self.expr(dtype, depth));
        }
        Expr::apply(op, args)
    }
}
