//! Assembly of sparse tensors that a program makes: results and local tensors with a pattern of their own. The stored
//! elements and their order follow from the writes, which are lowered by the first row that applies:
//!
//! | facts of the writes | lowering |
//! |---|---|
//! | each element once, in the order of the levels that are lists | every write adds an element (`lower::append`) |
//! | below the last level several times, or in any order | a workspace for the last level, then the above |
//! | once, and positions follow from counts of the elements | the writes twice: counting, then entering (`passes`) |
//! | any other, and levels whose positions depend on all elements | a list of all writes, which is sorted |
//!
//! ```text
//! C: f64[n, m] @ csr                         t: f64[m] @ bytemap
//! for i in range(n):                         for i in range(n):
//!     for k in range(p):                         for k in range(p):
//!         for j in range(m):            →            for j in range(m):
//!             C[i, j] += A[i, k] * B[k, j]               t[j] += A[i, k] * B[k, j]
//!                                                for j in range(m):
//!                                                    C[i, j] = t[j]
//! ```
//!
//! Elements that are read between writes are read from the workspace, where they are of the fibre that it holds; other
//! reads between writes are refused (`storage::assembly`).

mod collect;
mod order;
mod passes;
mod workspace;
mod writes;

use crate::explain::{Assembly, Strategy};
use crate::levels;
pub(crate) use collect::Collected;
use order::{Demands, Disorder, Lists};
pub(crate) use passes::Passes;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_ast::algebra::leaves_fill;
use taffeta_ast::stmt::LoopProps;
use taffeta_ast::{
    DType, Diagnostic, Diagnostics, Expr, ExprKind, Extent, Func, Literal, Op, Origin, Span, Stmt, StmtId, StmtKind,
    Symbol, Tensor,
};
use writes::{items, order_of, reads, scope, writes};

/// Program whose writes into assembled tensors append, each element once and in order.
#[derive(Clone)]
pub(crate) struct Assembled {
    /// Program.
    pub(crate) func: Func,
    /// Assembled tensors, each with the statement after which it is complete.
    pub(crate) tensors: Vec<(Arc<Tensor>, Option<StmtId>)>,
    /// Workspaces whose elements are copied in the order of their coordinates, each with its tensor and the dimension.
    pub(crate) workspaces: Vec<(Symbol, Symbol, usize)>,
    /// Lists of writes.
    pub(crate) collected: Vec<Collected>,
    /// Tensors whose writes are run twice.
    pub(crate) passes: Vec<Passes>,
    /// Tensors that are written rightly whichever order loops over lists without order have.
    pub(crate) any_order: FxHashSet<Symbol>,
    /// Tensors to whose elements writes may come several times: their positions are computed.
    pub(crate) repeated: FxHashSet<Symbol>,
    /// Workspaces to each of whose elements a write comes at most once.
    pub(crate) once: FxHashSet<Symbol>,
    /// Warnings about tensors whose writes are sorted.
    pub(crate) warnings: Vec<Diagnostic>,
    /// Record of each tensor.
    pub(crate) explained: Vec<Assembly>,
}

