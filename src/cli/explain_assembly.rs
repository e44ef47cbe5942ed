//! Section of `taffeta show --explain` about sparse tensors that a program makes.

use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use taffeta::SourceMap;
use taffeta::structured::Assembly;

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
        if a.gathered {
            line("workspace", "a row of a `bytemap`, cleared by its list");
        }
        line("passes", "1");
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
            "strategy": if a.gathered { "workspace" } else { "append" },
            "passes": 1,
        })
    };
    all.iter().map(one).collect()
}

fn strategy(a: &Assembly) -> &'static str {
    match a.gathered {
        true => "workspace, then append: a fibre of the last level is gathered, sorted and appended",
        false => "append: every write appends an element",
    }
}

fn why(a: &Assembly) -> &'static str {
    match a.gathered {
        true => "fibres are written one after the other, their elements several times or in any order",
        false => "each element is written once, in the order of the levels",
    }
}
