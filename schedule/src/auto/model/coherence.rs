//! Coherence cost: data that one thread has written moves between cores when another thread touches it next.
//!
//! A parallel loop inside of a sequential one is started again in each iteration of the latter. Its threads then read
//! data that lies in the caches of other cores, since it was written there in between: by the single thread between
//! parallel loops, or by a parallel loop with another distribution of the tensor. The single thread in turn reads data
//! written by the threads. Such lines are no farther away than the level that all cores share, but they come one after
//! the other, while a program on one thread has them in its own cache. Data in excess of a core's own cache would come
//! from the shared level anyway, and counts there (`Estimator::levels`).
//!
//! Traffic is estimated for pairs of accesses to a tensor, of which at least one writes, in the innermost loop around
//! both: the smaller of both footprints in one iteration of that loop. Each holder of a tensor pays for the pair with
//! the most traffic. Traffic that occurs once, between the outermost statements of a program, is left out.
use super::access::{AccessPattern, Step};
use crate::auto::model::enclosing::EnclosingLoop;
use crate::auto::target::{LINE, Target};
use crate::auto::trip_counts::Values;
use crate::tree::Loop;
use rustc_hash::FxHashMap;
use taffeta_ast::{Expr, ExprKind, Sharing, Stmt, StmtKind, Symbol};

/// Distribution of a tensor's elements to the threads that touch them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    /// Single thread of sequential code.
    One,
    /// Separate part for each thread, by the stride of the parallel loop.
    Parts(Step),
    /// All elements for each thread.
    Each,
}

/// Access with the loops around it.
struct Accessed {
    touch: AccessPattern,
    around: Vec<EnclosingLoop>,
    holder: Holder,
}

/// Returns the coherence cost of a single execution of a statement.
pub(super) fn time(target: &Target, values: &mut Values<'_>, s: &Stmt) -> f64 {
    if target.threads < 2 || !starts_threads_again(s, false) {
        return 0.0;
    }
    let mut collect = Collect { values, around: Vec::new(), reduced: Vec::new(), found: FxHashMap::default() };
    collect.stmt(s);
    let own = target.levels.iter().rev().nth(2).map_or(0.0, |l| l.bytes);
    // Footprint of an iteration of the outermost loop.
    let touched = |all: &Vec<Accessed>| all.iter().map(|a| a.touch.footprint(&a.around, 1, LINE)).fold(0.0, f64::max);
    let kept = (own / collect.found.values().map(touched).sum::<f64>().max(1.0)).min(1.0);
    let bytes: f64 = collect.found.values().map(|all| moved(all, target.threads as f64)).sum();
    kept * bytes * target.prices.transfer
}

/// Returns whether a parallel loop stands inside of a sequential one.
fn starts_threads_again(s: &Stmt, inside: bool) -> bool {
    match s.kind() {
        StmtKind::For { props, .. } if props.parallel.is_some() => inside,
        StmtKind::For { body, .. } => starts_threads_again(body, true),
        _ => s.kind().children().into_iter().any(|c| starts_threads_again(c, inside)),
    }
}

/// Returns the bytes of a tensor that threads wait for.
fn moved(all: &[Accessed], threads: f64) -> f64 {
    let mut most: Vec<(Holder, f64)> = Vec::new();
    for to in all {
        for from in all.iter().filter(|a| a.touch.written && a.holder != to.holder && a.holder != Holder::Each) {
            let bytes = moves(from, to, threads);
            match most.iter_mut().find(|(h, _)| *h == to.holder) {
                Some((_, known)) => *known = known.max(bytes),
                None => most.push((to.holder, bytes)),
            }
        }
    }
    most.iter().map(|(_, bytes)| bytes).sum()
}

