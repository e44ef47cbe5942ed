//! Random loop nests for the dependence analysis: little computation, and every kind of subscript, bound and condition.
//!
//! - [`Class::Affine`]: subscripts, bounds and conditions are affine in iterators and sizes, with `//` and `%` by
//!   constants, `min`, `max` and branches. All subscripts are in range by construction, so only an assertion can stop a
//!   run.
//! - [`Class::Wild`]: also data-dependent code: indirect subscripts (through written tensors too), loaded bounds and
//!   steps, products, wrapping casts. Subscripts may be out of range.
//! - [`Class::Private`]: every iteration of a loop writes parts of a tensor and then reads parts of it, which may or
//!   may not have been written in the same iteration.
//!
//! The results do not matter, so elements may be read before they are written.

use super::trace;
use crate::build::{Builder, assert, block, branch, local, range, reduce, store, var_def};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::Func;
use crate::interp::Inputs;
use crate::literal::Literal;
use crate::op::{Op, ReduceOp};
use crate::stmt::{Origin, Stmt, StmtKind, Tensor};
use crate::symbol::Symbol;
use crate::value::{Buffer, Value};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// Class of nests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nests for which isl decides dependences exactly.
    Affine,
    /// Nests without restrictions.
    Wild,
    /// Loop with a tensor that may be privatisable.
    Private,
    /// Programs of the kind that users schedule: [`dense`](super::dense::dense).
    Dense,
}

/// Generates the nest of a seed.
pub fn nest(seed: u64, class: Class) -> Func {
    if class == Class::Dense {
        return super::dense::dense(seed);
    }
    let rng = ChaCha8Rng::seed_from_u64(seed);
    let mut b = Builder::new("nest");
    let sizes = vec![b.size("n"), b.size("m")];
    let all = sizes[0].plus(&sizes[1]);
    // The long size holds three times an iterator plus a constant, the short one an iterator plus a constant.
    let (long, short) = (all.times(&Expr::int(3)).plus(&Expr::int(10)), all.plus(&Expr::int(6)));
    let tensors = vec![
        b.input("a", DType::I64, [&long]),
        b.input("p", DType::I64, [&short]),
        b.input("c", DType::F32, [&long]),
        b.inout("x", DType::I64, [&long]),
        b.inout("y", DType::I64, [&short, &short]),
        b.inout("q", DType::I64, [&short]),
        b.inout("s", DType::I64, []),
    ];
    let mut g = Gen { rng, class, sizes, tensors, iters: Vec::new(), budget: 0 };
    g.budget = 2 + g.below(4);
    let body = if class == Class::Private { g.private() } else { g.block(0) };
    b.finish(body)
}

/// Generates inputs for a nest: these sizes, and small numbers, some of them valid indices.
pub fn inputs(func: &Func, sizes: &[i64], seed: u64) -> Inputs {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut inputs = Inputs::default();
    for (s, v) in func.sizes.iter().zip(sizes) {
        inputs.sizes.insert(s.name().to_string(), *v);
    }
    for p in &func.params {
        let shape = trace::shape(func, &inputs, &p.tensor);
        let mut data = Buffer::zeros(p.tensor.dtype, shape.iter().product());
        for i in 0..data.len() {
            let v = rng.random_range(-1..7);
            let element = Expr::literal(Literal::Int(v), p.tensor.dtype).as_literal();
            element.map(|v| data.set(i, v));
        }
        inputs.params.extend(Value::new(shape, data));
    }
    inputs
}

struct Gen {
    rng: ChaCha8Rng,
    class: Class,
    sizes: Vec<Expr>,
    tensors: Vec<Arc<Tensor>>,
    iters: Vec<Symbol>,
    budget: usize,
}

const NAMES: [&str; 4] = ["i", "j", "k", "l"];
const DEEPEST: usize = 3;

