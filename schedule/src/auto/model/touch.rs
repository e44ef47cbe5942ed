//! Accesses: how an address grows with the loops around it, and the bytes that are touched.

use super::remembered::number;
use super::{Around, Values};
use crate::auto::target::LINE;
use crate::tree::Loop;
use std::hash::Hash as _;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::stride::strides;
use taffeta_ast::{Access, Expr, ExprKind, StmtKind, Symbol};

/// How an address grows with a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::auto) enum Growth {
    /// It does not.
    None,
    /// By one element.
    One,
    /// By so few that a cache line has several.
    Near,
    /// By whole rows.
    Far,
    /// By what a tensor says.
    Gather,
}

/// The growth of an index in each loop.
pub(super) fn grows(index: &Expr, iters: &[&Symbol]) -> Vec<Growth> {
    let mut read = false;
    index.walk(&mut |e| read |= matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty()));
    match strides(index, iters) {
        Ok(by) => by
            .iter()
            .map(|by| match by.as_int().map(i64::abs) {
                Some(0) => Growth::None,
                Some(1) => Growth::One,
                Some(k) if k < 8 => Growth::Near,
                _ => Growth::Far,
            })
            .collect(),
        Err(_) => {
            let mentions = |i: &&Symbol| effects::mentions(index, &[*i]);
            let how = if read { Growth::Gather } else { Growth::Far };
            iters.iter().map(|i| if mentions(i) { how } else { Growth::None }).collect()
        }
    }
}

/// Whether an index in a loop is computed of iterators so that it hardly can be proved to be in range: by products and
/// quotients of these. `iters`: of the loop, and of those around it.
pub(super) fn is_checked(l: &Loop, iters: &[&Symbol]) -> bool {
    let is_checked = |index: &Expr| {
        let moves = effects::mentions(index, &[&l.iter]) && effects::loads(index).is_empty();
        moves && strides(index, iters).is_err()
    };
    let mut found = false;
    let mut look = |at: &[Access]| found |= at.iter().any(|a| is_checked(&a.index));
    l.body.walk_exprs(&mut |e| {
        if let ExprKind::Load(_, at) = e.kind() {
            look(at);
        }
    });
    l.body.walk(&mut |s| {
        if let StmtKind::Store { indices, .. } | StmtKind::ReduceTo { indices, .. } = s.kind() {
            look(indices);
        }
    });
    found
}

/// The growth of an element's address in each loop.
pub(in crate::auto) fn growth<'e>(at: impl ExactSizeIterator<Item = &'e Expr>, iters: &[&Symbol]) -> Vec<Growth> {
    let mut growth = vec![Growth::None; iters.len()];
    let count = at.len();
    for (k, index) in at.enumerate() {
        let last = k + 1 == count;
        for (g, own) in growth.iter_mut().zip(grows(index, iters)) {
            *g = match (own, last) {
                (Growth::None, _) => *g,
                (Growth::One, false) => Growth::Far,
                (own, _) => own.max(*g),
            };
        }
    }
    growth
}

/// By how much an address grows with a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// By so many bytes.
    Bytes(f64),
    /// By what a tensor says.
    Gather,
}

/// An access to a tensor.
pub(super) struct Touch {
    pub tensor: Symbol,
    /// By how much its address grows with each loop around, outermost first.
    steps: Vec<Step>,
    /// Of an element.
    pub bytes: f64,
    /// Whether elements are integers, or truth values.
    pub integers: bool,
    pub written: bool,
    /// Whether it is an element of an array that stays in registers.
    pub in_registers: bool,
    /// Whether an access before it in the same iteration of a loop around has brought it in, or does so soon.
    pub near: bool,
    /// The bytes of the whole tensor.
    pub all: f64,
}

impl Touch {
    pub fn new(values: &Values<'_>, around: &[Around], tensor: &Symbol, at: &[&Expr], bytes: f64) -> Touch {
        let iters: Vec<&Symbol> = around.iter().map(|l| &l.iter).collect();
        let sizes: Vec<f64> = values.shape(tensor).iter().map(|d| values.value(d).value.max(1.0)).collect();
        let mut steps = vec![Step::Bytes(0.0); iters.len()];
        for (k, index) in at.iter().enumerate() {
            let inside = sizes.iter().skip(k + 1).product::<f64>() * bytes;
            add(&mut steps, index, &iters, inside, values);
        }
        // Its elements have names of their own once loops of constant trip counts are unrolled.
        let unrolled = |(l, step): (&Around, &Step)| *step == Step::Bytes(0.0) || l.is_unrolled();
        let in_registers = values.may_be_in_registers(tensor) && around.iter().zip(&steps).all(unrolled);
        let integers = values.is_of_integers(tensor);
        let tensor = tensor.clone();
        Touch {
            tensor,
            steps,
            bytes,
            integers,
            written: false,
            in_registers,
            near: false,
            all: sizes.iter().product::<f64>() * bytes,
        }
    }

