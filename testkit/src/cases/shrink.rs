//! Reduction of a failing case to a small one.

use super::program::{Case, Stmt, Text};
use taffeta_ast::format::{Format, Level};

/// Shrinks a case while `fails` holds: statements, results and parameters are removed, blocks are replaced by their
/// bodies, values by their parts, formats by plainer ones, and sizes are reduced.
pub fn small(case: &Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    loop {
        match edits(&best).into_iter().find(|c| fails(c)) {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// Returns every case that is one step smaller, the largest steps first.
fn edits(case: &Case) -> Vec<Case> {
    let mut out: Vec<Case> = blocks(&case.body).into_iter().map(|body| Case { body, ..case.clone() }).collect();
    for k in 0..case.results.len() {
        let mut less = case.clone();
        less.results.remove(k);
        out.push(less);
    }
    for (k, p) in case.params.iter().enumerate() {
        let mut less = case.clone();
        less.params.remove(k);
        out.push(less);
        for format in p.format.iter().flat_map(plainer) {
            let mut plain = case.clone();
            plain.params[k].format = format;
            out.push(plain);
        }
    }
    for (name, size) in &case.sizes {
        for smaller in [0, 1, size - 1].into_iter().filter(|s| s < size && *s >= 0) {
            let mut less = case.clone();
            less.sizes.insert(name, smaller);
            out.push(less);
        }
    }
    out
}

fn blocks(all: &[Stmt]) -> Vec<Vec<Stmt>> {
    let mut out = Vec::new();
    let with = |k: usize, new: Vec<Stmt>| -> Vec<Stmt> {
        all[..k].iter().cloned().chain(new).chain(all[k + 1..].iter().cloned()).collect()
    };
    for (k, s) in all.iter().enumerate() {
        out.push(with(k, Vec::new()));
        if let Stmt::Block(_, body) = s {
            out.push(with(k, body.clone()));
        }
    }
    for (k, s) in all.iter().enumerate() {
        match s {
            Stmt::Line(text) => out.extend(texts(text).into_iter().map(|t| with(k, vec![Stmt::Line(t)]))),
            Stmt::Block(head, body) => {
                out.extend(texts(head).into_iter().map(|t| with(k, vec![Stmt::Block(t, body.clone())])));
                out.extend(blocks(body).into_iter().map(|b| with(k, vec![Stmt::Block(head.clone(), b)])));
            }
        }
    }
    out
}

/// Returns the parts of a text that can replace it, and the text with one part shrunk.
fn texts(text: &Text) -> Vec<Text> {
    let mut out: Vec<Text> = text.parts.iter().filter(|p| p.sort == text.sort).cloned().collect();
    for (k, part) in text.parts.iter().enumerate() {
        for smaller in texts(part) {
            let mut less = text.clone();
            less.parts[k] = smaller;
            out.push(less);
        }
    }
    out
}

fn plainer(format: &Format) -> Vec<Option<Format>> {
    let mut out = vec![None];
    if format.fill.is_some() {
        out.push(Some(Format { fill: None, ..format.clone() }));
    }
    for k in 0..format.levels.len() {
        let mut levels: Vec<Level> = format.levels.to_vec();
        if levels[k].index.take().is_some() {
            out.push(Some(Format { levels: levels.into(), ..format.clone() }));
        }
    }
    let plain: Vec<usize> = (0..format.levels.len()).collect();
    if format.order().is_some_and(|order| order != plain) && format.squares().count() == 0 {
        out.push(Some(format.clone().ordered(&plain)));
    }
    out
}
