//! List of all writes of a tensor, for writes in an order of which nothing is known. Each write appends an element to
//! the list, which is sorted by the levels of the tensor after the last one ([`crate::lower`]'s `collect`).
//!
//! ```text
//! B: f64[m, n] @ csr                         L: f64[m, n] @ format(compressed(unique=False, ordered=False), …)
//! for i in range(n):                         for i in range(n):
//!     for j in range(m):             →           for j in range(m):
//!         B[j, i] = A[i, j]                          L[j, i] = A[i, j]
//!                                            for p in …: B[…] = L[…]             in order, equal elements combined
//! ```

use super::order::{self, Disorder};
use super::writes::{items, order_of, scope};
use crate::access;
use std::sync::Arc;
use taffeta_ast::algebra::leaves_fill;
use taffeta_ast::format::{Format, Level, LevelKind, Pattern};
use taffeta_ast::stmt::Role;
use taffeta_ast::{Access, DType, Diagnostic, Expr, ExprKind, Func, Literal, Op, Stmt, StmtKind, Symbol, Tensor, show};

/// List of the writes of a tensor.
#[derive(Clone)]
pub(crate) struct Collected {
    /// List.
    pub(crate) list: Arc<Tensor>,
    /// Tensor of the writes.
    pub(crate) tensor: Symbol,
    /// Operator by which writes of one element are combined; `None` if the last one counts.
    pub(crate) op: Option<Op>,
}

/// Redirects the writes of a tensor to a list.
///
/// # Errors
///
/// Writes by different operators; assignments that may come to an element several times: one of the fill would count
/// where the element is stored, so that it would have to be visited everywhere.
pub(super) fn insert(
    func: &Func,
    tensor: &Arc<Tensor>,
    writes: &[Stmt],
    disorder: Disorder,
) -> Result<(Func, Collected), Diagnostic> {
    if let Some(diagnostic) = starts_without_fill(tensor, writes) {
        return Err(diagnostic);
    }
    let nests = items(scope(func, tensor)).into_iter().filter(|s| s.writes_to(&tensor.symbol)).count();
    let refused = |why: &str, instead: &str| refused(tensor, (disorder, nests), why, instead);
    let mut ops: Vec<Option<Op>> = writes.iter().map(operator).collect();
    ops.dedup();
    let [op] = ops[..] else { return Err(refused("and by different operators", "use one operator")) };
    // In a list, the 0 of an element that is not stored would not annihilate an infinity or a NaN.
    let is_dense = |e: &Expr| !e.any(&mut |e| matches!(e.kind(), ExprKind::Load(..)));
    let value = |s: &Stmt| match s.kind() {
        StmtKind::ReduceTo { value, .. } => is_dense(value),
        _ => true,
    };
    let fill = tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype));
    let counts = tensor.dtype.is_float() && !leaves_fill(Op::Mul, tensor.dtype, fill, None);
    if op == Some(Op::Mul) && counts && !writes.iter().all(value) {
        return Err(refused(
            "and are multiplied",
            "use a loop order in which each element is completed before the next",
        ));
    }
    if op.is_none() && !order::is_once(func, tensor, writes) {
        return Err(refused("and may be assigned several times", "use `+=`"));
    }
    let list = list(tensor, "list");
    let body = declared(&redirected(&func.body, &tensor.symbol, &list.symbol), tensor, &list);
    Ok((func.with_body(body), Collected { list, tensor: tensor.symbol.clone(), op }))
}

fn operator(write: &Stmt) -> Option<Op> {
    match write.kind() {
        StmtKind::ReduceTo { op, .. } => Some(op.info().op),
        _ => None,
    }
}

/// Returns the diagnostic about a tensor whose first statement stores a constant in every element that is not its fill.
fn starts_without_fill(tensor: &Tensor, writes: &[Stmt]) -> Option<Diagnostic> {
    let [first, _, ..] = writes else { return None };
    let StmtKind::Store { indices, value, .. } = first.kind() else { return None };
    let ExprKind::Const(value) = value.kind() else { return None };
    let fill = tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype));
    let is_iterator = |a: &Access| matches!(a.index.kind(), ExprKind::Var(_));
    let distinct = |k: usize| indices[..k].iter().all(|a| a.index != indices[k].index);
    let is_whole = indices.iter().all(is_iterator) && (0..indices.len()).all(distinct);
    if *value == fill || !is_whole {
        return None;
    }
    let [value, fill] = [*value, fill].map(|v| show::value(v, tensor.dtype));
    let text =
        format!("cannot assemble `{}`: it is {value} everywhere at first, while its fill is {fill}", tensor.symbol);
    let help = format!(
        "start with the fill, as `full(…, {fill}, {})` does, declare `fill={value}`, or run the program with \
         `--backend interp`",
        tensor.dtype
    );
    Some(Diagnostic::new("storage::assembly", text).help(help))
}

