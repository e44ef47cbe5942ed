//! The pipeline: from a file to C, one step after the other. This is the one place where the order is written.
//!
//! ```text
//!  .ft ── parse ──▶ syntax ── logical ──▶ Func ── lowered ──▶ Lowered ── c ──▶ CSource ──▶ (store: compile, load, call)
//! ```

use crate::automatic;
use crate::hooks::Compiler;
use crate::inlined;
use crate::materialise::{self, Keeping, Way};
use crate::program::{Gradient, Mode, Options};
use crate::scheduler;
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
use taffeta_frontend::program::{EntryInfo, Program, Source};
use taffeta_schedule::Schedule;
use taffeta_structured::{Layout, LevelLayout, Structured};

/// Reads a program with everything that it imports.
///
/// Why first: the set of files is what everything later depends on, the cache's keys included. Problems of syntax do
/// not stop here: [`logical`] and [`check`] report them all together.
pub fn parse(main: Source, timings: &mut Timings) -> Program {
    timings.measure("parse", || Program::load(main, &crate::loader::Files))
}

/// The logical program of an entry: dense meaning, whatever the storage and the schedule.
///
/// Why before anything that knows the target: calls are inlined and static values are gone, so every later step works
/// on loops and scalars alone. Gradients and schedules belong here, where accesses are still affine and can be proved
/// about; the front end asks for them through its hooks. `None` and `"none"` run the program as it is written; so does
/// `"auto"` here, which [`chosen`] is about.
pub fn logical(program: &Program, entry: &str, options: &Options, timings: &mut Timings) -> Result<Func, Diagnostics> {
    Ok(scheduled(program, entry, options, timings)?.into_func())
}

/// The logical program (of a gradient: the one that it is of) whatever its sizes, and whether it has budgets of memory
/// that wait for them. Parameters and results are those of [`logical`].
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
    // What gradients keep is decided with their schedules.
    let open = materialise::is_asked(options) && !compiler.keeping.found().is_empty();
    Ok((func, compiler.waits() || open))
}

/// The logical program, whose gradients keep what is said; and what they keep where nobody else has said it.
pub(crate) fn logical_keeping(
    program: &Program,
    entry: &str,
    options: &Options,
    way: &Way,
    timings: &mut Timings,
) -> Result<(Func, Vec<Explanation>), Diagnostics> {
    let compiler = Compiler::aimed_at(automatic::aim(options)?, &options.sizes).keeping(way);
    let func = by(&compiler, program, entry, options, timings)?.into_func();
    Ok((func, compiler.keeping.found()))
}

/// The logical program, with the steps that its schedule took: none, those of a schedule function of the file, or those
/// of a trace (a file whose name ends in `.json`).
pub fn scheduled(
    program: &Program,
    entry: &str,
    options: &Options,
    timings: &mut Timings,
) -> Result<Schedule, Diagnostics> {
    by(&Compiler::aimed_at(automatic::aim(options)?, &options.sizes), program, entry, options, timings)
}

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
        None | Some("none" | automatic::AUTO) => Ok(Schedule::new(inlined(plain(timings)?, options.strict_floats)?)),
        Some(file) if scheduler::is_trace(file) => {
            let func = plain(timings)?;
            let schedule = timings.measure("schedule", || deep(|| scheduler::replay(file, func)))?;
            valid(schedule.func(), "a schedule")?;
            Ok(schedule)
        }
        Some(name) => {
            let func = timings.measure("schedule", || deep(|| program.scheduled(entry, name, statics, compiler)))?;
            valid(&func, "a schedule")?;
            let taken = compiler.taken.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            Ok(taken.unwrap_or_else(|| Schedule::new(func)))
        }
    }
}