    pub fn written(mut self) -> Touch {
        self.written = true;
        self
    }

    /// The growth with each loop.
    pub fn growth(&self) -> impl Iterator<Item = Growth> {
        self.steps.iter().map(|step| match step {
            Step::Gather => Growth::Gather,
            Step::Bytes(0.0) => Growth::None,
            Step::Bytes(by) if by.abs() <= self.bytes => Growth::One,
            Step::Bytes(by) if by.abs() < LINE => Growth::Near,
            Step::Bytes(_) => Growth::Far,
        })
    }

    /// The growth with the innermost loop.
    pub fn last(&self) -> Option<Growth> {
        self.growth().last()
    }

    /// Whether it is the same element in all iterations of the innermost loop.
    pub fn stays(&self) -> bool {
        self.last() == Some(Growth::None)
    }

    /// By how much its address grows with the loop at this depth.
    pub fn step(&self, depth: usize) -> Option<Step> {
        self.steps.get(depth).copied()
    }

    /// Whether its address grows as that of another access does.
    pub fn goes_as(&self, other: &Touch) -> bool {
        self.steps == other.steps
    }

    /// The access as what comes after it knows it.
    pub fn walk(&self, around: &[Around]) -> Walk {
        let loops: Vec<_> = around.iter().map(|l| l.iter.clone()).zip(self.steps.iter().copied()).collect();
        let number = number(|hasher| {
            self.tensor.id().hash(hasher);
            for (iter, step) in &loops {
                iter.id().hash(hasher);
                match step {
                    Step::Bytes(by) => by.to_bits().hash(hasher),
                    Step::Gather => u64::MAX.hash(hasher),
                }
            }
        });
        Walk { tensor: self.tensor.clone(), loops, number }
    }

    /// Whether it goes through its tensor as another access does, in loops that are around both, and what it touches
    /// while they stand still is less than `bytes`.
    pub fn follows(&self, other: &Walk, around: &[Around], bytes: f64) -> bool {
        let both =
            || around.iter().zip(&self.steps).zip(&other.loops).take_while(|((l, _), (iter, _))| l.iter == *iter);
        let depth = both().count();
        other.tensor == self.tensor
            && depth > 0
            && both().all(|((_, own), (_, others))| own == others)
            && self.footprint(around, depth, LINE) <= bytes
    }

    /// The loops around, up to the last one in which its address grows by what a tensor says.
    pub fn pointed(&self) -> usize {
        self.steps.iter().rposition(|step| *step == Step::Gather).map_or(0, |depth| depth + 1)
    }

    /// Bytes that the loops from this depth on touch, in whole cache lines, or whole pages.
    pub fn footprint(&self, around: &[Around], depth: usize, line: f64) -> f64 {
        let (pieces, bytes) = self.pieces(around, depth, line);
        (pieces * bytes).min(self.all.max(line))
    }

    /// How often the loops from this depth on begin elsewhere, also where they have been before, and the bytes that
    /// they touch side by side, in whole cache lines, or whole pages.
    pub fn pieces(&self, around: &[Around], depth: usize, line: f64) -> (f64, f64) {
        let (mut steps, mut apart): (Vec<(f64, f64)>, f64) = (Vec::new(), 1.0);
        for (l, step) in around.iter().zip(&self.steps).skip(depth) {
            let trips = l.trips.value.max(1.0);
            match step {
                Step::Gather => apart *= trips,
                Step::Bytes(0.0) => {}
                // Windows that overlap: `x[i + k]`.
                Step::Bytes(by) => match steps.iter_mut().find(|(known, _)| *known == by.abs()) {
                    Some((_, known)) => *known += trips - 1.0,
                    None => steps.push((by.abs(), trips)),
                },
            }
        }
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut piece = self.bytes;
        for (by, trips) in steps {
            // Steps into what is touched already, or into the next line.
            if by <= piece.max(line) {
                piece += by * (trips - 1.0);
            } else {
                apart *= trips;
            }
        }
        (apart, piece.max(line))
    }
}

/// How an access goes through its tensor: by how much its address grows with each loop.
#[derive(Clone)]
pub(super) struct Walk {
    tensor: Symbol,
    loops: Vec<(Symbol, Step)>,
    /// The same for walks that are the same.
    pub number: u64,
}

/// Adds what one index contributes to the growth of an address.
fn add(steps: &mut [Step], index: &Expr, iters: &[&Symbol], inside: f64, values: &Values<'_>) {
    match strides(index, iters) {
        Ok(by) => {
            for (step, by) in steps.iter_mut().zip(by) {
                if let Step::Bytes(known) = step {
                    *known += values.value(&by).value * inside;
                }
            }
        }
        Err(_) => {
            let mut read = false;
            index.walk(&mut |e| read |= matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty()));
            for (step, iter) in steps.iter_mut().zip(iters) {
                if effects::mentions(index, &[*iter]) {
                    *step = if read { Step::Gather } else { Step::Bytes(LINE.max(inside)) };
                }
            }
        }
    }
}
