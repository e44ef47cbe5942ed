//! Local tensors with a pattern of their own, into which elements are inserted
//! ([`taffeta_ast::format::Format::inserts`]).
//!
//! ```text
//! t[j] = v          →      if 0 < t.map[j]:
//!                              t.val[j] = v
//!                          else:
//!                              t.map[j] = 1
//!                              t.crd[t.n[0]] = j
//!                              t.n[0] += 1
//!                              t.val[j] = v
//! ```
//!
//! Writes do not drive loops: their accesses have the protocol `locate`, and one more index than reads, which is 1 if
//! the element is known not to be stored: in the loop nest that writes each element once, before any other use of the
//! tensor. Identity updates of such elements are dropped, so gathering from a list costs O(nnz).
//!
//! The arrays are as long as the dimension. They are declared and cleared once, around the loops that enclose the
//! declaration, as far as these run sequentially, and are empty again at its end: inserted elements are removed by
//! means of the list. (If the length is read from memory, or may stop the program, the arrays are declared and cleared
//! where the tensor is: elsewhere the length may differ, or be out of range. They stay inside of a condition on
//! variables of the length.)
//!
//! ```text
//! for i in range(n):              t.map = …                    of zeros
//!     t = …                 →     for i in range(n):
//!     …                               …
//!                                     for p in range(t.n[0]): t.map[t.crd[p]] = 0
//!                                     t.n[0] = 0
//! ```

use super::bounds_checks;
use super::cursor::{PATH, above};
use super::exprs::load;
use super::state::{Bindings, Lower};
use crate::access;
use crate::layout::TensorLevels;
use crate::level::TensorLevel;
use crate::level_assembly::{iterator_of, store_at};
use crate::levels::workspace::{COUNT, CRD, MAP};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::expr::Protocol;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Last index of a write whose element is known not to be stored, and of other writes.
const FRESH: i64 = 1;
const MAYBE_STORED: i64 = 0;

impl Lower {
    /// Registers a local tensor if elements are inserted into it, and returns whether they are.
    pub(super) fn workspace(&mut self, tensor: &Arc<Tensor>) -> bool {
        let Some(flat) = TensorLevels::workspace(tensor).filter(|_| tensor.role.is_local()) else { return false };
        self.declare(tensor, flat);
        true
    }

    fn inserts(&self, tensor: &Symbol) -> bool {
        self.tensors.get(tensor).is_some_and(|flat| flat.levels.last().is_some_and(|l| l.inserts))
    }

    /// Returns the tensor of a fibre, if writes insert into it: a workspace, or a tensor that the program makes.
    fn grown(&self, t: &Symbol) -> Option<&Symbol> {
        self.fibres.get(t).map(|(tensor, _)| tensor).filter(|tensor| self.inserts(tensor) || self.appends(tensor))
    }

    /// Returns whether an access is marked as an insertion: a write into a workspace, or to an element known not to be
    /// stored.
    pub(super) fn is_insertion(&self, e: &Expr) -> bool {
        self.insertion(e).is_some()
    }

    /// Returns whether an access is a write to an element known not to be stored.
    pub(super) fn is_fresh(&self, e: &Expr) -> bool {
        self.insertion(e) == Some(FRESH)
    }

    fn insertion(&self, e: &Expr) -> Option<i64> {
        let (t, at) = load(e)?;
        let (tensor, k) = self.fibres.get(t)?;
        let flat = &self.tensors[tensor];
        let own = if bounds_checks::carries(flat) { flat.tensor.shape.len() } else { 0 };
        let reads = PATH + flat.levels.len() - k + own;
        if at.len() > reads { at.last()?.index.as_int() } else { None }
    }

    /// Returns whether a fibre belongs to a workspace that a body writes or declares: before the body, neither its
    /// elements nor its shape are known.
    pub(super) fn grows(&self, fibre: &Symbol, written: &FxHashSet<Symbol>) -> bool {
        let Some(tensor) = self.grown(fibre) else { return false };
        self.tensors[tensor].fibres.iter().any(|f| written.contains(f)) || self.is_inner(fibre)
    }

    /// Returns whether a fibre belongs to a workspace that is declared further inside. (In a copy of a body, the
    /// declaration has another name until it is reached.)
    pub(super) fn is_inner(&self, fibre: &Symbol) -> bool {
        let declares =
            |s: &Stmt, t: &Symbol| matches!(s.kind(), StmtKind::VarDef { tensor, .. } if tensor.symbol == *t);
        self.grown(fibre).is_some_and(|tensor| {
            !self.made.contains(tensor) && !self.declared.iter().rev().any(|s| declares(s, tensor))
        })
    }

