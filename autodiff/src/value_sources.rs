//! Sources of forward values in the backward pass: the tensor itself, a tape, or recomputation (FreeTensor, section
//! 5.2).
//!
//! Every tensor has a **scope**: the recompute scope whose forward run produces the values that its backward run needs.
//! For most tensors that is the program. A tensor declared inside a loop may have the loop's body as its scope instead:
//! that part of the body is then recomputed right before the backward pass of the same iteration.
//!
//! Within its scope a value is
//! - **kept** if nothing overwrites it during the lifetime of its tensor: the tensor itself stays alive, with one more
//!   dimension for every loop between the scope and its declaration (`t` becomes `t.tape[i]`, the symbolic version
//!   number of the paper);
//! - a **snapshot** otherwise: a copy of the whole tensor before a loop that does not write the element before the
//!   read, or of the one element before the statement, with a dimension for every loop between the scope and the copy.

use crate::data::{Choice, Inverted, Kept, RecomputeScope, Saved, Snapshot, ValueSource};
use crate::extent;
use crate::facts::{AccessedValue, Facts};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Diagnostic, Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Residuals recorded so far, with the memos that share them between reads.
pub(crate) struct Values {
    /// Scopes of tensors declared in loops; the scope of all others is the program.
    pub scopes: FxHashMap<Symbol, Choice>,
    /// Tensors whose old values are recovered by inversion.
    pub inverted: FxHashMap<Symbol, Inverted>,
    /// Inverted tensors that the backward pass reads.
    pub used: FxHashSet<Symbol>,
    pub kept: Vec<(Symbol, RecomputeScope, Kept)>,
    pub snapshots: Vec<Snapshot>,
    /// Snapshot of each value that has one, by its index in `snapshots`.
    known: FxHashMap<(StmtId, AccessedValue), usize>,
    /// Snapshot of each whole tensor before a statement, by its index in `snapshots`.
    whole: FxHashMap<(StmtId, Symbol), usize>,
    /// Index of each tensor in `kept`.
    alive: FxHashMap<Symbol, usize>,
}

impl Values {
    pub fn new(facts: &Facts<'_>, scopes: FxHashMap<Symbol, Choice>, inverted: FxHashMap<Symbol, Inverted>) -> Values {
        let (snapshots, used) = (Vec::new(), FxHashSet::default());
        // An inverted tensor stays alive for the inversion itself, or to initialise the copy that is inverted.
        let alive = |t: &Symbol| Kept { tensor: facts.declared[t].tensor.clone(), loops: Vec::new() };
        let mut kept: Vec<_> = inverted.keys().map(|t| (t.clone(), RecomputeScope::Program, alive(t))).collect();
        kept.sort_by_key(|(t, ..): &(Symbol, RecomputeScope, Kept)| t.name().to_string());
        let alive = kept.iter().enumerate().map(|(k, (t, ..))| (t.clone(), k)).collect();
        let (known, whole) = (FxHashMap::default(), FxHashMap::default());
        Values { scopes, inverted, used, kept, snapshots, known, whole, alive }
    }

    pub fn scope_of(&self, tensor: &Symbol) -> RecomputeScope {
        self.scopes.get(tensor).map_or(RecomputeScope::Program, |c| c.scope)
    }

    /// Returns the source of a statement's value during the backward pass of that statement.
    pub fn find(&mut self, facts: &Facts<'_>, stmt: StmtId, what: &AccessedValue) -> Result<ValueSource, Diagnostic> {
        let tensor = facts.tensor_of(stmt, what);
        if !facts.overwritten(stmt, what) {
            return self.keep(facts, &tensor).map(ValueSource::Kept).ok_or_else(|| unbounded(facts, stmt, &tensor));
        }
        if let Some(inverted) = self.inverted.get(&tensor) {
            self.used.insert(tensor);
            return Ok(ValueSource::Kept(Kept { tensor: inverted.now.clone(), loops: Vec::new() }));
        }
        if let Some(k) = self.known.get(&(stmt, what.clone())) {
            return Ok(ValueSource::Snapshot(self.snapshots[*k].clone()));
        }
        let k = self.snapshot(facts, stmt, what, &tensor).ok_or_else(|| unbounded(facts, stmt, &tensor))?;
        self.known.insert((stmt, what.clone()), k);
        Ok(ValueSource::Snapshot(self.snapshots[k].clone()))
    }

