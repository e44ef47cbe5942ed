//! Functions as things that are referred to, and what the text says of them.

use super::Elab;
use crate::program::ModuleId;
use crate::syntax::{Expr, ExprKind, Function, Item};

/// A function by its module and its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FuncRef {
    pub(crate) module: ModuleId,
    pub(crate) item: usize,
}

/// Whether an annotation is `static`.
pub fn is_static_annotation(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Name(n) if n == "static")
}

/// Whether a function can be compiled by name: all its parameters are annotated, and it is not a schedule or gradient.
pub fn is_entry(f: &Function) -> bool {
    f.decorators.is_empty() && is_typed(f)
}

/// Whether all parameters are annotated.
pub(crate) fn is_typed(f: &Function) -> bool {
    f.params.iter().all(|p| p.annotation.is_some())
}

impl<'p> Elab<'p> {
    /// The function's syntax.
    pub(crate) fn function(&self, f: FuncRef) -> &'p Function {
        match &self.program.modules[f.module.0].module.items[f.item] {
            Item::Function(function) => function,
            _ => unreachable!("a FuncRef is made from functions alone"),
        }
    }
}
