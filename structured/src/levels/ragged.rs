//! `ragged`: the first coordinates of the dimension, for each position of the level above as many as there are
//! positions from `pos[p]` to `pos[p + 1]`.
//!
//! ```text
//!     0 1 2 3        pos   0     3   3   4          three coordinates under position 0, none under 1, one under 2
//! 0   a b c .
//! 1   . . . .
//! 2   d . . .
//! ```

use super::blocks;
use crate::level::{ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Fibre, Lookup, Looplet, Phase};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Ragged;

const POS: usize = 0;

/// Returns the number of coordinates of a fibre, and their positions.
fn prefix(level: &TensorLevel, above: &Parent, index: &Expr) -> (Expr, Lookup) {
    let p = &above.positions;
    let begin = level.load(POS, &p.first);
    let length = level.load(POS, &p.end).minus(&begin);
    let position = begin.plus(index);
    let assumptions =
        vec![Expr::int(0).less_eq(&position).and(&position.less(&level.positions)), length.less_eq(&level.size)];
    (length, Lookup { position, stored: None, assumptions })
}

impl LevelFormat for Ragged {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[ArrayKind { name: "pos", positions: true, dtype: None, length: |n| n.above.plus(&Expr::int(1)) }]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["n"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.hidden[0].clone()
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let (length, lookup) = prefix(level, above, index);
        Some(Lookup { stored: Some(index.less(&length)), ..lookup })
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, _: &Symbol) -> Looplet {
        let (length, lookup) = prefix(level, above, index);
        Looplet::Sequence(vec![
            Phase { end: Some(length), looplet: Looplet::Lookup(lookup) },
            Phase { end: None, looplet: Looplet::Run(Fibre::Fill) },
        ])
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        let rules = vec![Rule::Partition { pos: POS, total: 0 }, Rule::Blocks { pos: POS, start: None }];
        Some(Contract { counts: vec![Counted::Last(POS)], rules, list: None })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let (_, pos) = blocks::pack(entries, |_| 0)?;
        Ok(Packed { arrays: vec![pos], hidden: vec![*entries.count] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        (0..above.count).flat_map(|p| blocks::unpack(&arrays[POS], p, 0)).collect()
    }
}

impl LevelAssembly for Ragged {
    fn fills(&self) -> bool {
        true
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        path.open(self, k);
        let own = &path.assembly.levels[k];
        let next = own.counts[0].load([]).minus(&own.level.load(POS, &path.position));
        blocks::enter(path, k, &coordinate.plus(&Expr::int(1)).minus(&next));
    }
}
