//! Reads and writes of statements and expressions, by syntax alone: no context of facts is needed.

use rustc_hash::FxHashSet;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtKind, Symbol};

/// Returns the tensors that a statement may write, as an owned set ([`Stmt::writes`] borrows it).
pub fn writes(stmt: &Stmt) -> FxHashSet<Symbol> {
    stmt.writes().clone()
}

/// Returns the tensors that a statement loads from, prints or passes to a call. Reductions count as writes only.
pub fn reads_by_others(stmt: &Stmt) -> FxHashSet<Symbol> {
    let (mut out, mut seen) = (FxHashSet::default(), FxHashSet::default());
    stmt.walk(&mut |s| {
        match s.kind() {
            StmtKind::Call { tensors, .. } => out.extend(tensors.iter().cloned()),
            kind => out.extend(kind.printed().into_iter().cloned()),
        }
        for e in s.kind().exprs() {
            expr_reads(e, &mut seen, &mut out);
        }
    });
    out
}

/// Returns whether a statement loads from a tensor, prints it or passes it to a call, as [`reads_by_others`], but stops
/// at the first such use.
pub fn is_read(stmt: &Stmt, tensor: &Symbol) -> bool {
    fn loads(e: &Expr, tensor: &Symbol, seen: &mut FxHashSet<usize>) -> bool {
        seen.insert(e.address())
            && (matches!(e.kind(), ExprKind::Load(t, _) if t == tensor)
                || e.children().into_iter().any(|c| loads(c, tensor, seen)))
    }
    fn within(stmt: &Stmt, tensor: &Symbol, seen: &mut FxHashSet<usize>) -> bool {
        let kind = stmt.kind();
        let here = match kind {
            StmtKind::Call { tensors, .. } => tensors.contains(tensor),
            _ => kind.printed().into_iter().any(|t| t == tensor),
        };
        here || kind.exprs().into_iter().any(|e| loads(e, tensor, seen))
            || kind.children().into_iter().any(|s| within(s, tensor, seen))
    }
    within(stmt, tensor, &mut FxHashSet::default())
}

/// Returns whether a statement is or contains a `print`.
pub fn prints(stmt: &Stmt) -> bool {
    matches!(stmt.kind(), StmtKind::Print { .. }) || stmt.kind().children().into_iter().any(prints)
}

/// Collects the tensors that an expression loads from. `seen` keeps shared operands from being visited twice.
fn expr_reads(e: &Expr, seen: &mut FxHashSet<usize>, out: &mut FxHashSet<Symbol>) {
    if !seen.insert(e.address()) {
        return;
    }
    if let ExprKind::Load(t, _) = e.kind() {
        out.insert(t.clone());
    }
    for c in e.children() {
        expr_reads(c, seen, out);
    }
}

/// Returns the tensors that an expression loads from.
pub fn loads(e: &Expr) -> FxHashSet<Symbol> {
    let mut out = FxHashSet::default();
    expr_reads(e, &mut FxHashSet::default(), &mut out);
    out
}

/// Returns whether an expression mentions one of these iterators and sizes.
pub fn mentions(e: &Expr, symbols: &[&Symbol]) -> bool {
    e.mentions(&|s| symbols.contains(&s))
}
