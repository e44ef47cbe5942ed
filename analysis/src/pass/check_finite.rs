//! Assertions that no statement yields a NaN or an infinity.
//!
//! **Does**: inserts an assertion before every store and reduction of a float that stops the program where the value is
//! not finite although all operands are finite. Its message names the element, the operands that were read and their
//! values, and the iteration. A choice (`a if c else b`) becomes a branch around the assertions of its operands.
//!
//! **Requires**: a valid logical program. The pass runs after schedules and gradients.
//!
//! **Ensures**: a program that yields no such value computes the same results. Ids and origins stay, and the assertions
//! have the source locations of the statements they check. Other passes do not move them, so in loops that run in order
//! the first assertion that fails is for the first such value.
//!
//! **Example**
//!
//! before
//! ```text
//! for i in range(n):
//!     y[i] = x[i] / z
//! ```
//! after
//! ```text
//! for i in range(n):
//!     assert abs(x[i] / z) < inf or not (abs(x[i]) < inf and abs(z) < inf), f"…"  # finite
//!     y[i] = x[i] / z
//! ```
//!
//! **Leaves alone**: copies and constants: the `inf` that initialises a minimum is not the result of an operation. For
//! a reduction whose iterations run in any order, the added value is checked but not the sum, which is held in partial
//! results. Loops with assertions do not become library matrix products and are not vectorised.

use crate::query::effects;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::op::Op;
use taffeta_ast::selector;
use taffeta_ast::stmt::{AssertKind, LoopProps, Message, MessagePart};
use taffeta_ast::{
    Access, DType, Expr, ExprKind, Extent, Func, Literal, ReduceOp, Stmt, StmtId, StmtKind, Symbol, print,
};

/// Maximum number of a statement's operands shown in a message.
const MAX_SHOWN: usize = 6;

/// Returns the program with its assertions.
pub fn run(func: &Func) -> Func {
    let names = selector::names(func);
    let body = Checks { names: &names, iters: Vec::new(), props: Vec::new() }.stmt(&func.body);
    func.with_body(body)
}

/// Rewriter of statements, with the loops around the current one.
struct Checks<'n> {
    /// Names of the loops in schedules.
    names: &'n FxHashMap<StmtId, String>,
    /// Iterators of the loops around the statement, with the names of their loops.
    iters: Vec<(Symbol, &'n str)>,
    props: Vec<Arc<LoopProps>>,
}

/// Destination of a store or reduction.
struct Destination<'a> {
    stmt: &'a Stmt,
    tensor: &'a Symbol,
    indices: &'a [Access],
}

impl Checks<'_> {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::For { iter, extent, props, body } => {
                let outside = self.iters.len();
                if let Extent::Range { .. } = extent {
                    self.iters.push((iter.clone(), &self.names[&s.id()]));
                }
                self.props.push(Arc::new(props.clone()));
                let new = self.stmt(body);
                self.props.pop();
                self.iters.truncate(outside);
                // A loop with checks in its body is not a matrix product.
                let props = LoopProps { library: props.library && new.same_node(body), ..props.clone() };
                s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: new })
            }
            StmtKind::Store { tensor, indices, value } => {
                let checks = self.value(&Destination { stmt: s, tensor, indices }, value);
                self.before(s, checks)
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let at = Destination { stmt: s, tensor, indices };
                let shared = self.props.iter().any(|p| p.sharing(tensor, *op).is_some());
                let checks = match shared {
                    true => self.value(&at, value),
                    false => self.reduction(&at, *op, value),
                };
                self.before(s, checks)
            }
            _ => s.map(&mut |c| self.stmt(c), &mut Expr::clone),
        }
    }

    fn before(&self, s: &Stmt, checks: Option<Stmt>) -> Stmt {
        Stmt::seq(checks.into_iter().chain([s.clone()]), s.origin().derive("check_finite", "group"))
    }

    /// Checks a reduction's new element. The added value may be a choice, which stays inside of the sum.
    fn reduction(&self, at: &Destination<'_>, op: ReduceOp, value: &Expr) -> Option<Stmt> {
        let old = Expr::load(at.tensor, at.indices.to_vec(), value.dtype());
        self.value(at, &Expr::apply(op.info().op, vec![old, value.clone()]))
    }

    /// Returns the assertion before a store of `value`; `None` where no operation in the value may yield NaN or
    /// infinity.
    fn value(&self, at: &Destination<'_>, value: &Expr) -> Option<Stmt> {
        if !may_yield_nonfinite(value) {
            return None;
        }
        let origin = at.stmt.origin().derive("check_finite", "check");
        if let ExprKind::Apply(Op::Select, args) = value.kind() {
            let (then, otherwise) = (self.value(at, &args[1]), self.value(at, &args[2]));
            let kind = StmtKind::If { cond: args[0].clone(), then: then.unwrap_or_else(Stmt::nop), otherwise };
            return Some(Stmt::new(kind, origin));
        }
        let cond = is_finite(value).or(&operands_are_finite(value).negate());
        let message = self.message(at, value);
        Some(Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Finite }, origin))
    }

    /// Builds the message `` `y[3]` becomes nan: x[3] = 0, z = 0 (i = 3) ``.
    fn message(&self, at: &Destination<'_>, value: &Expr) -> Message {
        let mut out = Parts(Vec::new());
        out.text("`");
        out.element(at.tensor, at.indices);
        out.text("` becomes ");
        out.value(value);
        let mut loads = Vec::new();
        unconditional(value, &mut loads);
        for (k, load) in loads.iter().take(MAX_SHOWN).enumerate() {
            let ExprKind::Load(t, indices) = load.kind() else { continue };
            out.text(if k == 0 { ": " } else { ", " });
            out.element(t, indices);
            out.text(" = ");
            out.value(load);
        }
        if loads.len() > MAX_SHOWN {
            out.text(", …");
        }
        for (k, (iter, name)) in self.iters.iter().enumerate() {
            out.text(&format!("{}{name} = ", if k == 0 { " (" } else { ", " }));
            out.value(&Expr::var(iter));
        }
        if !self.iters.is_empty() {
            out.text(")");
        }
        out.0
    }
}

