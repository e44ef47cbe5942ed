//! Dense Jacobians, the matrices of all partial derivatives of one result, by forward mode: one run of the tangents for
//! every element of an input.
//!
//! ```text
//! for k in range(n):
//!     x.tangent = 0, but 1 at k
//!     y.tangent = J x.tangent
//!     x.jacobian[..., k] = y.tangent[...]
//! ```
//!
//! Only the first iteration prints the program's output.
//!
//! No declaration in an iteration outlives it, so that the loop over the elements may run in any order.

use crate::build::{self, local};
use crate::custom_vjp::Calls;
use crate::data::BackwardInfo;
use crate::forward::{self, Tangents};
use crate::request::{Kind, Request};
use std::sync::Arc;
use taffeta_analysis::pass::copy::Copier;
use taffeta_ast::stmt::Role;
use taffeta_ast::{
    Access, Diagnostics, Expr, Extent, Func, Literal, LoopProps, Origin, Stmt, StmtKind, Symbol, Tensor,
};

/// Builds the program of Jacobians. Parameters: those of the program. Results: for every requested input x
/// `x.jacobian`, whose first dimensions are those of the result and whose last ones are those of x.
pub(crate) fn run(request: &Request<'_>, calls: &Calls) -> Result<Tangents, Diagnostics> {
    let func = request.func;
    let origin = Origin::source(request.span).derive("grad", "jacobian");
    let mut results = Vec::new();
    let mut parts = Vec::new();
    for x in request.inputs() {
        let wrt = [x.symbol.name().to_string()];
        let tangents = forward::run(&Request { kind: Kind::Jvp, wrt: &wrt, ..request.clone() }, calls)?.func;
        let (result, part) = columns(x, &tangents, parts.is_empty(), &origin);
        results.push(result);
        parts.push(part);
    }
    let (name, doc, sizes) = (request.name.clone(), func.doc.clone(), func.sizes.clone());
    let (params, body, custom_vjps) = (func.params.clone(), Stmt::seq(parts, origin), Vec::new());
    let made = Vec::new();
    let func = Func { name, doc, sizes, params, results, made, body, custom_vjps, keeps_order: false };
    Ok(Tangents { func, info: BackwardInfo::default() })
}

/// Builds the Jacobian with respect to `x`, element by element of `x`. `tangents` has one tangent as its last parameter
/// and one as its result. `prints`: whether the first iteration prints the program's output.
fn columns(x: &Tensor, tangents: &Func, prints: bool, origin: &Origin) -> (Arc<Tensor>, Stmt) {
    let (Some(given), [found]) = (tangents.params.last(), tangents.results.as_slice()) else {
        unreachable!("a column has one tangent and one result")
    };
    let mut copier = Copier::new("grad", "column");
    let dx = copier.declare(&local(&given.tensor));
    let dy = copier.declare(&local(found));
    let body = copier.stmt(&tangents.body);
    let shape: Vec<Expr> = found.shape.iter().chain(&x.shape).cloned().collect();
    let all = Symbol::new(format!("{}.jacobian", x.symbol));
    let all = Arc::new(Tensor::dense(all, found.dtype, shape, Role::Result));
    let iters: Vec<Symbol> = (0..x.ndim()).map(|k| Symbol::new(format!("{}.d{k}", x.symbol))).collect();
    let first = iters.iter().fold(Expr::bool(prints), |all, i| all.and(&Expr::var(i).equals(&Expr::int(0))));
    let body = printing(&body, &first);
    let column: Vec<Access> = iters.iter().map(|i| Access::from(Expr::var(i))).collect();
    let one = Expr::float(1.0, dx.dtype);
    let steps = [
        build::fill(&dx, Literal::Float(0.0), origin),
        build::store(&dx.symbol, column.clone(), one, origin),
        body,
        build::every(&dy, origin, |at| {
            let value = Expr::load(&dy.symbol, at.clone(), dy.dtype);
            build::store(&all.symbol, at.into_iter().chain(column).collect(), value, origin)
        }),
    ];
    let inner = build::declared(vec![dx, dy], Stmt::seq(steps, origin.clone()), origin);
    let nest = iters.into_iter().zip(&x.shape).rev().fold(inner, |body, (iter, n)| {
        let extent = Extent::Range { begin: Expr::int(0), end: n.clone(), step: Expr::int(1) };
        Stmt::new(StmtKind::For { iter, extent, props: LoopProps::default(), body }, origin.clone())
    });
    (all, nest)
}

/// Restricts the prints of a statement to iterations where `cond` holds.
fn printing(s: &Stmt, cond: &Expr) -> Stmt {
    match (s.kind(), cond.as_bool()) {
        (StmtKind::Print { .. }, Some(false)) => Stmt::nop(),
        (StmtKind::Print { .. }, None) => {
            let kind = StmtKind::If { cond: cond.clone(), then: s.clone(), otherwise: None };
            Stmt::new(kind, s.origin().derive("grad", "guard"))
        }
        _ => s.map(&mut |c| printing(c, cond), &mut Expr::clone),
    }
}
