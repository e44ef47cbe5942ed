//! Reductions: augmented assignments, and stores that combine an element with a value.

use super::expr::binary_op;
use super::scope::Role;
use super::value::{Value, View};
use super::{Elab, R, Stop};
use crate::syntax::{self, BinOp, ExprKind};
use taffeta_ast::{DType, Expr, ExprKind as E, Op, ReduceOp, Span};

/// `x[i] op v` or `v op x[i]` as a value for `x[i]`, with the operator and `v`.
pub(crate) fn recognise(target: &View, element: &Expr) -> Option<(ReduceOp, Expr)> {
    let E::Apply(op, args) = element.kind() else { return None };
    let reduce = match (op, element.dtype()) {
        (Op::Add, _) => ReduceOp::Add,
        (Op::Mul, _) => ReduceOp::Mul,
        (Op::Min, _) => ReduceOp::Min,
        (Op::Max, _) => ReduceOp::Max,
        (Op::And, _) => ReduceOp::And,
        (Op::Or, _) => ReduceOp::Or,
        (Op::BitAnd, DType::Bool) => ReduceOp::And,
        (Op::BitOr, DType::Bool) => ReduceOp::Or,
        (Op::BitAnd, _) => ReduceOp::BitAnd,
        (Op::BitOr, _) => ReduceOp::BitOr,
        _ => return None,
    };
    let is_target = |e: &Expr| match e.kind() {
        E::Load(t, at) => *t == target.tensor.symbol && at.iter().zip(&target.indices).all(|(a, b)| a.index == *b),
        _ => false,
    };
    match (is_target(&args[0]), is_target(&args[1])) {
        // `x[i] or v` evaluates `v` only if it has to; a reduction always does.
        (true, _) if op.is_lazy() && args[1].may_fail() => None,
        (true, _) => Some((reduce, args[1].clone())),
        (_, true) => Some((reduce, args[0].clone())),
        _ => None,
    }
}

impl Elab<'_> {
    /// `target op= value`
    pub(crate) fn augment(&mut self, target: &syntax::Expr, op: BinOp, value: &syntax::Expr, span: Span) -> R<()> {
        let v = self.eval(value)?;
        let before = self.mark();
        let place = match &target.kind {
            ExprKind::Name(name) => {
                if self.augment_static(name, op, &v, (target.span, value.span), span)? {
                    return Ok(());
                }
                self.writable_name(name, target.span)?
            }
            ExprKind::Subscript(of, items) => self.place(of, items, target.span)?,
            _ => {
                return self.error_help(
                    "assign::target",
                    target.span,
                    "this cannot be assigned to",
                    "augment a name (`t += …`) or elements (`t[i] += …`)",
                );
            }
        };
        let v = self.unless_overwritten(v, before);
        self.check_writable(&place, target.span)?;
        let dtype = place.tensor.dtype;
        if dtype == DType::Bool && matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul) {
            return self.error_help(
                "type::bool",
                span,
                "arithmetic computes with numbers, and `bool` is none",
                "write `|=` or `&=`",
            );
        }
        let reduce = match op {
            BinOp::Add | BinOp::Sub => Some(ReduceOp::Add),
            BinOp::Mul => Some(ReduceOp::Mul),
            BinOp::BitOr if dtype == DType::Bool => Some(ReduceOp::Or),
            BinOp::BitAnd if dtype == DType::Bool => Some(ReduceOp::And),
            BinOp::BitOr if dtype.is_int() => Some(ReduceOp::BitOr),
            BinOp::BitAnd if dtype.is_int() => Some(ReduceOp::BitAnd),
            _ => None,
        };
        let Some(reduce) = reduce else {
            let combined = self.binary(op, (Value::Tensor(place.clone()), target.span), (v, value.span), span)?;
            return self.write(&place, &combined, target.span, value.span);
        };
        if binary_op(op).is_some_and(|op| matches!(op, Op::BitAnd | Op::BitOr))
            && v.dtype().is_some_and(|d| d.is_float())
        {
            return self.error("type::operand", value.span, "`&=` and `|=` take integers or `bool`");
        }
        let mut element = self.element_for(&place, &v, target.span, value.span)?;
        if op == BinOp::Sub {
            element = Expr::apply(Op::Neg, vec![element]);
        }
        let place = self.fixed_place(&place);
        let element = self.unaliased(&place, element);
        self.emit_reduce(&place, reduce, &element);
        Ok(())
    }

    /// `k += 1` where `k` is static and stays so.
    fn augment_static(&mut self, name: &str, op: BinOp, v: &Value, at: (Span, Span), span: Span) -> R<bool> {
        let innermost = self.frame().scopes.len() - 1;
        let Some((scope, b)) = self.frame().find(name) else { return Ok(false) };
        let (role, old, site) = (b.role, b.value.clone(), b.site);
        if role == Role::Poisoned {
            return Err(Stop::Reported);
        }
        if role != Role::Named || scope != innermost || !old.is_static() || !v.is_static() {
            return Ok(false);
        }
        let new = self.binary(op, (old, at.0), (v.clone(), at.1), span)?;
        if !new.is_static() {
            return Ok(false);
        }
        self.bind(name, new, Role::Named, site);
        Ok(true)
    }
}
