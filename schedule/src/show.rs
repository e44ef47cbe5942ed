//! Text of programs with the names of their loops, and of dependences: one form for refusals and for listings.

use crate::selector;
use taffeta_analysis::query::depend::{Dependence, DependenceKind, Witness};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::{Expr, ExprKind, Func, Span, Symbol, print};

/// Prints the program with the names that schedules use for its loops: if the text has another name for a loop, or
/// several loops of that name, the selector follows as a comment (`# "i~o"`, `# "softmax.k#2"`).
pub fn program(func: &Func) -> String {
    print::func_with_selectors(func)
}

/// Prints the element that a reference touches, as it is written: `x[i + 1]`.
pub fn element(r: &Reference) -> String {
    // The cast of an `i32` to an index is not written in the program.
    let plain = |e: &Expr| match e.kind() {
        ExprKind::Cast(inner) if inner.dtype().is_int() => print::expr(inner),
        _ => print::expr(e),
    };
    match &r.indices {
        Some(i) if i.is_empty() => r.tensor.to_string(),
        Some(i) => format!("{}[{}]", r.tensor, i.iter().map(plain).collect::<Vec<_>>().join(", ")),
        None => format!("{}[…]", r.tensor),
    }
}

/// Returns the verb for an access: `reads`, `writes`, `updates`.
pub fn verb(u: Use) -> &'static str {
    match u {
        Use::Read => "reads",
        Use::Write => "writes",
        Use::Reduce(_) => "updates",
    }
}

fn values(of: &[(Symbol, i64)]) -> String {
    of.iter().map(|(s, v)| format!("{s} = {v}")).collect::<Vec<_>>().join(", ")
}

/// Describes a reference in the iteration of a witness: ``writes `x[i + 1]` at i = 3``.
pub fn instance(r: &Reference, at: &[(Symbol, i64)]) -> String {
    let when = if at.is_empty() { String::new() } else { format!(" at {}", values(at)) };
    format!("{} `{}`{when}", verb(r.kind), element(r))
}

/// Describes the source and the sink in the iterations of the witness.
pub fn instances(d: &Dependence) -> [String; 2] {
    // A subscript that is not understood has no known instance.
    let known = |r, of| instance(r, if d.witness.opaque.is_some() { &[] } else { of });
    [known(&d.source, &d.witness.source), known(&d.sink, &d.witness.sink)]
}

/// Labels both statements with their accesses.
pub fn labels(d: &Dependence) -> Vec<(Span, String)> {
    let (a, b) = (d.source.site.stmt.origin().span(), d.sink.site.stmt.origin().span());
    let [first, second] = instances(d);
    if a == b {
        return vec![(a, format!("{first}, then {second}"))];
    }
    vec![(a, format!("first {first}")), (b, format!("then {second}"))]
}

/// Describes the kind of dependence, the loop of the program that carries it, the element and the sizes.
pub fn notes(func: &Func, d: &Dependence) -> Vec<String> {
    let kind = match d.kind {
        DependenceKind::ReadAfterWrite => "flow dependence (RAW)",
        DependenceKind::WriteAfterRead => "anti dependence (WAR)",
        DependenceKind::WriteAfterWrite => "output dependence (WAW)",
    };
    let carrier = match d.carrier().filter(|s| selector::name(s).is_some()) {
        Some(s) => format!("carried by the loop `{}`", selector::called(func, s)),
        None => "within one iteration of the loops around both".to_string(),
    };
    let mut out = vec![format!("{kind}, {carrier}")];
    out.extend(witness(d));
    if !d.source.declared.format.is_injective() {
        out.push(format!("one stored value of `{}` stands for several elements", d.source.tensor));
    }
    out
}

/// Note on a dependence that is not excluded, but has no known instances.
const NOT_FOUND: &str = "no iterations with this dependence are known, but it cannot be ruled out";

/// Describes the element that both references touch, with the sizes, or the subscript that prevents the proof, or says
/// that no instance is known.
pub fn witness(d: &Dependence) -> Option<String> {
    match &d.witness.opaque {
        Some(e) => Some(not_understood(e)),
        None if !d.witness.found => Some(NOT_FOUND.into()),
        None => place(&d.source, &d.witness),
    }
}

/// Describes the subscript that prevents a proof, and suggests a remedy.
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
            "the subscript `{}` is computed in {}, where it may wrap around: bound the range of the loop, \
             `assert n <= {most}`, or compute it in i64, `cast(…, i64)`",
            print::expr(inner),
            inner.dtype()
        );
    }
    let text = format!("cannot analyse the subscript `{}`: it may wrap around, or is not affine", print::expr(e));
    match names.first() {
        Some(name) => {
            format!("{text}; if it cannot wrap around, add an assertion: `assert 0 <= {name} and {name} < n`")
        }
        None => text,
    }
}

fn place(r: &Reference, w: &Witness) -> Option<String> {
    let element = match &w.element {
        Some(e) if !e.is_empty() => {
            format!("the element is {}[{}]", r.tensor, e.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
        }
        _ if w.sizes.is_empty() && w.assumed.is_empty() => return None,
        _ => "for example".to_string(),
    };
    let sizes = if w.sizes.is_empty() { String::new() } else { format!(" with {}", values(&w.sizes)) };
    let assumed: Vec<String> = w.assumed.iter().map(|(e, v)| format!("`{}` is {v}", print::expr(e))).collect();
    let assumed = if assumed.is_empty() { String::new() } else { format!(", if {}", assumed.join(" and ")) };
    let sure = if w.exact { "" } else { ", but this is not certain" };
    Some(format!("{element}{sizes}{assumed}{sure}"))
}
