//! Insertion of run-time checks: an assertion before every statement that might fail.
//!
//! **Does**: for every access, division, shift, power, cast and loop step, inserts an `Assert` of its precondition
//! before the statement, under the conditions that guard a lazy operand; proved conditions are omitted. **Requires**: a
//! logical program. **Ensures**: operators and accesses need no checks in C; statements keep their ids, and the origin
//! of an assertion is derived from its statement's.
//!
//! ```text
//! y[i] += e[adj[i, j]]          →          assert 0 <= adj[i, j] and adj[i, j] < n_faces       (kind Index)
//!                                          y[i] += e[adj[i, j]]
//!
//! y[i] = x[k] if k < n else 0.0 →          if k < n:
//!                                              assert 0 <= k and k < n
//!                                          y[i] = x[k] if k < n else 0.0
//! ```
//!
//! **Leaves alone**: floating-point operators, which always have a value. An asserted condition is a fact from there
//! on, and is not asserted again until a tensor in it is written.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::expr::{Access, Literal};
use taffeta_ast::stmt::{AssertKind, Message, MessagePart};
use taffeta_ast::{DType, Expr, ExprKind, Extent, Func, Op, Origin, PrintPart, Stmt, StmtKind, Symbol, Tensor};

/// The program with its assertions, and the entry's assertions: conditions on the shapes of parameters and results that
/// must hold before any computation.
pub(super) struct Checked {
    pub func: Func,
    pub entry: Stmt,
}

pub(super) fn run(func: &Func) -> Checked {
    let mut shapes: FxHashMap<Symbol, Vec<Expr>> = FxHashMap::default();
    // Shapes are computed when nothing is known except that sizes are in their range.
    let mut sizes_alone = Context::empty();
    func.sizes.iter().for_each(|s| sizes_alone.size(s));
    let mut entry = Vec::new();
    for t in func.interface() {
        shapes.insert(t.symbol.clone(), t.shape.clone());
        let mut found = Obligations::new(&shapes, &mut sizes_alone, Origin::none());
        t.shape.iter().for_each(|e| found.expr(e));
        entry.extend(found.out);
    }
    let body = stmt(&func.body, &mut shapes, &mut Context::new(func));
    Checked { func: func.with_body(body), entry: Stmt::seq(entry, Origin::none()) }
}

fn stmt(s: &Stmt, shapes: &mut FxHashMap<Symbol, Vec<Expr>>, facts: &mut Context) -> Stmt {
    let checks = checks(s, shapes, facts);
    if let StmtKind::VarDef { tensor, .. } = s.kind() {
        shapes.insert(tensor.symbol.clone(), tensor.shape.clone());
    }
    let new = walk::map(s, facts, &mut |inside, facts| stmt(inside, shapes, facts));
    facts.after(s);
    let s = new;
    if checks.is_empty() {
        return s;
    }
    let origin = s.origin().derive("checks", "group");
    Stmt::seq(checks.into_iter().chain([s]), origin)
}

/// Returns the condition that `index` has a value in the range of a dimension, as a conjunction evaluated in order.
/// Proved parts are omitted.
pub(super) fn in_range(
    tensors: &FxHashMap<Symbol, Arc<Tensor>>,
    (tensor, d): (&Tensor, usize),
    index: &Expr,
    facts: &mut Context,
) -> Expr {
    let mut shapes: FxHashMap<Symbol, Vec<Expr>> = FxHashMap::default();
    for t in effects::loads(index) {
        shapes.extend(tensors.get(&t).map(|of| (t, of.shape.clone())));
    }
    facts.scoped(|facts| {
        let mut found = Obligations::new(&shapes, facts, Origin::none());
        found.index(tensor.symbol.name(), d, index, &tensor.shape[d]);
        all(&found.out)
    })
}

/// Returns the conjunction of assertions, which may be under conditions.
fn all(assertions: &[Stmt]) -> Expr {
    let one = |s: &Stmt| match s.kind() {
        StmtKind::Assert { cond, .. } => cond.clone(),
        StmtKind::If { cond, then, .. } => cond.negate().or(&all(std::slice::from_ref(then))),
        StmtKind::Seq(inner) => all(inner),
        _ => unreachable!("obligations are assertions under conditions"),
    };
    assertions.iter().map(one).fold(Expr::bool(true), |a, b| a.and(&b))
}

