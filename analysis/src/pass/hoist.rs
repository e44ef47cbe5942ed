//! Loop-invariant code motion for assertions and costly expressions.
//!
//! **Does**:
//! - An assertion whose condition is loop-invariant moves in front of the outermost loop that allows it, under the
//!   condition that the enclosing loops and branches would have reached it (`n <= 0 or …`). It does not leave a loop
//!   that prints: the output before the program stops stays the same. An empty declaration
//!   ([`super::dead::run_with_size_checks`]), which asserts that its sizes fit, moves in the same way.
//! - A costly expression (a division, a transcendental function) that cannot stop the program and is loop-invariant is
//!   computed once into a scalar in front of the outermost loop that allows it.
//!
//! **Requires**: a valid program, logical or lowered. Run after [`super::simplify`], so that only unproved assertions
//! move.
//!
//! **Ensures**: a program that stops still stops, and writes nothing before that it would not have written; where
//! several checks fail, another one of them may be the first. The program evaluates no additional expressions, except
//! ones that cannot stop it. A moved statement or expression keeps its origin, a statement also its id.
//!
//! **Example**
//!
//! before
//! ```text
//! for i in range(n):
//!     for j in range(m):
//!         assert cast(idx[i], i64) < n
//!         y[i] += x[i, j] * exp(a)
//! ```
//! after
//! ```text
//! exp_value = exp(a)
//! for i in range(n):
//!     assert m <= 0 or cast(idx[i], i64) < n
//!     for j in range(m):
//!         y[i] += x[i, j] * exp_value
//! ```
//!
//! **Leaves alone**: loops over the reals and `while`; loads that are not costly by themselves (a C compiler moves
//! them); loads of tensors other than parameters (a local may not have been written yet).

