//! What C compilers make of a loop, with a mark and without one.

use super::touch::{Growth, grows, growth};
use crate::tree::Loop;
use rustc_hash::FxHashMap;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Stmt, StmtKind, Symbol};

/// Whether C compilers make a loop of vector instructions without a mark: it is innermost, has no branches and calls,
/// reduces into nothing that stays the same, and accesses what lies side by side.
pub(super) fn vectorised_by_compilers(l: &Loop) -> bool {
    let mut simple = l.step.as_int() == Some(1);
    l.body.walk(&mut |s| {
        simple &= match s.kind() {
            StmtKind::Seq(_) | StmtKind::VarDef { .. } => true,
            StmtKind::Store { indices, value, .. } => {
                is_plain(value, l) && is_beside(indices.iter().map(|a| &a.index), l)
            }
            StmtKind::ReduceTo { indices, value, .. } => {
                let fixed = indices.iter().all(|a| grows(&a.index, &[&l.iter]) == [Growth::None]);
                (!fixed || !value.dtype().is_float())
                    && is_plain(value, l)
                    && is_beside(indices.iter().map(|a| &a.index), l)
            }
            _ => false,
        };
    });
    simple
}

/// Whether the last index alone grows with the loop, and by 1.
fn is_beside<'e>(at: impl DoubleEndedIterator<Item = &'e Expr>, l: &Loop) -> bool {
    let mut from_last = at.rev().map(|e| grows(e, &[&l.iter]).first().copied().unwrap_or(Growth::None));
    from_last.next().is_none_or(|last| last <= Growth::One) && from_last.all(|g| g == Growth::None)
}

fn is_plain(e: &Expr, l: &Loop) -> bool {
    let mut plain = true;
    e.walk(&mut |e| {
        plain &= match e.kind() {
            ExprKind::Apply(op, _) => {
                let costly = op.info().function.is_some() && op.info().cost > 4;
                !costly && !matches!(op, Op::FloorDiv | Op::Mod)
            }
            ExprKind::Load(_, at) => is_beside(at.iter().map(|a| &a.index), l),
            ExprKind::Cast(inner) => !matches!((inner.dtype(), e.dtype()), (DType::F16 | DType::Bf16, _)),
            _ => true,
        };
    });
    plain
}

/// Whether a loop may be expected to take lanes once it is marked: it is innermost, its iterations write elements of
/// their own or add to one that stays, and no other element of what they write is read. (Nothing is proved: the rule
/// that marks loops asks.)
pub(super) fn may_take_lanes(l: &Loop) -> bool {
    let mut may = true;
    let mut written: FxHashMap<Symbol, Vec<Vec<Expr>>> = FxHashMap::default();
    l.body.walk(&mut |s| match s.kind() {
        StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } => {
            let at = || indices.iter().map(|a| &a.index);
            let how = growth(at(), &[&l.iter]);
            let sum = matches!(s.kind(), StmtKind::ReduceTo { .. }) || indices.is_empty();
            may &= how == [Growth::One] || (sum && how == [Growth::None]);
            written.entry(tensor.clone()).or_default().push(at().cloned().collect());
        }
        StmtKind::Seq(_) | StmtKind::VarDef { .. } | StmtKind::If { .. } | StmtKind::Assume { .. } => {}
        _ => may = false,
    });
    let mut elsewhere = |e: &Expr| {
        if let ExprKind::Load(t, at) = e.kind()
            && let Some(known) = written.get(t)
        {
            may &= known.iter().all(|k| k.iter().eq(at.iter().map(|a| &a.index)));
        }
    };
    l.body.walk(&mut |s: &Stmt| s.kind().exprs().into_iter().for_each(|e| e.walk(&mut elsewhere)));
    may
}
