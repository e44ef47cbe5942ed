//! Random calls of primitives, with arguments that often make sense.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use taffeta_ast::op::Op;
use taffeta_ast::{ExprKind, ReduceOp, Stmt, StmtKind, Symbol, Tensor};
use taffeta_schedule::{Arg, Handle, IndexMap, Schedule, Value, documentation};

/// Chooser of steps; the same seed chooses the same ones.
pub struct Chooser {
    rng: StdRng,
    methods: Vec<&'static str>,
}

/// Unimodular maps of two and three loops, with rows of coefficients and a constant.
const MAPS: [&[&[i64]]; 6] = [
    &[&[1, 1, 0], &[0, 1, 0]],
    &[&[0, 1, 0], &[1, 0, 0]],
    &[&[1, 0, 0], &[1, 1, 0]],
    &[&[-1, 0, 3], &[0, 1, 0]],
    &[&[1, 1, 0, 0], &[0, 1, 0, 0], &[0, 0, 1, 0]],
    &[&[0, 0, 1, 0], &[1, 0, 0, 0], &[0, 1, 0, 0]],
];

/// Returns the registered primitives that change programs; rules, which call these, have a campaign of their own.
pub fn primitives() -> Vec<&'static str> {
    const QUERIES: [&str; 6] = ["loops", "innermost", "writes", "parent", "length", "can"];
    // Random programs here have no arrays with constant subscripts alone; those of `sroa` have.
    let is_chosen = |n: &&str| !QUERIES.contains(n) && !n.starts_with("auto") && *n != "scalarize";
    documentation().map(|d| d.name).filter(is_chosen).collect()
}

impl Chooser {
    pub fn new(seed: u64) -> Chooser {
        Chooser::among(seed, primitives())
    }

