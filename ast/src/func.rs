//! Whole programs.

use crate::dtype::DType;
use crate::expr::Expr;
use crate::span::Span;
use crate::stmt::{Stmt, StmtId, Tensor};
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
    /// The results, in order, each with the name that people see (language.md section 6). Their contents are
    /// unspecified at first; their shapes mention sizes only.
    pub results: Vec<Arc<Tensor>>,
    /// What it does.
    pub body: Stmt,
    /// Calls whose backward pass the program gives itself; elaboration notes them for programs that are going to be
    /// differentiated.
    pub custom_vjps: Vec<CustomVjp>,
    /// Whether what is done to the program must leave sums and products of floats in the order in which it computes
    /// them: reductions into one element do not commute then. It is set while rules choose a schedule for strict
    /// floats, and says nothing about what the program means.
    pub keeps_order: bool,
}

/// A call of a function whose backward pass the program gives itself (`@gradient(f)`), in a program that is going to be
/// differentiated.
///
/// The call's body reads its arguments and writes its results, which nothing else writes and nothing writes again: the
/// arguments are copies made before it, and what happens to the results later happens to copies of them.
#[derive(Clone, Debug)]
pub struct CustomVjp {
    /// The function.
    pub function: String,
    /// The call.
    pub span: Span,
    /// The statements of its body, but for declarations and blocks.
    pub body: Vec<StmtId>,
    /// The arguments, in the order of the function's parameters.
    pub args: Vec<SubTensor>,
    /// The results, in order.
    pub results: Vec<SubTensor>,
    /// The user's backward pass. It writes no parameter.
    pub backward: Arc<Func>,
    /// What each parameter of the backward pass is.
    pub takes: Vec<Takes>,
    /// The numbers of the arguments that each result of the backward pass is the gradient of.
    pub gives: Vec<usize>,
    /// The sizes of the backward pass, in terms of the program around the call.
    pub sizes: Vec<Expr>,
}

/// A tensor, or the part of one that begins with these indices.
#[derive(Clone, Debug)]
pub struct SubTensor {
    /// The tensor.
    pub tensor: Symbol,
    /// Its first indices.
    pub at: Vec<Expr>,
    /// The type of its elements.
    pub dtype: DType,
}

/// What a parameter of a backward pass is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The argument of that number, as it was when the function was called.
    Argument(usize),
    /// The result of that number, as the function left it.
    Result(usize),
    /// The seed of the result of that number.
    Seed(usize),
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

    /// Whether a tensor of the program is stored in a format that is not dense, be it one that only the body declares.
    pub fn is_structured(&self) -> bool {
        self.interface().any(|t| !t.format.is_dense()) || self.body.declares_structured()
    }
}
