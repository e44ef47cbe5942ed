//! Estimates of trip counts and of other integers before a program runs, from constants, the sizes that a [`Target`]
//! expects, and assumed values. The cost model enters and leaves loops as it walks a program; within a loop, bounds
//! that depend on its iterator are averaged over samples.

use super::target::Target;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hash as _;
use std::rc::Rc;
use std::sync::Arc;
use taffeta_ast::format::{Coord, Format, LevelKind};
use taffeta_ast::op::Op;
use taffeta_ast::{Access, Expr, ExprKind, Func, Stmt, StmtKind, Symbol, Tensor};

/// Value assumed for a loaded integer, such as the trip count between loaded bounds that sizes do not determine.
const READ: f64 = 64.0;

/// Number of sampled iterations of a nest whose bounds depend on outer loops; one half of the samples mirrors the
/// other.
const SAMPLES: usize = 256;
/// Steps of sequences that fill the interval [0, 1) evenly, a different one per depth.
const STEPS: [f64; 6] = [0.618_033_988, 0.414_213_562, 0.732_050_807, 0.236_067_977, 0.645_751_311, 0.316_624_790];

/// Basis of an estimate, from certain to assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Constants and compiled-in sizes.
    Fact,
    /// Expected sizes.
    Hint,
    /// Assumed values.
    Guess,
}

/// Estimate of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Estimated value.
    pub value: f64,
    /// Basis of the value.
    pub basis: Basis,
}

/// Iterator of an entered loop.
#[derive(Clone, Debug)]
struct Iteration {
    symbol: Symbol,
    /// Average value.
    middle: Estimate,
    /// Values in sampled iterations of the nest.
    samples: Vec<f64>,
    /// Number of iterations of the nest, down to this loop, that each sample stands for.
    weights: Vec<f64>,
}

/// Estimated values of sizes, of the iterators of entered loops, and of the numbers of stored elements.
#[derive(Clone, Debug)]
pub(super) struct Values<'t> {
    target: &'t Target,
    declared: Rc<Declared>,
    iterators: Vec<Iteration>,
    /// Formats and stored element counts of structured tensors.
    stored: FxHashMap<Symbol, (Format, Estimate)>,
    /// Total size of all tensors in bytes.
    bytes: f64,
    /// Which of the declared tensors are local scalars and arrays that fit into registers.
    few: Vec<bool>,
}

/// Sizes and tensors that a program declares, which all estimates of it share.
#[derive(Debug)]
pub(super) struct Declared {
    /// Size parameters.
    sizes: Vec<Symbol>,
    /// Parameters, results and local tensors, in this order.
    tensors: Vec<Arc<Tensor>>,
    /// Positions in `tensors`.
    positions: FxHashMap<Symbol, usize>,
    /// Number of parameters and results.
    interface: usize,
}

impl Declared {
    pub fn of(func: &Func) -> Declared {
        let mut tensors: Vec<Arc<Tensor>> = func.interface().cloned().collect();
        let interface = tensors.len();
        func.body.walk(&mut |s| {
            if let StmtKind::VarDef { tensor, .. } = s.kind() {
                tensors.push(tensor.clone());
            }
        });
        let positions = tensors.iter().enumerate().map(|(k, t)| (t.symbol.clone(), k)).collect();
        Declared { sizes: func.sizes.clone(), tensors, positions, interface }
    }

    fn tensor(&self, t: &Symbol) -> Option<&Tensor> {
        self.positions.get(t).map(|k| &*self.tensors[*k])
    }
}

