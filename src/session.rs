//! Session on one entry of a file, cached so that a second run skips compilation.

use crate::error::{Error, Report};
use crate::function::Function;
use crate::io;
use crate::locate::{self, Fault};
use crate::options::statics_text;
use crate::options::{Backend, Options};
use crate::pipeline;
use crate::program::Program;
use crate::scheduler;
use crate::store::{Manifest, Store, stamp};
use crate::timing::Timings;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taffeta_ast::{Func, SourceMap};
use taffeta_codegen::cache::key;
use taffeta_codegen::signature::Signature;

/// File and one of its entries. The front end runs only if the cache misses: see `store`.
pub struct Session {
    file: PathBuf,
    entry: String,
    options: Options,
    signature: Signature,
    /// Cache key of all files of the program.
    texts: String,
    /// Sources and logical program, independent of sizes; `None` if the manifest came from the cache, or if sizes
    /// affect the program.
    front: Option<(Arc<SourceMap>, Func)>,
    /// Whether structured lowering has warnings.
    warns: bool,
    timings: Timings,
}

impl Session {
    /// Opens a file. `entry` may be omitted if there is only one; sizes in `options` are ignored ([`Session::compile`]
    /// takes them).
    ///
    /// # Errors
    ///
    /// An unreadable file, and every error of the program.
    pub fn open(file: &Path, entry: Option<&str>, options: &Options) -> Result<Session, Error> {
        let mut timings = Timings::default();
        // The interpreter needs the program itself.
        if options.backend == Backend::Interp {
            return Session::by_front_end(file, entry, options, None, timings);
        }
        let store = Store::open()?;
        let text = io::read_text(file).map_err(|d| Error::Program(Report::without_sources(vec![d])))?;
        let name = file.display().to_string();
        let directory = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf()).display().to_string();
        let statics = statics_text(options);
        // A schedule does not affect the manifest, but an invalid one must be detected.
        let schedule = scheduler::key(options).map_err(|d| Error::Program(Report::without_sources(vec![d])))?;
        let key = key(&["manifest", &stamp(), &name, &directory, &text, entry.unwrap_or(""), &statics, &schedule]);
        let found = timings.measure("cache", || store.manifest(&key));
        match found {
            Some(Manifest { entry, signature, texts, warns, .. }) => Ok(Session {
                file: file.to_path_buf(),
                entry,
                options: options.clone(),
                signature,
                texts,
                front: None,
                warns,
                timings,
            }),
            None => Session::by_front_end(file, entry, options, Some((&store, &key)), timings),
        }
    }

    fn by_front_end(
        file: &Path,
        entry: Option<&str>,
        options: &Options,
        keep: Option<(&Store, &str)>,
        mut timings: Timings,
    ) -> Result<Session, Error> {
        let program = Program::load(file)?;
        timings.extend(program.timings());
        let entry = program.entry(entry)?;
        // Sizes become known at compilation, when budgets are enforced; they do not affect the signature.
        let (func, waits) = program.unsized_logical(&entry, options, &mut timings)?;
        let signature = Signature::of(&func, &Default::default());
        let texts = program.texts_key();
        let warns = !program.warnings(&entry, &func, options).is_empty();
        if let Some((store, key_of_manifest)) = keep {
            let imports = program.sources().files().skip(1).filter_map(|f| Some((f.path.clone()?, key(&[&f.text]))));
            let manifest = Manifest {
                entry: entry.clone(),
                signature: signature.clone(),
                imports: imports.collect(),
                texts: texts.clone(),
                warns,
            };
            store.keep_manifest(key_of_manifest, &manifest);
        }
        let front = (!waits).then(|| (program.sources().clone(), func));
        Ok(Session {
            file: file.to_path_buf(),
            entry,
            options: options.clone(),
            signature,
            texts,
            front,
            warns,
            timings,
        })
    }

    /// Returns names, types and shapes, without compiled-in sizes.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Returns the name of the entry.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Builds a report of argument faults that points at the entry's annotations.
    pub fn report(&self, faults: Vec<Fault>) -> Report {
        let sources = match &self.front {
            Some((sources, _)) => sources.clone(),
            // The program came from the cache, so its source is read here.
            None => {
                let mut sources = SourceMap::default();
                if let Ok(text) = io::read_text(&self.file) {
                    sources.add(self.file.display().to_string(), Some(&self.file), text);
                }
                Arc::new(sources)
            }
        };
        locate::report(faults, &sources, &self.entry)
    }

    /// Returns the warnings about structured tensors, for any backend: conversions, loops that visit every coordinate,
    /// and searches for elements, as in [`Program::check`].
    ///
    /// # Errors
    ///
    /// Every error of the program.
    pub fn warnings(&self) -> Result<Report, Error> {
        if !self.warns {
            return Ok(Report::without_sources(Vec::new()));
        }
        let program = Program::load(&self.file)?;
        let (func, _) = program.unsized_logical(&self.entry, &self.options, &mut Timings::default())?;
        let diagnostics = program.warnings(&self.entry, &func, &self.options);
        Ok(Report { diagnostics, sources: program.sources().clone() })
    }

    /// Adds values of parameters that a memory budget depends on, besides the sizes ([`crate::Gradient::values`]).
    pub fn assume(&mut self, values: impl IntoIterator<Item = (String, i64)>) {
        if let Some(gradient) = self.options.gradient.as_mut().filter(|g| g.memory.is_some()) {
            gradient.values.extend(values);
        }
    }

    /// Adds hints for symbolic sizes and numbers of stored elements ([`Options::hints`]).
    pub fn expect(&mut self, hints: impl IntoIterator<Item = (String, i64)>) {
        self.options.hints.extend(hints);
    }

    /// Returns whether compilation must measure this machine first ([`crate::must_measure`]).
    pub fn must_measure(&self) -> bool {
        crate::automatic::must_measure(&self.options)
    }

    /// Compiles the entry with `sizes` compiled in.
    ///
    /// # Errors
    ///
    /// Every error of the program; a missing C compiler.
    pub fn compile(&mut self, sizes: &[(String, i64)]) -> Result<Function, Error> {
        let options = Options { sizes: sizes.iter().cloned().collect(), ..self.options.clone() };
        let timings = std::mem::take(&mut self.timings);
        let (file, entry) = (&self.file, &self.entry);
        match &self.front {
            Some((sources, func)) => Function::new(&self.texts, entry, &options, timings, |timings| {
                let func = pipeline::chosen(func.clone(), &options, timings);
                Ok((sources.clone(), func.map_err(|d| Error::program(d, sources))?))
            }),
            None => Function::new(&self.texts, entry, &options, timings, |timings| {
                let program = Program::load(file)?;
                timings.extend(program.timings());
                let func = program.to_run(entry, &options, timings)?;
                Ok((program.sources().clone(), func))
            }),
        }
    }
}
