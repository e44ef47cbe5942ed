//! `singleton`: one coordinate per position of the level above, at the same position (the columns of COO). It stands
//! below a level that is not unique, in which consecutive positions with one coordinate are the parent of one fibre of
//! `singleton`.
//!
//! ```text
//!     0 1 2 3        above   0   0   2             `compressed(unique=False)`: rows
//! 0   . a . b        crd     1   3   0             coordinates 1 and 3 in row 0, 0 in row 2
//! 1   . . . .
//! 2   c . . .
//! ```

use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, zeros,
};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Fibre, Looplet, Positions, Stepper};
use taffeta_ast::format::{Contract, Level, Rule};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Singleton;

const CRD: usize = 0;

impl LevelFormat for Singleton {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[ArrayKind { name: "crd", positions: false, dtype: None, length: |n| n.above.clone() }]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.clone()
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, _: &Expr, position: &Symbol) -> Looplet {
        let at = Expr::var(position);
        let last = level.load(CRD, &at);
        let zero = Expr::int(0);
        let assumptions =
            vec![zero.less_eq(&at).and(&at.less(&level.positions)), zero.less_eq(&last).and(&last.less(&level.size))];
        Looplet::Stepper(Stepper {
            position: position.clone(),
            begin: above.positions.first.clone(),
            end: above.positions.end.clone(),
            last,
            body: Box::new(Looplet::Spike(Fibre::At(Positions::one(at)))),
            assumptions,
            full: false,
            unique: level.level.unique,
            ordered: level.level.ordered,
        })
    }

    fn contract(&self, level: Level) -> Option<Contract> {
        let mut rules = vec![Rule::Range { array: CRD, or_size: false }];
        if level.ordered {
            rules.push(Rule::Tuples { crd: CRD, unique: level.unique });
        }
        Some(Contract { rules, list: Some((None, CRD)), ..Contract::default() })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        // The level above has a position for each distinct coordinate of this one: `Packing::begins`. Positions without
        // an element are padding below `sliced`.
        let mut crd = zeros(*entries.count)?;
        crd.fill(entries.size);
        for (p, c) in entries.positions.iter().zip(entries.coordinates) {
            crd[*p as usize] = *c;
        }
        Ok(Packed { arrays: vec![crd], hidden: Vec::new() })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        (0..above.count).map(|p| Entry { above: p, coordinate: arrays[CRD][p as usize], position: p }).collect()
    }
}

impl LevelAssembly for Singleton {
    /// Returns the size of the dimension, which is the coordinate of padding below `sliced`.
    fn initial(&self, level: &TensorLevel, _: usize) -> Option<Expr> {
        Some(level.size.clone())
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let position = path.position.clone();
        path.assume_in(&path.assembly.levels[k].level.arrays[CRD]);
        path.store(k, CRD, &position, coordinate.clone());
    }
}
