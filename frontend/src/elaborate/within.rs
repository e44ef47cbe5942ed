//! Indices into parts of tensors and computed values. The running program checks an access to a tensor against the
//! tensor's own dimensions. A part of a tensor, `x[1:4]`, or a computed value, `x + 1`, has dimensions of its own, and
//! an index outside of them must not reach the elements around the part: it is proved to be in range here, or asserted.

use super::broadcast::{MessagePiece, message};
use super::value::Value;
use super::{Elab, axis};
use taffeta_ast::stmt::{AssertKind, MessagePart};
use taffeta_ast::{Access, Expr, ExprKind, Op, StmtKind, Symbol, Tensor, poly};

/// Maximum number of iterators that are replaced in one proof.
const MAX_ITERATORS: usize = 16;

impl Elab<'_> {
    /// Marks the dimensions of a value that are dimensions of a tensor, so that accesses check them.
    pub(crate) fn own_dimensions(&self, of: &Value) -> Vec<bool> {
        let mut own = vec![false; of.shape().map_or(0, |s| s.len())];
        match of {
            Value::Tensor(view) => {
                self.note_access((&view.tensor, &view.indices), &view.shape, &mut own);
                view.indices.iter().for_each(|a| self.note_loads(&a.index, &view.shape, &mut own));
            }
            Value::Lazy(l) => self.note_loads(&l.expr, &l.shape, &mut own),
            _ => own.fill(true),
        }
        own
    }

    /// Marks the dimensions of a value that an access indexes directly in a tensor of equal size.
    fn note_access(&self, (tensor, at): (&Tensor, &[Access]), shape: &[Expr], own: &mut [bool]) {
        for (d, own) in own.iter_mut().enumerate() {
            let is_own = |(a, n): (&Access, &Expr)| {
                a.index == axis::var(shape.len(), d) && poly::equal(n, &shape[d]) == Some(true)
            };
            *own |= at.iter().zip(&tensor.shape).any(is_own);
        }
    }

    /// Marks the dimensions of a value that are checked by loads that are evaluated unconditionally.
    fn note_loads(&self, e: &Expr, shape: &[Expr], own: &mut [bool]) {
        match e.kind() {
            ExprKind::Load(t, at) => {
                if let Some(tensor) = self.operands.get(t) {
                    self.note_access((tensor, at), shape, own);
                }
                at.iter().for_each(|a| self.note_loads(&a.index, shape, own));
            }
            // Operands that may not be evaluated read nothing.
            ExprKind::Apply(Op::Select | Op::And | Op::Or, args) => self.note_loads(&args[0], shape, own),
            _ => e.children().into_iter().for_each(|c| self.note_loads(c, shape, own)),
        }
    }

    /// Ensures, by proof or assertion, that indices over the axes of `shape` are at least 0 and less than `n`.
    pub(crate) fn require_within(&mut self, index: &Expr, shape: &[Expr], n: &Expr) {
        let zero = Expr::int(0);
        let low = (!self.is_never_negative(index)).then(|| zero.less_eq(index));
        let above = n.minus(index).minus(&Expr::int(1));
        let high = (!self.is_never_negative(&above)).then(|| index.less(n));
        let Some(cond) = [low, high].into_iter().flatten().reduce(|a, b| a.and(&b)) else { return };
        let parts = [
            MessagePiece::Text("index "),
            MessagePiece::Size(index),
            MessagePiece::Text(" is out of range: the dimension has size "),
            MessagePiece::Size(n),
        ];
        let said = message(parts);
        self.nest("index", shape, |at| StmtKind::Assert {
            cond: axis::substitute(&cond, at),
            message: said
                .into_iter()
                .map(|p| match p {
                    MessagePart::Value(e) => MessagePart::Value(axis::substitute(&e, at)),
                    text => text,
                })
                .collect(),
            kind: AssertKind::Program,
        });
    }

    /// Proves, by a simple test, that an integer is non-negative in all iterations of the enclosing loops: each
    /// iterator is replaced by the end of its range that minimises the integer.
    fn is_never_negative(&self, e: &Expr) -> bool {
        let mut least = e.clone();
        for _ in 0..MAX_ITERATORS {
            if self.is_nonnegative(&least) || self.was_checked(&least) {
                return true;
            }
            let Some((iter, by, [first, last])) = self.iterator_in(&least) else { return false };
            let end = if by > 0 { first } else { last };
            let by = Expr::int(by);
            least = least.minus(&Expr::var(&iter).times(&by)).plus(&end.times(&by));
        }
        false
    }

    /// Returns an iterator of an enclosing loop that an integer is linear in, with its factor and the ends of its
    /// range.
    fn iterator_in(&self, e: &Expr) -> Option<(Symbol, i64, [Expr; 2])> {
        let sum = poly::Poly::of(e)?;
        let mut found: Option<(Symbol, i64)> = None;
        // The innermost iterator comes first: its range may depend on the others.
        for (monomial, c) in sum.terms() {
            if let [one] = monomial
                && let ExprKind::Var(s) = one.kind()
                && self.ranges.contains_key(s)
                && let Ok(c) = i64::try_from(c)
                && found.as_ref().is_none_or(|(known, _)| known.id() < s.id())
            {
                found = Some((s.clone(), c));
            }
        }
        let (iter, c) = found?;
        let elsewhere = sum.terms().any(|(monomial, _)| {
            let mentions = monomial.iter().any(|atom| atom.mentions(&|s| *s == iter));
            mentions && !matches!(monomial, [one] if matches!(one.kind(), ExprKind::Var(_)))
        });
        (!elsewhere).then(|| (iter.clone(), c, self.ranges[&iter].clone()))
    }

    /// Records the range of a loop's iterator, if it counts up.
    pub(crate) fn note_range(&mut self, iter: &Symbol, [begin, end, step]: [&Expr; 3]) {
        if step.as_int().is_some_and(|s| s > 0) {
            self.ranges.insert(iter.clone(), [begin.clone(), end.minus(&Expr::int(1))]);
        }
    }

    /// Records a tensor that values are computed from.
    pub(crate) fn note_operand(&mut self, of: &Value) {
        if let Value::Tensor(view) = of {
            self.operands.entry(view.tensor.symbol.clone()).or_insert_with(|| view.tensor.clone());
        }
    }
}
