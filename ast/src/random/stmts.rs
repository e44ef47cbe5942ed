//! Random statements and whole programs.

use super::{Case, Floats, Gen, Interval, VisibleTensor};
use crate::build::{Builder, assert, block, branch, local, looped, range, reduce, store, var_def};
use crate::dtype::{DType, Kind};
use crate::expr::{Expr, ExprKind};
use crate::interp::Inputs;
use crate::op::{Op, ReduceOp};
use crate::stmt::{MessagePart, Stmt, Tensor};
use crate::symbol::Symbol;
use rand::Rng;
use std::sync::Arc;

/// Names that collide with each other, or with Taffeta's own.
const LOCALS: [&str; 6] = ["t", "t", "u", "acc", "exp", "n"];
const ITERATORS: [&str; 5] = ["i", "j", "i", "k", "range"];
const DEEPEST: usize = 3;

impl Gen<'_> {
    /// Generates the whole program: the interface, initialisation of results, then arbitrary statements.
    pub(super) fn program(mut self) -> Case {
        let mut b = Builder::new("random");
        let mut inputs = Inputs::default();
        for name in ["n", "m"].into_iter().take(1 + self.below(2)) {
            let value = self.rng.random_range(0..6);
            inputs.sizes.insert(name.to_string(), value);
            if let ExprKind::Var(symbol) = b.size(name).kind() {
                self.sizes.push((symbol.clone(), value));
            }
        }
        for name in ["a", "b", "c"].into_iter().take(1 + self.below(3)) {
            let (dtype, mut shape, mut extents) = self.declaration(3);
            if name == "a" {
                // The first parameter binds the sizes, in order.
                shape = self.sizes.iter().map(|(symbol, _)| Expr::var(symbol)).collect();
                extents = self.sizes.iter().map(|(_, v)| Interval { lo: *v, hi: *v }).collect();
            }
            let writable = self.chance(0.3);
            let tensor = if writable { b.inout(name, dtype, &shape) } else { b.input(name, dtype, &shape) };
            let sizes = extents.iter().map(|e| e.lo as usize).collect();
            inputs.params.push(self.value(dtype, sizes));
            self.tensors.push(VisibleTensor { tensor, extents, writable });
        }
        let mut body = Vec::new();
        for name in ["y", "z"].into_iter().take(1 + self.below(2)) {
            let (dtype, shape, extents) = self.declaration(2);
            let tensor = b.result(name, dtype, &shape);
            body.push(self.fill(&tensor, &extents));
            self.tensors.push(VisibleTensor { tensor, extents, writable: true });
        }
        body.push(self.block(0));
        Case { func: b.finish(block(body)), inputs }
    }

    fn declaration(&mut self, most: usize) -> (DType, Vec<Expr>, Vec<Interval>) {
        let (dtype, ndim) = (self.dtype(), self.below(most + 1));
        let (shape, values): (Vec<Expr>, Vec<i64>) = (0..ndim).map(|_| self.extent()).unzip();
        (dtype, shape, values.into_iter().map(|v| Interval { lo: v, hi: v }).collect())
    }

    /// Writes every element of a tensor.
    fn fill(&mut self, tensor: &Arc<Tensor>, extents: &[Interval]) -> Stmt {
        let name = tensor.symbol.name();
        let iters: Vec<Symbol> = (0..extents.len()).map(|d| Symbol::new(format!("{name}.d{d}"))).collect();
        let outer = self.iters.len();
        for (iter, extent) in iters.iter().zip(extents) {
            self.iters.push((iter.clone(), Interval { lo: 0, hi: extent.hi - 1 }));
        }
        let value = self.stored(tensor.dtype, 2);
        self.iters.truncate(outer);
        let indices: Vec<Expr> = iters.iter().map(Expr::var).collect();
        let inner = store(tensor, &indices, &value);
        iters.iter().zip(&tensor.shape).rev().fold(inner, |body, (iter, size)| looped(iter, size, body))
    }

    /// Generates a value for an element, keeping exact floats small.
    fn stored(&mut self, dtype: DType, depth: usize) -> Expr {
        let value = self.expr(dtype, depth);
        let small = dtype.kind() == Kind::Float && self.options.floats == Floats::Exact && value.as_literal().is_none();
        if small { value.modulo(&Expr::float(16.0, dtype)) } else { value }
    }

    /// Generates a few statements with their declarations; the outermost block takes the whole budget.
    fn block(&mut self, depth: usize) -> Stmt {
        let count = if depth == 0 { self.budget } else { self.budget.min(1 + self.below(3)) };
        let mut stmts = Vec::new();
        let end = self.budget - count;
        while self.budget > end {
            self.budget -= 1;
            if self.chance(0.15) {
                // A declaration extends to the end of the block.
                stmts.push(self.scope(depth));
                break;
            }
            stmts.extend(self.stmt(depth));
        }
        block(stmts)
    }

    fn scope(&mut self, depth: usize) -> Stmt {
        let (dtype, mut shape, mut extents) = self.declaration(2);
        if self.chance(0.3)
            && let (i, interval) = self.atom()
            && interval.lo >= 0
            && interval.lo <= interval.hi
        {
            shape.push(i.plus(&Expr::int(1)));
            extents.push(Interval { lo: interval.lo + 1, hi: interval.hi + 1 });
        }
        let t = local(LOCALS[self.below(LOCALS.len())], dtype, &shape);
        let first = self.fill(&t, &extents);
        self.tensors.push(VisibleTensor { tensor: t.clone(), extents, writable: true });
        let rest = self.block(depth);
        self.tensors.pop();
        var_def(&t, block([first, rest]))
    }

    fn stmt(&mut self, depth: usize) -> Option<Stmt> {
        match self.below(12) {
            0..=2 if depth < DEEPEST => Some(self.repeat(depth)),
            3 | 4 if depth < DEEPEST => Some(self.choice(depth)),
            5 => Some(self.assertion()),
            6..=8 => self.reduction(),
            _ => self.assignment(),
        }
    }

    fn choice(&mut self, depth: usize) -> Stmt {
        let mut cond = self.operand(DType::Bool, 2);
        if cond.as_literal().is_some() {
            // The front end would fold it.
            cond = self.atom().0.cast(DType::Bool);
        }
        let then = self.block(depth + 1);
        let otherwise = self.chance(0.5).then(|| self.block(depth + 1));
        branch(&cond, then, otherwise)
    }

    fn repeat(&mut self, depth: usize) -> Stmt {
        let iter = Symbol::new(ITERATORS[self.below(ITERATORS.len())]);
        let ([begin, end, step], interval) = self.bounds();
        self.iters.push((iter.clone(), interval));
        let body = self.block(depth + 1);
        self.iters.pop();
        range(&iter, [&begin, &end, &step], body)
    }

    /// Generates a range, with the interval of its iterator.
    fn bounds(&mut self) -> ([Expr; 3], Interval) {
        let (size, value) = self.extent();
        let int = Expr::int;
        match self.below(6) {
            0 | 1 => ([int(0), size, int(1)], Interval { lo: 0, hi: value - 1 }),
            2 => ([size.minus(&int(1)), int(-1), int(-1)], Interval { lo: 0, hi: value - 1 }),
            3 => {
                let (a, b) = (self.rng.random_range(-2..6), self.rng.random_range(-2..6));
                let step = [1, 2, 3, -1, -2][self.below(5)];
                let interval = if step > 0 { Interval { lo: a, hi: b - 1 } } else { Interval { lo: b + 1, hi: a } };
                ([int(a), int(b), int(step)], interval)
            }
            4 => {
                let (i, at) = self.atom();
                ([i, size, int(1)], Interval { lo: at.lo, hi: value - 1 })
            }
            _ => {
                let (i, at) = self.atom();
                ([int(0), i, int(1)], Interval { lo: 0, hi: at.hi - 1 })
            }
        }
    }

    fn assertion(&mut self) -> Stmt {
        let (i, interval) = self.atom();
        let holds = i.less_eq(&Expr::int(interval.hi.max(0)));
        let cond = if self.risk() { self.operand(DType::Bool, 1) } else { holds.clone() };
        // Elaboration decides literal conditions, so no elaborated program has an assertion of one.
        let cond = if cond.as_bool().is_some() { holds } else { cond };
        assert(&cond, vec![MessagePart::Text("it is ".into()), MessagePart::Value(i)])
    }

    /// Chooses a writable element.
    fn target(&mut self) -> Option<(Arc<Tensor>, Vec<Expr>)> {
        let known: Vec<VisibleTensor> = self.tensors.iter().filter(|k| k.writable).cloned().collect();
        let k = self.below(known.len());
        let known = known.into_iter().nth(k)?;
        let indices = self.indices(&known.tensor, &known.extents)?;
        Some((known.tensor, indices))
    }

    fn assignment(&mut self) -> Option<Stmt> {
        let (tensor, indices) = self.target()?;
        let value = self.stored(tensor.dtype, 3);
        // The front end would make `x[i] = x[i] + v` a reduction.
        let element = tensor.load(indices.iter().cloned());
        (!combines(&element, &value)).then(|| store(&tensor, &indices, &value))
    }

    fn reduction(&mut self) -> Option<Stmt> {
        let (tensor, indices) = self.target()?;
        let ops: &[ReduceOp] = match (tensor.dtype.kind(), self.options.floats) {
            (Kind::Bool, _) => &[ReduceOp::And, ReduceOp::Or],
            (Kind::Int, _) => {
                &[ReduceOp::Add, ReduceOp::Mul, ReduceOp::Min, ReduceOp::Max, ReduceOp::BitAnd, ReduceOp::BitOr]
            }
            (Kind::Float, Floats::Exact) => &[ReduceOp::Add, ReduceOp::Min, ReduceOp::Max],
            (Kind::Float, Floats::Any) => &[ReduceOp::Add, ReduceOp::Mul, ReduceOp::Min, ReduceOp::Max],
        };
        let op = ops[self.below(ops.len())];
        let value = self.stored(tensor.dtype, 2);
        // The front end would reduce `min(x, x)` to `x`.
        (value != tensor.load(indices.iter().cloned())).then(|| reduce(&tensor, &indices, op, &value))
    }
}

/// Returns whether a value combines an element by one operator of reductions, as in `x[i] + v`, `w - v + x[i]` and
/// `x[i] - v`.
fn combines(element: &Expr, value: &Expr) -> bool {
    let ExprKind::Apply(op, _) = value.kind() else { return false };
    let op = if *op == Op::Sub { Op::Add } else { *op };
    ReduceOp::ALL.iter().any(|r| r.info().op == op) && is_combined(element, value, op)
}

fn is_combined(element: &Expr, e: &Expr, op: Op) -> bool {
    match e.kind() {
        _ if e == element => true,
        ExprKind::Apply(here, args) if *here == op => args.iter().any(|a| is_combined(element, a, op)),
        ExprKind::Apply(Op::Sub, args) if op == Op::Add => is_combined(element, &args[0], op),
        _ => false,
    }
}
