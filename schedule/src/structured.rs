//! Loops that traverse structured tensors: what runs in the end are loops over what is stored of these. They may run in
//! any order, by vector instructions and inside of each other in another order; the other primitives make loops of them
//! for which there is no traversal yet, and are refused on them.

use crate::refusal::Refusal;
use crate::selector;
use crate::tree;
use rustc_hash::FxHashMap;
use taffeta_ast::{Access, ExprKind, Func, Stmt, StmtKind, Symbol, Tensor};

/// The primitives that such loops take.
const TAKEN: [&str; 3] = ["parallelize", "vectorize", "reorder"];

/// Refuses a step that changes or copies such a loop, or makes one.
pub(crate) fn check(primitive: &str, before: &Func, after: &Func) -> Result<(), Refusal> {
    if TAKEN.contains(&primitive) {
        return Ok(());
    }
    let [old, new] = [before, after].map(traversals);
    let refuse = |s: &Stmt, tensor: &Symbol, does: &str| {
        let name = selector::called(before, s);
        let text = format!("the loop `{name}` traverses `{tensor}`, which is structured, and {does}");
        let help = format!("such loops take {} and {}", TAKEN[..2].join(", "), TAKEN[2]);
        Err(Refusal::unsupported(0, text).label(s.origin().span(), "this loop").help(help))
    };
    for (s, tensor) in &old {
        let same = tree::find(&after.body, s.id()).is_some_and(|now| is_same_loop(s, &now));
        if !same {
            return refuse(s, tensor, &format!("`{primitive}` would make another loop of it"));
        }
    }
    for (s, tensor) in &new {
        if tree::find(&before.body, s.id()).is_none() {
            let of = old.iter().find(|(_, t)| t == tensor).map_or(s, |(of, _)| of);
            return refuse(of, tensor, &format!("`{primitive}` would copy it"));
        }
    }
    Ok(())
}

/// Whether both run over the same range in the same way.
fn is_same_loop(a: &Stmt, b: &Stmt) -> bool {
    match (a.kind(), b.kind()) {
        (StmtKind::For { iter: i, extent: e, props: p, .. }, StmtKind::For { iter: j, extent: f, props: q, .. }) => {
            i == j && e == f && p.unroll == q.unroll && p.library == q.library
        }
        _ => false,
    }
}

/// Loops with a structured tensor that is indexed by their iterators, outermost first.
fn traversals(func: &Func) -> Vec<(Stmt, Symbol)> {
    // What is structured in it is stored where a parameter is.
    if func.params.iter().all(|p| p.tensor.format.is_dense()) {
        return Vec::new();
    }
    let mut structured: Vec<Symbol> = Vec::new();
    let mut note = |t: &Tensor| {
        if !t.format.is_dense() {
            structured.push(t.symbol.clone());
        }
    };
    func.interface().for_each(|t| note(t));
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            note(tensor);
        }
    });
    // By iterator, which each loop has its own of.
    let mut loops: Vec<(Stmt, Option<Symbol>)> = Vec::new();
    let mut by_iter: FxHashMap<Symbol, usize> = FxHashMap::default();
    func.body.walk(&mut |s| {
        if let StmtKind::For { iter, .. } = s.kind() {
            by_iter.insert(iter.clone(), loops.len());
            loops.push((s.clone(), None));
        }
    });
    let mut mark = |tensor: &Symbol, at: &[Access]| {
        if !structured.contains(tensor) {
            return;
        }
        for a in at {
            a.index.walk(&mut |e| {
                if let ExprKind::Var(iter) = e.kind()
                    && let Some(k) = by_iter.get(iter)
                {
                    loops[*k].1.get_or_insert_with(|| tensor.clone());
                }
            });
        }
    };
    func.body.walk(&mut |s| {
        if let StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } = s.kind() {
            mark(tensor, indices);
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(tensor, at) = e.kind() {
                    mark(tensor, at);
                }
            });
        }
    });
    loops.into_iter().filter_map(|(s, tensor)| Some((s, tensor?))).collect()
}
