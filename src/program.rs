//! Programs and their entries: the main interface of the library. A [`Program`] is a parsed file; its methods return an
//! entry at each stage of compilation (logical, scheduled, structured, lowered, C), or as a compiled [`Function`].
//! `pipeline` has the stages, and `options` the compilation options.

use crate::automatic;
use crate::error::{Error, Report};
use crate::function::Function;
use crate::io;
use crate::locate::{self, Fault};
use crate::materialise::{self, Derived};
use crate::pair::Pair;
use crate::pipeline;
use crate::tape_plan;
use crate::tape_plan::{TapePlan, TapeRecorder};
use crate::timing::Timings;
use std::path::Path;
use std::sync::Arc;
use taffeta_ast::{Diagnostic, Diagnostics, Func, SourceMap};
use taffeta_autodiff::Explanation;
use taffeta_codegen::c::CSource;
use taffeta_codegen::{Lowered, Signature};
use taffeta_frontend::program::{EntryInfo, Source};
use taffeta_schedule::Schedule;
use taffeta_structured::Explained;

pub use crate::options::{Backend, Gradient, Mode, Options};

/// Program: a file and the files that it imports.
pub struct Program {
    front: taffeta_frontend::Program,
    sources: Arc<SourceMap>,
    timings: Timings,
}

impl Program {
    /// Reads a file and its imports; `-` is standard input.
    ///
    /// # Errors
    ///
    /// An unreadable file, and every syntax error.
    pub fn load(path: impl AsRef<Path>) -> Result<Program, Error> {
        let program = Program::open(path.as_ref())?;
        program.refuse_broken()?;
        Ok(program)
    }

    /// Reads a program from a string. `name` is its name in messages; imports are resolved in the current directory.
    ///
    /// # Errors
    ///
    /// Every syntax error.
    pub fn from_source(name: &str, text: &str) -> Result<Program, Error> {
        let program = Program::read(Source::inline(name, text));
        program.refuse_broken()?;
        Ok(program)
    }

    /// Reads a file, valid or not: [`Program::check`] returns its errors.
    ///
    /// # Errors
    ///
    /// An unreadable file.
    pub fn open(path: &Path) -> Result<Program, Error> {
        let text = io::read_text(path).map_err(|d| Error::Program(Report::without_sources(vec![d])))?;
        let name = path.display().to_string();
        // Imports of standard input are resolved in the current directory.
        let path = (!io::is_stdin(path)).then(|| path.to_path_buf());
        Ok(Program::read(Source { name, path, text: text.into() }))
    }

    pub(crate) fn read(main: Source) -> Program {
        let mut timings = Timings::default();
        let front = pipeline::parse(main, &mut timings);
        let sources = Arc::new(front.sources().clone());
        Program { front, sources, timings }
    }

    pub(crate) fn refuse_broken(&self) -> Result<(), Error> {
        match self.front.diagnostics() {
            [] => Ok(()),
            found => Err(Error::program(Diagnostics(found.to_vec()), &self.sources)),
        }
    }

    /// Returns the front end's form of the program.
    pub fn front(&self) -> &taffeta_frontend::Program {
        &self.front
    }

    /// Returns the sources of all files.
    pub fn sources(&self) -> &Arc<SourceMap> {
        &self.sources
    }

    /// Returns the time spent reading.
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// Returns the docstring of the file.
    pub fn doc(&self) -> Option<&str> {
        self.front.doc()
    }

    /// Returns the names of the file's schedules, in order.
    pub fn schedules(&self) -> Vec<String> {
        self.front.schedules().into_iter().map(|s| s.name).collect()
    }

    /// Returns the entries, in order, with their parameters and docstrings.
    ///
    /// ```
    /// let program = taffeta::Program::from_source("p.ft", r#"
    /// def scale(x: f32[n], a: f32) -> f32[n]:
    ///     """Multiplies every element."""
    ///     y = a * x
    ///     return y
    /// "#)?;
    /// let entry = &program.entries()[0];
    /// assert_eq!(entry.name, "scale");
    /// assert_eq!(entry.doc.as_deref(), Some("Multiplies every element."));
    /// assert_eq!(entry.params[0].annotation, "f32[n]");
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    pub fn entries(&self) -> Vec<EntryInfo> {
        self.front.entries()
    }

