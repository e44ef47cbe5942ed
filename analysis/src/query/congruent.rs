//! What is known of integers that wrap: sums and multiples in a type of `w` bits are right modulo 2^w, whatever their
//! operands are.

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
        let ((a, p), (b, q)) = (uncast(a), uncast(b));
        let bits = p.min(q);
        let (Some(x), Some(y)) = (self.congruent(a, bits, DEEPEST), self.congruent(b, bits, DEEPEST)) else { return };
        let Some(d) = x.minus(&y) else { return };
        // It is a multiple of 2^bits; of those, only 0 may be in reach.
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

    /// A form that is equal to the expression's value modulo 2^bits.
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

fn width(dtype: DType) -> u32 {
    8 * dtype.size() as u32
}

/// What is cast to i64, and the bits that it is computed in.
fn uncast(e: &Expr) -> (&Expr, u32) {
    match e.kind() {
        ExprKind::Cast(inner) if inner.dtype().is_int() => (inner, width(inner.dtype())),
        _ => (e, width(e.dtype())),
    }
}
