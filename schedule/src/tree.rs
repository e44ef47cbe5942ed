//! Finding and replacing statements by their ids.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use weft_ast::expr::Access;
use weft_ast::{Expr, ExprKind, Extent, Func, Origin, Stmt, StmtId, StmtKind, Symbol, Tensor};

/// The statements from the root to the one with this id, both included.
pub fn path(root: &Stmt, id: StmtId) -> Option<Vec<Stmt>> {
    if root.id() == id {
        return Some(vec![root.clone()]);
    }
    root.kind().children().into_iter().find_map(|c| {
        let mut rest = path(c, id)?;
        rest.insert(0, root.clone());
        Some(rest)
    })
}

/// The statement with this id.
pub fn find(root: &Stmt, id: StmtId) -> Option<Stmt> {
    let mut found = None;
    root.walk(&mut |s| {
        if s.id() == id {
            found = Some(s.clone());
        }
    });
    found
}

/// The program with `new` in the place of the statement with this id.
pub fn replace(func: &Func, id: StmtId, new: &Stmt) -> Func {
    func.with_body(replaced(&func.body, id, new))
}

/// The statement, likewise.
pub fn replaced(root: &Stmt, id: StmtId, new: &Stmt) -> Stmt {
    if root.id() == id {
        return new.clone();
    }
    root.map(&mut |s| replaced(s, id, new), &mut Expr::clone)
}

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
    weft_analysis::pass::substitute::variable(stmt, symbol, value)
}

/// A copy of a statement: ids, iterators and tensors that are declared in it are new. Also gives where every id went.
pub fn copy(stmt: &Stmt, step: &'static str, role: &'static str) -> (Stmt, Vec<(StmtId, StmtId)>) {
    let mut c = Copier { step, role, names: FxHashMap::default(), ids: Vec::new() };
    let new = c.stmt(stmt);
    (new, c.ids)
}

struct Copier {
    step: &'static str,
    role: &'static str,
    names: FxHashMap<Symbol, Symbol>,
    ids: Vec<(StmtId, StmtId)>,
}

impl Copier {
    fn fresh(&mut self, s: &Symbol) -> Symbol {
        let new = s.fresh();
        self.names.insert(s.clone(), new.clone());
        new
    }

    fn name(&self, s: &Symbol) -> Symbol {
        self.names.get(s).unwrap_or(s).clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let kind = match s.kind() {
            StmtKind::VarDef { tensor, body } => {
                let shape = tensor.shape.iter().map(|e| self.expr(e)).collect();
                let symbol = self.fresh(&tensor.symbol);
                let tensor = Arc::new(Tensor { symbol, shape, ..(**tensor).clone() });
                StmtKind::VarDef { tensor, body: self.stmt(body) }
            }
            StmtKind::For { iter, extent, props, body } => {
                let extent = match extent {
                    Extent::Range { begin, end, step } => {
                        Extent::Range { begin: self.expr(begin), end: self.expr(end), step: self.expr(step) }
                    }
                    Extent::Reals => Extent::Reals,
                };
                let iter = self.fresh(iter);
                let mut props = props.clone();
                props.reductions.iter_mut().for_each(|r| r.tensor = self.name(&r.tensor));
                StmtKind::For { iter, extent, props, body: self.stmt(body) }
            }
            StmtKind::Store { tensor, indices, value } => {
                StmtKind::Store { tensor: self.name(tensor), indices: self.accesses(indices), value: self.expr(value) }
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => StmtKind::ReduceTo {
                tensor: self.name(tensor),
                indices: self.accesses(indices),
                op: *op,
                value: self.expr(value),
            },
            StmtKind::Eval { function, args } => {
                StmtKind::Eval { function: function.clone(), args: args.iter().map(|a| self.name(a)).collect() }
            }
            StmtKind::Structured { tensor, step } => StmtKind::Structured { tensor: self.name(tensor), step: *step },
            StmtKind::Seq(v) => StmtKind::Seq(v.iter().map(|s| self.stmt(s)).collect()),
            StmtKind::If { cond, then, otherwise } => StmtKind::If {
                cond: self.expr(cond),
                then: self.stmt(then),
                otherwise: otherwise.as_ref().map(|o| self.stmt(o)),
            },
            StmtKind::While { cond, body } => StmtKind::While { cond: self.expr(cond), body: self.stmt(body) },
            StmtKind::Assert { .. } | StmtKind::Assume { .. } => {
                s.map(&mut Stmt::clone, &mut |e| self.expr(e)).kind().clone()
            }
        };
        let new = Stmt::new(kind, s.origin().derive(self.step, self.role));
        self.ids.push((s.id(), new.id()));
        new
    }

    fn accesses(&self, indices: &[Access]) -> Vec<Access> {
        indices.iter().map(|a| a.map(&mut |e| self.expr(e))).collect()
    }

    fn expr(&self, e: &Expr) -> Expr {
        if self.names.is_empty() { e.clone() } else { self.renamed(e, &mut FxHashMap::default()) }
    }

    fn renamed(&self, e: &Expr, done: &mut FxHashMap<usize, Expr>) -> Expr {
        if let Some(known) = done.get(&e.address()) {
            return known.clone();
        }
        let inner = e.map_children(&mut |c| self.renamed(c, done));
        let new = self.renamed_node(inner);
        done.insert(e.address(), new.clone());
        new
    }

    fn renamed_node(&self, inner: Expr) -> Expr {
        match inner.kind() {
            ExprKind::Var(s) if self.names.contains_key(s) => Expr::raw(ExprKind::Var(self.name(s)), inner.dtype()),
            ExprKind::Load(t, indices) if self.names.contains_key(t) => {
                Expr::load(&self.name(t), indices.clone(), inner.dtype())
            }
            ExprKind::Measure(m, s) if self.names.contains_key(s) => {
                Expr::raw(ExprKind::Measure(*m, self.name(s)), inner.dtype())
            }
            _ => inner,
        }
    }
}

/// The statement with other accesses to a tensor: `f` gives the tensor and its indices from the old indices.
pub fn retarget(stmt: &Stmt, tensor: &Symbol, f: &dyn Fn(Vec<Access>) -> (Symbol, Vec<Access>)) -> Stmt {
    Retarget { tensor, f, done: FxHashMap::default() }.stmt(stmt)
}

struct Retarget<'a> {
    tensor: &'a Symbol,
    f: &'a dyn Fn(Vec<Access>) -> (Symbol, Vec<Access>),
    done: FxHashMap<Expr, Expr>,
}

