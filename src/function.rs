//! Compiled entries and their execution. A [`Function`] is a shared library, compiled or from the cache, or a logical
//! program for the interpreter. It runs on values, or on arrays in place ([`crate::call`]); packing of structured
//! parameters is in [`crate::packed`].

use crate::error::{Error, Report};
use crate::loader::from_the_users_line;
use crate::options::{Backend, Options};
use crate::options::{MAX_THREADS, statics_text};
use crate::output::Output;
use crate::packed::{self, Packed};
use crate::pipeline;
use crate::scheduler;
use crate::store::{Store, stamp};
use crate::timing::Timings;
use std::io::Write as _;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use taffeta_ast::{DType, Diagnostic, Func, SourceMap, Value, interp};
use taffeta_codegen::call::{Arg, CallError, Context, ErrorKind, Lines};
use taffeta_codegen::signature::{Passing, Signature, TensorSig};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{Compiled, cache};
use taffeta_structured::Stored;

/// Compiled entry; several threads may call it at once.
pub struct Function {
    signature: Signature,
    code: Code,
    /// Sources of errors; empty if the program came from the cache and was not parsed (see [`Function::sources_for`]).
    sources: Arc<SourceMap>,
    timings: Timings,
    /// Pool of idle contexts with their numbers of threads; contexts keep memory between calls.
    contexts: Mutex<Vec<(u32, Context)>>,
    /// Sink of the lines that the program prints.
    lines: Lines,
    /// Flag that cancels calls.
    cancel: Option<Arc<AtomicI32>>,
}

/// Executable form of an entry.
enum Code {
    /// Logical program, interpreted.
    Interp(Box<Func>),
    /// Shared library.
    C(Box<Compiled>),
}

/// Outcome of a call.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Parameters in order, with the final values of `inout` parameters.
    pub params: Vec<Value>,
    /// Results in order.
    pub results: Vec<Value>,
    /// Resources that the call used.
    pub usage: Usage,
    /// Packed arrays of structured parameters, together with all other arguments, for [`Function::run_again`].
    packed: Option<Packed>,
}

/// Resources of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Execution time of the program itself.
    pub time: Duration,
    /// Peak memory beyond parameters and results, in bytes; `None` if not measured.
    pub scratch: Option<usize>,
}

/// Logical program with its sources, built on demand.
type Front = (Arc<SourceMap>, Func);

impl Function {
    /// Compiles an entry, or loads it from the cache. `texts` is the cache key of all files of the program.
    pub(crate) fn new(
        texts: &str,
        entry: &str,
        options: &Options,
        mut timings: Timings,
        front: impl FnOnce(&mut Timings) -> Result<Front, Error>,
    ) -> Result<Function, Error> {
        let front = |timings: &mut Timings| {
            let (sources, func) = front(timings)?;
            Ok((sources, if options.check_finite { pipeline::check_finite(&func) } else { func }))
        };
        let known = options.sizes.iter().map(|(k, v)| (k.clone(), *v)).collect();
        let (signature, code, sources) = match options.backend {
            Backend::Interp => {
                let (sources, func) = front(&mut timings)?;
                (Signature::of(&func, &known), Code::Interp(Box::new(func)), sources)
            }
            Backend::C => {
                let mut sources = Arc::default();
                let compiled = compile_c(texts, entry, options, &mut timings, front, &mut sources)?;
                (compiled.signature().logical().clone(), Code::C(Box::new(compiled)), sources)
            }
        };
        Ok(Function {
            signature,
            code,
            sources,
            timings,
            contexts: Mutex::default(),
            lines: Arc::new(to_stdout),
            cancel: None,
        })
    }

