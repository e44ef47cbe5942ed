//! Compilation pipeline from a file to C, stage by stage. The order of the stages is written in this file only.
//!
//! ```text
//!  .ft ── parse ──▶ syntax ── logical ──▶ Func ── lowered ──▶ Lowered ── c ──▶ CSource ──▶ (store: compile, load, call)
//! ```

use crate::automatic;
use crate::hooks::Compiler;
use crate::inlined;
use crate::options::{self, Gradient, Mode, Options};
use crate::scheduler;
use crate::tape_plan::{self, TapePlan, TapeRecorder};
use crate::timing::Timings;
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_analysis::pass;
use taffeta_ast::format::{Format, Level};
use taffeta_ast::{DType, Diagnostic, Diagnostics, Expr, ExprKind, Func, Severity, SourceMap, Tensor, validate};
use taffeta_autodiff::Explanation;
use taffeta_autodiff::memory::Sizes;
use taffeta_codegen::c::CSource;
use taffeta_codegen::lower::{Logical, LogicalLevel};
use taffeta_codegen::signature::Signature;
use taffeta_codegen::{LowerOptions, Lowered};
use taffeta_frontend::StaticValue;
use taffeta_frontend::program::{Program, Source};
use taffeta_schedule::Schedule;
use taffeta_structured::{Layout, LevelLayout, Structured};

/// Parses a program and the files that it imports.
///
/// Why first: every later stage depends on the set of files, cache keys included. Syntax errors do not stop here:
/// [`logical`] and [`check`] report them all together.
pub fn parse(main: Source, timings: &mut Timings) -> Program {
    timings.measure("parse", || Program::load(main, &crate::loader::Files))
}

/// Elaborates the logical program of an entry: its dense meaning, independent of storage and schedule.
///
/// Why before any stage that knows the target: calls are inlined and static values substituted, so that every later
/// stage sees only loops and scalars. Gradients and schedules belong here, where accesses are still affine and
/// provable; the front end requests them through its hooks. `None` and `"none"` yield the program as written; so does
/// `"auto"`, which [`chosen`] handles.
pub fn logical(program: &Program, entry: &str, options: &Options, timings: &mut Timings) -> Result<Func, Diagnostics> {
    Ok(scheduled(program, entry, options, timings)?.into_func())
}

/// Elaborates the logical program (of a gradient, its original program) independent of sizes, and returns whether sizes
/// yet unknown affect the program: through memory budgets, schedules that consult rules, or tapes that rules choose.
/// Parameters and results are those of [`logical`].
pub fn unsized_logical(
    program: &Program,
    entry: &str,
    options: &Options,
    timings: &mut Timings,
) -> Result<(Func, bool), Diagnostics> {
    let compiler = Compiler::unsized_yet();
    let func = match options.gradient {
        Some(_) => noted(&compiler, program, entry, options, timings)?,
        None => by(&compiler, program, entry, options, timings)?.into_func(),
    };
    // Tapes of gradients are chosen together with their schedules.
    let open = tape_plan::chooses_tapes(options) && !compiler.keeping.found().is_empty();
    Ok((func, compiler.waits() || open))
}

/// Elaborates the logical program under a tape plan, and explains the tapes of gradients without a given tape.
pub(crate) fn logical_with_plan(
    program: &Program,
    entry: &str,
    options: &Options,
    plan: &TapePlan,
    timings: &mut Timings,
) -> Result<(Func, Vec<Explanation>), Diagnostics> {
    let compiler = Compiler::aimed_at(automatic::aim(options)?, &options.sizes).keeping(plan);
    let func = by(&compiler, program, entry, options, timings)?.into_func();
    Ok((func, compiler.keeping.found()))
}

/// Elaborates the logical program with the steps of its schedule: none, those of a schedule function of the file, or
/// those of a trace (a file whose name ends in `.json`).
pub fn scheduled(
    program: &Program,
    entry: &str,
    options: &Options,
    timings: &mut Timings,
) -> Result<Schedule, Diagnostics> {
    by(&Compiler::aimed_at(automatic::aim(options)?, &options.sizes), program, entry, options, timings)
}

