//! `offset`: the single coordinate that the levels above determine (the columns of DIA: the diagonal `j - i` and the
//! row `i` determine `j`). It has no arrays, and its positions are those of the level above.
//!
//! ```text
//!     0 1 2 3        diagonals   0         1         3
//! 0   a b . c        rows        0 1 2     0 1 2     0
//! 1   . d e .        columns     0 1 2     1 2 3     3
//! 2   . . . f        elements    a d .     b e f     c
//! ```

use crate::level::{ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Lookup, Looplet};
use taffeta_ast::format::{Contract, Level};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Offset;

impl LevelFormat for Offset {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.clone()
    }

    fn located(&self, _: &TensorLevel, above: &Parent, _: &Expr) -> Option<Expr> {
        // An access that matches the coordinates above matches this one, too.
        Some(above.positions.first.clone())
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let position = self.located(level, above, index)?;
        Some(Lookup { position, stored: None, assumptions: Vec::new() })
    }

    fn fibre(&self, _: &TensorLevel, above: &Parent, _: &Expr, _: &Symbol) -> Looplet {
        Looplet::Lookup(Lookup { position: above.positions.first.clone(), stored: None, assumptions: Vec::new() })
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        Some(Contract::default())
    }

    fn pack(&self, _: &mut Packing<'_>) -> Result<Packed, Misfit> {
        Ok(Packed { arrays: Vec::new(), hidden: Vec::new() })
    }

    fn unpack(&self, _: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        (0..above.count).map(|p| Entry { above: p, coordinate: (above.derived)(p), position: p }).collect()
    }
}

impl LevelAssembly for Offset {
    fn is_ordered(&self) -> bool {
        false
    }

    fn is_computed(&self) -> bool {
        true
    }

    fn enter(&self, _: &mut Path<'_>, _: usize, _: &Expr) {}
}