/// The program without tensors for array expressions over structured ones, which are computed where they are read.
///
/// Why before anything asks what is stored, and not where loops over it are made: gradients, rules and both backends
/// see the same program. One that has a schedule says itself what is inlined.
fn inlined(func: Func, strict_floats: bool) -> Result<Func, Diagnostics> {
    if !func.is_structured() {
        return Ok(func);
    }
    deep(|| Ok(inlined::inlined(func, strict_floats)))
}

/// A program under the schedule that rules choose for this machine.
///
/// Why after the gradient, where there is one: what it reads and keeps is part of what rules choose by.
pub fn automatic(func: Func, options: &Options, timings: &mut Timings) -> Result<Schedule, Diagnostics> {
    timings.measure("schedule", || deep(|| automatic::schedule(pass::stop_gradient::run(&func), options)))
}

/// The logical program, or its gradient, as it is to run: what rules choose, if they are to.
pub fn chosen(func: Func, options: &Options, timings: &mut Timings) -> Result<Func, Diagnostics> {
    match automatic::is_automatic(options) {
        true => Ok(automatic(func, options, timings)?.into_func()),
        false => Ok(func),
    }
}

/// The logical program of an entry that is going to be differentiated: it says which calls have a backward pass that
/// the program gives itself.
///
/// # Errors
///
/// What is wrong with the entry; a schedule where there are such calls, since it might take them apart.
pub fn differentiable(
    program: &Program,
    entry: &str,
    options: &Options,
    timings: &mut Timings,
) -> Result<Func, Diagnostics> {
    noted(&Compiler::aimed_at(automatic::aim(options)?, &options.sizes), program, entry, options, timings)
}

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
    // An automatic schedule is of the gradient.
    if matches!(options.schedule.as_deref(), None | Some("none" | automatic::AUTO)) {
        return inlined(noted(timings, statics)?, options.strict_floats);
    }
    let func = by(compiler, program, entry, options, timings)?.into_func();
    if !program.has_custom_vjps() {
        return Ok(func);
    }
    // The schedule has static parameters besides.
    let info = program.entries().into_iter().find(|e| e.name == entry);
    let params: Vec<String> = info.into_iter().flat_map(|e| e.params).filter(|p| p.is_static).map(|p| p.name).collect();
    let of_entry = statics.iter().filter(|(k, _)| params.contains(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
    match noted(timings, &of_entry)?.custom_vjps.first() {
        None => Ok(func),
        Some(call) => {
            let message =
                format!("`{}` has its own gradient, and a schedule comes before the gradient here", call.function);
            let d = Diagnostic::new("gradient::schedule", message).at(call.span);
            Err(d.help("schedule the gradient: `dloss = grad(loss)`, and a schedule for `dloss`").into())
        }
    }
}

/// The program for index arrays of these types, where the formats of its parameters do not say one.
///
/// Why on the logical program: the type is part of the format, which everything later reads there.
pub fn indexed(mut func: Func, indices: &BTreeMap<String, DType>) -> Result<Func, Diagnostics> {
    for (name, dtype) in indices {
        let Some(param) = func.params.iter_mut().find(|p| p.tensor.symbol.name() == name) else {
            return Err(wrong_index(format!("`{}` has no parameter `{name}`", func.name)));
        };
        if param.tensor.format.is_dense() {
            return Err(wrong_index(format!("parameter `{name}` is dense, and has no index arrays")));
        }
        if !matches!(dtype, DType::U8 | DType::U16 | DType::I32 | DType::I64) {
            return Err(wrong_index(format!("index arrays are of type u8, u16, i32 or i64, and this is {dtype}")));
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

/// The gradient of a logical program, or its tangents.
///
/// Why after the schedule: a schedule is of the program that people write. What it did to the loops stays in the
/// forward pass. A gradient that is asked for in the program itself (`dloss = grad(loss)`) is an entry, with schedules
/// of its own.
pub fn gradient(
    func: &Func,
    gradient: &Gradient,
    sizes: &Sizes,
    timings: &mut Timings,
) -> Result<(Func, Explanation), Diagnostics> {
    gradient_keeping(func, gradient, sizes, &Keeping::default(), timings)
}

/// The same, keeping what is said.
pub(crate) fn gradient_keeping(
    func: &Func,
    gradient: &Gradient,
    sizes: &Sizes,
    keeping: &Keeping,
    timings: &mut Timings,
) -> Result<(Func, Explanation), Diagnostics> {
    let kind = match gradient.mode {
        Mode::Reverse => taffeta_autodiff::Kind::ValueAndVjp,
        Mode::Forward => taffeta_autodiff::Kind::Jvp,
    };
    let wrt = wrt(func, gradient);
    let request = request(func, gradient, sizes, kind, &wrt);
    timings.measure("differentiate", || deep(|| keeping.explained(request)))
}

/// The same in two programs: a forward pass that leaves what the backward pass needs, and that.
///
/// Why cut here, and not a program of each kind: what is kept is decided once, for both.
pub(crate) fn pair(
    func: &Func,
    gradient: &Gradient,
    sizes: &Sizes,
    keeping: &Keeping,
    timings: &mut Timings,
) -> Result<taffeta_autodiff::Pair, Diagnostics> {
    let wrt = wrt(func, gradient);
    let request = request(func, gradient, sizes, taffeta_autodiff::Kind::ValueAndVjp, &wrt);
    timings.measure("differentiate", || deep(|| keeping.pair(request)))
}

/// The parameters with respect to which a gradient is: all of floats if none is named.
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

/// The program, which stops where a statement makes a NaN or an infinity.
///
/// Why after schedules and gradients, and before lowering: what runs is what is checked, and its checks are assertions
/// like others.
pub fn check_finite(func: &Func) -> Func {
    pass::check_finite::run(func)
}

/// The program on flat buffers, with every check that remains.
pub fn lowered(func: &Func, options: &Options, timings: &mut Timings) -> Result<Lowered, Diagnostics> {
    let sizes = options.sizes.iter().map(|(k, v)| (k.clone(), *v)).collect();
    let strict = options.strict_floats;
    let options = LowerOptions { sizes, vector_bytes: taffeta_codegen::lower::vector_bytes(options.portable) };
    timings.measure("lower", || {
        deep(|| {
            // Nothing is differentiated from here on, and what stops derivatives would only hide operands.
            let whole = pass::stop_gradient::run(func);
            // Then sizes: every number that is known makes more conditions decidable.
            let func = taffeta_codegen::lower::specialise(&whole, &options.sizes)?;
            // Then what is decided disappears, so that checks are made for what is left alone.
            validate::pass(&func, "specialise")?;
            let func = pass::simplify::run(&func);
            // Structured tensors become their arrays before bounds are checked: what storage skips raises nothing.
            if !func.is_structured() {
                // Lowering last: from here on there are no dimensions that one could prove anything about.
                return taffeta_codegen::lower(&func, &options);
            }
            let signature = Signature::of(&func, &options.sizes);
            // Positions are computed from shapes, so what is known of these comes first here.
            let func = taffeta_codegen::lower::specialise_interface(&func, &options.sizes)?;
            // A run of equal elements is summed up by a product, unless floats are strict.
            let func = Func { keeps_order: strict, ..func };
            let Structured { func: flat, layout, .. } = flattened(&func, &whole, &options)?;
            validate::dense_pass(&flat, "structured lowering")?;
            let flat = pass::simplify::run(&Func { keeps_order: false, ..flat });
            let lowered = taffeta_codegen::lower(&flat, &options)?;
            Ok(lowered.called_by(logical_interface(&func, signature, layout)))
        })
    })
}

/// A program with its sizes compiled in on the arrays of its structured tensors; `whole`: the same without its sizes.
///
/// Why that too: steps of a schedule are asked about whatever the sizes, and where a loop has one iteration, nothing of
/// it is left that could be gone through. What there are loops for whatever the sizes is lowered so then, and gets its
/// sizes afterwards.
fn flattened(func: &Func, whole: &Func, options: &LowerOptions) -> Result<Structured, Diagnostics> {
    let sizes = &options.sizes;
    let refused = match taffeta_structured::lower(func) {
        // Index arrays are of another type where sizes are large.
        Err(refused) if sizes.values().all(|n| i32::try_from(*n).is_ok()) => refused,
        done => return done,
    };
    let whole = Func { keeps_order: func.keeps_order, ..pass::simplify::run(whole) };
    let Ok(Structured { func, mut layout, warnings, explained, disorder, seeks }) = taffeta_structured::lower(&whole)
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
    Ok(Structured { func, layout, warnings, explained, disorder, seeks })
}

/// What C calls a program by whose parameters became their arrays.
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

/// The program on the arrays of its structured tensors, with its sizes compiled in, and what was done with its loops.
pub fn structured(func: &Func, options: &Options, timings: &mut Timings) -> Result<Structured, Diagnostics> {
    let sizes = options.sizes.iter().map(|(k, v)| (k.clone(), *v)).collect();
    timings.measure("structured", || {
        deep(|| {
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

/// Runs a step that walks the whole tree on a thread of its own, whose stack the deepest tree that elaboration makes
/// fits in: callers may have small stacks.
fn deep<T: Send>(step: impl FnOnce() -> Result<T, Diagnostics> + Send) -> Result<T, Diagnostics> {
    const STACK_BYTES: usize = 256 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("lower".into()).stack_size(STACK_BYTES).spawn_scoped(scope, step);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(e) => {
                let message =
                    format!("there is no room for a stack of {}: {e}", taffeta_ast::bytes::amount(STACK_BYTES as u64));
                Err(Diagnostic::new("compile::stack", message).into())
            }
        }
    })
}

/// C for a lowered program. On what the validator has passed, this cannot fail.
pub fn c(lowered: &Lowered, sources: &SourceMap, timings: &mut Timings) -> CSource {
    timings.measure("emit", || taffeta_codegen::c::emit(lowered, sources))
}

/// What is wrong with a program, entry by entry.
pub fn check(program: &Program) -> Vec<Diagnostic> {
    let compiler = Compiler::unsized_yet();
    let mut found = program.check(&compiler);
    if !found.iter().any(Diagnostic::is_error) {
        let structured = |e: &EntryInfo| e.params.iter().any(|p| p.annotation.contains('@'));
        let entries = program.entries().into_iter().filter(structured);
        found.extend(entries.flat_map(|e| check_structured(program, &e.name, &compiler)));
    }
    found
}

/// Loops of an entry over structured tensors that visit every coordinate, and what only the interpreter can run yet: as
/// warnings.
fn check_structured(program: &Program, entry: &str, compiler: &Compiler) -> Vec<Diagnostic> {
    // One with static parameters that have no values is checked when it is compiled.
    let Ok(func) = program.elaborate(entry, &BTreeMap::new(), compiler) else { return Vec::new() };
    match inlined(func, false).and_then(|func| deep(|| taffeta_structured::lower(&func))) {
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

/// What lowering says of a program's loops over structured tensors, whatever the sizes; nothing of one that it refuses.
pub fn warnings(func: &Func) -> Vec<Diagnostic> {
    if !func.is_structured() {
        return Vec::new();
    }
    deep(|| taffeta_structured::lower(func)).map(|lowered| lowered.warnings).unwrap_or_default()
}

/// A tree that breaks its own rules is a mistake of the stage before, and is reported as what it is: nothing after it
/// would compute what the program says.
fn valid(func: &Func, stage: &str) -> Result<(), Diagnostics> {
    let start = std::time::Instant::now();
    let result = deep(|| Ok(validate::stage(func, stage)?));
    tracing::debug!(stage, ms = start.elapsed().as_secs_f64() * 1e3, "validated");
    result
}
