//! Built-in functions that are not operators: one row each in [`Builtin::ALL`], grouped by purpose in the files of this
//! folder.

mod create;
mod shape;
mod statics;

use super::call::Arg;
use super::value::Value;
use super::{Elab, R};
use taffeta_ast::expr::Protocol;
use taffeta_ast::{Diagnostic, Op, Span};

/// Built-in function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Builtin {
    Zeros,
    Ones,
    Empty,
    Full,
    Arange,
    Cast,
    Clip,
    Pow,
    Len,
    Range,
    NdRange,
    Static,
    IsInstance,
    Enumerate,
    Zip,
    Reversed,
    Label,
    Print,
    Grad,
    ValueAndGrad,
    Vjp,
    Jvp,
    Jacobian,
    Format,
    /// Access protocol of an index: `gallop`.
    Protocol(Protocol),
    /// `window(a, b)`
    Window,
    /// `offset(d)`
    Offset,
    /// `permit(j)`
    Permit,
    /// `coalesce(a, b)`
    Coalesce,
    /// Storage constructor: `pattern`.
    Storage,
}

impl Builtin {
    /// All built-in functions by name.
    pub(crate) const ALL: &'static [(&'static str, Builtin)] = &[
        ("zeros", Builtin::Zeros),
        ("ones", Builtin::Ones),
        ("empty", Builtin::Empty),
        ("full", Builtin::Full),
        ("arange", Builtin::Arange),
        ("cast", Builtin::Cast),
        ("clip", Builtin::Clip),
        ("pow", Builtin::Pow),
        ("len", Builtin::Len),
        ("range", Builtin::Range),
        ("ndrange", Builtin::NdRange),
        ("static", Builtin::Static),
        ("isinstance", Builtin::IsInstance),
        ("enumerate", Builtin::Enumerate),
        ("zip", Builtin::Zip),
        ("reversed", Builtin::Reversed),
        ("label", Builtin::Label),
        ("print", Builtin::Print),
        ("grad", Builtin::Grad),
        ("value_and_grad", Builtin::ValueAndGrad),
        ("vjp", Builtin::Vjp),
        ("jvp", Builtin::Jvp),
        ("jacobian", Builtin::Jacobian),
        ("format", Builtin::Format),
        ("pattern", Builtin::Storage),
        ("window", Builtin::Window),
        ("offset", Builtin::Offset),
        ("permit", Builtin::Permit),
        ("coalesce", Builtin::Coalesce),
        ("walk", Builtin::Protocol(Protocol::Walk)),
        ("gallop", Builtin::Protocol(Protocol::Gallop)),
        ("locate", Builtin::Protocol(Protocol::Locate)),
        ("follow", Builtin::Protocol(Protocol::Locate)),
    ];

    /// Returns the built-in function of that name.
    pub(crate) fn find(name: &str) -> Option<Builtin> {
        Builtin::ALL.iter().find(|(n, _)| *n == name).map(|(_, b)| *b)
    }

    /// Returns the name of the function, the first one if it has several.
    pub(crate) fn name(self) -> &'static str {
        Builtin::ALL.iter().find(|(_, b)| *b == self).map_or("", |(n, _)| n)
    }
}

impl Elab<'_> {
    /// Calls a built-in function.
    pub(crate) fn call_builtin(&mut self, b: Builtin, args: Vec<Arg>, span: Span) -> R<Value> {
        match b {
            Builtin::Zeros => self.filled(b, Value::Int(0), args, span),
            Builtin::Ones => self.filled(b, Value::Int(1), args, span),
            Builtin::Empty => self.empty(args, span),
            Builtin::Full => self.full(args, span),
            Builtin::Arange => self.arange(args, span),
            Builtin::Cast => self.cast_call(args, span),
            Builtin::Clip => self.clip(args, span),
            Builtin::Pow => {
                let [x, y] = self.parameters(b, args, ["x", "y"], 2, span)?;
                let (Some(x), Some(y)) = (x, y) else { unreachable!("both are required") };
                self.apply(Op::Pow, &[x, y], span)
            }
            Builtin::Len => self.len(args, span),
            Builtin::Range => self.range(args, span),
            Builtin::NdRange => self.ndrange(args, span),
            Builtin::Static => self.static_call(args, span),
            Builtin::IsInstance => self.isinstance(args, span),
            Builtin::Enumerate => self.enumerate(args, span),
            Builtin::Zip => self.zip(args, span),
            Builtin::Reversed => self.reversed(args, span),
            Builtin::Label => self.error_help(
                "syntax::label",
                span,
                "`label` cannot be part of an expression",
                "put `label(\"L1\")` on the line before the statement that it names",
            ),
            Builtin::Print => self.error_help(
                "syntax::print",
                span,
                "`print` cannot be part of an expression: it has no value",
                "put it on a line of its own",
            ),
            Builtin::Grad | Builtin::ValueAndGrad | Builtin::Vjp | Builtin::Jvp | Builtin::Jacobian => {
                self.gradient_call(b, args, span)
            }
            Builtin::Format => self.format_call(args, span),
            Builtin::Protocol(_) => {
                let name = b.name();
                self.error_help(
                    "storage::protocol",
                    span,
                    format!("`{name}(…)` is only allowed as an index of a tensor"),
                    format!("put it around an index in a subscript: `A[i, {name}(j)]`"),
                )
            }
            Builtin::Window => self.window_call(args, span),
            Builtin::Offset => self.offset_call(args, span),
            Builtin::Permit => self.permit_call(args, span),
            Builtin::Coalesce => self.coalesce_call(args, span),
            Builtin::Storage => {
                let text = self.program.sources().text(span);
                let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if name == "pattern" {
                    return self.pattern_call(args, span);
                }
                self.unsupported(span, &format!("structured storage (`{name}`)"))
            }
        }
    }

    /// Matches arguments with parameters by position and name; the first `required` of them must be given.
    pub(in crate::elaborate) fn parameters<const N: usize>(
        &mut self,
        b: Builtin,
        args: Vec<Arg>,
        names: [&str; N],
        required: usize,
        span: Span,
    ) -> R<[Option<(Value, Span)>; N]> {
        let name = b.name();
        let mut out: [Option<(Value, Span)>; N] = std::array::from_fn(|_| None);
        for (k, (key, v, at)) in args.into_iter().enumerate() {
            let slot = match &key {
                None => k,
                Some(key) => names.iter().position(|n| n == key).unwrap_or(N),
            };
            if slot >= N {
                let d = match &key {
                    Some(key) => Diagnostic::new("call::arguments", format!("`{name}` has no parameter `{key}`")),
                    None => Diagnostic::new("call::arguments", format!("`{name}` takes at most {N} arguments")),
                };
                let near = key.as_ref().and_then(|key| crate::elaborate::nearest(key, names));
                let d = d.at(at).help(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its parameters are {}", names.join(", ")),
                });
                return Err(self.report(d));
            }
            if out[slot].replace((v, at)).is_some() {
                return self.error("call::arguments", at, format!("`{}` is given twice to `{name}`", names[slot]));
            }
        }
        if let Some(missing) = (0..required).find(|k| out[*k].is_none()) {
            return self.error("call::arguments", span, format!("`{name}` needs an argument for `{}`", names[missing]));
        }
        Ok(out)
    }

    /// Unwraps an argument that [`Elab::parameters`] requires.
    fn required(&mut self, b: Builtin, arg: Option<(Value, Span)>, span: Span) -> R<(Value, Span)> {
        match arg {
            Some(a) => Ok(a),
            None => self.error("call::arguments", span, format!("`{}` needs an argument", b.name())),
        }
    }
}
