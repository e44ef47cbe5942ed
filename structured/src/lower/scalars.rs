//! Scalars that lowering declares, and substitution of symbols by them.

use crate::looplet::Looplet;
use std::sync::Arc;
use taffeta_analysis::pass::substitute;
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Symbol, Tensor};

/// Returns a local scalar for an index.
pub(super) fn scalar(name: String) -> Arc<Tensor> {
    Arc::new(Tensor::dense(Symbol::new(name), DType::I64, Vec::new(), Role::Workspace))
}

/// Substitutes a value for a symbol in an expression.
pub(super) fn replaced(e: &Expr, symbol: &Symbol, value: &Expr) -> Expr {
    let mut of = |e: &Expr| match e.kind() {
        taffeta_ast::ExprKind::Var(s) if s == symbol => Some(value.clone()),
        _ => None,
    };
    substitute::rewrite_expr(e, &mut of, &mut rustc_hash::FxHashMap::default())
}

/// Substitutes a value for a symbol in a looplet, such as the position of its stepper.
pub(super) fn substituted(looplet: &Looplet, symbol: &Symbol, value: &Expr) -> Looplet {
    looplet.map(&mut |e| replaced(e, symbol, value))
}

/// Returns a local scalar for a condition.
pub(super) fn flag(name: String) -> Arc<Tensor> {
    Arc::new(Tensor { dtype: DType::Bool, ..(*scalar(name)).clone() })
}