use super::substitute;
use crate::query::{Context, effects};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::expr::ExprKind;
use taffeta_ast::op::Op;
use taffeta_ast::stmt::{AssertKind, MessagePart, Role};
use taffeta_ast::{Expr, Extent, Func, ParamMode, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// Hoists assertions and costly expressions out of loops.
pub fn run(func: &Func) -> Func {
    let mut h = Hoister::new(func);
    let body = h.stmt(&func.body);
    func.with_body(body)
}

struct Hoister {
    facts: Context,
    /// Parameters, which have values everywhere.
    params: FxHashSet<Symbol>,
    /// Assertions that were moved in front of an enclosing loop.
    moved: FxHashSet<StmtId>,
}

/// Symbols that change in a loop.
struct Variant {
    /// Iterator of the loop, iterators of inner loops, and tensors that are written in the body.
    symbols: FxHashSet<Symbol>,
    /// Memo of whether an expression mentions any of these symbols.
    memo: FxHashMap<Expr, bool>,
}

impl Variant {
    fn of(iter: &Symbol, body: &Stmt) -> Variant {
        let mut symbols = effects::writes(body);
        symbols.insert(iter.clone());
        body.walk(&mut |s| {
            if let StmtKind::For { iter, .. } = s.kind() {
                symbols.insert(iter.clone());
            }
        });
        Variant { symbols, memo: FxHashMap::default() }
    }

    /// Returns whether the expression may have another value in another iteration.
    fn changes(&mut self, e: &Expr) -> bool {
        if let Some(known) = self.memo.get(e) {
            return *known;
        }
        let here = match e.kind() {
            ExprKind::Var(s) | ExprKind::Load(s, _) | ExprKind::Measure(_, s) => self.symbols.contains(s),
            _ => false,
        };
        let answer = here || e.children().into_iter().any(|c| self.changes(c));
        self.memo.insert(e.clone(), answer);
        answer
    }
}

impl Hoister {
    fn new(func: &Func) -> Hoister {
        let always = func.params.iter().filter(|p| matches!(p.mode, ParamMode::In | ParamMode::InOut));
        Hoister {
            facts: Context::new(func),
            params: always.map(|p| p.tensor.symbol.clone()).collect(),
            moved: FxHashSet::default(),
        }
    }

    /// Rewrites a statement without the assertions that were moved. Leaves the facts that hold after the statement.
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if self.moved.contains(&stmt.id()) {
            return Stmt::nop();
        }
        let new = match stmt.kind() {
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. } => {
                return self.repeat(stmt, iter, [begin, end, step], body);
            }
            StmtKind::Seq(_)
            | StmtKind::VarDef { .. }
            | StmtKind::If { .. }
            | StmtKind::While { .. }
            | StmtKind::For { .. } => self.inside(stmt),
            _ => stmt.clone(),
        };
        self.facts.after(stmt);
        new
    }

    /// Rewrites the children of a statement.
    fn inside(&mut self, stmt: &Stmt) -> Stmt {
        let mark = self.facts.mark();
        let new = match stmt.kind() {
            StmtKind::VarDef { tensor, .. } => {
                self.facts.declare(tensor);
                stmt.map(&mut |s| self.stmt(s), &mut Expr::clone)
            }
            StmtKind::For { iter, extent, body, .. } => {
                self.facts.enter_loop(iter, extent, body);
                stmt.map(&mut |s| self.stmt(s), &mut Expr::clone)
            }
            StmtKind::While { cond, body } => {
                self.facts.enter_while(cond, body);
                stmt.map(&mut |s| self.stmt(s), &mut Expr::clone)
            }
            StmtKind::If { cond, then, otherwise } => {
                self.facts.assume(cond);
                let then = self.stmt(then);
                self.facts.pop(mark);
                let otherwise = otherwise.as_ref().map(|o| {
                    self.facts.assume_not(cond);
                    self.stmt(o)
                });
                let kind = StmtKind::If { cond: cond.clone(), then, otherwise };
                if &kind == stmt.kind() { stmt.clone() } else { stmt.with_kind(kind) }
            }
            _ => stmt.map(&mut |s| self.stmt(s), &mut Expr::clone),
        };
        self.facts.pop(mark);
        new
    }

    fn repeat(&mut self, stmt: &Stmt, iter: &Symbol, bounds: [&Expr; 3], body: &Stmt) -> Stmt {
        let mut variant = Variant::of(iter, body);
        let mut before = self.assertions(stmt, bounds, &mut variant);
        let (scalars, new) = self.expressions(stmt, body, &mut variant);
        let new = self.inside(&new);
        self.facts.after(stmt);
        // The expressions may be safe only because of the assertions, so the assertions come first.
        let mut rest = new;
        for (tensor, value) in scalars.into_iter().rev() {
            let origin = stmt.origin().derive("hoist", "value");
            let store = StmtKind::Store { tensor: tensor.symbol.clone(), indices: Vec::new(), value };
            let seq = Stmt::seq([Stmt::new(store, origin.clone()), rest], origin.clone());
            rest = Stmt::new(StmtKind::VarDef { tensor: Arc::new(tensor), body: seq }, origin);
        }
        if before.is_empty() {
            return rest;
        }
        before.push(rest);
        Stmt::seq(before, stmt.origin().derive("hoist", "sequence"))
    }

    /// Collects the assertions inside a loop that can be hoisted in front of it, and assumes them. They are marked as
    /// moved.
    fn assertions(&mut self, stmt: &Stmt, bounds: [&Expr; 3], variant: &mut Variant) -> Vec<Stmt> {
        let mut out = Vec::new();
        let mut guards = Vec::new();
        if let StmtKind::For { body, .. } = stmt.kind()
            && !effects::prints(body)
            && let Some(guard) = self.runs(bounds)
        {
            self.under(guard, body, &mut guards, variant, &mut out);
        }
        out
    }

    /// Returns the condition under which a loop runs at least once; `None` unless its step is a nonzero constant.
    fn runs(&mut self, [begin, end, step]: [&Expr; 3]) -> Option<Expr> {
        let guard = match step.as_int()?.signum() {
            1 => begin.less(end),
            -1 => end.less(begin),
            _ => return None,
        };
        Some(if self.facts.prove(&guard) { Expr::bool(true) } else { guard })
    }

    /// Collects the assertions and empty declarations that the first iteration of a loop is sure to reach under the
    /// guards, which are invariant in the loop.
    fn collect(&mut self, stmt: &Stmt, guards: &mut Vec<Expr>, variant: &mut Variant, out: &mut Vec<Stmt>) {
        match stmt.kind() {
            StmtKind::Seq(stmts) => {
                for s in stmts {
                    self.collect(s, guards, variant, out);
                }
            }
            StmtKind::VarDef { tensor, body } if body.is_nop() => self.declaration(stmt, tensor, guards, variant, out),
            StmtKind::VarDef { body, .. } => self.collect(body, guards, variant, out),
            StmtKind::For { extent: Extent::Range { begin, end, step }, body, .. } => {
                let bounds = [begin, end, step];
                if bounds.iter().any(|e| variant.changes(e)) {
                    return;
                }
                if let Some(guard) = self.runs(bounds) {
                    self.under(guard, body, guards, variant, out);
                }
            }
            StmtKind::If { cond, then, otherwise } if !variant.changes(cond) => {
                self.under(cond.clone(), then, guards, variant, out);
                if let Some(o) = otherwise {
                    self.under(cond.negate(), o, guards, variant, out);
                }
            }
            StmtKind::Assert { cond, message, kind }
                if *kind != AssertKind::Finite && !self.moved.contains(&stmt.id()) =>
            {
                let shown = message.iter().filter_map(|p| match p {
                    MessagePart::Value(e) => Some(e),
                    MessagePart::Text(_) => None,
                });
                if variant.changes(cond) || shown.into_iter().any(|e| variant.changes(e)) {
                    return;
                }
                // The guarded condition is a lazily evaluated disjunction: `not guard or cond`.
                let whole = guards.iter().rev().fold(cond.clone(), |c, g| contrary(g).or(&c));
                if self.facts.may_stop(&whole) {
                    return;
                }
                self.moved.insert(stmt.id());
                if !self.facts.prove(&whole) {
                    let kind = StmtKind::Assert { cond: whole.clone(), message: message.clone(), kind: *kind };
                    out.push(stmt.with_kind(kind));
                    self.facts.assume(&whole);
                }
            }
            _ => {}
        }
    }

    /// Hoists an empty declaration, which asserts that its sizes fit, under the guards.
    fn declaration(
        &mut self,
        stmt: &Stmt,
        tensor: &Tensor,
        guards: &[Expr],
        variant: &mut Variant,
        out: &mut Vec<Stmt>,
    ) {
        let sizes = || tensor.shape.iter().chain(guards);
        if self.moved.contains(&stmt.id())
            || tensor.shape.iter().any(|d| variant.changes(d))
            || sizes().any(|e| self.facts.may_stop(e))
        {
            return;
        }
        self.moved.insert(stmt.id());
        let under = |then: Stmt, guard: &Expr| {
            let kind = StmtKind::If { cond: guard.clone(), then, otherwise: None };
            Stmt::new(kind, stmt.origin().derive("hoist", "guard"))
        };
        out.push(guards.iter().rev().fold(stmt.clone(), under));
    }

    fn under(&mut self, guard: Expr, body: &Stmt, guards: &mut Vec<Expr>, variant: &mut Variant, out: &mut Vec<Stmt>) {
        if guard.as_bool() == Some(false) || guards.len() > 3 {
            return;
        }
        let depth = guards.len();
        guards.extend(guard.as_bool().is_none().then_some(guard));
        self.collect(body, guards, variant, out);
        guards.truncate(depth);
    }

    /// Returns the costly loop-invariant expressions inside a loop, each with the scalar that holds it, and the loop
    /// that reads the scalars.
    fn expressions(&mut self, stmt: &Stmt, body: &Stmt, variant: &mut Variant) -> (Vec<(Tensor, Expr)>, Stmt) {
        let mut found: Vec<(Tensor, Expr)> = Vec::new();
        let mut seen = FxHashMap::default();
        let mut costly = Costly::default();
        let new = substitute::rewrite(
            body,
            &mut |e| {
                if !costly.within(e) || variant.changes(e) || !self.may_run_early(e) {
                    return None;
                }
                let symbol = Symbol::new(name(e));
                let tensor = Tensor::dense(symbol, e.dtype(), Vec::new(), Role::Workspace);
                let load = tensor.load([]);
                found.push((tensor, e.clone()));
                Some(load)
            },
            &mut seen,
        );
        match stmt.kind() {
            StmtKind::For { iter, extent, props, .. } if !found.is_empty() => {
                let kind =
                    StmtKind::For { iter: iter.clone(), extent: extent.clone(), props: props.clone(), body: new };
                (found, stmt.with_kind(kind))
            }
            _ => (found, stmt.clone()),
        }
    }

    /// Returns whether the expression can be evaluated speculatively: it only loads parameters and cannot stop the
    /// program.
    fn may_run_early(&mut self, e: &Expr) -> bool {
        effects::loads(e).is_subset(&self.params) && !self.facts.may_stop(e)
    }
}