/// Prepares the tensors that a program assembles.
///
/// # Errors
///
/// Writes by different operators in another order than that of the levels, and reads between writes.
pub(crate) fn run(func: &Func) -> Result<Assembled, Diagnostics> {
    let (tensors, workspaces, collected, passes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (warnings, explained) = (Vec::new(), Vec::new());
    let (any_order, repeated, once) = (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
    let func_of = func.clone();
    let mut out = Assembled {
        func: func_of,
        tensors,
        workspaces,
        collected,
        passes,
        any_order,
        repeated,
        once,
        warnings,
        explained,
    };
    let mut found = Vec::new();
    for tensor in assembled(func) {
        let writes = writes(scope(func, &tensor), &tensor.symbol);
        let span = writes.last().map_or(Span::NONE, |s| s.origin().span());
        let was = out.clone();
        let attempt = Attempt { span, are_followed: true };
        let prepared = one(&mut out, &tensor, attempt).or_else(|d| {
            out = was;
            one(&mut out, &tensor, Attempt { are_followed: false, ..attempt }).map_err(|_| d)
        });
        match prepared {
            Ok(strategy) => out.explained.push(Assembly {
                tensor: tensor.symbol.name().to_string(),
                span,
                levels: tensor.format.levels.to_vec(),
                strategy,
                bound: None,
            }),
            Err(d) => found.push(d),
        }
    }
    if found.is_empty() { Ok(out) } else { Err(Diagnostics(found)) }
}

/// Collects the assembled tensors of a program.
fn assembled(func: &Func) -> Vec<Arc<Tensor>> {
    let mut all: Vec<Arc<Tensor>> = func.results.iter().filter(|t| func.assembles(t)).cloned().collect();
    func.body.walk(&mut |s| match s.kind() {
        StmtKind::VarDef { tensor, .. } if func.assembles(tensor) => all.push(tensor.clone()),
        _ => {}
    });
    all
}

/// Attempt to prepare a tensor.
#[derive(Clone, Copy)]
struct Attempt {
    /// Location of the tensor's last write.
    span: Span,
    /// Whether loops may go through lists without order.
    are_followed: bool,
}

/// Prepares one tensor.
fn one(out: &mut Assembled, tensor: &Arc<Tensor>, attempt: Attempt) -> Result<Strategy, Diagnostic> {
    let Attempt { span, are_followed } = attempt;
    let mut func = without_fills(&out.func, tensor);
    let mut writes = writes::writes(scope(&func, tensor), &tensor.symbol);
    if writes.is_empty() && unordered(tensor).is_some() {
        func = with_no_iteration(&func, tensor);
        writes = writes::writes(scope(&func, tensor), &tensor.symbol);
    }
    let demands = demands(tensor, &writes);
    let sorted: Vec<Symbol> = out.workspaces.iter().map(|(workspace, _, _)| workspace.clone()).collect();
    let lists = Lists { sorted: &sorted, are_followed };
    if are_followed {
        out.any_order.insert(tensor.symbol.clone());
    }
    // A tensor whose positions are computed is read like a dense one. Elements of others may be read from a workspace.
    let read = match is_computed(tensor) {
        true => None,
        false => complete(scope(&func, tensor), [&tensor.symbol, &tensor.symbol]).err(),
    };
    if let Some(read) = read.as_ref().filter(|_| tensor.format.stores_regions()) {
        // A workspace has the written elements of a fibre, but not the region around them.
        return Err(read.clone());
    }
    let checked = match (unordered(tensor), &read) {
        (Some(disorder), _) => Err(disorder),
        (None, Some(_)) => Err(Disorder::Read),
        (None, None) => order::check(&func, tensor, &writes, (demands, lists)),
    };
    let (func, strategy, once) = match checked {
        Ok(()) if !demands.appends => {
            if !demands.once {
                out.repeated.insert(tensor.symbol.clone());
            }
            (func, Strategy::Store, demands.once)
        }
        Ok(()) => (func, Strategy::Append, demands.once),
        Err(disorder) => {
            let before = &func;
            if let Some((func, workspace)) = in_workspace(before, tensor, &writes, (disorder, lists)) {
                if matches!(disorder, Disorder::Backwards(_)) && order::is_once(before, tensor, &writes) {
                    out.once.insert(workspace.clone());
                }
                let last = order_of(tensor).into_iter().next_back().unwrap_or_default();
                out.workspaces.push((workspace, tensor.symbol.clone(), last));
                (func, Strategy::Workspace, true)
            } else if let Some(read) = read {
                return Err(read);
            } else if let Some((func, passes)) = passes::insert(&func, tensor, &writes, lists) {
                let written = passes.written.clone();
                let func = written.iter().fold(func, |func, list| func.with_body(stored(&func.body, list)));
                for list in written {
                    if are_followed {
                        out.any_order.insert(list.symbol.clone());
                    }
                    let complete = complete(scope(&func, &list), [&list.symbol, &tensor.symbol])?;
                    out.tensors.push((list, complete));
                }
                let strategy = match (passes.is_scattered, passes.are_sorted) {
                    (false, _) => Strategy::Insert,
                    (true, are_sorted) => Strategy::Scatter { are_sorted },
                };
                out.passes.push(passes);
                (func, strategy, true)
            } else {
                let (func, collected) = collect::insert(&func, tensor, &writes, disorder).map_err(|d| d.at(span))?;
                let list = collected.list.clone();
                let complete = complete(scope(&func, &list), [&list.symbol, &tensor.symbol])?;
                out.tensors.push((list, complete));
                out.collected.push(collected);
                let reason = collect::reason(tensor, disorder);
                // Another order of loops would change nothing for the others.
                if matches!(disorder, Disorder::Twice | Disorder::Backwards(_)) {
                    out.warnings.push(collect::warning(tensor, &reason).at(span));
                }
                (func, Strategy::Sort(reason), true)
            }
        }
    };
    out.func = if once { func.with_body(stored(&func.body, tensor)) } else { func };
    let complete = match is_computed(tensor) {
        true => items(scope(&out.func, tensor)).iter().rfind(|s| s.writes_to(&tensor.symbol)).map(|s| s.id()),
        false => complete(scope(&out.func, tensor), [&tensor.symbol, &tensor.symbol])?,
    };
    out.tensors.push((tensor.clone(), complete));
    Ok(strategy)
}

/// Returns whether the position of each element is computed from its indices, and holds its value alone.
fn is_computed(tensor: &Tensor) -> bool {
    tensor.format.is_injective() && tensor.format.levels.iter().all(|l| levels::assembly(l.kind).is_computed())
}

/// Returns the reason why elements cannot be added in the order of writes, whatever that is.
fn unordered(tensor: &Tensor) -> Option<Disorder> {
    let levels = &tensor.format.levels;
    let query = levels.iter().position(|l| levels::assembly(l.kind).has_query()).map(Disorder::Query);
    query.or(tensor.format.order().is_none().then_some(Disorder::Remapped))
}

/// Returns the demands of a tensor's levels on the order of its writes. The last level's list may have the order of the
/// program. A store may come to a computed position any number of times, and so may a reduction that does not leave the
/// fill as it is: elements that are not stored are the fill.
fn demands(tensor: &Tensor, writes: &[Stmt]) -> Demands {
    let all = &tensor.format.levels;
    let is_ordered = |k: usize| levels::assembly(all[k].kind).is_ordered();
    let ordered = (0..all.len()).rev().find(|k| is_ordered(*k));
    let levels =
        ordered.map_or(0, |k| if k + 1 == all.len() && tensor.format.is_listed_in_any_order() { k } else { k + 1 });
    let fill = tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype));
    let may_repeat = |s: &Stmt| match s.kind() {
        StmtKind::ReduceTo { op, .. } => !leaves_fill(op.info().op, tensor.dtype, fill, None),
        _ => true,
    };
    // A write whose operand is not stored comes to an element that is stored already. Where that is found by its list,
    // it must have no effect.
    let is_idle = |s: &Stmt| match s.kind() {
        StmtKind::ReduceTo { op, .. } => op.info().op == Op::Add || op.identity(tensor.dtype) == fill,
        _ => false,
    };
    let is_once = |s: &Stmt| !may_repeat(s) || ordered.is_some() && !is_idle(s);
    let once = !tensor.format.is_injective() || ordered == Some(all.len() - 1) || writes.iter().any(is_once);
    Demands { levels, appends: ordered.is_some(), once }
}

