//! Programs: a file, its imports, and the part of the operator library that it names.
//!
//! All files are read and parsed when the program is loaded, so that the set of files (which the compile cache is keyed
//! by) is known before elaboration. The [`Loader`] decides where modules come from.

mod library;
mod unknown;
mod uses;
mod walk;

use crate::elaborate::{self, Hooks};
use crate::syntax::{Function, Import, Item, Module};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taffeta_ast::span::SourceFile;
use taffeta_ast::{Diagnostic, Diagnostics, FileId, Func, SourceMap, Span};

pub use crate::elaborate::StaticValue;

/// Text of a module, with its name and path.
#[derive(Clone, Debug)]
pub struct Source {
    /// Display name: the path as the user wrote it, or `<libop>/softmax.ft`.
    pub name: String,
    /// File that the text was read from; `None` for a text without a file.
    pub path: Option<PathBuf>,
    /// Whole text.
    pub text: Arc<str>,
}

impl Source {
    /// Creates a source that is not a file.
    pub fn inline(name: impl Into<String>, text: impl Into<Arc<str>>) -> Source {
        Source { name: name.into(), path: None, text: text.into() }
    }
}

/// Source of modules: the file system, libraries, or a test.
pub trait Loader {
    /// Loads the module that `from module import …` names, in the file at `importing`. The error tells why there is
    /// none.
    fn load(&self, module: &str, importing: Option<&Path>) -> Result<Source, String>;

    /// Returns the module that defines `name` for every file without an import (the operator library), if there is one.
    fn prelude(&self, name: &str) -> Option<Source>;

    /// Returns all names that [`Loader::prelude`] knows, for proposals.
    fn prelude_names(&self) -> Vec<String>;

    /// Returns the module that defines `name` for every schedule without an import (the library of schedules), if there
    /// is one.
    fn schedule(&self, _name: &str) -> Option<Source> {
        None
    }

    /// Returns all names that [`Loader::schedule`] knows.
    fn schedule_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Loader without modules: for programs of one file without the operator library.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLoader;

impl Loader for NoLoader {
    fn load(&self, module: &str, _: Option<&Path>) -> Result<Source, String> {
        Err(format!("there is no module `{module}`"))
    }
    fn prelude(&self, _: &str) -> Option<Source> {
        None
    }
    fn prelude_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Index of a module of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ModuleId(pub(crate) usize);

/// Definition of a name at the top level of a module.
#[derive(Clone, Debug)]
pub(crate) enum Global {
    /// Function at that index of the module's items.
    Function(usize),
    /// Static assignment at that index.
    Assign(usize),
    /// Name imported from another module.
    Imported(ModuleId, String),
    /// Failed import; a diagnostic has reported it.
    Missing,
}

pub(crate) struct ModuleData {
    pub(crate) file: FileId,
    pub(crate) module: Arc<Module>,
    pub(crate) globals: FxHashMap<String, Global>,
    /// Whether the module is part of a library: errors inside are shown at the user's call.
    pub(crate) prelude: bool,
    /// Whether the module is part of the library of schedules.
    pub(crate) schedules: bool,
}

/// File with all modules that it uses.
pub struct Program {
    pub(crate) modules: Vec<ModuleData>,
    pub(crate) prelude: FxHashMap<String, ModuleId>,
    pub(crate) prelude_names: Vec<String>,
    pub(crate) schedule_prelude: FxHashMap<String, ModuleId>,
    pub(crate) schedule_names: Vec<String>,
    sources: SourceMap,
    diagnostics: Vec<Diagnostic>,
}

/// Maximum number of diagnostics of one file that propose names: each proposal compares with all known names.
const PROPOSALS: usize = 20;

/// Parameter of an entry, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Name of the parameter.
    pub name: String,
    /// Annotation as it is written.
    pub annotation: String,
    /// Whether it is a `static` parameter: a compile-time value.
    pub is_static: bool,
    /// Default as it is written.
    pub default: Option<String>,
}

/// Entry, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryInfo {
    /// Name of the entry.
    pub name: String,
    /// Docstring.
    pub doc: Option<String>,
    /// Parameters, in order; empty for a gradient (`dloss = grad(loss, …)`), which takes those of its function.
    pub params: Vec<ParamInfo>,
    /// Annotation of the results as it is written.
    pub results: Option<String>,
    /// Function that this entry is the gradient of, if it is one.
    pub gradient_of: Option<String>,
    /// Place of the definition.
    pub span: Span,
}

