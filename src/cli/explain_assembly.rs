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
            Strategy::Store | Strategy::Append | Strategy::Scatter { are_sorted: false } | Strategy::Insert => {}
            Strategy::Scatter { are_sorted: true } => line("workspace", "the longest fibre, while it is sorted"),
            Strategy::Workspace => line("workspace", "a row of a `bytemap`, cleared by its list"),
            Strategy::Sort(_) => line("workspace", "coordinates, value and number of each write"),
        }
        line("passes", passes(a));
        line("bound", &bound(a));
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
                Strategy::Store => "store",
                Strategy::Append => "append",
                Strategy::Workspace => "workspace",
                Strategy::Scatter { .. } => "scatter",
                Strategy::Insert => "insert",
                Strategy::Sort(_) => "sort",
            },
            "passes": match a.strategy {
                Strategy::Store | Strategy::Append | Strategy::Workspace => 1,
                Strategy::Scatter { are_sorted: false } | Strategy::Insert => 2,
                Strategy::Scatter { are_sorted: true } | Strategy::Sort(_) => 3,
            },
            "bound": a.bound,
        })
    };
    all.iter().map(one).collect()
}

fn strategy(a: &Assembly) -> &'static str {
    match a.strategy {
        Strategy::Store => "store: every write stores an element at a position that is computed",
        Strategy::Append => "append: every write appends an element",
        Strategy::Workspace => "workspace, then append: a fibre of the last level is gathered, sorted and appended",
        Strategy::Scatter { are_sorted: false } => {
            "count, scan, fill: every write stores an element at the next position of its fibre"
        }
        Strategy::Scatter { are_sorted: true } => {
            "count, scan, fill, sort: every write stores an element at the next position of its fibre, and fibres are sorted"
        }
        Strategy::Insert => "query, insert: every write stores an element at a position that is computed",
        Strategy::Sort(_) => {
            "list, sort, append: every write is listed, and elements are appended in the order of levels"
        }
    }
}

fn why(a: &Assembly) -> &str {
    match &a.strategy {
        Strategy::Store => "the position of an element follows from its indices, whichever others there are",
        Strategy::Append => "each element is written once, in the order of the levels",
        Strategy::Workspace => "fibres are written one after the other, their elements several times or in any order",
        Strategy::Scatter { are_sorted: false } => {
            "each element is written once, in the order of its fibre, but not fibre by fibre"
        }
        Strategy::Scatter { are_sorted: true } => "each element is written once, in no order",
        Strategy::Insert => "each element is written once, and positions depend on which elements there are",
        Strategy::Sort(reason) => reason,
    }
}

fn passes(a: &Assembly) -> &'static str {
    match a.strategy {
        Strategy::Store | Strategy::Append | Strategy::Workspace => "1",
        Strategy::Scatter { are_sorted: false } => {
            "2: over the program, to count the elements of fibres and to store them"
        }
        Strategy::Scatter { are_sorted: true } => {
            "3: 2 over the program, to count and to store, and over the fibres, to sort"
        }
        Strategy::Insert => "2: over the program, to record coordinates and to store elements",
        Strategy::Sort(_) => "3: over the program, to sort, and over the list",
    }
}

fn bound(a: &Assembly) -> String {
    match (&a.strategy, &a.bound) {
        (Strategy::Append | Strategy::Workspace, Some(most)) => {
            format!("room for {most} elements from the start; arrays grow if there are more")
        }
        (Strategy::Append | Strategy::Workspace, None) => "none: arrays grow to twice their length".to_string(),
        (Strategy::Store | Strategy::Scatter { .. } | Strategy::Insert, _) => "exact: arrays are made once".to_string(),
        (Strategy::Sort(_), _) => "none: the list and the arrays grow to twice their length".to_string(),
    }
}
