//! Sets, relations and orders in isl's notation, which isl parses faster than API calls could build the objects.
//! Parameters are `p0` …, statements `S0[i0, i1]` ….

use crate::polyhedral::{Condition, Edge, Region, Statement, Term};
use std::fmt::Write;

/// Wraps a set or relation as `[p0, p1] -> { … }`.
pub(super) fn braces(region: &Region, inside: &str) -> String {
    format!("[{}] -> {{ {inside} }}", names("p", region.parameters.len()))
}

pub(super) fn names(prefix: &str, count: usize) -> String {
    (0..count).map(|k| format!("{prefix}{k}")).collect::<Vec<_>>().join(", ")
}

/// Prints the domains of all statements: `S0[i0, i1] : …; S1[i0] : …`.
pub(super) fn domains(region: &Region) -> String {
    let one = |(k, s): (usize, &Statement)| format!("{} : {}", tuple(k, s, "i"), condition(&s.domain));
    braces(region, &region.statements.iter().enumerate().map(one).collect::<Vec<_>>().join("; "))
}

pub(super) fn tuple(number: usize, s: &Statement, prefix: &str) -> String {
    format!("S{number}[{}]", names(prefix, s.indices))
}

/// Prints the relations of edges, each as `S0[i0] -> S1[j0] : exists (e0 : …)`.
pub(super) fn edges(region: &Region, edges: &[&Edge]) -> String {
    let one = |e: &&Edge| {
        let (a, b) = (&region.statements[e.source], &region.statements[e.sink]);
        let fixed = 1 + a.indices + b.indices + region.parameters.len();
        let columns = e.rows.iter().map(Vec::len).max().unwrap_or(fixed).max(fixed);
        let name = |k: usize| match k {
            k if k < a.indices => format!("i{k}"),
            k if k < a.indices + b.indices => format!("j{}", k - a.indices),
            k if k + 1 < fixed => format!("p{}", k - a.indices - b.indices),
            k => format!("e{}", k + 1 - fixed),
        };
        let row = |r: &Vec<i64>| {
            let mut out = r.first().copied().unwrap_or(0).to_string();
            for (k, c) in r.iter().skip(1).enumerate().filter(|(_, c)| **c != 0) {
                let _ = write!(out, " + {c} {}", name(k));
            }
            format!("{out} >= 0")
        };
        let mut all = e.rows.iter().map(row).collect::<Vec<_>>().join(" and ");
        if all.is_empty() {
            all = "0 = 0".into();
        }
        if columns > fixed {
            all = format!("exists ({} : {all})", names("e", columns - fixed));
        }
        format!("{} -> {} : {all}", tuple(e.source, a, "i"), tuple(e.sink, b, "j"))
    };
    braces(region, &edges.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// Prints an order: `S0[i0] -> [i0, 0, floor(i0 / 32)]; …`.
pub(super) fn order(region: &Region, order: &[Vec<Term>]) -> String {
    let one = |(k, (s, terms)): (usize, (&Statement, &Vec<Term>))| {
        format!("{} -> [{}]", tuple(k, s, "i"), terms.iter().map(term).collect::<Vec<_>>().join(", "))
    };
    braces(region, &region.statements.iter().zip(order).enumerate().map(one).collect::<Vec<_>>().join("; "))
}

pub(super) fn condition(c: &Condition) -> String {
    let joined = |all: &[Condition], with: &str, none: &str| match all {
        [] => none.to_string(),
        _ => all.iter().map(|c| format!("({})", condition(c))).collect::<Vec<_>>().join(with),
    };
    match c {
        Condition::NotNegative(t) => format!("{} >= 0", term(t)),
        Condition::Zero(t) => format!("{} = 0", term(t)),
        Condition::All(all) => joined(all, " and ", "0 = 0"),
        Condition::Any(all) => joined(all, " or ", "0 = 1"),
        Condition::Not(c) => format!("not ({})", condition(c)),
    }
}

fn term(t: &Term) -> String {
    let nested = |all: &[Term], name: &str| {
        let join = |a: String, b: String| format!("{name}({a}, {b})");
        all.iter().map(term).reduce(join).unwrap_or_else(|| "0".into())
    };
    match t {
        Term::Number(n) => n.to_string(),
        Term::Parameter(k) => format!("p{k}"),
        Term::Index(k) => format!("i{k}"),
        Term::Sum(parts) => {
            let each = parts.iter().map(|(c, t)| match t {
                Term::Number(_) | Term::Parameter(_) | Term::Index(_) => format!("{c}*{}", term(t)),
                _ => format!("{c}*({})", term(t)),
            });
            let sum = each.collect::<Vec<_>>().join(" + ");
            if sum.is_empty() { "0".into() } else { format!("({sum})") }
        }
        Term::Quotient(t, by) => format!("floor(({})/{by})", term(t)),
        Term::Least(all) => nested(all, "min"),
        Term::Greatest(all) => nested(all, "max"),
    }
}