/// Schedule function, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleInfo {
    /// Name of the schedule.
    pub name: String,
    /// Entry that the schedule is for.
    pub target: String,
    /// Docstring.
    pub doc: Option<String>,
    /// Place of the definition.
    pub span: Span,
}

impl Program {
    /// Reads and parses `main` and all modules that it uses. Problems are kept in [`Program::diagnostics`].
    pub fn load(main: Source, loader: &dyn Loader) -> Program {
        let mut reader = Reader {
            loader,
            program: Program {
                modules: Vec::new(),
                prelude: FxHashMap::default(),
                prelude_names: loader.prelude_names(),
                schedule_prelude: FxHashMap::default(),
                schedule_names: loader.schedule_names(),
                sources: SourceMap::default(),
                diagnostics: Vec::new(),
            },
            by_name: FxHashMap::default(),
        };
        reader.read(main, Library::None);
        reader.program
    }

    /// Returns all texts that were read.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// Returns all files that the program's meaning depends on, the main one first.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.sources.files()
    }

    /// Returns the problems found while reading: syntax, imports, names defined twice.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Returns the docstring of the main file.
    pub fn doc(&self) -> Option<&str> {
        self.modules.first().and_then(|m| m.module.doc.as_deref())
    }

    /// Returns the syntax tree of the main file.
    pub fn module(&self) -> Option<&Module> {
        self.modules.first().map(|m| &*m.module)
    }

    /// Returns the entries of the main file, in order.
    pub fn entries(&self) -> Vec<EntryInfo> {
        let Some(main) = self.modules.first() else { return Vec::new() };
        let mut out = Vec::new();
        for item in &main.module.items {
            match item {
                Item::Function(f) if elaborate::is_entry(f) => out.push(self.entry_info(f)),
                Item::Assign { name, value } => {
                    if let Some(target) = elaborate::gradient_target(value) {
                        out.push(EntryInfo {
                            name: name.text.clone(),
                            doc: None,
                            params: Vec::new(),
                            results: None,
                            gradient_of: Some(target),
                            span: name.span.to(value.span),
                        });
                    }
                }
                _ => {}
            }
        }
        out
    }

    fn entry_info(&self, f: &Function) -> EntryInfo {
        let text = |e: &crate::syntax::Expr| self.sources.text(e.span).to_string();
        EntryInfo {
            name: f.name.text.clone(),
            doc: f.doc.clone(),
            params: f
                .params
                .iter()
                .map(|p| ParamInfo {
                    name: p.name.text.clone(),
                    annotation: p.annotation.as_ref().map(text).unwrap_or_default(),
                    is_static: p.annotation.as_ref().is_some_and(elaborate::is_static_annotation),
                    default: p.default.as_ref().map(text),
                })
                .collect(),
            results: f.returns.as_ref().map(text),
            gradient_of: None,
            span: f.name.span,
        }
    }

    /// Returns the schedule functions of the main file, in order.
    pub fn schedules(&self) -> Vec<ScheduleInfo> {
        let items = self.modules.first().map(|m| m.module.items.as_slice()).unwrap_or_default();
        items
            .iter()
            .filter_map(|item| match item {
                Item::Function(f) => elaborate::schedule_target(f).map(|target| ScheduleInfo {
                    name: f.name.text.clone(),
                    target,
                    doc: f.doc.clone(),
                    span: f.name.span,
                }),
                _ => None,
            })
            .collect()
    }

    /// Elaborates an entry of the main file. `statics` gives values to its `static` parameters.
    pub fn elaborate(
        &self,
        entry: &str,
        statics: &BTreeMap<String, StaticValue>,
        hooks: &dyn Hooks,
    ) -> Result<Func, Diagnostics> {
        self.refuse_broken()?;
        elaborate::entry(self, entry, statics, hooks)
    }

    /// Returns the warnings of an entry about conversions between storage formats.
    pub fn conversions(
        &self,
        entry: &str,
        statics: &BTreeMap<String, StaticValue>,
        hooks: &dyn Hooks,
    ) -> Vec<Diagnostic> {
        let mut found = elaborate::check(self, entry, statics, hooks);
        found.retain(|d| d.code == "structured::convert");
        found
    }

    /// Elaborates an entry of the main file that is going to be differentiated: the result records which of its calls
    /// have a custom VJP (`@gradient(f)`).
    pub fn differentiable(
        &self,
        entry: &str,
        statics: &BTreeMap<String, StaticValue>,
        hooks: &dyn Hooks,
    ) -> Result<Func, Diagnostics> {
        self.refuse_broken()?;
        elaborate::differentiable(self, entry, statics, hooks)
    }

    /// Elaborates an entry and applies one of the file's schedule functions to it.
    pub fn scheduled(
        &self,
        entry: &str,
        schedule: &str,
        statics: &BTreeMap<String, StaticValue>,
        hooks: &dyn Hooks,
    ) -> Result<Func, Diagnostics> {
        self.refuse_broken()?;
        elaborate::scheduled(self, entry, schedule, statics, hooks)
    }

    /// Returns all errors and warnings of the main file: those of reading it, of elaborating each entry, of building
    /// its gradients and of running its schedules with their defaults. Gradients and schedules of a faulty entry are
    /// left out. In templates, and in functions that need values from outside (`static` parameters, parameters of
    /// schedules without a default), names are checked.
    pub fn check(&self, hooks: &dyn Hooks) -> Vec<Diagnostic> {
        let mut all = self.diagnostics.clone();
        if !all.is_empty() {
            return all;
        }
        let mut known = elaborate::SeenDiagnostics::default();
        let none = BTreeMap::new();
        let (gradients, entries): (Vec<EntryInfo>, Vec<EntryInfo>) =
            self.entries().into_iter().partition(|e| e.gradient_of.is_some());
        let (entries, open): (Vec<EntryInfo>, Vec<EntryInfo>) =
            entries.into_iter().partition(|e| e.params.iter().all(|p| !p.is_static || p.default.is_some()));
        let found = each(&entries, |e| elaborate::check(self, &e.name, &none, hooks));
        // Errors of an entry would be repeated for its gradients and schedules.
        let mut unfit: FxHashSet<String> = open.into_iter().map(|e| e.name).collect();
        for (e, faults) in entries.iter().zip(found) {
            if faults.iter().any(Diagnostic::is_error) {
                unfit.insert(e.name.clone());
            }
            faults.into_iter().for_each(|d| elaborate::add(&mut all, &mut known, d));
        }
        self.check_custom_vjps(hooks, &mut all, &mut known);
        let (gradients, unmade): (Vec<EntryInfo>, Vec<EntryInfo>) =
            gradients.into_iter().partition(|g| g.gradient_of.as_ref().is_none_or(|f| !unfit.contains(f)));
        unfit.extend(unmade.into_iter().map(|g| g.name));
        let found = each(&gradients, |g| faults(elaborate::entry(self, &g.name, &none, hooks)));
        for (g, faults) in gradients.iter().zip(found) {
            if !faults.is_empty() {
                unfit.insert(g.name.clone());
            }
            faults.into_iter().for_each(|d| elaborate::add(&mut all, &mut known, d));
        }
        let schedules = self.check_forms(&mut all);
        let schedules: Vec<ScheduleInfo> = schedules.into_iter().filter(|s| !unfit.contains(&s.target)).collect();
        let found = each(&schedules, |s| faults(elaborate::scheduled(self, &s.target, &s.name, &none, hooks)));
        found.into_iter().flatten().for_each(|d| elaborate::add(&mut all, &mut known, d));
        self.check_names(&mut all);
        all
    }

    /// Returns whether the program defines a custom VJP for some function.
    pub fn has_custom_vjps(&self) -> bool {
        let items = self.modules.iter().filter(|m| !m.prelude).flat_map(|m| &m.module.items);
        items.into_iter().any(|i| matches!(i, Item::Function(f) if elaborate::is_custom_vjp(f)))
    }

    /// Checks the custom VJPs of the file against their functions.
    fn check_custom_vjps(&self, hooks: &dyn Hooks, all: &mut Vec<Diagnostic>, known: &mut elaborate::SeenDiagnostics) {
        let items = self.modules.first().map(|m| m.module.items.as_slice()).unwrap_or_default();
        for (k, item) in items.iter().enumerate() {
            if !matches!(item, Item::Function(f) if elaborate::is_custom_vjp(f)) {
                continue;
            }
            elaborate::gradient_faults(self, k, hooks).into_iter().for_each(|d| elaborate::add(all, known, d));
        }
    }

    /// Checks the syntactic form of schedules: decorators, parameters, target entries. Returns the schedules that can
    /// run with their defaults.
    fn check_forms(&self, all: &mut Vec<Diagnostic>) -> Vec<ScheduleInfo> {
        let mut sound = Vec::new();
        let Some(main) = self.modules.first() else { return sound };
        for item in &main.module.items {
            let Item::Function(f) = item else { continue };
            if let Some(d) = elaborate::fault_of_form(f) {
                all.push(d);
                continue;
            }
            let Some(target) = elaborate::schedule_target(f) else { continue };
            if main.globals.contains_key(&target) {
                if f.params.iter().skip(1).all(|p| p.default.is_some()) {
                    sound.push(ScheduleInfo { name: f.name.text.clone(), target, doc: None, span: f.name.span });
                }
                continue;
            }
            let message = format!("there is no entry `{target}` for the schedule `{}`", f.name.text);
            let d = Diagnostic::new("schedule::target", message).at(f.decorators[0].span);
            let entries: Vec<String> = self.entries().into_iter().map(|e| e.name).collect();
            all.push(match taffeta_ast::spelling::nearest(&target, entries.iter()) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help(format!("the entries are {}", entries.join(", "))),
            });
        }
        sound
    }

    /// Reports undefined names in functions where elaboration has reported none.
    fn check_names(&self, all: &mut Vec<Diagnostic>) {
        let Some(main) = self.modules.first() else { return };
        let library: FxHashSet<&str> = self.library_names().map(String::as_str).collect();
        // Functions of a `remap=` are known everywhere: the syntax does not tell which functions are remappings.
        let known = |n: &str| {
            let named = main.globals.contains_key(n) || library.contains(n) || elaborate::is_builtin(n);
            named || elaborate::is_of_remapping(n)
        };
        let seen: FxHashSet<Span> = all.iter().flat_map(|d| d.labels.iter().map(|l| l.span)).collect();
        for item in &main.module.items {
            let Item::Function(f) = item else { continue };
            for (name, span) in unknown::names(f, known).into_iter().filter(|(_, span)| !seen.contains(span)) {
                all.push(self.unknown_name(&name, span, f, all.len() < PROPOSALS));
            }
        }
    }

    fn unknown_name(&self, name: &str, span: Span, f: &Function, propose: bool) -> Diagnostic {
        let d = Diagnostic::new("name::unknown", format!("there is no `{name}` here")).at(span);
        if !propose {
            return d;
        }
        let globals = self.modules.first().into_iter().flat_map(|m| m.globals.keys());
        let params = f.params.iter().map(|p| &p.name.text);
        match taffeta_ast::spelling::nearest(name, globals.chain(params).chain(self.library_names())) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None if !f.decorators.is_empty() => {
                d.help(format!("write names of loops, statements and tensors as strings: `\"{name}\"`"))
            }
            None => d,
        }
    }

    /// Returns the names that are visible without an import.
    fn library_names(&self) -> impl Iterator<Item = &String> {
        self.prelude_names.iter().chain(&self.schedule_names)
    }

    fn refuse_broken(&self) -> Result<(), Diagnostics> {
        if self.diagnostics.is_empty() { Ok(()) } else { Err(Diagnostics(self.diagnostics.clone())) }
    }
}

