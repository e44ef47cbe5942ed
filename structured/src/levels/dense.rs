//! `dense`: every coordinate of the dimension, in order. It has no arrays: the position of coordinate `i` under
//! position `p` is `p * size + i`.
//!
//! ```text
//! coordinates   0 1 2 | 0 1 2        size 3, two positions above
//! positions     0 1 2   3 4 5
//! ```

use crate::level::{ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Lookup, Looplet};
use taffeta_ast::format::{Contract, Level};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Dense;

impl LevelFormat for Dense {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.times(&counts.size)
    }

    fn located(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Expr> {
        Some(above.positions.first.times(&level.size).plus(index))
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let position = self.located(level, above, index)?;
        Some(Lookup { position, stored: None, assumptions: Vec::new() })
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, _: &Symbol) -> Looplet {
        let position = above.positions.first.times(&level.size).plus(index);
        Looplet::Lookup(Lookup { position, stored: None, assumptions: Vec::new() })
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        Some(Contract::default())
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let count = entries.everywhere()?;
        for (p, c) in entries.positions.iter_mut().zip(entries.coordinates) {
            *p = *p * entries.size + c;
        }
        *entries.count = count;
        Ok(Packed { arrays: Vec::new(), hidden: Vec::new() })
    }

    fn unpack(&self, _: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let fibre =
            |p: i64| (0..above.size).map(move |c| Entry { above: p, coordinate: c, position: p * above.size + c });
        (0..above.count).flat_map(fibre).collect()
    }
}

impl LevelAssembly for Dense {
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
        let level = &path.assembly.levels[k].level;
        path.position = path.position.times(&level.size).plus(coordinate);
    }
}
