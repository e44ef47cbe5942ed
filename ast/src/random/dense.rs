//! Random programs of the kind that users schedule: loops over whole tensors of floats and integers, in sequence, with
//! sums into scalars, rows and columns, histograms, recurrences, products, and local tensors between them. Every
//! scheduling primitive finds a use in them, unlike in arbitrary nests.
//!
//! Floats are small integers, so that sums are exact in any order.

use crate::build::{Builder, block, branch, local, range, reduce, store, var_def};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::Func;
use crate::op::ReduceOp;
use crate::stmt::{Stmt, StmtKind, Tensor};
use crate::symbol::Symbol;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// Generates the program of a seed.
pub fn dense(seed: u64) -> Func {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut b = Builder::new("dense");
    let (n, m) = (b.size("n"), b.size("m"));
    let float = [DType::F32, DType::F64][rng.random_range(0..2)];
    let int = [DType::I32, DType::I64][rng.random_range(0..2)];
    let inputs = vec![
        b.input("a", float, [&n, &m]),
        b.input("b", float, [&m, &n]),
        b.input("v", float, [&n]),
        b.input("k", DType::I64, [&n]),
        b.input("u", int, [&n, &m]),
    ];
    let outputs = vec![
        b.inout("x", float, [&n, &m]),
        b.inout("y", float, [&n]),
        b.inout("z", float, [&m]),
        b.inout("s", float, []),
        b.inout("h", int, [&m]),
        b.inout("c", int, []),
    ];
    let mut g = Gen { rng, sizes: [n, m], inputs, outputs, locals: Vec::new() };
    let count = 2 + g.below(3);
    let body = g.block(count);
    b.finish(body)
}

/// Iterator with the size of its dimension.
#[derive(Clone)]
struct Iter {
    value: Expr,
    size: Expr,
}

struct Gen {
    rng: ChaCha8Rng,
    sizes: [Expr; 2],
    inputs: Vec<Arc<Tensor>>,
    outputs: Vec<Arc<Tensor>>,
    locals: Vec<Arc<Tensor>>,
}

const NAMES: [&str; 4] = ["i", "j", "l", "r"];

