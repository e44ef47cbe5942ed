//! `range`: the coordinates that have an element in the tensor, within the limits of the levels above and below (the
//! rows of DIA: a diagonal does not have all rows). It has no arrays. Its positions are those of `dense`: coordinate
//! `i` under position `p` has position `p * size + i`, and positions without an element are unused.
//!
//! ```text
//!     0 1 2 3        diagonals   0           1           3
//! 0   a b . c        rows        0 1 2       0 1 2       0
//! 1   . d e .        positions   0 1 2       3 4 5       6 (7 8)
//! 2   . . . f        elements    a d .       b e f       c
//! ```

use super::dense::Dense;
use crate::level::{ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Lookup, Looplet};
use taffeta_ast::format::{Contract, Level};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Range;

// Bounds checks on the indices of an access exclude coordinates outside of the tensor; inside, the level is dense.
impl LevelFormat for Range {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        Dense.positions(counts)
    }

    fn located(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Expr> {
        Dense.located(level, above, index)
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        Dense.lookup(level, above, index)
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, position: &Symbol) -> Looplet {
        Dense.fibre(level, above, index, position)
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        Some(Contract::default())
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        Dense.pack(entries)
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        // Coordinates outside of the tensor are dropped when indices are computed.
        Dense.unpack(arrays, above)
    }
}

impl LevelAssembly for Range {
    fn is_ordered(&self) -> bool {
        false
    }

    fn is_computed(&self) -> bool {
        true
    }

    fn fills(&self) -> bool {
        true
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        Dense.enter(path, k, coordinate);
    }
}
