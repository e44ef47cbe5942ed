//! Request for a derivative: its kind, the program, parameters and results, and the limit of memory.

use crate::memory;
use std::collections::BTreeSet;
use std::sync::Arc;
pub use taffeta_ast::gradient::{GradientKind as Kind, Tape};
use taffeta_ast::{Func, ParamMode, Span, Tensor};

/// Request for a derivative.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Kind of the derivative.
    pub kind: Kind,
    /// Name of the new program.
    pub name: String,
    /// Program to differentiate.
    pub func: &'a Func,
    /// Parameters with respect to which the program is differentiated, in order.
    pub wrt: &'a [String],
    /// Results to differentiate; all of them if none is named.
    pub out: &'a [String],
    /// Choice of the tensors to tape.
    pub tape: Tape,
    /// Tensors for which the choice of `tape` is toggled, by [`crate::Row::choice`].
    pub flipped: BTreeSet<usize>,
    /// Limit of the bytes of the gradient's local tensors, if there is one.
    pub memory: Option<u64>,
    /// Known sizes, by name.
    pub sizes: memory::Sizes,
    /// Whether the derivative is going to be differentiated itself: it then records which of its calls have custom
    /// gradients.
    pub differentiable: bool,
    /// Position of the request in the source.
    pub span: Span,
}

impl<'a> Request<'a> {
    /// Requests a derivative of all results with the compiler's choice of residuals and no limit of memory.
    pub fn new(kind: Kind, name: impl Into<String>, func: &'a Func, wrt: &'a [String]) -> Request<'a> {
        Request {
            kind,
            name: name.into(),
            func,
            wrt,
            out: &[],
            tape: Tape::Auto,
            flipped: BTreeSet::new(),
            memory: None,
            sizes: memory::Sizes::new(),
            differentiable: false,
            span: Span::NONE,
        }
    }

    /// Returns whether the request differentiates this result.
    pub(crate) fn is_of(&self, result: &Tensor) -> bool {
        self.out.is_empty() || self.out.iter().any(|n| n == result.symbol.name())
    }
    /// Returns the parameters with respect to which the program is differentiated, in the order of the request.
    pub(crate) fn inputs(&self) -> Vec<&'a Arc<Tensor>> {
        let of = |name: &String| self.func.params.iter().map(|p| &p.tensor).find(|t| t.symbol.name() == name);
        self.wrt.iter().filter_map(of).collect()
    }
}

/// Returns the `inout` parameters that carry derivatives.
pub(crate) fn inouts(func: &Func) -> impl Iterator<Item = &Arc<Tensor>> {
    func.params.iter().filter(|p| p.mode == ParamMode::InOut && p.tensor.dtype.is_float()).map(|p| &p.tensor)
}
