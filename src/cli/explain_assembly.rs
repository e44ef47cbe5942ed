//! Section of `taffeta show --explain` about sparse tensors that a program makes.

use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use taffeta::SourceMap;
use taffeta::structured::{Assembly, Strategy};

/// Renders the tensors as text.
pub fn text(all: &[Assembly], sources: &SourceMap) -> String {
    let mut out = String::new();
    for a in all {
        let levels: Vec<String> = a.levels.iter().map(|l| format!("`{l}`")).collect();
        let _ = writeln!(out, "\n{}   # {}", a.tensor, sources.locate(a.span));
        let mut line = |word: &str, text: &str| {
            let _ = writeln!(out, "  {word:<9} {text}");
        };
        line("levels", &levels.join(", "));
        line("strategy", strategy(a));
        line("why", why(a));
        match &a.strategy {
            Strategy::Append => {}
            Strategy::Workspace => line("workspace", "a row of a `bytemap`, cleared by its list"),
            Strategy::Sort(_) => line("workspace", "coordinates, value and number of each write"),
        }
        line("passes", passes(a));
        line("bound", "none: arrays grow to twice their length");
    }
    out
}

/// Renders the tensors as JSON.
pub fn json(all: &[Assembly], sources: &SourceMap) -> Json {
    let one = |a: &Assembly| {
        json!({
            "tensor": a.tensor,
            "at": sources.locate(a.span),
            "levels": a.levels.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "strategy": match a.strategy {
                Strategy::Append => "append",
                Strategy::Workspace => "workspace",
                Strategy::Sort(_) => "sort",
            },
            "passes": if matches!(a.strategy, Strategy::Sort(_)) { 3 } else { 1 },
        })
    };
    all.iter().map(one).collect()
}

fn strategy(a: &Assembly) -> &'static str {
    match a.strategy {
        Strategy::Append => "append: every write appends an element",
        Strategy::Workspace => "workspace, then append: a fibre of the last level is gathered, sorted and appended",
        Strategy::Sort(_) => {
            "list, sort, append: every write is listed, and elements are appended in the order of levels"
        }
    }
}

fn why(a: &Assembly) -> &str {
    match &a.strategy {
        Strategy::Append => "each element is written once, in the order of the levels",
        Strategy::Workspace => "fibres are written one after the other, their elements several times or in any order",
        Strategy::Sort(reason) => reason,
    }
}

fn passes(a: &Assembly) -> &'static str {
    match a.strategy {
        Strategy::Append | Strategy::Workspace => "1",
        Strategy::Sort(_) => "3: over the program, to sort, and over the list",
    }
}