    /// Returns every error and warning of the program (see [`Diagnostic::is_error`]), entry by entry; empty if there
    /// are none.
    pub fn check(&self) -> Vec<Diagnostic> {
        pipeline::check(&self.front)
    }

    /// Resolves an entry's name; `None` selects the only entry.
    ///
    /// # Errors
    ///
    /// An unknown name, or several entries to choose from.
    pub fn entry(&self, name: Option<&str>) -> Result<String, Error> {
        self.refuse_broken()?;
        choose_entry(&self.entries(), name).map_err(|d| Error::program(d.into(), &self.sources))
    }

    /// Returns the logical program of an entry: its meaning, with no execution decisions but those of a named schedule.
    /// For automatic schedules, see [`Program::scheduled`].
    ///
    /// # Errors
    ///
    /// Every error of the entry.
    pub fn logical(&self, entry: &str, options: &Options) -> Result<Func, Error> {
        self.timed_logical(entry, options, &mut Timings::default())
    }

    /// Returns the logical program as [`Program::logical`] does, recording the time of each stage.
    pub(crate) fn timed_logical(&self, entry: &str, options: &Options, timings: &mut Timings) -> Result<Func, Error> {
        self.entry(Some(entry))?;
        let made = self.keeping(entry, options, &TapePlan::default(), timings);
        made.map(|(func, _)| func).map_err(|d| Error::program(d, &self.sources))
    }

    /// Derives the logical program of an entry under a tape plan, and explains the tapes of gradients without a given
    /// tape.
    fn keeping(
        &self,
        entry: &str,
        options: &Options,
        plan: &TapePlan,
        timings: &mut Timings,
    ) -> Result<(Func, Vec<Explanation>), Diagnostics> {
        let (func, found) = match &options.gradient {
            None => pipeline::logical_with_plan(&self.front, entry, options, plan, timings)?,
            Some(gradient) => {
                let func = pipeline::differentiable(&self.front, entry, options, timings)?;
                let keeping = TapeRecorder::new(plan);
                let made = pipeline::gradient_with_plan(&func, gradient, &options.sizes, &keeping, timings)?;
                (made.0, keeping.found())
            }
        };
        Ok((pipeline::indexed(func, &options.indices)?, found))
    }

    /// Returns whether an entry has a gradient whose tape rules choose.
    pub(crate) fn has_open_gradients(&self, entry: &str, options: &Options) -> Result<bool, Error> {
        let made = self.keeping(entry, options, &TapePlan::default(), &mut Timings::default());
        made.map(|(_, found)| !found.is_empty()).map_err(|d| Error::program(d, &self.sources))
    }

    /// Schedules an entry by rules, which also choose the tapes of its gradients.
    fn automatic(&self, entry: &str, options: &Options, timings: &mut Timings) -> Result<Schedule, Error> {
        self.entry(Some(entry))?;
        let made = materialise::choose(options, timings, &mut |plan, timings| {
            let (func, found) = self.keeping(entry, options, plan, timings)?;
            Ok(Derived { funcs: vec![func], found, whole: () })
        });
        let chosen = made.map(|(mut schedules, ())| schedules.swap_remove(0));
        chosen.map_err(|d| Error::program(d, &self.sources))
    }

    /// Returns the program of an entry that runs: the logical program, scheduled by rules if `options` ask for that.
    pub(crate) fn to_run(&self, entry: &str, options: &Options, timings: &mut Timings) -> Result<Func, Error> {
        match automatic::is_automatic(options) {
            true => Ok(self.automatic(entry, options, timings)?.into_func()),
            false => self.timed_logical(entry, options, timings),
        }
    }

