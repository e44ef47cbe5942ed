//! `triangular`: the coordinates up to that of the level above, inclusive, or, with `upper=True`, from it on. It has no
//! arrays, and stands below a `dense` level of the same size. With `i` the coordinate of position `p` above, coordinate
//! `j` is at position `(p - i) * (size + 1) / 2` (the elements of the matrices before this one) plus
//!
//! ```text
//!     0 1 2        i * (i + 1) / 2 + j                             0 1 2        i * (2 * size - i - 1) / 2 + j
//! 0   a . .                                                    0   a b c
//! 1   b c .        positions   0   1 2   3 4 5                 1   . d e        positions   0 1 2   3 4   5
//! 2   d e f                    a   b c   d e f                 2   . . f                    a b c   d e   f
//! ```

use super::halves;
use crate::level::{ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Fibre, Lookup, Looplet, Phase};
use taffeta_ast::format::{Contract, Level};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Triangular {
    pub(super) upper: bool,
}

impl Triangular {
    /// Returns the position of a stored coordinate.
    fn inside(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Lookup {
        let of = if self.upper { halves::upper } else { halves::lower };
        let position = of(above, &level.size, &above.coordinate, index);
        let assumptions = vec![Expr::int(0).less_eq(&position).and(&position.less(&level.positions))];
        Lookup { position, stored: None, assumptions }
    }
}

impl LevelFormat for Triangular {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        halves::positions(counts)
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let diagonal = &above.coordinate;
        let stored = if self.upper { diagonal.less_eq(index) } else { index.less_eq(diagonal) };
        Some(Lookup { stored: Some(stored), ..self.inside(level, above, index) })
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, _: &Symbol) -> Looplet {
        let inside = Looplet::Lookup(self.inside(level, above, index));
        let outside = Looplet::Run(Fibre::Fill);
        let (end, first, second) = match self.upper {
            true => (above.coordinate.clone(), outside, inside),
            false => (above.coordinate.plus(&Expr::int(1)), inside, outside),
        };
        Looplet::Sequence(vec![Phase { end: Some(end), looplet: first }, Phase { end: None, looplet: second }])
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        Some(Contract::default())
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let count = halves::count(entries)?;
        for (e, (i, j)) in entries.parents.iter().zip(entries.coordinates).enumerate() {
            let (of, inside) = match self.upper {
                true => (halves::upper_position as fn([i64; 2], i64, i64, i64) -> i64, i <= j),
                false => (halves::lower_position as _, j <= i),
            };
            if !inside {
                return Err(Misfit::Outside(e));
            }
            entries.positions[e] = of([entries.positions[e], *i], entries.size, *i, *j);
        }
        *entries.count = count;
        Ok(Packed { arrays: Vec::new(), hidden: Vec::new() })
    }

    fn unpack(&self, _: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let fibre = |p: i64| {
            let i = (above.parent)(p);
            let own = if self.upper { i..above.size } else { 0..i + 1 };
            let of = if self.upper { halves::upper_position } else { halves::lower_position };
            own.map(move |j| Entry { above: p, coordinate: j, position: of([p, i], above.size, i, j) })
        };
        (0..above.count).flat_map(fibre).collect()
    }
}

impl LevelAssembly for Triangular {
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
        let diagonal = path.coordinate.clone();
        let inside = if self.upper { diagonal.less_eq(coordinate) } else { coordinate.less_eq(&diagonal) };
        let position = self.inside(level, &path.parent(), coordinate).position;
        path.check(inside, k, coordinate, "stores nothing there");
        path.position = position;
    }
}