/// Builder of a message.
struct Parts(Message);

impl Parts {
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(MessagePart::Text(t)) => t.push_str(text),
            _ => self.0.push(MessagePart::Text(text.to_string())),
        }
    }

    fn value(&mut self, e: &Expr) {
        match e.as_literal() {
            Some(Literal::Int(_)) => self.text(&print::expr(e)),
            _ => self.0.push(MessagePart::Value(e.clone())),
        }
    }

    fn element(&mut self, tensor: &Symbol, indices: &[Access]) {
        self.text(tensor.name());
        for (k, a) in indices.iter().enumerate() {
            self.text(if k == 0 { "[" } else { ", " });
            self.value(&a.index);
        }
        if !indices.is_empty() {
            self.text("]");
        }
    }
}

/// Returns the condition that the value is neither NaN nor infinite.
fn is_finite(e: &Expr) -> Expr {
    let largest = Expr::float(f64::INFINITY, e.dtype());
    Expr::apply(Op::Lt, vec![Expr::apply(Op::Abs, vec![e.clone()]), largest])
}

/// Returns the condition that all float operands of the value are finite: loaded elements and constants, and for a
/// choice those of the chosen operand.
fn operands_are_finite(e: &Expr) -> Expr {
    if !e.dtype().is_float() {
        return Expr::bool(true);
    }
    match e.kind() {
        ExprKind::Const(Literal::Float(f)) => Expr::bool(f.is_finite()),
        ExprKind::Load(..) => is_finite(e),
        ExprKind::Apply(Op::Select, args) => {
            let (then, otherwise) = (operands_are_finite(&args[1]), operands_are_finite(&args[2]));
            if then == otherwise { then } else { args[0].select(&then, &otherwise) }
        }
        _ => {
            let mut seen: Vec<Expr> = Vec::new();
            for c in e.children() {
                let cond = operands_are_finite(c);
                if !seen.contains(&cond) {
                    seen.push(cond);
                }
            }
            seen.iter().fold(Expr::bool(true), |all, c| all.and(c))
        }
    }
}

/// Returns whether evaluation may yield NaN or infinity from finite operands.
fn may_yield_nonfinite(e: &Expr) -> bool {
    if !e.dtype().is_float() {
        return false;
    }
    match e.kind() {
        ExprKind::Apply(op, args) => !op.info().keeps_finite || args.iter().any(may_yield_nonfinite),
        // f32 holds the range of every integer type.
        ExprKind::Cast(inner) => {
            let wide = matches!(e.dtype(), DType::F32 | DType::F64);
            let narrows = inner.dtype().is_float() && inner.dtype().size() > e.dtype().size();
            narrows || !wide && !inner.dtype().is_float() || may_yield_nonfinite(inner)
        }
        _ => false,
    }
}

/// Collects the loads that are evaluated unconditionally, without duplicates; lazy operands are skipped.
fn unconditional(e: &Expr, out: &mut Vec<Expr>) {
    if effects::loads(e).is_empty() {
        return;
    }
    match e.kind() {
        ExprKind::Load(..) if !out.contains(e) => out.push(e.clone()),
        ExprKind::Load(..) => {}
        ExprKind::Apply(op, args) if op.is_lazy() => unconditional(&args[0], out),
        _ => e.children().into_iter().for_each(|c| unconditional(c, out)),
    }
}
