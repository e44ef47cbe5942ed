//! Accesses: strides of addresses in the enclosing loops, and footprints in bytes.
use super::hash::number;
use crate::auto::model::enclosing::EnclosingLoop;
use crate::auto::target::LINE;
use crate::auto::trip_counts::Values;
use crate::tree::Loop;
use std::hash::Hash as _;
use taffeta_analysis::query::effects;
use taffeta_analysis::query::stride::strides;
use taffeta_ast::{Access, Expr, ExprKind, StmtKind, Symbol};

/// Element: a tensor and its indices.
pub(super) type Element = (Symbol, Vec<Expr>);

/// Stride class of an address in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::auto) enum StrideClass {
    /// Invariant address.
    None,
    /// Stride of one element.
    One,
    /// Stride so small that a cache line holds several elements.
    Near,
    /// Large stride, such as a whole row, or a non-affine index.
    Far,
    /// Data-dependent stride, by a loaded index.
    Gather,
}

/// Returns the stride class of an index in each loop.
pub(super) fn grows(index: &Expr, iters: &[&Symbol]) -> Vec<StrideClass> {
    let read = index.any(&mut |e| matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty()));
    match strides(index, iters) {
        Ok(by) => by
            .iter()
            .map(|by| match by.as_int().map(i64::abs) {
                Some(0) => StrideClass::None,
                Some(1) => StrideClass::One,
                Some(k) if k < 8 => StrideClass::Near,
                _ => StrideClass::Far,
            })
            .collect(),
        Err(_) => {
            let mentions = |i: &&Symbol| effects::mentions(index, &[*i]);
            let how = if read { StrideClass::Gather } else { StrideClass::Far };
            iters.iter().map(|i| if mentions(i) { how } else { StrideClass::None }).collect()
        }
    }
}

/// Returns whether some index in a loop is a non-affine function of iterators, so that it can hardly be proved to be in
/// range. `iters` lists the iterators of the loop and of the loops around it.
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

/// Returns the stride class of an element's address in each loop.
pub(in crate::auto) fn growth<'e>(at: impl ExactSizeIterator<Item = &'e Expr>, iters: &[&Symbol]) -> Vec<StrideClass> {
    let mut growth = vec![StrideClass::None; iters.len()];
    let count = at.len();
    for (k, index) in at.enumerate() {
        let last = k + 1 == count;
        for (g, own) in growth.iter_mut().zip(grows(index, iters)) {
            *g = match (own, last) {
                (StrideClass::None, _) => *g,
                (StrideClass::One, false) => StrideClass::Far,
                (own, _) => own.max(*g),
            };
        }
    }
    growth
}

/// Stride of an address in a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Stride in bytes.
    Bytes(f64),
    /// Data-dependent stride, by a loaded index.
    Gather,
}

/// Access to a tensor.
pub(super) struct AccessPattern {
    pub tensor: Symbol,
    /// Stride of the address in each enclosing loop, outermost first.
    steps: Vec<Step>,
    /// Element size in bytes.
    pub bytes: f64,
    /// Whether elements are integers or booleans.
    pub integers: bool,
    pub written: bool,
    /// Whether the element belongs to an array that stays in registers.
    pub in_registers: bool,
    /// Whether an earlier access in the same iteration of an enclosing loop has fetched the element, or fetches it
    /// soon.
    pub near: bool,
    /// Size of the whole tensor in bytes.
    pub all: f64,
}

