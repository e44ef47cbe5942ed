//! Context of an estimate: the stage of scheduling, and the loops around a statement.

use crate::auto::trip_counts::Basis;
use crate::auto::trip_counts::Estimate;
use taffeta_ast::Expr;
use taffeta_ast::Symbol;

/// Stage of scheduling at which a program is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::auto) enum Stage {
    /// Before marks: innermost loops are assumed to get lanes where that is legal and pays.
    Structure,
    /// During marks: loops have the lanes they are marked with.
    Marks,
    /// After scheduling: C compilers receive the program as it is.
    Compiled,
}

/// Loop around a statement.
#[derive(Clone)]
pub(in crate::auto) struct EnclosingLoop {
    pub iter: Symbol,
    pub trips: Estimate,
    pub threads: bool,
    pub lanes: bool,
    /// Whether C compilers vectorise the loop without a mark.
    pub auto_vectorized: bool,
    /// Number of four-byte elements per vector.
    pub width: f64,
    /// Guards that become bounds of the loop.
    pub bounds: Vec<Expr>,
    /// Cache levels that an iteration's working set exceeds, two bits each: on one thread, and on all threads.
    pub overflows: u32,
    /// Approximate bytes that all iterations touch by indirect accesses.
    pub scattered: f64,
    /// Hash of the loop and the loops around it, without their working sets.
    pub path: u64,
    /// Hash of the loop and the loops around it, with their working sets: equal hashes mean equal contexts of the body.
    pub number: u64,
}

/// Returns whether an estimate rests on assumed values.
pub(in crate::auto) fn is_guess(e: Estimate) -> bool {
    e.basis == Basis::Guess
}
