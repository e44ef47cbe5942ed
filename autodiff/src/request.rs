//! What is asked for: which derivative, of which program, with respect to what, and how much memory it may take.

use crate::memory;
use std::sync::Arc;
use taffeta_ast::{Func, ParamMode, Span, Tensor};

/// Which derivative is asked for (language.md section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The gradients of the one scalar result.
    Grad,
    /// The results, and then those.
    ValueAndGrad,
    /// With a seed for every result (and for the final value of every `inout` parameter) as further parameters: the
    /// gradients.
    Vjp,
    /// The results, and then those.
    ValueAndVjp,
    /// With a tangent for every input as further parameters: the tangents of the results.
    Jvp,
    /// All partial derivatives of one result, in one tensor for every input.
    Jacobian,
}

impl Kind {
    /// As it is written in a program.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Grad => "grad",
            Kind::ValueAndGrad => "value_and_grad",
            Kind::Vjp | Kind::ValueAndVjp => "vjp",
            Kind::Jvp => "jvp",
            Kind::Jacobian => "jacobian",
        }
    }
}

/// Which values that are made in loops are kept on a tape, and which are computed again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tape {
    /// What costs less.
    #[default]
    Auto,
    /// All that can be.
    All,
    /// None that need not be.
    None,
    /// Those of these tensors.
    Named(Vec<String>),
}

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
