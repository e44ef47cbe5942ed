//! Loops whose iterations run in any order or at the same time: their legality, and the strategies that keep reductions
//! into shared elements correct.
//!
//! ```text
//! total += x[i]        every iteration, one element               partial results, combined at the end
//! y[j] += a[i, j]      an array, at indices that are affine       likewise, an array of them for each thread
//! y[k[i]] += v[i]      wherever an index tensor says              atomic updates
//! h[k[i]] += 1         likewise, into a small array (h: [256])    partial results again
//! ```

use crate::refusal::Refusal;
use crate::tree;
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Relation};
use taffeta_analysis::query::effects;
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_ast::{Expr, ExprKind, Reduction, Sharing, Stmt, StmtId, StmtKind, Symbol};

/// Maximum bytes of an array that is copied for every thread even if an index tensor determines the updated elements.
const SMALL_BYTES: i64 = 64 << 10;
/// Maximum bytes of an array that is copied for every thread. (For an array of unknown size the loop may run on fewer
/// threads, so that the copies stay within a limit.)
const LARGE_BYTES: i64 = 64 << 20;

/// Returns whether a loop is marked to run its iterations in any order.
pub(crate) fn is_marked(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::For { props, .. } if props.is_concurrent())
}

/// Finds a parallel loop inside a statement, other than the statement itself.
pub(crate) fn threads_inside(stmt: &Stmt) -> Option<Stmt> {
    let mut found = None;
    stmt.walk(&mut |s| {
        let parallel = matches!(s.kind(), StmtKind::For { props, .. } if props.parallel.is_some());
        if parallel && s.id() != stmt.id() {
            found.get_or_insert_with(|| s.clone());
        }
    });
    found
}

/// Replaces the list of shared reductions of a loop.
pub(crate) fn with_shared(stmt: &Stmt, shared: Vec<Reduction>) -> Stmt {
    let StmtKind::For { iter, extent, props, body } = stmt.kind() else { return stmt.clone() };
    if props.reductions == shared {
        return stmt.clone();
    }
    let mut props = props.clone();
    props.reductions = shared;
    stmt.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
}

/// Obstacle to running iterations in any order.
pub(crate) enum Obstacle {
    /// Dependence between two iterations.
    Dependence(Box<Dependence>),
    /// Reduction without a legal sharing strategy, and the reason.
    Reduction(Box<Dependence>, &'static str),
}

impl Obstacle {
    /// Converts the obstacle to a refusal.
    pub fn refusal(self, condition: u32, message: String) -> Refusal {
        match self {
            Obstacle::Dependence(d) => Refusal::dependence(condition, message, *d),
            Obstacle::Reduction(d, reason) => Refusal::dependence(condition, message, *d).note(reason),
        }
    }
}

/// Replaces the lists of shared reductions of these loops in a statement.
pub(crate) fn share(s: &Stmt, lists: &mut FxHashMap<StmtId, Vec<Reduction>>) -> Stmt {
    let inner = s.map(&mut |c| share(c, lists), &mut Expr::clone);
    match lists.remove(&s.id()) {
        Some(list) => with_shared(&inner, list),
        None => inner,
    }
}

/// Returns the ids of the statements on the path from the root to a statement, inclusive.
fn around(all: &Dependences<'_>, stmt: &Stmt) -> Vec<StmtId> {
    tree::path(&all.func().body, stmt.id()).unwrap_or_default().iter().map(Stmt::id).collect()
}

/// Builds the query for dependences that a loop carries: the references in its body, and the relations of the loops
/// around.
fn ask<'a>(
    stmt: &'a Stmt,
    around: &'a [StmtId],
) -> (impl Fn(&Reference) -> bool + Sync + 'a, impl Fn(&Stmt) -> Relation + Sync + 'a) {
    let id = stmt.id();
    let inside = move |r: &Reference| r.site.in_loop(id) && r.site.stmt.id() != id;
    let relate = move |s: &Stmt| match s.id() {
        s if s == id => Relation::Later,
        s if around.contains(&s) => Relation::Same,
        _ => Relation::Any,
    };
    (inside, relate)
}

/// Finds the first dependence that a loop carries: between different iterations of the loop, in one iteration of the
/// loops around it. Pairs of reductions by one operator are excluded, since they commute.
pub(crate) fn carried(all: &Dependences<'_>, stmt: &Stmt) -> Option<Dependence> {
    let around = around(all, stmt);
    let (inside, relate) = ask(stmt, &around);
    all.first(&DependenceQuery { source: &inside, sink: &inside, relate: &relate, ..DependenceQuery::default() })
}

