//! Tangents (forward mode): every statement is preceded by what it does to a small change of its operands.
//!
//! ```text
//! x.tangent[I] = Σ ∂e/∂y[J] * y.tangent[J]
//! x[I] = e
//! ```

use crate::build::{self, local};
use crate::custom_vjp::Calls;
use crate::names::Names;
use crate::request::{Request, inouts};
use crate::{activity, expression, partials};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::stmt::Role;
use taffeta_ast::{
    Access, Diagnostics, Expr, ExprKind, Func, Literal, Origin, Param, ParamMode, ReduceOp, Stmt, StmtKind, Symbol,
    Tensor,
};

struct Forward {
    active: FxHashSet<Symbol>,
    tangents: FxHashMap<Symbol, Arc<Tensor>>,
}

fn tangent(t: &Tensor, role: Role) -> Arc<Tensor> {
    Arc::new(t.tangent(Symbol::new(format!("{}.tangent", t.symbol)), role))
}

/// The program of tangents. Parameters: those of the program, then the tangents of the inputs that are asked for and of
/// all `inout` parameters of floats, which hold the tangent of the final value afterwards. Results: the tangents of the
/// results.
pub(crate) fn run(request: &Request<'_>, calls: &Calls) -> Result<Func, Diagnostics> {
    let func = request.func;
    let origin = Origin::source(request.span).derive("grad", "interface");
    let asked = request.inputs();
    let wrt: FxHashSet<Symbol> = asked.iter().map(|t| t.symbol.clone()).collect();
    let to: FxHashSet<Symbol> =
        func.results.iter().filter(|t| request.is_of(t)).chain(inouts(func)).map(|t| t.symbol.clone()).collect();
    let mut from = wrt.clone();
    from.extend(inouts(func).map(|t| t.symbol.clone()));
    let mut active = activity::active(func, calls, &from, &to);
    calls.no_tangents(&active, request)?;
    let mut tangents: FxHashMap<Symbol, Arc<Tensor>> = FxHashMap::default();
    let (mut params, mut results, mut first, mut locals) = (func.params.clone(), Vec::new(), Vec::new(), Vec::new());
    let mut names = Names::new(func, []);
    let changed: Vec<&Arc<Tensor>> = inouts(func).filter(|t| !wrt.contains(&t.symbol)).collect();
    for t in asked.into_iter().chain(changed) {
        let written = inouts(func).any(|p| p.symbol == t.symbol);
        let (role, mode) = if written { (Role::InOut, ParamMode::InOut) } else { (Role::Input, ParamMode::In) };
        let d = names.tangent(t, role);
        params.push(Param { tensor: d.clone(), mode });
        tangents.insert(t.symbol.clone(), d);
        if written {
            active.insert(t.symbol.clone());
        }
    }
    for t in func.results.iter().filter(|t| t.dtype.is_float() && request.is_of(t)) {
        let d = names.tangent(t, Role::Result);
        if !active.contains(&t.symbol) {
            first.push(build::fill(&d, Literal::Float(0.0), &origin));
        }
        results.push(d.clone());
        tangents.insert(t.symbol.clone(), d);
    }
    for t in func.results.iter().filter(|t| !request.is_of(t) && active.contains(&t.symbol)) {
        let d = tangent(t, Role::Local);
        locals.push(d.clone());
        tangents.insert(t.symbol.clone(), d);
    }
    locals.extend(func.results.iter().map(local));
    let body = Forward { active, tangents }.stmt(&func.body);
    let body = Stmt::seq(first.into_iter().chain([body]), origin.clone());
    let body = build::declared(locals, body, &origin);
    let (name, doc, sizes) = (request.name.clone(), func.doc.clone(), func.sizes.clone());
    Ok(Func { name, doc, sizes, params, results, body, custom_vjps: Vec::new(), keeps_order: false })
}

impl Forward {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let origin = s.origin().derive("grad", "tangent");
        match s.kind() {
            StmtKind::VarDef { tensor, .. } if self.active.contains(&tensor.symbol) => {
                let d = tangent(tensor, Role::Local);
                self.tangents.insert(tensor.symbol.clone(), d.clone());
                let inner = s.map(&mut |s| self.stmt(s), &mut Expr::clone);
                Stmt::new(StmtKind::VarDef { tensor: d, body: inner }, origin)
            }
            StmtKind::Store { tensor, indices, value } if self.active.contains(tensor) => {
                let d = self.change(value).unwrap_or_else(|| Expr::float(0.0, value.dtype()));
                let new = build::store(&self.tangents[tensor].symbol, indices.clone(), d, &origin);
                Stmt::seq([new, s.clone()], origin)
            }
            StmtKind::ReduceTo { tensor, indices, op, value } if self.active.contains(tensor) => {
                let first = self.reduced(tensor, indices, *op, value, &origin);
                Stmt::seq(first.into_iter().chain([s.clone()]), origin)
            }
            _ => s.map(&mut |s| self.stmt(s), &mut Expr::clone),
        }
    }

    fn change(&self, e: &Expr) -> Option<Expr> {
        expression::forward(e, &self.active, &|load| {
            let ExprKind::Load(t, at) = load.kind() else { unreachable!("elements are loads") };
            Expr::load(&self.tangents[t].symbol, at.clone(), load.dtype())
        })
    }

    fn reduced(&self, x: &Symbol, at: &[Access], op: ReduceOp, e: &Expr, origin: &Origin) -> Option<Stmt> {
        let tangent = &self.tangents[x].symbol;
        let (old, dx) = (Expr::load(x, at.to_vec(), e.dtype()), Expr::load(tangent, at.to_vec(), e.dtype()));
        let zero = Expr::float(0.0, e.dtype());
        let d = self.change(e);
        Some(match op {
            ReduceOp::Add => build::update(tangent, at.to_vec(), Some(op), d?, origin),
            ReduceOp::Mul => {
                let mut value = dx.times(e);
                if let Some(d) = d {
                    value = value.plus(&old.times(&d));
                }
                build::store(tangent, at.to_vec(), value, origin)
            }
            ReduceOp::Min | ReduceOp::Max => {
                let stays = partials::is_first(op.info().op, &old, e);
                build::store(tangent, at.to_vec(), stays.select(&dx, &d.unwrap_or(zero)), origin)
            }
            _ => return None,
        })
    }
}
