//! Export of a schedule as the text of a schedule function (`taffeta show --as-function`). Before the text is returned,
//! it is applied to the entry once more, and must yield the same program.

use crate::automatic;
use crate::error::Error;
use crate::options::Options;
use crate::program::Program;
use std::collections::BTreeMap;
use taffeta_analysis::pass;
use taffeta_ast::{Diagnostic, Diagnostics, Func, print};
use taffeta_frontend::Source;
use taffeta_frontend::syntax::Item;
use taffeta_schedule::auto::MATERIALISE;

impl Program {
    /// Returns the steps of an entry's schedule as a schedule function that can be pasted into its file: a line for
    /// each step, whether a user or a rule chose it.
    ///
    /// ```
    /// use taffeta::{Options, Program};
    /// let program = Program::from_source("p.ft", "
    /// def double(x: inout[f32[n]]):
    ///     for i in range(n):
    ///         x[i] *= 2.0
    ///
    /// def by_four(s, loop):
    ///     outer, inner = s.split(loop, 4)
    ///     s.unroll(inner)
    ///
    /// @schedule(double)
    /// def fast(s):
    ///     by_four(s, \"i\")
    /// ")?;
    /// let text = program.schedule_function("double", &Options::default().schedule("fast"))?;
    /// assert!(text.ends_with("    s.split(\"i\", 4)\n    s.unroll(\"i~i\")\n"));
    /// # Ok::<(), taffeta::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Every error of the entry and its schedule; steps that a schedule function cannot express. The returned text was
    /// executed and yields the same program.
    pub fn schedule_function(&self, entry: &str, options: &Options) -> Result<String, Error> {
        let wrong = |d: Diagnostic| Error::program(d.into(), &self.sources().clone());
        self.has_steps_of_an_entry(entry, options)?;
        // A schedule function applies to the program as printed: its gradients keep the tapes that they have without a
        // schedule, and an entry is scheduled before it is differentiated. No step depends on the types of index
        // arrays, which inputs determine.
        let options = Options { gradient: None, choose_tapes: false, indices: BTreeMap::new(), ..options.clone() };
        let schedule = self.scheduled(entry, &options)?;
        let (name, doc) = match options.schedule.as_deref() {
            Some(crate::options::AUTO) => ("by_rules", "The steps that rules chose.".to_string()),
            Some(chosen) => ("step_by_step", format!("The steps of `{}`.", chosen.replace(['"', '\\'], "_"))),
            None => ("step_by_step", "The program as written.".to_string()),
        };
        let name = self.unused(name);
        let text = schedule.trace().function(&name, &doc).map_err(|r| {
            let d = Diagnostic::new(
                "schedule::function",
                format!("cannot write this schedule as a function: {}", r.message),
            );
            wrong(d.help("save all steps by `--trace FILE.json`"))
        })?;
        let differs = match self.under(entry, &options, &text, &name) {
            Ok(made) if made == printed(schedule.func()) => {
                return Ok(self.note_of_tapes(entry, &options)? + &text);
            }
            Ok(_) => Diagnostic::new("schedule::function", "the steps as a function yield a different program"),
            Err(e) => {
                let why = e.report().diagnostics.first().map_or_else(String::new, |d| format!(": {}", d.message));
                Diagnostic::new("schedule::function", format!("cannot run the steps as a function{why}"))
            }
        };
        Err(wrong(differs.help("save all steps by `--trace FILE.json`")))
    }

    /// Returns a comment for the function if rules chose other tapes for the entry's gradients than `autodiff`, whose
    /// tapes a schedule function works on; an empty string otherwise.
    fn note_of_tapes(&self, entry: &str, options: &Options) -> Result<String, Error> {
        if !automatic::is_automatic(options) || !self.has_open_gradients(entry, options)? {
            return Ok(String::new());
        }
        let chosen = self.scheduled(entry, &Options { choose_tapes: true, ..options.clone() })?;
        let taken = chosen.decisions().iter().find(|d| d.rule == MATERIALISE && d.taken != 0);
        Ok(taken.and_then(|d| d.outcomes.get(d.taken)).map_or_else(String::new, |option| {
            format!(
                "# Rules schedule this gradient with {}. This function applies to the gradient as the file\n\
                 # defines it, which has other tapes.\n",
                option.steps
            )
        }))
    }

    /// Checks that the steps of a schedule can be replayed as a schedule function or a trace: [`Options::schedule`]
    /// applies both to the entry, before differentiation.
    ///
    /// # Errors
    ///
    /// Steps that rules chose for a gradient requested by [`Options::gradient`]: they apply to the derivative, which is
    /// not an entry.
    pub fn has_steps_of_an_entry(&self, entry: &str, options: &Options) -> Result<(), Error> {
        if !automatic::is_automatic(options) || options.gradient.is_none() {
            return Ok(());
        }
        let d = Diagnostic::new("schedule::function", "the steps apply to the gradient, which is not an entry");
        let d = d.help(format!("define it as an entry: `back = vjp({entry}, wrt=[…])`, and ask for `back`"));
        Err(Error::program(d.into(), &self.sources().clone()))
    }

    /// Returns a name that does not occur in the program's text.
    fn unused(&self, name: &str) -> String {
        let text = self.front().files().next().map_or("", |f| &f.text);
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let free = |name: &String| !text.contains(name.as_str());
        [name.to_string()].into_iter().chain(numbered).find(free).unwrap_or_default()
    }

    /// Returns the parameter names of a function of the file.
    fn parameters(&self, function: &str) -> Vec<String> {
        let items = self.front().module().map(|m| m.items.as_slice()).unwrap_or_default();
        let found = items.iter().find_map(|item| match item {
            Item::Function(f) if f.name.text == function => Some(f),
            _ => None,
        });
        found.into_iter().flat_map(|f| &f.params).map(|p| p.name.text.to_string()).collect()
    }

    /// Appends a schedule function to the program, and prints the entry scheduled by it.
    fn under(&self, entry: &str, options: &Options, function: &str, name: &str) -> Result<String, Error> {
        let main = self.front().files().next().map(|f| Source {
            name: f.name.clone(),
            path: f.path.clone(),
            text: format!("{}\n\n\n{function}", f.text).into(),
        });
        let Some(main) = main else { return Err(Error::program(Diagnostics(Vec::new()), self.sources())) };
        let program = Program::read(main);
        program.refuse_broken()?;
        // Static parameters of the schedule are constants in its steps.
        let entry_has = |name: &str| {
            let info = program.entries().into_iter().find(|e| e.name == entry);
            info.is_some_and(|e| e.params.iter().any(|p| p.is_static && p.name == name))
        };
        let of_schedule = self.parameters(options.schedule.as_deref().unwrap_or_default());
        let statics = options.statics.iter().filter(|(k, _)| !of_schedule.contains(k) || entry_has(k));
        let statics = statics.map(|(k, v)| (k.clone(), v.clone())).collect();
        let options = Options { statics, schedule: Some(name.to_string()), ..options.clone() };
        Ok(printed(program.scheduled(entry, &options)?.func()))
    }
}

/// Prints a program for comparison, without `stop_gradient`: rules schedule programs after differentiation, which
/// removes `stop_gradient`, and functions schedule programs before it.
fn printed(func: &Func) -> String {
    print::func_with_selectors(&pass::stop_gradient::run(func))
}
