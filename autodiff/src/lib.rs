//! Gradients, from tree to tree (FreeTensor, section 5): what comes out is an ordinary program, which is printed,
//! scheduled, differentiated again and compiled like any other.
//!
//! | file | what it holds |
//! |---|---|
//! | `partials` | the partial derivatives of the operators, and the convention where there is none |
//! | `expression` | derivatives of one expression, in both directions |
//! | `activity` | which tensors have an adjoint |
//! | `precision` | in which types adjoints are collected |
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
//! | `patterns` | tapes that are stored where a structured parameter is |
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
mod cleanup;
mod copies;
mod custom_vjp;
mod data;
mod explain;
mod expression;
mod extent;
mod facts;
mod forward;
mod invert;
mod jacobian;
pub mod memory;
mod name_subexpressions;
mod names;
mod pair;
mod partials;
mod patterns;
mod plan;
mod precision;
mod program;
mod recompute_policy;
mod request;
mod residuals;
mod reverse;
mod segments;
mod values;

pub use explain::{Excess, Explanation, Row};
pub use pair::{Pair, Source};
pub use request::{Kind, Request, Tape};

use taffeta_analysis::pass::shared_values;
use taffeta_ast::{Diagnostics, Func, Span};

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
    let forward = matches!(request.kind, Kind::Jvp | Kind::Jacobian);
    let func = if forward { request.func.clone() } else { shared_values::run(request.func)? };
    let request = &Request { func: &func, ..request.clone() };
    let calls = custom_vjp::find(request)?;
    check::run(request)?;
    let (func, explanation) = match request.kind {
        Kind::Jvp | Kind::Jacobian => {
            let forward::Tangents { func, info } = match request.kind {
                Kind::Jvp => forward::run(request, &calls)?,
                _ => jacobian::run(request, &calls)?,
            };
            let func = cleanup::run(&func, &info);
            let explanation = Explanation::nothing(&func, &request.sizes);
            plan::fits(request, &explanation.peak)?;
            (func, explanation)
        }
        Kind::Grad | Kind::ValueAndGrad | Kind::Vjp | Kind::ValueAndVjp => {
            let planned = plan::run(request, &calls, false, &|planned| Ok((planned, 0)))?;
            let explanation = Explanation::new(&planned, &request.sizes);
            (planned.func, explanation)
        }
    };
    valid(&func, request.span)?;
    Ok((func, explanation))
}

/// A gradient in two passes. [`Request::kind`] is not used: all results are left, and all have seeds.
///
/// # Errors
///
/// As [`differentiate`].
pub fn differentiate_pair(request: &Request<'_>) -> Result<Pair, Diagnostics> {
    let func = shared_values::run(request.func)?;
    let request = &Request { kind: Kind::ValueAndVjp, func: &func, ..request.clone() };
    let calls = custom_vjp::find(request)?;
    check::run(request)?;
    let pair = pair::run(request, &calls)?;
    valid(&pair.forward, request.span)?;
    valid(&pair.backward, request.span)?;
    Ok(pair)
}

/// That what was made is a program.
fn valid(func: &Func, span: Span) -> Result<(), Diagnostics> {
    taffeta_ast::validate::stage(func, "differentiation")
        .map_err(|d| d.at(span).note(taffeta_ast::print::func(func)).into())
}
