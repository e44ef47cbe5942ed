//! Kinds of level: one file each, with its arrays drawn. To add one, write its file, and name it in [`of`].

mod banded;
mod blocks;
mod compressed;
mod dense;
mod ragged;

use crate::layout::FlatLevel;
use crate::looplet::{Looplet, Positions};
use taffeta_ast::format::LevelKind;
use taffeta_ast::{Expr, Literal, Symbol};

/// An array of indices that a level has.
pub(crate) struct ArrayKind {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Its length.
    pub(crate) length: fn(&Counts) -> Expr,
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

    /// A fibre. `index` is the coordinate that is asked for, for what depends on it; steppers bind `position`.
    fn fibre(&self, level: &FlatLevel, above: &Above, index: &Expr, position: &Symbol) -> Looplet;

    /// Its arrays for these elements.
    fn pack(&self, entries: &mut Packing<'_>) -> Packed;

    /// What it stores.
    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry>;
}

/// Elements on their way into a level, sorted by position and coordinate.
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
    /// The value of an element, and of what is not stored: levels that are not injective, which are the last ones,
    /// compare them.
    pub(crate) value: &'e dyn Fn(usize) -> Literal,
    pub(crate) fill: Literal,
    /// Whether the level is unique: elements with one coordinate share a position.
    pub(crate) unique: bool,
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
    /// The coordinate of a position of the level above (0 at the outermost level). Levels below which a level needs it
    /// are `dense`, where a position has one.
    pub(crate) parent: &'e dyn Fn(i64) -> i64,
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

/// The level format of that kind.
pub(crate) fn of(kind: LevelKind) -> Option<&'static dyn LevelFormat> {
    Some(match kind {
        LevelKind::Dense => &dense::Dense,
        LevelKind::Compressed => &compressed::Compressed,
        LevelKind::Banded => &banded::Banded,
        LevelKind::Ragged => &ragged::Ragged,
        _ => return None,
    })
}
