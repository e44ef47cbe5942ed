//! Kinds of level: one file each, with its arrays drawn. To add one, write its file, and name it in [`of`].

mod banded;
mod bitmap;
mod blocklist;
mod blocks;
mod bytemap;
mod compressed;
mod dense;
mod halves;
mod hashed;
mod offset;
mod packbits;
mod point;
mod ragged;
mod range;
mod runlength;
mod runs;
mod singleton;
mod sliced;
mod squeezed;
mod symmetric;
mod triangular;
pub(crate) mod workspace;

use crate::layout::FlatLevel;
use crate::looplet::{Lookup, Looplet, Positions, Probe};
use std::ops::Range;
use taffeta_ast::format::{Contract, Format, Level, LevelKind};
use taffeta_ast::{DType, Expr, Literal, Symbol};

/// An array that a level has.
pub(crate) struct ArrayKind {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Whether it has positions in another array, of which there are as many as there are elements.
    pub(crate) positions: bool,
    /// Type of its elements; `None`: that of the level's indices.
    pub(crate) dtype: Option<DType>,
    /// Its length.
    pub(crate) length: fn(&Counts) -> Expr,
}

impl ArrayKind {
    /// The type of its elements in a level whose indices have this one. Positions are i32 at least.
    pub(crate) fn dtype_beside(&self, index: DType) -> DType {
        match self.dtype {
            Some(dtype) => dtype,
            None if self.positions && matches!(index, DType::U8 | DType::U16) => DType::I32,
            None => index,
        }
    }
}

/// How many there are of what.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// Positions of the level above.
    pub(crate) above: Expr,
    /// Coordinates: the dimension's size.
    pub(crate) size: Expr,
    /// Numbers that are known only with the data: [`LevelFormat::hidden`].
    pub(crate) hidden: Vec<Expr>,
}

/// Where a fibre hangs.
#[derive(Clone, Debug)]
pub(crate) struct Above {
    /// Its positions in the level above: more than one below a level that is not unique.
    pub(crate) positions: Positions,
    /// The coordinate there; 0 at the outermost level.
    pub(crate) coordinate: Expr,
}

/// How the coordinates of one level are stored.
pub(crate) trait LevelFormat {
    /// Its arrays.
    fn arrays(&self) -> &'static [ArrayKind];

    /// What its numbers are called that are known only with the data: numbers of blocks, of positions.
    fn hidden(&self) -> &'static [&'static str];

    /// How many positions it has.
    fn positions(&self, counts: &Counts) -> Expr;

    /// The position of a coordinate, if it is computed of it alone.
    fn located(&self, level: &FlatLevel, above: &Above, index: &Expr) -> Option<Expr> {
        let _ = (level, above, index);
        None
    }

    /// The position of any coordinate of the dimension, and whether it is stored, if that is known without going
    /// through the fibre.
    fn lookup(&self, level: &FlatLevel, above: &Above, index: &Expr) -> Option<Lookup> {
        let _ = (level, above, index);
        None
    }

    /// The table in which the positions of its steppers are found without going through them, if it has one.
    fn probe(&self, level: &FlatLevel, above: &Above, index: &Expr) -> Option<Probe> {
        let _ = (level, above, index);
        None
    }

    /// A fibre. `index` is the coordinate that is asked for, for what depends on it; steppers bind `position`.
    fn fibre(&self, level: &FlatLevel, above: &Above, index: &Expr, position: &Symbol) -> Looplet;

    /// Its arrays for these elements.
    ///
    /// # Errors
    ///
    /// The first element that has no room in it.
    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit>;

    /// What arrays that a caller lends must be for the loops of this level to be right. `None`: nothing can be lent.
    fn contract(&self, level: Level) -> Option<Contract> {
        let _ = level;
        None
    }

    /// What it stores.
    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry>;
}

/// Elements on their way into a level, sorted by position and coordinate. No two of a tensor's have all coordinates
/// equal.
pub(crate) struct Packing<'e> {
    /// Positions of the level above, one for each element, which become those of this one.
    pub(crate) positions: &'e mut [i64],
    /// Coordinates, one for each element.
    pub(crate) coordinates: &'e [i64],
    /// Coordinates in the level above (0 at the outermost level), one for each element.
    pub(crate) parents: &'e [i64],
    /// How many positions the level above has, which becomes how many this one has.
    pub(crate) count: &'e mut i64,
    /// The dimension's size.
    pub(crate) size: i64,
    /// Values of the elements, and of what is not stored: levels that are not injective, which are the last ones,
    /// compare them.
    pub(crate) value: &'e dyn Fn(usize) -> Literal,
    pub(crate) fill: Literal,
    /// Whether an element has another position than the one before it: some coordinate differs, down to the first
    /// level from this one on that is unique (what stands once in a list with `singleton` below it is told apart by
    /// that).
    pub(crate) begins: &'e dyn Fn(usize) -> bool,
}

