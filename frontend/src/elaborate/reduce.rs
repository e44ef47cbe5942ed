//! Reductions: augmented assignments, and stores that combine an element with a value.

use super::block::Item;
use super::expr::binary_op;
use super::scope::Role;
use super::static_eval::typed_floats;
use super::value::{Value, View};
use super::{Elab, R, Stop};
use crate::syntax::{self, BinOp, ExprKind};
use rustc_hash::FxHashSet;
use taffeta_ast::{DType, Expr, ExprKind as E, Op, ReduceOp, Span, StmtKind};

/// Recognises a reduction in a value that is stored into `x[i]`: `x[i]` combined with other operands by one operator,
/// as in `x[i] op v`, `v op x[i]`, `x[i] + v - w`, `min(a, x[i], b)`. Returns the operator and the combination of the
/// other operands. If these read `x[i]` again, only `min(x[i], v)` and `max(x[i], v)` are reductions.
///
/// The other operands are combined first: a sum is thus reassociated, and `x[i] or v` evaluates `v` also where `x[i]`
/// decides.
pub(crate) fn recognise(target: &View, element: &Expr) -> Option<(ReduceOp, Expr)> {
    let E::Apply(op, _) = element.kind() else { return None };
    let (op, reduce) = match (op, element.dtype()) {
        (Op::Add | Op::Sub, _) => (Op::Add, ReduceOp::Add),
        (Op::Mul, _) => (Op::Mul, ReduceOp::Mul),
        (Op::Min, _) => (Op::Min, ReduceOp::Min),
        (Op::Max, _) => (Op::Max, ReduceOp::Max),
        (Op::And, _) => (Op::And, ReduceOp::And),
        (Op::Or, _) => (Op::Or, ReduceOp::Or),
        (Op::BitAnd, DType::Bool) => (Op::BitAnd, ReduceOp::And),
        (Op::BitOr, DType::Bool) => (Op::BitOr, ReduceOp::Or),
        (Op::BitAnd, _) => (Op::BitAnd, ReduceOp::BitAnd),
        (Op::BitOr, _) => (Op::BitOr, ReduceOp::BitOr),
        _ => return None,
    };
    let is_target = |e: &Expr| match e.kind() {
        E::Load(t, at) => *t == target.tensor.symbol && at.iter().zip(&target.indices).all(|(a, b)| a.index == b.index),
        _ => false,
    };
    let others = match (op, element.kind()) {
        // The printer writes reductions in this form. The value may read the element: it is evaluated before the
        // element is written.
        (Op::Min | Op::Max, E::Apply(_, args)) if is_target(&args[0]) => return Some((reduce, args[1].clone())),
        // A product with several other factors is not a reduction: its rounding would change.
        (Op::Mul, E::Apply(_, args)) => match (is_target(&args[0]), is_target(&args[1])) {
            (true, _) => args[1].clone(),
            (_, true) => args[0].clone(),
            _ => return None,
        },
        _ => others(op, element, &is_target)??,
    };
    let again = others.any(&mut |e| is_target(e));
    (!again).then_some((reduce, others))
}

/// Returns the combination of the operands that `op` combines with the target in `e`: `None` if the target is no
/// operand, `Some(None)` if it is the only one.
#[expect(clippy::option_option, reason = "whether it is there, and whether it is alone")]
fn others(op: Op, e: &Expr, is_target: &impl Fn(&Expr) -> bool) -> Option<Option<Expr>> {
    if is_target(e) {
        return Some(None);
    }
    let E::Apply(here, args) = e.kind() else { return None };
    let [a, b] = args.as_slice() else { return None };
    let combined = |x: &Expr, y: &Expr| {
        let operands = [x.clone(), y.clone()];
        let folded = if x.dtype().is_float() { typed_floats(*here, &operands, x.dtype()) } else { None };
        folded.unwrap_or_else(|| Expr::apply(*here, operands.into()))
    };
    if *here == Op::Sub && op == Op::Add {
        return others(op, a, is_target)
            .map(|rest| Some(rest.map_or_else(|| Expr::apply(Op::Neg, vec![b.clone()]), |rest| combined(&rest, b))));
    }
    if *here != op {
        return None;
    }
    if let Some(rest) = others(op, a, is_target) {
        return Some(Some(rest.map_or_else(|| b.clone(), |rest| combined(&rest, b))));
    }
    others(op, b, is_target).map(|rest| Some(rest.map_or_else(|| a.clone(), |rest| combined(a, &rest))))
}

/// Returns whether statements write only tensors that they declare.
fn only_temporaries(items: &[Item]) -> bool {
    let mut declared = FxHashSet::default();
    let mut written = FxHashSet::default();
    for item in items {
        match item {
            Item::Def(t, _) => {
                declared.insert(t.symbol.clone());
            }
            Item::Stmt(s) => s.walk(&mut |s| match s.kind() {
                StmtKind::VarDef { tensor, .. } => {
                    declared.insert(tensor.symbol.clone());
                }
                StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } => {
                    written.insert(tensor.clone());
                }
                _ => {}
            }),
        }
    }
    written.is_subset(&declared)
}

impl Elab<'_> {
    /// Elaborates `target op= value`.
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
                    "cannot assign to this expression",
                    "augment a name (`t += …`) or elements (`t[i] += …`)",
                );
            }
        };
        let v = self.save_if_overwritten(v, before);
        self.check_writable(&place, target.span)?;
        let dtype = place.tensor.dtype;
        if dtype == DType::Bool && matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul) {
            return self.error_help("type::bool", span, "arithmetic takes numbers, found `bool`", "write `|=` or `&=`");
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
        self.warn_narrow_sum(&place, reduce, span);
        let place = self.freeze_indices(&place);
        let element = self.copy_if_aliased(&place, element);
        self.emit_reduce(&place, reduce, &element);
        Ok(())
    }

    /// Evaluates the value of `y = y or f(x)` as for a reduction: `f(x)` unconditionally, if its statements write only
    /// their own temporaries. `None` for any other form.
    pub(crate) fn logical_update(&mut self, target: &syntax::Expr, value: &syntax::Expr) -> R<Option<Value>> {
        let (op, first, rest) = match &value.kind {
            ExprKind::And(items) => (Op::And, &items[0], &items[1..]),
            ExprKind::Or(items) => (Op::Or, &items[0], &items[1..]),
            _ => return Ok(None),
        };
        let sources = self.program.sources();
        if self.schedule.is_some() || sources.text(target.span) != sources.text(first.span) {
            return Ok(None);
        }
        let mark = self.mark();
        let left = self.eval(first)?;
        if !matches!(&left, Value::Tensor(view) if view.shape.is_empty()) || left.dtype() != Some(DType::Bool) {
            self.roll_back(mark);
            return Ok(None);
        }
        self.open_block();
        let right = self.logical(op, rest, value.span);
        let items = self.blocks.pop().expect("the block that was opened above").items;
        let right = right?;
        if items.is_empty() || !only_temporaries(&items) {
            self.roll_back(mark);
            return Ok(None);
        }
        self.block_mut().items.extend(items);
        let right_span = rest.last().map_or(value.span, |e| e.span);
        self.apply(op, &[(left, first.span), (right, right_span)], value.span).map(Some)
    }

    /// Evaluates `k += 1` on a static `k`, if the sum is static too; returns whether it did.
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