    /// Keeps a tensor alive; returns `None` if the sizes do not bound the number of its versions.
    fn keep(&mut self, facts: &Facts<'_>, tensor: &Symbol) -> Option<Kept> {
        if let Some(k) = self.alive.get(tensor) {
            return Some(self.kept[*k].2.clone());
        }
        let scope = self.scope_of(tensor);
        let declared = &facts.declared[tensor];
        let kept = if scope == RecomputeScope::Program && declared.loops.is_empty() {
            Kept { tensor: declared.tensor.clone(), loops: Vec::new() }
        } else {
            let loops = inside(scope, &declared.loops).to_vec();
            let name = if loops.is_empty() { tensor.name().to_string() } else { format!("{tensor}.tape") };
            let own = own_shape(facts, tensor)?;
            Kept { tensor: tape(facts, &name, declared.tensor.dtype, &loops, own)?, loops }
        };
        self.alive.insert(tensor.clone(), self.kept.len());
        self.kept.push((tensor.clone(), scope, kept.clone()));
        Some(kept)
    }

    /// Records the smallest possible snapshot that holds the value.
    fn snapshot(&mut self, facts: &Facts<'_>, stmt: StmtId, what: &AccessedValue, tensor: &Symbol) -> Option<usize> {
        let scope = self.scope_of(tensor);
        let declared = &facts.declared[tensor];
        let loops = inside(scope, &facts.around[&stmt]);
        let first = inside(scope, &declared.loops).len();
        let mut best: Option<(f64, Snapshot)> = None;
        let mut offer = |snapshot: Option<Snapshot>| {
            let Some(s) = snapshot else { return };
            let size = s.tensor.shape.iter().map(weight).product::<f64>();
            if best.as_ref().is_none_or(|(b, _)| size < *b) {
                best = Some((size, s));
            }
        };
        for depth in first..loops.len() {
            let anchor = loops[depth];
            if facts.written_before(stmt, what, anchor) {
                continue;
            }
            let shape = own_shape(facts, tensor);
            let made = shape
                .and_then(|own| tape(facts, &format!("{tensor}.tape"), declared.tensor.dtype, &loops[..depth], own));
            let loops = loops[..depth].to_vec();
            let saved = Saved::Whole(tensor.clone());
            offer(made.map(|tensor| Snapshot { tensor, loops, anchor, saved, scope }));
        }
        let element = element(facts, stmt, what);
        let made = tape(facts, &format!("{tensor}.tape"), element.dtype(), loops, Vec::new());
        let (loops, saved) = (loops.to_vec(), Saved::Value(element));
        offer(made.map(|tensor| Snapshot { tensor, loops, anchor: stmt, saved, scope }));
        let (_, snapshot) = best?;
        let key = (snapshot.anchor, tensor.clone());
        let whole = matches!(snapshot.saved, Saved::Whole(_));
        if let Some(k) = self.whole.get(&key).filter(|_| whole) {
            return Some(*k);
        }
        self.snapshots.push(snapshot);
        if whole {
            self.whole.insert(key, self.snapshots.len() - 1);
        }
        Some(self.snapshots.len() - 1)
    }

    /// Records, for each element of a reduced tensor, the last iteration of the loops inside its scope that changed it:
    /// the last one of `stmt` in which `cond` held. Returns `None` if the tensor has another reduction, a size is not
    /// bounded, or there is no such loop.
    pub fn last_change(
        &mut self,
        facts: &Facts<'_>,
        stmt: StmtId,
        tensor: &Symbol,
        cond: &Expr,
    ) -> Option<Vec<Snapshot>> {
        let reduces = |s: &&Stmt| matches!(s.kind(), StmtKind::ReduceTo { .. });
        if facts.writers(tensor).filter(reduces).count() != 1 {
            return None;
        }
        let scope = self.scope_of(tensor);
        let declared = &facts.declared[tensor].loops;
        let loops = inside(scope, declared).to_vec();
        let own = own_shape(facts, tensor)?;
        let mut out = Vec::new();
        for l in &facts.around[&stmt][declared.len()..] {
            let name = format!("{tensor}.last");
            let tensor = tape(facts, &name, DType::I64, &loops, own.clone())?;
            let saved = Saved::Last { cond: cond.clone(), iteration: *l };
            out.push(Snapshot { tensor, loops: loops.clone(), anchor: stmt, saved, scope });
        }
        self.snapshots.extend(out.iter().cloned());
        // Without a loop there is no iteration to record.
        (!out.is_empty()).then_some(out)
    }

