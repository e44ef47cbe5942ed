//! Programs and compiled entries: the library's front door. `options` has what is said of how an entry is compiled.

mod options;

use crate::automatic;
use crate::error::{Error, Report};
use crate::function::Function;
use crate::io;
use crate::locate::{self, Fault};
use crate::materialise::{self, Keeping, Made, Way};
use crate::pair::Pair;
use crate::pipeline;
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

pub use options::{Backend, Gradient, Mode, Options};

/// A program: a file with everything that it imports.
pub struct Program {
    front: taffeta_frontend::Program,
    sources: Arc<SourceMap>,
    timings: Timings,
}

impl Program {
    /// Reads a file and what it imports; `-` is standard input.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, and everything that is wrong with the syntax.
    pub fn load(path: impl AsRef<Path>) -> Result<Program, Error> {
        let program = Program::open(path.as_ref())?;
        program.refuse_broken()?;
        Ok(program)
    }

    /// Reads a program from a string. `name` stands in messages; imports are searched beside the current directory.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the syntax.
    pub fn from_source(name: &str, text: &str) -> Result<Program, Error> {
        let program = Program::read(Source::inline(name, text));
        program.refuse_broken()?;
        Ok(program)
    }

    /// Reads a file, broken or not: [`Program::check`] says what is wrong.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn open(path: &Path) -> Result<Program, Error> {
        let text = io::read_text(path).map_err(|d| Error::Program(Report::without_sources(vec![d])))?;
        let name = path.display().to_string();
        // What standard input imports lies in the current directory.
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

    /// What the front end knows.
    pub fn front(&self) -> &taffeta_frontend::Program {
        &self.front
    }

    /// The texts of all files.
    pub fn sources(&self) -> &Arc<SourceMap> {
        &self.sources
    }

    /// How long reading took.
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// The docstring of the file.
    pub fn doc(&self) -> Option<&str> {
        self.front.doc()
    }

    /// The names of the file's schedules, in order.
    pub fn schedules(&self) -> Vec<String> {
        self.front.schedules().into_iter().map(|s| s.name).collect()
    }

    /// The entries, in order, with their parameters and docstrings.
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

    /// Everything that is wrong with the program, entry by entry, and warnings (see [`Diagnostic::is_error`]); empty if
    /// there is nothing to say.
    pub fn check(&self) -> Vec<Diagnostic> {
        pipeline::check(&self.front)
    }

    /// The entry of that name, or the only one.
    ///
    /// # Errors
    ///
    /// There is no such entry, or there are several to choose from.
    pub fn entry(&self, name: Option<&str>) -> Result<String, Error> {
        self.refuse_broken()?;
        choose_entry(&self.entries(), name).map_err(|d| Error::program(d.into(), &self.sources))
    }

    /// The logical program of an entry: what it means, without any decision on how it runs but those of a schedule
    /// that is named. What `auto` chooses is in [`Program::scheduled`].
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry.
    pub fn logical(&self, entry: &str, options: &Options) -> Result<Func, Error> {
        self.timed_logical(entry, options, &mut Timings::default())
    }

    /// [`Program::logical`], with the time that its steps take.
    pub(crate) fn timed_logical(&self, entry: &str, options: &Options, timings: &mut Timings) -> Result<Func, Error> {
        self.entry(Some(entry))?;
        let made = self.keeping(entry, options, &Way::default(), timings);
        made.map(|(func, _)| func).map_err(|d| Error::program(d, &self.sources))
    }

    /// The logical program of an entry, whose gradients keep what is said; and what they keep where nobody else has
    /// said it.
    fn keeping(
        &self,
        entry: &str,
        options: &Options,
        way: &Way,
        timings: &mut Timings,
    ) -> Result<(Func, Vec<Explanation>), Diagnostics> {
        let (func, found) = match &options.gradient {
            None => pipeline::logical_keeping(&self.front, entry, options, way, timings)?,
            Some(gradient) => {
                let func = pipeline::differentiable(&self.front, entry, options, timings)?;
                let keeping = Keeping::new(way);
                let made = pipeline::gradient_keeping(&func, gradient, &options.sizes, &keeping, timings)?;
                (made.0, keeping.found())
            }
        };
        Ok((pipeline::indexed(func, &options.indices)?, found))
    }

    /// Returns whether a gradient in an entry leaves it to rules what it keeps.
    pub(crate) fn has_open_gradients(&self, entry: &str, options: &Options) -> Result<bool, Error> {
        let made = self.keeping(entry, options, &Way::default(), &mut Timings::default());
        made.map(|(_, found)| !found.is_empty()).map_err(|d| Error::program(d, &self.sources))
    }