/// Elaborates the logical program with the steps of its schedule, as [`scheduled`] does, on the given hooks.
fn by(
    compiler: &Compiler,
    program: &Program,
    entry: &str,
    options: &Options,
    timings: &mut Timings,
) -> Result<Schedule, Diagnostics> {
    let (schedule, statics) = (options.schedule.as_deref(), &options.statics);
    let plain = |timings: &mut Timings| -> Result<Func, Diagnostics> {
        let func = timings.measure("elaborate", || program.elaborate(entry, statics, compiler))?;
        valid(&func, "elaboration")?;
        Ok(func)
    };
    match schedule {
        None | Some("none" | options::AUTO) => Ok(Schedule::new(inlined(plain(timings)?, options.strict_floats)?)),
        Some(file) if scheduler::is_trace(file) => {
            let func = plain(timings)?;
            let schedule = timings.measure("schedule", || on_large_stack(|| scheduler::replay(file, func)))?;
            valid(schedule.func(), "a schedule")?;
            Ok(schedule)
        }
        Some(name) => {
            let func =
                timings.measure("schedule", || on_large_stack(|| program.scheduled(entry, name, statics, compiler)))?;
            valid(&func, "a schedule")?;
            let taken = compiler.taken.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            Ok(taken.unwrap_or_else(|| Schedule::new(func)))
        }
    }
}

/// Inlines array expressions over structured tensors into their readers.
///
/// Why before any stage that reads formats, and not during structured lowering: gradients, rules and both backends then
/// see the same program. A scheduled program inlines explicitly.
fn inlined(func: Func, strict_floats: bool) -> Result<Func, Diagnostics> {
    if !func.is_structured() {
        return Ok(func);
    }
    on_large_stack(|| Ok(inlined::inlined(func, strict_floats)))
}

/// Schedules a program by rules for this machine.
///
/// Why after differentiation, if any: the reads and tapes of the gradient affect the choices of the rules.
pub fn automatic(func: Func, options: &Options, timings: &mut Timings) -> Result<Schedule, Diagnostics> {
    timings.measure("schedule", || on_large_stack(|| by_rules(pass::stop_gradient::run(&func), options)))
}

/// Applies the automatic rules to a program. If the result cannot be lowered, as when checks or searches remain in a
/// vectorised loop, the rules run again without `auto_vectorize`; if that fails too, the program runs as written.
fn by_rules(func: Func, options: &Options) -> Result<Schedule, Diagnostics> {
    let plain = Schedule::new(func).lowered_by(scheduler::lowers).aimed_at(automatic::aim(options)?);
    let without_vectors = || taffeta_schedule::auto::rules().map(|r| r.method).filter(|r| *r != "auto_vectorize");
    let mut wrong = None;
    for rules in [vec![options::AUTO], without_vectors().collect()] {
        let mut schedule = plain.clone();
        for rule in rules {
            // A refused rule leaves the program unchanged.
            if let Err(r) = schedule.call(rule, &[]) {
                tracing::debug!("`{rule}` is refused: {}", r.message);
            }
        }
        match unfit(&schedule, options) {
            None => return Ok(schedule),
            Some(why) => {
                tracing::debug!("cannot run `{}` with the schedule of the rules: {why}", plain.func().name);
                wrong = Some(why);
            }
        }
    }
    // An error of the program itself is left to the caller, who lowers the plain program.
    if let Some(why) = wrong.filter(|_| can_be_lowered(&plain, options).is_ok()) {
        tracing::warn!("`{}` runs as written, without a schedule: {why}", plain.func().name);
    }
    Ok(plain)
}

/// Returns the errors that keep an automatically scheduled program from being lowered, if any.
fn unfit(schedule: &Schedule, options: &Options) -> Option<Diagnostics> {
    if schedule.trace().steps.is_empty() {
        return None;
    }
    let valid = taffeta_ast::validate::stage(schedule.func(), "an automatic schedule").map_err(Diagnostics::from);
    valid.and_then(|()| can_be_lowered(schedule, options)).err()
}

