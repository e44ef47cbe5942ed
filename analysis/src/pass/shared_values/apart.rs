//! Fallback for elements with a shared value that are not proved to be equal: they are computed in a dense tensor,
//! packed after the last write, and compared with the packed values.
use super::sites::{AccessKind, sites};
use crate::pass::rewrite_accesses;
use crate::tree;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::format::UNEQUAL;
use taffeta_ast::stmt::{AssertKind, LoopProps, MessagePart, Role};
use taffeta_ast::{
    Access, Diagnostic, Diagnostics, Expr, Extent, Func, Literal, Op, Origin, Stmt, StmtKind, Symbol, Tensor,
};

/// Computes a tensor's elements in a dense tensor, which is packed into the original one and compared with it at the
/// end.
///
/// # Errors
///
/// The tensor does not store every element: a dense one would also write the elements that are not stored.
pub(super) fn run(func: &Func, tensor: &Arc<Tensor>) -> Result<Func, Diagnostics> {
    let name = tensor.symbol.name();
    let all = sites(func, &tensor.symbol);
    let last = all.iter().rev().find(|s| s.how != AccessKind::Reads).map(|s| s.stmt().origin().clone());
    let origin = last.unwrap_or_else(Origin::none);
    if !tensor.format.levels.iter().all(|l| l.kind.facts().full) {
        let text = format!(
            "one stored value of `{name}` stands for several elements, which are not proved to be equal, and `{}` does \
             not store every element",
            tensor.format
        );
        let help = format!("make `{name}` dense, or write all of it in loops over tensors with the same elements");
        return Err(Diagnostic::new("lower::unsupported", text).at(origin.span()).help(help).into());
    }
    let symbol = Symbol::new(format!("{}.own", name.replace('.', "_")));
    let own = Arc::new(Tensor::dense(symbol, tensor.dtype, tensor.shape.clone(), Role::Local));
    let names: FxHashMap<Symbol, Symbol> = [(tensor.symbol.clone(), own.symbol.clone())].into_iter().collect();
    let plain = |at: Vec<Access>| at.into_iter().map(|a| Access::from(a.index)).collect();
    let fill = tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype));
    let first = over(&own, &origin, &|at| stored(&own, at, Expr::literal(fill, tensor.dtype), &origin));
    let packed = over(&own, &origin, &|at| stored(tensor, at, own.load(at.to_vec()), &origin));
    let checked = over(&own, &origin, &|at| compared(tensor, &own, at, &origin));
    let declared =
        |tensor: &Arc<Tensor>, body| Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone());
    let dense = |body: &Stmt| rewrite_accesses::run(body, &names, &plain);
    let mut declaration = None;
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor: t, body } = s.kind()
            && t.symbol == tensor.symbol
        {
            declaration = Some((s.id(), body.clone()));
        }
    });
    Ok(match declaration {
        Some((id, body)) => {
            let end = declared(tensor, Stmt::seq([packed, checked], origin.clone()));
            let new = declared(&own, Stmt::seq([first, dense(&body), end], origin.clone()));
            tree::replace(func, id, &new)
        }
        None => {
            let all = Stmt::seq([first, dense(&func.body), packed, checked], origin.clone());
            func.with_body(declared(&own, all))
        }
    })
}

/// Builds a loop nest over all elements of a tensor.
fn over(tensor: &Tensor, origin: &Origin, body: &dyn Fn(&[Expr]) -> Stmt) -> Stmt {
    let name = tensor.symbol.name().replace('.', "_");
    let iters: Vec<Symbol> = (0..tensor.ndim()).map(|d| Symbol::new(format!("{name}.d{d}"))).collect();
    let at: Vec<Expr> = iters.iter().map(Expr::var).collect();
    iters.iter().zip(&tensor.shape).rev().fold(body(&at), |body, (iter, size)| {
        let extent = Extent::Range { begin: Expr::int(0), end: size.clone(), step: Expr::int(1) };
        let kind = StmtKind::For { iter: iter.clone(), extent, props: LoopProps::default(), body };
        Stmt::new(kind, origin.derive("shared", "elements"))
    })
}

fn stored(tensor: &Tensor, at: &[Expr], value: Expr, origin: &Origin) -> Stmt {
    let indices = at.iter().cloned().map(Access::from).collect();
    let kind = StmtKind::Store { tensor: tensor.symbol.clone(), indices, value };
    Stmt::new(kind, origin.derive("shared", "elements"))
}

/// Builds the assertion that an element equals its stored value.
fn compared(tensor: &Tensor, own: &Tensor, at: &[Expr], origin: &Origin) -> Stmt {
    let [a, b] = [own, tensor].map(|t| t.load(at.to_vec()));
    let mut message = vec![MessagePart::Text("element [".into())];
    for (k, index) in at.iter().enumerate() {
        message.extend((k > 0).then(|| MessagePart::Text(", ".into())));
        message.push(MessagePart::Value(index.clone()));
    }
    message.push(MessagePart::Text(format!("] of `{}` is ", tensor.symbol)));
    message.push(MessagePart::Value(a.clone()));
    message.push(MessagePart::Text(UNEQUAL.into()));
    message.push(MessagePart::Value(b.clone()));
    let kind = StmtKind::Assert { cond: same(&a, &b), message, kind: AssertKind::Storage };
    Stmt::new(kind, origin.derive("shared", "check"))
}

/// Builds the condition that two elements have equal bits, except that all NaNs are equal: 0 and -0 differ.
fn same(a: &Expr, b: &Expr) -> Expr {
    if !a.dtype().is_float() {
        return a.equals(b);
    }
    let zero = Expr::literal(Literal::Float(0.0), a.dtype());
    let one = Expr::literal(Literal::Float(1.0), a.dtype());
    let nan = |e: &Expr| Expr::apply(Op::IsNan, vec![e.clone()]);
    let inverse = |e: &Expr| Expr::apply(Op::Div, vec![one.clone(), e.clone()]);
    let zeros = b.equals(&zero).and(&inverse(a).equals(&inverse(b)));
    a.equals(&zero).select(&zeros, &a.equals(b).or(&nan(a).and(&nan(b))))
}