/// Returns the bytes that threads wait for where access `to` touches elements written by access `from`.
fn moves(from: &Accessed, to: &Accessed, threads: f64) -> f64 {
    let both = || from.around.iter().zip(&to.around).take_while(|(a, b)| a.iter == b.iter);
    if both().any(|(a, _)| a.threads) {
        return 0.0;
    }
    let depth = both().count();
    if depth == 0 {
        return 0.0;
    }
    let touched = |a: &Accessed| a.touch.footprint(&a.around, depth, LINE);
    let often: f64 = both().map(|(a, _)| a.trips.value.max(0.0)).product();
    let waited = match to.holder {
        Holder::One => 1.0 - 1.0 / threads,
        Holder::Parts(_) => 1.0 / threads,
        Holder::Each => 1.0,
    };
    touched(from).min(touched(to)) * often * waited
}

/// Collector of the accesses of a statement, by tensor.
struct Collect<'a, 't> {
    values: &'a mut Values<'t>,
    around: Vec<EnclosingLoop>,
    /// Tensors reduced in private copies, which are merged instead of moved.
    reduced: Vec<Symbol>,
    found: FxHashMap<Symbol, Vec<Accessed>>,
}

impl Collect<'_, '_> {
    fn stmt(&mut self, s: &Stmt) {
        if let (Some(l), StmtKind::For { props, .. }) = (Loop::of(s), s.kind()) {
            let trips = self.values.enter(&l.iter, [&l.begin, &l.end, &l.step], &l.body);
            let known = self.reduced.len();
            if props.parallel.is_some() {
                let copied = props.reductions.iter().filter(|r| r.sharing == Sharing::Partial);
                self.reduced.extend(copied.map(|r| r.tensor.clone()));
            }
            let threads = props.parallel.is_some();
            let iter = l.iter.clone();
            self.around.push(EnclosingLoop {
                iter,
                trips,
                threads,
                lanes: false,
                auto_vectorized: false,
                width: 1.0,
                bounds: Vec::new(),
                overflows: 0,
                scattered: 0.0,
                path: 0,
                number: 0,
            });
            self.stmt(&l.body);
            self.around.pop();
            self.reduced.truncate(known);
            return self.values.leave();
        }
        if let StmtKind::Store { tensor, indices, value } | StmtKind::ReduceTo { tensor, indices, value, .. } = s.kind()
        {
            let at: Vec<&Expr> = indices.iter().map(|a| &a.index).collect();
            self.access(tensor, &at, value.dtype().size() as f64, true);
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(tensor, indices) = e.kind() {
                    let at: Vec<&Expr> = indices.iter().map(|a| &a.index).collect();
                    self.access(tensor, &at, e.dtype().size() as f64, false);
                }
            });
        }
        s.kind().children().into_iter().for_each(|c| self.stmt(c));
    }

    fn access(&mut self, tensor: &Symbol, at: &[&Expr], bytes: f64, written: bool) {
        if at.is_empty() || self.around.is_empty() || self.reduced.contains(tensor) {
            return;
        }
        let touch = AccessPattern::new(self.values, &self.around, tensor, at, bytes);
        if touch.in_registers {
            return;
        }
        let touch = if written { touch.written() } else { touch };
        let of_threads = self.around.iter().position(|l| l.threads);
        let holder = match of_threads.and_then(|k| touch.step(k)) {
            None => Holder::One,
            Some(Step::Bytes(0.0)) => Holder::Each,
            Some(Step::Bytes(by)) => Holder::Parts(Step::Bytes(by.abs())),
            Some(Step::Gather) => Holder::Parts(Step::Gather),
        };
        let all = self.found.entry(tensor.clone()).or_default();
        let same = |a: &Accessed| {
            a.touch.written == written
                && a.around.len() == self.around.len()
                && a.around.last().map(|l| &l.iter) == self.around.last().map(|l| &l.iter)
                && a.touch.has_same_strides(&touch)
        };
        if !all.iter().any(same) {
            all.push(Accessed { touch, around: self.around.clone(), holder });
        }
    }
}
