//! `dense`: every coordinate of the dimension, in order. It has no arrays: the position of coordinate `i` under
//! position `p` is `p * size + i`.
//!
//! ```text
//! coordinates   0 1 2 | 0 1 2        size 3, two positions above
//! positions     0 1 2   3 4 5
//! ```

use super::{Access, ArrayKind, LevelFormat, Packing};
use crate::layout::FlatLevel;
use taffeta_ast::{Expr, Symbol};

pub(super) struct Dense;

impl LevelFormat for Dense {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[]
    }

    fn positions(&self, above: &Expr, size: &Expr, _: &mut dyn FnMut() -> Expr) -> Expr {
        above.times(size)
    }

    fn access(&self, level: &FlatLevel, above: &Expr, index: &Expr, _: &Symbol) -> Access {
        Access::Located(above.times(&level.size).plus(index))
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Vec<Vec<i64>> {
        for (p, c) in entries.positions.iter_mut().zip(entries.coordinates) {
            *p = *p * entries.size + c;
        }
        *entries.count *= entries.size;
        Vec::new()
    }

    fn unpack(&self, _: &[Vec<i64>], above: i64, size: i64) -> Vec<(i64, i64)> {
        (0..above).flat_map(|p| (0..size).map(move |c| (p, c))).collect()
    }
}