    /// Redirects the lines that the program prints (`print("x is", x)`) to a callback: without line ends, one at a
    /// time, in order. By default they go to standard output.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// let program = taffeta::Program::from_source("p.ft", r#"
    /// def halves(x: f64) -> f64:
    ///     print("half of", x, "is", x / 2)
    ///     return x / 2
    /// "#)?;
    /// let lines = Arc::new(Mutex::new(Vec::new()));
    /// let sink = lines.clone();
    /// let halves = program.compile("halves", &taffeta::Options::default())?;
    /// let halves = halves.on_print(move |line| sink.lock().unwrap().push(line.to_string()));
    /// halves.call().scalar("x", 3.0f64).run()?;
    /// assert_eq!(*lines.lock().unwrap(), ["half of 3 is 1.5"]);
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    #[must_use]
    pub fn on_print(self, lines: impl Fn(&str) + Send + Sync + 'static) -> Function {
        Function { lines: Arc::new(lines), ..self }
    }

    /// Lets calls stop with `run::cancelled` once the flag is not 0; any thread may set it. Compiled outer loops poll it,
    /// the interpreter does not.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::AtomicI32};
    /// let program = taffeta::Program::from_source("p.ft", "
    /// def total(x: f64[n, m]) -> f64:
    ///     s: f64 = 0
    ///     for i in range(n):
    ///         for j in range(m):
    ///             s += x[i, j]
    ///     return s
    /// ")?;
    /// let total = program.compile("total", &taffeta::Options::default())?.cancelled_by(Arc::new(AtomicI32::new(1)));
    /// let x = ndarray::arr2(&[[1.0, 2.0]]);
    /// let stopped = total.call().input("x", x.view()).run().expect_err("it is cancelled");
    /// assert_eq!(stopped.report().diagnostics[0].code, "run::cancelled");
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    #[must_use]
    pub fn cancelled_by(self, flag: Arc<AtomicI32>) -> Function {
        Function { cancel: Some(flag), ..self }
    }

    /// Returns names, types and shapes of parameters and results.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Returns the duration of each compilation step.
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// Returns the implementation of matrix products (`as_lib`): a library's name, or `"own kernel"`; `None` without
    /// any.
    pub fn products(&self) -> Option<String> {
        match &self.code {
            Code::C(compiled) => compiled.products(),
            Code::Interp(_) => None,
        }
    }

