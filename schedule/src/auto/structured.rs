//! What rules ask about structured tensors: which loops traverse what is stored.

use crate::schedule::Schedule;
use crate::tree::Loop;
use taffeta_analysis::query::effects;
use taffeta_ast::format::{Coord, Format, LevelKind};
use taffeta_ast::{Access, ExprKind, Func, Stmt, StmtKind, Symbol};

/// Whether a loop in a statement, or around it, goes through a level that does not store every coordinate.
pub(super) fn is_near_stored(s: &Schedule, stmt: &Stmt) -> bool {
    let mut loops = s.around(stmt.id());
    stmt.walk(&mut |l| loops.extend(Loop::of(l).map(|l| l.stmt)));
    loops.iter().any(|l| traverses(s.func(), l))
}

/// Whether a loop goes through a level that does not store every coordinate: what it does there depends on where
/// something is stored, and it may not be one that threads or lanes can share.
pub(super) fn traverses(func: &Func, l: &Stmt) -> bool {
    let Some(l) = Loop::of(l) else { return false };
    let mut formats: Vec<(Symbol, Format)> = Vec::new();
    let mut note = |symbol: &Symbol, format: &Format| {
        if !format.is_dense() {
            formats.push((symbol.clone(), format.clone()));
        }
    };
    func.interface().for_each(|t| note(&t.symbol, &t.format));
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            note(&tensor.symbol, &tensor.format);
        }
    });
    if formats.is_empty() {
        return false;
    }
    let by_level = |tensor: &Symbol, at: &[Access]| {
        let Some((_, format)) = formats.iter().find(|(t, _)| t == tensor) else { return false };
        let of = |k: usize| format.coords.iter().position(|c| *c == Coord::Dim(k));
        let dense = |k: usize| of(k).is_some_and(|j| format.levels[j].kind == LevelKind::Dense);
        at.iter().enumerate().any(|(k, a)| !dense(k) && effects::mentions(&a.index, &[&l.iter]))
    };
    let mut found = false;
    l.body.walk(&mut |s| {
        if let StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } = s.kind() {
            found |= by_level(tensor, indices);
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(tensor, at) = e.kind() {
                    found |= by_level(tensor, at);
                }
            });
        }
    });
    found
}
