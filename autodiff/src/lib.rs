//! Automatic differentiation as a tree-to-tree transformation (FreeTensor, section 5): the derivative is an ordinary
//! program, which is printed, scheduled, differentiated again and compiled like any other.
//!
//! | file | contents |
//! |---|---|
//! | `partials` | partial derivatives of the operators, and the conventions at points without one |
//! | `expression` | derivatives of one expression, in both modes |
//! | `activity` | activity analysis: the tensors that have an adjoint |
//! | `precision` | accumulation types of adjoints |
//! | `reverse` | the backward pass |
//! | `value_sources` | sources of forward values in the backward pass: kept tensors, tapes, recomputation |
//! | `reverse/replay` | the forward pass, and the parts of it that are recomputed |
//! | `name_subexpressions` | names for subexpressions of long expressions |
//! | `recompute_policy`, `invert` | choice of the tensors to recompute, and of those to invert |
//! | `plan`, `checkpointing` | memory budgets, and checkpoints of loops |
//! | `data`, `residuals`, `memory`, `explain` | the residuals, their size in bytes, and their table for people |
//! | `custom_vjp` | calls with a user-defined backward pass |
//! | `forward` | tangents (forward mode) |
//! | `jacobian` | dense Jacobians, by forward mode |
//! | `request`, `check` | the request for a derivative, and its refusal |
//! | `program`, `names` | interface of a gradient: seeds, results, names |
//! | `facts`, `extent` | dependence queries about the program, and bounds on trip counts |
//! | `build` | builders of statements |
//! | `copies` | zero initialisation of tensors before their snapshots |
//! | `patterns` | tapes stored in the pattern of a structured parameter |
//! | `pair` | the gradient as two programs, with the tape between them |
//! | `cleanup` | simplification of the generated gradient |
//!
//! # Names
//!
//! The adjoint of `x` is `x.grad`, its tangent `x.tangent`, the Jacobian of a result with respect to it `x.jacobian`.
//! The tape of `t` is `t.tape`. The backward copy of a loop `i` is `i~b`.

mod activity;
mod build;
mod check;
mod checkpointing;
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
mod value_sources;

pub use explain::{Excess, Explanation, Row};
pub use pair::{Pair, Source};
pub use request::{Kind, Request, Tape};

use taffeta_analysis::pass::shared_values;
use taffeta_ast::{Diagnostics, Func, Span};

/// Differentiates a program.
///
/// # Errors
///
/// `grad::…` if a parameter or a result has no derivative, a statement is not differentiable, or the number of values
/// to keep is not known. No derivative is ever assumed to be zero for lack of a rule.
pub fn differentiate(request: &Request<'_>) -> Result<Func, Diagnostics> {
    Ok(explain(request)?.0)
}

/// Differentiates a program, and explains the residuals of its backward pass. Forward mode has no residuals.
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

/// Differentiates a program into a forward and a backward program. [`Request::kind`] is not used: all results are
/// returned, and all have seeds.
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

/// Validates a generated program.
fn valid(func: &Func, span: Span) -> Result<(), Diagnostics> {
    taffeta_ast::validate::stage(func, "differentiation")
        .map_err(|d| d.at(span).note(taffeta_ast::print::func(func)).into())
}