/// Collects the reductions by which several iterations of a marked loop update one element, each with its sharing
/// strategy, or returns the obstacle to running the loop in any order. `all` covers the program that contains the loop.
pub(crate) fn shared(all: &Dependences<'_>, stmt: &Stmt) -> Result<Vec<Reduction>, Obstacle> {
    let StmtKind::For { props, .. } = stmt.kind() else { return Ok(Vec::new()) };
    if let Some(d) = carried(all, stmt) {
        return Err(Obstacle::Dependence(Box::new(d)));
    }
    let around = around(all, stmt);
    let (inside, relate) = ask(stmt, &around);
    let reduces = |r: &Reference| inside(r) && matches!(r.kind, Use::Reduce(_));
    let met = all.distinct(&DependenceQuery {
        source: &reduces,
        sink: &reduces,
        relate: &relate,
        commute: false,
        ..DependenceQuery::default()
    });
    let variant = VaryingSymbols::of(stmt);
    let mut shared: Vec<Reduction> = Vec::new();
    for d in met {
        let Use::Reduce(op) = d.source.kind else { continue };
        let tensor = d.source.tensor.clone();
        let same = |r: &Reference| inside(r) && r.tensor == tensor && r.kind == Use::Reduce(op);
        if props.vectorize.is_some() && ![&d.source, &d.sink].iter().all(|r| variant.is_fixed(r)) {
            let reason = "vector lanes would update the element at the same time";
            return Err(Obstacle::Reduction(Box::new(d), reason));
        }
        if shared.iter().any(|r| r.tensor == tensor && r.op == op) {
            continue;
        }
        let sites: Vec<&Reference> = all.references().iter().filter(|r| same(r)).collect();
        // A partial result hides the update from the rest of its iteration.
        let hidden = |r: &Reference| same(r) && (props.parallel.is_some() || variant.is_fixed(r));
        let other = |r: &Reference| inside(r) && r.tensor == tensor && r.kind != Use::Reduce(op);
        let together = |s: &Stmt| if s.id() == stmt.id() { Relation::Same } else { relate(s) };
        let seen = all.meeting(&hidden, &other, &together);
        let sharing = match seen {
            Some(d) if props.vectorize.is_some() => {
                let reason =
                    "the same iteration also uses the element, and would miss an update held in a partial result";
                return Err(Obstacle::Reduction(Box::new(d), reason));
            }
            Some(_) => Sharing::Atomic,
            None if props.vectorize.is_some() && has_read_shape(&d.source) => {
                let reason =
                    "the shape of the reduced tensor reads data that may change before partial results are allocated";
                return Err(Obstacle::Reduction(Box::new(d), reason));
            }
            None if props.vectorize.is_some() => Sharing::Partial,
            None => variant.sharing(&sites),
        };
        if sharing == Sharing::Atomic && sites.iter().any(|r| in_vector_loop(r)) {
            let reason = "the update would be atomic inside a vectorised loop";
            return Err(Obstacle::Reduction(Box::new(d), reason));
        }
        shared.push(Reduction { tensor, op, sharing });
    }
    Ok(shared)
}

/// Returns whether the shape of the referenced tensor reads data, which may have changed where partial results, of the
/// same shape, are allocated.
fn has_read_shape(r: &Reference) -> bool {
    r.declared.shape.iter().any(|d| !effects::loads(d).is_empty())
}

fn in_vector_loop(r: &Reference) -> bool {
    r.site.loops().any(|(l, _)| matches!(l.kind(), StmtKind::For { props, .. } if props.vectorize.is_some()))
}

/// Symbols whose values change in a loop: tensors written in it, and iterators of the loop and of loops inside.
pub(crate) struct VaryingSymbols(FxHashSet<Symbol>);

impl VaryingSymbols {
    pub fn of(stmt: &Stmt) -> VaryingSymbols {
        let mut symbols = effects::writes(stmt);
        stmt.walk(&mut |s| {
            if let StmtKind::For { iter, .. } = s.kind() {
                symbols.insert(iter.clone());
            }
        });
        VaryingSymbols(symbols)
    }

    /// Returns whether an expression may change its value between iterations, or within one.
    pub fn changes(&self, e: &Expr) -> bool {
        e.any(&mut |e| match e.kind() {
            ExprKind::Var(s) | ExprKind::Load(s, _) | ExprKind::Measure(_, s) => self.0.contains(s),
            _ => false,
        })
    }

    /// Returns whether the reference touches the same element in all iterations.
    fn is_fixed(&self, r: &Reference) -> bool {
        r.indices.as_ref().is_some_and(|i| !i.iter().any(|e| self.changes(e)))
    }

    /// Chooses the sharing strategy for the reductions into one tensor by one operator, on several threads.
    fn sharing(&self, sites: &[&Reference]) -> Sharing {
        let reads = |e: &Expr| !effects::loads(e).is_empty();
        let Some(tensor) = sites.first().map(|r| &r.declared) else { return Sharing::Atomic };
        if sites.iter().any(|r| has_read_shape(r)) {
            return Sharing::Atomic;
        }
        if sites.iter().all(|r| self.is_fixed(r)) {
            return Sharing::Partial;
        }
        let anywhere =
            sites.iter().any(|r| r.indices.as_ref().is_none_or(|i| i.iter().any(|e| reads(e) && self.changes(e))));
        let elements = tensor.shape.iter().try_fold(1i64, |n, d| n.checked_mul(d.as_int()?));
        match elements.and_then(|n| n.checked_mul(tensor.dtype.size() as i64)) {
            Some(bytes) if bytes <= SMALL_BYTES => Sharing::Partial,
            Some(bytes) if bytes > LARGE_BYTES => Sharing::Atomic,
            _ if anywhere => Sharing::Atomic,
            _ => Sharing::Partial,
        }
    }
}