    /// The program of an entry under what rules choose, who choose what its gradients keep besides.
    fn automatic(&self, entry: &str, options: &Options, timings: &mut Timings) -> Result<Schedule, Error> {
        self.entry(Some(entry))?;
        let made = materialise::choose(options, timings, &mut |way, timings| {
            let (func, found) = self.keeping(entry, options, way, timings)?;
            Ok(Made { funcs: vec![func], found, whole: () })
        });
        let chosen = made.map(|(mut schedules, ())| schedules.swap_remove(0));
        chosen.map_err(|d| Error::program(d, &self.sources))
    }

    /// The program of an entry as it is to run: the logical program, under what rules choose if they are to.
    pub(crate) fn to_run(&self, entry: &str, options: &Options, timings: &mut Timings) -> Result<Func, Error> {
        match automatic::is_automatic(options) {
            true => Ok(self.automatic(entry, options, timings)?.into_func()),
            false => self.timed_logical(entry, options, timings),
        }
    }

    /// The program of an entry whatever its sizes, and whether it is another one once they are known: budgets of memory
    /// are kept then.
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
        let open = materialise::is_asked(options) && materialise::is_open(gradient);
        Ok((func, waits || open || gradient.memory.is_some()))
    }

    /// The options with what inputs say besides: the sizes that follow from them and from `sizes`, how many elements
    /// structured parameters store ([`Options::hints`]), and, for a budget of memory, the values of parameters that are
    /// single integers. Both are texts as after `--in` and `--size`
    /// ([`crate::inputs`]); not every input need be there.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry; names that it does not have; inputs that do not fit it or each other.
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

    /// The program as it is to run, with its sizes compiled in.
    ///
    /// # Errors
    ///
    /// As [`Program::logical`].
    pub fn sized(&self, entry: &str, options: &Options) -> Result<Func, Error> {
        let func = self.to_run(entry, options, &mut Timings::default())?;
        if options.sizes.is_empty() {
            return Ok(func);
        }
        let sizes = options.sizes.iter().map(|(k, v)| (k.clone(), *v)).collect();
        taffeta_codegen::lower::specialise(&func, &sizes).map_err(|d| Error::program(d, &self.sources))
    }

    /// The gradient of an entry, and what it keeps for its backward pass: tensor by tensor, in sizes, and in bytes as
    /// far as [`Options::sizes`] says them.
    ///
    /// # Errors
    ///
    /// As [`Program::logical`].
    pub fn explained(&self, entry: &str, options: &Options) -> Result<(Func, Explanation), Error> {
        self.entry(Some(entry))?;
        let mut timings = Timings::default();
        let gradient = options.gradient.clone().unwrap_or_default();
        let func = pipeline::differentiable(&self.front, entry, options, &mut timings);
        let made = func.and_then(|func| pipeline::gradient(&func, &gradient, &options.sizes, &mut timings));
        made.map_err(|d| Error::program(d, &self.sources))
    }

    /// The tangents of an entry, of functions that have their own gradients too: there they are those of what the
    /// functions do.
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

    /// The functions whose own gradients (`@gradient(f)`) the gradient of an entry uses, with the places of their
    /// calls.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry.
    pub fn custom_vjps(&self, entry: &str, options: &Options) -> Result<Vec<(String, taffeta_ast::Span)>, Error> {
        let func = pipeline::differentiable(&self.front, entry, options, &mut Timings::default());
        let func = func.map_err(|d| Error::program(d, &self.sources))?;
        Ok(func.custom_vjps.into_iter().map(|c| (c.function, c.span)).collect())
    }

    /// The logical program of an entry with the steps that its schedule took; further steps can be taken on it
    /// ([`crate::schedule::Schedule::call`]).
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry, and a step that is refused.
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
    /// Everything that is wrong with the entry; a C compiler that is missing.
    pub fn compile(&self, entry: &str, options: &Options) -> Result<Function, Error> {
        // Also where the cache has the library: a wrong name is a wrong name.
        self.entry(Some(entry))?;
        let function = Function::new(&self.texts_key(), entry, options, self.timings.clone(), |timings| {
            Ok((self.sources.clone(), self.to_run(entry, options, timings)?))
        })?;
        Ok(function.with_sources(&self.sources))
    }

    /// Compiles the gradient of an entry as two functions, with a tape between them: see [`crate::pair`].
    /// `options.gradient` says with respect to what, and what is kept; without it, all floating-point parameters are
    /// meant.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry, or that has no gradient; a C compiler that is missing.
    pub fn differentiate(&self, entry: &str, options: &Options) -> Result<Pair, Error> {
        self.entry(Some(entry))?;
        let wrong = |d: Diagnostics| Error::program(d, &self.sources);
        let gradient = options.gradient.clone().unwrap_or_default();
        if gradient.mode == Mode::Forward {
            let d = Diagnostic::new("grad::pair", "tangents are computed in one pass, with the results");
            return Err(wrong(d.help("compile them with `Program::compile`").into()));
        }
        let mut timings = self.timings.clone();
        let plain = Options { gradient: None, ..options.clone() };
        // Calls with gradients of their own are noted in it.
        let func = pipeline::differentiable(&self.front, entry, &plain, &mut timings).map_err(wrong)?;
        let func = pipeline::indexed(func, &options.indices).map_err(wrong)?;
        let mut pair = |way: &Way, timings: &mut Timings| {
            let keeping = Keeping::new(way);
            let pair = pipeline::pair(&func, &gradient, &options.sizes, &keeping, timings)?;
            Ok(Made { funcs: vec![pair.forward.clone(), pair.backward.clone()], found: keeping.found(), whole: pair })
        };
        let made = match automatic::is_automatic(options) {
            false => pair(&Way::default(), &mut timings).map_err(wrong)?.whole,
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

    /// Compiles an entry as a schedule made it.
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
    /// `options` are those that the schedule was begun with ([`Program::scheduled`]).
    ///
    /// # Errors
    ///
    /// A C compiler that is missing; what cannot be lowered.
    pub fn compile_scheduled(&self, schedule: &Schedule, options: &Options) -> Result<Function, Error> {
        let entry = &schedule.func().name;
        let texts = taffeta_codegen::cache::key(&[&self.texts_key(), &schedule.trace().to_json()]);
        let function = Function::new(&texts, entry, options, self.timings.clone(), |_| {
            Ok((self.sources.clone(), schedule.func().clone()))
        })?;
        Ok(function.with_sources(&self.sources))
    }

    /// The C that is compiled, with the headers' declarations in it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry.
    pub fn c_source(&self, entry: &str, options: &Options) -> Result<CSource, Error> {
        let lowered = self.lowered(entry, options)?;
        Ok(pipeline::c(&lowered, &self.sources, &mut Timings::default()))
    }

    /// The program on flat buffers, with every check that remains.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry.
    pub fn lowered(&self, entry: &str, options: &Options) -> Result<Lowered, Error> {
        let mut timings = Timings::default();
        let func = self.to_run(entry, options, &mut timings)?;
        pipeline::lowered(&func, options, &mut timings).map_err(|d| Error::program(d, &self.sources))
    }

    /// The program on the arrays that its structured tensors consist of, with its sizes compiled in.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry; what has no rule in structured lowering yet.
    pub fn structured(&self, entry: &str, options: &Options) -> Result<Func, Error> {
        let mut timings = Timings::default();
        let func = self.to_run(entry, options, &mut timings)?;
        let lowered =
            pipeline::structured(&func, options, &mut timings).map_err(|d| Error::program(d, &self.sources))?;
        Ok(lowered.func)
    }

    /// What was done with the loops of an entry that access structured tensors: what drives each, what is asked at the
    /// coordinates that it comes to, which these are, and how many are to be expected, with the sizes compiled in.
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
    /// As [`Program::structured`].
    pub fn explained_loops(&self, entry: &str, options: &Options) -> Result<Vec<Explained>, Error> {
        let mut timings = Timings::default();
        let func = self.to_run(entry, options, &mut timings)?;
        let lowered =
            pipeline::structured(&func, options, &mut timings).map_err(|d| Error::program(d, &self.sources))?;
        Ok(lowered.explained)
    }

    /// What is wrong with the arguments of an entry, pointing at the annotations of its parameters.
    pub fn report(&self, entry: &str, faults: Vec<Fault>) -> Report {
        locate::report(faults, &self.sources, entry)
    }

    /// The key of all texts that the program is made of, in the order in which they are read.
    pub(crate) fn texts_key(&self) -> String {
        let parts: Vec<&str> = self.sources.files().flat_map(|f| [f.name.as_str(), &f.text]).collect();
        taffeta_codegen::cache::key(&parts)
    }
}

/// The entry that is meant.
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
                return Err(d.help(format!("an input stands behind an option: `--in '{name}'`")).note(list));
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
