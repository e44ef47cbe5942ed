//! Selectors: names of statements in a schedule (language.md, section 6).
//!
//! - `"i"`: the loop with that iterator. Loops in the function's own text take precedence: a loop inside a call is
//!   meant only if the function itself has none of that name. `"i#2"` is the second one of several, counted in that
//!   order and then in textual order;
//! - `"L1"`: the statement with that label;
//! - `"i/j"`: the loop `j` inside the loop `i`, at any depth; each part is a selector of its own;
//! - `"softmax.k"`: the loop `k` of an inlined call of `softmax`; calls may be nested (`"attention.softmax.k"`).
//!
//! Loops of array statements are named `T.d0`, `T.d1` … for target `T`.
//!
//! Tensors are named in the same way: `"t"`, `"t#2"`, `"softmax.t"`. In a step that takes a statement and a tensor that
//! it uses, a name shared by several tensors denotes the one that the statement uses, if there is exactly one.

use crate::refusal::Refusal;
use crate::tree;
use std::sync::Arc;
use taffeta_analysis::query::effects;
pub use taffeta_ast::selector::{called, name, names};
use taffeta_ast::selector::{is_meant, matches, own_first};
use taffeta_ast::{Func, Origin, Stmt, StmtKind, Symbol, Tensor};

/// Returns the loop that a selector names.
pub fn loop_(func: &Func, selector: &str) -> Result<Stmt, Refusal> {
    one(func, selector, true)
}

/// Returns the statement that a selector names.
pub fn stmt(func: &Func, selector: &str) -> Result<Stmt, Refusal> {
    one(func, selector, false)
}

fn one(func: &Func, selector: &str, loops: bool) -> Result<Stmt, Refusal> {
    let mut inside = vec![func.body.clone()];
    let parts: Vec<&str> = selector.split('/').collect();
    for (k, part) in parts.iter().enumerate() {
        let (name, number) = numbered(part);
        let only_loops = loops || k + 1 < parts.len();
        let mut found: Vec<Stmt> = Vec::new();
        for root in &inside {
            let start = k > 0;
            root.walk(&mut |s| {
                let itself = start && s.same_node(root);
                if !itself
                    && (!only_loops || self::name(s).is_some())
                    && matches(s, name)
                    && !found.iter().any(|f| f.id() == s.id())
                {
                    found.push(s.clone());
                }
            });
        }
        let meant = own_first(&mut found, |s| s.origin().chain().is_empty());
        if number.is_none() {
            found.truncate(meant);
        }
        inside = match (number, found.len()) {
            (_, 0) => return Err(nothing(func, selector, name, loops)),
            (Some(n), count) if n == 0 || n > count => {
                return Err(Refusal::target(format!("expected a number from 1 to {count} for `{name}`, found {n}")));
            }
            (Some(n), _) => vec![found.swap_remove(n - 1)],
            (None, _) => found,
        };
    }
    match inside.len() {
        1 => Ok(inside.swap_remove(0)),
        count => {
            let (name, _) = numbered(parts.last().copied().unwrap_or(selector));
            let prefix = selector.strip_suffix(name).unwrap_or_default();
            let options: Vec<String> = (1..=count).map(|n| format!("\"{prefix}{name}#{n}\"")).collect();
            let mut r = Refusal::target(format!("`{selector}` names {count} statements")).misused();
            for (n, s) in inside.iter().enumerate().take(6) {
                r = r.label(s.origin().span(), format!("number {}", n + 1));
            }
            Err(r.help(format!("write {}", options.join(", "))))
        }
    }
}

/// Parses `i#2` as `i` and 2.
fn numbered(part: &str) -> (&str, Option<usize>) {
    match part.rsplit_once('#') {
        Some((name, n)) if n.chars().all(|c| c.is_ascii_digit()) && !n.is_empty() => (name, n.parse().ok()),
        _ => (part, None),
    }
}

