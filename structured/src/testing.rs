//! Parts of the crate, shown to its tests in `tests/`. As unit tests, these would have the crate compiled twice.

pub use crate::layout::TensorLevels;
pub use crate::level::{Parent, TensorLevel};
pub use crate::levels::slot;
pub use crate::looplet::{Fibre, Looplet, Positions, Stepper};

use crate::level::LevelFormat;
use crate::levels;
use crate::looplet::Lookup;
use taffeta_ast::{Expr, Symbol};

/// Builds the looplet of a fibre, in which `index` is the coordinate that is looked up, and steppers bind `position`.
pub fn fibre(level: &TensorLevel, above: &Parent, index: &Expr, position: &Symbol) -> Looplet {
    format_of(level).fibre(level, above, index, position)
}

/// Returns the position of any coordinate and the condition that it is stored, if the level knows them without
/// traversal.
pub fn lookup(level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
    format_of(level).lookup(level, above, index)
}

/// Returns the position of a coordinate, if it is a function of the parent position and the coordinate alone.
pub fn located(level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Expr> {
    format_of(level).located(level, above, index)
}

fn format_of(level: &TensorLevel) -> &'static dyn LevelFormat {
    levels::of(level.level.kind).expect("every kind of level has an implementation")
}
