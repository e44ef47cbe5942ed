//! Section of `taffeta show --explain` about loops that access structured tensors.

use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use taffeta::structured::{Explained, FibreRole, Operand, Visited};
use taffeta::{SourceMap, Span};

/// Loops of an entry, with the sources that they come from.
pub struct Loops<'a> {
    pub loops: &'a [Explained],
    pub sources: &'a SourceMap,
    /// Numbers of stored elements of parameters, as far as inputs determine them.
    pub stored: Vec<(&'a str, i64)>,
}

impl Loops<'_> {
    /// Renders the loops as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for l in self.loops {
            let indent = "  ".repeat(l.depth);
            let _ = writeln!(out, "\n{indent}for {}   # {}", l.iter, self.sources.locate(l.span));
            let mut line = |word: &str, text: &str| {
                let _ = writeln!(out, "{indent}  {word:<9} {text}");
            };
            line("visits", &self.visits(l));
            if let Some(n) = &l.iterations {
                let each = if l.depth > 0 { ", each time" } else { "" };
                line("expects", &format!("{n} iterations{each}"));
            }
            for o in &l.operands {
                line(o.role.word(), &format!("{}: {}", operand(o), o.role.description()));
            }
        }
        if !self.stored.is_empty() {
            let all: Vec<String> = self.stored.iter().map(|(name, n)| format!("nnz({name}) = {n}")).collect();
            let _ = writeln!(out, "\n{}", all.join(", "));
        }
        out
    }

    /// Describes the visited coordinates, with the reason if a loop visits every one.
    fn visits(&self, l: &Explained) -> String {
        match (&l.visited, l.effect_on_fill) {
            (Visited::Stored(sets), _) => {
                format!("where {} {} stored", sets.iter().map(set).collect::<Vec<_>>().join(", or "), verb(sets))
            }
            (Visited::Every, Some(effect)) => {
                let (text, at) = (self.quoted(effect), self.sources.locate(effect));
                format!("every coordinate: `{text}` ({at}) also runs where nothing is stored")
            }
            (Visited::Every, None) => {
                let searched = l
                    .operands
                    .iter()
                    .find(|o| matches!(o.role, FibreRole::Searched | FibreRole::Probed | FibreRole::Asked));
                match searched {
                    Some(o) => format!("every coordinate: `{}` is looked up at each of them", o.tensor),
                    None => "every coordinate".to_string(),
                }
            }
        }
    }

    /// Returns the first source line of a span.
    fn quoted(&self, span: Span) -> &str {
        self.sources.text(span).lines().next().unwrap_or_default().trim()
    }

    /// Returns the loops as JSON.
    pub fn json(&self) -> Json {
        let one = |l: &Explained| {
            let visited = match &l.visited {
                Visited::Every => json!("every"),
                Visited::Stored(sets) => json!(sets),
            };
            let operand = |o: &Operand| {
                json!({
                    "tensor": o.tensor, "number": o.number, "level": o.level.to_string(), "part": o.role.word(),
                })
            };
            json!({
                "iter": l.iter,
                "at": self.sources.locate(l.span),
                "depth": l.depth,
                "visited": visited,
                "iterations": l.iterations,
                "operands": l.operands.iter().map(operand).collect::<Vec<_>>(),
                "kept": l.effect_on_fill.map(|s| self.sources.locate(s)),
            })
        };
        self.loops.iter().map(one).collect()
    }
}

fn operand(o: &Operand) -> String {
    format!("`{}`, level {} (`{}`)", o.tensor, o.number, o.level)
}

/// Formats the tensors of a set; several fibres of one tensor are counted.
fn set(all: &Vec<String>) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for name in all {
        match names.iter_mut().find(|(n, _)| n == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    let one = |(name, count): &(&str, usize)| match count {
        1 => format!("`{name}`"),
        n => format!("`{name}` ({n} fibres)"),
    };
    names.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// Returns the verb that agrees with the last set: `is` or `are`.
fn verb(sets: &[Vec<String>]) -> &'static str {
    if sets.last().is_some_and(|all| all.len() > 1) { "are" } else { "is" }
}
