//! Rewriting by the algebra of fills (looplets, section 6.1): what a statement becomes where some accesses are known to
//! be elements that are not stored.
//!
//! An expression is *of the fill* if nothing but fills and constants went into it, or if a fill annihilated the rest;
//! the rules are [`taffeta_ast::algebra`]'s, and the interpreter applies the same ones element by element. A program's
//! own constants annihilate nothing.
//!
//! ```text
//! y[i] += A[i, j] * x[j]                     where A[i, j] is 0, not stored:      pass
//! y[i] = min(y[i], A[i, j] + x[j])           where A[i, j] is inf, not stored:    pass
//! y[i] += 0.0 * x[j]                         stays
//! ```

use rustc_hash::FxHashMap;
use taffeta_ast::algebra::{Side, annihilates, is_identity};
use taffeta_ast::stmt::{MessagePart, PrintPart};
use taffeta_ast::{Access, Expr, ExprKind, Extent, Literal, Op, Stmt, StmtKind, scalar};

/// A rewritten expression, and its value if it is of the fill.
#[derive(Clone, Debug)]
pub(crate) struct Folded {
    pub(crate) expr: Expr,
    pub(crate) fill: Option<Literal>,
}

/// Which expressions are elements that are not stored, and their value.
pub(crate) struct Rewriter<'f> {
    fill: &'f dyn Fn(&Expr) -> Option<Literal>,
    done: FxHashMap<Expr, Folded>,
}

/// The statement where these expressions are elements that are not stored. What is left of it keeps its ids.
pub(crate) fn run(s: &Stmt, fill: &dyn Fn(&Expr) -> Option<Literal>) -> Stmt {
    Rewriter { fill, done: FxHashMap::default() }.stmt(s)
}