fn can_be_lowered(schedule: &Schedule, options: &Options) -> Result<(), Diagnostics> {
    lowered(schedule.func(), options, &mut Timings::default()).map(drop)
}

/// Schedules the logical program, or its gradient, by rules if `options` ask for an automatic schedule.
pub fn chosen(func: Func, options: &Options, timings: &mut Timings) -> Result<Func, Diagnostics> {
    match automatic::is_automatic(options) {
        true => Ok(automatic(func, options, timings)?.into_func()),
        false => Ok(func),
    }
}

/// Elaborates the logical program of an entry for differentiation, recording the calls with user-defined backward
/// passes.
///
/// # Errors
///
/// Errors of the entry; a schedule in the presence of such calls, which it might take apart.
pub fn differentiable(
    program: &Program,
    entry: &str,
    options: &Options,
    timings: &mut Timings,
) -> Result<Func, Diagnostics> {
    noted(&Compiler::aimed_at(automatic::aim(options)?, &options.sizes), program, entry, options, timings)
}

/// Elaborates the logical program for differentiation, as [`differentiable`] does, on the given hooks.
fn noted(
    compiler: &Compiler,
    program: &Program,
    entry: &str,
    options: &Options,
    timings: &mut Timings,
) -> Result<Func, Diagnostics> {
    let noted = |timings: &mut Timings, statics: &BTreeMap<String, StaticValue>| -> Result<Func, Diagnostics> {
        let func = timings.measure("elaborate", || program.differentiable(entry, statics, compiler))?;
        valid(&func, "elaboration")?;
        Ok(func)
    };
    let statics = &options.statics;
    // An automatic schedule applies to the gradient.
    if matches!(options.schedule.as_deref(), None | Some("none" | options::AUTO)) {
        return inlined(noted(timings, statics)?, options.strict_floats);
    }
    let func = by(compiler, program, entry, options, timings)?.into_func();
    if !program.has_custom_vjps() {
        return Ok(func);
    }
    // Static parameters include those of the schedule.
    let info = program.entries().into_iter().find(|e| e.name == entry);
    let params: Vec<String> = info.into_iter().flat_map(|e| e.params).filter(|p| p.is_static).map(|p| p.name).collect();
    let of_entry = statics.iter().filter(|(k, _)| params.contains(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
    match noted(timings, &of_entry)?.custom_vjps.first() {
        None => Ok(func),
        Some(call) => {
            let message =
                format!("cannot apply a schedule before differentiation: `{}` has its own gradient", call.function);
            let d = Diagnostic::new("gradient::schedule", message).at(call.span);
            Err(d.help("define `dloss = grad(loss)`, and schedule `dloss`").into())
        }
    }
}

/// Sets the types of index arrays of parameters whose formats specify none.
///
/// Why on the logical program: the type is part of the format, which every later stage reads there.
pub fn indexed(mut func: Func, indices: &BTreeMap<String, DType>) -> Result<Func, Diagnostics> {
    for (name, dtype) in indices {
        let Some(param) = func.params.iter_mut().find(|p| p.tensor.symbol.name() == name) else {
            return Err(wrong_index(format!("`{}` has no parameter `{name}`", func.name)));
        };
        if param.tensor.format.is_dense() {
            return Err(wrong_index(format!("parameter `{name}` is dense, so it has no index arrays")));
        }
        if !matches!(dtype, DType::U8 | DType::U16 | DType::I32 | DType::I64) {
            return Err(wrong_index(format!("expected index arrays of type u8, u16, i32 or i64, found {dtype}")));
        }
        let level = |l: &Level| Level { index: l.index.or(l.kind.has_indices().then_some(*dtype)), ..*l };
        let format =
            Format { levels: param.tensor.format.levels.iter().map(level).collect(), ..param.tensor.format.clone() };
        param.tensor = Arc::new(Tensor { format, ..(*param.tensor).clone() });
    }
    Ok(func)
}

fn wrong_index(text: String) -> Diagnostics {
    Diagnostic::new("input::index", text).into()
}

/// Derives the gradient of a logical program, or its tangents.
///
/// Why after the schedule: a schedule applies to the program as written, and its changes to the loops remain in the
/// forward pass. A gradient that the program itself defines (`dloss = grad(loss)`) is an entry, with schedules of its
/// own.
pub fn gradient(
    func: &Func,
    gradient: &Gradient,
    sizes: &Sizes,
    timings: &mut Timings,
) -> Result<(Func, Explanation), Diagnostics> {
    gradient_with_plan(func, gradient, sizes, &TapeRecorder::default(), timings)
}

/// Derives the gradient of a logical program under a tape plan.
pub(crate) fn gradient_with_plan(
    func: &Func,
    gradient: &Gradient,
    sizes: &Sizes,
    keeping: &TapeRecorder,
    timings: &mut Timings,
) -> Result<(Func, Explanation), Diagnostics> {
    let kind = match gradient.mode {
        Mode::Reverse => taffeta_autodiff::Kind::ValueAndVjp,
        Mode::Forward => taffeta_autodiff::Kind::Jvp,
    };
    let wrt = wrt(func, gradient);
    let request = request(func, gradient, sizes, kind, &wrt);
    timings.measure("differentiate", || on_large_stack(|| keeping.explained(request)))
}

/// Derives a gradient as two programs: a forward pass that produces the tape, and a backward pass that consumes it.
///
/// Why split one derivation, and not derive each program separately: the tape is planned once, for both.
pub(crate) fn pair(
    func: &Func,
    gradient: &Gradient,
    sizes: &Sizes,
    keeping: &TapeRecorder,
    timings: &mut Timings,
) -> Result<taffeta_autodiff::Pair, Diagnostics> {
    let wrt = wrt(func, gradient);
    let request = request(func, gradient, sizes, taffeta_autodiff::Kind::ValueAndVjp, &wrt);
    timings.measure("differentiate", || on_large_stack(|| keeping.pair(request)))
}

/// Returns the parameters to differentiate by: all floating-point ones if none is named.
fn wrt(func: &Func, gradient: &Gradient) -> Vec<String> {
    let floats = func.params.iter().filter(|p| p.tensor.dtype.is_float()).map(|p| p.tensor.symbol.name().to_string());
    if gradient.wrt.is_empty() { floats.collect() } else { gradient.wrt.clone() }
}

fn request<'a>(
    func: &'a Func,
    gradient: &Gradient,
    sizes: &Sizes,
    kind: taffeta_autodiff::Kind,
    wrt: &'a [String],
) -> taffeta_autodiff::Request<'a> {
    taffeta_autodiff::Request {
        tape: gradient.tape.clone(),
        memory: gradient.memory,
        sizes: sizes.iter().chain(&gradient.values).map(|(n, v)| (n.clone(), *v)).collect(),
        ..taffeta_autodiff::Request::new(kind, func.name.clone(), func, wrt)
    }
}

