//! Gradients, from tree to tree (FreeTensor, section 5): what comes out is an ordinary program, which is printed,
//! scheduled, differentiated again and compiled like any other.
//!
//! | file | what it holds |
//! |---|---|
//! | `partials` | the partial derivatives of the operators, and the convention where there is none |
//! | `expression` | derivatives of one expression, in both directions |
//! | `activity` | which tensors have an adjoint |
//! | `reverse` | the backward pass |
//! | `values` | how values of the forward pass come back in it: kept, on a tape, or computed again |
//! | `replay` | the forward pass, and the parts of it that run again |
//! | `named` | names for parts of long expressions |
//! | `homes`, `invert` | which tensors are computed again, and which are undone |
//! | `plan`, `segments` | a budget of memory, and checkpoints of loops |
//! | `held`, `memory`, `explain` | what is kept, as data, how many bytes that is, and as a table |
//! | `own` | calls whose backward pass the program gives itself |
//! | `forward` | tangents (forward mode) |
//! | `jacobian` | all partial derivatives, by forward mode |
//! | `program` | the interface of what comes out: seeds, results, names |
//! | `facts`, `extent` | what is asked of the program: dependences, lengths of loops |
//! | `pair` | the gradient as two programs, with the tape between them |
//! | `tidy` | makes what comes out as short as a person would write it |
//!
//! # Names
//!
//! The adjoint of `x` is `x.grad`, its tangent `x.tangent`, a result's derivatives with respect to it `x.jacobian`.
//! Values that are kept are `t.tape`. The backward copy of a loop `i` is `i~b`.

mod activity;
mod build;
mod check;
mod explain;
mod expression;
mod extent;
mod facts;
mod forward;
mod held;
mod homes;
mod invert;
mod jacobian;
pub mod memory;
mod named;
mod names;
mod own;
mod pair;
mod partials;
mod plan;
mod program;
mod replay;
mod reverse;
mod segments;
mod tidy;
mod values;

pub use explain::{Explanation, Row};
pub use held::amount;

use taffeta_ast::{Diagnostics, Func, Span};

pub use pair::{Pair, Source, differentiate_pair};

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
    pub again: bool,
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
            again: false,
            span: Span::NONE,
        }
    }

    /// Whether it is a derivative of that result.
    fn is_of(&self, result: &taffeta_ast::Tensor) -> bool {
        self.out.is_empty() || self.out.iter().any(|n| n == result.symbol.name())
    }
}

/// The derivative of a program.
///
/// # Errors
///
/// `grad::…` where a parameter or a result has no derivative, a statement cannot be differentiated, or values are
/// needed of which it is not known how many there are. Nothing is ever taken to be zero for want of something better.
pub fn differentiate(request: &Request<'_>) -> Result<Func, Diagnostics> {
    Ok(explain(request)?.0)
}

/// The derivative of a program, and what it keeps for its backward pass. Forward mode keeps nothing.
///
/// # Errors
///
/// As [`differentiate`].
pub fn explain(request: &Request<'_>) -> Result<(Func, Explanation), Diagnostics> {
    let func = &own::checked(request)?;
    let request = &Request { func, ..request.clone() };
    check::run(request)?;
    let (func, explanation) = match request.kind {
        Kind::Jvp | Kind::Jacobian => {
            let func = if request.kind == Kind::Jvp { forward::run(request)? } else { jacobian::run(request)? };
            let func = tidy::run(&func, &tidy::Made::default());
            let explanation = Explanation::nothing(&func, &request.sizes);
            plan::fits(request, &explanation.peak)?;
            (func, explanation)
        }
        _ => {
            let planned = plan::run(request, false)?;
            let explanation = Explanation::new(&planned, &request.sizes);
            (planned.func, explanation)
        }
    };
    valid(&func, request.span)?;
    Ok((func, explanation))
}

/// That what was made is a program.
fn valid(func: &Func, span: Span) -> Result<(), Diagnostics> {
    if let Err(wrong) = taffeta_ast::validate::logical(func) {
        let text = format!("{wrong:?}\n{}", taffeta_ast::print::func(func));
        debug_assert!(false, "a derivative is no valid program: {text}");
        return Err(taffeta_ast::Diagnostic::new("internal::grad", "the derivative is no valid program")
            .at(span)
            .help(
                "this is a mistake in Taffeta, not in your program; keep the program, its inputs and what was printed",
            )
            .note(text)
            .into());
    }
    Ok(())
}