    /// Marks the writes to workspaces as insertions.
    pub(super) fn insertions(&self, s: &Stmt) -> Stmt {
        if !self.tensors.keys().any(|t| self.inserts(t) || self.appends(t)) {
            return s.clone();
        }
        let mut fresh = FxHashSet::default();
        for tensor in self.repeated.iter().filter(|t| self.made.contains(t)) {
            self.fresh(s, tensor, &mut fresh);
        }
        s.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, body } = s.kind()
                && (self.inserts(&tensor.symbol) || self.repeated.contains(&tensor.symbol))
            {
                self.fresh(body, &tensor.symbol, &mut fresh);
            }
        });
        self.with_insertions(s, &fresh)
    }

    fn with_insertions(&self, s: &Stmt, fresh: &FxHashSet<StmtId>) -> Stmt {
        let inner = s.map(&mut |s| self.with_insertions(s, fresh), &mut Expr::clone);
        let Some(element) = access::target(&inner) else { return inner };
        let Some((t, at)) = load(&element).filter(|(t, _)| self.grown(t).is_some()) else { return inner };
        // Appended elements are not stored before, unless writes may come to them several times (`crate::assemble`).
        let tensor = &self.fibres[t].0;
        let is_fresh = fresh.contains(&s.id())
            || self.once.contains(tensor)
            || self.appends(tensor) && !self.repeated.contains(tensor);
        let last = Expr::int(if is_fresh { FRESH } else { MAYBE_STORED });
        let all = at.iter().cloned().chain([Access::from(last)]).collect();
        access::with_target(&inner, &with_locate(&Expr::load(t, all, element.dtype()), at.len()))
    }

    fn uses(&self, s: &Stmt, tensor: &Symbol) -> bool {
        let mut found = false;
        let is = |t: &Symbol| self.fibres.get(t).is_some_and(|(of, _)| of == tensor) || t == tensor;
        s.walk(&mut |s| {
            access::exprs(s).iter().for_each(|e| e.walk(&mut |e| found |= load(e).is_some_and(|(t, _)| is(t))));
            found |= s.kind().printed().into_iter().any(is);
        });
        found
    }

    /// Collects writes to elements that are not stored yet, of a tensor that is empty before this statement: stores of
    /// its fill, which have no effect, and the next write, if it reaches each element at most once. Returns whether the
    /// tensor is still empty after the statement.
    fn fresh(&self, s: &Stmt, tensor: &Symbol, found: &mut FxHashSet<StmtId>) -> bool {
        match s.kind() {
            _ if !self.uses(s, tensor) => true,
            StmtKind::Seq(all) => all.iter().all(|s| self.fresh(s, tensor, found)),
            StmtKind::VarDef { body, .. } => self.fresh(body, tensor, found),
            _ => {
                let fill = self.tensors[tensor].fill();
                let Some(store) = self.writes_once(s, tensor) else { return false };
                found.insert(store.id());
                matches!(store.kind(), StmtKind::Store { value, .. } if value.as_literal() == Some(fill))
            }
        }
    }

    /// Returns the store in a loop nest that is the only use of a tensor and reaches each element at most once.
    fn writes_once(&self, s: &Stmt, tensor: &Symbol) -> Option<Stmt> {
        let (mut loops, mut inner) = (Vec::new(), s.clone());
        loop {
            let next = match inner.kind() {
                StmtKind::For { iter, body, .. } => {
                    loops.push(iter.clone());
                    body.clone()
                }
                StmtKind::VarDef { body, .. } => body.clone(),
                StmtKind::If { cond, then, otherwise } if otherwise.is_none() && !self.reads(cond, tensor) => {
                    then.clone()
                }
                StmtKind::Seq(all) => {
                    let mut using = all.iter().filter(|s| self.uses(s, tensor));
                    let one = using.next()?;
                    if using.next().is_some() {
                        return None;
                    }
                    one.clone()
                }
                _ => break,
            };
            inner = next;
        }
        let StmtKind::Store { indices, value, .. } = inner.kind() else { return None };
        let depth = self.tensors[tensor].levels.len();
        let at = indices.get(PATH..PATH + depth)?;
        let mut unmatched = loops.clone();
        for a in at {
            match a.index.kind() {
                ExprKind::Var(iter) if unmatched.contains(iter) => unmatched.retain(|l| l != iter),
                _ if effects::mentions(&a.index, &loops.iter().collect::<Vec<_>>()) || self.reads(&a.index, tensor) => {
                    return None;
                }
                _ => {}
            }
        }
        (unmatched.is_empty() && !self.reads(value, tensor)).then(|| inner.clone())
    }

    fn reads(&self, e: &Expr, tensor: &Symbol) -> bool {
        e.any(&mut |e| load(e).is_some_and(|(t, _)| self.fibres.get(t).is_some_and(|(of, _)| of == tensor)))
    }

    /// Marks a write as one to an element that is not stored.
    pub(super) fn not_stored(&self, s: &Stmt, element: &Expr) -> Stmt {
        let Some((t, at)) = load(element) else { return s.clone() };
        let reads = if self.is_insertion(element) { at.len() - 1 } else { at.len() };
        let all = at[..reads].iter().cloned().chain([Access::from(Expr::int(FRESH))]);
        access::with_target(s, &with_locate(&Expr::load(t, all.collect(), element.dtype()), reads))
    }

    /// Lowers a write to an element that is not stored, without further lookups: an insertion into a workspace at known
    /// positions, or an error.
    pub(super) fn insert(&mut self, s: &Stmt, element: &Expr, bound: &Bindings) -> Stmt {
        match load(element).and_then(|(t, _)| self.grown(t)) {
            None => return self.stopped(s, element),
            Some(tensor) if self.appends(tensor) => return self.append(s, element, bound),
            Some(_) => {}
        }
        let mut all = self.range_checks(s, element, &Expr::bool(true), bound);
        let s = self.filled(s, []);
        let Some((t, at)) = load(element).filter(|_| !s.is_nop()) else { return Stmt::nop() };
        let flat = &self.tensors[&self.fibres[t].0];
        let Some(level) = flat.levels.last() else { return s };
        let (row, index) = (above(at).positions.first, &at[PATH].index);
        let begin = row.times(&level.size);
        let count = level.load(COUNT, &row);
        let place = begin.plus(index);
        let origin = || s.origin().derive("structured", "insert");
        let set = |array: usize, at: &Expr, value: Expr| store_at(&level.arrays[array], at, value, origin());
        all.push(Stmt::new(StmtKind::Assume { cond: count.less(&level.size) }, origin()));
        all.push(set(MAP, &place, Expr::int(1)));
        all.push(set(CRD, &begin.plus(&count), index.clone()));
        all.push(set(COUNT, &row, count.plus(&Expr::int(1))));
        let values = &flat.values;
        if matches!(s.kind(), StmtKind::ReduceTo { .. }) {
            all.push(store_at(values, &place, Expr::literal(flat.fill(), values.dtype), origin()));
        }
        let own = access::with_target(&s, &Expr::load(&values.symbol, vec![place.into()], values.dtype));
        all.push(self.stmt(&own, bound));
        Stmt::seq(all, origin())
    }

    /// Refuses concurrent loops that insert into a workspace declared around them.
    pub(super) fn refuse_insertions(&mut self, s: &Stmt, iter: &Symbol, props: &LoopProps, body: &Stmt) {
        if !props.is_concurrent() {
            return;
        }
        let (mut own, mut into) = (FxHashSet::default(), None);
        body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind() {
                own.insert(tensor.symbol.clone());
            }
            let written = access::target(s).and_then(|e| self.grown(load(&e)?.0).cloned());
            into = into.take().or(written.filter(|t| !own.contains(t)));
        });
        if let Some(tensor) = into {
            let text = format!(
                "the loop `{iter}` cannot be parallel or vectorised: it inserts into `{tensor}`, declared outside of it"
            );
            self.refuse_at(s.origin().span(), text);
        }
    }

    /// Adds the arrays of the workspaces to the program's statements.
    pub(super) fn with_workspaces(&self, func: &Func) -> Stmt {
        if !self.tensors.keys().any(|t| self.inserts(t)) {
            return func.body.clone();
        }
        let (mut open, mut facts) = (Vec::new(), Context::new(func));
        let body = facts.scoped(|facts| self.placed(&func.body, false, &mut open, facts));
        self.around(body, open, &mut facts)
    }

    /// Removes the declarations of workspaces whose arrays are to be declared around the statement, and collects these
    /// in `open`; `again`: the statement runs several times with the same arrays.
    fn placed(&self, s: &Stmt, again: bool, open: &mut Vec<Symbol>, facts: &mut Context) -> Stmt {
        let new = match s.kind() {
            StmtKind::VarDef { tensor, body } if self.inserts(&tensor.symbol) => {
                let shape = self.shape(&tensor.symbol);
                let stays = shape.iter().any(|e| e.may_fail() || !effects::loads(e).is_empty());
                let stays = stays || !are_natural(shape, facts);
                let body = facts.scoped(|facts| self.placed(body, again, open, facts));
                match stays {
                    true => self.declared_here(body, &tensor.symbol, &mut Expr::clone),
                    false => {
                        if !open.contains(&tensor.symbol) {
                            open.push(tensor.symbol.clone());
                        }
                        let clear = again.then(|| self.emptied(&tensor.symbol, s));
                        Stmt::seq([body].into_iter().chain(clear), s.origin().derive("structured", "clear"))
                    }
                }
            }
            StmtKind::VarDef { tensor, .. } => {
                let read = |t: &Symbol| self.shape(t).iter().any(|e| effects::loads(e).contains(&tensor.symbol));
                self.enclosed(s, again, open, facts, &read)
            }
            StmtKind::For { iter, props, .. } => {
                let concurrent = props.is_concurrent();
                let counted = |t: &Symbol| self.shape(t).iter().any(|e| effects::mentions(e, &[iter]));
                self.enclosed(s, !concurrent, open, facts, &|t| concurrent || counted(t))
            }
            StmtKind::While { .. } => self.enclosed(s, true, open, facts, &|_| false),
            // Facts that the condition implies about a shape are not known before it.
            StmtKind::If { cond, .. } => {
                let asked = variables(cond);
                let own = self.workspaces_in(s).into_iter().filter(|t| {
                    let shape = self.shape(t);
                    shape.iter().any(|e| variables(e).iter().any(|v| asked.contains(v))) || !are_natural(shape, facts)
                });
                let own: FxHashSet<Symbol> = own.collect();
                self.enclosed(s, again, open, facts, &|t| own.contains(t))
            }
            _ => walk::map(s, facts, &mut |s, facts| self.placed(s, again, open, facts)),
        };
        facts.after(s);
        new
    }

    /// Returns whether a loop's body declares workspaces whose arrays may be declared, and cleared, around the loop.
    pub(super) fn clears_once(&self, body: &Stmt, iter: &Symbol) -> bool {
        let fixed = |e: &Expr| !effects::mentions(e, &[iter]) && !e.may_fail() && effects::loads(e).is_empty();
        self.workspaces_in(body).iter().any(|t| self.shape(t).iter().all(fixed))
    }

    fn shape(&self, workspace: &Symbol) -> &[Expr] {
        &self.tensors[workspace].tensor.shape
    }

    /// Collects the workspaces that a statement declares.
    fn workspaces_in(&self, s: &Stmt) -> Vec<Symbol> {
        let mut found = Vec::new();
        s.walk(&mut |s| match s.kind() {
            StmtKind::VarDef { tensor, .. } if self.inserts(&tensor.symbol) => found.push(tensor.symbol.clone()),
            _ => {}
        });
        found
    }

    /// Places workspaces in a compound statement: the arrays of those for which `stays` holds are declared around its
    /// nested statements.
    fn enclosed(
        &self,
        s: &Stmt,
        again: bool,
        open: &mut Vec<Symbol>,
        facts: &mut Context,
        stays: &dyn Fn(&Symbol) -> bool,
    ) -> Stmt {
        let inside = &mut |inner: &Stmt, facts: &mut Context| {
            let mut found = Vec::new();
            let body = facts.scoped(|facts| self.placed(inner, again, &mut found, facts));
            let (own, rest): (Vec<Symbol>, Vec<Symbol>) = found.into_iter().partition(stays);
            for t in rest {
                if !open.contains(&t) {
                    open.push(t);
                }
            }
            self.around(body, own, facts)
        };
        walk::map(s, facts, inside)
    }

    /// Declares the arrays of these workspaces around a statement, initially empty. A size that is not known to be
    /// non-negative there is clamped to 0, since the loops around the original declaration may not run.
    fn around(&self, s: Stmt, workspaces: Vec<Symbol>, facts: &mut Context) -> Stmt {
        workspaces.into_iter().rev().fold(s, |s, t| match are_natural(self.shape(&t), facts) {
            true => self.declared_here(s, &t, &mut Expr::clone),
            false => self.declared_here(s, &t, &mut |length| length.max_with(&Expr::int(0))),
        })
    }

    fn declared_here(&self, s: Stmt, workspace: &Symbol, length: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
        let flat = &self.tensors[workspace];
        let Some(level) = flat.levels.last() else { return s };
        let origin = || s.origin().derive("structured", "workspace");
        let zero = |array: usize| {
            let (p, tensor) = (iterator_of(workspace, "at"), &level.arrays[array]);
            let body = store_at(tensor, &Expr::var(&p), Expr::int(0), origin());
            count_to(&p, &tensor.shape[0], body, origin())
        };
        let body = Stmt::seq([zero(COUNT), zero(MAP), s.clone()], origin());
        let all = level.arrays.iter().chain([&flat.values]);
        let declared = |body, tensor: &Arc<Tensor>| {
            let shape: Vec<Expr> = tensor.shape.iter().map(&mut *length).collect();
            let tensor = match shape == tensor.shape {
                true => tensor.clone(),
                false => Arc::new(Tensor { shape, ..(**tensor).clone() }),
            };
            Stmt::new(StmtKind::VarDef { tensor, body }, origin())
        };
        all.fold(body, declared)
    }

    /// Removes all elements from a workspace.
    fn emptied(&self, tensor: &Symbol, s: &Stmt) -> Stmt {
        let flat = &self.tensors[tensor];
        let Some(level) = flat.levels.last() else { return Stmt::nop() };
        let origin = || s.origin().derive("structured", "clear");
        let rows = flat.levels[..flat.levels.len() - 1].iter().fold(Expr::int(1), |n, l| n.times(&l.size));
        let row = (rows.as_int() != Some(1)).then(|| iterator_of(tensor, "row"));
        let at = row.as_ref().map_or(Expr::int(0), Expr::var);
        let one = self.emptied_row(tensor, level, &at, s);
        match row {
            Some(row) => count_to(&row, &rows, one, origin()),
            None => one,
        }
    }

    fn emptied_row(&self, tensor: &Symbol, level: &TensorLevel, row: &Expr, s: &Stmt) -> Stmt {
        let origin = || s.origin().derive("structured", "clear");
        let p = iterator_of(tensor, "p");
        let begin = row.times(&level.size);
        let place = begin.plus(&Expr::var(&p));
        let coordinate = level.load(CRD, &place);
        let inside = Expr::int(0).less_eq(&coordinate).and(&coordinate.less(&level.size));
        let out = store_at(&level.arrays[MAP], &begin.plus(&coordinate), Expr::int(0), origin());
        let count = level.load(COUNT, row);
        let body = Stmt::seq([Stmt::new(StmtKind::Assume { cond: inside }, origin()), out], origin());
        let assumption = Stmt::new(StmtKind::Assume { cond: count.less_eq(&level.size) }, origin());
        let all = count_to(&p, &count, body, origin());
        Stmt::seq([assumption, all, store_at(&level.arrays[COUNT], row, Expr::int(0), origin())], origin())
    }
}

