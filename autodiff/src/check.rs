//! Refusal of requests and programs that cannot be differentiated, with the position of each cause.

use crate::request::{Kind, Request, Tape};
use taffeta_ast::{Diagnostic, Diagnostics, ExprKind, Extent, ParamMode, Span, StmtKind, Tensor};

/// Refuses a request that has no derivative.
pub(crate) fn run(request: &Request<'_>) -> Result<(), Diagnostics> {
    let mut found = Vec::new();
    let func = request.func;
    let name = request.kind.name();
    for wrt in request.wrt {
        let Some(p) = func.params.iter().find(|p| p.tensor.symbol.name() == wrt) else {
            let d = Diagnostic::new("grad::wrt", format!("`{}` has no parameter `{wrt}`", func.name)).at(request.span);
            let all: Vec<&str> = func.params.iter().map(|p| p.tensor.symbol.name()).collect();
            found.push(match taffeta_ast::spelling::nearest(wrt, all.iter().copied()) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None if all.is_empty() => d.help("it has no parameters"),
                None => d.help(format!("its parameters are {}", all.join(", "))),
            });
            continue;
        };
        if !p.tensor.format.is_dense() && request.kind == Kind::Jacobian {
            let text = format!("`{name}` with respect to the structured parameter `{wrt}` is not supported yet");
            let d = Diagnostic::new("grad::structured", text).at(request.span);
            found.push(d.help("use `vjp` or `jvp`, whose derivatives have the pattern of the parameter"));
            continue;
        }
        if !p.tensor.dtype.is_float() {
            let d = Diagnostic::new(
                "grad::wrt",
                format!("`{wrt}` has type {}, which carries no derivative", p.tensor.dtype),
            );
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
            let d = Diagnostic::new("grad::out", format!("`{out}` has type {}, which carries no derivative", t.dtype));
            found.push(d.at(request.span).help("differentiate floating-point results"));
        }
    }
    for t in func.results.iter().filter(|t| request.is_of(t) && t.dtype.is_float() && !t.format.is_dense()) {
        if request.kind == Kind::Jacobian {
            let text = format!("the Jacobian of the structured result `{}` is not supported yet", t.symbol);
            let d = Diagnostic::new("grad::structured", text).at(request.span);
            found.push(d.help("name dense results: `out=[\"y\"]`"));
        }
    }
    let scalar = |t: &Tensor| t.shape.is_empty() && t.dtype.is_float();
    let of: Vec<std::sync::Arc<Tensor>> = func.results.iter().filter(|t| request.is_of(t)).cloned().collect();
    if matches!(request.kind, Kind::Grad | Kind::ValueAndGrad) && !matches!(&of[..], [t] if scalar(t)) {
        let d = Diagnostic::new(
            "grad::result",
            format!("`{name}` needs one floating-point scalar result, but `{}` has {}", func.name, shown(&of)),
        );
        let help = format!(
            "name a scalar result (`out=[\"loss\"]`), sum the result, or use `vjp({}, …)`, which takes a seed for \
             each result",
            func.name
        );
        found.push(d.at(request.span).help(help));
    }
    if request.kind == Kind::Jacobian {
        jacobian(request, &of, &mut found);
    }
    if let Tape::Named(names) = &request.tape {
        let mut known: Vec<String> = func.interface().map(|t| t.symbol.name().to_string()).collect();
        func.body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind() {
                known.push(tensor.symbol.name().to_string());
            }
        });
        for odd in names.iter().filter(|n| !known.contains(n)) {
            let d = Diagnostic::new("grad::tape", format!("`{}` has no tensor `{odd}` to keep", func.name));
            let d = d.at(request.span);
            found.push(match taffeta_ast::spelling::nearest(odd, known.iter().map(String::as_str)) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("name tensors of the program, or `all`, `none` or `auto`"),
            });
        }
    }
    assembled(request, &mut found);
    func.body.walk(&mut |s| {
        let span = s.origin().span();
        let mut refuse = |what: &str| found.push(refused(what, span));
        match s.kind() {
            StmtKind::Call { .. } => refuse("a call of a run-time routine"),
            StmtKind::While { .. } => refuse("a `while`"),
            StmtKind::For { extent: Extent::Reals, .. } => refuse("a loop over the reals"),
            _ => {}
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if matches!(e.kind(), ExprKind::Measure(..)) {
                    refuse("a measure over the reals");
                }
            });
        }
    });
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

/// Checks that a Jacobian is of one result of a function with read-only parameters.
fn jacobian(request: &Request<'_>, of: &[std::sync::Arc<Tensor>], found: &mut Vec<Diagnostic>) {
    let func = request.func;
    let floats: Vec<&str> = of.iter().filter(|t| t.dtype.is_float()).map(|t| t.symbol.name()).collect();
    // A requested result of another type has been refused.
    if floats.len() != 1 && (request.out.is_empty() || floats.len() > 1) {
        let message = format!("`jacobian` needs one floating-point result, but `{}` has {}", func.name, shown(of));
        let d = Diagnostic::new("grad::result", message).at(request.span);
        found.push(match floats.first() {
            Some(first) => d.help(format!("name one of them: `out=\"{first}\"`")),
            None => d.help("integers and `bool`s carry no derivative"),
        });
    }
    if request.wrt.is_empty() {
        let message = format!("`{}` has no floating-point parameters", func.name);
        found.push(Diagnostic::new("grad::wrt", message).at(request.span));
    }
    for p in func.params.iter().filter(|p| p.mode == ParamMode::InOut) {
        let name = p.tensor.symbol.name();
        let message = format!("`jacobian` cannot differentiate `{}`, which writes its parameter `{name}`", func.name);
        let d = Diagnostic::new("grad::inout", message).at(request.span);
        found.push(d.help(format!("make `{name}` read-only, and return its new value as a result")));
    }
}

fn refused(what: &str, span: Span) -> Diagnostic {
    Diagnostic::new("grad::unsupported", format!("{what} cannot be differentiated yet")).at(span)
}

/// Formats results for messages.
fn shown(results: &[std::sync::Arc<Tensor>]) -> String {
    let one = |t: &std::sync::Arc<Tensor>| format!("`{}` of {} with {} dimensions", t.symbol, t.dtype, t.ndim());
    match results {
        [] => "none".to_string(),
        all => all.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

/// Refuses tensors that the program assembles.
fn assembled(request: &Request<'_>, found: &mut Vec<Diagnostic>) {
    let func = request.func;
    let mut refuse = |t: &Tensor, span: Span| {
        let text =
            format!("gradients through `{}`, which is assembled in `{}`, are not supported yet", t.symbol, t.format);
        let help = "store it in the pattern of a parameter (`@ pattern(A)`), or densely";
        found.push(Diagnostic::new("grad::structured", text).at(span).help(help));
    };
    func.results.iter().filter(|t| func.assembles(t)).for_each(|t| refuse(t, request.span));
    func.body.walk(&mut |s| match s.kind() {
        StmtKind::VarDef { tensor, .. } if func.assembles(tensor) => refuse(tensor, s.origin().span()),
        _ => {}
    });
}