/// Adds assertions that stop the program at a statement that yields NaN or infinity.
///
/// Why after schedules and gradients, and before lowering: the checks apply to the program that runs, and are
/// assertions like any others.
pub fn check_finite(func: &Func) -> Func {
    pass::check_finite::run(func)
}

/// Lowers a program to flat buffers, with all remaining checks.
pub fn lowered(func: &Func, options: &Options, timings: &mut Timings) -> Result<Lowered, Diagnostics> {
    let sizes = options.sizes.iter().map(|(k, v)| (k.clone(), *v)).collect();
    let strict = options.strict_floats;
    let options = LowerOptions { sizes, vector_bytes: taffeta_codegen::lower::vector_bytes(options.portable) };
    timings.measure("lower", || {
        on_large_stack(|| {
            // No differentiation follows, and `stop_gradient` would only hide operands.
            let whole = pass::stop_gradient::run(func);
            // Specialise next: every known size makes more conditions decidable.
            let func = taffeta_codegen::lower::specialise(&whole, &options.sizes)?;
            // Simplify next: decided conditions vanish, and checks are inserted for the remaining code only.
            validate::pass(&func, "specialise")?;
            let func = pass::simplify::run(&func);
            // Structured lowering precedes bounds checks, since elements that the storage skips raise no errors.
            if !func.is_structured() {
                // Lowering to flat buffers comes last: without dimensions, nothing can be proved about indices.
                return taffeta_codegen::lower(&func, &options);
            }
            let signature = Signature::of(&func, &options.sizes);
            // Positions are computed from shapes, so known shapes are substituted first.
            let func = taffeta_codegen::lower::specialise_interface(&func, &options.sizes)?;
            // Sums over runs of equal elements become products, unless floats are strict.
            let func = Func { keeps_order: strict, ..func };
            let Structured { func: flat, layout, .. } = flattened(&func, &whole, &options)?;
            validate::dense_pass(&flat, "structured lowering")?;
            let flat = pass::simplify::run(&Func { keeps_order: false, ..flat });
            let lowered = taffeta_codegen::lower(&flat, &options)?;
            Ok(lowered.called_by(logical_interface(&func, signature, layout)))
        })
    })
}

