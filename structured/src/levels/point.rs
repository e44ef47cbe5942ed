//! `point`: at most one coordinate per position of the level above, at the same position. `crd` has the coordinate, or
//! the dimension's size if there is none.
//!
//! ```text
//!     0 1 2 3        crd   1   4   0                coordinate 1 under position 0, none under 1, 0 under 2
//! 0   . a . .
//! 1   . . . .
//! 2   b . . .
//! ```

use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, zeros,
};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Fibre, Lookup, Looplet, Phase};
use taffeta_ast::format::{Contract, Level, Rule};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Point;

const CRD: usize = 0;

/// Returns the coordinate of a fibre, and its position.
fn point(level: &TensorLevel, above: &Parent) -> (Expr, Lookup) {
    let p = &above.positions.first;
    let coordinate = level.load(CRD, p);
    let zero = Expr::int(0);
    let assumptions = vec![
        zero.less_eq(p).and(&p.less(&level.positions)),
        zero.less_eq(&coordinate).and(&coordinate.less_eq(&level.size)),
    ];
    (coordinate, Lookup { position: p.clone(), stored: None, assumptions })
}

impl LevelFormat for Point {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[ArrayKind { name: "crd", positions: false, dtype: None, length: |n| n.above.clone() }]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.clone()
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let (coordinate, lookup) = point(level, above);
        Some(Lookup { stored: Some(coordinate.equals(index)), ..lookup })
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, _: &Expr, _: &Symbol) -> Looplet {
        let (coordinate, lookup) = point(level, above);
        // An empty fibre has its coordinate past the end of the dimension, and its second phase is empty.
        let after = coordinate.plus(&Expr::int(1)).min_with(&level.size);
        Looplet::Sequence(vec![
            Phase { end: Some(coordinate), looplet: Looplet::Run(Fibre::Fill) },
            Phase { end: Some(after), looplet: Looplet::Lookup(lookup) },
            Phase { end: None, looplet: Looplet::Run(Fibre::Fill) },
        ])
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        Some(Contract { rules: vec![Rule::Range { array: CRD, or_size: true }], ..Contract::default() })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let mut crd = zeros(*entries.count)?;
        crd.fill(entries.size);
        for (e, (p, c)) in entries.positions.iter().zip(entries.coordinates).enumerate() {
            let own = &mut crd[*p as usize];
            if *own != entries.size && own != c {
                return Err(Misfit::Second(e - 1, e));
            }
            *own = *c;
        }
        Ok(Packed { arrays: vec![crd], hidden: Vec::new() })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let one = |p: i64| Entry { above: p, coordinate: arrays[CRD][p as usize], position: p };
        (0..above.count).map(one).filter(|e| e.coordinate != above.size).collect()
    }
}

impl LevelAssembly for Point {
    fn initial(&self, level: &TensorLevel, _: usize) -> Option<Expr> {
        Some(level.size.clone())
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn fills(&self) -> bool {
        true
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let level = &path.assembly.levels[k].level;
        let position = path.position.clone();
        let own = level.load(CRD, &position);
        let is_free = own.equals(&level.size).or(&own.equals(coordinate));
        path.check(is_free, k, coordinate, "stores another one there");
        path.store(k, CRD, &position, coordinate.clone());
    }
}