impl Retarget<'_> {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let here = s.map(&mut Stmt::clone, &mut |e| self.expr(e));
        match here.kind() {
            StmtKind::Store { tensor, indices, value } if tensor == self.tensor => {
                let (tensor, indices) = (self.f)(indices.clone());
                here.with_kind(StmtKind::Store { tensor, indices, value: value.clone() })
            }
            StmtKind::ReduceTo { tensor, indices, op, value } if tensor == self.tensor => {
                let (tensor, indices) = (self.f)(indices.clone());
                here.with_kind(StmtKind::ReduceTo { tensor, indices, op: *op, value: value.clone() })
            }
            _ => here.map(&mut |s| self.stmt(s), &mut Expr::clone),
        }
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        if let Some(known) = self.done.get(e) {
            return known.clone();
        }
        let inner = e.map_children(&mut |c| self.expr(c));
        let new = match inner.kind() {
            ExprKind::Load(t, indices) if t == self.tensor => {
                let (tensor, indices) = (self.f)(indices.clone());
                Expr::load(&tensor, indices, inner.dtype())
            }
            _ => inner,
        };
        self.done.insert(e.clone(), new.clone());
        new
    }
}

/// Loops over the indices of a box, with these names, around a statement that is made from the indices. A dimension of one element
/// gets no loop.
pub fn over_box(sizes: &[Expr], name: &str, origin: &Origin, body: impl FnOnce(&[Expr]) -> Stmt) -> Stmt {
    let iters: Vec<Symbol> = (0..sizes.len()).map(|k| Symbol::new(format!("{name}.d{k}"))).collect();
    let one = |k: usize| sizes[k].as_int() == Some(1);
    let index = |k: usize| if one(k) { Expr::int(0) } else { Expr::var(&iters[k]) };
    let indices: Vec<Expr> = (0..sizes.len()).map(index).collect();
    let mut stmt = body(&indices);
    for k in (0..sizes.len()).rev().filter(|k| !one(*k)) {
        let extent = Extent::Range { begin: Expr::int(0), end: sizes[k].clone(), step: Expr::int(1) };
        let kind = StmtKind::For { iter: iters[k].clone(), extent, props: weft_ast::LoopProps::default(), body: stmt };
        stmt = Stmt::new(kind, origin.clone());
    }
    stmt
}

/// The statement with an expression for every load from a tensor, made from its indices.
pub fn map_loads(stmt: &Stmt, tensor: &Symbol, f: &dyn Fn(&[Access]) -> Expr) -> Stmt {
    fn expr(e: &Expr, tensor: &Symbol, f: &dyn Fn(&[Access]) -> Expr, done: &mut FxHashMap<Expr, Expr>) -> Expr {
        if let Some(known) = done.get(e) {
            return known.clone();
        }
        // What stands in a subscript comes first.
        let inner = e.map_children(&mut |c| expr(c, tensor, f, done));
        let new = match inner.kind() {
            ExprKind::Load(t, indices) if t == tensor => f(indices),
            _ => inner,
        };
        done.insert(e.clone(), new.clone());
        new
    }
    fn walk(s: &Stmt, tensor: &Symbol, f: &dyn Fn(&[Access]) -> Expr, done: &mut FxHashMap<Expr, Expr>) -> Stmt {
        let here = s.map(&mut Stmt::clone, &mut |e| expr(e, tensor, f, done));
        here.map(&mut |s| walk(s, tensor, f, done), &mut Expr::clone)
    }
    walk(stmt, tensor, f, &mut FxHashMap::default())
}
