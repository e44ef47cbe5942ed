//! Kinds of level: one file each, with its arrays drawn. To add one, write its file, and name it in [`of`].

mod compressed;
mod dense;

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
        _ => return None,
    })
}
