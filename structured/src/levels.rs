//! Level formats: one file each, with a picture of the arrays. A new one needs a file, and a row in [`implementation`].
//! `blocks`, `halves` and `runs` are parts that two formats share.

mod banded;
mod bitmap;
mod blocklist;
mod blocks;
mod bytemap;
pub(crate) mod compressed;
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

use crate::level::{LevelFormat, TensorLevel};
use crate::level_assembly::LevelAssembly;
use taffeta_ast::format::{Contract, Format, LevelKind};

pub use hashed::slot;

/// Returns the requirements on borrowed arrays of level `k` of a format.
pub(crate) fn contract(format: &Format, k: usize) -> Option<Contract> {
    let level = format.levels[k];
    match level.kind == LevelKind::Singleton && format.levels[..k].iter().any(|l| l.kind == LevelKind::Sliced) {
        true => sliced::Slots.contract(level),
        false => of(level.kind)?.contract(level),
    }
}

/// Level that stands for `sliced` and `singleton` in traversals, fibre by fibre instead of slot by slot.
pub(crate) const SLOTS: &dyn LevelFormat = &sliced::Slots;

/// Last level of a local tensor into which elements are inserted.
pub(crate) const WORKSPACE: &dyn LevelFormat = &workspace::Workspace;

/// Returns the implementation of a level.
pub(crate) fn of_level(level: &TensorLevel) -> Option<&'static dyn LevelFormat> {
    match (&level.slots, level.inserts) {
        (Some(_), _) => Some(SLOTS),
        (None, true) => Some(WORKSPACE),
        (None, false) => of(level.level.kind),
    }
}

/// Kind of level: how it is packed and traversed, and how elements are added to it.
trait Implementation: LevelFormat + LevelAssembly {}

impl<T: LevelFormat + LevelAssembly> Implementation for T {}

fn implementation(kind: LevelKind) -> &'static dyn Implementation {
    match kind {
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
    }
}

/// Returns the implementation of a level kind.
pub(crate) fn of(kind: LevelKind) -> Option<&'static dyn LevelFormat> {
    Some(implementation(kind))
}

/// Assembly of the last level, `compressed`, in two passes.
pub(crate) const SCATTERED: &dyn LevelAssembly = &compressed::Scattered;

/// Returns how elements are added to a level.
pub(crate) fn assembly(kind: LevelKind) -> &'static dyn LevelAssembly {
    implementation(kind)
}
