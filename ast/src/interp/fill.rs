//! Evaluation of expressions that read structured tensors: elements that are not stored have the fill value, and the
//! algebra of fills ([`crate::algebra`]) determines the result of operators.
//!
//! A value *derives from the fill* if it is computed from fills and constants alone, or if a fill annihilated the other
//! operand. Annihilated operands count as unevaluated: skipped iterations raise nothing, so an operand that would stop
//! the program does not, where the other one is an annihilator. (Generated code may evaluate it, and stop.)
//!
//! Writes to tensors over the pattern of a parameter are in [`super::follow`].

use super::machine::{Machine, Run};
use super::resolve::Node;
use crate::algebra::{Side, annihilates, is_identity, keeps};
use crate::literal::Literal;
use crate::op::Op;
use crate::scalar;

/// Value, and whether it derives from the fill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub value: Literal,
    pub of_fill: bool,
}

impl Machine<'_> {
    /// Evaluates an expression, and tracks whether its value derives from the fill.
    pub(super) fn filled(&self, node: &Node) -> Run<Filled> {
        self.filled_if(true, node)
    }

    /// Evaluates an expression that the program itself evaluates only if `needed`. If not (`i < n and A[i] > 0`), a
    /// structured tensor's element out of range counts as not stored.
    fn filled_if(&self, needed: bool, node: &Node) -> Run<Filled> {
        let plain = |value: Literal| Filled { value, of_fill: false };
        Ok(match node {
            Node::Const(_) | Node::Var(_) => plain(self.eval(node)?),
            Node::Load(slot, indices) => match self.offset(*slot, indices) {
                Err(_) if !needed && !self.tensors[*slot].format.is_dense() => {
                    Filled { value: self.fill(*slot), of_fill: true }
                }
                offset => {
                    let offset = offset?;
                    Filled { value: self.read(*slot, self.place(*slot, offset))?, of_fill: !self.stores(*slot, offset) }
                }
            },
            Node::Unary(op, dtype, a) => {
                let a = self.filled_if(needed, a)?;
                if *op == Op::Stored {
                    return Ok(Filled { value: Literal::Bool(!a.of_fill), of_fill: a.of_fill });
                }
                if a.of_fill && keeps(*op, a.value) {
                    return Ok(a);
                }
                Filled { value: scalar::apply(*op, *dtype, &[a.value])?, ..a }
            }
            Node::Cast(from, to, a) => {
                let a = self.filled_if(needed, a)?;
                Filled { value: scalar::cast(a.value, *from, *to)?, ..a }
            }
            Node::Binary(op, dtype, args) => {
                self.binary(*op, args, needed, &|a, b| Ok(scalar::apply(*op, *dtype, &[a, b])?))?
            }
            Node::And(args) => self.binary(Op::And, args, needed, &|a, b| logical(a, b, |a, b| a && b))?,
            Node::Or(args) => self.binary(Op::Or, args, needed, &|a, b| logical(a, b, |a, b| a || b))?,
            Node::Ternary(op, dtype, args) => {
                let [a, b, c] = &**args;
                let operands = [self.filled_if(needed, a)?, self.filled_if(needed, b)?, self.filled_if(needed, c)?];
                let value = scalar::apply(*op, *dtype, &operands.map(|o| o.value))?;
                let of_fill = self.made_of_fill(&operands.iter().zip(args.iter()).collect::<Vec<_>>())?;
                Filled { value, of_fill }
            }
            Node::Select(args) => {
                let cond = self.filled_if(needed, &args[0])?;
                let operand = if cond.value == Literal::Bool(true) { &args[1] } else { &args[2] };
                let chosen = self.filled_if(needed, operand)?;
                // The choice must follow from the fill or from the iteration, so that it is known at compile time. A
                // constant chosen by a fill derives from the fill.
                let of_fill = match cond.of_fill {
                    true => chosen.of_fill || self.is_constant(operand)?,
                    false => chosen.of_fill && is_of_indices(&args[0]),
                };
                Filled { of_fill, ..chosen }
            }
            Node::Structured(inner) => return self.filled_if(needed, inner),
        })
    }

    /// Evaluates a binary operator, `and` and `or` included; a fill may annihilate either operand.
    fn binary(
        &self,
        op: Op,
        args: &[Node; 2],
        needed: bool,
        apply: &dyn Fn(Literal, Literal) -> Run<Literal>,
    ) -> Run<Filled> {
        let a = self.filled_if(needed, &args[0]);
        let decides =
            |a: &Filled| matches!((op, a.value), (Op::And, Literal::Bool(false)) | (Op::Or, Literal::Bool(true)));
        let decided = a.as_ref().is_ok_and(decides);
        let b = self.filled_if(needed && !decided, &args[1]);
        for (side, operand) in [(Side::Left, &a), (Side::Right, &b)] {
            if let Ok(f) = operand
                && f.of_fill
                && annihilates(op, side, f.value)
            {
                return Ok(*f);
            }
        }
        // No fill annihilates an operand, so evaluation goes on as usual: the right operand of `and` may not be needed.
        let a = a?;
        if decided {
            return Ok(a);
        }
        let b = b?;
        // A constant that a fill leaves unchanged derives from the fill, as every result of fills and constants does.
        if a.of_fill && is_identity(op, Side::Left, a.value) {
            return Ok(Filled { of_fill: b.of_fill || self.is_constant(&args[1])?, ..b });
        }
        if b.of_fill && is_identity(op, Side::Right, b.value) {
            return Ok(Filled { of_fill: a.of_fill || self.is_constant(&args[0])?, ..a });
        }
        let of_fill = self.made_of_fill(&[(&a, &args[0]), (&b, &args[1])])?;
        Ok(Filled { value: apply(a.value, b.value)?, of_fill })
    }

    /// Returns whether some operand derives from the fill, and all others are constants.
    fn made_of_fill(&self, operands: &[(&Filled, &Node)]) -> Run<bool> {
        if !operands.iter().any(|(f, _)| f.of_fill) {
            return Ok(false);
        }
        for (f, node) in operands {
            if !f.of_fill && !self.is_constant(node)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether an expression is constant, or a select whose condition, on indices or fills, chooses a constant.
    pub(super) fn is_constant(&self, node: &Node) -> Run<bool> {
        Ok(match node {
            Node::Const(_) => true,
            Node::Structured(inner) => self.is_constant(inner)?,
            Node::Select(args) => {
                let cond = self.filled(&args[0])?;
                let chosen = if cond.value == Literal::Bool(true) { &args[1] } else { &args[2] };
                (cond.of_fill || is_of_indices(&args[0])) && self.is_constant(chosen)?
            }
            // Constructors of expressions fold these.
            Node::Cast(from, to, a) => !(from.is_float() && to.is_int()) && self.is_constant(a)?,
            Node::Unary(op, dtype, a) => (!dtype.is_float() || *op == Op::Neg) && self.is_constant(a)?,
            Node::Binary(_, dtype, args) => {
                !dtype.is_float() && self.is_constant(&args[0])? && self.is_constant(&args[1])?
            }
            _ => false,
        })
    }

    /// Executes `y op= value` where the value reads structured tensors; an identity update does not read `y`.
    pub(super) fn reduce_filled(&mut self, slot: usize, offset: usize, op: Op, v: Filled) -> Run<()> {
        if v.of_fill && is_identity(op, Side::Right, v.value) {
            return Ok(());
        }
        if v.of_fill && annihilates(op, Side::Right, v.value) {
            return self.write(slot, offset, v.value);
        }
        let old = self.read(slot, offset)?;
        let new = scalar::apply(op, self.tensors[slot].dtype, &[old, v.value])?;
        self.write(slot, offset, new)
    }
}

/// Returns whether a value depends on iterators, sizes and constants alone, and evaluation cannot stop the program
/// ([`crate::expr::Expr::is_of_indices`]).
fn is_of_indices(node: &Node) -> bool {
    match node {
        Node::Const(_) | Node::Var(_) => true,
        Node::Load(..) => false,
        Node::Unary(_, _, a) => is_of_indices(a),
        Node::Binary(op, dtype, args) => {
            let divisor = match args[1] {
                Node::Const(Literal::Int(by)) => i64::try_from(by).ok(),
                _ => None,
            };
            let fails = op.info().may_fail_on_int && dtype.is_int() && !divisor.is_some_and(|by| op.is_safe_by(by));
            !fails && args.iter().all(is_of_indices)
        }
        Node::And(args) | Node::Or(args) => args.iter().all(is_of_indices),
        Node::Ternary(_, _, args) | Node::Select(args) => args.iter().all(is_of_indices),
        Node::Cast(from, to, a) => !(from.is_float() && to.is_int()) && is_of_indices(a),
        Node::Structured(inner) => is_of_indices(inner),
    }
}

fn logical(a: Literal, b: Literal, apply: fn(bool, bool) -> bool) -> Run<Literal> {
    match (a, b) {
        (Literal::Bool(a), Literal::Bool(b)) => Ok(Literal::Bool(apply(a, b))),
        _ => super::machine::mismatch(),
    }
}
