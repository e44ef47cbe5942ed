//! `ragged`: the first coordinates of the dimension, as many for each position of the level above as there are
//! positions from `pos[p]` to `pos[p + 1]`.
//!
//! ```text
//!     0 1 2 3        pos   0     3   3   4          three coordinates under position 0, none under 1, one under 2
//! 0   a b c .
//! 1   . . . .
//! 2   d . . .
//! ```

use super::{Access, ArrayKind, LevelFormat, Packing, blocks};
use crate::layout::FlatLevel;
use crate::looplet::{Block, Looplet};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Ragged;

const POS: usize = 0;

impl LevelFormat for Ragged {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[ArrayKind { name: "pos", length: |above, _| above.plus(&Expr::int(1)) }]
    }

    fn positions(&self, _: &Expr, _: &Expr, own: &mut dyn FnMut() -> Expr) -> Expr {
        own()
    }

    fn access(&self, level: &FlatLevel, above: &Expr, index: &Expr, _: &Symbol) -> Access {
        let begin = level.load(POS, above);
        let length = level.load(POS, &above.plus(&Expr::int(1))).minus(&begin);
        let position = begin.plus(index);
        let promises =
            vec![Expr::int(0).less_eq(&position).and(&position.less(&level.positions)), length.less_eq(&level.size)];
        Access::Traversed(Looplet::Block(Block { first: Expr::int(0), last: length, position, promises }))
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Vec<Vec<i64>> {
        let (_, pos) = blocks(entries, |_| 0);
        vec![pos]
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: i64, _: i64) -> Vec<(i64, i64)> {
        let pos = &arrays[POS];
        let fibre = |p: i64| (0..pos[p as usize + 1] - pos[p as usize]).map(move |c| (p, c));
        (0..above).flat_map(fibre).collect()
    }
}
