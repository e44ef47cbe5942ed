//! Assembly of sparse tensors that a program makes: results and local tensors with a pattern of their own. The stored
//! elements and their order follow from the writes, which are lowered by the first row that applies:
//!
//! | facts of the writes | lowering |
//! |---|---|
//! | each element once, in the order of the levels | every write appends an element (`lower::append`) |
//! | below the last level several times, or in any order | a workspace for the last level, then the above |
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
//! Other programs are refused (`storage::assembly`) with the missing fact.

mod order;
mod workspace;

use crate::access;
use crate::explain::Assembly;
use order::Disorder;
use std::sync::Arc;
use taffeta_ast::algebra::leaves_fill;
use taffeta_ast::format::LevelKind;
use taffeta_ast::{
    Diagnostic, Diagnostics, Expr, ExprKind, Func, Literal, Span, Stmt, StmtId, StmtKind, Symbol, Tensor,
};

/// Program whose writes into assembled tensors append, each element once and in order.
pub(crate) struct Assembled {
    /// Program.
    pub(crate) func: Func,
    /// Assembled tensors, each with the statement after which it is complete.
    pub(crate) tensors: Vec<(Arc<Tensor>, Option<StmtId>)>,
    /// Workspaces whose elements are copied in the order of their coordinates.
    pub(crate) workspaces: Vec<Symbol>,
    /// Record of each tensor.
    pub(crate) explained: Vec<Assembly>,
}

/// Prepares the tensors that a program assembles.
///
/// # Errors
///
/// Formats that cannot be assembled yet, writes in another order than that of the levels, and reads between writes.
pub(crate) fn run(func: &Func) -> Result<Assembled, Diagnostics> {
    let mut out = Assembled { func: func.clone(), tensors: Vec::new(), workspaces: Vec::new(), explained: Vec::new() };
    let mut found = Vec::new();
    for tensor in assembled(func) {
        let writes = order::writes(scope(func, &tensor), &tensor.symbol);
        let span = writes.last().map_or(Span::NONE, |s| s.origin().span());
        match one(&out.func, &tensor, span) {
            Ok(One { func, complete, workspace }) => {
                out.func = func;
                out.explained.push(Assembly {
                    tensor: tensor.symbol.name().to_string(),
                    span,
                    levels: tensor.format.levels.to_vec(),
                    gathered: workspace.is_some(),
                });
                out.tensors.push((tensor, complete));
                out.workspaces.extend(workspace);
            }
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

/// Program prepared for one tensor.
struct One {
    func: Func,
    complete: Option<StmtId>,
    workspace: Option<Symbol>,
}

fn one(func: &Func, tensor: &Arc<Tensor>, span: Span) -> Result<One, Diagnostic> {
    appends(tensor).map_err(|d| d.at(span))?;
    let func = without_fills(func, tensor);
    let writes = order::writes(scope(&func, tensor), &tensor.symbol);
    let (func, workspace) = match order::check(&func, tensor, &writes) {
        Ok(()) => (func, None),
        Err(disorder) => {
            let refused = || refused(tensor, &disorder).at(span);
            let (func, workspace) = workspace::insert(&func, tensor, &writes).ok_or_else(refused)?;
            let writes = order::writes(scope(&func, tensor), &tensor.symbol);
            order::check(&func, tensor, &writes).map_err(|_| refused())?;
            (func, Some(workspace))
        }
    };
    let func = func.with_body(stored(&func.body, tensor));
    let complete = complete(scope(&func, tensor), &tensor.symbol)?;
    Ok(One { func, complete, workspace })
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

fn refused(tensor: &Tensor, disorder: &Disorder) -> Diagnostic {
    let why = match disorder {
        Disorder::Twice => "an element is written several times".to_string(),
        Disorder::Backwards(level) => {
            let d = order_of(tensor)[*level];
            format!("elements are not written in the order of dimension {d}, which level {level} stores")
        }
    };
    let text = format!("cannot assemble `{}`: {why}", tensor.symbol);
    let help = "put the loops in the order of the levels, and the writes of a fibre into one iteration of the loop \
                over it; or run the program with `--backend interp`";
    Diagnostic::new("storage::assembly", text).help(help)
}

/// Returns the scope of a tensor: the program, or the body of its declaration.
fn scope<'f>(func: &'f Func, tensor: &Tensor) -> &'f Stmt {
    fn declared<'s>(s: &'s Stmt, tensor: &Symbol) -> Option<&'s Stmt> {
        match s.kind() {
            StmtKind::VarDef { tensor: own, body } if own.symbol == *tensor => Some(body),
            kind => kind.inside().find_map(|s| declared(s, tensor)),
        }
    }
    declared(&func.body, &tensor.symbol).unwrap_or(&func.body)
}

/// Removes the stores of the fill that no write to the same element precedes: they have no effect.
fn without_fills(func: &Func, tensor: &Arc<Tensor>) -> Func {
    let fill = tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype));
    let is_fill = |s: &Stmt| matches!(s.kind(), StmtKind::Store { value, .. } if value.as_literal() == Some(fill));
    let all = order::writes(scope(func, tensor), &tensor.symbol);
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

/// Returns the statement of a tensor's scope after which it is complete; `None` if nothing writes it.
fn complete(scope: &Stmt, tensor: &Symbol) -> Result<Option<StmtId>, Diagnostic> {
    let items = items(scope);
    let Some(last) = items.iter().rposition(|s| s.writes_to(tensor)) else { return Ok(None) };
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

/// Returns the statements of a scope, in order, without blocks and declarations around them.
fn items(scope: &Stmt) -> Vec<&Stmt> {
    match scope.kind() {
        StmtKind::Seq(all) => all.iter().flat_map(items).collect(),
        StmtKind::VarDef { body, .. } => items(body),
        _ => vec![scope],
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

/// Returns the dimension that each level stores.
fn order_of(tensor: &Tensor) -> Vec<usize> {
    tensor.format.order().unwrap_or_else(|| unreachable!("`appends` has refused remapped formats"))
}

/// Returns the coordinates of a written element, by level.
fn coordinates(s: &Stmt, tensor: &Tensor) -> Vec<Expr> {
    let target = access::target(s);
    let Some(ExprKind::Load(_, at)) = target.as_ref().map(Expr::kind) else { return Vec::new() };
    order_of(tensor).into_iter().map(|d| at[d].index.clone()).collect()
}

/// Returns the size of the dimension that each level stores.
fn sizes(tensor: &Tensor) -> Vec<Expr> {
    order_of(tensor).into_iter().map(|d| tensor.shape[d].clone()).collect()
}
