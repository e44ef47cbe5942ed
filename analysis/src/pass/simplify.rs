//! Simplification of a program by the facts that hold at each point of it.
//!
//! **Does**: removes branches, operands of `and`, `or`, `select`, `min` and `max`, and assertions that the facts
//! decide; folds integers that can only have one value, and floats exactly; simplifies i64 arithmetic (`(i*4 + j) // 4`
//! with `0 <= j < 4` is `i`); removes loops without iterations or with empty bodies, and replaces the iterator of a
//! loop with one iteration by its first value; removes a store that the next statement overwrites.
//!
//! **Requires**: a valid program, logical or lowered.
//!
//! **Ensures**: remaining statements keep their ids and origins; a loop with one iteration is replaced by its body. A
//! statement that could stop the program is only dropped if it is proved not to.
//!
//! **Example**
//!
//! before
//! ```text
//! for i in range(n):
//!     for j in range(4):
//!         if i * 4 + j >= 0:
//!             assert (i * 4 + j) // 4 < n
//!             y[(i * 4 + j) // 4] = x[(i * 4 + j) // 4, (i * 4 + j) % 4]
//! ```
//! after
//! ```text
//! for i in range(n):
//!     for j in range(4):
//!         y[i] = x[i, j]
//! ```
//!
//! **Leaves alone**: floats, except constants (no reassociation, and `x * 0` and `x + 0.0` stay); messages of
//! assertions; `Assume`; declarations (see [`super::dead`]).

use super::{float, substitute};
use crate::query::{Context, complement};
use rustc_hash::FxHashMap;
use taffeta_ast::op::Op;
use taffeta_ast::{DType, Expr, ExprKind, Extent, Func, Stmt, StmtKind};

/// Returns the simplified program.
pub fn run(func: &Func) -> Func {
    let mut s = Simplifier {
        facts: Context::new(func),
        structured: func.is_structured(),
        done: FxHashMap::default(),
        nodes: FxHashMap::default(),
    };
    func.with_body(s.stmt(&func.body))
}

struct Simplifier {
    facts: Context,
    /// Whether values may be of the fill of a structured tensor, for which conditions on elements matter (see
    /// [`super::fill_propagation`]).
    structured: bool,
    /// Simplified expressions, each with the version of the facts it holds for.
    done: FxHashMap<Expr, (u64, Expr)>,
    /// Hash-consed expressions.
    nodes: FxHashMap<Expr, Expr>,
}

