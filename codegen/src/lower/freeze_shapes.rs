//! Freezing of shapes that are read from memory, at the tensor's declaration.
//!
//! **Does**: copies a size that reads a tensor written in the scope into a scalar of its own, since checks, strides and
//! allocations evaluate shapes anywhere in the scope. (Programs have no such shapes as written; steps of a schedule may
//! derive one from the values that a block reads.) **Requires**: nothing. **Ensures**: no other tensor's shape changes
//! while it is alive; ids and origins are kept.
//!
//! ```text
//! t = empty((s,))              t.n0 = s
//! s = 1                 →      t = empty((t.n0,))
//! t[2] = 1                     s = 1
//!                              t[2] = 1
//! ```
//!
//! **Leaves alone**: other shapes, and arrays whose length a run-time routine changes.

use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::stmt::{Role, Routine};
use taffeta_ast::{Expr, Func, Stmt, StmtKind, Symbol, Tensor};

pub(super) fn run(func: &Func) -> Func {
    func.with_body(stmt(&func.body))
}

/// Returns whether a run-time routine changes the length of an array.
pub(crate) fn changes_length(s: &Stmt, array: &Symbol) -> bool {
    s.any(&mut |s| match s.kind() {
        StmtKind::Call { routine: Routine::Grow | Routine::Fit, tensors, .. } => tensors[1..].contains(array),
        _ => false,
    })
}

fn stmt(s: &Stmt) -> Stmt {
    let s = s.map(&mut stmt, &mut Expr::clone);
    let StmtKind::VarDef { tensor, body } = s.kind() else { return s };
    if tensor.shape.iter().all(|size| effects::loads(size).is_empty()) || changes_length(body, &tensor.symbol) {
        return s;
    }
    let written = effects::writes(body);
    let mut kept = Vec::new();
    let sizes = tensor.shape.iter().enumerate().map(|(d, size)| {
        if effects::loads(size).is_disjoint(&written) {
            return size.clone();
        }
        let symbol = Symbol::new(format!("{}.n{d}", tensor.symbol.name().replace('.', "_")));
        let scalar = Arc::new(Tensor::dense(symbol, size.dtype(), Vec::new(), Role::Local));
        let load = scalar.load([]);
        kept.push((scalar, size.clone()));
        load
    });
    let shape = sizes.collect();
    let origin = || s.origin().derive("freeze_shapes", "size");
    let declared =
        s.with_kind(StmtKind::VarDef { tensor: Arc::new(Tensor { shape, ..(**tensor).clone() }), body: body.clone() });
    let stores = kept.iter().map(|(scalar, size)| {
        let kind = StmtKind::Store { tensor: scalar.symbol.clone(), indices: Vec::new(), value: size.clone() };
        Stmt::new(kind, origin())
    });
    let all = Stmt::seq(stores.chain([declared]), origin());
    let scope = |body, (tensor, _): &(Arc<Tensor>, Expr)| {
        Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin())
    };
    kept.iter().rev().fold(all, scope)
}
