//! Queries on structured tensors: their formats and accesses, and the loops that traverse stored elements.

use crate::schedule::Schedule;
use crate::tree::Loop;
use taffeta_analysis::query::effects;
use taffeta_ast::format::{Coord, Format, LevelKind};
use taffeta_ast::{Access, ExprKind, Func, Stmt, StmtKind, Symbol};

/// Returns whether a loop in or around a statement traverses a level that does not store every coordinate.
pub(super) fn is_near_stored(s: &Schedule, stmt: &Stmt) -> bool {
    let formats = formats(s.func());
    if formats.is_empty() {
        return false;
    }
    let mut loops = s.around(stmt.id());
    stmt.walk(&mut |l| loops.extend(Loop::of(l).map(|l| l.stmt)));
    loops.iter().any(|l| traverses_one_of(&formats, l))
}

/// Returns whether a loop traverses a level that does not store every coordinate. Its work then depends on the stored
/// coordinates, and threads or lanes may be unable to share it.
pub(super) fn traverses(func: &Func, l: &Stmt) -> bool {
    traverses_one_of(&formats(func), l)
}

fn traverses_one_of(formats: &[(Symbol, Format)], l: &Stmt) -> bool {
    any_access(formats, l, &|iter, format, at| {
        let of = |k: usize| format.coords.iter().position(|c| *c == Coord::Dim(k));
        let dense = |k: usize| of(k).is_some_and(|j| format.levels[j].kind == LevelKind::Dense);
        at.iter().enumerate().any(|(k, a)| !dense(k) && effects::mentions(&a.index, &[iter]))
    })
}

/// Returns whether each iteration of a loop traverses a fibre of its own, as each row of a CSR matrix does; the work
/// per iteration may then be uneven.
pub(super) fn has_lists(func: &Func, l: &Stmt) -> bool {
    let is_list = |kind: LevelKind| {
        use LevelKind::{Banded, Blocklist, Bytemap, Compressed, Hashed, PackBits, Ragged, RunLength};
        matches!(kind, Banded | Blocklist | Bytemap | Compressed | Hashed | PackBits | Ragged | RunLength)
    };
    any_access(&formats(func), l, &|iter, format, at| {
        let mentions = |c: &Coord| c.dims().into_iter().any(|d| effects::mentions(&at[d].index, &[iter]));
        let levels = format.coords.windows(2).zip(format.levels.iter().skip(1));
        levels.into_iter().any(|(c, below)| is_list(below.kind) && mentions(&c[0]) && !mentions(&c[1]))
    })
}

/// Returns whether a loop's body accesses one of these tensors such that `f` holds of the loop's iterator, the tensor's
/// format and the indices.
fn any_access(formats: &[(Symbol, Format)], l: &Stmt, f: &dyn Fn(&Symbol, &Format, &[Access]) -> bool) -> bool {
    let Some(l) = Loop::of(l) else { return false };
    if formats.is_empty() {
        return false;
    }
    let mut found = false;
    accesses(&l.body, &mut |tensor, at| {
        found |= formats.iter().any(|(t, format)| t == tensor && f(&l.iter, format, at));
    });
    found
}

/// Collects the structured tensors of a program with their formats.
pub(super) fn formats(func: &Func) -> Vec<(Symbol, Format)> {
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
    formats
}

/// Calls `f` on every access in a statement, writes and reads.
pub(super) fn accesses(s: &Stmt, f: &mut dyn FnMut(&Symbol, &[Access])) {
    s.walk(&mut |s| {
        if let StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } = s.kind() {
            f(tensor, indices);
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(tensor, at) = e.kind() {
                    f(tensor, at);
                }
            });
        }
    });
}
