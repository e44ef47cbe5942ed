//! Loops and statements as primitives handle them; finding and replacing them by their ids is `analysis`'s.

pub use taffeta_analysis::tree::{find, path, replace, replaced};
use taffeta_ast::expr::Access;
use taffeta_ast::{Expr, ExprKind, Extent, Origin, Stmt, StmtKind, Symbol};

/// A loop's parts.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The statement.
    pub stmt: Stmt,
    /// Its iterator.
    pub iter: Symbol,
    /// First value.
    pub begin: Expr,
    /// Where to stop.
    pub end: Expr,
    /// From one value to the next.
    pub step: Expr,
    /// Its body.
    pub body: Stmt,
}

impl Loop {
    /// The parts of a loop over integers.
    pub fn of(stmt: &Stmt) -> Option<Loop> {
        let StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. } = stmt.kind() else {
            return None;
        };
        let (iter, body) = (iter.clone(), body.clone());
        Some(Loop { stmt: stmt.clone(), iter, begin: begin.clone(), end: end.clone(), step: step.clone(), body })
    }

    /// Whether it counts 0, 1, 2 …
    pub fn is_plain(&self) -> bool {
        self.begin.as_int() == Some(0) && self.step.as_int() == Some(1)
    }

    /// The loop with other parts; same id.
    pub fn with(&self, begin: Expr, end: Expr, step: Expr, body: Stmt) -> Stmt {
        let StmtKind::For { iter, props, .. } = self.stmt.kind() else { return self.stmt.clone() };
        self.stmt.with_kind(StmtKind::For {
            iter: iter.clone(),
            extent: Extent::Range { begin, end, step },
            props: props.clone(),
            body,
        })
    }

    /// The loop with another body; same id.
    pub fn with_body(&self, body: Stmt) -> Stmt {
        self.with(self.begin.clone(), self.end.clone(), self.step.clone(), body)
    }

    /// The number of iterations, for a loop with a constant step. May be negative where the range is empty.
    pub fn length(&self) -> Option<Expr> {
        let step = self.step.as_int()?;
        let span = if step > 0 { self.end.minus(&self.begin) } else { self.begin.minus(&self.end) };
        match step.checked_abs()? {
            0 => None,
            1 => Some(span),
            s => Some(ceil_div(&span, s)),
        }
    }

    /// The iterator's value in the `k`-th iteration.
    pub fn value(&self, k: &Expr) -> Expr {
        self.begin.plus(&k.times(&self.step))
    }
}

/// `ceil(a / d)` for a positive constant.
pub fn ceil_div(a: &Expr, d: i64) -> Expr {
    a.plus(&Expr::int(d - 1)).floor_div(&Expr::int(d))
}

/// The statement with an expression for every mention of an iterator or a size.
pub fn substitute(stmt: &Stmt, symbol: &Symbol, value: &Expr) -> Stmt {
    taffeta_analysis::pass::substitute::variable(stmt, symbol, value)
}

/// Loops over the indices of a box, with these names, around a statement that is made from the indices. A dimension of
/// one element gets no loop.
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

/// The statement with an expression for every load from a tensor, made from its indices.
pub fn map_loads(stmt: &Stmt, tensor: &Symbol, f: &dyn Fn(&[Access]) -> Expr) -> Stmt {
    taffeta_analysis::pass::substitute::rebuild(stmt, &mut |e| match e.kind() {
        ExprKind::Load(t, indices) if t == tensor => f(indices),
        _ => e,
    })
}