    /// Returns the warnings about an entry's structured tensors.
    pub(crate) fn warnings(&self, entry: &str, func: &Func, options: &Options) -> Vec<Diagnostic> {
        pipeline::warnings(&self.front, (entry, func), options)
    }

    /// Returns the program of an entry for symbolic sizes, and whether known sizes would change the program, as memory
    /// budgets do.
    pub(crate) fn unsized_logical(
        &self,
        entry: &str,
        options: &Options,
        timings: &mut Timings,
    ) -> Result<(Func, bool), Error> {
        let wrong = |d| Error::program(d, &self.sources);
        let (func, waits) = pipeline::unsized_logical(&self.front, entry, options, timings).map_err(wrong)?;
        let Some(gradient) = &options.gradient else { return Ok((func, waits)) };
        let plain = Gradient { memory: None, ..gradient.clone() };
        let (func, _) = pipeline::gradient(&func, &plain, &options.sizes, timings).map_err(wrong)?;
        let open = tape_plan::chooses_tapes(options) && tape_plan::is_open(gradient);
        Ok((func, waits || open || gradient.memory.is_some()))
    }

    /// Extends the options by facts from inputs: sizes, numbers of stored elements of structured parameters
    /// ([`Options::hints`]), and for a memory budget, the values of scalar integer parameters. `given` and `sizes` are
    /// the arguments of `--in` and `--size` ([`crate::inputs`]); inputs may be missing.
    ///
    /// # Errors
    ///
    /// Every error of the entry; unknown names; inputs that do not fit the entry or each other.
    pub fn with_inputs(
        &self,
        entry: &str,
        options: &Options,
        given: &[(String, String)],
        sizes: &[(String, i64)],
    ) -> Result<Options, Error> {
        let mut options = options.clone();
        if given.is_empty() && sizes.is_empty() {
            return Ok(options);
        }
        self.entry(Some(entry))?;
        let (func, _) = self.unsized_logical(entry, &options, &mut Timings::default())?;
        let signature = Signature::of(&func, &Default::default());
        let known = crate::inputs::known(&signature, given, sizes)
            .map_err(|faults| Error::Input(locate::report(faults, &self.sources, entry)))?;
        options.sizes.extend(known.sizes);
        options.hints.extend(known.stored);
        if let Some(gradient) = &mut options.gradient {
            gradient.values.extend(known.integers);
        }
        Ok(options)
    }

    /// Returns the program that runs, with its sizes compiled in.
    ///
    /// # Errors
    ///
    /// Those of [`Program::logical`].
    pub fn sized(&self, entry: &str, options: &Options) -> Result<Func, Error> {
        let func = self.to_run(entry, options, &mut Timings::default())?;
        if options.sizes.is_empty() {
            return Ok(func);
        }
        let sizes = options.sizes.iter().map(|(k, v)| (k.clone(), *v)).collect();
        taffeta_codegen::lower::specialise(&func, &sizes).map_err(|d| Error::program(d, &self.sources))
    }

    /// Returns the gradient of an entry and the explanation of its tape: tensor by tensor, in symbolic sizes, and in
    /// bytes as far as [`Options::sizes`] determine them.
    ///
    /// # Errors
    ///
    /// Those of [`Program::logical`].
    pub fn explained(&self, entry: &str, options: &Options) -> Result<(Func, Explanation), Error> {
        self.entry(Some(entry))?;
        let mut timings = Timings::default();
        let gradient = options.gradient.clone().unwrap_or_default();
        let func = pipeline::differentiable(&self.front, entry, options, &mut timings);
        let made = func.and_then(|func| pipeline::gradient(&func, &gradient, &options.sizes, &mut timings));
        made.map_err(|d| Error::program(d, &self.sources))
    }

