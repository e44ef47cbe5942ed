//! Assembly of sparse tensors that a program makes: results and local tensors with a pattern of their own. The stored
//! elements and their order follow from the writes, which are lowered by the first row that applies:
//!
//! | facts of the writes | lowering |
//! |---|---|
//! | each element once, in the order of the levels | every write appends an element (`lower::append`) |
//! | below the last level several times, or in any order | a workspace for the last level, then the above |
//! | any other | a list of all writes, which is sorted (`lower::collect`); its elements are appended |
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
//! Programs that read a tensor between its writes are refused (`storage::assembly`).

mod collect;
mod order;
mod workspace;
mod writes;

use crate::explain::{Assembly, Strategy};
pub(crate) use collect::Collected;
use std::sync::Arc;
use taffeta_ast::algebra::leaves_fill;
use taffeta_ast::format::LevelKind;
use taffeta_ast::{
    Diagnostic, Diagnostics, Expr, ExprKind, Func, Literal, Span, Stmt, StmtId, StmtKind, Symbol, Tensor,
};
use writes::{items, order_of, scope, writes};

/// Program whose writes into assembled tensors append, each element once and in order.
pub(crate) struct Assembled {
    /// Program.
    pub(crate) func: Func,
    /// Assembled tensors, each with the statement after which it is complete.
    pub(crate) tensors: Vec<(Arc<Tensor>, Option<StmtId>)>,
    /// Workspaces whose elements are copied in the order of their coordinates, each with its tensor and the dimension.
    pub(crate) workspaces: Vec<(Symbol, Symbol, usize)>,
    /// Lists of writes.
    pub(crate) collected: Vec<Collected>,
    /// Warnings about tensors whose writes are sorted.
    pub(crate) warnings: Vec<Diagnostic>,
    /// Record of each tensor.
    pub(crate) explained: Vec<Assembly>,
}

