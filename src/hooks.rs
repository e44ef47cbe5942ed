//! What the front end asks of gradients and schedules while it compiles: each question goes to the crate that answers it.

use weft_ast::{Diagnostics, Func};
use weft_frontend::{GradientKind, GradientRequest, Hooks, ScheduleRequest};

/// The compiler's answers.
pub(crate) struct Compiler;

impl Hooks for Compiler {
    fn gradient(&self, request: GradientRequest) -> Result<Func, Diagnostics> {
        let what = match request.kind {
            GradientKind::Grad => "grad",
            GradientKind::ValueAndGrad => "value_and_grad",
            GradientKind::Vjp => "vjp",
            GradientKind::Jvp => "jvp",
        };
        Err(weft_autodiff::not_supported(what, &request.func.name, request.span).into())
    }

    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
        Err(weft_schedule::not_supported(request.name, request.span).into())
    }
}
