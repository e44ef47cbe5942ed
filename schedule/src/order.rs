//! Legality of a new loop order: the search for a reversed dependence, and its translation for messages.

use crate::tree;
use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Relation};
use taffeta_ast::{Func, StmtId, StmtKind, Symbol};

/// Finds the first dependence that is reversed if the loops of a perfect nest, given outermost first as in the program,
/// run in the order `new` (positions of `loops`). Loops around the nest stay in the same iteration.
pub(crate) fn reversed(func: &Func, loops: &[StmtId], new: &[usize]) -> Option<Dependence> {
    let outermost = *loops.first()?;
    let around: Vec<StmtId> = tree::path(&func.body, outermost)?.iter().map(taffeta_ast::Stmt::id).collect();
    let around = &around[..around.len() - 1];
    let all = Dependences::inside(func, &[outermost]);
    let inside = |r: &taffeta_analysis::query::reference::Reference| r.site.inside(outermost);
    // The sink runs first in the new order if its iteration of the outermost loop that differs is the earlier one.
    (0..new.len()).find_map(|m| {
        let relation = |id: StmtId| {
            let Some(position) = loops.iter().position(|l| *l == id) else {
                return if around.contains(&id) { Relation::Same } else { Relation::Any };
            };
            match new.iter().position(|p| *p == position) {
                Some(k) if k < m => Relation::Same,
                Some(k) if k == m => Relation::Earlier,
                _ => Relation::Any,
            }
        };
        all.first(&DependenceQuery {
            source: &inside,
            sink: &inside,
            relate: &|s| relation(s.id()),
            ..DependenceQuery::default()
        })
    })
}

/// Returns the ids of the statements around the one with this id, outermost first.
pub(crate) fn around(func: &Func, id: StmtId) -> Vec<StmtId> {
    let mut path = tree::path(&func.body, id).unwrap_or_default();
    path.pop();
    path.iter().map(taffeta_ast::Stmt::id).collect()
}

/// Translates a dependence of a nest that was made perfect back to the program, without the loops that statements were
/// moved into.
pub(crate) fn in_program_terms(func: &Func, mut d: Dependence) -> Dependence {
    let iters = |id: StmtId| -> Vec<Symbol> {
        let path = tree::path(&func.body, id).unwrap_or_default();
        let iter = |s: &taffeta_ast::Stmt| match s.kind() {
            StmtKind::For { iter, .. } => Some(iter.clone()),
            _ => None,
        };
        path.iter().filter(|s| s.id() != id).filter_map(iter).collect()
    };
    let (source, sink) = (iters(d.source.site.stmt.id()), iters(d.sink.site.stmt.id()));
    d.witness.source.retain(|(s, _)| source.contains(s));
    d.witness.sink.retain(|(s, _)| sink.contains(s));
    d.loops.retain(
        |(l, _)| matches!(l.kind(), StmtKind::For { iter, .. } if source.contains(iter) && sink.contains(iter)),
    );
    d
}