/// Returns whether all sizes are proved not to be negative.
fn are_natural(shape: &[Expr], facts: &mut Context) -> bool {
    shape.iter().all(|size| facts.prove(&Expr::int(0).less_eq(size)))
}

/// Collects the sizes and iterators that an expression mentions.
fn variables(e: &Expr) -> FxHashSet<Symbol> {
    let mut found = FxHashSet::default();
    e.walk(&mut |e| {
        if let ExprKind::Var(v) = e.kind() {
            found.insert(v.clone());
        }
    });
    found
}

/// Gives the coordinates of an access, which are among its first `indices` indices, the protocol `locate`, so that no
/// loop traverses it.
fn with_locate(e: &Expr, indices: usize) -> Expr {
    let Some((t, at)) = load(e) else { return e.clone() };
    let one = |(k, a): (usize, &Access)| match (PATH..indices).contains(&k) {
        true => Access { protocol: Protocol::Locate, ..a.clone() },
        false => a.clone(),
    };
    Expr::load(t, at.iter().enumerate().map(one).collect(), e.dtype())
}

pub(super) fn count_to(iter: &Symbol, end: &Expr, body: Stmt, origin: Origin) -> Stmt {
    let extent = Extent::Range { begin: Expr::int(0), end: end.clone(), step: Expr::int(1) };
    Stmt::new(StmtKind::For { iter: iter.clone(), extent, props: LoopProps::default(), body }, origin)
}
