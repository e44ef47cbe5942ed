//! Loops that traverse structured tensors. They are lowered to loops over the stored elements of these tensors.
//! Legality of a step is decided on the logical program, as everywhere; this module checks that the result can be
//! lowered. A schedule without a lowering callback ([`crate::schedule::Schedule::lowered_by`]) takes only the steps
//! that make no new loops: threads, vector instructions, and another nesting order.

use crate::refusal::Refusal;
use crate::selector;
use crate::tree;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::{Access, Diagnostic, Expr, ExprKind, Func, Op, Stmt, StmtKind, Symbol, Tensor, print};

/// Primitives that loops over structured tensors take without a lowering callback.
const TAKEN: [&str; 3] = ["parallelize", "vectorize", "reorder"];

/// Primitives that may make a local tensor structured, or give it another format.
const STORES: [&str; 3] = ["cache", "cache_reduction", "set_format"];

/// Cost of finding stored elements of structured tensors in the lowered loops, as rules of automatic scheduling compare
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Traversal {
    /// Loops that visit every coordinate, although the traversed tensor does not store every one.
    pub scans: usize,
    /// Loops that search for a coordinate or merge lists. Each counts eightfold for every loop around it.
    pub seeks: usize,
    /// Levels stored outside of another level, but determined by a loop inside of that level's loop.
    pub order_violations: usize,
}

/// Callback that lowers a program with structured tensors, or says why it cannot be lowered. (Lowering belongs to
/// another crate.)
pub type Lowers = fn(&Func) -> Result<Traversal, Diagnostic>;

/// Refuses a step after which the program cannot be lowered to loops over stored elements. Without a lowering callback,
/// refuses all primitives but [`TAKEN`] and [`STORES`] on such loops, and new formats of local tensors.
pub(crate) fn check(primitive: &str, before: &Func, after: &Func, lowers: Option<Lowers>) -> Result<(), Refusal> {
    if STORES.contains(&primitive)
        && let Some(local) = another_local(before, after)
    {
        return check_local(primitive, &local, [before, after], lowers);
    }
    let affected = affected(primitive, before, after);
    // Any step may hinder the lowering of a loop around its target.
    let asked = || searching(before).map(|(stmt, tensor)| AffectedLoop { stmt, tensor, effect: "changes it" });
    let affected = affected.or_else(|| lowers.and_then(|_| asked()));
    let Some(AffectedLoop { stmt: s, tensor, effect }) = affected else { return Ok(()) };
    let name = selector::called(before, &s);
    let refuse = |text: String, help: String| {
        Err(Refusal::unsupported(0, text).label(s.origin().span(), "this loop").help(help))
    };
    let Some(lowers) = lowers else {
        if TAKEN.contains(&primitive) || STORES.contains(&primitive) {
            return Ok(());
        }
        let text = format!("the loop `{name}` traverses the structured tensor `{tensor}`, and `{primitive}` {effect}");
        return refuse(text, format!("only {} and {} apply to such loops", TAKEN[..2].join(", "), TAKEN[2]));
    };
    let Err(why) = lowers(after) else { return Ok(()) };
    // A program that cannot be lowered before the step either is refused when it runs.
    if lowers(before).is_err() {
        return Ok(());
    }
    let text = format!("cannot lower loops over stored elements of `{tensor}` after `{primitive}`: {}", why.message);
    refuse(
        text,
        format!("keep the loop `{name}`, which accesses `{tensor}`, as it is, or store the tensor in another format"),
    )
}

/// Refuses a step after which `stored` would ask about another tensor than before: one that stores every element, or
/// none at all.
pub(crate) fn keeps_asked(before: &Func, after: &Func) -> Result<(), Refusal> {
    let own = asked_of_dense(after);
    if own.is_empty() {
        return Ok(());
    }
    let known = asked_of_dense(before);
    let tensor = |e: &Expr| match e.kind() {
        ExprKind::Load(t, _) => Some(t.clone()),
        _ => None,
    };
    let is_new = |e: &&Expr| tensor(e).is_none() || known.iter().all(|other| tensor(other) != tensor(e));
    match own.iter().find(is_new) {
        None => Ok(()),
        Some(of) => {
            let of = print::expr(of);
            let text = format!("`stored` would ask about `{of}`, which is not an element of a structured tensor");
            Err(Refusal::unsupported(0, text).help("leave out this step, or the call of `stored`"))
        }
    }
}

/// Collects the operands of `stored` that are not elements of a structured tensor.
fn asked_of_dense(func: &Func) -> Vec<Expr> {
    let (mut all, mut locals) = (Vec::new(), None);
    func.body.any_expr(&mut |e| {
        if let ExprKind::Apply(Op::Stored, args) = e.kind() {
            let locals = locals.get_or_insert_with(|| self::locals(func));
            let is = |t: &Symbol, other: &Tensor| other.symbol == *t && !other.format.is_dense();
            let is_structured = |t: &Symbol| func.interface().any(|o| is(t, o)) || locals.iter().any(|(_, o)| is(t, o));
            if !matches!(args[0].kind(), ExprKind::Load(t, _) if is_structured(t)) {
                all.push(args[0].clone());
            }
        }
        false
    });
    all
}