impl Simplifier {
    /// Simplifies a statement. Leaves the facts that hold after it.
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        let new = self.rewrite(stmt);
        self.facts.after(stmt);
        new
    }

    fn rewrite(&mut self, stmt: &Stmt) -> Stmt {
        match stmt.kind() {
            StmtKind::Seq(stmts) => self.seq(stmt, stmts),
            StmtKind::If { cond, then, otherwise } => self.branch(stmt, cond, then, otherwise.as_ref()),
            StmtKind::For { iter, extent, body, .. } => self.repeat(stmt, iter, extent, body),
            StmtKind::Assert { cond, message, kind } => {
                let cond = self.expr(cond);
                if cond.as_bool() == Some(true) {
                    Stmt::nop()
                } else {
                    let kind = StmtKind::Assert { cond, message: message.clone(), kind: *kind };
                    if &kind == stmt.kind() { stmt.clone() } else { stmt.with_kind(kind) }
                }
            }
            StmtKind::Assume { .. } => stmt.clone(),
            StmtKind::While { cond, body } => {
                let mark = self.facts.mark();
                self.facts.enter_while(cond, body);
                let new = self.stmt(body);
                self.facts.pop(mark);
                // The condition is evaluated before every iteration, so facts from inside of the loop do not hold for
                // it.
                if new.same_node(body) {
                    stmt.clone()
                } else {
                    stmt.with_kind(StmtKind::While { cond: cond.clone(), body: new })
                }
            }
            StmtKind::VarDef { tensor, body } => {
                let mark = self.facts.mark();
                self.facts.declare(tensor);
                let body = self.stmt(body);
                self.facts.pop(mark);
                // A size that wraps stops the program, and must continue to do so.
                stmt.map(&mut |_| body.clone(), &mut |e| if self.facts.is_exact(e) { self.expr(e) } else { e.clone() })
            }
            _ => stmt.map(&mut Stmt::clone, &mut |e| self.expr(e)),
        }
    }

    fn seq(&mut self, stmt: &Stmt, stmts: &[Stmt]) -> Stmt {
        let mark = self.facts.mark();
        let mut new: Vec<Stmt> = Vec::with_capacity(stmts.len());
        for s in stmts {
            let t = self.stmt(s);
            if new.last().is_some_and(|last| self.overwrites(&t, last)) {
                new.pop();
            }
            if !t.is_nop() {
                new.push(t);
            }
        }
        self.facts.pop(mark);
        if new.len() == stmts.len() && new.iter().zip(stmts).all(|(a, b)| a.same_node(b)) {
            return stmt.clone();
        }
        let flat = Stmt::seq(new, stmt.origin().clone());
        match flat.kind() {
            StmtKind::Seq(_) => stmt.with_kind(flat.kind().clone()),
            _ => flat,
        }
    }

    /// Returns whether `second` makes the store `first`, right before it, redundant: it writes the same element without
    /// reading the tensor, and `first` cannot stop the program in a way that `second` does not.
    fn overwrites(&mut self, second: &Stmt, first: &Stmt) -> bool {
        match (first.kind(), second.kind()) {
            (
                StmtKind::Store { tensor, indices, value },
                StmtKind::Store { tensor: again, indices: same, value: new },
            ) => {
                tensor == again
                    && indices == same
                    && !value.may_fail()
                    && !crate::query::effects::loads(new).contains(tensor)
                    && indices.iter().all(|a| !crate::query::effects::loads(&a.index).contains(tensor))
            }
            _ => false,
        }
    }

    fn branch(&mut self, stmt: &Stmt, cond: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Stmt {
        let new_cond = self.expr(cond);
        if let Some(taken) = new_cond.as_bool() {
            return match (taken, otherwise) {
                (true, _) => self.stmt(then),
                (false, Some(o)) => self.stmt(o),
                (false, None) => Stmt::nop(),
            };
        }
        let mark = self.facts.mark();
        self.facts.assume(cond);
        let new_then = self.stmt(then);
        self.facts.pop(mark);
        let new_otherwise = otherwise.map(|o| {
            let mark = self.facts.mark();
            self.facts.assume_not(cond);
            let new = self.stmt(o);
            self.facts.pop(mark);
            new
        });
        let new_otherwise = new_otherwise.filter(|o| !o.is_nop());
        if new_then.is_nop() && new_otherwise.is_none() && !self.facts.may_stop(cond) {
            return Stmt::nop();
        }
        let kind = match (new_then.is_nop(), new_otherwise) {
            (true, Some(o)) => StmtKind::If { cond: self.expr(&new_cond.negate()), then: o, otherwise: None },
            (_, otherwise) => StmtKind::If { cond: new_cond, then: new_then, otherwise },
        };
        if &kind == stmt.kind() { stmt.clone() } else { stmt.with_kind(kind) }
    }

    fn repeat(&mut self, stmt: &Stmt, iter: &taffeta_ast::Symbol, extent: &Extent, body: &Stmt) -> Stmt {
        let Extent::Range { begin, end, step } = extent else {
            return stmt.map(&mut |s| self.stmt(s), &mut Expr::clone);
        };
        let [begin, end, step] = [begin, end, step].map(|e| self.expr(e));
        let bounds_may_stop = [&begin, &end, &step].into_iter().any(|e| self.facts.may_stop(e));
        let up = step.as_int().unwrap_or(0).signum();
        if up != 0 && !bounds_may_stop {
            let runs = if up > 0 { begin.less(&end) } else { end.less(&begin) };
            if self.facts.refute(&runs) {
                return Stmt::nop();
            }
            let second = begin.plus(&step);
            let again = if up > 0 { second.less(&end) } else { end.less(&second) };
            // The iterator keeps the value that `begin` had on entry, so `begin` must not load from tensors.
            let constant = crate::query::effects::loads(&begin).is_empty();
            if constant && self.facts.refute(&again) && self.facts.prove(&runs) {
                return self.stmt(&substitute::variable(body, iter, &begin));
            }
        }
        let mark = self.facts.mark();
        let extent = Extent::Range { begin, end, step };
        self.facts.enter_loop(iter, &extent, body);
        let new_body = self.stmt(body);
        self.facts.pop(mark);
        if new_body.is_nop() && up != 0 && !bounds_may_stop {
            return Stmt::nop();
        }
        match stmt.kind() {
            StmtKind::For { props, .. } => {
                let kind = StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body: new_body };
                if &kind == stmt.kind() { stmt.clone() } else { stmt.with_kind(kind) }
            }
            _ => stmt.clone(),
        }
    }

    /// Simplifies an expression under the current facts.
    fn expr(&mut self, e: &Expr) -> Expr {
        if e.children().is_empty() {
            return self.rules(e);
        }
        let version = self.facts.version();
        if let Some((at, known)) = self.done.get(e)
            && *at == version
        {
            return known.clone();
        }
        let inner = match e.kind() {
            ExprKind::Apply(op, args) if op.is_lazy() => self.lazy(*op, args),
            _ => e.map_children(&mut |c| self.expr(c)),
        };
        let inner = self.canonical(inner);
        let new = self.rules(&inner);
        let new = self.canonical(new);
        self.done.insert(e.clone(), (version, new.clone()));
        new
    }

    /// Returns the hash-consed node for an expression. Comparing equal expressions that share no nodes takes time
    /// linear in their size, which is exponential in their depth where operands are shared.
    fn canonical(&mut self, e: Expr) -> Expr {
        self.nodes.entry(e).or_insert_with_key(Expr::clone).clone()
    }

    /// Simplifies the operands of a lazy operator under the condition under which they are evaluated.
    fn lazy(&mut self, op: Op, args: &[Expr]) -> Expr {
        let first = self.expr(&args[0]);
        let under = |s: &mut Simplifier, holds: bool, e: &Expr| {
            let mark = s.facts.enter_guard(&args[0], holds);
            let new = s.expr(e);
            s.facts.leave_guard(mark);
            new
        };
        let mut new = vec![first];
        new.push(under(self, op != Op::Or, &args[1]));
        if op == Op::Select {
            new.push(under(self, false, &args[2]));
        }
        if new == args {
            Expr::raw(ExprKind::Apply(op, new), args[args.len() - 1].dtype())
        } else {
            Expr::apply(op, new)
        }
    }

    /// Applies the rules for one node with simplified operands.
    fn rules(&mut self, e: &Expr) -> Expr {
        if e.as_literal().is_some() {
            return e.clone();
        }
        if e.dtype() == DType::Bool {
            return self.condition(e);
        }
        match e.kind() {
            ExprKind::Apply(op, args) if e.dtype().is_float() => {
                if let (Op::Select, Some(same)) = (op, args.get(1).filter(|a| args.get(2) == Some(a))) {
                    let counts = self.structured && !args[0].is_of_indices();
                    return if counts || self.facts.may_stop(&args[0]) { e.clone() } else { same.clone() };
                }
                float::fold(*op, args).unwrap_or_else(|| e.clone())
            }
            ExprKind::Cast(inner) if inner.dtype().is_float() => {
                float::to_int(inner, e.dtype()).unwrap_or_else(|| e.clone())
            }
            ExprKind::Cast(inner) => {
                // A cast through a type that holds every value of the first type is dropped.
                if let (ExprKind::Cast(first), Some((lo, hi))) = (inner.kind(), inner.dtype().int_range())
                    && let Some((from, to)) = first.dtype().int_range()
                    && inner.dtype() != DType::Bool
                    && lo <= from
                    && to <= hi
                {
                    return first.clone().cast(e.dtype());
                }
                self.integer(e)
            }
            _ if e.dtype().is_int() => self.integer(e),
            _ => e.clone(),
        }
    }

    fn integer(&mut self, e: &Expr) -> Expr {
        let value = self.facts.constant(e);
        if value.is_none() && !matches!(e.kind(), ExprKind::Apply(..)) {
            return e.clone();
        }
        if let ExprKind::Apply(op @ (Op::Min | Op::Max), args) = e.kind() {
            let (a, b) = (&args[0], &args[1]);
            let (le, ge) = (a.less_eq(b), b.less_eq(a));
            let (small, large) = if *op == Op::Min { (a, b) } else { (b, a) };
            if !self.facts.may_stop(large) && self.facts.prove(&le) {
                return small.clone();
            }
            if !self.facts.may_stop(small) && self.facts.prove(&ge) {
                return large.clone();
            }
        }
        let new = match value {
            Some(v) => v,
            None => self.facts.shorten(e),
        };
        if new == *e || self.facts.may_stop(e) { e.clone() } else { new }
    }

    fn condition(&mut self, e: &Expr) -> Expr {
        for holds in [true, false] {
            let decided = if holds { self.facts.prove(e) } else { self.facts.refute(e) };
            if decided {
                return if self.facts.may_stop(e) { e.clone() } else { Expr::bool(holds) };
            }
        }
        let ExprKind::Apply(op, args) = e.kind() else { return e.clone() };
        match (op, args[0].kind()) {
            (Op::Not, ExprKind::Apply(inner, operands)) if inner.is_comparison() => {
                // The negation of `a < b` is `a >= b` only if neither operand can be NaN.
                let exact = !operands[0].dtype().is_float() || matches!(inner, Op::Eq | Op::Ne);
                if exact { Expr::apply(complement(*inner), operands.clone()) } else { e.clone() }
            }
            (Op::Select, _) => match (args[1].as_bool(), args[2].as_bool()) {
                (Some(true), Some(false)) => args[0].clone(),
                (Some(false), Some(true)) => args[0].negate(),
                _ => e.clone(),
            },
            _ if args[0].dtype().is_float() => float::fold(*op, args).unwrap_or_else(|| e.clone()),
            _ => e.clone(),
        }
    }
}
