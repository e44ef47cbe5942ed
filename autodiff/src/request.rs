//! What is asked for: which derivative, of which program, with respect to what, and how much memory it may take.

use crate::memory;
use std::collections::BTreeSet;
use std::sync::Arc;
pub use taffeta_ast::gradient::{GradientKind as Kind, Tape};
use taffeta_ast::{Func, ParamMode, Span, Tensor};

/// A derivative that is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Which one.
    pub kind: Kind,
    /// What the new program is called.
    pub name: String,
    /// The program that is differentiated.
    pub func: &'a Func,
    /// The parameters with respect to which it is differentiated, in order.
    pub wrt: &'a [String],
    /// The results that it is of; all of them if none is named.
    pub out: &'a [String],
    /// What is kept.
    pub tape: Tape,
    /// Tensors with which it is the other way round than `tape` has it, by [`crate::Row::choice`].
    pub flipped: BTreeSet<usize>,
    /// Bytes that the local tensors of the gradient may take, if there is a limit.
    pub memory: Option<u64>,
    /// Sizes that are known, by name.
    pub sizes: memory::Sizes,
    /// Whether what comes out is going to be differentiated itself: then it says which calls in it have their own
    /// gradients.
    pub differentiable: bool,
    /// Where it is asked for.
    pub span: Span,
}

impl<'a> Request<'a> {
    /// A derivative of all results as the compiler thinks best: what is kept is its choice, and there is no limit of
    /// memory.
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

    /// Whether it is a derivative of that result.
    pub(crate) fn is_of(&self, result: &Tensor) -> bool {
        self.out.is_empty() || self.out.iter().any(|n| n == result.symbol.name())
    }
    /// The parameters with respect to which it is differentiated, in the order of the request.
    pub(crate) fn inputs(&self) -> Vec<&'a Arc<Tensor>> {
        let of = |name: &String| self.func.params.iter().map(|p| &p.tensor).find(|t| t.symbol.name() == name);
        self.wrt.iter().filter_map(of).collect()
    }
}

/// The `inout` parameters that carry derivatives.
pub(crate) fn inouts(func: &Func) -> impl Iterator<Item = &Arc<Tensor>> {
    func.params.iter().filter(|p| p.mode == ParamMode::InOut && p.tensor.dtype.is_float()).map(|p| &p.tensor)
}