impl Gen {
    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n)
    }

    fn chance(&mut self, p: f64) -> bool {
        self.rng.random_bool(p)
    }

    fn wild(&mut self, p: f64) -> bool {
        self.class == Class::Wild && self.chance(p)
    }

    fn number(&mut self, lo: i64, hi: i64) -> Expr {
        Expr::int(self.rng.random_range(lo..hi))
    }

    fn size(&mut self) -> Expr {
        let k = self.below(2);
        self.sizes[k].clone()
    }

    fn iter(&mut self) -> Option<Expr> {
        let k = self.rng.random_range(0..self.iters.len().max(1));
        self.iters.get(k).map(Expr::var)
    }

    // ---- expressions

    /// Generates a nonnegative sum of iterators, whose factors add up to at most `most`, plus at most 3.
    fn sum(&mut self, most: usize) -> Expr {
        let mut e = self.number(0, 4);
        let mut left = most;
        while left > 0 && self.chance(0.8) {
            let Some(i) = self.iter() else { break };
            let times = if left > 1 && self.chance(0.3) { 2 } else { 1 };
            e = i.times(&Expr::int(times as i64)).plus(&e);
            left -= times;
            if self.chance(0.4) {
                break;
            }
        }
        e
    }

    /// Generates a subscript in range of a dimension, with the condition that it needs; `most` limits [`Gen::sum`].
    fn index(&mut self, dim: &Expr, most: usize) -> (Expr, Option<Expr>) {
        if self.wild(0.35) {
            return (self.wild_index(dim), None);
        }
        let e = self.sum(most);
        let c = self.rng.random_range(1..4);
        let k = Expr::int(c);
        let index = match self.below(14) {
            0 => dim.minus(&Expr::int(1)).minus(&e),
            1 => e.floor_div(&k.plus(&Expr::int(1))),
            2 => e.modulo(&k.plus(&Expr::int(1))),
            3 => e.min_with(&self.size()),
            4 => e.minus(&k).max_with(&Expr::int(0)),
            5 => return (e.minus(&k), Some(k.less_eq(&e))),
            6 => return (e.plus(&k), Some(e.plus(&k).less(dim))),
            _ => e,
        };
        (index, None)
    }

    fn wild_index(&mut self, dim: &Expr) -> Expr {
        let e = self.sum(2);
        match self.below(9) {
            0..3 => self.load(&["p", "q", "p", "q", "a"]),
            3 => self.load(&["p", "q", "x"]).plus(&e),
            4 => e.times(&self.size()).plus(&self.sum(1)),
            5 => e.modulo(&self.size()),
            6 => e.times(&self.sum(1)).minus(&self.number(0, 4)),
            7 => self.load(&["q", "x", "s"]).modulo(dim),
            _ => e.times(&Expr::int(100)).cast(DType::I8).cast(DType::I64).plus(&self.number(0, 30)),
        }
    }

    /// Loads an element of one of these tensors, or of a local one.
    fn load(&mut self, names: &[&str]) -> Expr {
        let fits = |t: &&Arc<Tensor>| names.contains(&t.symbol.name()) || names.len() > 2 && t.symbol.name() == "t";
        let found: Vec<Arc<Tensor>> = self.tensors.iter().filter(fits).cloned().collect();
        let k = self.below(found.len());
        let t = found[k].clone();
        let (indices, guard) = self.indices(&t);
        let load = t.load(indices);
        match guard {
            Some(g) => g.select(&load, &self.number(0, 3).cast(t.dtype)),
            None => load,
        }
    }

    fn indices(&mut self, t: &Tensor) -> (Vec<Expr>, Option<Expr>) {
        let mut guard: Option<Expr> = None;
        let mut indices = Vec::new();
        for d in &t.shape {
            let most = if matches!(t.symbol.name(), "a" | "x" | "c") { 3 } else { 1 };
            let (index, needs) = self.index(d, most);
            indices.push(index);
            guard = match (guard, needs) {
                (Some(a), Some(b)) => Some(a.and(&b)),
                (a, b) => a.or(b),
            };
        }
        (indices, guard)
    }

    fn condition(&mut self, depth: usize) -> Expr {
        if depth > 0 && self.chance(0.35) {
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.below(3) {
                0 => a.and(&b),
                1 => a.or(&b),
                _ => a.negate(),
            };
        }
        if self.wild(0.4) {
            if self.chance(0.2) {
                return Expr::float(2.0, DType::F32).less(&self.load(&["c"]));
            }
            let (a, b) = (self.load(&["p", "q", "x", "s"]), self.sum(1));
            return self.compare(a, b);
        }
        let (a, b) = (self.sum(2), if self.chance(0.5) { self.size() } else { self.sum(1) });
        if self.chance(0.2) {
            let k = self.number(2, 4);
            return a.modulo(&k).equals(&self.number(0, 2));
        }
        self.compare(a, b)
    }

    fn compare(&mut self, a: Expr, b: Expr) -> Expr {
        Expr::apply([Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne, Op::Ne][self.below(7)], vec![a, b])
    }

    /// Generates a stored value: small, so that it can serve as an index.
    fn value(&mut self) -> Expr {
        let mut e = self.load(&["a", "x", "y", "q", "s", "p"]);
        if self.chance(0.6) {
            e = e.plus(&self.load(&["x", "y", "s", "a"]));
        }
        if self.chance(0.15) {
            e = self.condition(0).select(&e, &self.load(&["x", "y"]));
        }
        e.modulo(&Expr::int(7))
    }

    // ---- statements

    fn block(&mut self, depth: usize) -> Stmt {
        let mut stmts = Vec::new();
        for _ in 0..1 + self.below(3) {
            if self.budget == 0 && !stmts.is_empty() {
                break;
            }
            if self.chance(0.08) {
                stmts.push(self.assertion());
            }
            if depth > 0 && self.chance(0.12) {
                stmts.push(self.scope(depth));
                break;
            }
            stmts.push(self.stmt(depth));
        }
        block(stmts)
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        let inner = if depth < DEEPEST { if depth == 0 { 0.85 } else { 0.45 } } else { 0.0 };
        if self.chance(inner) {
            if depth > 0 && self.chance(0.3) {
                let cond = self.condition(1);
                let then = self.block(depth + 1);
                let otherwise = self.chance(0.3).then(|| self.block(depth + 1));
                return branch(&cond, then, otherwise);
            }
            return self.repeat(depth);
        }
        self.budget = self.budget.saturating_sub(1);
        self.assignment()
    }

    fn repeat(&mut self, depth: usize) -> Stmt {
        let iter = Symbol::new(NAMES[self.iters.len() % NAMES.len()]);
        let [begin, end, step] = self.bounds();
        self.iters.push(iter.clone());
        let body = self.block(depth + 1);
        self.iters.pop();
        range(&iter, [&begin, &end, &step], body)
    }

    /// Generates a range within `0 <= i <= max(n, m, 2)`; a wild one is unrestricted.
    fn bounds(&mut self) -> [Expr; 3] {
        let int = Expr::int;
        let (zero, one) = (int(0), int(1));
        let size = self.size();
        if self.wild(0.25) {
            let loaded = self.load(&["p", "q", "s"]);
            return match self.below(5) {
                0 => [loaded, int(4), one],
                1 => [zero, loaded, one],
                2 => [zero, size.min_with(&loaded), one],
                3 => [int(3), loaded.minus(&int(2)), int(-1)],
                _ => [zero, int(3), loaded.min_with(&int(2)).max_with(&int(-1))],
            };
        }
        let outer = self.iter().unwrap_or(one.clone());
        match self.below(12) {
            0..3 => [zero, size, one],
            3 => [size.minus(&one), int(-1), int(-1)],
            4 => [self.number(0, 3), self.number(0, 4), one],
            5 => [outer, size, one],
            6 => [zero, outer, one],
            7 => [self.number(0, 2), size, int(2)],
            8 => [size.minus(&one), zero, int(-2)],
            9 => [outer.minus(&one).max_with(&zero), outer.plus(&int(2)).min_with(&size), one],
            10 => [outer.floor_div(&int(2)), size, one],
            _ => [outer.modulo(&int(2)), size, int(2)],
        }
    }

    // ---- private tensors

    fn private(&mut self) -> Stmt {
        let (i, k) = (Symbol::new("i"), Symbol::new("k"));
        let size = self.size();
        self.iters.push(i.clone());
        let mut stmts: Vec<Stmt> = (0..1 + self.below(3)).map(|_| self.piece(&size, &k.fresh(), true)).collect();
        stmts.extend((0..1 + self.below(2)).map(|_| self.piece(&size, &k.fresh(), false)));
        self.iters.pop();
        let end = self.size();
        range(&i, [&Expr::int(0), &end, &Expr::int(1)], block(stmts))
    }

    /// Generates a loop that writes or reads a part of `x`, usually the same part as other pieces.
    fn piece(&mut self, size: &Expr, k: &Symbol, writes: bool) -> Stmt {
        let int = Expr::int;
        let outer = Expr::var(&self.iters[0]);
        let bounds = match self.below(8) {
            0..3 => [int(0), size.clone(), int(1)],
            3 => [size.minus(&int(1)), int(-1), int(-1)],
            4 => [int(0), outer.plus(&int(1)), int(1)],
            5 => [int(1), size.clone(), int(1)],
            6 => [self.number(0, 2), size.clone(), int(2)],
            _ => [int(0), int(3), int(1)],
        };
        let v = Expr::var(k);
        let (x, y) = (self.tensors[3].clone(), self.tensors[4].clone());
        let at = |g: &mut Gen| match g.below(10) {
            0..4 => v.clone(),
            4 => v.times(&int(2)),
            5 => v.times(&int(2)).plus(&int(1)),
            6 => v.plus(&g.number(0, 3)),
            7 => size.minus(&int(1)).minus(&v).max_with(&int(0)),
            8 => outer.clone(),
            _ => {
                let by = if g.chance(0.5) { outer.clone() } else { v.clone() };
                g.tensors[1].load([by])
            }
        };
        let body = |g: &mut Gen| {
            let index = at(g);
            if writes { store(&x, [&index], &v) } else { store(&y, [&outer, &int(0)], &x.load([index])) }
        };
        let inner = match self.below(5) {
            0 => {
                let cond = match self.below(3) {
                    0 => v.less(&self.number(1, 4)),
                    1 => v.modulo(&int(2)).equals(&int(0)),
                    _ => int(2).less(&self.tensors[0].load([v.clone()])),
                };
                let (then, otherwise) = (body(self), self.chance(0.7).then(|| body(self)));
                branch(&cond, then, otherwise)
            }
            1 if !writes => block([reduce(&x, [&v], ReduceOp::Add, &int(1)), body(self)]),
            _ => body(self),
        };
        range(k, [&bounds[0], &bounds[1], &bounds[2]], inner)
    }

    fn scope(&mut self, depth: usize) -> Stmt {
        let (n, m) = (self.sizes[0].clone(), self.sizes[1].clone());
        let shape = match self.below(3) {
            0 => Vec::new(),
            1 if self.wild(0.5) => vec![self.load(&["p", "s", "q"]).max_with(&Expr::int(0))],
            _ => vec![n.plus(&m).plus(&Expr::int(6))],
        };
        let t = local("t", DType::I64, &shape);
        self.tensors.push(t.clone());
        let body = self.block(depth + 1);
        self.tensors.pop();
        var_def(&t, body)
    }

    fn assertion(&mut self) -> Stmt {
        let most = self.number(2, 5);
        let cond = match self.below(4) {
            0 => self.size().less_eq(&most),
            1 => self.size().equals(&self.size()),
            2 => self.iter().unwrap_or(Expr::int(0)).less_eq(&most),
            _ if self.class == Class::Wild => self.load(&["p", "q", "s"]).less_eq(&most),
            _ => self.size().less(&self.sizes[0].plus(&Expr::int(2))),
        };
        if self.chance(0.5) {
            return assert(&cond, Vec::new());
        }
        Stmt::new(StmtKind::Assume { cond }, Origin::none())
    }

    fn assignment(&mut self) -> Stmt {
        let fits = |t: &&Arc<Tensor>| !matches!(t.symbol.name(), "a" | "p" | "c");
        let writable: Vec<Arc<Tensor>> = self.tensors.iter().filter(fits).cloned().collect();
        let k = self.below(writable.len());
        let t = if self.chance(0.35) { writable[0].clone() } else { writable[k].clone() };
        let (indices, guard) = self.indices(&t);
        let value = self.value();
        let element = t.load(indices.iter().cloned());
        let done = if self.chance(0.25) && value != element {
            let op = [ReduceOp::Add, ReduceOp::Min, ReduceOp::Max][self.below(3)];
            reduce(&t, &indices, op, &value)
        } else {
            store(&t, &indices, &value)
        };
        match guard {
            Some(g) => branch(&g, done, None),
            None => done,
        }
    }
}
