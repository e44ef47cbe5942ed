//! Proof that all elements that share one stored value are written alike: the same statements store the same value into
//! each.
use super::sites::{AccessKind, Site, is_shared, loops_over_values, sites};
use crate::query::effects;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::Arc;
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol, Tensor};

/// Returns whether a tensor's elements with a shared value are proved equal after each loop nest that writes them. The
/// nest must access the tensor by stores with the same indices alone. (Elements of other tensors that share a value are
/// assumed to be equal.)
pub(super) fn are(func: &Func, tensor: &Tensor) -> bool {
    let all = sites(func, &tensor.symbol);
    let mut declared: FxHashMap<Symbol, Arc<Tensor>> =
        func.interface().map(|t| (t.symbol.clone(), t.clone())).collect();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            declared.insert(tensor.symbol.clone(), tensor.clone());
        }
    });
    all.iter().filter(|s| s.how != AccessKind::Reads).all(|site| {
        let Some(loops) = loops_over_values(tensor, site) else { return false };
        let nest = &site.path[loops[0]];
        let others = all.iter().filter(|s| s.is_in(nest));
        let mut stores = others.map(|s| s.how == AccessKind::Stores && s.indices == site.indices);
        stores.all(|one| one) && Alike::new(tensor, site, &loops, &declared).site(site, loops[0])
    })
}

/// Checker of the expressions that are equal for all elements of one value in a loop nest.
struct Alike<'a> {
    tensor: &'a Tensor,
    indices: &'a [Access],
    /// Iterators that distinguish the elements.
    iters: Vec<Symbol>,
    /// Tensors that the nest writes.
    written: FxHashSet<Symbol>,
    /// Innermost loop with one of these iterators.
    inner: &'a Stmt,
    declared: &'a FxHashMap<Symbol, Arc<Tensor>>,
    /// Local tensors of the innermost loop that were visited. (The first failure ends the search, so no result is
    /// kept.)
    seen: RefCell<FxHashSet<Symbol>>,
}

impl<'a> Alike<'a> {
    fn new(
        tensor: &'a Tensor,
        site: &'a Site,
        loops: &[usize],
        declared: &'a FxHashMap<Symbol, Arc<Tensor>>,
    ) -> Alike<'a> {
        let iter = |k: &usize| match site.path[*k].kind() {
            StmtKind::For { iter, .. } => Some(iter.clone()),
            _ => None,
        };
        Alike {
            tensor,
            indices: &site.indices,
            iters: loops.iter().filter_map(iter).collect(),
            written: effects::writes(&site.path[loops[0]]),
            inner: &site.path[loops[loops.len() - 1]],
            declared,
            seen: RefCell::default(),
        }
    }

    /// Returns whether a write executes equally for all elements, in the part of its path from position `from` on, and
    /// stores the same value.
    fn site(&self, site: &Site, from: usize) -> bool {
        let apart = |d: usize| matches!(site.indices[d].index.kind(), ExprKind::Var(v) if self.iters.contains(v));
        let rest = (0..site.indices.len()).filter(|d| !apart(*d)).map(|d| &site.indices[d].index);
        let value = match site.stmt().kind() {
            StmtKind::Store { value, .. } => self.expr(value),
            _ => false,
        };
        value && rest.into_iter().all(|e| self.expr(e)) && self.way(&site.path[from..])
    }

    /// Returns whether the loops and branches on a path are entered equally for all elements.
    fn way(&self, path: &[Stmt]) -> bool {
        path.iter().all(|s| match s.kind() {
            StmtKind::For { iter, .. } if self.iters.contains(iter) => true,
            StmtKind::For { extent: Extent::Range { begin, end, step }, .. } => {
                [begin, end, step].into_iter().all(|e| self.expr(e))
            }
            StmtKind::If { cond, .. } => self.expr(cond),
            StmtKind::For { .. } | StmtKind::While { .. } => false,
            _ => true,
        })
    }

    fn expr(&self, e: &Expr) -> bool {
        match e.kind() {
            ExprKind::Const(_) => true,
            ExprKind::Var(v) => !self.iters.contains(v),
            ExprKind::Load(t, at) if self.written.contains(t) => self.own(t) && at.iter().all(|a| self.expr(&a.index)),
            ExprKind::Load(t, at) => self.is_element(t, at) || at.iter().all(|a| self.expr(&a.index)),
            ExprKind::Apply(..) | ExprKind::Cast(_) => e.children().into_iter().all(|e| self.expr(e)),
            ExprKind::Measure(..) => false,
        }
    }

    /// Returns whether an access is to the written element's indices, in a tensor over the same pattern.
    fn is_element(&self, t: &Symbol, at: &[Access]) -> bool {
        let same = |t: &Arc<Tensor>| is_shared(&t.format) && t.format.pattern == self.tensor.format.pattern;
        let indices = |all: &[Access]| all.iter().map(|a| a.index.clone()).collect::<Vec<_>>();
        self.declared.get(t).is_some_and(same) && indices(at) == indices(self.indices)
    }

    /// Returns whether a tensor that is declared inside of the innermost loop gets equal values in all iterations.
    fn own(&self, t: &Symbol) -> bool {
        if !self.seen.borrow_mut().insert(t.clone()) {
            return true;
        }
        let mut scope = None;
        self.inner.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, body } = s.kind()
                && tensor.symbol == *t
            {
                scope = Some(body.clone());
            }
        });
        scope.is_some_and(|body| self.writes(&body, t, &mut Vec::new()))
    }

    fn writes(&self, s: &Stmt, t: &Symbol, path: &mut Vec<Stmt>) -> bool {
        path.push(s.clone());
        let own = match s.kind() {
            StmtKind::Store { tensor, indices, value } | StmtKind::ReduceTo { tensor, indices, value, .. }
                if tensor == t =>
            {
                self.expr(value) && indices.iter().all(|a| self.expr(&a.index)) && self.way(path)
            }
            _ => true,
        };
        let all = own && s.kind().children().into_iter().all(|s| self.writes(s, t, path));
        path.pop();
        all
    }
}
