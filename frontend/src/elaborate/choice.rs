//! Lazily evaluated operands: `a if c else b`, `and`, `or`.
//!
//! An operand that is a pure expression goes into the tree's lazy operators. One that needs statements (a call, a
//! check) goes into an `If`, with a temporary for the result.

use super::operator::meet;
use super::value::{Lazy, Value};
use super::{Elab, R};
use crate::syntax;
use taffeta_ast::{DType, Expr, Op, Span, Stmt, StmtKind};

/// Condition: static, or an expression of the running program.
pub(crate) enum Condition {
    Known(bool),
    Open(Expr),
}

/// Value of an operand, and the statements that compute it.
struct Branch {
    value: Value,
    items: Vec<super::block::Item>,
    span: Span,
}

impl Elab<'_> {
    /// Evaluates the condition of an `if`, an `assert` or a choice: static, or a scalar expression.
    pub(crate) fn condition(&mut self, e: &syntax::Expr) -> R<Condition> {
        let v = self.eval(e)?;
        self.as_condition(&v, e.span)
    }

    pub(crate) fn as_condition(&mut self, v: &Value, span: Span) -> R<Condition> {
        match v {
            Value::Bool(b) => Ok(Condition::Known(*b)),
            v if v.is_tensor() => {
                let Some(l) = v.lazy() else { return self.not_bool(&v.describe(), span) };
                if l.expr.dtype() != DType::Bool {
                    return self.not_bool(&format!("`{}`", l.expr.dtype()), span);
                }
                if !l.shape.is_empty() {
                    return self.error_help(
                        "type::condition",
                        span,
                        format!("expected one `bool` as a condition, found {}", v.describe()),
                        "reduce it with `any(…)` or `all(…)`",
                    );
                }
                // Constant conditions are decided at compile time, so that the printed program has the same meaning.
                Ok(l.expr.as_bool().map_or(Condition::Open(l.expr), Condition::Known))
            }
            v => self.not_bool(&v.describe(), span),
        }
    }

    fn branch(&mut self, e: &syntax::Expr) -> R<Branch> {
        self.open_block();
        let value = self.eval_operand(e);
        let block = self.blocks.pop().expect("the block that was opened above");
        Ok(Branch { value: value?, items: block.items, span: e.span })
    }

    /// Evaluates `then if cond else otherwise`.
    pub(crate) fn if_else(
        &mut self,
        cond: &syntax::Expr,
        then: &syntax::Expr,
        otherwise: &syntax::Expr,
        span: Span,
    ) -> R<Value> {
        let c = self.eval(cond)?;
        if let Value::Bool(b) = c {
            return self.eval_operand(if b { then } else { otherwise });
        }
        if c.shape().is_none() {
            return self.not_bool(&c.describe(), cond.span);
        }
        let is_scalar = c.shape().is_some_and(|s| s.is_empty());
        if is_scalar && let Condition::Known(b) = self.as_condition(&c, cond.span)? {
            return self.eval_operand(if b { then } else { otherwise });
        }
        if !is_scalar {
            // With a tensor as condition, calls in both operands are evaluated unconditionally, and elements are chosen
            // one by one.
            let a = self.eval_operand(then)?;
            let b = self.eval_operand(otherwise)?;
            return self.apply(Op::Select, &[(c, cond.span), (a, then.span), (b, otherwise.span)], span);
        }
        let a = self.branch(then)?;
        let b = self.branch(otherwise)?;
        if a.items.is_empty() && b.items.is_empty() {
            return self.apply(Op::Select, &[(c, cond.span), (a.value, a.span), (b.value, b.span)], span);
        }
        let Condition::Open(c) = self.as_condition(&c, cond.span)? else {
            unreachable!("constants were decided above")
        };
        self.chosen(c, a, b, span)
    }

    /// Returns a temporary that gets the value of `a` where `cond` holds, and of `b` otherwise.
    fn chosen(&mut self, cond: Expr, a: Branch, b: Branch, span: Span) -> R<Value> {
        let (Some(la), Some(lb)) = (a.value.lazy(), b.value.lazy()) else {
            let odd = if a.value.lazy().is_none() { &a } else { &b };
            let found = odd.value.describe();
            return self.error(
                "type::choice",
                odd.span,
                format!("expected a tensor or a number in a choice made at run time, found {found}"),
            );
        };
        let dtype = meet(&[&la, &lb]);
        let open = [&la, &lb].iter().any(|l| !self.reads_tables_alone(&l.expr)) && la.weak && lb.weak;
        // A temporary is typed even if both operands are weak: it has 64 bits then, which keep their values.
        let shape = self.broadcast(&[(&la.shape, a.span), (&lb.shape, b.span)], span)?;
        let temp = self.local("t", dtype, shape.clone());
        let mut arms: Vec<Stmt> = Vec::new();
        for (branch, value) in [(a, la), (b, lb)] {
            self.open_block();
            self.block_mut().items = branch.items;
            let element = super::broadcast::stretch(&value, &shape);
            let element = self.in_type(element, value.weak, dtype, branch.span)?;
            let view = super::value::View::whole(&temp, true);
            self.store(&temp, &shape, &view.indices, &element);
            arms.push(self.close_block());
        }
        let otherwise = arms.pop();
        let then = arms.pop().expect("two arms were made");
        self.emit(StmtKind::If { cond, then, otherwise });
        let mut view = super::value::View::whole(&temp, true);
        (view.owned, view.open) = (true, open);
        Ok(Value::Tensor(view))
    }

    /// Evaluates `a and b and …` and `a or b or …`.
    pub(crate) fn logical(&mut self, op: Op, operands: &[syntax::Expr], span: Span) -> R<Value> {
        let decisive = op == Op::Or;
        let mut left = self.eval(&operands[0])?;
        let mut left_span = operands[0].span;
        if left.shape().is_none() {
            return self.not_bool(&left.describe(), left_span);
        }
        for e in &operands[1..] {
            if let Value::Bool(b) = left {
                if b == decisive {
                    return Ok(left);
                }
                left = self.eval(e)?;
                if !left.is_tensor() && !matches!(left, Value::Bool(_)) {
                    return self.not_bool(&left.describe(), e.span);
                }
                left_span = e.span;
                continue;
            }
            let is_scalar = left.shape().is_some_and(|s| s.is_empty());
            let mut right = self.branch(e)?;
            // A missing operand is refused: its presence is unknown where it is not evaluated.
            right.value = self.present(right.value, e.span)?;
            let joint = left_span.to(e.span);
            if right.items.is_empty() || !is_scalar {
                self.block_mut().items.extend(right.items);
                left = self.apply(op, &[(left, left_span), (right.value, e.span)], span)?;
            } else {
                let Condition::Open(c) = self.as_condition(&left, left_span)? else { return Ok(left) };
                if right.value.dtype() != Some(DType::Bool) {
                    return self.not_bool(&right.value.describe(), e.span);
                }
                let constant = Branch {
                    value: Value::Lazy(Lazy::scalar(Expr::bool(decisive), true)),
                    items: Vec::new(),
                    span: joint,
                };
                left = if op == Op::And {
                    self.chosen(c, right, constant, span)?
                } else {
                    self.chosen(c, constant, right, span)?
                };
            }
            left_span = joint;
        }
        if let Some(d) = left.dtype()
            && d != DType::Bool
        {
            return self.apply(op, &[(left.clone(), left_span), (left, left_span)], span);
        }
        Ok(left)
    }
}
