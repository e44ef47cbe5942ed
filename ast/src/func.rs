//! Whole programs.

use crate::stmt::{Stmt, Tensor};
use crate::symbol::Symbol;
use std::sync::Arc;

pub use same::same;

mod same;

/// Whether a parameter may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamMode {
    /// Read only.
    In,
    /// Read and written: `inout[…]`.
    InOut,
}

/// A parameter of an entry. Scalars are 0-D tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The declaration; its shape mentions sizes only.
    pub tensor: Arc<Tensor>,
    /// Whether it may be written.
    pub mode: ParamMode,
}

/// An entry after elaboration: everything inlined, every name resolved. The **logical program**.
#[derive(Clone, Debug)]
pub struct Func {
    /// The entry's name.
    pub name: String,
    /// Its docstring.
    pub doc: Option<String>,
    /// The size parameters, in the order in which they appear in the parameters' shapes. They are at least 0.
    pub sizes: Vec<Symbol>,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// The results, in order, each with the name that people see (language.md section 6). Their contents are unspecified
    /// at first; their shapes mention sizes only.
    pub results: Vec<Arc<Tensor>>,
    /// What it does.
    pub body: Stmt,
}

impl Func {
    /// This program with another body.
    #[must_use]
    pub fn with_body(&self, body: Stmt) -> Func {
        Func { body, ..self.clone() }
    }

    /// Parameters and results: what is alive in the whole body.
    pub fn interface(&self) -> impl Iterator<Item = &Arc<Tensor>> {
        self.params.iter().map(|p| &p.tensor).chain(&self.results)
    }
}