impl<'t> Values<'t> {
    /// Estimates the sizes of declared tensors, outside of all loops.
    pub fn of(declared: Rc<Declared>, target: &'t Target) -> Values<'t> {
        let tensors = &declared.tensors;
        let (iterators, stored, few) = (Vec::new(), FxHashMap::default(), Vec::new());
        let mut values = Values { target, declared: declared.clone(), iterators, stored, bytes: 0.0, few };
        let room = target.registers() * target.vector_bytes as f64;
        let fits = |t: &Tensor| {
            let sizes: Vec<Estimate> = t.shape.iter().map(|d| values.value(d)).collect();
            let bytes = sizes.iter().map(|d| d.value.max(0.0)).product::<f64>() * t.dtype.size() as f64;
            sizes.iter().all(|d| d.basis == Basis::Fact) && bytes <= room
        };
        let is_few = |(k, t): (usize, &Arc<Tensor>)| k >= declared.interface && (t.shape.is_empty() || fits(t));
        values.few = tensors.iter().enumerate().map(is_few).collect();
        for t in tensors.iter().filter(|t| !t.format.is_dense()) {
            let elements = match target.sizes.get(&format!("{}.stored", t.symbol.name())) {
                Some(n) => Estimate { value: *n as f64, basis: Basis::Hint },
                None => Estimate { value: values.guessed(t), basis: Basis::Guess },
            };
            values.stored.insert(t.symbol.clone(), (t.format.clone(), elements));
        }
        let elements = |t: &Tensor| match values.stored.get(&t.symbol) {
            Some((_, elements)) => elements.value,
            None => t.shape.iter().map(|d| values.value(d).value.max(1.0)).product::<f64>(),
        };
        values.bytes = tensors.iter().map(|t| elements(t) * t.dtype.size() as f64).sum();
        values
    }

    /// Returns the total size of the program's tensors in bytes.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Returns whether a tensor is local and small enough to be held in registers.
    pub fn may_be_in_registers(&self, tensor: &Symbol) -> bool {
        self.declared.positions.get(tensor).is_some_and(|k| self.few[*k])
    }

    /// Returns whether a local array is allocated at its declaration, since its shape depends on more than size
    /// parameters.
    pub fn is_allocated(&self, tensor: &Tensor) -> bool {
        super::allocation::is_allocated(&self.declared.sizes, tensor)
    }

    /// Returns the shape of a tensor.
    pub fn shape(&self, tensor: &Symbol) -> &[Expr] {
        self.declared.tensor(tensor).map_or(&[], |t| &t.shape)
    }

    /// Returns whether a tensor has integer or boolean elements.
    pub fn is_of_integers(&self, tensor: &Symbol) -> bool {
        self.declared.tensor(tensor).is_some_and(|t| !t.dtype.is_float())
    }

    /// Enters a loop. Returns its trip count, averaged over the iterations of the enclosing loops.
    pub fn enter(&mut self, iter: &Symbol, [begin, end, step]: [&Expr; 3], body: &Stmt) -> Estimate {
        let trips = match reads(begin) || reads(end) {
            true => self.read_trips(iter, end, body),
            false => self.trips([begin, end, step]),
        };
        let trips = match self.stored.is_empty() {
            true => trips,
            false => {
                let part = self.part_stored(iter, body);
                Estimate { value: trips.value * part.value, basis: trips.basis.max(part.basis) }
            }
        };
        let entered = self.entered(iter, [begin, end, step], trips);
        self.iterators.push(entered);
        trips
    }

    /// Builds the iterator of a loop with this average trip count.
    fn entered(&self, iter: &Symbol, [begin, end, step]: [&Expr; 3], trips: Estimate) -> Iteration {
        let first = self.value(begin);
        let by = step.as_int().unwrap_or(1) as f64;
        let basis = trips.basis.max(first.basis);
        let depth = self.iterators.len() % STEPS.len();
        let depends = self.mentions(begin) || self.mentions(end);
        let (mut samples, mut weights) = (vec![0.0; SAMPLES], vec![1.0; SAMPLES]);
        for k in 0..SAMPLES {
            let (first, count) = match depends {
                true => (self.at(begin, k), self.count_at([begin, end, step], k)),
                false => (first.value, trips.value),
            };
            let even = (0.5 + (k / 2) as f64 * STEPS[depth]).fract();
            samples[k] = first + by * count * if k % 2 == 0 { even } else { 1.0 - even };
            weights[k] = count * self.iterators.last().map_or(1.0, |around| around.weights[k]);
        }
        let all: f64 = weights.iter().sum();
        let middle = match depends && all > 0.0 {
            true => samples.iter().zip(&weights).map(|(i, w)| i * w).sum::<f64>() / all,
            false => first.value + by * trips.value / 2.0,
        };
        Iteration { symbol: iter.clone(), middle: Estimate { value: middle, basis }, samples, weights }
    }

    /// Returns whether an expression mentions the iterator of an entered loop.
    fn mentions(&self, e: &Expr) -> bool {
        e.mentions(&|s| self.iterators.iter().any(|i| i.symbol == *s))
    }

    /// Returns a loop's trip count in one sample of the enclosing loops.
    fn count_at(&self, [begin, end, step]: [&Expr; 3], k: usize) -> f64 {
        let step = step.as_int().filter(|s| *s != 0).unwrap_or(1) as f64;
        ((self.at(end, k) - self.at(begin, k)) / step).ceil().max(0.0)
    }

    /// Hashes the values of the innermost iterator.
    pub fn hash_iterator(&self, hasher: &mut FxHasher) {
        let Some(of) = self.iterators.last() else { return };
        (of.symbol.id(), of.middle.basis as u8).hash(hasher);
        let numbers = [of.middle.value].into_iter().chain(of.samples.iter().copied()).chain(of.weights.iter().copied());
        numbers.for_each(|n| n.to_bits().hash(hasher));
    }

    pub fn leave(&mut self) {
        self.iterators.pop();
    }

    fn trips(&self, [begin, end, by]: [&Expr; 3]) -> Estimate {
        let (first, last) = (self.value(begin), self.value(end));
        let step = by.as_int().filter(|s| *s != 0).unwrap_or(1) as f64;
        let basis = first.basis.max(last.basis);
        if let Some(around) = self.iterators.last().filter(|_| self.mentions(begin) || self.mentions(end)) {
            let counts = (0..SAMPLES).map(|k| self.count_at([begin, end, by], k) * around.weights[k]);
            let (all, counts): (f64, f64) = (around.weights.iter().sum(), counts.sum());
            return Estimate { value: if all > 0.0 { counts / all } else { 0.0 }, basis };
        }
        Estimate { value: ((last.value - first.value) / step).ceil().max(0.0), basis }
    }

    /// Returns the number of elements that a structured tensor is assumed to store: at most `READ` per innermost fibre.
    fn guessed(&self, t: &Tensor) -> f64 {
        let extent = |d: &Expr| self.value(d).value.max(1.0);
        let last = t.format.coords.last();
        let of = |(k, d): (usize, &Expr)| if last == Some(&Coord::Dim(k)) { extent(d).min(READ) } else { extent(d) };
        t.shape.iter().enumerate().map(of).product()
    }

    /// Returns the fraction of a loop's coordinates that are visited. A statement is taken to skip unstored coordinates
    /// if it reduces a value with a load at the loop's coordinate from a structured tensor, or writes into such a
    /// tensor; the statement that visits most counts.
    fn part_stored(&self, iter: &Symbol, body: &Stmt) -> Estimate {
        let all = Estimate { value: 1.0, basis: Basis::Fact };
        let mut most: Option<Estimate> = None;
        body.walk(&mut |s| {
            let (target, value) = match s.kind() {
                StmtKind::ReduceTo { tensor, indices, value, .. } => ((tensor, indices), Some(value)),
                StmtKind::Store { tensor, indices, .. } => ((tensor, indices), None),
                _ => return,
            };
            let mut part = self.part_of(iter, target.0, target.1).unwrap_or(all);
            if let Some(value) = value {
                value.walk(&mut |e| {
                    if let ExprKind::Load(tensor, at) = e.kind() {
                        let own = self.part_of(iter, tensor, at).filter(|own| own.value < part.value);
                        part = own.unwrap_or(part);
                    }
                });
            }
            most = most.filter(|m| m.value >= part.value).or(Some(part));
        });
        most.unwrap_or(all)
    }

    /// Returns the fraction of a loop's coordinates that a tensor stores; `None` unless the loop traverses one of its
    /// sparse levels inside of the loops over the levels before. Elements are spread over the fibres of the innermost
    /// sparse level, and outer levels store as many coordinates as they can.
    fn part_of(&self, iter: &Symbol, tensor: &Symbol, at: &[Access]) -> Option<Estimate> {
        let (format, elements) = self.stored.get(tensor)?;
        let dim = |j: usize| match format.coords.get(j) {
            Some(Coord::Dim(k)) => Some(*k),
            _ => None,
        };
        let sparse = |j: &usize| format.levels[*j].kind != LevelKind::Dense;
        let is_own = |j: &usize| dim(*j).and_then(|k| at.get(k)).is_some_and(|a| a.index == Expr::var(iter));
        let own = (0..format.levels.len()).find(is_own).filter(sparse)?;
        let known = |k: usize| match at.get(k).map(|a| a.index.kind()) {
            Some(ExprKind::Var(s)) => self.iterators.iter().any(|i| i.symbol == *s),
            index => index.is_some(),
        };
        if !(0..own).filter_map(dim).all(known) {
            return None;
        }
        let extent =
            |j: usize| dim(j).and_then(|k| self.shape(tensor).get(k)).map_or(1.0, |d| self.value(d).value.max(1.0));
        let visited = |j: usize| if sparse(&j) { extent(j).min(elements.value) } else { extent(j) };
        let innermost = !(own + 1..format.levels.len()).any(|j| sparse(&j));
        let fibres: f64 = if innermost { (0..own).map(visited).product() } else { 1.0 };
        Some(Estimate { value: (elements.value / (fibres * extent(own))).min(1.0), basis: elements.basis })
    }

    /// Returns the trip count of `range(first[i], first[i + 1])`: the extent of the dimension that the iterator
    /// indexes, divided by the number of ranges.
    fn read_trips(&self, iter: &Symbol, end: &Expr, body: &Stmt) -> Estimate {
        let guess = Estimate { value: READ, basis: Basis::Guess };
        let mut bound = end;
        while let ExprKind::Cast(inner) = bound.kind() {
            bound = inner;
        }
        let ExprKind::Load(first, _) = bound.kind() else { return guess };
        let mut elements = None;
        body.walk(&mut |s| {
            for e in s.kind().exprs() {
                e.walk(&mut |e| {
                    if let ExprKind::Load(t, at) = e.kind() {
                        let place = at.iter().position(|a| a.index == Expr::var(iter));
                        elements = elements.take().or_else(|| self.shape(t).get(place?).cloned());
                    }
                });
            }
        });
        match (elements, self.shape(first)) {
            (Some(elements), [ranges, ..]) => {
                let (elements, ranges) = (self.value(&elements), self.value(ranges));
                if elements.basis.max(ranges.basis) == Basis::Guess {
                    return guess;
                }
                let value = elements.value / (ranges.value - 1.0).max(1.0);
                Estimate { value, basis: Basis::Hint }
            }
            _ => guess,
        }
    }

    /// Returns the average value of an integer expression.
    pub fn value(&self, e: &Expr) -> Estimate {
        self.value_with(e, &|i| i.middle)
    }

    /// Returns the value of an integer expression in one sample of the enclosing loops.
    fn at(&self, e: &Expr, k: usize) -> f64 {
        self.value_with(e, &|i| Estimate { value: i.samples[k].floor(), basis: i.middle.basis }).value
    }

    fn value_with(&self, e: &Expr, of: &dyn Fn(&Iteration) -> Estimate) -> Estimate {
        let guess = |value| Estimate { value, basis: Basis::Guess };
        match e.kind() {
            ExprKind::Const(_) => e.as_int().map_or(guess(0.0), |v| Estimate { value: v as f64, basis: Basis::Fact }),
            ExprKind::Var(s) => match self.iterators.iter().rev().find(|i| i.symbol == *s) {
                Some(i) => of(i),
                None => match self.target.sizes.get(s.name()) {
                    Some(v) => {
                        let basis = if self.target.fixed.contains(s.name()) { Basis::Fact } else { Basis::Hint };
                        Estimate { value: *v as f64, basis }
                    }
                    None => guess(self.target.unknown),
                },
            },
            ExprKind::Cast(inner) => self.value_with(inner, of),
            ExprKind::Apply(op, args) => {
                let all: Vec<Estimate> = args.iter().map(|a| self.value_with(a, of)).collect();
                let basis = all.iter().map(|a| a.basis).max().unwrap_or(Basis::Fact);
                let at = |k: usize| all.get(k).map_or(0.0, |a: &Estimate| a.value);
                let value = match op {
                    Op::Add => at(0) + at(1),
                    Op::Sub => at(0) - at(1),
                    Op::Mul => at(0) * at(1),
                    Op::Neg => -at(0),
                    Op::Min => at(0).min(at(1)),
                    Op::Max => at(0).max(at(1)),
                    Op::FloorDiv if at(1) != 0.0 => (at(0) / at(1)).floor(),
                    Op::Mod if at(1) != 0.0 => at(0).rem_euclid(at(1)),
                    _ => return guess(at(0)),
                };
                Estimate { value, basis }
            }
            ExprKind::Load(..) | ExprKind::Measure(..) => guess(READ),
        }
    }
}

/// Returns whether an expression loads an array element, which may differ between iterations.
fn reads(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty()))
}
