//! Kinds of level: one file each, with its arrays drawn. To add one, write its file, and name it in [`of`].

mod banded;
mod compressed;
mod dense;
mod ragged;

use crate::layout::FlatLevel;
use crate::looplet::Looplet;
use taffeta_ast::format::LevelKind;
use taffeta_ast::{Expr, Symbol};

/// An array of indices that a level has.
pub(crate) struct ArrayKind {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Its length, from the number of positions of the level above and of its own.
    pub(crate) length: fn(&Expr, &Expr) -> Expr,
}

/// How coordinates find their position.
pub(crate) enum Access {
    /// Computed: the position of a coordinate under a position of the level above.
    Located(Expr),
    /// In their order.
    Traversed(Looplet),
}

/// How the coordinates of one level are stored.
pub(crate) trait LevelFormat {
    /// Its arrays.
    fn arrays(&self) -> &'static [ArrayKind];

    /// How many positions it has, from how many the level above has and the size of the dimension; `own` makes a number
    /// that is known only with the data.
    fn positions(&self, above: &Expr, size: &Expr, own: &mut dyn FnMut() -> Expr) -> Expr;

    /// A fibre: the coordinate `index` under position `above`. Traversals bind `position`.
    fn access(&self, level: &FlatLevel, above: &Expr, index: &Expr, position: &Symbol) -> Access;

    /// Its arrays for these elements, in order: for each the position above, and its coordinate. Gives the position of
    /// each of them.
    fn pack(&self, entries: &mut Packing<'_>) -> Vec<Vec<i64>>;

    /// What stands at its positions, in their order: the position above, and the coordinate. `above` is how many
    /// positions the level above has.
    fn unpack(&self, arrays: &[Vec<i64>], above: i64, size: i64) -> Vec<(i64, i64)>;
}

/// Elements on their way into a level, sorted by position and coordinate.
pub(crate) struct Packing<'e> {
    /// Positions of the level above, which become those of this one.
    pub(crate) positions: &'e mut [i64],
    /// Coordinates.
    pub(crate) coordinates: &'e [i64],
    /// How many positions the level above has, which becomes how many this one has.
    pub(crate) count: &'e mut i64,
    /// The dimension's size.
    pub(crate) size: i64,
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

/// Packs one block of consecutive coordinates for each position above, up to the last one that is given. Where it
/// begins follows from the first one. Gives the beginnings of the blocks (0 of empty ones), and where their positions
/// begin.
fn blocks(entries: &mut Packing<'_>, begin: fn(i64) -> i64) -> (Vec<i64>, Vec<i64>) {
    let above = *entries.count as usize;
    let (mut start, mut pos) = (vec![0i64; above], vec![0i64; above + 1]);
    for (p, c) in entries.positions.iter().zip(entries.coordinates) {
        let k = *p as usize;
        // Coordinates come in their order.
        if pos[k + 1] == 0 {
            start[k] = begin(*c);
        }
        pos[k + 1] = c + 1 - start[k];
    }
    for k in 1..pos.len() {
        pos[k] += pos[k - 1];
    }
    for (p, c) in entries.positions.iter_mut().zip(entries.coordinates) {
        let k = *p as usize;
        *p = pos[k] + c - start[k];
    }
    *entries.count = pos[above];
    (start, pos)
}
