//! Generator of random integer expressions, and an evaluator of them based on the table of operators.

use rustc_hash::FxHashMap;
use taffeta_ast::expr::Literal;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Symbol, Tensor, scalar};

/// Small pseudo-random number generator (xorshift), so that a failure can be reproduced from its seed.
pub struct Rng(pub u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    pub fn between(&mut self, lo: i64, hi: i64) -> i64 {
        lo + self.below((hi - lo + 1) as u64) as i64
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Returns a random integer expression over i64 variables and one table of `i32` (with unchecked indices, which may
    /// be out of range).
    pub fn int(&mut self, depth: u32, vars: &[Symbol], table: &Tensor) -> Expr {
        if depth == 0 || self.below(6) == 0 {
            return if self.below(3) == 0 { Expr::int(self.between(-3, 6)) } else { Expr::var(self.pick(vars)) };
        }
        let mut sub = |d: u32| self.int(d, vars, table);
        let (a, b) = (sub(depth - 1), sub(depth - 1));
        match self.below(17) {
            0..=2 => a.plus(&b),
            3..=4 => a.minus(&b),
            5 => a.times(&Expr::int(self.between(-2, 5))),
            6 => a.times(&b),
            7 => a.floor_div(&Expr::int(*self.pick(&[2, 3, 4, 8, -2, -3]))),
            8 => a.modulo(&Expr::int(*self.pick(&[2, 3, 4, 8, -2, -3]))),
            9 => a.min_with(&b),
            10 => a.max_with(&b),
            11 => Expr::apply(Op::Abs, vec![a]),
            12 => {
                let c = self.cond(depth - 1, vars, table);
                c.select(&a, &b)
            }
            13 => table.load([a]).cast(DType::I64),
            14 => {
                if self.below(2) == 0 {
                    a.floor_div(&b)
                } else {
                    a.modulo(&b)
                }
            }
            15 => {
                // Arithmetic that wraps.
                let narrow = *self.pick(&[DType::I8, DType::U8, DType::I32]);
                a.cast(narrow).plus(&b.cast(narrow)).cast(DType::I64)
            }
            _ => Expr::apply(Op::BitAnd, vec![a, Expr::int(*self.pick(&[1, 3, 5, 7]))]),
        }
    }

    /// Returns a random condition on expressions of [`Rng::int`].
    pub fn cond(&mut self, depth: u32, vars: &[Symbol], table: &Tensor) -> Expr {
        let kind = if depth == 0 { 9 } else { self.below(10) };
        match kind {
            0 => self.cond(depth - 1, vars, table).and(&self.cond(depth - 1, vars, table)),
            1 => self.cond(depth - 1, vars, table).or(&self.cond(depth - 1, vars, table)),
            2 => self.cond(depth - 1, vars, table).negate(),
            _ => {
                let op = *self.pick(&[Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge]);
                Expr::apply(op, vec![self.int(depth, vars, table), self.int(depth, vars, table)])
            }
        }
    }
}

/// Values of variables, and of the elements of tables (1-D).
#[derive(Clone, Default)]
pub struct Env {
    pub vars: FxHashMap<Symbol, i64>,
    pub tables: FxHashMap<Symbol, Vec<Literal>>,
}

impl Env {
    /// Evaluates an expression; `None` if the evaluation stops the program.
    pub fn eval(&self, e: &Expr) -> Option<Literal> {
        match e.kind() {
            ExprKind::Const(v) => Some(*v),
            ExprKind::Var(s) => self.vars.get(s).map(|v| Literal::Int(i128::from(*v))),
            ExprKind::Load(t, indices) => {
                let i = self.int(&indices[0].index)?;
                self.tables.get(t)?.get(usize::try_from(i).ok()?).copied()
            }
            ExprKind::Cast(a) => scalar::cast(self.eval(a)?, a.dtype(), e.dtype()).ok(),
            ExprKind::Apply(op, args) => match (op, self.eval(&args[0])?) {
                (Op::And, Literal::Bool(false)) => Some(Literal::Bool(false)),
                (Op::Or, Literal::Bool(true)) => Some(Literal::Bool(true)),
                (Op::Select, Literal::Bool(c)) => self.eval(&args[if c { 1 } else { 2 }]),
                (_, first) => {
                    let rest = args[1..].iter().map(|a| self.eval(a));
                    let values: Option<Vec<Literal>> = std::iter::once(Some(first)).chain(rest).collect();
                    scalar::apply(*op, args[0].dtype(), &values?).ok()
                }
            },
            _ => None,
        }
    }

    pub fn int(&self, e: &Expr) -> Option<i128> {
        match self.eval(e)? {
            Literal::Int(i) => Some(i),
            _ => None,
        }
    }

    pub fn holds(&self, e: &Expr) -> Option<bool> {
        match self.eval(e)? {
            Literal::Bool(b) => Some(b),
            _ => None,
        }
    }
}
