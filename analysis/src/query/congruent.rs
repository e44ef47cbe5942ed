//! What is known of integers that wrap: sums and multiples of i64 are right modulo 2^64, whatever their operands are.

use super::context::{Context, Def, Key};
use super::linear::Linear;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind};

/// Operands inside each other that are looked into.
const DEEPEST: u32 = 16;

impl Context {
    /// Two i64 expressions have the same value here, to the end of the scope: `h + i` and `h + j` are equal only where
    /// `i` and `j` are, whether or not the sums wrap.
    pub(super) fn assume_congruent(&mut self, a: &Expr, b: &Expr) {
        if a.dtype() != DType::I64 || b.dtype() != DType::I64 || !(self.is_opaque(a) || self.is_opaque(b)) {
            return;
        }
        let (Some(x), Some(y)) = (self.congruent(a, DEEPEST), self.congruent(b, DEEPEST)) else { return };
        let Some(d) = x.minus(&y) else { return };
        // It is a multiple of 2^64; of those, only 0 may be in reach.
        let range = self.interval(&d);
        if range.lo <= -(1 << 64) || range.hi >= 1 << 64 {
            return;
        }
        self.changed();
        if let Some(negative) = d.scale(-1) {
            self.add_fact(negative);
        }
        self.add_fact(d);
    }

    /// A form that is equal to the expression's value modulo 2^64.
    fn congruent(&mut self, e: &Expr, depth: u32) -> Option<Linear> {
        if depth == 0 || e.dtype() != DType::I64 || !self.is_opaque(e) {
            return Some(self.linear(e));
        }
        let ExprKind::Apply(op, args) = e.kind() else { return Some(self.linear(e)) };
        let mut of = |k: usize| self.congruent(&args[k], depth - 1);
        match op {
            Op::Add => of(0)?.plus(&of(1)?),
            Op::Sub => of(0)?.minus(&of(1)?),
            Op::Neg => of(0)?.scale(-1),
            Op::Mul => {
                let (x, y) = (of(0)?, of(1)?);
                match (x.as_constant(), y.as_constant()) {
                    (_, Some(c)) => x.scale(c),
                    (Some(c), _) => y.scale(c),
                    _ => Some(self.linear(e)),
                }
            }
            _ => Some(self.linear(e)),
        }
    }

    /// Whether nothing is known of the value of an integer expression but its type: it may wrap, or has operators that
    /// are not understood. (What is read from a tensor is what it is.)
    pub(super) fn is_opaque(&mut self, e: &Expr) -> bool {
        let l = self.linear(e);
        l.terms.iter().any(|(a, _)| match (&self.atoms[a.0 as usize].key, &self.atoms[a.0 as usize].def) {
            (Key::Expr(e), Def::Free) => !matches!(e.kind(), ExprKind::Var(_) | ExprKind::Load(..)),
            _ => false,
        })
    }
}