impl Packing<'_> {
    /// The elements under each position of the level above.
    fn fibres(&self) -> Vec<Range<usize>> {
        let mut from = 0;
        let mut one = |above: i64| {
            let end = from + self.positions[from..].iter().take_while(|p| **p == above).count();
            std::mem::replace(&mut from, end)..end
        };
        (0..*self.count).map(&mut one).collect()
    }

    /// As many positions as there are coordinates in all fibres together.
    fn everywhere(&self) -> Result<i64, Misfit> {
        self.count.checked_mul(self.size).filter(|n| *n <= MOST).ok_or(Misfit::TooMany)
    }
}

/// The most positions that a level has: what is counted of them, and addressed, stays within 64 bits.
const MOST: i64 = 1 << 47;

/// An array of zeros, if there is memory for it: how long it is may follow from sizes alone.
fn zeros(len: i64) -> Result<Vec<i64>, Misfit> {
    let len = usize::try_from(len).map_err(|_| Misfit::TooMany)?;
    Vec::<i64>::new().try_reserve_exact(len).map_err(|_| Misfit::TooMany)?;
    Ok(vec![0; len])
}

/// Sums up to each: how many there are becomes where they begin.
fn accumulate(counts: &mut [i64]) {
    for k in 1..counts.len() {
        counts[k] += counts[k - 1];
    }
}

/// Why elements, which are given by their numbers, cannot be packed into a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The level stores nothing there.
    Outside(usize),
    /// The two have one position, and are not equal.
    Unequal(usize, usize),
    /// The two are in a fibre that has room for one.
    Second(usize, usize),
    /// There are more positions than memory has room for.
    TooMany,
}

/// A level's arrays and its numbers, in the order of [`LevelFormat::arrays`] and [`LevelFormat::hidden`].
pub(crate) struct Packed {
    pub(crate) arrays: Vec<Vec<i64>>,
    pub(crate) hidden: Vec<i64>,
}

/// What is known when a level is read.
pub(crate) struct Unpacking<'e> {
    /// How many positions the level above has.
    pub(crate) count: i64,
    /// The dimension's size.
    pub(crate) size: i64,
    /// The coordinate of a position of the level above (0 at the outermost level).
    pub(crate) parent: &'e dyn Fn(i64) -> i64,
    /// The coordinate that is computed of those above, for a position of the level above; 0 where none is.
    pub(crate) derived: &'e dyn Fn(i64) -> i64,
}

/// A coordinate that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The position in the level above.
    pub(crate) above: i64,
    pub(crate) coordinate: i64,
    /// Its own position, which other coordinates may have too.
    pub(crate) position: i64,
}

pub(crate) use hashed::slot;

/// What arrays of a format's level must be that a caller lends.
pub(crate) fn contract(format: &Format, k: usize) -> Option<Contract> {
    let level = format.levels[k];
    match level.kind == LevelKind::Singleton && format.levels[0].kind == LevelKind::Sliced {
        true => sliced::Slots.contract(level),
        false => of(level.kind)?.contract(level),
    }
}

/// The coordinates of `singleton` below `sliced`, fibre by fibre.
pub(crate) const SLOTS: &dyn LevelFormat = &sliced::Slots;

/// The last level of a local tensor into which elements are inserted.
pub(crate) const WORKSPACE: &dyn LevelFormat = &workspace::Workspace;

/// The level format of that kind.
pub(crate) fn of(kind: LevelKind) -> Option<&'static dyn LevelFormat> {
    Some(match kind {
        LevelKind::Dense => &dense::Dense,
        LevelKind::Compressed => &compressed::Compressed,
        LevelKind::Singleton => &singleton::Singleton,
        LevelKind::Hashed => &hashed::Hashed,
        LevelKind::Bytemap => &bytemap::Bytemap,
        LevelKind::Bitmap => &bitmap::Bitmap,
        LevelKind::Banded => &banded::Banded,
        LevelKind::Ragged => &ragged::Ragged,
        LevelKind::Blocklist => &blocklist::Blocklist,
        LevelKind::RunLength => &runlength::RunLength,
        LevelKind::PackBits => &packbits::PackBits,
        LevelKind::LowerTriangular => &triangular::Triangular { upper: false },
        LevelKind::UpperTriangular => &triangular::Triangular { upper: true },
        LevelKind::Symmetric => &symmetric::Symmetric,
        LevelKind::Point => &point::Point,
        LevelKind::Range => &range::Range,
        LevelKind::Offset => &offset::Offset,
        LevelKind::Squeezed => &squeezed::Squeezed,
        LevelKind::Sliced => &sliced::Sliced,
    })
}

#[cfg(test)]
mod tests;
