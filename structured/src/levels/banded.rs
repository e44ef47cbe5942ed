//! `banded`: one block of consecutive coordinates for each position of the level above. It begins at `start[p]`, and
//! has as many coordinates as there are positions from `pos[p]` to `pos[p + 1]`.
//!
//! ```text
//!     0 1 2 3        pos     0   2   2     5        coordinates 1 and 2 under position 0, none under 1, 0 to 2 under 2
//! 0   . a b .        start   1   0   0
//! 1   . . . .
//! 2   c d e .
//! ```

use super::{Access, ArrayKind, LevelFormat, Packing, blocks};
use crate::layout::FlatLevel;
use crate::looplet::{Block, Looplet};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Banded;

const POS: usize = 0;
const START: usize = 1;

impl LevelFormat for Banded {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[
            ArrayKind { name: "pos", length: |above, _| above.plus(&Expr::int(1)) },
            ArrayKind { name: "start", length: |above, _| above.clone() },
        ]
    }

    fn positions(&self, _: &Expr, _: &Expr, own: &mut dyn FnMut() -> Expr) -> Expr {
        own()
    }

    fn access(&self, level: &FlatLevel, above: &Expr, index: &Expr, _: &Symbol) -> Access {
        let (begin, start) = (level.load(POS, above), level.load(START, above));
        let last = level.load(POS, &above.plus(&Expr::int(1))).minus(&begin).plus(&start);
        let position = begin.plus(&index.minus(&start));
        let promises = vec![
            Expr::int(0).less_eq(&position).and(&position.less(&level.positions)),
            Expr::int(0).less_eq(&start).and(&last.less_eq(&level.size)),
        ];
        Access::Traversed(Looplet::Block(Block { first: start, last, position, promises }))
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Vec<Vec<i64>> {
        let (start, pos) = blocks(entries, |first| first);
        vec![pos, start]
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: i64, _: i64) -> Vec<(i64, i64)> {
        let (pos, start) = (&arrays[POS], &arrays[START]);
        let fibre = |p: i64| {
            let (k, first) = (p as usize, start[p as usize]);
            (first..first + pos[k + 1] - pos[k]).map(move |c| (p, c))
        };
        (0..above).flat_map(fibre).collect()
    }
}
