//! Scalar promotion of elements that share a stored value with others (runs, symmetry). In a nest that visits each
//! element once, reductions and reads go to a scalar: it is loaded from a copy made before the nest, unless the element
//! is stored first, and written back at the end of the body.

use super::sites::{AccessKind, Site, loops_over_values, sites, varies_in};
use crate::pass::{rewrite_accesses, substitute};
use crate::tree;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::stmt::{LoopProps, Role};
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol, Tensor};

/// Promotes the elements of a tensor to scalars in all nests that allow it.
pub(super) fn run(func: &Func, tensor: &Arc<Tensor>) -> Func {
    let (mut func, mut rejected) = (func.clone(), Vec::new());
    loop {
        let all = sites(&func, &tensor.symbol);
        let nest = all.iter().filter(|s| s.how != AccessKind::Reads).find_map(|site| {
            let nest = site.path[*loops_over_values(tensor, site)?.first()?].clone();
            let needs = all.iter().any(|s| s.is_in(&nest) && s.how != AccessKind::Stores);
            (needs && !rejected.contains(&nest.id())).then_some((site, nest))
        });
        let Some((site, nest)) = nest else { return func };
        match ElementNest::of(tensor, site, &nest, &all) {
            Some(nest) => func = nest.apply(&func, tensor),
            None => rejected.push(nest.id()),
        }
    }
}

/// Loop nest that visits each element at most once.
struct ElementNest {
    /// Statements from the nest's outermost loop to the loop whose body contains all accesses to an element.
    path: Vec<Stmt>,
    indices: Vec<Access>,
    /// Whether an element may be read before the first store to it.
    reads_before_store: bool,
}

impl ElementNest {
    fn of(tensor: &Tensor, site: &Site, nest: &Stmt, all: &[Site]) -> Option<ElementNest> {
        let inside: Vec<&Site> = all.iter().filter(|s| s.is_in(nest)).collect();
        if inside.iter().any(|s| s.indices != site.indices) {
            return None;
        }
        let first = site.path.iter().position(|s| s.id() == nest.id())?;
        // A loop of the nest has an iterator that is exactly one index; other indices must be invariant in the nest.
        let indexes_once = |s: &Stmt| match s.kind() {
            StmtKind::For { iter, .. } => {
                site.indices.iter().filter(|a| matches!(a.index.kind(), ExprKind::Var(v) if v == iter)).count() == 1
            }
            _ => false,
        };
        let last = (first..site.path.len()).rev().find(|k| indexes_once(&site.path[*k]))?;
        let is_loop_index = |e: &Expr| {
            let ExprKind::Var(v) = e.kind() else { return false };
            let is = |s: &Stmt| matches!(s.kind(), StmtKind::For { iter, .. } if iter == v);
            site.path[first..=last].iter().any(is)
        };
        let indices_fixed = site.indices.iter().all(|a| is_loop_index(&a.index) || !varies_in(&a.index, nest));
        let inner = &site.path[last];
        if !indices_fixed || !inside.iter().all(|s| s.is_in(inner)) || shares(nest, &tensor.symbol) {
            return None;
        }
        let StmtKind::For { body, .. } = inner.kind() else { return None };
        let reads_before_store = !is_stored_first(body, tensor, all);
        let between = |s: &Stmt| match s.kind() {
            StmtKind::For { .. } => indexes_once(s),
            StmtKind::If { .. } => !reads_before_store,
            StmtKind::Seq(_) | StmtKind::VarDef { .. } => true,
            _ => false,
        };
        if !site.path[first..=last].iter().all(between) {
            return None;
        }
        // Extend the nest outwards over loops without other accesses to the tensor, so that the copy before it is made
        // once.
        let around = |k: &usize| {
            let s = &site.path[*k];
            let concurrent = matches!(s.kind(), StmtKind::For { props, .. } if props.is_concurrent());
            indexes_once(s) && !concurrent && all.iter().filter(|other| other.is_in(s)).count() == inside.len()
        };
        let first = (0..first).rev().take_while(around).last().unwrap_or(first);
        if site.path[..first].iter().any(|s| shares(s, &tensor.symbol)) {
            return None;
        }
        Some(ElementNest { path: site.path[first..=last].to_vec(), indices: site.indices.clone(), reads_before_store })
    }

