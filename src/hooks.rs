//! What the front end asks of gradients and schedules while it compiles: each question goes to the crate that answers it.

use std::sync::Mutex;
use weft_ast::{Diagnostics, Func};
use weft_frontend::{GradientKind, GradientRequest, Hooks, ScheduleRequest};
use weft_schedule::Schedule;

/// The compiler's answers. The last schedule that ran is kept, with its steps.
#[derive(Default)]
pub(crate) struct Compiler {
    pub(crate) taken: Mutex<Option<Schedule>>,
}

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
        crate::scheduler::run(request, &self.taken)
    }
}
