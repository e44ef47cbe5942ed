//! Loops over a dimension whose quotient by a constant is stored by a level: they become loops over blocks around loops
//! in each block, in the same order. Lists of blocks are thus traversed like other lists, whatever loops a program has.
//!
//! ```text
//! for j in range(m):                      for j.b in range((m + 3) // 4):
//!     … A[i // 2, j // 4, …]       →          for j in range(j.b * 4, min(m, j.b * 4 + 4)):
//!                                                 … A[i // 2, j.b, …, j - j.b * 4]
//! ```
//!
//! An index that wraps around the end of a dimension, `A[(j + k) % m]`, is treated as one into blocks of the
//! dimension's size: a loop over `m` iterations has two blocks, in each of which a list is traversed from some place
//! on.

use super::cursor::{PATH, shift_of};
use super::exprs::{known, load, loads};
use super::state::{Bindings, Lower};
use crate::access;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::effects;
use taffeta_ast::poly::{self, tidy};
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{Expr, ExprKind, Extent, Op, Stmt, StmtKind, Symbol};

/// Quotient of an iterator plus a shift, by a constant or by the size of the dimension.
pub(super) struct Block {
    shift: Expr,
    by: Expr,
    /// Whether the coordinate is the remainder, and no level stores the quotient.
    wraps: bool,
}

impl Lower {
    /// Returns the quotient that an access has at its next level, if that level must be traversed since no position can
    /// be computed.
    pub(super) fn block_of(
        &self,
        body: &Stmt,
        (iter, range): (&Symbol, [&Expr; 2]),
        bound: &Bindings,
    ) -> Option<Block> {
        let written = effects::writes(body);
        let mut found = None;
        let mut look = |e: &Expr| {
            let Some((_, at)) = load(e).filter(|(t, _)| found.is_none() && self.fibres.contains_key(*t)) else {
                return;
            };
            let steady = at[..PATH].iter().all(|a| known(&a.index, bound) && !loads(&a.index, &written));
            if steady && self.position(e).is_none() {
                found = quotient(&at[PATH].index, iter, bound, &written)
                    .or_else(|| self.wrapped(e, (iter, range), bound, &written));
            }
        };
        let located = self.resolve_positions(body, bound);
        located.walk(&mut |s| access::exprs(s).iter().for_each(|e| e.walk(&mut look)));
        found
    }

    /// Returns the remainder by the size of a dimension that an access has at its next level, if the size is at least
    /// 1.
    fn wrapped(
        &self,
        e: &Expr,
        (iter, range): (&Symbol, [&Expr; 2]),
        bound: &Bindings,
        written: &FxHashSet<Symbol>,
    ) -> Option<Block> {
        let (t, at) = load(e)?;
        let by = self.size(t);
        let ExprKind::Apply(Op::Mod, args) = at[PATH].index.kind() else { return None };
        if args[1] != *by || !known(by, bound) {
            return None;
        }
        // A loop over the dimension runs, so the dimension has a coordinate.
        let runs = |begin: &Expr, end: &Expr| begin.as_int().is_some_and(|b| b >= 0) && end == by;
        let some = by.as_int().is_some_and(|n| n > 0)
            || runs(range[0], range[1])
            || bound.values().flatten().any(|[begin, end]| runs(begin, end));
        let shift = shift_of(&args[0], iter, bound, written).filter(|_| some)?;
        Some(Block { shift, by: by.clone(), wraps: true })
    }

    /// Splits the loop into one over blocks around one in each of them. The outer loop takes the place of the original.
    pub(super) fn in_blocks(&mut self, s: &Stmt, block: &Block) -> Stmt {
        let StmtKind::For { iter, extent: Extent::Range { begin, end, .. }, props, body } = s.kind() else {
            unreachable!("loops split into blocks have a range")
        };
        let Block { shift, by, wraps } = block;
        let b = Symbol::new(format!("{}.b", iter.name()));
        let number = Expr::var(&b);
        let first = number.times(by).minus(shift);
        let place = tidy(&Expr::var(iter).minus(&first));
        let body = access::rebuild(body, &mut |e| match () {
            _ if is_of(&e, Op::FloorDiv, iter, block) => number.clone(),
            _ if is_of(&e, Op::Mod, iter, block) => place.clone(),
            _ => e,
        });
        let one = Expr::int(1);
        let zero = tidy(&begin.plus(shift)).as_int() == Some(0);
        let inner = Extent::Range {
            begin: if zero { first.clone() } else { begin.max_with(&first) },
            end: end.min_with(&first.plus(by)),
            step: one.clone(),
        };
        let outer = Extent::Range {
            begin: tidy(&begin.plus(shift)).floor_div(by),
            end: tidy(&end.plus(shift).plus(by).minus(&one)).floor_div(by),
            step: one,
        };
        // Threads take blocks, if there are many; lanes work inside of each block.
        let threads = if *wraps { None } else { props.parallel };
        let shared = |concurrent: bool| if concurrent { props.reductions.clone() } else { Vec::new() };
        let around = LoopProps {
            vectorize: None,
            unroll: false,
            library: false,
            reductions: shared(threads.is_some()),
            parallel: threads,
        };
        let within = LoopProps {
            parallel: if threads.is_some() { None } else { props.parallel },
            library: false,
            reductions: shared(props.vectorize.is_some() || *wraps),
            ..props.clone()
        };
        let range = self.parts.get(iter).cloned().unwrap_or([begin.clone(), end.clone()]);
        self.parts.insert(iter.clone(), range);
        let origin = s.origin().derive("structured", "block");
        let inner = Stmt::new(StmtKind::For { iter: iter.clone(), extent: inner, props: within, body }, origin);
        let blocks = s.with_kind(StmtKind::For { iter: b, extent: outer, props: around, body: inner });
        if !wraps {
            return blocks;
        }
        self.wrapped.push([place, by.clone()]);
        // For an empty range the size, which is a divisor, may be 0.
        let kind = StmtKind::If { cond: begin.less(end), then: blocks, otherwise: None };
        Stmt::new(kind, s.origin().derive("structured", "block"))
    }
}

/// Returns the quotient in an index that depends on an iterator by the quotient alone.
fn quotient(index: &Expr, iter: &Symbol, bound: &Bindings, written: &FxHashSet<Symbol>) -> Option<Block> {
    let mut found: Option<(Expr, Block)> = None;
    index.walk(&mut |e| {
        if let ExprKind::Apply(Op::FloorDiv, args) = e.kind()
            && found.is_none()
            && args[1].as_int().is_some_and(|by| by > 1)
            && let Some(shift) = shift_of(&args[0], iter, bound, written)
        {
            found = Some((e.clone(), Block { shift, by: args[1].clone(), wraps: false }));
        }
    });
    let (quotient, block) = found?;
    let number = Symbol::new("block");
    let replaced = replace(index, &quotient, &Expr::var(&number));
    shift_of(&replaced, &number, bound, written).map(|_| block)
}

fn replace(e: &Expr, from: &Expr, to: &Expr) -> Expr {
    if e == from { to.clone() } else { e.map_children(&mut |c| replace(c, from, to)) }
}

/// Returns whether an operator has the operands of the quotient, whatever the form of the sum.
fn is_of(e: &Expr, op: Op, iter: &Symbol, block: &Block) -> bool {
    match e.kind() {
        ExprKind::Apply(own, args) => {
            *own == op
                && args[1] == block.by
                && effects::mentions(&args[0], &[iter])
                && poly::equal(&args[0], &Expr::var(iter).plus(&block.shift)) == Some(true)
        }
        _ => false,
    }
}