/// Collects the assertions for one statement, in order of evaluation.
fn checks(s: &Stmt, shapes: &FxHashMap<Symbol, Vec<Expr>>, facts: &mut Context) -> Vec<Stmt> {
    let mut found = Obligations::new(shapes, facts, s.origin().clone());
    match s.kind() {
        StmtKind::Store { tensor, indices, value } | StmtKind::ReduceTo { tensor, indices, value, .. } => {
            found.access(tensor, indices);
            found.expr(value);
        }
        StmtKind::VarDef { tensor, .. } => {
            // The allocation checks the tensor's sizes (not negative, not too large).
            tensor.shape.iter().for_each(|size| found.expr(size));
        }
        StmtKind::For { extent: Extent::Range { begin, end, step }, .. } => {
            for e in [begin, end, step] {
                found.expr(e);
            }
            let moves = Expr::apply(Op::Ne, vec![step.clone(), Expr::int(0)]);
            found.require(moves, AssertKind::Arithmetic, text("the step of `range` is 0"));
        }
        StmtKind::Assert { cond, message, .. } => {
            found.expr(cond);
            // The message is evaluated only if the condition fails.
            let values: Vec<&Expr> = message
                .iter()
                .filter_map(|p| match p {
                    MessagePart::Value(e) => Some(e),
                    MessagePart::Text(_) => None,
                })
                .collect();
            found.guarded(cond, false, &values);
        }
        StmtKind::Print { parts } => {
            for part in parts {
                if let PrintPart::Tensor { tensor, at, .. } = part {
                    let at: Vec<Access> = at.iter().cloned().map(Access::from).collect();
                    found.access(tensor, &at);
                }
            }
            s.kind().exprs().into_iter().for_each(|e| found.expr(e));
        }
        // Assumptions are not evaluated.
        StmtKind::Assume { .. } => {}
        other => other.exprs().into_iter().for_each(|e| found.expr(e)),
    }
    found.out
}

/// Collector of the preconditions of one statement's expressions.
struct Obligations<'a> {
    shapes: &'a FxHashMap<Symbol, Vec<Expr>>,
    /// Facts at the current position, including the preconditions required so far.
    facts: &'a mut Context,
    origin: Origin,
    out: Vec<Stmt>,
}

fn text(s: impl Into<String>) -> Message {
    vec![MessagePart::Text(s.into())]
}