impl Gen {
    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n.max(1))
    }

    fn chance(&mut self, p: f64) -> bool {
        self.rng.random_bool(p)
    }

    fn size(&mut self) -> Expr {
        let k = self.below(2);
        self.sizes[k].clone()
    }

    // ---- statements

    /// Generates loops in sequence; a local tensor is initialised before the loops that may use it.
    fn block(&mut self, count: usize) -> Stmt {
        let mut stmts = Vec::new();
        for left in (0..count).rev() {
            if self.locals.len() < 2 && self.chance(0.4) {
                let t = self.declared();
                self.locals.push(t.clone());
                let first = self.filled(&t);
                let then = self.block(left + 1);
                self.locals.pop();
                stmts.push(var_def(&t, block([first, then])));
                break;
            }
            stmts.push(self.part());
        }
        // A declaration extends to the end of its block; earlier ends have no syntax.
        let reaching = |rest: Option<Stmt>, s: Stmt| match (s.kind(), rest) {
            (_, None) => Some(s),
            (StmtKind::VarDef { tensor, body }, Some(rest)) => Some(var_def(tensor, block([body.clone(), rest]))),
            (_, Some(rest)) => Some(block([s, rest])),
        };
        stmts.into_iter().rev().fold(None, reaching).unwrap_or_else(Stmt::nop)
    }

    fn declared(&mut self) -> Arc<Tensor> {
        let float = self.inputs[0].dtype;
        let [n, m] = self.sizes.clone();
        let name = ["t", "g"][self.locals.len() % 2];
        match self.below(4) {
            0 => local(name, float, []),
            1 => local(name, float, [&n]),
            2 => local(name, float, [&n, &m]),
            _ => local(name, float, [&Expr::int(1), &m]),
        }
    }

    /// Writes every element of a tensor, and sometimes reduces into it.
    fn filled(&mut self, t: &Arc<Tensor>) -> Stmt {
        let shape = t.shape.clone();
        let mut around = Vec::new();
        let zero = self.chance(0.4);
        let done = self.nest(&shape, false, &mut around, &mut |g, iters| {
            let at: Vec<Expr> = iters.iter().map(|i| i.value.clone()).collect();
            let value = if zero { Expr::float(0.0, t.dtype) } else { g.value(t, iters) };
            store(t, &at, &value)
        });
        if !zero {
            return done;
        }
        let over = self.size();
        let shape: Vec<Expr> = shape.into_iter().chain([over]).collect();
        let sum = self.nest(&shape, false, &mut Vec::new(), &mut |g, iters| {
            let at: Vec<Expr> = iters[..t.ndim()].iter().map(|i| i.value.clone()).collect();
            reduce(t, &at, ReduceOp::Add, &g.value(t, iters))
        });
        block([done, sum])
    }

    /// Generates a nest over this shape; iterators of the enclosing nest come first.
    fn nest(
        &mut self,
        shape: &[Expr],
        varied: bool,
        iters: &mut Vec<Iter>,
        body: &mut dyn FnMut(&mut Gen, &[Iter]) -> Stmt,
    ) -> Stmt {
        let Some((size, rest)) = shape.split_first() else { return body(self, iters) };
        let i = Symbol::new(NAMES[iters.len() % NAMES.len()]);
        let int = Expr::int;
        let [begin, end, step] = match self.below(if varied { 8 } else { 1 }) {
            4 => [int(1), size.clone(), int(1)],
            5 => [size.minus(&int(1)), int(-1), int(-1)],
            6 => [int(0), size.clone(), int(2)],
            7 => [int(0), size.minus(&int(1)), int(1)],
            _ => [int(0), size.clone(), int(1)],
        };
        iters.push(Iter { value: Expr::var(&i), size: size.clone() });
        let inner = self.nest(rest, varied, iters, body);
        iters.pop();
        range(&i, [&begin, &end, &step], inner)
    }

    fn part(&mut self) -> Stmt {
        let [n, m] = self.sizes.clone();
        let varied = self.chance(0.4);
        match self.below(11) {
            0 | 1 => {
                let shape = [vec![n.clone()], vec![n, m.clone()], vec![m]][self.below(3)].clone();
                self.nest(&shape, varied, &mut Vec::new(), &mut |g, iters| g.body(iters))
            }
            2 => self.nest(&[n, m], varied, &mut Vec::new(), &mut |g, iters| g.body(iters)),
            4 => self.applied(varied),
            3 => self.nest(&[n.clone(), m, n], varied, &mut Vec::new(), &mut |g, iters| {
                let (x, a, b) = (g.outputs[0].clone(), g.inputs[0].clone(), g.inputs[1].clone());
                let [i, j, l] = [0, 1, 2].map(|k| iters[k].value.clone());
                let product = a.load([l.clone(), j.clone()]).times(&b.load([j.clone(), i.clone()]));
                reduce(&x, [&i, &j], ReduceOp::Add, &product)
            }),
            5 => self.recurrence(),
            6 => self.counted(),
            7 => self.private(),
            // A peek at the next random number, as in `private`.
            9 | 10 if self.rng.clone().random::<u64>() % 2 == 0 => match self.below(3) {
                0 => self.scattered(),
                1 => self.few_sums(),
                _ => self.summed_and_scattered(),
            },
            8 => {
                // Two loops of one length, the second of which may read the first one's results.
                let over = self.size();
                let both = [0, 1].map(|_| {
                    self.nest(std::slice::from_ref(&over), false, &mut Vec::new(), &mut |g, iters| g.body(iters))
                });
                block(both)
            }
            _ => {
                let over = self.size();
                self.nest(&[over], varied, &mut Vec::new(), &mut |g, iters| {
                    let (first, second) = (g.body(iters), g.body(iters));
                    block([first, second])
                })
            }
        }
    }

    /// Generates a loop body: a store or a reduction, sometimes under a condition.
    fn body(&mut self, iters: &[Iter]) -> Stmt {
        let done = self.assigned(iters);
        if !self.chance(0.15) {
            return done;
        }
        let i = &iters[self.below(iters.len())].value;
        let cond = match self.below(3) {
            0 => i.modulo(&Expr::int(2)).equals(&Expr::int(0)),
            1 => i.less(&Expr::int(2)),
            _ => self.size().less_eq(&i.plus(&Expr::int(2))),
        };
        let otherwise = self.chance(0.3).then(|| self.assigned(iters));
        branch(&cond, done, otherwise)
    }

    fn assigned(&mut self, iters: &[Iter]) -> Stmt {
        let mut targets: Vec<Arc<Tensor>> = self.outputs.iter().chain(&self.locals).cloned().collect();
        // Only targets whose every dimension has an iterator.
        targets.retain(|t| t.shape.iter().all(|d| d.as_int().is_some() || iters.iter().any(|i| i.size == *d)));
        let t = targets[self.below(targets.len())].clone();
        let at = self.indices(&t, iters);
        let value = self.value(&t, iters);
        // Where an iterator is unused, all of its iterations write the same element.
        let meets = at.len() < iters.len();
        if self.chance(if meets { 0.85 } else { 0.25 }) && value != t.load(at.iter().cloned()) {
            let op = [ReduceOp::Add, ReduceOp::Add, ReduceOp::Min, ReduceOp::Max][self.below(4)];
            return reduce(&t, &at, op, &value);
        }
        store(&t, &at, &value)
    }

    /// Generates `y[i] = y[i - 1] + …`, sometimes in a time loop.
    fn recurrence(&mut self) -> Stmt {
        let n = self.sizes[0].clone();
        let (y, v) = (self.outputs[1].clone(), self.inputs[2].clone());
        let [i, time] = ["i", "time"].map(Symbol::new);
        let (at, one) = (Expr::var(&i), Expr::int(1));
        let near = [at.minus(&one), at.plus(&one), at.clone()][self.below(3)].clone();
        let more = v.load([at.clone()]);
        // The front end makes `y[i] = y[i] + …` a reduction.
        let done = match near == at {
            true => reduce(&y, [&at], ReduceOp::Add, &more),
            false => store(&y, [&at], &y.load([near]).plus(&more)),
        };
        let loop_ = range(&i, [&one, &n.minus(&one), &one], done);
        if self.chance(0.5) {
            return range(&time, [&Expr::int(0), &Expr::int(3), &one], loop_);
        }
        loop_
    }

    /// Generates a matrix-vector product in one of its orders.
    fn applied(&mut self, varied: bool) -> Stmt {
        let [n, m] = self.sizes.clone();
        self.nest(&[n, m], varied, &mut Vec::new(), &mut |g, iters| {
            let [a, b, v] = [0, 1, 2].map(|k| g.inputs[k].clone());
            let (y, z) = (g.outputs[1].clone(), g.outputs[2].clone());
            let [i, j] = [0, 1].map(|k| iters[k].value.clone());
            let (row, turned) = (a.load([i.clone(), j.clone()]), b.load([j.clone(), i.clone()]));
            match g.below(3) {
                0 => reduce(&y, [&i], ReduceOp::Add, &row.times(&z.load([j]))),
                1 => reduce(&z, [&j], ReduceOp::Add, &v.load([i]).times(&row)),
                _ => reduce(&y, [&i], ReduceOp::Add, &z.load([j]).times(&turned)),
            }
        })
    }

    /// Generates a histogram: increments at data-dependent positions.
    fn counted(&mut self) -> Stmt {
        let [n, m] = self.sizes.clone();
        let (h, k, z) = (self.outputs[4].clone(), self.inputs[3].clone(), self.outputs[2].clone());
        self.nest(&[n], false, &mut Vec::new(), &mut |g, iters| {
            let at = k.load([iters[0].value.clone()]).modulo(&m);
            if g.chance(0.5) {
                return reduce(&h, [&at], ReduceOp::Add, &Expr::int(1).cast(h.dtype));
            }
            reduce(&z, [&at], ReduceOp::Add, &g.value(&z, iters))
        })
    }

    /// Generates a scatter: rows are added to data-dependent rows.
    fn scattered(&mut self) -> Stmt {
        let [n, m] = self.sizes.clone();
        let (x, k) = (self.outputs[0].clone(), self.inputs[3].clone());
        self.nest(&[n.clone(), m], false, &mut Vec::new(), &mut |g, iters| {
            let [i, j] = [0, 1].map(|k| iters[k].value.clone());
            reduce(&x, [&k.load([i]).modulo(&n), &j], ReduceOp::Add, &g.value(&x, iters))
        })
    }

    /// Generates a few simultaneous sums in a local tensor.
    fn few_sums(&mut self) -> Stmt {
        let [n, m] = self.sizes.clone();
        let (v, k, z) = (self.inputs[2].clone(), self.inputs[3].clone(), self.outputs[2].clone());
        let few = Expr::int([4, 32][self.below(2)]);
        let t = local("w", v.dtype, [&few]);
        let first = self.nest(std::slice::from_ref(&few), false, &mut Vec::new(), &mut |_, iters| {
            store(&t, [&iters[0].value], &Expr::float(0.0, t.dtype))
        });
        let sums = self.nest(&[n.clone(), few.clone()], false, &mut Vec::new(), &mut |_, iters| {
            let [i, c] = [0, 1].map(|k| &iters[k].value);
            let value = v.load([k.load([i.clone()]).modulo(&n)]);
            reduce(&t, [c], ReduceOp::Add, &value.times(&c.clone().cast(t.dtype)))
        });
        let last = self.nest(&[m, few], false, &mut Vec::new(), &mut |_, iters| {
            let [j, c] = [0, 1].map(|k| &iters[k].value);
            reduce(&z, [j], ReduceOp::Max, &t.load([c.clone()]))
        });
        var_def(&t, block([first, sums, last]))
    }

    /// Generates sums of rows, each added to a data-dependent element.
    fn summed_and_scattered(&mut self) -> Stmt {
        let [n, m] = self.sizes.clone();
        let (a, k) = (self.inputs[0].clone(), self.inputs[3].clone());
        let (y, z) = (self.outputs[1].clone(), self.outputs[2].clone());
        let t = local("w", a.dtype, []);
        self.nest(std::slice::from_ref(&n), false, &mut Vec::new(), &mut |g, iters| {
            let i = iters[0].value.clone();
            let first = store(&t, [], &Expr::float(0.0, t.dtype));
            let sum = g.nest(std::slice::from_ref(&m), false, &mut iters.to_vec(), &mut |_, iters| {
                let j = iters[1].value.clone();
                reduce(&t, [], ReduceOp::Add, &a.load([i.clone(), j.clone()]).times(&z.load([j])))
            });
            let last = reduce(&y, [&k.load([i]).modulo(&n)], ReduceOp::Add, &t.load([]));
            var_def(&t, block([first, sum, last]))
        })
    }

    /// Generates a local tensor per iteration, or a shared one that each iteration fills before it reads it.
    fn private(&mut self) -> Stmt {
        // A peek at the next random number, which stays available, so that existing seeds keep their programs.
        let one_of_all = self.rng.clone().random::<u64>() % 2 == 0;
        let over = self.sizes[0].clone();
        let float = self.inputs[0].dtype;
        let m = self.sizes[1].clone();
        let shape = if self.chance(0.5) { vec![] } else { vec![m] };
        let t = local("w", float, &shape);
        let nest = self.nest(&[over], false, &mut Vec::new(), &mut |g, iters| {
            let mut inside = iters.to_vec();
            let first = g.nest(&shape, false, &mut inside, &mut |g, iters| {
                let at: Vec<Expr> = iters[1..].iter().map(|i| i.value.clone()).collect();
                store(&t, &at, &g.value(&t, iters))
            });
            g.locals.push(t.clone());
            let then = g.nest(&shape, false, &mut inside, &mut |g, iters| g.body(iters));
            g.locals.pop();
            let both = block([first, then]);
            if one_of_all { both } else { var_def(&t, both) }
        });
        if one_of_all { var_def(&t, nest) } else { nest }
    }

    // ---- expressions

    /// Chooses for every dimension an iterator over it.
    fn indices(&mut self, t: &Tensor, iters: &[Iter]) -> Vec<Expr> {
        let mut at = Vec::new();
        for d in &t.shape {
            let fit: Vec<Expr> = iters.iter().filter(|i| i.size == *d).map(|i| i.value.clone()).collect();
            at.push(match fit.len() {
                0 => Expr::int(0),
                len => fit[self.below(len)].clone(),
            });
        }
        at
    }

    /// Generates a value for an element of a tensor, from elements that the iterators can index.
    fn value(&mut self, t: &Tensor, iters: &[Iter]) -> Expr {
        let (first, second) = (self.leaf(t, iters), self.leaf(t, iters));
        match self.below(5) {
            // The front end would reduce `max(x, x)` to `x`.
            _ if first == second => first,
            0 | 1 => first.plus(&second),
            2 if t.dtype.is_float() => first.times(&Expr::float(2.0, t.dtype)).minus(&second),
            3 => first.max_with(&second),
            _ => first,
        }
    }

    fn leaf(&mut self, t: &Tensor, iters: &[Iter]) -> Expr {
        let all = self.inputs.iter().chain(&self.outputs).chain(&self.locals);
        let mut fit: Vec<Arc<Tensor>> = all.filter(|o| o.dtype == t.dtype && o.symbol != t.symbol).cloned().collect();
        fit.retain(|o| o.shape.iter().all(|d| d.as_int().is_some() || iters.iter().any(|i| i.size == *d)));
        // Prefers locals: transformations act on producers and their consumers.
        let local: Vec<Arc<Tensor>> =
            fit.iter().filter(|o| self.locals.iter().any(|l| l.symbol == o.symbol)).cloned().collect();
        if !local.is_empty() && self.chance(0.4) {
            fit = local;
        }
        let Some(from) = fit.get(self.below(fit.len())).cloned() else {
            return Expr::int(self.rng.random_range(1..4)).cast(t.dtype);
        };
        let at = self.indices(&from, iters);
        from.load(at)
    }
}
