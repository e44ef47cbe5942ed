//! What the front end asks of gradients and schedules while it compiles: each question goes to the crate that answers
//! it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use taffeta_ast::{Diagnostic, Diagnostics, Func};
use taffeta_autodiff::memory::Sizes;
use taffeta_autodiff::{Kind, Tape};
use taffeta_frontend::{GradientKind, GradientRequest, Hooks, ScheduleRequest, TapeChoice};
use taffeta_schedule::Schedule;

/// The compiler's answers. The last schedule that ran is kept, with its steps.
#[derive(Default)]
pub(crate) struct Compiler {
    pub(crate) taken: Mutex<Option<Schedule>>,
    /// Sizes of the entry, for budgets of memory. Where they are still to come (`None`), budgets wait too.
    sizes: Option<Sizes>,
    /// Whether a budget waits.
    waits: AtomicBool,
}

impl Compiler {
    /// With the sizes that are known; `None` if they are still to come.
    pub(crate) fn new(sizes: Option<&Sizes>) -> Compiler {
        Compiler { sizes: sizes.cloned(), ..Compiler::default() }
    }

    /// Whether the program has a budget of memory that could not be kept for want of sizes.
    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }
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
        let memory = request.memory.as_deref().map(taffeta_autodiff::memory::parse).transpose();
        let memory = memory.map_err(|what| Diagnostic::new("grad::memory", what).at(request.span))?;
        let waits = memory.is_some() && self.sizes.is_none();
        self.waits.fetch_or(waits, Ordering::Relaxed);
        let memory = memory.filter(|_| !waits);
        taffeta_autodiff::differentiate(&taffeta_autodiff::Request {
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
            sizes: request.sizes,
            differentiable: request.again,
            span: request.span,
        })
    }

    fn sizes(&self) -> Sizes {
        self.sizes.clone().unwrap_or_default()
    }

    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
        crate::scheduler::run(request, &self.taken)
    }
}
