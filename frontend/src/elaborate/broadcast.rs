//! Broadcasting of shapes: decides which dimensions stretch, which are equal, and which are compared when the program
//! runs. Also shapes and sizes in messages.
//!
//! Only a dimension that is the literal 1 stretches. Provably equal sizes need no check, provably different ones are an
//! error, and the rest is compared by an `assert` in the program.

use super::report::{base, quotable};
use super::value::Lazy;
use super::{Elab, R, axis};
use taffeta_ast::stmt::{AssertKind, Message, MessagePart};
use taffeta_ast::{Diagnostic, Expr, ExprKind, Literal, Op, Span, StmtKind, poly};

/// Formats a size for a message.
pub(crate) fn show(e: &Expr) -> String {
    show_at(e, 0)
}

fn show_at(e: &Expr, above: u8) -> String {
    let infix = |name: &str, p: u8, a: &[Expr]| {
        let text = format!("{} {name} {}", show_at(&a[0], p), show_at(&a[1], p + 1));
        if p < above { format!("({text})") } else { text }
    };
    match e.kind() {
        ExprKind::Const(Literal::Int(i)) => i.to_string(),
        ExprKind::Var(s) => s.name().to_string(),
        ExprKind::Load(t, _) => format!("{}[…]", t.name()),
        ExprKind::Cast(inner) => show_at(inner, above),
        ExprKind::Apply(op, a) => match op.info().form {
            taffeta_ast::op::Form::Infix(p) => infix(op.info().name, p, a),
            taffeta_ast::op::Form::Prefix(p) => format!("{}{}", op.info().name, show_at(&a[0], p)),
            taffeta_ast::op::Form::Call => {
                format!("{}({})", op.info().name, a.iter().map(show).collect::<Vec<_>>().join(", "))
            }
        },
        _ => "…".to_string(),
    }
}

/// Formats a shape for a message: `[n, 3]`.
pub(crate) fn show_shape(shape: &[Expr]) -> String {
    format!("[{}]", shape.iter().map(show).collect::<Vec<_>>().join(", "))
}

/// Returns whether a dimension is the literal 1.
pub(crate) fn is_one(e: &Expr) -> bool {
    e.as_int() == Some(1)
}

/// Piece of an assertion message about sizes.
#[derive(Clone, Copy)]
pub(crate) enum MessagePiece<'a> {
    Text(&'a str),
    Size(&'a Expr),
}

/// Builds a message. Constants become text, so that the printed program has the same message.
pub(crate) fn message<'a>(parts: impl IntoIterator<Item = MessagePiece<'a>>) -> Message {
    let mut out = Message::new();
    for p in parts {
        let text = match p {
            MessagePiece::Text(t) => t.to_string(),
            MessagePiece::Size(e) if e.as_literal().is_some() => show(e),
            MessagePiece::Size(e) => {
                out.push(MessagePart::Value(e.clone()));
                continue;
            }
        };
        match out.last_mut() {
            Some(MessagePart::Text(t)) => t.push_str(&text),
            _ => out.push(MessagePart::Text(text)),
        }
    }
    out
}

fn has_load(e: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Load(..)) || e.children().into_iter().any(has_load)
}