fn refused(tensor: &Tensor, (disorder, nests): (Disorder, usize), why: &str, instead: &str) -> Diagnostic {
    let order = match disorder {
        Disorder::Backwards(_) if nests > 1 => "several statements write its elements, one after the other",
        Disorder::Twice => "an element may be written several times",
        Disorder::Read => "it is read between writes to it",
        Disorder::Backwards(_) => "elements are written in no order of its levels",
        Disorder::Remapped | Disorder::Query(_) => "the positions of elements depend on all of them",
    };
    let text = format!("cannot assemble `{}`: {order}, {why}", tensor.symbol);
    let loops = match disorder {
        Disorder::Backwards(_) if nests > 1 => "put the statements into the same loops, ",
        Disorder::Backwards(_) => "put the loops in the order of the levels, ",
        _ => "",
    };
    let help = format!("{loops}{instead}, or run the program with `--backend interp`");
    Diagnostic::new("storage::assembly", text).help(help)
}

/// Returns the warning about writes that are sorted.
pub(super) fn warning(tensor: &Tensor, reason: &str) -> Diagnostic {
    let text = format!("the writes of `{}` are sorted: {reason}", tensor.symbol);
    let help = "put the loops in the order of the levels, and the writes of a fibre into one iteration of the loop \
                over it, or the levels in the order of the loops";
    Diagnostic::warning("structured::sorted", text).help(help)
}

/// Returns the reason why the writes of a tensor are sorted.
pub(super) fn reason(tensor: &Tensor, disorder: Disorder) -> String {
    match disorder {
        Disorder::Twice => "an element is written several times".to_string(),
        Disorder::Read => "it is read between writes to it".to_string(),
        Disorder::Remapped => "levels store other coordinates than indices".to_string(),
        Disorder::Query(level) => {
            format!("positions in level {level}, `{}`, depend on all elements", tensor.format.levels[level])
        }
        Disorder::Backwards(level) => {
            let d = order_of(tensor)[level];
            format!("they are not in the order of dimension {d}, which level {level} stores")
        }
    }
}

/// Builds a list of writes, named after their tensor.
pub(super) fn list(tensor: &Tensor, what: &str) -> Arc<Tensor> {
    let name = Symbol::new(format!("{}.{what}", tensor.symbol.name().replace('.', "_")));
    let dense = Tensor::dense(name, tensor.dtype, tensor.shape.clone(), Role::Workspace);
    Arc::new(Tensor { format: format(tensor), ..dense })
}

/// Returns the format of the list: indices in the order of the tensor's levels.
fn format(tensor: &Tensor) -> Format {
    let one = |k: usize| {
        let kind = if k == 0 { LevelKind::Compressed } else { LevelKind::Singleton };
        let index = match tensor.format.order() {
            Some(_) => tensor.format.levels[k].index.filter(|index| *index == DType::I64),
            None => Some(DType::I64),
        };
        Level { unique: false, ordered: false, index, ..Level::new(kind) }
    };
    let format = Format::new((0..tensor.shape.len()).map(one).collect());
    Format { fill: tensor.format.fill, pattern: Some(Pattern::fresh()), ..format }.ordered(&order_of(tensor))
}

pub(super) fn redirected(s: &Stmt, tensor: &Symbol, list: &Symbol) -> Stmt {
    let inner = s.map(&mut |s| redirected(s, tensor, list), &mut Expr::clone);
    let target = access::target(&inner);
    match target.as_ref().map(Expr::kind) {
        Some(ExprKind::Load(t, at)) if t == tensor => {
            let dtype = target.as_ref().map_or(DType::F64, Expr::dtype);
            access::with_target(&inner, &Expr::load(list, at.clone(), dtype))
        }
        _ => inner,
    }
}

/// Declares the list around the scope of the tensor.
pub(super) fn declared(s: &Stmt, tensor: &Tensor, list: &Arc<Tensor>) -> Stmt {
    let around = |body: &Stmt| {
        let origin = body.origin().derive("assemble", "list");
        Stmt::new(StmtKind::VarDef { tensor: list.clone(), body: body.clone() }, origin)
    };
    fn inside(s: &Stmt, tensor: &Symbol, around: &dyn Fn(&Stmt) -> Stmt) -> Stmt {
        match s.kind() {
            StmtKind::VarDef { tensor: own, body } if own.symbol == *tensor => {
                s.with_kind(StmtKind::VarDef { tensor: own.clone(), body: around(body) })
            }
            _ => s.map(&mut |s| inside(s, tensor, around), &mut Expr::clone),
        }
    }
    if tensor.role.is_local() { inside(s, &tensor.symbol, &around) } else { around(s) }
}