/// Finds a local tensor that is structured after a step, and was not declared so before, with its declaration.
fn another_local(before: &Func, after: &Func) -> Option<(Stmt, Arc<Tensor>)> {
    let [old, new] = [before, after].map(locals);
    new.into_iter().find(|(_, t)| old.iter().all(|(_, other)| other != t))
}

/// Refuses a step that makes a local tensor structured, if its accesses cannot be lowered. The loops may be the same as
/// before the step, and yet traverse other storage.
fn check_local(
    primitive: &str,
    (s, tensor): &(Stmt, Arc<Tensor>),
    [before, after]: [&Func; 2],
    lowers: Option<Lowers>,
) -> Result<(), Refusal> {
    let name = &tensor.symbol;
    let why = match lowers.map(|lowers| (lowers(after), lowers(before).is_err())) {
        Some((Ok(_), _) | (Err(_), true)) => return Ok(()),
        Some((Err(why), false)) => why.message,
        None => "the schedule has no lowering".to_string(),
    };
    let text = format!("cannot lower `{name}`, which `{primitive}` stores as {}: {why}", tensor.format);
    Err(Refusal::unsupported(0, text).label(s.origin().span(), "this tensor"))
}

/// Lists the structured tensors that a program declares.
fn locals(func: &Func) -> Vec<(Stmt, Arc<Tensor>)> {
    let mut out = Vec::new();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && !tensor.format.is_dense()
        {
            out.push((s.clone(), tensor.clone()));
        }
    });
    out
}

/// Loop over a structured tensor, or around an access to one, that a step affects.
struct AffectedLoop {
    stmt: Stmt,
    tensor: Symbol,
    /// Effect in a message: `would copy it`.
    effect: &'static str,
}

/// Finds a loop over a structured tensor, or around an access to one, that a step changes, copies, moves or marks.
fn affected(primitive: &str, before: &Func, after: &Func) -> Option<AffectedLoop> {
    let [old, new] = [before, after].map(traversals);
    if TAKEN.contains(&primitive) {
        // The nesting of loops, and the marks on them, decide how each one is traversed. Tensors that no loop traverses
        // are searched in loops.
        let first = old.into_iter().next().or_else(|| searching(before));
        return first.map(|(stmt, tensor)| AffectedLoop { stmt, tensor, effect: "marks or moves it" });
    }
    let changed = old.iter().find_map(|(s, tensor)| {
        let same = tree::find(&after.body, s.id()).is_some_and(|now| is_same_loop(s, &now));
        (!same).then(|| AffectedLoop { stmt: s.clone(), tensor: tensor.clone(), effect: "would replace it" })
    });
    let made = || {
        new.iter().find_map(|(s, tensor)| {
            let of = || old.iter().find(|(_, t)| t == tensor).map_or(s, |(of, _)| of);
            let copied = || AffectedLoop { stmt: of().clone(), tensor: tensor.clone(), effect: "would copy it" };
            tree::find(&before.body, s.id()).is_none().then(copied)
        })
    };
    changed.or_else(made)
}

/// Returns whether both loops run over the same range in the same way.
fn is_same_loop(a: &Stmt, b: &Stmt) -> bool {
    match (a.kind(), b.kind()) {
        (StmtKind::For { iter: i, extent: e, props: p, .. }, StmtKind::For { iter: j, extent: f, props: q, .. }) => {
            i == j && e == f && p.unroll == q.unroll && p.library == q.library
        }
        _ => false,
    }
}

/// Returns the structured tensor that a loop's iterator indexes, if there is one.
pub(crate) fn traversed(func: &Func, l: &Stmt) -> Option<Symbol> {
    traversals(func).into_iter().find(|(s, _)| s.id() == l.id()).map(|(_, tensor)| tensor)
}

/// Finds the first loop in which a structured tensor is accessed.
fn searching(func: &Func) -> Option<(Stmt, Symbol)> {
    let structured = structured(func);
    let mut found = None;
    func.body.walk(&mut |l| {
        if found.is_none() && !structured.is_empty() && matches!(l.kind(), StmtKind::For { .. }) {
            let written = effects::writes(l);
            let accessed = structured.iter().find(|t| written.contains(t) || effects::is_read(l, t));
            found = accessed.map(|t| (l.clone(), t.clone()));
        }
    });
    found
}

/// Lists the structured tensors of a program.
fn structured(func: &Func) -> Vec<Symbol> {
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
    structured
}

/// Lists the loops whose iterators index a structured tensor, outermost first, each with that tensor.
fn traversals(func: &Func) -> Vec<(Stmt, Symbol)> {
    let structured = structured(func);
    if structured.is_empty() {
        return Vec::new();
    }
    // Loops by iterator, which is unique to each loop.
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