impl AccessPattern {
    pub fn new(
        values: &Values<'_>,
        around: &[EnclosingLoop],
        tensor: &Symbol,
        at: &[&Expr],
        bytes: f64,
    ) -> AccessPattern {
        let iters: Vec<&Symbol> = around.iter().map(|l| &l.iter).collect();
        let sizes: Vec<f64> = values.shape(tensor).iter().map(|d| values.value(d).value.max(1.0)).collect();
        let mut steps = vec![Step::Bytes(0.0); iters.len()];
        for (k, index) in at.iter().enumerate() {
            let inside = sizes.iter().skip(k + 1).product::<f64>() * bytes;
            add(&mut steps, index, &iters, inside, values);
        }
        // Full unrolling of constant loops turns the elements into scalars.
        let unrolled = |(l, step): (&EnclosingLoop, &Step)| *step == Step::Bytes(0.0) || l.is_unrolled();
        let in_registers = values.may_be_in_registers(tensor) && around.iter().zip(&steps).all(unrolled);
        let integers = values.is_of_integers(tensor);
        let tensor = tensor.clone();
        AccessPattern {
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

    pub fn written(mut self) -> AccessPattern {
        self.written = true;
        self
    }

    /// Returns the stride class in each loop.
    pub fn growth(&self) -> impl Iterator<Item = StrideClass> {
        self.steps.iter().map(|step| match step {
            Step::Gather => StrideClass::Gather,
            Step::Bytes(0.0) => StrideClass::None,
            Step::Bytes(by) if by.abs() <= self.bytes => StrideClass::One,
            Step::Bytes(by) if by.abs() < LINE => StrideClass::Near,
            Step::Bytes(_) => StrideClass::Far,
        })
    }

    /// Returns the stride class in the innermost loop.
    pub fn last(&self) -> Option<StrideClass> {
        self.growth().last()
    }

    /// Returns whether the element is invariant in the innermost loop.
    pub fn stays(&self) -> bool {
        self.last() == Some(StrideClass::None)
    }

    /// Returns the stride in the loop at this depth.
    pub fn step(&self, depth: usize) -> Option<Step> {
        self.steps.get(depth).copied()
    }

    /// Returns whether the access has the same strides as another one.
    pub fn has_same_strides(&self, other: &AccessPattern) -> bool {
        self.steps == other.steps
    }

    /// Returns the tensor and the strides, for comparison with later accesses.
    pub fn walk(&self, around: &[EnclosingLoop]) -> ReuseKey {
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
        ReuseKey { tensor: self.tensor.clone(), loops, number }
    }

    /// Returns whether the access has the same tensor and strides as an earlier one in the loops around both, and its
    /// footprint inside of these loops is at most `bytes`.
    pub fn follows(&self, other: &ReuseKey, around: &[EnclosingLoop], bytes: f64) -> bool {
        let both =
            || around.iter().zip(&self.steps).zip(&other.loops).take_while(|((l, _), (iter, _))| l.iter == *iter);
        let depth = both().count();
        other.tensor == self.tensor
            && depth > 0
            && both().all(|((_, own), (_, others))| own == others)
            && self.footprint(around, depth, LINE) <= bytes
    }

    /// Returns the number of enclosing loops, down to the innermost one with a data-dependent stride.
    pub fn pointed(&self) -> usize {
        self.steps.iter().rposition(|step| *step == Step::Gather).map_or(0, |depth| depth + 1)
    }

    /// Returns the bytes that the loops from this depth on touch, in whole cache lines or pages.
    pub fn footprint(&self, around: &[EnclosingLoop], depth: usize, line: f64) -> f64 {
        let (pieces, bytes) = self.pieces(around, depth, line);
        (pieces * bytes).min(self.all.max(line))
    }

    /// Returns the number of contiguous pieces that the loops from this depth on touch, revisits included, and the
    /// bytes of one piece, in whole cache lines or pages.
    pub fn pieces(&self, around: &[EnclosingLoop], depth: usize, line: f64) -> (f64, f64) {
        let (mut steps, mut apart): (Vec<(f64, f64)>, f64) = (Vec::new(), 1.0);
        for (l, step) in around.iter().zip(&self.steps).skip(depth) {
            let trips = l.trips.value.max(1.0);
            match step {
                Step::Gather => apart *= trips,
                Step::Bytes(0.0) => {}
                // Overlapping windows: `x[i + k]`.
                Step::Bytes(by) => match steps.iter_mut().find(|(known, _)| *known == by.abs()) {
                    Some((_, known)) => *known += trips - 1.0,
                    None => steps.push((by.abs(), trips)),
                },
            }
        }
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut piece = self.bytes;
        for (by, trips) in steps {
            // The step leads into the touched piece or into the next line.
            if by <= piece.max(line) {
                piece += by * (trips - 1.0);
            } else {
                apart *= trips;
            }
        }
        (apart, piece.max(line))
    }
}

/// Tensor and stride of the address in each loop, by which a later access is recognised as a reuse.
#[derive(Clone)]
pub(super) struct ReuseKey {
    tensor: Symbol,
    loops: Vec<(Symbol, Step)>,
    /// Hash of the pattern.
    pub number: u64,
}

/// Adds the contribution of one index to the strides of an address.
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
            let read = index.any(&mut |e| matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty()));
            for (step, iter) in steps.iter_mut().zip(iters) {
                if effects::mentions(index, &[*iter]) {
                    *step = if read { Step::Gather } else { Step::Bytes(LINE.max(inside)) };
                }
            }
        }
    }
}