/// Negates a guard; an integer comparison is reversed instead.
fn contrary(guard: &Expr) -> Expr {
    if let ExprKind::Apply(Op::Lt, args) = guard.kind()
        && args[0].dtype().is_int()
    {
        return args[1].less_eq(&args[0]);
    }
    guard.negate()
}

/// Memo of the expressions that contain a costly operation.
#[derive(Default)]
struct Costly(FxHashMap<Expr, bool>);

impl Costly {
    fn within(&mut self, e: &Expr) -> bool {
        if let Some(known) = self.0.get(e) {
            return *known;
        }
        let answer = is_costly(e) || e.children().into_iter().any(|c| self.within(c));
        self.0.insert(e.clone(), answer);
        answer
    }
}

/// Minimum cost of an operator for which hoisting is worthwhile.
const COSTLY: u32 = 4;

/// Returns whether the operation itself costs many times an addition.
fn is_costly(e: &Expr) -> bool {
    let ExprKind::Apply(op, args) = e.kind() else { return false };
    // A division by a constant becomes a multiplication and shifts.
    let constant = matches!(op, Op::FloorDiv | Op::Mod) && args[1].as_literal().is_some();
    op.info().cost >= COSTLY && !constant
}

/// Returns the name of an expression's scalar.
fn name(e: &Expr) -> String {
    match e.kind() {
        ExprKind::Apply(Op::FloorDiv | Op::Div, _) => "quotient".to_string(),
        ExprKind::Apply(Op::Mod, _) => "remainder".to_string(),
        ExprKind::Apply(op, _) => format!("{}_value", op.info().name.trim_matches('*')),
        _ => "value".to_string(),
    }
}