    /// Compiles the tangents of an entry. Functions with user-defined gradients get the tangents of their bodies.
    pub(crate) fn tangents(&self, entry: &str, options: &Options, gradient: &Gradient) -> Result<Function, Error> {
        let texts = taffeta_codegen::cache::key(&[&self.texts_key(), "tangents of bodies"]);
        let gradient = Gradient { mode: Mode::Forward, ..gradient.clone() };
        let options = Options { gradient: Some(gradient.clone()), ..options.clone() };
        let function = Function::new(&texts, entry, &options, self.timings.clone(), |timings| {
            let func = self.timed_logical(entry, &Options { gradient: None, ..options.clone() }, timings)?;
            let func = pipeline::gradient(&func, &gradient, &options.sizes, timings);
            let func = func.and_then(|(func, _)| pipeline::chosen(func, &options, timings));
            Ok((self.sources.clone(), func.map_err(|d| Error::program(d, &self.sources))?))
        })?;
        Ok(function.with_sources(&self.sources))
    }

    /// Returns the functions with user-defined gradients (`@gradient(f)`) that the gradient of an entry uses, with the
    /// spans of their calls.
    ///
    /// # Errors
    ///
    /// Every error of the entry.
    pub fn custom_vjps(&self, entry: &str, options: &Options) -> Result<Vec<(String, taffeta_ast::Span)>, Error> {
        let func = pipeline::differentiable(&self.front, entry, options, &mut Timings::default());
        let func = func.map_err(|d| Error::program(d, &self.sources))?;
        Ok(func.custom_vjps.into_iter().map(|c| (c.function, c.span)).collect())
    }

    /// Returns the logical program of an entry with the steps of its schedule; more steps can be applied
    /// ([`crate::schedule::Schedule::call`]).
    ///
    /// # Errors
    ///
    /// Every error of the entry, and a refused step.
    pub fn scheduled(&self, entry: &str, options: &Options) -> Result<Schedule, Error> {
        self.entry(Some(entry))?;
        let mut timings = Timings::default();
        if automatic::is_automatic(options) {
            return self.automatic(entry, options, &mut timings);
        }
        pipeline::scheduled(&self.front, entry, options, &mut timings).map_err(|d| Error::program(d, &self.sources))
    }

    /// Compiles an entry.
    ///
    /// ```
    /// use taffeta::{Options, Program};
    /// let program = Program::from_source("p.ft", "
    /// def total(x: f64[n]) -> f64:
    ///     s: f64 = 0.0
    ///     for i in range(n):
    ///         s += x[i]
    ///     return s
    /// ")?;
    /// let total = program.compile("total", &Options::default())?;
    /// let x = ndarray::arr1(&[1.0, 2.0, 3.5]);
    /// let results = total.call().input("x", x.view()).run()?;
    /// assert_eq!(results.scalar::<f64>("s")?, 6.5);
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Every error of the entry; a missing C compiler.
    pub fn compile(&self, entry: &str, options: &Options) -> Result<Function, Error> {
        // A wrong name is an error even if the cache has the library.
        self.entry(Some(entry))?;
        let function = Function::new(&self.texts_key(), entry, options, self.timings.clone(), |timings| {
            Ok((self.sources.clone(), self.to_run(entry, options, timings)?))
        })?;
        Ok(function.with_sources(&self.sources))
    }