impl Rewriter<'_> {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let kind = match s.kind() {
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let (indices, value) = (self.accesses(indices), self.expr(value));
                match value.fill {
                    Some(v) if is_identity(op.info().op, Side::Right, v) => return Stmt::nop(),
                    Some(v) if annihilates(op.info().op, Side::Right, v) => {
                        StmtKind::Store { tensor: tensor.clone(), indices, value: value.expr }
                    }
                    _ => StmtKind::ReduceTo { tensor: tensor.clone(), indices, op: *op, value: value.expr },
                }
            }
            StmtKind::Store { tensor, indices, value } => StmtKind::Store {
                tensor: tensor.clone(),
                indices: self.accesses(indices),
                value: self.expr(value).expr,
            },
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(cond).expr;
                match cond.as_bool() {
                    Some(true) => return self.stmt(then),
                    Some(false) => return otherwise.as_ref().map_or_else(Stmt::nop, |o| self.stmt(o)),
                    None => {}
                }
                let (then, otherwise) = (self.stmt(then), otherwise.as_ref().map(|o| self.stmt(o)));
                let otherwise = otherwise.filter(|o| !o.is_nop());
                if then.is_nop() && otherwise.is_none() {
                    return Stmt::nop();
                }
                StmtKind::If { cond, then, otherwise }
            }
            StmtKind::For { iter, extent, props, body } => {
                let body = self.stmt(body);
                if body.is_nop() {
                    return Stmt::nop();
                }
                let extent = match extent {
                    Extent::Range { begin, end, step } => {
                        let [begin, end, step] = [begin, end, step].map(|e| self.expr(e).expr);
                        Extent::Range { begin, end, step }
                    }
                    Extent::Reals => Extent::Reals,
                };
                StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body }
            }
            StmtKind::While { cond, body } => StmtKind::While { cond: self.expr(cond).expr, body: self.stmt(body) },
            StmtKind::VarDef { tensor, body } => {
                let body = self.stmt(body);
                if body.is_nop() {
                    return Stmt::nop();
                }
                StmtKind::VarDef { tensor: tensor.clone(), body }
            }
            StmtKind::Seq(all) => {
                let all: Vec<Stmt> = all.iter().map(|s| self.stmt(s)).filter(|s| !s.is_nop()).collect();
                return Stmt::seq(all, s.origin().clone());
            }
            StmtKind::Assert { cond, message, kind } => {
                let cond = self.expr(cond).expr;
                if cond.as_bool() == Some(true) {
                    return Stmt::nop();
                }
                let part = |p: &MessagePart| match p {
                    MessagePart::Value(e) => MessagePart::Value(self.expr(e).expr),
                    MessagePart::Text(t) => MessagePart::Text(t.clone()),
                };
                StmtKind::Assert { cond, message: message.iter().map(part).collect(), kind: *kind }
            }
            StmtKind::Print { parts } => {
                let part = |p: &PrintPart| match p {
                    PrintPart::Value(e) => PrintPart::Value(self.expr(e).expr),
                    other => other.clone(),
                };
                StmtKind::Print { parts: parts.iter().map(part).collect() }
            }
            StmtKind::Assume { .. } | StmtKind::Eval { .. } => return s.clone(),
        };
        if kind == *s.kind() { s.clone() } else { s.with_kind(kind) }
    }

    fn accesses(&mut self, all: &[Access]) -> Vec<Access> {
        all.iter().map(|a| a.map(&mut |e| self.expr(e).expr)).collect()
    }

    /// The expression, with what is of the fill computed.
    pub(crate) fn expr(&mut self, e: &Expr) -> Folded {
        if let Some(known) = self.done.get(e) {
            return known.clone();
        }
        let folded = self.fold(e);
        self.done.insert(e.clone(), folded.clone());
        folded
    }

    fn fold(&mut self, e: &Expr) -> Folded {
        if let Some(v) = (self.fill)(e) {
            return of_fill(v, e);
        }
        let plain = |expr: Expr| Folded { expr, fill: None };
        match e.kind() {
            ExprKind::Apply(op @ Op::Select, args) => {
                let cond = self.expr(&args[0]);
                match cond.expr.as_bool() {
                    Some(holds) => self.expr(&args[if holds { 1 } else { 2 }]),
                    None => {
                        let [a, b] = [&args[1], &args[2]].map(|a| self.expr(a).expr);
                        plain(rebuilt(e, *op, vec![cond.expr, a, b]))
                    }
                }
            }
            ExprKind::Apply(op, args) => {
                let operands: Vec<Folded> = args.iter().map(|a| self.expr(a)).collect();
                self.operator(e, *op, &operands)
            }
            ExprKind::Cast(inner) => {
                let folded = self.expr(inner);
                match folded.fill.and_then(|v| scalar::cast(v, inner.dtype(), e.dtype()).ok()) {
                    Some(v) => of_fill(v, e),
                    None => plain(folded.expr.cast(e.dtype())),
                }
            }
            _ => plain(e.map_children(&mut |c| self.expr(c).expr)),
        }
    }

    fn operator(&mut self, e: &Expr, op: Op, operands: &[Folded]) -> Folded {
        if let [a, b] = operands {
            for (side, operand) in [(Side::Left, a), (Side::Right, b)] {
                if operand.fill.is_some_and(|v| annihilates(op, side, v)) {
                    return operand.clone();
                }
            }
            if a.fill.is_some_and(|v| is_identity(op, Side::Left, v)) {
                return b.clone();
            }
            if b.fill.is_some_and(|v| is_identity(op, Side::Right, v)) {
                return a.clone();
            }
        }
        let constants: Option<Vec<Literal>> = operands.iter().map(|o| o.fill.or(o.expr.as_literal())).collect();
        if let Some(constants) = constants
            && operands.iter().any(|o| o.fill.is_some())
            && let Some(first) = operands.last()
            && let Ok(v) = scalar::apply(op, first.expr.dtype(), &constants)
        {
            return of_fill(v, e);
        }
        Folded { expr: rebuilt(e, op, operands.iter().map(|o| o.expr.clone()).collect()), fill: None }
    }
}

fn of_fill(v: Literal, like: &Expr) -> Folded {
    Folded { expr: Expr::raw(ExprKind::Const(v), like.dtype()), fill: Some(v) }
}

/// The expression with these operands, and itself if they are its own.
fn rebuilt(e: &Expr, op: Op, args: Vec<Expr>) -> Expr {
    match e.kind() {
        ExprKind::Apply(_, old) if *old == args => e.clone(),
        // Raw: what is constant by itself is the program's own, and is not computed with here.
        _ => Expr::raw(ExprKind::Apply(op, args), e.dtype()),
    }
}
