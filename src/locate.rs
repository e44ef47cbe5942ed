//! Source locations of argument faults: the annotation of the parameter that an argument does not fit.
//!
//! Adds the span of the annotation, or of the dimension at fault, to a diagnostic about an argument. Arguments are
//! checked against a signature, which may come from the cache and has no spans, so the source is parsed again, only
//! when there is a fault to report. Modifies nothing.

use crate::error::Report;
use std::sync::Arc;
use taffeta_ast::{Diagnostic, FileId, SourceMap, Span};
use taffeta_frontend::parse::parse;
use taffeta_frontend::syntax::{Expr, ExprKind, Function, Item, Module};

/// Fault of an argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Diagnostic that states the expected and the found argument.
    pub diagnostic: Diagnostic,
    /// Parameter whose annotation is violated, with the index of the dimension at fault.
    pub param: Option<(String, Option<usize>)>,
}

impl From<Diagnostic> for Fault {
    fn from(diagnostic: Diagnostic) -> Fault {
        Fault { diagnostic, param: None }
    }
}

impl Fault {
    /// Creates a fault of a parameter.
    pub fn of(param: &str, dimension: Option<usize>, diagnostic: Diagnostic) -> Fault {
        Fault { diagnostic, param: Some((param.to_string(), dimension)) }
    }
}

/// Builds a report that points at the annotations of `entry` in the first file of `sources`.
pub fn report(faults: Vec<Fault>, sources: &Arc<SourceMap>, entry: &str) -> Report {
    let main = FileId(0);
    let module = match sources.get(main) {
        Some(file) if faults.iter().any(|f| f.param.is_some()) => Some(parse(&file.text, main).0),
        _ => None,
    };
    let function = module.as_ref().and_then(|m| function(m, entry));
    let one = |fault: Fault| {
        let place = fault.param.zip(function).and_then(|((name, dimension), f)| annotation(f, &name, dimension));
        fault.diagnostic.at(place.unwrap_or(Span::NONE))
    };
    Report { diagnostics: faults.into_iter().map(one).collect(), sources: sources.clone() }
}

/// Finds the function of an entry, or the function that the entry is the gradient of.
fn function<'m>(module: &'m Module, entry: &str) -> Option<&'m Function> {
    let named = |name: &str| {
        module.items.iter().find_map(|item| match item {
            Item::Function(f) if f.name.text == name => Some(f),
            _ => None,
        })
    };
    named(entry).or_else(|| {
        module.items.iter().find_map(|item| match item {
            Item::Assign { name, value } if name.text == entry => match &value.kind {
                ExprKind::Call { args, .. } => match &args.first()?.value.kind {
                    ExprKind::Name(target) => named(target),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
    })
}

/// Returns the span of a parameter's annotation, or of one dimension in it.
fn annotation(f: &Function, param: &str, dimension: Option<usize>) -> Option<Span> {
    let whole = f.params.iter().find(|p| p.name.text == param)?.annotation.as_ref()?;
    let one = dimension.and_then(|d| dimensions(whole)?.get(d).map(|e| e.span));
    Some(one.unwrap_or(whole.span))
}

/// Returns the dimensions of `f32[n, m]`, `inout[f32[n, m]]` and `f32[n, m] @ csr`.
fn dimensions(annotation: &Expr) -> Option<&[Expr]> {
    match &annotation.kind {
        ExprKind::Subscript(of, items) => match (&of.kind, items.as_slice()) {
            (ExprKind::Name(n), [inner]) if n == "inout" => dimensions(inner),
            (_, [Expr { kind: ExprKind::Tuple(inner), .. }]) => Some(inner),
            (_, items) => Some(items),
        },
        ExprKind::Binary(_, of, _) => dimensions(of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the source text at the fault of a dimension.
    fn check(signature: &str, param: &str, dimension: Option<usize>) -> String {
        let mut sources = SourceMap::default();
        sources.add("f.ft", None, format!("def f({signature}):\n    return x\n\n\ng = grad(f)\n"));
        let sources = Arc::new(sources);
        let texts = ["f", "g"].map(|entry| {
            let fault = Fault::of(param, dimension, Diagnostic::new("size::mismatch", "expected 3, found 4"));
            let report = report(vec![fault], &sources, entry);
            sources.text(report.diagnostics[0].span()).to_string()
        });
        assert_eq!(texts[0], texts[1]);
        texts[0].clone()
    }

    #[test]
    fn annotations_and_dimensions_are_found() {
        assert_eq!(check("x: f32[n, 2 * m + 1]", "x", Some(1)), "2 * m + 1");
        assert_eq!(check("x: f32[n, 2 * m + 1]", "x", None), "f32[n, 2 * m + 1]");
        assert_eq!(check("a: f32, x: inout[f32[n, m]]", "x", Some(0)), "n");
        assert_eq!(check("a: f32, x: inout[f32[n, m]]", "x", None), "inout[f32[n, m]]");
        assert_eq!(check("x: f32[n]", "x", Some(7)), "f32[n]");
        assert_eq!(check("x: f32", "x", Some(0)), "f32");
        assert_eq!(check("x: f32[n]", "z", Some(0)), "");
    }

    #[test]
    fn diagnostics_without_a_place_have_no_label() {
        let fault = Fault::from(Diagnostic::new("size::unknown", "no input fixes `n`"));
        assert!(report(vec![fault], &Arc::default(), "f").diagnostics[0].labels.is_empty());
    }
}