    /// Compiles the gradient of an entry as two functions with a tape between them: see [`crate::pair`].
    /// `options.gradient` selects the parameters and the tape; the default is all floating-point parameters.
    ///
    /// # Errors
    ///
    /// Every error of the entry, including its differentiation; a missing C compiler.
    pub fn differentiate(&self, entry: &str, options: &Options) -> Result<Pair, Error> {
        self.entry(Some(entry))?;
        let wrong = |d: Diagnostics| Error::program(d, &self.sources);
        let gradient = options.gradient.clone().unwrap_or_default();
        if gradient.mode == Mode::Forward {
            let d = Diagnostic::new("grad::pair", "cannot split tangents into a forward and a backward pass");
            return Err(wrong(d.help("compile them with `Program::compile`").into()));
        }
        let mut timings = self.timings.clone();
        let plain = Options { gradient: None, ..options.clone() };
        // The program records the calls of functions with user-defined gradients.
        let func = pipeline::differentiable(&self.front, entry, &plain, &mut timings).map_err(wrong)?;
        let func = pipeline::indexed(func, &options.indices).map_err(wrong)?;
        let mut pair = |plan: &TapePlan, timings: &mut Timings| {
            let keeping = TapeRecorder::new(plan);
            let pair = pipeline::pair(&func, &gradient, &options.sizes, &keeping, timings)?;
            Ok(Derived {
                funcs: vec![pair.forward.clone(), pair.backward.clone()],
                found: keeping.found(),
                whole: pair,
            })
        };
        let made = match automatic::is_automatic(options) {
            false => pair(&TapePlan::default(), &mut timings).map_err(wrong)?.whole,
            true => {
                let (schedules, made) = materialise::choose(options, &mut timings, &mut pair).map_err(wrong)?;
                let mut passes = schedules.into_iter().map(Schedule::into_func);
                let (forward, backward) = (passes.next(), passes.next());
                let [forward, backward] = [forward, backward].map(|f| f.expect("a pair has two passes"));
                taffeta_autodiff::Pair { forward, backward, ..made }
            }
        };
        let options = Options { gradient: Some(gradient), ..options.clone() };
        let compile = |pass: &str, func: &Func| {
            let texts = taffeta_codegen::cache::key(&[&self.texts_key(), "one of two passes", pass]);
            let front = |_: &mut Timings| Ok((self.sources.clone(), func.clone()));
            Ok(Function::new(&texts, entry, &options, timings.clone(), front)?.with_sources(&self.sources))
        };
        let (forward, backward) = (compile("forward", &made.forward)?, compile("backward", &made.backward)?);
        Ok(Pair::new(forward, backward, made))
    }

    /// Compiles an entry from its schedule.
    ///
    /// ```
    /// use taffeta::schedule::SplitBy;
    /// use taffeta::{Options, Program};
    /// let program = Program::from_source("p.ft", "
    /// def scale(x: inout[f32[n]], a: f32):
    ///     for i in range(n):
    ///         x[i] = a * x[i]
    /// ")?;
    /// let by_hand = Options::default().schedule(None);
    /// let mut s = program.scheduled("scale", &by_hand)?;
    /// let (outer, inner) = s.split("i", SplitBy::Factor(256)).expect("is always legal");
    /// s.parallelize(&outer).expect("iterations are independent");
    /// let refused = s.reorder(taffeta::schedule::targets![&outer, &outer]).unwrap_err();
    /// assert_eq!(refused.message, "the loop `i~o` is given twice");
    /// let scale = program.compile_scheduled(&s, &by_hand)?;
    /// let mut x = ndarray::arr1(&[1.0f32, 2.0, 3.0]);
    /// scale.call().inout("x", x.view_mut()).scalar("a", 2.0f32).run()?;
    /// assert_eq!(x, ndarray::arr1(&[2.0, 4.0, 6.0]));
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    ///
    /// `options` must be the ones that the schedule was started with ([`Program::scheduled`]).
    ///
    /// # Errors
    ///
    /// A missing C compiler; a program that cannot be lowered.
    pub fn compile_scheduled(&self, schedule: &Schedule, options: &Options) -> Result<Function, Error> {
        let entry = &schedule.func().name;
        let texts = taffeta_codegen::cache::key(&[&self.texts_key(), &schedule.trace().to_json()]);
        let function = Function::new(&texts, entry, options, self.timings.clone(), |_| {
            Ok((self.sources.clone(), schedule.func().clone()))
        })?;
        Ok(function.with_sources(&self.sources))
    }

    /// Returns the generated C, including the declarations of the headers.
    ///
    /// # Errors
    ///
    /// Every error of the entry.
    pub fn c_source(&self, entry: &str, options: &Options) -> Result<CSource, Error> {
        let lowered = self.lowered(entry, options)?;
        Ok(pipeline::c(&lowered, &self.sources, &mut Timings::default()))
    }

