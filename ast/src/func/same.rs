//! Equality of programs up to the identity of symbols, ids, origins and docstrings: the relation that "parses again to
//! the same tree" refers to.

use super::Func;
use crate::expr::{Access, Expr, ExprKind};
use crate::format::{Format, Pattern};
use crate::stmt::{Extent, LoopProps, Message, MessagePart, PrintPart, Stmt, StmtKind, Tensor};
use crate::symbol::Symbol;
use rustc_hash::FxHashMap;

/// Returns whether two programs are equal up to the names of bound variables. Names of parameters and results are part
/// of the interface and must agree, as printed: a result named like a parameter gets a number.
pub fn same(a: &Func, b: &Func) -> bool {
    let mut m = Matcher::default();
    a.name == b.name
        && a.sizes.len() == b.sizes.len()
        && interface(a) == interface(b)
        && a.sizes.iter().zip(&b.sizes).all(|(x, y)| x.name() == y.name() && m.bind(x, y))
        && a.params.len() == b.params.len()
        && a.params.iter().zip(&b.params).all(|(x, y)| x.mode == y.mode && m.declare(&x.tensor, &y.tensor))
        && a.results.len() == b.results.len()
        && a.results.iter().zip(&b.results).all(|(x, y)| m.declare(x, y))
        && m.stmt(&a.body, &b.body)
        && a.made.len() == b.made.len()
        && a.made.iter().zip(&b.made).all(|(x, y)| m.symbol(&x.symbol, &y.symbol))
}

/// Returns the names of parameters and results, made distinct as the printer does.
fn interface(f: &Func) -> Vec<String> {
    let mut names: Vec<String> = f.params.iter().map(|p| p.tensor.symbol.name().to_string()).collect();
    for t in &f.results {
        let wanted = t.symbol.name();
        let numbered = (1..).map(|k| format!("{wanted}_{k}"));
        let is_free = |name: &String| !names.contains(name) && f.sizes.iter().all(|s| s.name() != name);
        names.extend(std::iter::once(wanted.to_string()).chain(numbered).find(is_free));
    }
    names
}

/// Mapping of the first program's symbols and patterns to the second's. Symbols are unique, so bindings never have to
/// be undone.
#[derive(Default)]
struct Matcher {
    there: FxHashMap<Symbol, Symbol>,
    patterns: FxHashMap<Pattern, Pattern>,
}

impl Matcher {
    fn bind(&mut self, a: &Symbol, b: &Symbol) -> bool {
        self.there.insert(a.clone(), b.clone());
        true
    }

    fn symbol(&self, a: &Symbol, b: &Symbol) -> bool {
        self.there.get(a) == Some(b)
    }

    fn declare(&mut self, a: &Tensor, b: &Tensor) -> bool {
        a.dtype == b.dtype
            && a.role == b.role
            && a.memory == b.memory
            && self.format(&a.format, &b.format)
            && self.exprs(&a.shape, &b.shape)
            && self.bind(&a.symbol, &b.symbol)
    }

    /// Compares formats, and whether patterns are shared by the same tensors.
    fn format(&mut self, a: &Format, b: &Format) -> bool {
        let shared = match (a.pattern, b.pattern) {
            (Some(p), Some(q)) => {
                *self.patterns.entry(p).or_insert(q) == q && self.patterns.iter().all(|(x, y)| *y != q || *x == p)
            }
            (None, None) => true,
            _ => false,
        };
        let alone = |f: &Format| Format { pattern: None, ..f.clone() };
        shared && alone(a) == alone(b)
    }

