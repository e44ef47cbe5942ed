//! Flat row of operators and operands → tree, by precedence climbing over one table.
//!
//! Python's rules beyond a table of levels: comparisons chain (`a < b < c` is one node), and so do `and` and `or`; `**`
//! binds tighter than a sign on its left and looser than one on its right; `not` stands only where its level is allowed
//! (`1 + not x` is refused).
use super::grammar::Rule;
use crate::syntax::{BinOp, CmpOp, Expr, ExprKind, UnaryOp};
use taffeta_ast::Span;
use taffeta_ast::diag::Diagnostic;

/// Operator between operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Infix {
    Or,
    And,
    Compare(CmpOp),
    Binary(BinOp),
}

// Precedence levels, loosest first.
const OR: u8 = 0;
const AND: u8 = 1;
const NOT: u8 = 2;
const COMPARE: u8 = 3;
const POWER: u8 = 10;

impl Infix {
    fn of(text: &str) -> Infix {
        let word = |first: &str| text.starts_with(first);
        match text {
            "or" => Infix::Or,
            "and" => Infix::And,
            "in" => Infix::Compare(CmpOp::In),
            "is" => Infix::Compare(CmpOp::Is),
            "==" => Infix::Compare(CmpOp::Eq),
            "!=" => Infix::Compare(CmpOp::Ne),
            "<" => Infix::Compare(CmpOp::Lt),
            "<=" => Infix::Compare(CmpOp::Le),
            ">" => Infix::Compare(CmpOp::Gt),
            ">=" => Infix::Compare(CmpOp::Ge),
            _ if word("not") => Infix::Compare(CmpOp::NotIn),
            _ if word("is") => Infix::Compare(CmpOp::IsNot),
            _ => Infix::Binary(binary(text)),
        }
    }

    fn level(self) -> u8 {
        match self {
            Infix::Or => OR,
            Infix::And => AND,
            Infix::Compare(_) => COMPARE,
            Infix::Binary(op) => match op {
                BinOp::BitOr => 4,
                BinOp::BitXor => 5,
                BinOp::BitAnd => 6,
                BinOp::Shl | BinOp::Shr => 7,
                BinOp::Add | BinOp::Sub => 8,
                BinOp::Mul | BinOp::Div | BinOp::FloorDiv | BinOp::Mod | BinOp::MatMul => 9,
                BinOp::Pow => POWER,
            },
        }
    }
}

/// Returns the binary operator of `text`: `+`, or `+=` for an augmented assignment.
pub fn binary(text: &str) -> BinOp {
    match text.trim_end_matches('=') {
        "+" => BinOp::Add,
        "-" => BinOp::Sub,
        "*" => BinOp::Mul,
        "/" => BinOp::Div,
        "//" => BinOp::FloorDiv,
        "%" => BinOp::Mod,
        "**" => BinOp::Pow,
        "@" => BinOp::MatMul,
        "&" => BinOp::BitAnd,
        "|" => BinOp::BitOr,
        "^" => BinOp::BitXor,
        "<<" => BinOp::Shl,
        _ => BinOp::Shr,
    }
}

/// Piece of a flat row.
pub enum Piece<'i> {
    /// Sign, `~` or `not`.
    Prefix(&'i str, Span),
    /// Operator between operands.
    Infix(&'i str),
    /// Operand.
    Operand(Expr),
}

/// Returns an upper bound of the depth of a row's tree: each operator may be a level. Comparisons, `and` and `or` chain
/// in the syntax tree, but the program's operators are binary, so a chain of them is as deep there as it is long.
pub fn depth<'i>(row: impl Iterator<Item = (Rule, &'i str)>) -> usize {
    row.filter(|(rule, _)| matches!(rule, Rule::prefix | Rule::infix)).count()
}

/// Builds the tree of a row that the grammar accepted: prefixes and one operand, then repeatedly an operator, prefixes
/// and an operand. `whole` is its span. Recursion is as deep as the row has pieces.
pub fn tree(pieces: Vec<Piece<'_>>, whole: Span, diags: &mut Vec<Diagnostic>) -> Expr {
    Climber { pieces: pieces.into_iter().peekable(), whole, diags }.climb(OR)
}

struct Climber<'i, 'd> {
    pieces: std::iter::Peekable<std::vec::IntoIter<Piece<'i>>>,
    whole: Span,
    diags: &'d mut Vec<Diagnostic>,
}

impl Climber<'_, '_> {
    fn next_infix(&mut self) -> Option<Infix> {
        match self.pieces.peek() {
            Some(Piece::Infix(text)) => Some(Infix::of(text)),
            _ => None,
        }
    }

    /// Parses an expression of operators that bind at least as tightly as `min`.
    fn climb(&mut self, min: u8) -> Expr {
        let mut left = self.operand(min);
        while let Some(op) = self.next_infix().filter(|op| op.level() >= min) {
            let start = left.span;
            let kind = match op {
                Infix::Or => ExprKind::Or(self.chain(left, op)),
                Infix::And => ExprKind::And(self.chain(left, op)),
                Infix::Compare(_) => self.comparison(left),
                Infix::Binary(op) => {
                    self.pieces.next();
                    // `**` groups to the right, all other operators to the left.
                    let level = Infix::Binary(op).level();
                    let right = self.climb(if op == BinOp::Pow { POWER } else { level + 1 });
                    let span = start.to(right.span);
                    left = Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), span };
                    continue;
                }
            };
            let end = match &kind {
                ExprKind::Or(items) | ExprKind::And(items) => items.last().map(|e| e.span),
                ExprKind::Compare(_, rest) => rest.last().map(|(_, e)| e.span),
                _ => None,
            };
            left = Expr { kind, span: start.to(end.unwrap_or(start)) };
        }
        left
    }

    /// Parses `first op b op c`, as long as the operator is `op`.
    fn chain(&mut self, first: Expr, op: Infix) -> Vec<Expr> {
        let mut items = vec![first];
        while self.next_infix() == Some(op) {
            self.pieces.next();
            items.push(self.climb(op.level() + 1));
        }
        items
    }

    fn comparison(&mut self, first: Expr) -> ExprKind {
        let mut rest = Vec::new();
        while let Some(Infix::Compare(op)) = self.next_infix() {
            self.pieces.next();
            rest.push((op, self.climb(COMPARE + 1)));
        }
        ExprKind::Compare(Box::new(first), rest)
    }

    /// Parses prefixes with their operand.
    fn operand(&mut self, min: u8) -> Expr {
        match self.pieces.next() {
            Some(Piece::Operand(operand)) => operand,
            Some(Piece::Prefix(text, span)) => {
                let (op, inner) = match text {
                    "-" => (UnaryOp::Neg, POWER),
                    "+" => (UnaryOp::Pos, POWER),
                    "~" => (UnaryOp::Invert, POWER),
                    _ => (UnaryOp::Not, NOT),
                };
                if op == UnaryOp::Not && min > NOT {
                    self.diags.push(
                        Diagnostic::new("syntax::unexpected", "expected an operand, found the keyword `not`")
                            .at(span)
                            .help("`not` binds looser than the operator before it: write `(not x)`"),
                    );
                }
                let operand = self.climb(inner);
                let span = span.to(operand.span);
                Expr { kind: ExprKind::Unary(op, Box::new(operand)), span }
            }
            _ => Expr { kind: ExprKind::None, span: self.whole },
        }
    }
}
