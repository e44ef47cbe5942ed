//! References to functions, and properties of functions in the syntax.

use super::Elab;
use crate::program::ModuleId;
use crate::syntax::{Expr, ExprKind, Function, Item};

/// Reference to a function: its module, and its index among the module's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FuncRef {
    pub(crate) module: ModuleId,
    pub(crate) item: usize,
}

/// Returns whether an annotation is `static`.
pub fn is_static_annotation(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Name(n) if n == "static")
}

/// Returns whether a function can be compiled by name: all its parameters are annotated, and it is not a schedule or
/// gradient.
pub fn is_entry(f: &Function) -> bool {
    f.decorators.is_empty() && is_typed(f)
}

/// Returns whether all parameters are annotated.
pub(crate) fn is_typed(f: &Function) -> bool {
    f.params.iter().all(|p| p.annotation.is_some())
}

impl<'p> Elab<'p> {
    /// Returns the syntax of a function.
    pub(crate) fn function(&self, f: FuncRef) -> &'p Function {
        match &self.program.modules[f.module.0].module.items[f.item] {
            Item::Function(function) => function,
            _ => unreachable!("a FuncRef is made from functions alone"),
        }
    }
}