fn nothing(func: &Func, selector: &str, part: &str, loops: bool) -> Refusal {
    let loop_names = self::names(func);
    let mut names: Vec<String> = Vec::new();
    func.body.walk(&mut |s| {
        let labels = s.origin().labels().iter().filter(|_| !loops).map(|l| l.to_string());
        for n in loop_names.get(&s.id()).cloned().into_iter().chain(labels) {
            if !names.contains(&n) {
                names.push(n);
            }
        }
    });
    let what = if loops { "loop" } else { "statement" };
    let r = if part == selector {
        Refusal::target(format!("there is no {what} `{selector}`"))
    } else {
        Refusal::target(format!("there is no {what} `{selector}`: cannot find `{part}`"))
    };
    match names.is_empty() {
        true => r.help("the program has no loops"),
        false => r.help(format!("choose one of {}", names.join(", "))),
    }
}

/// Tensor with its declaring statement; parameters and results have none.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Declared tensor.
    pub tensor: Arc<Tensor>,
    /// Declaring statement of a local tensor, whose body is the tensor's scope.
    pub stmt: Option<Stmt>,
}

impl Declared {
    /// Returns the symbol of the tensor.
    pub fn symbol(&self) -> &Symbol {
        &self.tensor.symbol
    }
}

/// Lists the tensors of a program: its interface, then the declared ones in textual order.
pub fn tensors(func: &Func) -> Vec<Declared> {
    let mut all: Vec<Declared> = func.interface().map(|t| Declared { tensor: t.clone(), stmt: None }).collect();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            all.push(Declared { tensor: tensor.clone(), stmt: Some(s.clone()) });
        }
    });
    all
}

/// Lists the statements that store to a tensor or reduce into it, in textual order.
pub fn writes(func: &Func, tensor: &Symbol) -> Vec<Stmt> {
    let mut all = Vec::new();
    func.body.walk(&mut |w| {
        if matches!(w.kind(), StmtKind::Store { tensor: t, .. } | StmtKind::ReduceTo { tensor: t, .. } if t == tensor) {
            all.push(w.clone());
        }
    });
    all
}

/// Returns the tensor that a selector names. Among several tensors of a name, the only one that the statement `used_in`
/// uses and does not declare is meant.
pub fn tensor(func: &Func, selector: &str, used_in: Option<&Stmt>) -> Result<Declared, Refusal> {
    let (name, number) = numbered(selector);
    let all = tensors(func);
    let fits = |d: &&Declared| {
        let origin = d.stmt.as_ref().map_or(Origin::none(), |s| s.origin().clone());
        is_meant(d.symbol().name(), &origin, name)
    };
    let mut found: Vec<Declared> = all.iter().filter(fits).cloned().collect();
    if let (None, Some(stmt)) = (number, used_in)
        && found.len() > 1
    {
        let (writes, reads) = (effects::writes(stmt), effects::reads_by_others(stmt));
        let uses = |d: &&Declared| writes.contains(d.symbol()) || reads.contains(d.symbol());
        let outside = |d: &&Declared| d.stmt.as_ref().is_none_or(|s| tree::find(stmt, s.id()).is_none());
        if let [one] = found.iter().filter(uses).filter(outside).collect::<Vec<_>>()[..] {
            return Ok(one.clone());
        }
    }
    let meant = own_first(&mut found, |d| d.stmt.as_ref().is_none_or(|s| s.origin().chain().is_empty()));
    if number.is_none() {
        found.truncate(meant);
    }
    match (number, found.len()) {
        (_, 0) => {
            let mut names: Vec<&str> = Vec::new();
            for d in &all {
                if !names.contains(&d.symbol().name()) {
                    names.push(d.symbol().name());
                }
            }
            let r = Refusal::target(format!("there is no tensor `{name}`"));
            Err(if names.is_empty() { r } else { r.help(format!("choose one of {}", names.join(", "))) })
        }
        (Some(n), count) if n == 0 || n > count => {
            Err(Refusal::target(format!("expected a number from 1 to {count} for the tensor `{name}`, found {n}")))
        }
        (Some(n), _) => Ok(found.swap_remove(n - 1)),
        (None, 1) => Ok(found.swap_remove(0)),
        (None, count) => {
            let options: Vec<String> = (1..=count).map(|n| format!("\"{name}#{n}\"")).collect();
            let mut r = Refusal::target(format!("`{name}` names {count} tensors")).misused();
            for (n, d) in found.iter().enumerate().take(6) {
                let at = d.stmt.as_ref().map_or(taffeta_ast::Span::NONE, |s| s.origin().span());
                r = r.label(at, format!("number {}", n + 1));
            }
            Err(r.help(format!("write {}", options.join(", "))))
        }
    }
}
