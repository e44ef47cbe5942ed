//! `bytemap` as the last level of a local tensor, into which elements are inserted one by one: one byte per coordinate,
//! set if the coordinate is stored, and for each position above a list of the stored coordinates in the order of their
//! insertion, with room for all coordinates. The position of coordinate `i` under position `p` is `p * size + i`, as in
//! `dense`; the list of `p` begins at `p * size` in `crd`, and has `n[p]` coordinates.
//!
//! ```text
//!     0 1 2 3        n     2   0   1                   coordinates 3 and 1 under position 0, none under 1, 0 under 2
//! 0   . a . b        crd   3 1 . .   . . . .   0 . . .
//! 1   . . . .        map   0 1 0 1   0 0 0 0   1 0 0 0
//! 2   c . . .        positions 1, 3 and 8 of 12
//! ```

use crate::level::{ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking};
use crate::looplet::{Fibre, Lookup, Looplet, Positions, Stepper};
use taffeta_ast::{DType, Expr, Symbol};

pub(super) struct Workspace;

/// Index of the array of list lengths, `n` in the picture.
pub(crate) const COUNT: usize = 0;
pub(crate) const CRD: usize = 1;
pub(crate) const MAP: usize = 2;

impl LevelFormat for Workspace {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[
            ArrayKind { name: "n", positions: false, dtype: None, length: |n| n.above.clone() },
            ArrayKind { name: "crd", positions: false, dtype: None, length: |n| n.above.times(&n.size) },
            ArrayKind { name: "map", positions: false, dtype: Some(DType::U8), length: |n| n.above.times(&n.size) },
        ]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.times(&counts.size)
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let position = above.positions.first.times(&level.size).plus(index);
        let stored = Expr::int(0).less(&level.load(MAP, &position));
        Some(Lookup { position, stored: Some(stored), assumptions: Vec::new() })
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, _: &Expr, position: &Symbol) -> Looplet {
        let (row, entry) = (above.positions.first.times(&level.size), Expr::var(position));
        let last = level.load(CRD, &entry);
        let zero = Expr::int(0);
        let assumptions = vec![
            zero.less_eq(&entry).and(&entry.less(&level.arrays[CRD].shape[0])),
            zero.less_eq(&last).and(&last.less(&level.size)),
        ];
        Looplet::Stepper(Stepper {
            position: position.clone(),
            begin: row.clone(),
            end: row.plus(&level.load(COUNT, &above.positions.first)),
            body: Box::new(Looplet::Spike(Fibre::At(Positions::one(row.plus(&last))))),
            last,
            assumptions,
            full: false,
            unique: true,
            ordered: false,
        })
    }

    fn pack(&self, _: &mut Packing<'_>) -> Result<Packed, Misfit> {
        unreachable!("a workspace is never packed")
    }

    fn unpack(&self, _: &[Vec<i64>], _: &Unpacking<'_>) -> Vec<Entry> {
        unreachable!("a workspace is never unpacked")
    }
}