impl Elab<'_> {
    /// Quotes the source text of an operand for a message; a parameter of a library function is quoted as the argument
    /// that the user wrote for it.
    pub(crate) fn quote(&self, span: Span) -> String {
        let text = self.program.sources().text(span);
        if self.in_library(span.file)
            && let Some(argument) = base(text).and_then(|name| self.argument_of(name))
        {
            return argument;
        }
        if quotable(text) { format!("`{text}`") } else { "an operand".to_string() }
    }

    /// Proves that a condition is false for all sizes; `false` if no proof is found.
    pub(crate) fn surely_false(&self, c: &Expr) -> bool {
        let ExprKind::Apply(op, args) = c.kind() else { return false };
        let less = |a: &Expr, b: &Expr| self.is_nonnegative(&b.minus(a).minus(&Expr::int(1)));
        let at_most = |a: &Expr, b: &Expr| self.is_nonnegative(&b.minus(a));
        let sizes = || args.iter().all(|a| a.dtype() == taffeta_ast::DType::I64);
        match (op, args.as_slice()) {
            (Op::And, [a, b]) => self.surely_false(a) || self.surely_false(b),
            (Op::Or, [a, b]) => self.surely_false(a) && self.surely_false(b),
            (Op::Eq, [a, b]) if sizes() => self.equal(a, b) == Some(false),
            (Op::Ne, [a, b]) if sizes() => self.equal(a, b) == Some(true),
            (Op::Lt, [a, b]) | (Op::Gt, [b, a]) if sizes() => at_most(b, a),
            (Op::Le, [a, b]) | (Op::Ge, [b, a]) if sizes() => less(b, a),
            _ => false,
        }
    }

    /// Compares two sizes by algebra and the enclosing assertions; `None` if undecided.
    pub(crate) fn equal(&self, a: &Expr, b: &Expr) -> Option<bool> {
        poly::equal(a, b).or_else(|| {
            let above = |a: &Expr, b: &Expr| self.is_nonnegative(&a.minus(b).minus(&Expr::int(1)));
            if above(a, b) || above(b, a) {
                return Some(false);
            }
            let known = |(x, y): &(Expr, Expr)| (x == a && y == b) || (x == b && y == a);
            self.blocks.iter().any(|block| block.equal.iter().any(known)).then_some(true)
        })
    }

    /// Ensures that two sizes are equal: by proof, or by an assertion whose message has both sizes. `Err(())` if
    /// they are provably different.
    pub(crate) fn require_equal(&mut self, a: &Expr, b: &Expr, what: &str) -> Result<(), ()> {
        match self.equal(a, b) {
            Some(true) => Ok(()),
            Some(false) => Err(()),
            None => {
                let message = message([
                    MessagePiece::Text(what),
                    MessagePiece::Text(": "),
                    MessagePiece::Size(a),
                    MessagePiece::Text(" and "),
                    MessagePiece::Size(b),
                ]);
                self.emit(StmtKind::Assert { cond: a.equals(b), message, kind: AssertKind::Program });
                if !has_load(a) && !has_load(b) {
                    self.block_mut().equal.push((a.clone(), b.clone()));
                }
                Ok(())
            }
        }
    }

    /// Returns the shape to which the shapes of all operands broadcast.
    pub(crate) fn broadcast(&mut self, operands: &[(&[Expr], Span)], span: Span) -> R<Vec<Expr>> {
        let ndim = operands.iter().map(|(s, _)| s.len()).max().unwrap_or(0);
        let mut out = Vec::with_capacity(ndim);
        for d in 0..ndim {
            let mut met: Option<(&Expr, Span)> = None;
            for (shape, at) in operands {
                let Some(own) = (d + shape.len()).checked_sub(ndim) else { continue };
                let n = &shape[own];
                match met {
                    None => met = Some((n, *at)),
                    Some((m, _)) if is_one(m) => met = Some((n, *at)),
                    Some(_) if is_one(n) => {}
                    Some((m, first)) => {
                        let what = format!("{} and {} differ in dimension {d}", self.quote(first), self.quote(*at));
                        if self.require_equal(m, n, &what).is_err() {
                            let shapes: Vec<String> = operands.iter().map(|(s, _)| show_shape(s)).collect();
                            return Err(self.report(
                                Diagnostic::new("shape::mismatch", format!("{what}: {} and {}", show(m), show(n)))
                                    .at(span)
                                    .label(first, format!("size {} here", show(m)))
                                    .label(*at, format!("size {} here", show(n)))
                                    .note(format!("the shapes are {}", shapes.join(" and ")))
                                    .help("operands broadcast where sizes are equal or one of them is the literal 1"),
                            ));
                        }
                        // Of two equal sizes, a constant is preferred to an expression.
                        if n.as_int().is_some() {
                            met = Some((n, *at));
                        }
                    }
                }
            }
            out.extend(met.map(|(n, _)| n.clone()));
        }
        Ok(out)
    }
}

/// Broadcasts a value: returns its element over the axes of `shape`, where stretched dimensions are read at index 0.
pub(crate) fn stretch(value: &Lazy, shape: &[Expr]) -> Expr {
    let ndim = value.shape.len();
    let offset = shape.len() - ndim;
    let stretched = |d: usize| is_one(&value.shape[d]) && !is_one(&shape[d + offset]);
    if !(0..ndim).any(stretched) {
        return value.expr.clone();
    }
    let at: Vec<Expr> = (0..ndim).map(|d| if stretched(d) { Expr::int(0) } else { axis::var(ndim, d) }).collect();
    axis::substitute(&value.expr, &at)
}

/// Returns whether all operands are weak, so that the result is weak too.
pub(crate) fn all_weak(values: &[Lazy]) -> bool {
    values.iter().all(|v| v.weak)
}

/// Returns whether an operator is the identity on integers.
pub(crate) fn keeps_integers(op: Op) -> bool {
    matches!(op, Op::Floor | Op::Ceil | Op::Round | Op::Trunc)
}
