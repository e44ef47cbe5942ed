//! What the front end asks of gradients and schedules while it compiles: each question goes to the crate that answers it.

use std::sync::Mutex;
use weft_ast::{Diagnostic, Diagnostics, Func};
use weft_autodiff::{Kind, Tape};
use weft_frontend::{GradientKind, GradientRequest, Hooks, ScheduleRequest, TapeChoice};
use weft_schedule::Schedule;

/// The compiler's answers. The last schedule that ran is kept, with its steps.
#[derive(Default)]
pub(crate) struct Compiler {
    pub(crate) taken: Mutex<Option<Schedule>>,
}

impl Hooks for Compiler {
    fn gradient(&self, request: GradientRequest) -> Result<Func, Diagnostics> {
        let kind = match request.kind {
            GradientKind::Grad => Kind::Grad,
            GradientKind::ValueAndGrad => Kind::ValueAndGrad,
            GradientKind::Vjp => Kind::Vjp,
            GradientKind::Jvp => Kind::Jvp,
            GradientKind::Jacobian => Kind::Jacobian,
        };
        let memory = request.memory.as_deref().map(weft_autodiff::memory::parse).transpose();
        let memory = memory.map_err(|what| Diagnostic::new("grad::memory", what).at(request.span))?;
        weft_autodiff::differentiate(&weft_autodiff::Request {
            kind,
            name: request.name,
            func: &request.func,
            wrt: &request.wrt,
            out: &request.out,
            tape: match request.tape {
                TapeChoice::Auto => Tape::Auto,
                TapeChoice::All => Tape::All,
                TapeChoice::None => Tape::None,
                TapeChoice::Named(names) => Tape::Named(names),
            },
            memory,
            // What a size of this function is called where it is used, only the caller knows.
            sizes: Default::default(),
            span: request.span,
        })
    }

    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
        crate::scheduler::run(request, &self.taken)
    }
}