/// Gives a tensor whose fibres are written one after the other a workspace.
fn in_workspace(
    func: &Func,
    tensor: &Arc<Tensor>,
    all: &[Stmt],
    (disorder, lists): (Disorder, Lists<'_>),
) -> Option<(Func, Symbol)> {
    if matches!(disorder, Disorder::Remapped | Disorder::Query(_)) {
        return None;
    }
    let (func, workspace) = workspace::insert(func, tensor, all)?;
    let copies = writes(scope(&func, tensor), &tensor.symbol);
    let demands = Demands { once: true, ..demands(tensor, &copies) };
    let sorted: Vec<Symbol> = lists.sorted.iter().chain([&workspace]).cloned().collect();
    let lists = Lists { sorted: &sorted, ..lists };
    order::check(&func, tensor, &copies, (demands, lists)).ok().map(|()| (func, workspace))
}

/// Removes the stores of the fill that no write to the same element precedes: they have no effect.
fn without_fills(func: &Func, tensor: &Arc<Tensor>) -> Func {
    let fill = tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype));
    let is_fill = |s: &Stmt| match s.kind() {
        StmtKind::Store { value, .. } => value.as_literal().is_some_and(|v| v == fill || v.is_same(fill)),
        _ => false,
    };
    let all = writes(scope(func, tensor), &tensor.symbol);
    let (fills, others): (Vec<Stmt>, Vec<Stmt>) = all.into_iter().partition(|s| is_fill(s));
    let ids = |all: &[Stmt]| all.iter().map(Stmt::id).collect::<Vec<StmtId>>();
    let idle: Vec<StmtId> =
        fills.iter().map(Stmt::id).filter(|id| !order::follows(func, tensor, &ids(&others), *id)).collect();
    func.with_body(without(&func.body, &idle))
}

