//! Loops and statements as primitives handle them; search and replacement by id are in the analysis crate.

pub use taffeta_analysis::tree::{find, path, replace, replaced};
use taffeta_ast::expr::Access;
use taffeta_ast::{Expr, ExprKind, Extent, Origin, Stmt, StmtKind, Symbol};

/// Returns whether a statement has no effect, and cannot stop the program: a declaration may, by the size of its shape.
pub fn has_no_effect(s: &Stmt) -> bool {
    let is_size = |e: &Expr| matches!(e.kind(), ExprKind::Var(_)) || e.as_int().is_some_and(|n| n >= 0);
    match s.kind() {
        StmtKind::Seq(all) => all.iter().all(has_no_effect),
        StmtKind::VarDef { tensor, body } => tensor.shape.iter().all(is_size) && has_no_effect(body),
        StmtKind::If { cond, then, otherwise } => {
            !cond.may_fail() && has_no_effect(then) && otherwise.as_ref().is_none_or(has_no_effect)
        }
        StmtKind::For { extent: Extent::Range { step, .. }, body, .. } => {
            let steps = step.as_int().is_some_and(|s| s != 0);
            steps && s.kind().exprs().iter().all(|e| !e.may_fail()) && has_no_effect(body)
        }
        _ => false,
    }
}

/// Parts of a loop over integers.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Loop statement.
    pub stmt: Stmt,
    /// Iterator.
    pub iter: Symbol,
    /// First value of the iterator.
    pub begin: Expr,
    /// End of the range (exclusive).
    pub end: Expr,
    /// Step between two values.
    pub step: Expr,
    /// Body of the loop.
    pub body: Stmt,
}

impl Loop {
    /// Returns the parts of a loop over integers; `None` for any other statement.
    pub fn of(stmt: &Stmt) -> Option<Loop> {
        let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. } = stmt.kind() else {
            return None;
        };
        let (iter, body) = (iter.clone(), body.clone());
        Some(Loop { stmt: stmt.clone(), iter, begin: begin.clone(), end: end.clone(), step: step.clone(), body })
    }

    /// Returns whether the loop counts 0, 1, 2 …
    pub fn is_plain(&self) -> bool {
        self.begin.as_int() == Some(0) && self.step.as_int() == Some(1)
    }

    /// Rebuilds the loop with other bounds, step and body, and the same id.
    pub fn with(&self, begin: Expr, end: Expr, step: Expr, body: Stmt) -> Stmt {
        let StmtKind::For { iter, props, .. } = self.stmt.kind() else { return self.stmt.clone() };
        self.stmt.with_kind(StmtKind::For {
            iter: iter.clone(),
            extent: Extent::Range { begin, end, step },
            props: props.clone(),
            body,
        })
    }

    /// Rebuilds the loop with another body and the same id.
    pub fn with_body(&self, body: Stmt) -> Stmt {
        self.with(self.begin.clone(), self.end.clone(), self.step.clone(), body)
    }

    /// Returns the trip count of a loop with a constant step. It may be negative for an empty range, and, unlike
    /// [`Loop::trip_count`], may wrap.
    pub fn length(&self) -> Option<Expr> {
        let step = self.step.as_int()?;
        let span = if step > 0 { self.end.minus(&self.begin) } else { self.begin.minus(&self.end) };
        match step.checked_abs()? {
            0 => None,
            1 => Some(span),
            s => Some(ceil_div(&span, s)),
        }
    }

    /// Returns the iterator's value in iteration `k`, counted from 0.
    pub fn value(&self, k: &Expr) -> Expr {
        self.begin.plus(&k.times(&self.step))
    }
}

/// Builds `ceil(a / d)` for a positive constant `d`; the sum may wrap.
pub fn ceil_div(a: &Expr, d: i64) -> Expr {
    a.plus(&Expr::int(d - 1)).floor_div(&Expr::int(d))
}

/// Substitutes an expression for an iterator or a size in a statement.
pub fn substitute(stmt: &Stmt, symbol: &Symbol, value: &Expr) -> Stmt {
    taffeta_analysis::pass::substitute::variable(stmt, symbol, value)
}

/// Builds loops over the indices of a box, with iterators named after `name`, around a statement made from the indices.
/// A dimension of size 1 gets no loop.
pub fn over_box(sizes: &[Expr], name: &str, origin: &Origin, body: impl FnOnce(&[Expr]) -> Stmt) -> Stmt {
    let iters: Vec<Symbol> = (0..sizes.len()).map(|k| Symbol::new(format!("{name}.d{k}"))).collect();
    let one = |k: usize| sizes[k].as_int() == Some(1);
    let index = |k: usize| if one(k) { Expr::int(0) } else { Expr::var(&iters[k]) };
    let indices: Vec<Expr> = (0..sizes.len()).map(index).collect();
    let mut stmt = body(&indices);
    for k in (0..sizes.len()).rev().filter(|k| !one(*k)) {
        let extent = Extent::Range { begin: Expr::int(0), end: sizes[k].clone(), step: Expr::int(1) };
        let kind =
            StmtKind::For { iter: iters[k].clone(), extent, props: taffeta_ast::LoopProps::default(), body: stmt };
        stmt = Stmt::new(kind, origin.clone());
    }
    stmt
}

/// Replaces every load from a tensor by an expression made from its indices.
pub fn map_loads(stmt: &Stmt, tensor: &Symbol, f: &dyn Fn(&[Access]) -> Expr) -> Stmt {
    taffeta_analysis::pass::substitute::rebuild(stmt, &mut |e| match e.kind() {
        ExprKind::Load(t, indices) if t == tensor => f(indices),
        _ => e,
    })
}
