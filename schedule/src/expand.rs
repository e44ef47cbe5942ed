//! Expansion of a tensor by outer dimensions, for `fission`: all accesses get additional leading indices.

use rustc_hash::FxHashMap;
use taffeta_ast::{Access, Expr, ExprKind, PrintPart, Stmt, StmtKind, Symbol};

/// Applies `f` to the indices of every access to the tensor; `f` may only prepend indices. Ids and origins are kept.
pub fn accesses(stmt: &Stmt, tensor: &Symbol, f: &dyn Fn(&[Access]) -> Vec<Access>) -> Stmt {
    let mut done = FxHashMap::default();
    rewrite(stmt, tensor, f, &mut done)
}

fn rewrite(
    stmt: &Stmt,
    tensor: &Symbol,
    f: &dyn Fn(&[Access]) -> Vec<Access>,
    done: &mut FxHashMap<Expr, Expr>,
) -> Stmt {
    let here = stmt.map(&mut Stmt::clone, &mut |e| expr(e, tensor, f, done));
    let here = match here.kind() {
        StmtKind::Store { tensor: t, indices, value } if t == tensor => {
            here.with_kind(StmtKind::Store { tensor: t.clone(), indices: f(indices), value: value.clone() })
        }
        StmtKind::ReduceTo { tensor: t, indices, op, value } if t == tensor => {
            let (tensor, op, value) = (t.clone(), *op, value.clone());
            here.with_kind(StmtKind::ReduceTo { tensor, indices: f(indices), op, value })
        }
        StmtKind::Print { parts } if here.kind().printed().contains(&tensor) => {
            let part = |p: &PrintPart| match p {
                PrintPart::Tensor { tensor: t, at, shape } if t == tensor => {
                    let at: Vec<Access> = at.iter().cloned().map(Access::from).collect();
                    let at = f(&at).into_iter().map(|a| a.index).collect();
                    PrintPart::Tensor { tensor: t.clone(), at, shape: shape.clone() }
                }
                p => p.clone(),
            };
            here.with_kind(StmtKind::Print { parts: parts.iter().map(part).collect() })
        }
        _ => here,
    };
    here.map(&mut |s| rewrite(s, tensor, f, done), &mut Expr::clone)
}

fn expr(e: &Expr, tensor: &Symbol, f: &dyn Fn(&[Access]) -> Vec<Access>, done: &mut FxHashMap<Expr, Expr>) -> Expr {
    if let Some(known) = done.get(e) {
        return known.clone();
    }
    let inner = e.map_children(&mut |c| expr(c, tensor, f, done));
    let new = match inner.kind() {
        ExprKind::Load(t, indices) if t == tensor && !inner.is_operand_of(e) => {
            Expr::load(t, f(indices), inner.dtype())
        }
        _ => inner,
    };
    done.insert(e.clone(), new.clone());
    new
}