/// Lowers a program with compiled-in sizes to the arrays of its structured tensors; `whole` is the program with
/// symbolic sizes.
///
/// Why both: steps of a schedule are validated for symbolic sizes, and a loop with a single iteration vanishes when
/// sizes are compiled in, leaving nothing to traverse. A program that lowers only with symbolic sizes is lowered with
/// these and specialised afterwards.
fn flattened(func: &Func, whole: &Func, options: &LowerOptions) -> Result<Structured, Diagnostics> {
    let sizes = &options.sizes;
    let refused = match taffeta_structured::lower(func) {
        // Sizes beyond `i32` change the types of index arrays, which lowering with symbolic sizes would miss.
        Err(refused) if sizes.values().all(|n| i32::try_from(*n).is_ok()) => refused,
        done => return done,
    };
    let whole = Func { keeps_order: func.keeps_order, ..pass::simplify::run(whole) };
    let Ok(Structured { func, mut layout, warnings, explained, assembled, order_violations, seeks }) =
        taffeta_structured::lower(&whole)
    else {
        return Err(refused);
    };
    let mut value = |e: &Expr| match e.kind() {
        ExprKind::Var(size) => sizes.get(size.name()).map(|n| Expr::int(*n)),
        _ => None,
    };
    for level in layout.levels.iter_mut().flatten() {
        level.size = pass::substitute::rewrite_expr(&level.size, &mut value, &mut Default::default());
    }
    let func = taffeta_codegen::lower::specialise(&func, sizes)?;
    let func = taffeta_codegen::lower::specialise_interface(&func, sizes)?;
    Ok(Structured { func, layout, warnings, explained, assembled, order_violations, seeks })
}

/// Builds the logical interface of a program that was lowered to arrays: signature, tensors, and the arrays of their
/// levels.
fn logical_interface(func: &Func, signature: Signature, layout: Layout) -> Logical {
    let level = |l: LevelLayout| LogicalLevel {
        kind: l.level.kind,
        arrays: l.arrays,
        hidden: l.hidden,
        size: l.size,
        contract: l.contract,
    };
    let levels = layout.levels.into_iter().map(|all| all.into_iter().map(level).collect()).collect();
    Logical { signature, tensors: func.interface().cloned().collect(), levels }
}

