//! What the front end asks of gradients and schedules while it compiles: each question goes to the crate that answers
//! it.

use crate::materialise::{Keeping, Way};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use taffeta_analysis::query::depend::Dependences;
use taffeta_analysis::query::unwritten::{self, Element, Unwritten};
use taffeta_ast::{Diagnostic, Diagnostics, Func};
use taffeta_autodiff::memory::Sizes;
use taffeta_frontend::{GradientRequest, Hooks, ScheduleRequest};
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::{Aim, Target};

/// The compiler's answers. The last schedule that ran is kept, with its steps.
pub(crate) struct Compiler {
    pub(crate) taken: Mutex<Option<Schedule>>,
    /// Sizes of the entry, for budgets of memory. Where they are still to come (`None`), budgets wait too.
    sizes: Option<Sizes>,
    /// Whether a budget waits, or a schedule that asks rules.
    waits: Arc<AtomicBool>,
    /// The machine that schedule functions choose for where they ask rules.
    aim: Aim,
    /// What gradients keep.
    pub(crate) keeping: Keeping,
}

impl Compiler {
    /// Before sizes are known. What rules choose for is not known either.
    pub(crate) fn unsized_yet() -> Compiler {
        let waits = Arc::new(AtomicBool::new(false));
        let asked = waits.clone();
        let aim = Aim::at(move || {
            asked.store(true, Ordering::Relaxed);
            Target::portable(1)
        });
        Compiler { taken: Mutex::default(), sizes: None, waits, aim, keeping: Keeping::default() }
    }

    /// With the sizes that are known, for a machine.
    pub(crate) fn aimed_at(aim: Aim, sizes: &Sizes) -> Compiler {
        Compiler { sizes: Some(sizes.clone()), aim, ..Compiler::unsized_yet() }
    }

    /// With gradients that keep what is said.
    pub(crate) fn keeping(self, way: &Way) -> Compiler {
        Compiler { keeping: Keeping::new(way), ..self }
    }

    /// Whether the program has a budget of memory that could not be kept for want of sizes, or a schedule whose choices
    /// depend on them.
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
        // What is wrong with a program was said when it was made as `autodiff` would.
        if self.keeping.is_another_way() {
            return Vec::new();
        }
        let dependences = Dependences::new(func);
        let reads = unwritten::reads(&dependences);
        let known = |e: &Element| reads.iter().any(|r| r.tensor == e.tensor);
        let elements = unwritten::elements(&dependences).into_iter().filter(|e| !known(e));
        let elements: Vec<Diagnostic> = elements.map(|found| element_diagnostic(&found, func)).collect();
        reads.iter().map(|found| unwritten_diagnostic(found, func)).chain(elements).collect()
    }

    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
        crate::scheduler::run(request, self.aim.clone(), &self.taken)
    }
}

/// What is said of a read of elements that nothing has written: at the user's call, where the library reads them.
fn unwritten_diagnostic(found: &Unwritten, func: &Func) -> Diagnostic {
    let (name, origin) = (found.tensor.name(), found.read.origin());
    let message = if found.written {
        format!("`{name}` is read here, and nothing can have written these elements before")
    } else {
        format!("`{name}` is read here, and nothing writes it")
    };
    let d = Diagnostic::new("value::unwritten", message);
    let d = match origin.chain().first() {
        Some(call) => d.at(call.span).label(origin.span(), format!("`{name}` is read here")),
        None => d.at(origin.span()),
    };
    let d = d.label(found.declared, "it is declared here, without values");
    d.help(format!("write its elements first, or begin with `zeros` where `{}` declares it", func.name))
}

/// What is said of a single element that nothing writes: a warning, since the sizes may be ones that nobody uses.
fn element_diagnostic(found: &Element, func: &Func) -> Diagnostic {
    let name = found.tensor.name();
    let indices: Vec<String> = found.indices.iter().map(i64::to_string).collect();
    let element = if indices.is_empty() { name.to_string() } else { format!("{name}[{}]", indices.join(", ")) };
    let sizes: Vec<String> = found.sizes.iter().map(|(s, n)| format!("{} = {n}", s.name())).collect();
    let with = if sizes.is_empty() { String::new() } else { format!(" with {}", sizes.join(", ")) };
    let message = match found.read {
        Some(_) => format!("`{element}` is read here{with}, and nothing writes it"),
        None => format!("`{element}` is returned{with}, and nothing writes it"),
    };
    let d = Diagnostic::warning("value::unwritten", message);
    let at = found.read.as_ref().unwrap_or(&found.write).origin();
    let d = match at.chain().first() {
        Some(call) => d.at(call.span),
        None => d.at(at.span()),
    };
    let unless = if sizes.is_empty() { "" } else { ", or `assert` what excludes these sizes" };
    let d = match found.read {
        Some(_) => d.label(found.write.origin().span(), format!("`{name}` is written here")),
        None => d,
    };
    d.help(format!("write it, begin with `zeros` where `{}` declares `{name}`{unless}", func.name))
}