    /// Starts a call.
    pub fn call<'a>(&self) -> crate::call::Call<'_, 'a> {
        crate::call::Call::new(self)
    }

    pub(crate) fn sources(&self) -> &Arc<SourceMap> {
        &self.sources
    }

    /// Attaches sources, for a caller that has them although the program came from the cache.
    pub(crate) fn with_sources(self, sources: &Arc<SourceMap>) -> Function {
        Function { sources: sources.clone(), ..self }
    }

    /// Runs on values in the order of the signature. `sizes` are in the signature's order; with `threads` 0, OpenMP
    /// decides.
    ///
    /// # Errors
    ///
    /// Values that do not fit the signature, and run-time errors of the program.
    pub fn run(&self, params: Vec<Value>, sizes: &[i64], threads: u32) -> Result<Ran, Error> {
        let (ran, outputs) = self.run_stored(params, sizes, threads)?;
        let results = outputs.into_iter().map(Output::into_value).collect::<Result<_, _>>()?;
        Ok(Ran { results, ..ran })
    }

    /// Runs on values as [`Function::run`] does. Results are returned apart: those that the program makes as the arrays
    /// of their formats; [`Ran::results`] is empty.
    ///
    /// # Errors
    ///
    /// Those of [`Function::run`].
    pub fn run_stored(&self, params: Vec<Value>, sizes: &[i64], threads: u32) -> Result<(Ran, Vec<Output>), Error> {
        self.run_lent(params, &[], sizes, threads)
    }

    /// Runs as [`Function::run_stored`] does. Structured parameters in `lent`, by position, are packed already; C takes
    /// only the shapes of their values.
    pub(crate) fn run_lent(
        &self,
        mut params: Vec<Value>,
        lent: &[Option<Stored>],
        sizes: &[i64],
        threads: u32,
    ) -> Result<(Ran, Vec<Output>), Error> {
        let as_values = |ran: Ran| {
            let Ran { params, results, usage, packed } = ran;
            let outputs = results.into_iter().map(Output::from).collect();
            (Ran { params, results: Vec::new(), usage, packed }, outputs)
        };
        match &self.code {
            Code::Interp(func) if self.signature.has_storage() => {
                let stored = packed::stored(&self.signature, &params)?;
                let ran = self.interpret(func, stored, sizes)?;
                // Structured parameters keep their given form; `inout` parameters take the program's values.
                let own = self.signature.params().zip(&mut params).filter(|(p, _)| p.passing == Passing::InOut);
                let written = self.signature.params().zip(&ran.params).filter(|(p, _)| p.passing == Passing::InOut);
                own.zip(written).for_each(|((_, param), (_, new))| param.clone_from(new));
                let outputs = self.signature.results().zip(ran.results).map(|(sig, v)| packed::assembled(sig, v));
                Ok((Ran { params, results: Vec::new(), ..ran }, outputs.collect()))
            }
            Code::C(compiled) if self.signature.has_storage() => {
                let mut packed = Packed::of(&self.signature, compiled.signature(), &params, lent)?;
                let mut context = self.context(threads)?;
                let named = packed.sizes(compiled.signature(), sizes);
                let done = compiled.call_values(&mut context, &mut packed.values, &named);
                self.give_back(threads, context);
                let (results, report) = done.map_err(|e| self.call_error(&e))?;
                let usage = Usage { time: report.time, scratch: Some(report.memory) };
                self.take_back(&packed, &mut params);
                let shapes: Vec<&[usize]> = params.iter().map(Value::shape).collect();
                let sizes = self.signature.bind_sizes(&shapes, &self.named(sizes)).unwrap_or_default();
                let outputs = packed.results(&self.signature, results, &sizes)?;
                Ok((Ran { params, results: Vec::new(), usage, packed: Some(packed) }, outputs))
            }
            Code::Interp(func) => self.interpret(func, params, sizes).map(as_values),
            Code::C(compiled) => {
                let mut context = self.context(threads)?;
                let done = compiled.call_values(&mut context, &mut params, &self.named(sizes));
                self.give_back(threads, context);
                let (results, report) = done.map_err(|e| self.call_error(&e))?;
                let usage = Usage { time: report.time, scratch: Some(report.memory) };
                Ok(as_values(Ran { params, results, usage, packed: None }))
            }
        }
    }

    /// Copies the `inout` parameters of a lowered program back into the logical parameters.
    fn take_back(&self, packed: &Packed, params: &mut [Value]) {
        let Code::C(compiled) = &self.code else { return };
        let written = compiled.signature().params().zip(&packed.values).filter(|(p, _)| p.passing == Passing::InOut);
        let own = self.signature.params().zip(params).filter(|(p, _)| p.passing == Passing::InOut);
        own.zip(written).for_each(|((_, param), (_, new))| param.clone_from(new));
    }

    /// Runs again on the arrays of the last run: results are overwritten in place, and no array is reallocated, but for
    /// those of results that the program makes.
    ///
    /// # Errors
    ///
    /// Those of [`Function::run`].
    pub fn run_again(&self, last: &mut Ran, sizes: &[i64], threads: u32) -> Result<Usage, Error> {
        let makes_results = self.signature.results().any(packed::is_made);
        match &self.code {
            Code::Interp(_) => {
                *last = self.run(last.params.clone(), sizes, threads)?;
                Ok(last.usage)
            }
            Code::C(_) if makes_results => {
                *last = self.run(std::mem::take(&mut last.params), sizes, threads)?;
                Ok(last.usage)
            }
            Code::C(compiled) if self.signature.has_storage() => {
                let Some(mut packed) = last.packed.take() else {
                    *last = self.run(std::mem::take(&mut last.params), sizes, threads)?;
                    return Ok(last.usage);
                };
                let flat = compiled.signature();
                // `inout` parameters start from their current values.
                let own = self.signature.params().zip(&last.params).filter(|(p, _)| p.passing == Passing::InOut);
                let written = flat.params().zip(&mut packed.values).filter(|(p, _)| p.passing == Passing::InOut);
                written.zip(own).for_each(|((_, to), (_, from))| to.clone_from(from));
                let named = packed.sizes(flat, sizes);
                let args = packed.values.iter_mut().zip(flat.params()).map(|(v, sig)| match sig.passing {
                    Passing::InOut => Arg::from(v),
                    _ => Arg::from(&*v),
                });
                let results = packed.elements.iter_mut().zip(&mut last.results);
                let results = results.map(|(elements, shown)| Arg::from(elements.as_mut().unwrap_or(shown)));
                let mut args: Vec<Arg<'_>> = args.chain(results).collect();
                let usage = self.enter_named(&mut args, &named, threads)?;
                drop(args);
                self.take_back(&packed, &mut last.params);
                packed.take_back(&self.signature, &mut last.results)?;
                (last.usage, last.packed) = (usage, Some(packed));
                Ok(usage)
            }
            Code::C(_) => {
                let params = last.params.iter_mut().zip(self.signature.params()).map(|(v, sig)| match sig.passing {
                    Passing::InOut => Arg::from(v),
                    _ => Arg::from(&*v),
                });
                let mut args: Vec<Arg<'_>> = params.chain(last.results.iter_mut().map(Arg::from)).collect();
                let usage = self.enter(&mut args, sizes, threads)?;
                drop(args);
                last.usage = usage;
                Ok(usage)
            }
        }
    }

    /// Runs again as [`Function::run_again`] does, with results as [`Function::run_stored`] returns them.
    ///
    /// # Errors
    ///
    /// Those of [`Function::run`].
    pub fn run_stored_again(
        &self,
        last: &mut Ran,
        outputs: &mut Vec<Output>,
        sizes: &[i64],
        threads: u32,
    ) -> Result<Usage, Error> {
        if self.signature.results().any(packed::is_made) {
            (*last, *outputs) = self.run_stored(std::mem::take(&mut last.params), sizes, threads)?;
            return Ok(last.usage);
        }
        last.results = std::mem::take(outputs).into_iter().map(Output::into_value).collect::<Result<_, _>>()?;
        let usage = self.run_again(last, sizes, threads)?;
        *outputs = std::mem::take(&mut last.results).into_iter().map(Output::from).collect();
        Ok(usage)
    }

    /// Calls C on existing arrays; without effect for the interpreter.
    pub(crate) fn enter(&self, args: &mut [Arg<'_>], sizes: &[i64], threads: u32) -> Result<Usage, Error> {
        self.enter_named(args, &self.named(sizes), threads)
    }

    fn enter_named(&self, args: &mut [Arg<'_>], sizes: &[(&str, i64)], threads: u32) -> Result<Usage, Error> {
        Ok(self.enter_making(args, sizes, threads)?.0)
    }

    /// Calls C on existing arrays, and returns those that the program makes.
    fn enter_making(
        &self,
        args: &mut [Arg<'_>],
        sizes: &[(&str, i64)],
        threads: u32,
    ) -> Result<(Usage, Vec<Value>), Error> {
        let Code::C(compiled) = &self.code else { return Ok((Usage::default(), Vec::new())) };
        let mut context = self.context(threads)?;
        let done = compiled.call_making(&mut context, args, sizes);
        self.give_back(threads, context);
        let (report, made) = done.map_err(|e| self.call_error(&e))?;
        Ok((Usage { time: report.time, scratch: Some(report.memory) }, made))
    }

    /// Calls C on existing arrays, and returns those that the program makes. A structured parameter is passed as the
    /// arrays of its format, with their hidden sizes.
    pub(crate) fn enter_arrays(
        &self,
        args: &mut [Arg<'_>],
        sizes: &[i64],
        hidden: &[i64],
        threads: u32,
    ) -> Result<Vec<Value>, Error> {
        let Code::C(compiled) = &self.code else { return Ok(Vec::new()) };
        Ok(self.enter_making(args, &packed::sizes(compiled.signature(), sizes, hidden), threads)?.1)
    }

    /// Returns names and types of the arrays that represent a structured parameter in C.
    pub(crate) fn arrays_of(&self, param: &TensorSig) -> Option<Vec<(&str, DType)>> {
        let Code::C(compiled) = &self.code else { return None };
        let mut flat = compiled.signature().params();
        for p in self.signature.params() {
            let format = p.storage.as_ref().map(|s| s.format(p.dtype));
            let levels =
                format.filter(|_| p.of.is_none()).and_then(|f| taffeta_structured::arrays_of(&f)).unwrap_or_default();
            let own =
                flat.by_ref().take(1 + levels.iter().sum::<usize>()).map(|t| (t.name.as_str(), t.dtype)).collect();
            if p.name == param.name {
                return Some(own);
            }
        }
        None
    }

    /// Returns whether the function can run on arrays in place.
    pub(crate) fn takes_arrays(&self) -> bool {
        matches!(self.code, Code::C(_))
    }

    /// Returns whether the function is compiled.
    pub(crate) fn is_compiled(&self) -> bool {
        matches!(self.code, Code::C(_))
    }

    fn named<'s>(&'s self, sizes: &[i64]) -> Vec<(&'s str, i64)> {
        self.signature.sizes.iter().map(|s| s.name.as_str()).zip(sizes.iter().copied()).collect()
    }

    fn context(&self, threads: u32) -> Result<Context, Error> {
        let refuse = |d| Err(Error::Input(Report::without_sources(vec![d])));
        if threads > MAX_THREADS {
            let message = format!("{threads} threads exceed the maximum of {MAX_THREADS}");
            return refuse(Diagnostic::new("input::threads", message).help("give 0 to let OpenMP decide"));
        }
        if let (0, Some(asked)) = (threads, too_many_by_environment()) {
            let message = format!(
                "the environment variable OMP_NUM_THREADS asks for {asked} threads, but the maximum is {MAX_THREADS}"
            );
            let help = "unset it, set it to the number of cores, or give the number of threads by --threads";
            return refuse(Diagnostic::new("input::threads", message).help(help));
        }
        let mut free = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let context = match free.iter().position(|(t, _)| *t == threads) {
            Some(k) => free.swap_remove(k).1,
            None => Context::new(threads as usize),
        };
        let context = context.printing(self.lines.clone());
        Ok(match &self.cancel {
            Some(flag) => context.cancelled_by(flag.clone()),
            None => context,
        })
    }

    fn give_back(&self, threads: u32, context: Context) {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).push((threads, context));
    }

    fn call_error(&self, e: &CallError) -> Error {
        let sources = self.sources_for(e);
        let diagnostic = from_the_users_line(e.diagnostic(&sources), &sources);
        let report = Report { diagnostics: vec![diagnostic], sources };
        match e.kind {
            ErrorKind::Assert
            | ErrorKind::Index
            | ErrorKind::Arithmetic
            | ErrorKind::Memory
            | ErrorKind::Size
            | ErrorKind::NonFinite
            | ErrorKind::Misfit
            | ErrorKind::Cancelled => Error::Run(report),
            ErrorKind::Call
            | ErrorKind::DType
            | ErrorKind::Shape
            | ErrorKind::Layout
            | ErrorKind::Alias
            | ErrorKind::Storage => Error::Input(report),
        }
    }

    /// Returns the sources of an error. The files of a program from the cache are read only here.
    fn sources_for(&self, e: &CallError) -> Arc<SourceMap> {
        if self.sources.files().next().is_some() {
            return self.sources.clone();
        }
        let mut sources = SourceMap::default();
        let Some(site) = &e.site else { return Arc::new(sources) };
        for name in std::iter::once(&site.file).chain(site.chain.iter().map(|(_, place)| &place.file)) {
            if sources.files().all(|f| f.name != *name)
                && let Some(text) = crate::loader::text_by_name(name)
            {
                sources.add(name.clone(), None, text);
            }
        }
        Arc::new(sources)
    }

    fn interpret(&self, func: &Func, params: Vec<Value>, sizes: &[i64]) -> Result<Ran, Error> {
        let sizes = self.signature.sizes.iter().zip(sizes).map(|(s, v)| (s.name.clone(), *v)).collect();
        let start = Instant::now();
        let inputs = interp::Inputs { sizes, params };
        let outputs = interp::run_printing(func, &inputs, &mut |line| (self.lines)(line)).map_err(|e| {
            let before = matches!(e.kind.code(), "run::input" | "run::shape");
            let diagnostic = from_the_users_line(e.into(), &self.sources);
            let report = Report { diagnostics: vec![diagnostic], sources: self.sources.clone() };
            if before { Error::Input(report) } else { Error::Run(report) }
        })?;
        let usage = Usage { time: start.elapsed(), scratch: None };
        Ok(Ran { params: outputs.params, results: outputs.results, usage, packed: None })
    }
}

/// Returns the thread count of `OMP_NUM_THREADS` if it exceeds the maximum: OpenMP reads the variable once, when it is
/// loaded, and starts that many threads. The first number of a list applies to outermost parallel loops.
fn too_many_by_environment() -> Option<&'static str> {
    static ASKED: OnceLock<Option<String>> = OnceLock::new();
    let asked = ASKED.get_or_init(|| {
        let text = std::env::var("OMP_NUM_THREADS").ok()?;
        let first = text.split(',').next().unwrap_or_default().trim();
        // Numbers that overflow exceed the maximum too; OpenMP ignores text that is not a number.
        let number = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
        let fits = first.parse::<u32>().is_ok_and(|n| n <= MAX_THREADS);
        (number && !fits).then(|| first.to_string())
    });
    asked.as_deref()
}