/// Prepares the tensors that a program assembles.
///
/// # Errors
///
/// Formats that cannot be assembled yet, writes in another order than that of the levels, and reads between writes.
pub(crate) fn run(func: &Func) -> Result<Assembled, Diagnostics> {
    let (tensors, workspaces, collected) = (Vec::new(), Vec::new(), Vec::new());
    let (warnings, explained) = (Vec::new(), Vec::new());
    let mut out = Assembled { func: func.clone(), tensors, workspaces, collected, warnings, explained };
    let mut found = Vec::new();
    for tensor in assembled(func) {
        let writes = writes(scope(func, &tensor), &tensor.symbol);
        let span = writes.last().map_or(Span::NONE, |s| s.origin().span());
        match one(&mut out, &tensor, span) {
            Ok(strategy) => out.explained.push(Assembly {
                tensor: tensor.symbol.name().to_string(),
                span,
                levels: tensor.format.levels.to_vec(),
                strategy,
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

/// Prepares one tensor.
fn one(out: &mut Assembled, tensor: &Arc<Tensor>, span: Span) -> Result<Strategy, Diagnostic> {
    appends(tensor).map_err(|d| d.at(span))?;
    let func = without_fills(&out.func, tensor);
    let writes = writes(scope(&func, tensor), &tensor.symbol);
    let (func, strategy) = match order::check(&func, tensor, &writes) {
        Ok(()) => (func, Strategy::Append),
        Err(disorder) => {
            match workspace::insert(&func, tensor, &writes).filter(|(func, _)| is_in_order(func, tensor)) {
                Some((func, workspace)) => {
                    let last = order_of(tensor).into_iter().next_back().unwrap_or_default();
                    out.workspaces.push((workspace, tensor.symbol.clone(), last));
                    (func, Strategy::Workspace)
                }
                None => {
                    let (func, collected) = collect::insert(&func, tensor, &writes).map_err(|d| d.at(span))?;
                    let list = collected.list.clone();
                    let complete = complete(scope(&func, &list), [&list.symbol, &tensor.symbol])?;
                    out.tensors.push((list, complete));
                    out.collected.push(collected);
                    let reason = collect::reason(tensor, disorder);
                    out.warnings.push(collect::warning(tensor, &reason).at(span));
                    (func, Strategy::Sort(reason))
                }
            }
        }
    };
    out.func = func.with_body(stored(&func.body, tensor));
    let complete = complete(scope(&out.func, tensor), [&tensor.symbol, &tensor.symbol])?;
    out.tensors.push((tensor.clone(), complete));
    Ok(strategy)
}

fn is_in_order(func: &Func, tensor: &Arc<Tensor>) -> bool {
    order::check(func, tensor, &writes(scope(func, tensor), &tensor.symbol)).is_ok()
}

/// Checks that all levels of a tensor's format can be appended to: dense ones above, lists below.
fn appends(tensor: &Tensor) -> Result<(), Diagnostic> {
    let lists = tensor.format.levels.iter().skip_while(|l| l.kind == LevelKind::Dense);
    let odd = lists.clone().find(|l| !matches!(l.kind, LevelKind::Compressed | LevelKind::Singleton) || !l.ordered);
    let text = match odd {
        Some(level) => format!("cannot assemble `{}` yet: elements cannot be appended to `{level}`", tensor.symbol),
        None if tensor.format.order().is_some() && lists.count() > 0 => return Ok(()),
        None => format!("cannot assemble `{}` yet in `{}`", tensor.symbol, tensor.format),
    };
    let help = "store it in `csr`, `dcsr`, `csf`, `coo` or another format of `dense` above `compressed` levels, or run \
                the program with `--backend interp`";
    Err(Diagnostic::new("storage::assembly", text).help(help))
}

/// Removes the stores of the fill that no write to the same element precedes: they have no effect.
fn without_fills(func: &Func, tensor: &Arc<Tensor>) -> Func {
    let fill = tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype));
    let is_fill = |s: &Stmt| matches!(s.kind(), StmtKind::Store { value, .. } if value.as_literal() == Some(fill));
    let all = writes(scope(func, tensor), &tensor.symbol);
    let (fills, others): (Vec<Stmt>, Vec<Stmt>) = all.into_iter().partition(|s| is_fill(s));
    let ids = |all: &[Stmt]| all.iter().map(Stmt::id).collect::<Vec<StmtId>>();
    let idle: Vec<StmtId> =
        fills.iter().map(Stmt::id).filter(|id| !order::follows(func, tensor, &ids(&others), *id)).collect();
    func.with_body(without(&func.body, &idle))
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
            let value = Expr::apply(op, vec![Expr::literal(fill, tensor.dtype), value.clone()]);
            inner.with_kind(StmtKind::Store { tensor: t.clone(), indices: indices.clone(), value })
        }
        _ => inner,
    }
}

/// Returns the statement of a scope after which nothing writes `written`, if something does. No statement before it
/// reads `tensor`, to whose elements the writes belong.
fn complete(scope: &Stmt, [written, tensor]: [&Symbol; 2]) -> Result<Option<StmtId>, Diagnostic> {
    let items = items(scope);
    let Some(last) = items.iter().rposition(|s| s.writes_to(written)) else { return Ok(None) };
    let read = items[..=last].iter().find_map(|s| read_in(s, tensor));
    match read {
        None => Ok(Some(items[last].id())),
        Some(span) => {
            let text = format!("`{tensor}` is read between writes to it, while it is assembled");
            let help = "read it after the last write, or compute in a dense tensor and copy that";
            Err(Diagnostic::new("storage::assembly", text).at(span).help(help))
        }
    }
}

/// Returns the location of a read of a tensor, reductions into it excepted.
fn read_in(s: &Stmt, tensor: &Symbol) -> Option<Span> {
    let mut found = None;
    s.walk(&mut |s| {
        let loads = |e: &Expr| e.any(&mut |e| matches!(e.kind(), ExprKind::Load(t, _) if t == tensor));
        if found.is_none() && (s.kind().exprs().into_iter().any(loads) || s.kind().printed().contains(&tensor)) {
            found = Some(s.origin().span());
        }
    });
    found
}