    /// Lowers an entry to flat buffers, with all remaining checks.
    ///
    /// # Errors
    ///
    /// Every error of the entry.
    pub fn lowered(&self, entry: &str, options: &Options) -> Result<Lowered, Error> {
        let mut timings = Timings::default();
        let func = self.to_run(entry, options, &mut timings)?;
        pipeline::lowered(&func, options, &mut timings).map_err(|d| Error::program(d, &self.sources))
    }

    /// Lowers an entry to the arrays of its structured tensors, with its sizes compiled in.
    ///
    /// # Errors
    ///
    /// Every error of the entry; programs that structured lowering does not support.
    pub fn structured(&self, entry: &str, options: &Options) -> Result<Func, Error> {
        let mut timings = Timings::default();
        let func = self.to_run(entry, options, &mut timings)?;
        let lowered =
            pipeline::structured(&func, options, &mut timings).map_err(|d| Error::program(d, &self.sources))?;
        Ok(lowered.func)
    }

    /// Explains the loops of an entry that access structured tensors: the driving iterator of each, the operands
    /// located at its coordinates, the coordinates visited, and the expected trip count, with the sizes compiled in.
    ///
    /// ```
    /// let program = taffeta::Program::from_source("p.ft", r#"
    /// def dot(a: f64[n] @ format(compressed), b: f64[n] @ format(compressed)):
    ///     s = 0.0
    ///     for j in range(n):
    ///         s += a[j] * b[j]
    ///     return s
    /// "#)?;
    /// let loops = program.explained_loops("dot", &taffeta::Options::default())?;
    /// assert_eq!(loops[0].iter, "j");
    /// assert_eq!(loops[0].iterations.as_deref(), Some("at most nnz(a) + nnz(b)"));
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Program::structured`].
    pub fn explained_loops(&self, entry: &str, options: &Options) -> Result<Vec<Explained>, Error> {
        let mut timings = Timings::default();
        let func = self.to_run(entry, options, &mut timings)?;
        let lowered =
            pipeline::structured(&func, options, &mut timings).map_err(|d| Error::program(d, &self.sources))?;
        Ok(lowered.explained)
    }

    /// Builds a report of argument faults that points at the annotations of the entry's parameters.
    pub fn report(&self, entry: &str, faults: Vec<Fault>) -> Report {
        locate::report(faults, &self.sources, entry)
    }

    /// Returns the cache key of all files of the program, in the order of reading.
    pub(crate) fn texts_key(&self) -> String {
        let parts: Vec<&str> = self.sources.files().flat_map(|f| [f.name.as_str(), &f.text]).collect();
        taffeta_codegen::cache::key(&parts)
    }
}

/// Resolves an entry's name; `None` selects the only entry.
fn choose_entry(entries: &[EntryInfo], name: Option<&str>) -> Result<String, Diagnostic> {
    let names: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    let list = if names.is_empty() {
        "this file has no entries".to_string()
    } else {
        format!("entries: {}", names.join(", "))
    };
    match (name, names.as_slice()) {
        (Some(name), _) if names.contains(&name) => Ok(name.to_string()),
        (Some(name), _) => {
            let d = Diagnostic::new("entry::name", format!("there is no entry `{name}`"));
            if name.contains('=') {
                return Err(d.help(format!("to give an input, write `--in '{name}'`")).note(list));
            }
            Err(match taffeta_ast::spelling::nearest(name, names.iter().copied()) {
                Some(near) => d.help(format!("did you mean `{near}`?")).note(list),
                None => d.help(list).note("an entry is a function whose parameters are all annotated"),
            })
        }
        (None, [only]) => Ok((*only).to_string()),
        (None, []) => Err(Diagnostic::new("entry::none", "this file has no entry to run")
            .help("annotate all parameters of a function: `def f(x: f32[n]):`")),
        (None, _) => Err(Diagnostic::new("entry::which", "this file has several entries")
            .help(format!("name one of them: {}", names.join(", ")))),
    }
}
