//! Facts about wrapping integers: in a type of `w` bits, sums and multiples are exact modulo 2^w for any operands.

use super::context::{Context, Def, Key};
use super::linear::Linear;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind};

/// Maximum depth of operands to inspect.
const DEEPEST: u32 = 16;

impl Context {
    /// Adds the fact that two i64 expressions are equal, to the end of the scope: `h + i` and `h + j` are equal only
    /// where `i` and `j` are, whether or not the sums wrap.
    pub(super) fn assume_congruent(&mut self, a: &Expr, b: &Expr) {
        if a.dtype() != DType::I64 || b.dtype() != DType::I64 || !(self.is_opaque(a) || self.is_opaque(b)) {
            return;
        }
        let ((a, p), (b, q)) = (uncast(a), uncast(b));
        let bits = p.min(q);
        let (Some(x), Some(y)) = (self.congruent(a, bits, DEEPEST), self.congruent(b, bits, DEEPEST)) else { return };
        let Some(d) = x.minus(&y) else { return };
        // The difference is a multiple of 2^bits, so it is 0 if no other multiple is in range.
        let range = self.interval(&d);
        if range.lo <= -(1 << bits) || range.hi >= 1 << bits {
            return;
        }
        self.changed();
        if let Some(negative) = d.scale(-1) {
            self.add_fact(negative);
        }
        self.add_fact(d);
    }

    /// Returns a form that equals the expression's value modulo 2^bits.
    fn congruent(&mut self, e: &Expr, bits: u32, depth: u32) -> Option<Linear> {
        if depth == 0 || !self.is_opaque(e) || width(e.dtype()) < bits {
            return Some(self.linear(e));
        }
        let mut of = |e: &Expr| self.congruent(e, bits, depth - 1);
        match e.kind() {
            ExprKind::Cast(inner) if inner.dtype().is_int() => of(inner),
            ExprKind::Apply(Op::Add, args) => of(&args[0])?.plus(&of(&args[1])?),
            ExprKind::Apply(Op::Sub, args) => of(&args[0])?.minus(&of(&args[1])?),
            ExprKind::Apply(Op::Neg, args) => of(&args[0])?.scale(-1),
            ExprKind::Apply(Op::Mul, args) => {
                let (x, y) = (of(&args[0])?, of(&args[1])?);
                match (x.as_constant(), y.as_constant()) {
                    (_, Some(c)) => x.scale(c),
                    (Some(c), _) => y.scale(c),
                    _ => Some(self.linear(e)),
                }
            }
            _ => Some(self.linear(e)),
        }
    }

    /// Returns whether only the type of an integer expression is known: it may wrap, or has operators without a rule.
    /// (Loads and variables are not opaque.)
    pub(super) fn is_opaque(&mut self, e: &Expr) -> bool {
        let l = self.linear(e);
        l.terms.iter().any(|(a, _)| match (&self.atoms[a.0 as usize].key, &self.atoms[a.0 as usize].def) {
            (Key::Expr(e), Def::Free) => !matches!(e.kind(), ExprKind::Var(_) | ExprKind::Load(..)),
            _ => false,
        })
    }
}

fn width(dtype: DType) -> u32 {
    8 * dtype.size() as u32
}

/// Strips a cast between integers, and returns the operand with the bit width of its type.
fn uncast(e: &Expr) -> (&Expr, u32) {
    match e.kind() {
        ExprKind::Cast(inner) if inner.dtype().is_int() => (inner, width(inner.dtype())),
        _ => (e, width(e.dtype())),
    }
}
