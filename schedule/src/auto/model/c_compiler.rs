//! Model of C compilers: the loops that they vectorise or interchange without a mark, and the loops that may get lanes
//! by a mark.

use super::access::{StrideClass, grows, growth};
use super::branch::{bounds, is_bound};
use crate::block::Block;
use crate::tree::Loop;
use rustc_hash::FxHashMap;
use taffeta_analysis::query::effects;
use taffeta_ast::op::Op;
use taffeta_ast::{Access, DType, Expr, ExprKind, LoopProps, Stmt, StmtKind, Symbol};

/// Returns whether C compilers vectorise a loop without a mark.
pub(super) fn vectorised_by_compilers(l: &Loop, bounds: &[Expr], strided: bool) -> bool {
    obstacle_to_compilers(l, bounds, strided).is_none()
}

/// Returns the reason why C compilers do not vectorise a loop without a mark; `None` if they do: the loop is innermost,
/// has no calls and no branches except loop-invariant ones, reduces no floats into a fixed element, and accesses
/// consecutive elements. With `strided`, loads may be strided, which not all compilers handle. `bounds` are the guards
/// that lowering makes bounds of the loop.
pub(in crate::auto) fn obstacle_to_compilers(l: &Loop, bounds: &[Expr], strided: bool) -> Option<&'static str> {
    if l.step.as_int() != Some(1) {
        return Some("its step is not 1");
    }
    let mut obstacle = None;
    l.body.walk(&mut |s| {
        if obstacle.is_none() {
            obstacle = obstacle_in(s, l, bounds, strided);
        }
    });
    obstacle
}

/// Returns the obstacle in one statement of the body.
fn obstacle_in(s: &Stmt, l: &Loop, bounds: &[Expr], strided: bool) -> Option<&'static str> {
    let access = |value: &Expr, indices: &[Access]| match () {
        () if !is_plain(value, l, strided) => Some("it has a costly function, a division, or non-adjacent elements"),
        () if !has_unit_stride(indices.iter().map(|a| &a.index), l) => Some("it stores non-adjacent elements"),
        () => None,
    };
    match s.kind() {
        StmtKind::Seq(_) | StmtKind::VarDef { .. } => None,
        StmtKind::If { cond, .. } if is_unswitched(cond, &l.iter) || is_bound(cond, bounds) => None,
        StmtKind::If { .. } => Some("it branches"),
        StmtKind::Store { indices, value, .. } => access(value, indices),
        StmtKind::ReduceTo { indices, value, .. } => {
            let fixed = indices.iter().all(|a| grows(&a.index, &[&l.iter]) == [StrideClass::None]);
            match fixed && value.dtype().is_float() {
                true => Some("it reduces floats into one element, and C compilers keep the order"),
                false => access(value, indices),
            }
        }
        StmtKind::For { .. } | StmtKind::While { .. } => Some("it is not innermost"),
        _ => Some("it has a statement that leaves the loop, prints or calls"),
    }
}

/// Returns the nest that C compilers make of two unmarked loops by interchange, where the inner one has large strides
/// and the outer one unit stride (gcc's `-floop-interchange`): the interchanged loops, after the initialisation of the
/// elements they reduce into. Limited to a single statement that does not read the tensor it writes, so that any order
/// is legal.
pub(super) fn interchanged_by_compilers(outer: &Loop) -> Option<Stmt> {
    let block = Block::of(&outer.body);
    let (inner, first) = block.items.split_last()?;
    let inner =
        Loop::of(inner).filter(|inner| [outer, inner].iter().all(|l| is_unmarked(l)) && block.decls.is_empty())?;
    let (target, at, value) = match inner.body.kind() {
        StmtKind::Store { tensor, indices, value } if first.is_empty() => (tensor, indices, value),
        StmtKind::ReduceTo { tensor, indices, value, .. } => (tensor, indices, value),
        _ => return None,
    };
    let rectangular = ![&inner.begin, &inner.end].iter().any(|e| effects::mentions(e, &[&outer.iter]));
    let reads = |value: &Expr| effects::loads(value).contains(target);
    let is_set = |s: &Stmt| match s.kind() {
        StmtKind::Store { tensor, indices, value } => tensor == target && indices == at && !reads(value),
        _ => false,
    };
    if !rectangular || reads(value) || !first.iter().all(is_set) {
        return None;
    }
    let swapped = Loop::of(&outer.with_body(inner.body.clone()))?;
    let vectorised = |l: &Loop| vectorised_by_compilers(l, &bounds(l), false);
    if vectorised(&inner) || !vectorised(&swapped) {
        return None;
    }
    let nest = inner.with_body(swapped.stmt.clone());
    let origin = || outer.stmt.origin().clone();
    let set = (!first.is_empty()).then(|| outer.with_body(Stmt::seq(first.to_vec(), origin())));
    Some(Stmt::seq(set.into_iter().chain([nest]), origin()))
}

fn is_unmarked(l: &Loop) -> bool {
    matches!(l.stmt.kind(), StmtKind::For { props, .. } if *props == LoopProps::default())
}

/// Returns whether C compilers unswitch a condition, since it is invariant in the innermost loop.
pub(super) fn is_unswitched(cond: &Expr, iter: &Symbol) -> bool {
    effects::loads(cond).is_empty() && !effects::mentions(cond, &[iter])
}

/// Returns whether at most the last index depends on the loop, with stride 1.
fn has_unit_stride<'e>(at: impl DoubleEndedIterator<Item = &'e Expr>, l: &Loop) -> bool {
    let mut from_last = at.rev().map(|e| grows(e, &[&l.iter]).first().copied().unwrap_or(StrideClass::None));
    from_last.next().is_none_or(|last| last <= StrideClass::One) && from_last.all(|g| g == StrideClass::None)
}

fn is_plain(e: &Expr, l: &Loop, strided: bool) -> bool {
    let mut plain = true;
    e.walk(&mut |e| {
        plain = plain
            && match e.kind() {
                ExprKind::Apply(op, _) => {
                    let costly = op.info().function.is_some() && op.info().cost > 4;
                    !costly && !matches!(op, Op::FloorDiv | Op::Mod)
                }
                ExprKind::Load(_, at) => {
                    let at = || at.iter().map(|a| &a.index);
                    has_unit_stride(at(), l) || (strided && growth(at(), &[&l.iter]) != [StrideClass::Gather])
                }
                ExprKind::Cast(inner) => !matches!((inner.dtype(), e.dtype()), (DType::F16 | DType::Bf16, _)),
                _ => true,
            };
    });
    plain
}

/// Returns whether a loop is likely to get lanes once it is marked: it is innermost, its iterations write elements of
/// their own or reduce into a fixed one, and no other element of a written tensor is read. (This is no proof: the rule
/// that marks loops checks legality.)
pub(super) fn may_take_lanes(l: &Loop) -> bool {
    let mut may = true;
    let mut written: FxHashMap<Symbol, Vec<Vec<Expr>>> = FxHashMap::default();
    l.body.walk(&mut |s| match s.kind() {
        StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } => {
            let at = || indices.iter().map(|a| &a.index);
            let how = growth(at(), &[&l.iter]);
            let sum = matches!(s.kind(), StmtKind::ReduceTo { .. }) || indices.is_empty();
            may &= how == [StrideClass::One] || (sum && how == [StrideClass::None]);
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
