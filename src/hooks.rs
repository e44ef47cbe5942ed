//! Hooks of the front end: requests for gradients go to `autodiff`, those for schedules to [`crate::scheduler`], and
//! elaborated programs are searched for reads of uninitialised elements.
use crate::tape_plan::{TapePlan, TapeRecorder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use taffeta_analysis::query::depend::Dependences;
use taffeta_analysis::query::uninitialized::{self, Element, UninitializedRead};
use taffeta_ast::{Diagnostic, Diagnostics, Func};
use taffeta_autodiff::memory::Sizes;
use taffeta_frontend::{GradientRequest, Hooks, ScheduleRequest};
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::{LazyTarget, Target};

/// Hooks of a compilation.
pub(crate) struct Compiler {
    /// Last schedule that ran, with its steps.
    pub(crate) taken: Mutex<Option<Schedule>>,
    /// Sizes of the entry, for memory budgets; `None` before they are known, when budgets are deferred.
    sizes: Option<Sizes>,
    /// Whether a memory budget was deferred, or a schedule consulted rules.
    waits: Arc<AtomicBool>,
    /// Target machine of schedule functions that consult rules.
    aim: LazyTarget,
    /// Tape plan of the gradients, and record of their tapes.
    pub(crate) keeping: TapeRecorder,
}

impl Compiler {
    /// Creates hooks for a compilation without sizes. The rules' target is a placeholder, whose use is recorded.
    pub(crate) fn unsized_yet() -> Compiler {
        let waits = Arc::new(AtomicBool::new(false));
        let asked = waits.clone();
        let aim = LazyTarget::at(move || {
            asked.store(true, Ordering::Relaxed);
            Target::portable(1)
        });
        Compiler { taken: Mutex::default(), sizes: None, waits, aim, keeping: TapeRecorder::default() }
    }

    /// Creates hooks for a target machine and known sizes.
    pub(crate) fn aimed_at(aim: LazyTarget, sizes: &Sizes) -> Compiler {
        Compiler { sizes: Some(sizes.clone()), aim, ..Compiler::unsized_yet() }
    }

    /// Sets the tape plan of the gradients.
    pub(crate) fn keeping(self, plan: &TapePlan) -> Compiler {
        Compiler { keeping: TapeRecorder::new(plan), ..self }
    }

    /// Returns whether the program depends on sizes yet unknown: by a deferred memory budget, or by a schedule that
    /// consults rules.
    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }
}

impl Hooks for Compiler {
    fn gradient(&self, request: GradientRequest) -> Result<Func, Diagnostics> {
        let memory = request.memory.as_deref().map(taffeta_ast::bytes::parse).transpose();
        let memory = memory.map_err(|what| Diagnostic::new("grad::memory", what).at(request.span))?;
        let waits = memory.is_some() && self.sizes.is_none();
        self.waits.fetch_or(waits, Ordering::Relaxed);
        let memory = memory.filter(|_| !waits);
        let (func, _) = self.keeping.explained(taffeta_autodiff::Request {
            out: &request.out,
            tape: request.tape,
            memory,
            sizes: request.sizes,
            differentiable: request.again,
            span: request.span,
            ..taffeta_autodiff::Request::new(request.kind, request.name, &request.func, &request.wrt)
        })?;
        Ok(func)
    }

    fn sizes(&self) -> Sizes {
        self.sizes.clone().unwrap_or_default()
    }

    fn examine(&self, func: &Func) -> Vec<Diagnostic> {
        // The diagnostics were reported when the program was compiled with `autodiff`'s own plan.
        if self.keeping.overrides_default() {
            return Vec::new();
        }
        let dependences = Dependences::new(func);
        let reads = uninitialized::reads(&dependences);
        let known = |e: &Element| reads.iter().any(|r| r.tensor == e.tensor);
        let elements = uninitialized::elements(&dependences).into_iter().filter(|e| !known(e));
        let elements: Vec<Diagnostic> = elements.map(|found| element_diagnostic(&found, func)).collect();
        reads.iter().map(|found| unwritten_diagnostic(found, func)).chain(elements).collect()
    }

    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
        crate::scheduler::run(request, self.aim.clone(), &self.taken)
    }
}

/// Creates the error for a read of uninitialised elements, at the user's call if the library reads them.
fn unwritten_diagnostic(found: &UninitializedRead, func: &Func) -> Diagnostic {
    let (name, origin) = (found.tensor.name(), found.read.origin());
    let message = if found.written {
        format!("`{name}` is read here, but these elements are not written before")
    } else {
        format!("`{name}` is read here, but never written")
    };
    let d = Diagnostic::new("value::unwritten", message);
    let d = match origin.chain().first() {
        Some(call) => d.at(call.span).label(origin.span(), format!("`{name}` is read here")),
        None => d.at(origin.span()),
    };
    let d = d.label(found.declared, "declared here without values");
    d.help(format!("write its elements first, or declare it by `zeros` in `{}`", func.name))
}

/// Creates the warning for a single uninitialised element; not an error, since the sizes in question may never occur.
fn element_diagnostic(found: &Element, func: &Func) -> Diagnostic {
    let name = found.tensor.name();
    let indices: Vec<String> = found.indices.iter().map(i64::to_string).collect();
    let element = if indices.is_empty() { name.to_string() } else { format!("{name}[{}]", indices.join(", ")) };
    let sizes: Vec<String> = found.sizes.iter().map(|(s, n)| format!("{} = {n}", s.name())).collect();
    let with = if sizes.is_empty() { String::new() } else { format!(" with {}", sizes.join(", ")) };
    let message = match found.read {
        Some(_) => format!("`{element}` is read here{with}, but never written"),
        None => format!("`{element}` is returned{with}, but never written"),
    };
    let d = Diagnostic::warning("value::unwritten", message);
    let at = found.read.as_ref().unwrap_or(&found.write).origin();
    let d = match at.chain().first() {
        Some(call) => d.at(call.span),
        None => d.at(at.span()),
    };
    let unless = if sizes.is_empty() { "" } else { ", or exclude these sizes by `assert`" };
    let d = match found.read {
        Some(_) => d.label(found.write.origin().span(), format!("`{name}` is written here")),
        None => d,
    };
    d.help(format!("write it or declare `{name}` by `zeros` in `{}`{unless}", func.name))
}