    /// Records whether a condition holds before a statement that writes `tensor`.
    pub fn condition(
        &mut self,
        facts: &Facts<'_>,
        stmt: StmtId,
        tensor: &Symbol,
        cond: &Expr,
    ) -> Result<Snapshot, Diagnostic> {
        let scope = self.scope_of(tensor);
        let loops = inside(scope, &facts.around[&stmt]).to_vec();
        let made = tape(facts, &format!("{tensor}.won"), DType::Bool, &loops, Vec::new());
        let tensor = made.ok_or_else(|| unbounded(facts, stmt, tensor))?;
        let snapshot = Snapshot { tensor, loops, anchor: stmt, saved: Saved::Value(cond.clone()), scope };
        self.snapshots.push(snapshot.clone());
        Ok(snapshot)
    }
}

/// Restricts a list of loops to those inside a scope.
pub(crate) fn inside(scope: RecomputeScope, loops: &[StmtId]) -> &[StmtId] {
    match scope {
        RecomputeScope::Program => loops,
        RecomputeScope::Body(l) => loops.iter().position(|x| *x == l).map_or(&[], |k| &loops[k + 1..]),
    }
}

/// Estimates a dimension, to compare the sizes of shapes.
fn weight(dim: &Expr) -> f64 {
    match dim.kind() {
        ExprKind::Const(_) => dim.as_int().map_or(1e3, |v| v as f64),
        ExprKind::Apply(taffeta_ast::Op::Min, args) => args.iter().map(weight).fold(f64::INFINITY, f64::min),
        ExprKind::Apply(taffeta_ast::Op::Max, args) => args.iter().map(weight).fold(0.0, f64::max),
        _ => 1e3,
    }
}

/// Returns the element of a value, as a load.
fn element(facts: &Facts<'_>, stmt: StmtId, what: &AccessedValue) -> Expr {
    match (what, facts.stmts[&stmt].kind()) {
        (AccessedValue::Loaded(e), _) => e.clone(),
        (_, StmtKind::Store { tensor, indices, value } | StmtKind::ReduceTo { tensor, indices, value, .. }) => {
            Expr::load(tensor, indices.clone(), value.dtype())
        }
        _ => unreachable!("only stores and reductions have a target"),
    }
}

/// Returns the shape of a tensor's largest instance, over sizes alone.
fn own_shape(facts: &Facts<'_>, tensor: &Symbol) -> Option<Vec<Expr>> {
    let declared = &facts.declared[tensor];
    let ranges = facts.ranges(&declared.loops);
    declared.tensor.shape.iter().map(|d| extent::bound(d, true, &ranges)).collect()
}

/// Builds a tensor with a dimension for every loop, followed by its own; returns `None` if a trip count is not bounded.
fn tape(facts: &Facts<'_>, name: &str, dtype: DType, loops: &[StmtId], own: Vec<Expr>) -> Option<Arc<Tensor>> {
    let mut shape: Vec<Expr> = Vec::new();
    for l in loops {
        shape.push(facts.loops[l].most.clone()?);
    }
    shape.extend(own);
    let zero = Expr::int(0);
    let shape = shape.into_iter().map(|d| if facts.holds(&zero.less_eq(&d)) { d } else { d.max_with(&zero) });
    Some(Arc::new(Tensor::dense(Symbol::new(name), dtype, shape.collect(), Role::Tape)))
}

fn unbounded(facts: &Facts<'_>, stmt: StmtId, tensor: &Symbol) -> Diagnostic {
    let place = facts.stmts[&stmt].origin().span();
    let d = Diagnostic::new(
        "grad::versions",
        format!(
            "the gradient needs the values of `{tensor}` here, which are overwritten later, and their number is not \
             known before the program runs"
        ),
    );
    let mut d =
        d.at(place).help("use `range` bounds of sizes and iterators, with an `if` inside the loop for the rest");
    for l in &facts.around[&stmt] {
        if facts.loops[l].most.is_none() {
            d = d.label(facts.stmts[l].origin().span(), "the bounds of this loop are read while the program runs");
        }
    }
    d
}
