//! What cannot be differentiated, and where it stands.

use crate::{Kind, Request};
use weft_ast::expr::Modifier;
use weft_ast::{Diagnostic, Diagnostics, ExprKind, Extent, Span, StmtKind, Tensor};

/// Refuses a request that has no answer.
pub(crate) fn run(request: &Request<'_>) -> Result<(), Diagnostics> {
    let mut found = Vec::new();
    let func = request.func;
    let name = request.kind.name();
    for wrt in request.wrt {
        let Some(p) = func.params.iter().find(|p| p.tensor.symbol.name() == wrt) else {
            found.push(
                Diagnostic::new("grad::wrt", format!("`{}` has no parameter `{wrt}`", func.name)).at(request.span),
            );
            continue;
        };
        if !p.tensor.dtype.is_float() {
            let d =
                Diagnostic::new("grad::wrt", format!("`{wrt}` is of {}, which carries no derivative", p.tensor.dtype));
            found.push(d.at(request.span).help("differentiate with respect to floating-point parameters"));
        }
    }
    for out in request.out {
        let Some(t) = func.results.iter().find(|t| t.symbol.name() == out) else {
            let all: Vec<&str> = func.results.iter().map(|t| t.symbol.name()).collect();
            let d = Diagnostic::new("grad::out", format!("`{}` has no result `{out}`", func.name)).at(request.span);
            found.push(d.help(format!("its results are {}", all.join(", "))));
            continue;
        };
        if !t.dtype.is_float() {
            let d = Diagnostic::new("grad::out", format!("`{out}` is of {}, which carries no derivative", t.dtype));
            found.push(d.at(request.span).help("differentiate floating-point results"));
        }
    }
    let scalar = |t: &Tensor| t.shape.is_empty() && t.dtype.is_float();
    let of: Vec<std::sync::Arc<Tensor>> = func.results.iter().filter(|t| request.is_of(t)).cloned().collect();
    if matches!(request.kind, Kind::Grad | Kind::ValueAndGrad) && !matches!(&of[..], [t] if scalar(t)) {
        let d = Diagnostic::new(
            "grad::result",
            format!(
                "`{name}` is of functions with one floating-point number as result, and `{}` has {}",
                func.name,
                shown(&of)
            ),
        );
        let help = format!(
            "name one of them (`out=[\"loss\"]`), sum it up, or use `vjp({}, …)`, which takes a seed for every result",
            func.name
        );
        found.push(d.at(request.span).help(help));
    }
    if let crate::Tape::Named(names) = &request.tape {
        let mut known: Vec<String> = func.interface().map(|t| t.symbol.name().to_string()).collect();
        func.body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind() {
                known.push(tensor.symbol.name().to_string());
            }
        });
        for odd in names.iter().filter(|n| !known.contains(n)) {
            let d = Diagnostic::new("grad::tape", format!("`{}` has no tensor `{odd}` to keep", func.name));
            let d = d.at(request.span);
            found.push(match weft_ast::near::nearest(odd, known.iter().map(String::as_str)) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("name tensors of the program, or `all`, `none` or `auto`"),
            });
        }
    }
    func.body.walk(&mut |s| {
        let span = s.origin().span();
        let mut refuse = |what: &str| found.push(refused(what, span));
        match s.kind() {
            StmtKind::Eval { .. } => refuse("a call of an outside function"),
            StmtKind::While { .. } => refuse("a `while`"),
            StmtKind::Structured { .. } => refuse("a step in the life of a structured tensor"),
            StmtKind::For { extent: Extent::Reals, .. } => refuse("a loop over the reals"),
            _ => {}
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| match e.kind() {
                ExprKind::Missing | ExprKind::Limit(..) | ExprKind::Measure(..) => refuse("this expression"),
                ExprKind::Load(_, at) if at.iter().any(|a| a.modifier != Modifier::None) => {
                    refuse("this kind of index")
                }
                _ => {}
            });
        }
    });
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

fn refused(what: &str, span: Span) -> Diagnostic {
    Diagnostic::new("grad::unsupported", format!("{what} cannot be differentiated yet")).at(span)
}

/// Results as people see them.
fn shown(results: &[std::sync::Arc<Tensor>]) -> String {
    let one = |t: &std::sync::Arc<Tensor>| format!("`{}` of {} with {} dimensions", t.symbol, t.dtype, t.ndim());
    match results {
        [] => "none".to_string(),
        all => all.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}
