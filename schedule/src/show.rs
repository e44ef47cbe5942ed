//! Dependences in words: for refusals.

use taffeta_analysis::query::depend::{Dependence, DependenceKind, Witness};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::{Expr, ExprKind, Span, StmtKind, Symbol, print};

/// The element that a reference touches, as it is written: `x[i + 1]`.
pub fn element(r: &Reference) -> String {
    match &r.indices {
        Some(i) if i.is_empty() => r.tensor.to_string(),
        Some(i) => format!("{}[{}]", r.tensor, i.iter().map(print::expr).collect::<Vec<_>>().join(", ")),
        None => format!("{}[…]", r.tensor),
    }
}

fn verb(u: Use) -> &'static str {
    match u {
        Use::Read => "reads",
        Use::Write => "writes",
        Use::Reduce(_) => "updates",
    }
}

fn values(of: &[(Symbol, i64)]) -> String {
    of.iter().map(|(s, v)| format!("{s} = {v}")).collect::<Vec<_>>().join(", ")
}

fn instance(r: &Reference, at: &[(Symbol, i64)]) -> String {
    let when = if at.is_empty() { String::new() } else { format!(" at {}", values(at)) };
    format!("{} `{}`{when}", verb(r.kind), element(r))
}

/// Both statements, with what they do.
pub fn labels(d: &Dependence) -> Vec<(Span, String)> {
    let (a, b) = (d.source.site.stmt.origin().span(), d.sink.site.stmt.origin().span());
    // Of a subscript that was not understood no instance is known.
    let known = |r, of| instance(r, if d.witness.opaque.is_some() { &[] } else { of });
    let (first, second) = (known(&d.source, &d.witness.source), known(&d.sink, &d.witness.sink));
    if a == b {
        return vec![(a, format!("{first}, then {second}"))];
    }
    vec![(a, format!("first {first}")), (b, format!("then {second}"))]
}

/// The kind of dependence, the loop that carries it, the element and the sizes.
pub fn notes(d: &Dependence) -> Vec<String> {
    let kind = match d.kind {
        DependenceKind::ReadAfterWrite => "flow dependence (RAW)",
        DependenceKind::WriteAfterRead => "anti dependence (WAR)",
        DependenceKind::WriteAfterWrite => "output dependence (WAW)",
    };
    let carrier = match d.carrier().map(|s| s.kind()) {
        Some(StmtKind::For { iter, .. }) => format!("carried by the loop `{iter}`"),
        _ => "within one iteration of the loops around both".to_string(),
    };
    let mut out = vec![format!("{kind}, {carrier}")];
    match &d.witness.opaque {
        Some(e) => out.push(not_understood(e)),
        None => out.extend(place(&d.source, &d.witness)),
    }
    out
}

/// Which subscript stands against a proof, and what would help.
fn not_understood(e: &Expr) -> String {
    let mut names: Vec<String> = Vec::new();
    e.walk(&mut |e| {
        let name = print::expr(e);
        if matches!(e.kind(), ExprKind::Load(..)) && e.dtype().is_int() && !names.contains(&name) {
            names.push(name);
        }
    });
    let narrow = match e.kind() {
        ExprKind::Cast(inner) if inner.dtype().is_int() && inner.dtype() != e.dtype() => Some(inner),
        _ => None,
    };
    if let Some((inner, most)) = narrow.and_then(|e| Some((e, e.dtype().int_range()?.1))) {
        return format!(
            "the subscript `{}` is computed in {}, where it may wrap around: bound what the loop runs over, \
             `assert n <= {most}`, or compute it in i64, `cast(…, i64)`",
            print::expr(inner),
            inner.dtype()
        );
    }
    let text = format!("the subscript `{}` is not understood: it may wrap around, or is not affine", print::expr(e));
    match names.first() {
        Some(name) => {
            format!("{text}; where it does not wrap, an assertion says so: `assert 0 <= {name} and {name} < n`")
        }
        None => text,
    }
}

fn place(r: &Reference, w: &Witness) -> Option<String> {
    let element = match &w.element {
        Some(e) if !e.is_empty() => {
            format!("the element is {}[{}]", r.tensor, e.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
        }
        _ => return None,
    };
    let sizes = if w.sizes.is_empty() { String::new() } else { format!(" with {}", values(&w.sizes)) };
    let assumed: Vec<String> = w.assumed.iter().map(|(e, v)| format!("`{}` is {v}", print::expr(e))).collect();
    let assumed = if assumed.is_empty() { String::new() } else { format!(", if {}", assumed.join(" and ")) };
    let sure = if w.exact { "" } else { ", as far as could be found out" };
    Some(format!("{element}{sizes}{assumed}{sure}"))
}
