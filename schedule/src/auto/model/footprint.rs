//! Footprints of loops: the bytes that they touch, by tensor.

use taffeta_ast::Symbol;

/// Footprint in each tensor.
pub(in crate::auto::model) type WorkingSet = Vec<TensorFootprint>;

/// Footprint in one tensor.
pub(in crate::auto::model) struct TensorFootprint {
    pub tensor: Symbol,
    /// Bytes touched by the loops from a depth on, for fixed iterations of the loops outside, indexed by that depth;
    /// the maximum over accesses.
    pub bytes: Vec<f64>,
    /// Number of enclosing loops, down to the innermost one with a data-dependent stride.
    pub pointed: usize,
}
