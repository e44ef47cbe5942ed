//! `banded`: one block of consecutive coordinates per position of the level above. It begins at `start[p]`, and has as
//! many coordinates as there are positions from `pos[p]` to `pos[p + 1]`.
//!
//! ```text
//!     0 1 2 3        pos     0   2   2     5        coordinates 1 and 2 under position 0, none under 1, 0 to 2 under 2
//! 0   . a b .        start   1   0   0
//! 1   . . . .
//! 2   c d e .
//! ```

use super::blocks;
use crate::level::{ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking};
use crate::level_assembly::{LevelAssembly, Path, store_at};
use crate::looplet::{Fibre, Lookup, Looplet, Phase};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Banded;

const POS: usize = 0;
const START: usize = 1;

/// Block of a fibre: first coordinate, end coordinate (exclusive), and the positions of its coordinates.
struct Block {
    start: Expr,
    end: Expr,
    lookup: Lookup,
}

fn block(level: &TensorLevel, above: &Parent, index: &Expr) -> Block {
    let p = &above.positions;
    let (begin, start) = (level.load(POS, &p.first), level.load(START, &p.first));
    let end = level.load(POS, &p.end).minus(&begin).plus(&start);
    let position = begin.plus(&index.minus(&start));
    let assumptions = vec![
        Expr::int(0).less_eq(&position).and(&position.less(&level.positions)),
        Expr::int(0).less_eq(&start).and(&end.less_eq(&level.size)),
    ];
    Block { start, end, lookup: Lookup { position, stored: None, assumptions } }
}

impl LevelFormat for Banded {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[
            ArrayKind { name: "pos", positions: true, dtype: None, length: |n| n.above.plus(&Expr::int(1)) },
            ArrayKind { name: "start", positions: false, dtype: None, length: |n| n.above.clone() },
        ]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["n"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.hidden[0].clone()
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let Block { start, end, lookup } = block(level, above, index);
        Some(Lookup { stored: Some(start.less_eq(index).and(&index.less(&end))), ..lookup })
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, _: &Symbol) -> Looplet {
        let Block { start, end, lookup } = block(level, above, index);
        Looplet::Sequence(vec![
            Phase { end: Some(start), looplet: Looplet::Run(Fibre::Fill) },
            Phase { end: Some(end), looplet: Looplet::Lookup(lookup) },
            Phase { end: None, looplet: Looplet::Run(Fibre::Fill) },
        ])
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        let rules = vec![Rule::Partition { pos: POS, total: 0 }, Rule::Blocks { pos: POS, start: Some(START) }];
        Some(Contract { counts: vec![Counted::Last(POS)], rules, list: None })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let (start, pos) = blocks::pack(entries, |first| first)?;
        Ok(Packed { arrays: vec![pos, start], hidden: vec![*entries.count] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let (pos, start) = (&arrays[POS], &arrays[START]);
        (0..above.count).flat_map(|p| blocks::unpack(pos, p, start[p as usize])).collect()
    }
}

impl LevelAssembly for Banded {
    fn initial(&self, _: &TensorLevel, array: usize) -> Option<Expr> {
        (array == START).then(|| Expr::int(0))
    }

    fn fills(&self) -> bool {
        true
    }

    /// Returns nothing: the first coordinate of a block alone is stored.
    fn largest(&self, _: &Expr) -> Option<Expr> {
        None
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        path.open(self, k);
        let own = &path.assembly.levels[k];
        let (parent, count) = (path.position.clone(), own.counts[0].load([]));
        let first = own.level.load(POS, &parent);
        let begins = store_at(&own.level.arrays[START], &parent, coordinate.clone(), path.origin.clone());
        let begin = path.index_check(k, coordinate, coordinate).into_iter().chain([begins]).collect();
        path.branch(count.equals(&first), begin, Vec::new());
        let next = own.level.load(START, &parent).plus(&count.minus(&first));
        blocks::enter(path, k, &coordinate.plus(&Expr::int(1)).minus(&next));
    }
}