    fn exprs(&self, a: &[Expr], b: &[Expr]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.expr(x, y))
    }

    fn accesses(&self, a: &[Access], b: &[Access]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.protocol == y.protocol && self.expr(&x.index, &y.index))
    }

    fn expr(&self, a: &Expr, b: &Expr) -> bool {
        a.dtype() == b.dtype()
            && match (a.kind(), b.kind()) {
                (ExprKind::Var(x), ExprKind::Var(y)) => self.symbol(x, y),
                (ExprKind::Load(t, i), ExprKind::Load(u, j)) => self.symbol(t, u) && self.accesses(i, j),
                (ExprKind::Apply(p, x), ExprKind::Apply(q, y)) => p == q && self.exprs(x, y),
                (ExprKind::Cast(x), ExprKind::Cast(y)) => self.expr(x, y),
                (ExprKind::Measure(m, x), ExprKind::Measure(n, y)) => m == n && self.symbol(x, y),
                (x, y) => x == y,
            }
    }

    fn props(&self, a: &LoopProps, b: &LoopProps) -> bool {
        a.parallel == b.parallel
            && a.vectorize == b.vectorize
            && a.unroll == b.unroll
            && a.library == b.library
            && a.reductions.len() == b.reductions.len()
            && a.reductions
                .iter()
                .zip(&b.reductions)
                .all(|(r, s)| self.symbol(&r.tensor, &s.tensor) && r.op == s.op && r.sharing == s.sharing)
    }

    fn stmt(&mut self, a: &Stmt, b: &Stmt) -> bool {
        use StmtKind::*;
        match (a.kind(), b.kind()) {
            (Seq(x), Seq(y)) => x.len() == y.len() && x.iter().zip(y).all(|(s, t)| self.stmt(s, t)),
            (VarDef { tensor: t, body: x }, VarDef { tensor: u, body: y }) => self.declare(t, u) && self.stmt(x, y),
            (For { iter: i, extent: e, props: p, body: x }, For { iter: j, extent: g, props: q, body: y }) => {
                self.props(p, q) && self.extent(e, g) && self.bind(i, j) && self.stmt(x, y)
            }
            (If { cond: c, then: t, otherwise: o }, If { cond: d, then: u, otherwise: v }) => {
                self.expr(c, d)
                    && self.stmt(t, u)
                    && match (o, v) {
                        (None, None) => true,
                        (Some(o), Some(v)) => self.stmt(o, v),
                        _ => false,
                    }
            }
            (Store { tensor: t, indices: i, value: x }, Store { tensor: u, indices: j, value: y }) => {
                self.symbol(t, u) && self.accesses(i, j) && self.expr(x, y)
            }
            (
                ReduceTo { tensor: t, indices: i, op: p, value: x },
                ReduceTo { tensor: u, indices: j, op: q, value: y },
            ) => p == q && self.symbol(t, u) && self.accesses(i, j) && self.expr(x, y),
            (Assert { cond: c, message: m, kind: k }, Assert { cond: d, message: n, kind: l }) => {
                k == l && self.message(m, n) && self.expr(c, d)
            }
            (Print { parts: p }, Print { parts: q }) => {
                p.len() == q.len() && p.iter().zip(q).all(|(a, b)| self.part(a, b))
            }
            (Assume { cond: c }, Assume { cond: d }) => self.expr(c, d),
            (Call { routine: r, tensors: x, operands: m }, Call { routine: q, tensors: y, operands: n }) => {
                r == q && x.len() == y.len() && x.iter().zip(y).all(|(s, t)| self.symbol(s, t)) && self.exprs(m, n)
            }
            (While { cond: c, body: x }, While { cond: d, body: y }) => self.expr(c, d) && self.stmt(x, y),
            _ => false,
        }
    }

    fn message(&self, a: &Message, b: &Message) -> bool {
        a.len() == b.len()
            && a.iter().zip(b).all(|(p, q)| match (p, q) {
                (MessagePart::Text(s), MessagePart::Text(t)) => s == t,
                (MessagePart::Value(x), MessagePart::Value(y)) => self.expr(x, y),
                _ => false,
            })
    }

    fn part(&self, a: &PrintPart, b: &PrintPart) -> bool {
        match (a, b) {
            (PrintPart::Text(s), PrintPart::Text(t)) => s == t,
            (PrintPart::Value(x), PrintPart::Value(y)) => self.expr(x, y),
            (PrintPart::Tensor { tensor: t, at: i, shape: m }, PrintPart::Tensor { tensor: u, at: j, shape: n }) => {
                self.symbol(t, u) && self.exprs(i, j) && self.exprs(m, n)
            }
            _ => false,
        }
    }

    fn extent(&self, a: &Extent, b: &Extent) -> bool {
        match (a, b) {
            (Extent::Reals, Extent::Reals) => true,
            (Extent::Range { begin: b1, end: e1, step: s1 }, Extent::Range { begin: b2, end: e2, step: s2 }) => {
                self.expr(b1, b2) && self.expr(e1, e2) && self.expr(s1, s2)
            }
            _ => false,
        }
    }
}