/// Lowers a program with compiled-in sizes to the arrays of its structured tensors, and explains the loops.
pub fn structured(func: &Func, options: &Options, timings: &mut Timings) -> Result<Structured, Diagnostics> {
    let sizes = options.sizes.iter().map(|(k, v)| (k.clone(), *v)).collect();
    timings.measure("structured", || {
        on_large_stack(|| {
            let whole = pass::stop_gradient::run(func);
            let known = pass::simplify::run(&taffeta_codegen::lower::specialise(&whole, &sizes)?);
            let known = taffeta_codegen::lower::specialise_interface(&known, &sizes)?;
            let known = Func { keeps_order: options.strict_floats, ..known };
            let lowered = flattened(&known, &whole, &LowerOptions { sizes, ..LowerOptions::default() })?;
            validate::dense_stage(&lowered.func, "structured lowering")?;
            Ok(lowered)
        })
    })
}

/// Runs a stage on a thread of its own, with a stack large enough for recursion over the deepest tree that elaboration
/// yields: the caller's stack may be small.
fn on_large_stack<T: Send>(step: impl FnOnce() -> Result<T, Diagnostics> + Send) -> Result<T, Diagnostics> {
    const STACK_BYTES: usize = 256 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("lower".into()).stack_size(STACK_BYTES).spawn_scoped(scope, step);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(e) => {
                let message =
                    format!("cannot allocate a stack of {}: {e}", taffeta_ast::bytes::amount(STACK_BYTES as u64));
                Err(Diagnostic::new("compile::stack", message).into())
            }
        }
    })
}

/// Emits C for a lowered program. The validator guarantees that this cannot fail.
pub fn c(lowered: &Lowered, sources: &SourceMap, timings: &mut Timings) -> CSource {
    timings.measure("emit", || taffeta_codegen::c::emit(lowered, sources))
}

/// Returns the errors and warnings of a program, entry by entry.
pub fn check(program: &Program) -> Vec<Diagnostic> {
    let compiler = Compiler::unsized_yet();
    let mut found = program.check(&compiler);
    if !found.iter().any(Diagnostic::is_error) {
        // Results and local tensors may have a format too; `@` before a function is a decorator.
        let is_format = |line: &str| line.contains('@') && !line.trim_start().starts_with('@');
        if program.sources().files().any(|file| file.text.lines().any(is_format)) {
            let entries = program.entries().into_iter();
            found.extend(entries.flat_map(|e| check_structured(program, &e.name, &compiler)));
        }
    }
    found
}

/// Returns warnings for an entry's loops over structured tensors that visit every coordinate, and for programs that
/// only the interpreter supports.
fn check_structured(program: &Program, entry: &str, compiler: &Compiler) -> Vec<Diagnostic> {
    // An entry with unset static parameters is checked at compilation.
    let Ok(func) = program.elaborate(entry, &BTreeMap::new(), compiler) else { return Vec::new() };
    if !func.is_structured() {
        return Vec::new();
    }
    match inlined(func, false).and_then(|func| on_large_stack(|| taffeta_structured::lower(&func))) {
        Ok(lowered) => lowered.warnings,
        Err(refused) => {
            let yet = |d: Diagnostic| match d.code {
                "lower::unsupported" => Diagnostic { severity: Severity::Warning, ..d },
                _ => d,
            };
            refused.0.into_iter().map(yet).collect()
        }
    }
}

/// Returns the warnings about an entry's structured tensors: conversions, and those of structured lowering for symbolic
/// sizes, if the program can be lowered.
pub fn warnings(program: &Program, (entry, func): (&str, &Func), options: &Options) -> Vec<Diagnostic> {
    if !func.is_structured() {
        return Vec::new();
    }
    let mut found = program.conversions(entry, &options.statics, &Compiler::unsized_yet());
    found.extend(on_large_stack(|| taffeta_structured::lower(func)).map(|l| l.warnings).unwrap_or_default());
    found
}

/// Validates the tree after a stage. An invalid tree is a bug of that stage and is reported as such, since later stages
/// would miscompile it.
fn valid(func: &Func, stage: &str) -> Result<(), Diagnostics> {
    let start = std::time::Instant::now();
    let result = on_large_stack(|| Ok(validate::stage(func, stage)?));
    tracing::debug!(stage, ms = start.elapsed().as_secs_f64() * 1e3, "validated");
    result
}