    /// Builds a chooser among these primitives.
    pub fn among(seed: u64, methods: Vec<&'static str>) -> Chooser {
        Chooser { rng: StdRng::seed_from_u64(seed), methods }
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n.max(1))
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())].clone()) }
    }

    fn number(&mut self, lo: i64, hi: i64) -> i64 {
        self.rng.random_range(lo..=hi)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Chooses a primitive and its arguments, if the program has them.
    pub fn step(&mut self, s: &Schedule) -> Option<(String, Vec<Arg>)> {
        let method = self.pick(&self.methods.clone())?;
        let mut all = Vec::new();
        s.func().body.walk(&mut |s| all.push(s.clone()));
        let loops = loops(&s.func().body);
        let l = self.pick(&loops);
        let stmt = self.pick(&all)?;
        let handle = |s: &Stmt| Arg::from(s.id());
        let args = match method {
            "split" => {
                let mut args = vec![handle(&l?)];
                let n = self.number(1, 4);
                args.push(if self.one_in(3) { Arg::named("parts", n) } else { Arg::from(n) });
                if self.one_in(4) {
                    args.push(Arg::named("shift", self.number(0, 3)));
                }
                args
            }
            "reorder" => vec![Arg::from(self.nested(s, &l?))],
            "tile" => {
                let loops = self.nested(s, &l?);
                let sizes: Vec<Value> = (0..loops.len()).map(|_| Value::Int(self.number(1, 3))).collect();
                let mut args = vec![Arg::from(loops), Arg::from(sizes)];
                if self.one_in(3) {
                    args.push(Arg::named("wavefront", true));
                }
                if self.one_in(3) {
                    args.push(Arg::named("distribute", false));
                }
                if self.one_in(2) {
                    args.push(Arg::named("separate", true));
                }
                args
            }
            "polyhedral" if self.one_in(4) => vec![handle(&stmt)],
            "permute" => {
                let loops = self.nested(s, &l?);
                let rows = self.pick(&MAPS)?;
                let map = IndexMap::affine(&rows.iter().map(|r| r.to_vec()).collect::<Vec<_>>());
                vec![Arg::from(loops), Arg { name: None, value: Value::Map(map), span: taffeta_ast::Span::NONE }]
            }
            "merge" => {
                let inner = l?;
                vec![handle(s.around(inner.id()).last()?), handle(&inner)]
            }
            "fuse" => {
                let mut args = self.neighbours(&all, true)?;
                if self.one_in(4) {
                    args.push(Arg::named("shift", self.number(-2, 2)));
                }
                args
            }
            "swap" => {
                let pair: Vec<Value> = self.neighbours(&all, false)?.into_iter().map(|a| a.value).collect();
                vec![Arg::from(pair)]
            }
            "fission" => {
                let l = l?;
                let mut inside = Vec::new();
                l.walk(&mut |s| {
                    if let StmtKind::Seq(all) = s.kind() {
                        // A cut between two statements.
                        inside.extend(all[..all.len().saturating_sub(1)].iter().cloned());
                    }
                });
                if inside.is_empty() || self.one_in(4) {
                    l.walk(&mut |s| inside.push(s.clone()));
                }
                let at = self.pick(&inside)?;
                vec![handle(&l), Arg::named(if self.one_in(2) { "after" } else { "before" }, at.id())]
            }
            "move_to" if self.one_in(2) => {
                let mut pair = self.neighbours(&all, false)?;
                if self.one_in(2) {
                    pair.swap(0, 1);
                }
                let to = pair.pop()?;
                vec![pair.pop()?, Arg::named(if self.one_in(2) { "after" } else { "before" }, to.value)]
            }
            "move_to" => {
                let to = self.pick(&all)?;
                vec![handle(&stmt), Arg::named(if self.one_in(2) { "after" } else { "before" }, to.id())]
            }
            "unroll" if self.one_in(2) => vec![handle(&l?), Arg::named("factor", self.number(1, 4))],
            "specialize" => {
                let cond = self.pick(&["n % 2 == 0", "n > 2", "m < n"])?;
                vec![handle(&l?), Arg::from(cond)]
            }
            "cache_reduction" if !self.one_in(4) => {
                let (around, t) = self.reduced(&loops)?;
                vec![handle(&around), tensor(t)].into_iter().chain(self.padding()).collect()
            }
            "cache" | "cache_reduction" => {
                vec![handle(&stmt), self.tensor(s)?].into_iter().chain(self.padding()).collect()
            }
            "set_mem_type" => {
                let kind = self.pick(&["register", "stack", "heap", "arena"])?;
                vec![self.tensor(s)?, Arg::from(kind)]
            }
            "set_format" => {
                let format = self.pick(&["bytemap", "dense", "pattern(a)"])?;
                vec![self.tensor(s)?, Arg::from(format)]
            }
            "var_split" => vec![self.local(s, |_| true)?, Arg::from(self.number(0, 1)), Arg::from(self.number(1, 4))],
            "var_merge" => vec![self.local(s, |t| t.ndim() > 1)?, Arg::from(0)],
            "var_squeeze" => {
                vec![self.local(s, |t| t.shape.iter().any(|d| d.as_int() == Some(1)))?, Arg::from(self.number(0, 1))]
            }
            "var_unsqueeze" => vec![self.local(s, |_| true)?, Arg::from(self.number(0, 1))],
            "var_reorder" => vec![self.local(s, |t| t.ndim() > 1)?, Arg::from(vec![1i64, 0])],
            "inline" | "contract" => vec![self.local(s, |_| true)?],
            "privatize" => {
                let (t, l) = self.used(s)?;
                vec![tensor(t), handle(&l)]
            }
            "as_lib" if !self.one_in(4) => vec![handle(&self.product(&loops)?)],
            _ => vec![handle(&l?)],
        };
        Some((method.to_string(), args))
    }

    fn padding(&mut self) -> Option<Arg> {
        self.one_in(3).then(|| Arg::named("pad", self.number(1, 8)))
    }

    /// Chooses some of the loops around a loop and itself, in any order.
    fn nested(&mut self, s: &Schedule, l: &Stmt) -> Vec<Value> {
        let mut chain: Vec<Value> = s.around(l.id()).iter().chain([l]).map(|s| Value::from(s.id())).collect();
        let count = 2 + self.below(2);
        while chain.len() > count {
            chain.remove(self.below(chain.len()));
        }
        for k in (1..chain.len()).rev() {
            let other = self.below(k + 1);
            chain.swap(k, other);
        }
        chain
    }

    /// Chooses a loop with a sum of products in it.
    fn product(&mut self, loops: &[Stmt]) -> Option<Stmt> {
        let is_product = |s: &Stmt| match s.kind() {
            StmtKind::ReduceTo { op: ReduceOp::Add, value, .. } => {
                matches!(value.kind(), ExprKind::Apply(Op::Mul, args) if args.iter().all(|a| matches!(a.kind(), ExprKind::Load(..))))
            }
            _ => false,
        };
        let fit = |l: &&Stmt| l.any(&mut |s| is_product(s));
        self.pick(&loops.iter().filter(fit).cloned().collect::<Vec<_>>())
    }

    /// Chooses two statements that follow each other.
    fn neighbours(&mut self, all: &[Stmt], loops: bool) -> Option<Vec<Arg>> {
        let is_loop = |s: &Stmt| matches!(s.kind(), StmtKind::For { .. });
        let mut pairs = Vec::new();
        for s in all {
            if let StmtKind::Seq(v) = s.kind() {
                let wanted: Vec<&Stmt> = v.iter().filter(|s| !loops || is_loop(s)).collect();
                pairs.extend(wanted.windows(2).map(|w| vec![Arg::from(w[0].id()), Arg::from(w[1].id())]));
            }
        }
        self.pick(&pairs)
    }

    /// Chooses a loop, and a tensor that a reduction in it writes.
    fn reduced(&mut self, loops: &[Stmt]) -> Option<(Stmt, Symbol)> {
        let mut all = Vec::new();
        for l in loops {
            l.walk(&mut |s| {
                if let StmtKind::ReduceTo { tensor, .. } = s.kind() {
                    all.push((l.clone(), tensor.clone()));
                }
            });
        }
        self.pick(&all)
    }

    /// Chooses a tensor, and a loop that writes it; most often the loop is inside the tensor's declaration.
    fn used(&mut self, s: &Schedule) -> Option<(Symbol, Stmt)> {
        let mut all = Vec::new();
        s.func().body.walk(&mut |d| {
            let StmtKind::VarDef { tensor, body } = d.kind() else { return };
            for l in loops(body) {
                let mut used = false;
                l.walk(&mut |s| {
                    if let StmtKind::Store { tensor: t, .. } | StmtKind::ReduceTo { tensor: t, .. } = s.kind() {
                        used |= *t == tensor.symbol;
                    }
                });
                all.extend(used.then(|| (tensor.symbol.clone(), l)));
            }
        });
        if all.is_empty() || self.one_in(8) {
            let l = self.pick(&loops(&s.func().body))?;
            let written: Vec<Symbol> = s.func().interface().map(|t| t.symbol.clone()).collect();
            return Some((self.pick(&written)?, l));
        }
        self.pick(&all)
    }

    /// Chooses a local tensor of that kind most often, if there is one.
    fn local(&mut self, s: &Schedule, fits: impl Fn(&Tensor) -> bool) -> Option<Arg> {
        let mut all = Vec::new();
        s.func().body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind()
                && fits(tensor)
            {
                all.push(tensor.symbol.clone());
            }
        });
        if all.is_empty() || self.one_in(8) {
            return self.tensor(s);
        }
        self.pick(&all).map(tensor)
    }

    /// Chooses a tensor of the interface or a local one.
    fn tensor(&mut self, s: &Schedule) -> Option<Arg> {
        let mut all: Vec<Symbol> = s.func().interface().map(|t| t.symbol.clone()).collect();
        s.func().body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind() {
                // Local tensors are the subject of most primitives.
                all.extend([tensor.symbol.clone(), tensor.symbol.clone()]);
            }
        });
        self.pick(&all).map(tensor)
    }
}

/// Returns the loops in a statement, in the order of the text.
fn loops(inside: &Stmt) -> Vec<Stmt> {
    let mut all = Vec::new();
    inside.walk(&mut |s| all.extend(matches!(s.kind(), StmtKind::For { .. }).then(|| s.clone())));
    all
}

fn tensor(t: Symbol) -> Arg {
    Arg { name: None, value: Value::Handle(Handle::Tensor(t)), span: taffeta_ast::Span::NONE }
}