    fn apply(&self, func: &Func, tensor: &Arc<Tensor>) -> Func {
        let name = tensor.symbol.name().replace('.', "_");
        let before = Arc::new(tensor.like(Symbol::new(format!("{name}.before")), Role::Local));
        let now = Tensor::dense(Symbol::new(format!("{name}.now")), tensor.dtype, Vec::new(), Role::Local);
        let (outer, inner) = (&self.path[0], &self.path[self.path.len() - 1]);
        let StmtKind::For { iter, extent, props, body } = inner.kind() else { return func.clone() };
        let origin = || inner.origin().derive("shared", "element");
        let set = |tensor: &Tensor, indices: Vec<Access>, value: Expr| {
            Stmt::new(StmtKind::Store { tensor: tensor.symbol.clone(), indices, value }, origin())
        };
        let element = |tensor: &Tensor| Expr::load(&tensor.symbol, self.indices.clone(), tensor.dtype);
        let begin = self.reads_before_store.then(|| set(&now, Vec::new(), element(&before)));
        let names: FxHashMap<Symbol, Symbol> = [(tensor.symbol.clone(), now.symbol.clone())].into_iter().collect();
        let own = rewrite_accesses::run(body, &names, &|_| Vec::new());
        let end = set(tensor, self.indices.clone(), now.load([]));
        let body = Stmt::seq(begin.into_iter().chain([own, end]), origin());
        let body = Stmt::new(StmtKind::VarDef { tensor: Arc::new(now), body }, origin());
        let (iter, extent, props) = (iter.clone(), extent.clone(), props.clone());
        let inner = inner.with_kind(StmtKind::For { iter, extent, props, body });
        let nest = tree::replaced(outer, inner.id(), &inner);
        if !self.reads_before_store {
            return tree::replace(func, outer.id(), &nest);
        }
        let copied = self.copied(tensor, &before);
        let origin = outer.origin().derive("shared", "before");
        let body = Stmt::seq([copied, nest], origin.clone());
        let all = Stmt::new(StmtKind::VarDef { tensor: before, body }, origin);
        tree::replace(func, outer.id(), &all)
    }

    /// Builds the loops that copy the elements before the nest.
    fn copied(&self, tensor: &Tensor, before: &Tensor) -> Stmt {
        let origin = || self.path[0].origin().derive("shared", "before");
        let mut own: FxHashMap<Symbol, Expr> = FxHashMap::default();
        let renamed = |e: &Expr, own: &FxHashMap<Symbol, Expr>| {
            let mut other = |e: &Expr| match e.kind() {
                ExprKind::Var(v) => own.get(v).cloned(),
                _ => None,
            };
            substitute::rewrite_expr(e, &mut other, &mut FxHashMap::default())
        };
        let mut loops = Vec::new();
        for s in &self.path {
            if let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, .. } = s.kind() {
                let [begin, end, step] = [begin, end, step].map(|e| renamed(e, &own));
                let new = Symbol::new(iter.name());
                own.insert(iter.clone(), Expr::var(&new));
                loops.push((new, Extent::Range { begin, end, step }));
            }
        }
        let indices: Vec<Access> = self.indices.iter().map(|a| Access::from(renamed(&a.index, &own))).collect();
        let value = Expr::load(&tensor.symbol, indices.clone(), tensor.dtype);
        let body = Stmt::new(StmtKind::Store { tensor: before.symbol.clone(), indices, value }, origin());
        loops.into_iter().rev().fold(body, |body, (iter, extent)| {
            Stmt::new(StmtKind::For { iter, extent, props: LoopProps::default(), body }, origin())
        })
    }
}

/// Returns whether threads or lanes share a reduction into the tensor, in the statement or inside of it.
fn shares(s: &Stmt, tensor: &Symbol) -> bool {
    s.any(&mut |s| match s.kind() {
        StmtKind::For { props, .. } => props.reductions.iter().any(|r| r.tensor == *tensor),
        _ => false,
    })
}

/// Returns whether the first access to the tensor's element in a body is an unconditional store.
fn is_stored_first(body: &Stmt, tensor: &Tensor, all: &[Site]) -> bool {
    let Some(first) = all.iter().find(|s| s.is_in(body)) else { return false };
    let from = first.path.iter().position(|s| s.id() == body.id()).unwrap_or(0);
    let straight = |s: &Stmt| matches!(s.kind(), StmtKind::Seq(_) | StmtKind::VarDef { .. });
    let path = &first.path[from..first.path.len() - 1];
    let store = matches!(first.stmt().kind(), StmtKind::Store { tensor: t, .. } if *t == tensor.symbol);
    // A load in the store's own value would be an earlier site.
    store && first.how == AccessKind::Stores && path.iter().all(straight)
}
