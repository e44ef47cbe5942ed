//! Two passes over the writes of a tensor, each to one element, where positions depend on all elements: the first pass
//! counts them or records their coordinates, the second one enters the elements ([`crate::lower`]'s `passes`).
//!
//! ```text
//! B: f64[m, n] @ csr                         for i in range(n):
//! for i in range(n):                             for j in range(m):
//!     for j in range(m):             →               B.counted[j, i] = A[i, j]        counts the elements of a row
//!         B[j, i] = A[i, j]                  for i in range(n):
//!                                                for j in range(m):
//!                                                    B.entered[j, i] = A[i, j]        at the next position of the row
//! ```
//!
//! The first pass has the loops and branches around the writes alone. They read nothing that is written beside them.

use super::collect::{declared, list, redirected};
use super::order::{self, Lists};
use super::workspace::replaced;
use super::writes::{items, order_of, scope};
use crate::levels;
use std::sync::Arc;
use taffeta_analysis::pass::copy;
use taffeta_ast::format::{Coord, LevelKind};
use taffeta_ast::{Expr, ExprKind, Func, Stmt, StmtKind, Symbol, Tensor};

/// Passes over the writes of a tensor.
#[derive(Clone)]
pub(crate) struct Passes {
    /// Tensor of the writes.
    pub(crate) tensor: Arc<Tensor>,
    /// Tensors to which the writes of the first and of the second pass go.
    pub(crate) written: [Arc<Tensor>; 2],
    /// Whether elements are entered at the next positions of their fibres.
    pub(crate) is_scattered: bool,
    /// Whether fibres are sorted at the end: elements come to them in no order.
    pub(crate) are_sorted: bool,
}

/// Runs the writes of a tensor twice; `None` if its format or its writes do not allow that.
pub(super) fn insert(func: &Func, tensor: &Arc<Tensor>, writes: &[Stmt], lists: Lists<'_>) -> Option<(Func, Passes)> {
    let is_scattered = is_scattered(tensor);
    let [above, below] = if is_scattered { fibres(tensor) } else { slots(tensor)? };
    let is_ordered = tensor.format.levels.last().is_none_or(|l| l.ordered);
    let ascends = !is_ordered || order::is_ascending(func, tensor, writes, [&above, &below], lists);
    if writes.is_empty() || !is_scattered && !ascends || !order::is_once(func, tensor, writes) {
        return None;
    }
    let written = ["counted", "entered"].map(|w| list(tensor, w));
    let passes = Passes { tensor: tensor.clone(), written, is_scattered, are_sorted: !ascends };
    let [counted, entered] = &passes.written;
    let all: Vec<Stmt> = items(scope(func, tensor)).into_iter().cloned().collect();
    let is_write = |s: &Stmt| s.writes_to(&tensor.symbol);
    let (first, last) = (all.iter().position(is_write)?, all.iter().rposition(is_write)?);
    let part = &all[first..=last];
    let counting = Counting { from: &tensor.symbol, to: &counted.symbol, part };
    let pass = part.iter().map(|s| counting.kept(s)).collect::<Option<Vec<Stmt>>>()?;
    let pass = copy::statement(&Stmt::seq(pass, part[0].origin().clone()), "assemble", "count");
    let body = redirected(&func.body, &tensor.symbol, &entered.symbol);
    // Redirection keeps the ids of blocks alone: the first part is found by its place.
    let place = items(scope(&func.with_body(body.clone()), tensor)).get(first).map(|s| (*s).clone())?;
    let both = Stmt::seq([pass, place.clone()], place.origin().clone());
    let body = replaced(&body, &place, &both);
    let body = passes.written.iter().fold(body, |body, list| declared(&body, tensor, list));
    Some((func.with_body(body), passes))
}

/// Returns whether the last level is a list below computed positions.
fn is_scattered(tensor: &Tensor) -> bool {
    let Some((last, above)) = tensor.format.levels.split_last() else { return false };
    tensor.format.order().is_some()
        && tensor.format.is_injective()
        && (last.kind == LevelKind::Compressed && last.unique)
        && above.iter().all(|l| levels::assembly(l.kind).is_computed())
}

/// Returns the dimensions above a list, and the dimension of the list.
fn fibres(tensor: &Tensor) -> [Vec<usize>; 2] {
    let mut above = order_of(tensor);
    let last = above.split_off(above.len().saturating_sub(1));
    [above, last]
}

/// Returns the dimensions by which a counter of the format numbers elements, and the others, in whose order it does;
/// none of the latter without a counter. `None` if positions depend on the order of elements in another way.
fn slots(tensor: &Tensor) -> Option<[Vec<usize>; 2]> {
    let format = &tensor.format;
    let is_sliced = |k: usize| format.levels[..k].iter().any(|l| l.kind == LevelKind::Sliced);
    let fits = |k: usize| {
        let (kind, assembly) = (format.levels[k].kind, levels::assembly(format.levels[k].kind));
        assembly.is_computed() || assembly.has_query() || kind == LevelKind::Singleton && is_sliced(k)
    };
    let is_queried = format.levels.iter().any(|l| levels::assembly(l.kind).has_query());
    if !is_queried || !format.is_injective() || !(0..format.levels.len()).all(fits) {
        return None;
    }
    let counters = format.coords.iter().filter_map(|c| match c {
        Coord::Counter(of) => Some(of.iter().flat_map(Coord::dims).collect::<Vec<usize>>()),
        _ => None,
    });
    let all: Vec<Vec<usize>> = counters.collect();
    match &all[..] {
        [] => Some([Vec::new(), Vec::new()]),
        [above] => Some([above.clone(), (0..tensor.shape.len()).filter(|d| !above.contains(d)).collect()]),
        _ => None,
    }
}

/// Pass that counts.
struct Counting<'a> {
    from: &'a Symbol,
    to: &'a Symbol,
    /// Statements that are run twice.
    part: &'a [Stmt],
}

impl Counting<'_> {
    /// Returns the writes in a statement, with the loops and branches around them; `None` if these depend on anything
    /// that is written beside them.
    fn kept(&self, s: &Stmt) -> Option<Stmt> {
        if !s.writes_to(self.from) {
            return Some(Stmt::nop());
        }
        if !s.kind().exprs().into_iter().all(|e| self.is_constant(e)) {
            return None;
        }
        let kept = match s.kind() {
            StmtKind::Store { .. } | StmtKind::ReduceTo { .. } => redirected(s, self.from, self.to),
            StmtKind::Seq(all) => {
                let all = all.iter().map(|s| self.kept(s)).collect::<Option<Vec<Stmt>>>()?;
                Stmt::seq(all.into_iter().filter(|s| !s.is_nop()), s.origin().clone())
            }
            StmtKind::VarDef { body, .. } => self.kept(body)?,
            StmtKind::For { iter, extent, props, body } => {
                let (iter, extent, props) = (iter.clone(), extent.clone(), props.clone());
                s.with_kind(StmtKind::For { iter, extent, props, body: self.kept(body)? })
            }
            StmtKind::If { cond, then, otherwise } => {
                let otherwise = match otherwise {
                    Some(s) => Some(self.kept(s)?).filter(|s| !s.is_nop()),
                    None => None,
                };
                s.with_kind(StmtKind::If { cond: cond.clone(), then: self.kept(then)?, otherwise })
            }
            _ => return None,
        };
        Some(kept)
    }

    fn is_constant(&self, e: &Expr) -> bool {
        !e.any(&mut |e| match e.kind() {
            ExprKind::Load(t, _) => self.part.iter().any(|s| s.writes_to(t)),
            _ => false,
        })
    }
}