/// Prints a line to standard output, the default sink. A closed output does not stop the program.
fn to_stdout(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

fn compile_c(
    texts: &str,
    entry: &str,
    options: &Options,
    timings: &mut Timings,
    front: impl FnOnce(&mut Timings) -> Result<Front, Error>,
    kept: &mut Arc<SourceMap>,
) -> Result<Compiled, Error> {
    let store = Store::open()?;
    let system = |d| Error::System(Report::without_sources(vec![d]));
    let toolchain = Toolchain::find();
    let flags =
        CompileOptions { contract: !options.strict_floats, optimize: options.optimize, ..CompileOptions::default() };
    // The identity of the compiler is part of the key, so even cached libraries require a compiler.
    let identity = toolchain.as_ref().map(|t| t.identity().to_string()).map_err(|d| system(d.clone()))?;
    let key = cache::key(&[
        "library",
        &stamp(),
        texts,
        entry,
        &statics_text(options),
        &format!("{:?} {}", options.sizes, options.portable),
        &format!("{:?}", options.indices),
        &scheduler::key(options).map_err(|d| Error::Program(Report::without_sources(vec![d])))?,
        &Toolchain::flags(&flags).join(" "),
        &identity,
    ]);
    store.library(
        &key,
        &flags,
        || toolchain,
        timings,
        |timings| {
            let (sources, func) = front(timings)?;
            *kept = sources.clone();
            let lowered = pipeline::lowered(&func, options, timings).map_err(|d| Error::program(d, &sources))?;
            Ok(pipeline::c(&lowered, &sources, timings))
        },
    )
}
