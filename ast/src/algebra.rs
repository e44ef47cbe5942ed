//! Algebraic laws of operators on single values: annihilators, which decide the result whatever the other operand is,
//! and identity elements, which leave the other operand unchanged. Fill values are rewritten by these rules
//! (language.md, section 7; looplets, section 6.1): by the interpreter element by element, by structured lowering for
//! whole regions.
//!
//! | operator | annihilator | identity |
//! |---|---|---|
//! | `*` | 0 | 1 |
//! | `&` of integers | 0 | -1 |
//! | `and`, `&` of bools | false | true |
//! | `or`, `\|` of bools | true | false |
//! | `\|`, `^` of integers | | 0 |
//! | `+` | inf, -inf | 0 |
//! | `-` | 0 as the only operand | 0 on the right |
//! | `/` | 0 on the left | 1 on the right |
//! | `min`, `max` | -inf, inf | inf, -inf |
//!
//! A local scalar that is stored once in its declaring block, before every read and nowhere else, stands for the stored
//! value ([`definitions`]): the scalar derives from the fill where the value does.
//!
//! Only a value derived from the *fill* annihilates: a program's own `0.0 * x` stays NaN where `x` is infinite. The
//! rules therefore apply to values known to come from a fill; as laws of all numbers they would be wrong.

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::literal::Literal;
use crate::op::Op;
use crate::scalar;
use crate::stmt::{Stmt, StmtKind};
use crate::symbol::Symbol;
use rustc_hash::{FxHashMap, FxHashSet};

/// Operand position of a binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// First operand.
    Left,
    /// Second operand.
    Right,
}

/// Returns whether `v` as the operand on `side` is the result, whatever the other operand is.
pub fn annihilates(op: Op, side: Side, v: Literal) -> bool {
    match op {
        Op::Mul => is(v, 0),
        Op::Div => side == Side::Left && is(v, 0),
        Op::BitAnd => is(v, 0) || v == Literal::Bool(false),
        Op::And => v == Literal::Bool(false),
        Op::Or | Op::BitOr => v == Literal::Bool(true),
        Op::Add => is_float(v, f64::INFINITY) || is_float(v, f64::NEG_INFINITY),
        Op::Min => is_float(v, f64::NEG_INFINITY),
        Op::Max => is_float(v, f64::INFINITY),
        _ => false,
    }
}

/// Returns whether the operator leaves the fill `v` as it is: `-x` is `-1 * x`, which 0 annihilates. As an element, -0
/// would differ from 0, and the negation of a sparse tensor store every element.
pub fn keeps(op: Op, v: Literal) -> bool {
    op == Op::Neg && is(v, 0)
}

/// Returns whether `v` as the operand on `side` makes the other operand the result.
pub fn is_identity(op: Op, side: Side, v: Literal) -> bool {
    match op {
        Op::Mul => is(v, 1),
        Op::Div => side == Side::Right && is(v, 1),
        Op::Add => is(v, 0),
        Op::Sub => side == Side::Right && is(v, 0),
        Op::BitAnd => v == Literal::Bool(true) || v == Literal::Int(-1),
        Op::And => v == Literal::Bool(true),
        Op::Or => v == Literal::Bool(false),
        Op::BitOr | Op::BitXor => v == Literal::Bool(false) || v == Literal::Int(0),
        Op::Min => is_float(v, f64::INFINITY),
        Op::Max => is_float(v, f64::NEG_INFINITY),
        _ => false,
    }
}

/// Returns whether a reduction leaves an element that has the fill value as it is (language.md, section 7): the fill
/// annihilates the operand, or the operand `v` is known and the result is the fill.
pub fn leaves_fill(op: Op, dtype: DType, fill: Literal, v: Option<Literal>) -> bool {
    let same = |v| is_identity(op, Side::Right, v) || scalar::apply(op, dtype, &[fill, v]) == Ok(fill);
    annihilates(op, Side::Left, fill) || v.is_some_and(same)
}

/// Collects the scalars declared inside the statement that stand for one value each: their only write is a store in the
/// declaring block, before all reads.
pub fn definitions(s: &Stmt) -> FxHashSet<Symbol> {
    let mut found = Definitions::default();
    found.block(s, 0);
    found.scalars.into_iter().filter(|(_, state)| *state == Scalar::Defined).map(|(symbol, _)| symbol).collect()
}

/// State of a local scalar during the walk.
#[derive(Clone, Copy, PartialEq)]
enum Scalar {
    /// Declared in the block of that number, without a value.
    Declared(usize),
    /// Stored once.
    Defined,
    /// More than one value, or none.
    Other,
}

#[derive(Default)]
struct Definitions {
    scalars: FxHashMap<Symbol, Scalar>,
    blocks: usize,
}

impl Definitions {
    fn block(&mut self, s: &Stmt, block: usize) {
        match s.kind() {
            StmtKind::Seq(all) => return all.iter().for_each(|s| self.block(s, block)),
            StmtKind::VarDef { tensor, body } => {
                if tensor.ndim() == 0 {
                    self.scalars.insert(tensor.symbol.clone(), Scalar::Declared(block));
                }
                return self.block(body, block);
            }
            _ => {}
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| self.read(e));
        }
        match s.kind() {
            StmtKind::Store { tensor, .. } => self.write(tensor, |state| match state {
                Scalar::Declared(own) if own == block => Scalar::Defined,
                _ => Scalar::Other,
            }),
            StmtKind::ReduceTo { tensor, .. } => self.write(tensor, |_| Scalar::Other),
            StmtKind::Call { tensors, .. } => tensors.iter().for_each(|t| self.write(t, |_| Scalar::Other)),
            _ => {}
        }
        for inner in s.kind().children() {
            self.blocks += 1;
            self.block(inner, self.blocks);
        }
    }

    fn read(&mut self, e: &Expr) {
        if let ExprKind::Load(t, _) = e.kind() {
            self.write(t, |state| if state == Scalar::Defined { state } else { Scalar::Other });
        }
    }

    fn write(&mut self, tensor: &Symbol, to: impl Fn(Scalar) -> Scalar) {
        if let Some(state) = self.scalars.get_mut(tensor) {
            *state = to(*state);
        }
    }
}

/// Returns whether a value equals that number; -0 equals 0.
fn is(v: Literal, number: i8) -> bool {
    match v {
        Literal::Int(i) => i == i128::from(number),
        Literal::Float(f) => f == f64::from(number),
        Literal::Bool(_) => false,
    }
}

fn is_float(v: Literal, number: f64) -> bool {
    matches!(v, Literal::Float(f) if f == number)
}
