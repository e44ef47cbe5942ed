//! Tangents (forward mode): every statement is preceded by the one that propagates the tangents of its operands.
//!
//! ```text
//! x.tangent[I] = Σ ∂e/∂y[J] * y.tangent[J]
//! x[I] = e
//! ```

use crate::build::{self, local};
use crate::custom_vjp::Calls;
use crate::data::BackwardInfo;
use crate::names::Names;
use crate::partials::working;
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

/// Returns a local tangent, in the type in which it is computed.
fn tangent(t: &Tensor) -> Arc<Tensor> {
    let symbol = Symbol::new(format!("{}.tangent", t.symbol));
    Arc::new(Tensor { dtype: working(t.dtype), ..t.tangent(symbol, Role::Local) })
}

/// Program of tangents.
pub(crate) struct Tangents {
    pub func: Func,
    /// Facts about `func` for its clean-up.
    pub info: BackwardInfo,
}

/// Builds the program of tangents. Parameters: those of the program, then the tangents of the requested inputs and of
/// all `inout` parameters of floats, which hold the tangent of the final value afterwards. Results: the tangents of the
/// results.
pub(crate) fn run(request: &Request<'_>, calls: &Calls) -> Result<Tangents, Diagnostics> {
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
    let (mut last, mut info) = (Vec::new(), BackwardInfo::default());
    // Tangents of 16-bit floats are rounded once, at the end.
    let mut computed = |d: &Arc<Tensor>, locals: &mut Vec<Arc<Tensor>>| {
        if d.dtype == working(d.dtype) {
            return d.clone();
        }
        let here = build::sum(d, working(d.dtype), Role::Local);
        let rounds = build::copy(&here, d, &origin);
        info.rounded.push((here.symbol.clone(), d.clone(), rounds.id()));
        last.push(rounds);
        locals.push(here.clone());
        here
    };
    let mut names = Names::new(func, []);
    let changed: Vec<&Arc<Tensor>> = inouts(func).filter(|t| !wrt.contains(&t.symbol)).collect();
    for t in asked.into_iter().chain(changed) {
        let written = inouts(func).any(|p| p.symbol == t.symbol);
        let (role, mode) = if written { (Role::InOut, ParamMode::InOut) } else { (Role::Input, ParamMode::In) };
        let d = names.tangent(t, role);
        params.push(Param { tensor: d.clone(), mode });
        let mut here = d.clone();
        if written {
            active.insert(t.symbol.clone());
            here = computed(&d, &mut locals);
            if here.dtype != d.dtype {
                first.push(build::copy(&d, &here, &origin));
            }
        }
        tangents.insert(t.symbol.clone(), here);
    }
    for t in func.results.iter().filter(|t| t.dtype.is_float() && request.is_of(t)) {
        let d = names.tangent(t, Role::Result);
        results.push(d.clone());
        if active.contains(&t.symbol) {
            tangents.insert(t.symbol.clone(), computed(&d, &mut locals));
        } else {
            first.push(build::fill(&d, Literal::Float(0.0), &origin));
        }
    }
    for t in func.results.iter().filter(|t| !request.is_of(t) && active.contains(&t.symbol)) {
        let d = tangent(t);
        locals.push(d.clone());
        tangents.insert(t.symbol.clone(), d);
    }
    locals.extend(func.results.iter().map(local));
    let body = Forward { active, tangents }.stmt(&func.body);
    let body = Stmt::seq(first.into_iter().chain([body]).chain(last), origin.clone());
    let body = build::declared(locals, body, &origin);
    let (name, doc, sizes) = (request.name.clone(), func.doc.clone(), func.sizes.clone());
    let (made, custom_vjps) = (Vec::new(), Vec::new());
    let func = Func { name, doc, sizes, params, results, made, body, custom_vjps, keeps_order: false };
    Ok(Tangents { func, info })
}

impl Forward {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let origin = s.origin().derive("grad", "tangent");
        match s.kind() {
            StmtKind::VarDef { tensor, .. } if self.active.contains(&tensor.symbol) => {
                let d = tangent(tensor);
                self.tangents.insert(tensor.symbol.clone(), d.clone());
                let inner = s.map(&mut |s| self.stmt(s), &mut Expr::clone);
                Stmt::new(StmtKind::VarDef { tensor: d, body: inner }, origin)
            }
            StmtKind::Store { tensor, indices, value } if self.active.contains(tensor) => {
                let tangent = &self.tangents[tensor];
                let d = self.change(value).unwrap_or_else(|| Expr::float(0.0, tangent.dtype));
                let new = build::store(&tangent.symbol, indices.clone(), d.cast(tangent.dtype), &origin);
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
            let tangent = &self.tangents[t];
            Expr::load(&tangent.symbol, at.clone(), tangent.dtype).cast(working(load.dtype()))
        })
    }

    fn reduced(&self, x: &Symbol, at: &[Access], op: ReduceOp, e: &Expr, origin: &Origin) -> Option<Stmt> {
        let (tangent, dtype) = (&self.tangents[x].symbol, self.tangents[x].dtype);
        let (old, dx) = (Expr::load(x, at.to_vec(), e.dtype()), Expr::load(tangent, at.to_vec(), dtype));
        let zero = Expr::float(0.0, dtype);
        let d = self.change(e);
        Some(match op {
            ReduceOp::Add => build::update(tangent, at.to_vec(), Some(op), d?, origin),
            ReduceOp::Mul => {
                let mut value = dx.times(&e.clone().cast(dtype));
                if let Some(d) = d {
                    value = value.plus(&old.cast(dtype).times(&d));
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
