//! Functions that a schedule may call, and diagnostics for names that it does not know.

use super::super::builtin::Builtin;
use super::super::call::Arg;
use super::super::func::FuncRef;
use super::super::value::Value;
use super::super::{Elab, R};
use super::typed_parameter;
use taffeta_ast::{Diagnostic, Expr, Span, StmtKind, Symbol};

impl Elab<'_> {
    /// Returns a size of the program, where a schedule may use it: in the lambda of `permute`.
    pub(crate) fn size_in_map(&self, name: &str) -> Option<Value> {
        let running = self.schedule.as_ref().filter(|s| s.in_map)?;
        let size = running.func.sizes.iter().find(|s| s.name() == name)?;
        Some(Value::weak(Expr::var(size)))
    }

    /// Returns a schedule of the library.
    pub(crate) fn schedule_library(&mut self, name: &str) -> R<Option<Value>> {
        match self.program.schedule_prelude.get(name).copied() {
            Some(module) if self.schedule.is_some() => self.global(module, name),
            _ => Ok(None),
        }
    }

    /// Explains a name unknown to the schedule that names a size, loop or tensor of its program.
    pub(crate) fn unknown_in_schedule(&self, name: &str, span: Span) -> Option<Diagnostic> {
        let func = self.schedule.as_ref()?.func;
        let is = |s: &Symbol| s.name() == name;
        if func.sizes.iter().any(is) {
            let message = format!("the size `{name}` of `{}` is not known when compiling", func.name);
            return Some(
                Diagnostic::new("schedule::size", message)
                    .at(span)
                    .help("write a condition on sizes as a string: `s.specialize(\"i\", \"n % 8 == 0\")`"),
            );
        }
        let tensors = func.params.iter().map(|p| &p.tensor).chain(&func.results);
        let mut what = tensors.into_iter().any(|t| is(&t.symbol)).then_some("tensor");
        func.body.walk(&mut |s| match s.kind() {
            StmtKind::For { iter, .. } if is(iter) => what = what.or(Some("loop")),
            StmtKind::VarDef { tensor, .. } if is(&tensor.symbol) => what = what.or(Some("tensor")),
            _ => {}
        });
        let message = format!("`{name}` is a {} of `{}`, not a name in the schedule", what?, func.name);
        let help = format!("write names of loops, statements and tensors as strings: `\"{name}\"`");
        Some(Diagnostic::new("name::unknown", message).at(span).help(help))
    }

    /// Refuses the built-in functions that make or need tensors.
    pub(crate) fn builtin_in_schedule(&mut self, b: Builtin, span: Span) -> R<()> {
        use Builtin as B;
        match b {
            B::Clip | B::Pow | B::Len | B::Range | B::NdRange => Ok(()),
            B::Static | B::IsInstance | B::Enumerate | B::Zip | B::Reversed => Ok(()),
            _ => {
                let name = self.called(span);
                self.not_for_schedules(&format!("`{name}` is for programs"), span)
            }
        }
    }

    /// Refuses calls of functions that work on tensors, and schedules that are called without the schedule.
    pub(crate) fn callable_in_schedule(&mut self, target: FuncRef, args: &[Arg], span: Span) -> R<()> {
        let f = self.function(target);
        let name = &f.name.text;
        let module = &self.program.modules[target.module.0];
        if module.prelude && !module.schedules {
            return self.not_for_schedules(&format!("`{name}` is an operator on tensors"), span);
        }
        if super::super::custom_vjp::decorator(f).is_some() {
            return self.not_for_schedules(&format!("`{name}` is a gradient"), span);
        }
        if f.decorators.is_empty() {
            if typed_parameter(f).is_some() {
                return self.not_for_schedules(&format!("`{name}` is a program"), span);
            }
            return Ok(());
        }
        if let Some(problem) = super::fault_of_form(f) {
            return Err(self.report(problem));
        }
        let s = &f.params[0].name.text;
        let given = args.iter().enumerate().find(|(k, (key, ..))| match key {
            None => *k == 0,
            Some(key) => key == s,
        });
        match given {
            Some((_, (_, Value::Schedule, _))) => Ok(()),
            given => {
                let (found, at) = match given {
                    Some((_, (_, v, at))) => (format!("found {}", v.describe()), *at),
                    None => ("found none".to_string(), span),
                };
                self.error_help(
                    "schedule::argument",
                    at,
                    format!("expected the schedule as the first argument of `{name}`, {found}"),
                    format!("write `{name}(s, …)`"),
                )
            }
        }
    }

    /// Returns the name of the called function, as the text has it.
    fn called(&self, span: Span) -> String {
        self.program.sources().text(span).chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    }

    pub(crate) fn not_for_schedules<T>(&mut self, what: &str, span: Span) -> R<T> {
        self.error_help(
            "schedule::call",
            span,
            format!("{what} and cannot be called in a schedule"),
            "call methods of `s`, other schedules, or functions of numbers, strings and lists",
        )
    }
}
