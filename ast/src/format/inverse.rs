//! Inverse mapping from the coordinates of a format's levels to an element's indices.
//!
//! The coordinates of the levels are known; inverting their operators derives the subexpressions:
//!
//! ```text
//! a + b, and a          say b                a // 4 and a % 4     say a
//! a - b, and a or b     say the other        a >> 2 and a & 3     say a
//! a * 4                 says a               all operands         say what is made of them
//! ```
//!
//! An index that none of these rules derives is lost: elements that differ in it alone would be indistinguishable.

use super::{Coord, Format};
use crate::op::Op;

/// Known expressions, each with its definition, in which `Coord::Dim(k)` stands for the coordinate of level `k`.
struct KnownCoords(Vec<(Coord, Coord)>);

impl KnownCoords {
    /// Derives the expressions known from the levels above `level`.
    fn above(format: &Format, level: usize) -> KnownCoords {
        KnownCoords::by(format.coords[..level].iter())
    }

    /// Derives the expressions known from coordinates.
    fn by<'c>(all: impl Iterator<Item = &'c Coord>) -> KnownCoords {
        let mut known = KnownCoords(Vec::new());
        for (k, c) in all.enumerate() {
            known.note(c, Coord::Dim(k));
        }
        while known.invert_one() {}
        known
    }

    fn note(&mut self, what: &Coord, by: Coord) -> bool {
        let new = self.of(what).is_none();
        if new {
            self.0.push((what.clone(), by));
        }
        new
    }

    /// Returns the definition of a coordinate from known ones, if there is one.
    fn of(&self, what: &Coord) -> Option<Coord> {
        if let Some((_, by)) = self.0.iter().find(|(c, _)| c == what) {
            return Some(by.clone());
        }
        match what {
            Coord::Int(_) => Some(what.clone()),
            Coord::Apply(op, args) => Some(Coord::apply(*op, self.of(&args[0])?, self.of(&args[1])?)),
            _ => None,
        }
    }

    /// Inverts one operator; returns whether a new expression became known.
    fn invert_one(&mut self) -> bool {
        for k in 0..self.0.len() {
            let (what, by) = self.0[k].clone();
            let Coord::Apply(op, args) = &what else { continue };
            let [a, b] = &**args;
            let (left, right) = (self.of(a), self.of(b));
            let given = |op, x: &Coord, y: &Coord| Coord::apply(op, x.clone(), y.clone());
            let found = match (op, left, right) {
                (Op::Add, Some(x), None) => Some((b, given(Op::Sub, &by, &x))),
                (Op::Add, None, Some(y)) => Some((a, given(Op::Sub, &by, &y))),
                (Op::Sub, Some(x), None) => Some((b, given(Op::Sub, &x, &by))),
                (Op::Sub, None, Some(y)) => Some((a, given(Op::Add, &by, &y))),
                (Op::Mul, None, Some(y @ Coord::Int(n))) if n != 0 => Some((a, given(Op::FloorDiv, &by, &y))),
                (Op::Mul, Some(x @ Coord::Int(n)), None) if n != 0 => Some((b, given(Op::FloorDiv, &by, &x))),
                (Op::Shl, None, Some(y @ Coord::Int(_))) => Some((a, given(Op::Shr, &by, &y))),
                (Op::FloorDiv | Op::Shr, None, Some(Coord::Int(n))) => self.rest(*op, a, n).map(|rest| {
                    let by = match op {
                        Op::Shr => given(Op::Shl, &by, &Coord::Int(n)),
                        _ => given(Op::Mul, &by, &Coord::Int(n)),
                    };
                    (a, given(Op::Add, &by, &rest))
                }),
                _ => None,
            };
            if let Some((what, by)) = found
                && self.note(what, by)
            {
                return true;
            }
        }
        false
    }

    /// Returns the remainder that a division by `by`, or a right shift by it, discards, if known.
    fn rest(&self, op: Op, a: &Coord, by: i64) -> Option<Coord> {
        let (rest, by) = match op {
            Op::Shr => (Op::BitAnd, u32::try_from(by).ok().and_then(|by| 1i64.checked_shl(by))?.checked_sub(1)?),
            _ => (Op::Mod, by),
        };
        self.of(&Coord::apply(rest, a.clone(), Coord::Int(by)))
    }
}

impl Format {
    /// Returns an element's index in each dimension as an expression of level coordinates: `Coord::Dim(k)` stands for
    /// the coordinate of level `k`, as in [`Format::coords`]. `None` for an index that no level determines.
    pub fn indices(&self, ndim: usize) -> Vec<Option<Coord>> {
        let known = KnownCoords::above(self, self.levels.len());
        (0..ndim).map(|d| known.of(&Coord::Dim(d))).collect()
    }

    /// Returns whether coordinates determine others.
    pub(super) fn determine<'c>(
        these: impl Iterator<Item = &'c Coord>,
        others: impl IntoIterator<Item = &'c Coord>,
    ) -> bool {
        let known = KnownCoords::by(these);
        others.into_iter().all(|c| known.of(c).is_some())
    }

    /// Returns whether the first `levels` levels determine a sort key.
    pub(super) fn says(&self, levels: usize, key: &Coord) -> bool {
        let known = KnownCoords::above(self, levels);
        match key {
            Coord::Morton(of) => of.iter().all(|c| known.of(c).is_some()),
            key => known.of(key).is_some(),
        }
    }

    /// Returns the coordinate of a level as an expression of the coordinates above it, if they determine it.
    pub fn derived(&self, level: usize) -> Option<Coord> {
        KnownCoords::above(self, level).of(&self.coords[level])
    }
}