impl<'a> Obligations<'a> {
    fn new(shapes: &'a FxHashMap<Symbol, Vec<Expr>>, facts: &'a mut Context, origin: Origin) -> Obligations<'a> {
        Obligations { shapes, facts, origin, out: Vec::new() }
    }

    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Load(tensor, indices) => {
                self.access(tensor, indices);
            }
            ExprKind::Apply(Op::And, args) => {
                self.expr(&args[0]);
                self.guarded(&args[0], true, &[&args[1]]);
            }
            ExprKind::Apply(Op::Or, args) => {
                self.expr(&args[0]);
                self.guarded(&args[0], false, &[&args[1]]);
            }
            ExprKind::Apply(Op::Select, args) => {
                self.expr(&args[0]);
                self.guarded(&args[0], true, &[&args[1]]);
                self.guarded(&args[0], false, &[&args[2]]);
            }
            ExprKind::Apply(op, args) => {
                args.iter().for_each(|a| self.expr(a));
                if op.info().may_fail_on_int && args[0].dtype().is_int() {
                    self.operator(*op, args);
                }
            }
            ExprKind::Cast(inner) => {
                self.expr(inner);
                if inner.dtype().is_float() && e.dtype().is_int() {
                    self.cast(inner, e.dtype());
                }
            }
            _ => e.children().into_iter().for_each(|c| self.expr(c)),
        }
    }

    /// Collects the preconditions of `operands`, evaluated only where `cond` is `holds`.
    fn guarded(&mut self, cond: &Expr, holds: bool, operands: &[&Expr]) {
        let outer = std::mem::take(&mut self.out);
        let guard = self.facts.enter_guard(cond, holds);
        operands.iter().for_each(|e| self.expr(e));
        self.facts.leave_guard(guard);
        let inside = std::mem::replace(&mut self.out, outer);
        if !inside.is_empty() {
            let origin = self.origin.derive("checks", "guard");
            let cond = if holds { cond.clone() } else { cond.negate() };
            let then = Stmt::seq(inside, origin.clone());
            self.out.push(Stmt::new(StmtKind::If { cond, then, otherwise: None }, origin));
        }
    }

    /// Requires that every index has a value in the range of its dimension.
    fn access(&mut self, tensor: &Symbol, indices: &[Access]) {
        let Some(shape) = self.shapes.get(tensor) else { return };
        for (d, (access, size)) in indices.iter().zip(shape).enumerate() {
            self.index(tensor.name(), d, &access.index, size);
        }
    }

    /// Requires that the index of one dimension has a value in range.
    fn index(&mut self, tensor: &str, d: usize, index: &Expr, size: &Expr) {
        self.expr(index);
        let cond = Expr::int(0).less_eq(index).and(&index.less(size));
        let message = vec![
            MessagePart::Text("index ".into()),
            MessagePart::Value(index.clone()),
            MessagePart::Text(format!(" is out of range for dimension {d} of `{tensor}`, which has size ")),
            MessagePart::Value(size.clone()),
        ];
        self.require(cond, AssertKind::Index, message);
    }

    fn operator(&mut self, op: Op, args: &[Expr]) {
        let (a, b) = (&args[0], &args[1]);
        let dtype = a.dtype();
        let number = |v: i128| Expr::literal(Literal::Int(v), dtype);
        match op {
            Op::FloorDiv | Op::Mod => {
                let nonzero = Expr::apply(Op::Ne, vec![b.clone(), number(0)]);
                self.require(nonzero, AssertKind::Arithmetic, text("division by zero"));
                if let (true, Some((lo, _))) = (dtype.is_signed_int(), dtype.int_range()) {
                    let fits = Expr::apply(Op::Ne, vec![b.clone(), number(-1)])
                        .or(&Expr::apply(Op::Ne, vec![a.clone(), number(lo)]));
                    let message = text(format!("{lo} divided by -1 does not fit its type {dtype}"));
                    self.require(fits, AssertKind::Arithmetic, message);
                }
            }
            Op::Shl | Op::Shr | Op::Pow if dtype.is_signed_int() => {
                let (before, after) = match op {
                    Op::Pow => ("an integer to the power of ", ", which is negative; cast to a float first"),
                    _ => ("shift by the negative count ", ""),
                };
                let message = vec![
                    MessagePart::Text(before.into()),
                    MessagePart::Value(b.clone()),
                    MessagePart::Text(after.into()),
                ];
                self.require(number(0).less_eq(b), AssertKind::Arithmetic, message);
            }
            _ => {}
        }
    }

    /// Requires that a float cast to an integer type lies in its range. The comparison is done in f64, which represents
    /// every float and every lower end exactly; for the upper end the next power of two is the exclusive bound.
    fn cast(&mut self, e: &Expr, to: DType) {
        let Some((lo, hi)) = to.int_range() else { return };
        let wide = e.clone().cast(DType::F64);
        let below = (lo as f64) - 1.0;
        let low = if below < lo as f64 {
            Expr::float(below, DType::F64).less(&wide)
        } else {
            Expr::float(lo as f64, DType::F64).less_eq(&wide)
        };
        let high = wide.less(&Expr::float((hi + 1) as f64, DType::F64));
        let message = vec![
            MessagePart::Text("cannot cast ".into()),
            MessagePart::Value(e.clone()),
            MessagePart::Text(format!(" to {to}")),
        ];
        self.require(low.and(&high), AssertKind::Arithmetic, message);
    }

    fn require(&mut self, cond: Expr, kind: AssertKind, message: Message) {
        if self.facts.prove(&cond) {
            return;
        }
        self.facts.assume(&cond);
        let origin = self.origin.derive("checks", "assert");
        self.out.push(Stmt::new(StmtKind::Assert { cond, message, kind }, origin));
    }
}
