//! Logical programs: the interface of an entry (sizes, parameters, results), its body, and its calls with user-defined
//! backward passes.

use crate::dtype::DType;
use crate::expr::Expr;
use crate::span::Span;
use crate::stmt::{Stmt, StmtId, Tensor};
use crate::symbol::Symbol;
use std::sync::Arc;

pub use same::same;

mod same;

/// Access mode of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamMode {
    /// Read only.
    In,
    /// Read and written: `inout[…]`.
    InOut,
}

/// Parameter of an entry. Scalars are 0-D tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Declaration; its shape mentions sizes only.
    pub tensor: Arc<Tensor>,
    /// Access mode.
    pub mode: ParamMode,
}

/// Entry after elaboration, with all calls inlined and all names resolved: the **logical program**.
#[derive(Clone, Debug)]
pub struct Func {
    /// Name of the entry.
    pub name: String,
    /// Docstring.
    pub doc: Option<String>,
    /// Size parameters, in order of appearance in the parameters' shapes. Sizes are at least 0.
    pub sizes: Vec<Symbol>,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// Results, in order, each with its user-visible name (language.md section 6). Their initial contents are
    /// unspecified; their shapes mention sizes only.
    pub results: Vec<Arc<Tensor>>,
    /// Flat arrays that declarations in the body make for the caller, in order (by structured lowering alone). They
    /// have the role of results; at the end of their scope the caller gets them, as long as they are then.
    pub made: Vec<Arc<Tensor>>,
    /// Statements of the program.
    pub body: Stmt,
    /// Calls with a user-defined backward pass; elaboration records them in programs that will be differentiated.
    pub custom_vjps: Vec<CustomVjp>,
    /// Whether transformations must keep the order of floating-point sums and products: reductions into one element do
    /// not commute then. Set while rules choose a schedule for strict floats; the meaning of the program does not
    /// depend on it.
    pub keeps_order: bool,
}

/// Call of a function with a user-defined backward pass (`@gradient(f)`), in a program that will be differentiated.
///
/// The call's body reads its arguments and is the only writer of its results: the arguments are copies made before the
/// call, and later writes to the results go to copies of them.
#[derive(Clone, Debug)]
pub struct CustomVjp {
    /// Name of the function.
    pub function: String,
    /// Location of the call.
    pub span: Span,
    /// Statements of the call's body, without declarations and blocks.
    pub body: Vec<StmtId>,
    /// Arguments, in the order of the function's parameters.
    pub args: Vec<SubTensor>,
    /// Results, in order.
    pub results: Vec<SubTensor>,
    /// User-defined backward pass, which writes no parameter.
    pub backward: Arc<Func>,
    /// Meaning of each parameter of the backward pass.
    pub takes: Vec<Takes>,
    /// For each result of the backward pass, the number of the argument whose gradient it is.
    pub gives: Vec<usize>,
    /// Sizes of the backward pass, as expressions of the program around the call.
    pub sizes: Vec<Expr>,
}

/// Tensor, or the subtensor at some leading indices.
#[derive(Clone, Debug)]
pub struct SubTensor {
    /// Tensor.
    pub tensor: Symbol,
    /// Leading indices.
    pub at: Vec<Expr>,
    /// Element type.
    pub dtype: DType,
}

/// Meaning of a parameter of a backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Argument of that number, with its value at the call.
    Argument(usize),
    /// Result of that number, with its value on return.
    Result(usize),
    /// Seed of the result of that number.
    Seed(usize),
}

impl Func {
    /// Returns this program with another body.
    #[must_use]
    pub fn with_body(&self, body: Stmt) -> Func {
        Func { body, ..self.clone() }
    }

    /// Returns parameters and results: the tensors that are alive in the whole body.
    pub fn interface(&self) -> impl Iterator<Item = &Arc<Tensor>> {
        self.params.iter().map(|p| &p.tensor).chain(&self.results)
    }

    /// Returns whether the program assembles a tensor: a result or a local tensor with a pattern of its own, other than
    /// a workspace.
    pub fn assembles(&self, tensor: &Tensor) -> bool {
        let pattern = tensor.format.pattern;
        let follows = pattern.is_some() && self.params.iter().any(|p| p.tensor.format.pattern == pattern);
        !(tensor.format.is_dense() || follows || tensor.role.is_local() && tensor.format.inserts())
    }

    /// Returns whether any tensor, local ones included, has a format that is not dense.
    pub fn is_structured(&self) -> bool {
        self.interface().any(|t| !t.format.is_dense()) || self.body.declares_structured()
    }
}