/// Adds a loop without iterations that writes a tensor to which nothing is written: the passes over its writes decide
/// the arrays of a tensor without elements.
fn with_no_iteration(func: &Func, tensor: &Arc<Tensor>) -> Func {
    let (origin, zero) = (Origin::none, Expr::int(0));
    let value = Expr::literal(tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype)), tensor.dtype);
    let indices = tensor.shape.iter().map(|_| zero.clone().into()).collect();
    let write = Stmt::new(StmtKind::Store { tensor: tensor.symbol.clone(), indices, value }, origin());
    let extent = Extent::Range { begin: zero.clone(), end: zero, step: Expr::int(1) };
    let iter = Symbol::new(format!("{}.none", tensor.symbol.name()));
    let all = Stmt::new(StmtKind::For { iter, extent, props: LoopProps::default(), body: write }, origin());
    let part = scope(func, tensor);
    let both = Stmt::seq([all, part.clone()], part.origin().clone());
    func.with_body(workspace::replaced(&func.body, part, &both))
}

/// Removes statements, and the loops and branches that do nothing without them.
fn without(s: &Stmt, ids: &[StmtId]) -> Stmt {
    if ids.contains(&s.id()) {
        return Stmt::nop();
    }
    if !ids.iter().any(|id| s.may_hold(*id)) {
        return s.clone();
    }
    let new = match s.kind() {
        StmtKind::Seq(all) => {
            Stmt::seq(all.iter().map(|s| without(s, ids)).filter(|s| !s.is_nop()), s.origin().clone())
        }
        _ => s.map(&mut |s| without(s, ids), &mut Expr::clone),
    };
    let idle = matches!(new.kind(), StmtKind::For { .. } | StmtKind::If { .. })
        && new.kind().inside().all(Stmt::is_nop)
        && !new.kind().exprs().into_iter().any(Expr::may_fail);
    if idle { Stmt::nop() } else { new }
}

/// Replaces reductions into a tensor, each the only write of its element, by stores; those that the fill annihilates
/// have no effect.
fn stored(s: &Stmt, tensor: &Tensor) -> Stmt {
    let inner = s.map(&mut |s| stored(s, tensor), &mut Expr::clone);
    match inner.kind() {
        StmtKind::ReduceTo { tensor: t, indices, op, value } if *t == tensor.symbol => {
            let (op, fill) = (op.info().op, tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype)));
            if leaves_fill(op, tensor.dtype, fill, None) {
                return Stmt::nop();
            }
            let value = reduced(op, fill, value, tensor.dtype);
            inner.with_kind(StmtKind::Store { tensor: t.clone(), indices: indices.clone(), value })
        }
        _ => inner,
    }
}

/// Builds the value of an element that is the fill before a reduction. A constant that leaves it is the fill, also where
/// a condition on indices chooses that constant.
fn reduced(op: Op, fill: Literal, value: &Expr, dtype: DType) -> Expr {
    match value.kind() {
        ExprKind::Const(v) if leaves_fill(op, dtype, fill, Some(*v)) => Expr::literal(fill, dtype),
        ExprKind::Apply(Op::Select, args) if args[0].is_of_indices() => {
            let [then, other] = [&args[1], &args[2]].map(|e| reduced(op, fill, e, dtype));
            Expr::apply(Op::Select, vec![args[0].clone(), then, other])
        }
        _ => Expr::apply(op, vec![Expr::literal(fill, dtype), value.clone()]),
    }
}

/// Returns the statement of a scope after which nothing writes `written`, if something does. No statement before it
/// reads `tensor`, to whose elements the writes belong.
fn complete(scope: &Stmt, [written, tensor]: [&Symbol; 2]) -> Result<Option<StmtId>, Diagnostic> {
    let items = items(scope);
    let Some(last) = items.iter().rposition(|s| s.writes_to(written)) else { return Ok(None) };
    let read = items[..=last].iter().find_map(|s| reads(s, tensor));
    match read {
        None => Ok(Some(items[last].id())),
        Some(span) => {
            let text = format!("`{tensor}` is read between writes to it, while it is assembled");
            let help = "read it after the last write, or compute in a dense tensor and copy that";
            Err(Diagnostic::new("storage::assembly", text).at(span).help(help))
        }
    }
}