/// Computes the diagnostics of each item. Items are independent, so they are checked in parallel; for a single one
/// threads do not pay.
fn each<T: Sync>(items: &[T], said: impl Fn(&T) -> Vec<Diagnostic> + Sync + Send) -> Vec<Vec<Diagnostic>> {
    match items {
        [only] => vec![said(only)],
        several => taffeta_ast::pool::run_waiting(|| several.par_iter().map(&said).collect()),
    }
}

/// Returns the diagnostics of a failed result.
fn faults<T>(result: Result<T, Diagnostics>) -> Vec<Diagnostic> {
    result.err().map_or(Vec::new(), |d| d.0)
}

/// Library to which a module belongs. Names of a library are visible without an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    /// No library: the user's own file.
    None,
    /// Operators, for programs and schedules.
    Operators,
    /// Library for schedules alone.
    Schedules,
}

/// Reader of modules, each of which is read once.
struct Reader<'l> {
    loader: &'l dyn Loader,
    program: Program,
    by_name: FxHashMap<String, ModuleId>,
}

impl Reader<'_> {
    fn read(&mut self, source: Source, library: Library) -> ModuleId {
        if let Some(known) = self.by_name.get(&source.name) {
            return *known;
        }
        let file = self.program.sources.add(source.name.clone(), source.path.as_deref(), source.text.clone());
        let (module, problems) = match library {
            Library::None => {
                let (module, problems) = crate::parse::parse(&source.text, file);
                (Arc::new(module), problems)
            }
            _ => library::parsed(&source.name, &source.text, file),
        };
        let sound = problems.is_empty();
        self.program.diagnostics.extend(problems);
        let id = ModuleId(self.program.modules.len());
        // The module is known before its imports are read, so that modules may import each other.
        self.by_name.insert(source.name, id);
        let (prelude, schedules) = (library != Library::None, library == Library::Schedules);
        self.program.modules.push(ModuleData { file, module, globals: FxHashMap::default(), prelude, schedules });
        if sound {
            self.define(id, source.path.as_deref());
        }
        id
    }

    /// Returns the library module that defines a name.
    fn library(&self, name: &str) -> Option<(Source, Library)> {
        let operators = self.loader.prelude(name).map(|source| (source, Library::Operators));
        operators.or_else(|| self.loader.schedule(name).map(|source| (source, Library::Schedules)))
    }

    fn define(&mut self, id: ModuleId, path: Option<&Path>) {
        let module = self.program.modules[id.0].module.clone();
        let mut globals: FxHashMap<String, Global> = FxHashMap::default();
        let mut places: FxHashMap<String, Span> = FxHashMap::default();
        for (k, item) in module.items.iter().enumerate() {
            let new = match item {
                Item::Function(f) => vec![(f.name.clone(), Global::Function(k))],
                Item::Assign { name, .. } => vec![(name.clone(), Global::Assign(k))],
                Item::Import(import) => self.import(import, path),
            };
            for (name, global) in new {
                if let Some(before) = places.insert(name.text.clone(), name.span) {
                    self.program.diagnostics.push(
                        Diagnostic::new("name::twice", format!("`{}` is defined twice in this file", name.text))
                            .at(name.span)
                            .label(before, "first here")
                            .help("give one of them another name"),
                    );
                }
                globals.insert(name.text, global);
            }
        }
        for name in uses::names(&module) {
            let program = &self.program;
            if globals.contains_key(&name)
                || program.prelude.contains_key(&name)
                || program.schedule_prelude.contains_key(&name)
            {
                continue;
            }
            match self.library(&name) {
                Some((source, Library::Schedules)) => {
                    let module = self.read(source, Library::Schedules);
                    self.program.schedule_prelude.insert(name, module);
                }
                Some((source, library)) => {
                    let module = self.read(source, library);
                    self.program.prelude.insert(name, module);
                }
                None => {}
            }
        }
        self.program.modules[id.0].globals = globals;
    }

    fn import(&mut self, import: &Import, path: Option<&Path>) -> Vec<(crate::syntax::Name, Global)> {
        let mut out = Vec::new();
        let mut module = None;
        for (name, alias) in &import.names {
            let shown = alias.as_ref().unwrap_or(name).clone();
            let source = if import.module.text == "libop" {
                self.library(&name.text).ok_or_else(|| format!("`libop` has no `{}`", name.text))
            } else if let Some(id) = module {
                out.push((shown, self.imported(id, name, import)));
                continue;
            } else {
                self.loader.load(&import.module.text, path).map(|source| (source, Library::None))
            };
            let global = match source {
                Ok((source, library)) => {
                    let id = self.read(source, library);
                    if library == Library::None {
                        module = Some(id);
                    }
                    self.imported(id, name, import)
                }
                Err(why) => {
                    let span = if import.module.text == "libop" { name.span } else { import.module.span };
                    let mut d = Diagnostic::new("name::import", why).at(span);
                    if import.module.text == "libop"
                        && let Some(near) = taffeta_ast::spelling::nearest(
                            &name.text,
                            self.program.prelude_names.iter().chain(&self.program.schedule_names),
                        )
                    {
                        d = d.help(format!("did you mean `{near}`?"));
                    }
                    if !self.program.diagnostics.contains(&d) {
                        self.program.diagnostics.push(d);
                    }
                    Global::Missing
                }
            };
            out.push((shown, global));
        }
        out
    }

    /// Resolves a name in a module that has been read. The module's items are searched, since its table may still be
    /// under construction.
    fn imported(&mut self, id: ModuleId, name: &crate::syntax::Name, import: &Import) -> Global {
        let names = |item: &Item| -> Vec<String> {
            match item {
                Item::Function(f) => vec![f.name.text.clone()],
                Item::Assign { name, .. } => vec![name.text.clone()],
                Item::Import(i) => i.names.iter().map(|(n, a)| a.as_ref().unwrap_or(n).text.clone()).collect(),
            }
        };
        let all: Vec<String> = self.program.modules[id.0].module.items.iter().flat_map(names).collect();
        if all.contains(&name.text) {
            return Global::Imported(id, name.text.clone());
        }
        let mut d =
            Diagnostic::new("name::import", format!("`{}` has no `{}`", import.module.text, name.text)).at(name.span);
        if let Some(near) = taffeta_ast::spelling::nearest(&name.text, all.iter()) {
            d = d.help(format!("did you mean `{near}`?"));
        }
        self.program.diagnostics.push(d);
        Global::Missing
    }
}
