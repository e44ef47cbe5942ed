//! Storage formats as far as the tree needs them: levels, the coordinate that each level stores, the fill value, and
//! the *facts* of levels that legality and lowering query. Traversal and assembly of levels belong to structured
//! lowering.
//!
//! A format is a coordinate tree with one [`Level`] per tree level, outermost first. A *fibre* holds the coordinates of
//! one level under one position of its parent level (format abstraction, section 3).
//!
//! ```text
//!           format(dense, compressed)                         dense     row      0     1     2
//!     0  1  2                                                                   / \    |
//!  0  .  a  b                                                 compressed column 1  2   0
//!  1  c  .  .                                                                   |  |   |
//!  2  .  .  .                                                 elements          a  b   c
//! ```

mod contract;
pub mod coord;
mod inverse;
mod level;
pub mod nest;
mod position;
pub mod presets;
mod region;

pub use contract::{Contract, Counted, Rule};
pub use coord::{Coord, Key};
pub use level::{Level, LevelFacts, LevelKind};
pub use position::Misplaced;
pub use presets::Named;

use crate::dtype::DType;
use crate::literal::Literal;
use crate::print::literal;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of a set of index arrays: tensors of one pattern share the arrays, so they store the same elements in the
/// same order, whatever the tensors' names. `pattern(A)` and adjoints take the pattern of their source tensor; a tensor
/// without a pattern shares with no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern(u64);

/// End of the message about a write outside of the pattern of a tensor declared `@ pattern(A)`.
pub const OUTSIDE: &str = "is written, but is not in its pattern: write 0 where the pattern stores nothing, or leave \
                           out `@ pattern(…)` for a dense tensor";

/// Middle of the message about unequal elements that a format stores as one value.
pub const UNEQUAL: &str = ", and one that is stored as the same value is ";

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Pattern {
    /// Creates a pattern that no other tensor has.
    pub fn fresh() -> Pattern {
        Pattern(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Storage of a tensor: levels, outermost first, with their coordinates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// Levels, outermost first.
    pub levels: Arc<[Level]>,
    /// Coordinate that each level stores, one per level.
    pub coords: Arc<[Coord]>,
    /// Further sort keys.
    pub keys: Arc<[Key]>,
    /// Value of elements that are not stored; 0 (or false) if `None`.
    pub fill: Option<Literal>,
    /// Pattern, shared by tensors with the same index arrays; dense tensors have none.
    pub pattern: Option<Pattern>,
    /// Whether writes outside of the pattern vanish, as in derivatives. Elsewhere they are errors.
    pub drops: bool,
    /// Whether writes to elements that share one stored value are summed, as in adjoints. Elsewhere each element is
    /// written as if alone, and all of them must be equal in the end.
    pub sums: bool,
}

/// Necessary condition for two elements of a tensor to share one stored value: their indices are equal in some
/// dimensions and, in a further pair of dimensions if there is one, equal or exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Dimensions in which the indices are equal.
    pub same: Vec<usize>,
    /// Pair of dimensions in which the indices are equal or exchanged, as in a symmetric matrix stored by half.
    pub exchanged: Option<[usize; 2]>,
}

impl Format {
    /// Creates a row-major format that stores every element.
    pub fn dense(ndim: usize) -> Format {
        Format::new(vec![Level::new(LevelKind::Dense); ndim])
    }

    /// Creates a format whose levels store the dimensions in their order.
    pub fn new(levels: Vec<Level>) -> Format {
        let coords = (0..levels.len()).map(Coord::Dim).collect();
        Format {
            levels: levels.into(),
            coords,
            keys: Arc::new([]),
            fill: None,
            pattern: None,
            drops: false,
            sums: false,
        }
    }

    /// Reorders the dimensions: level `k` stores dimension `order[k]`.
    #[must_use]
    pub fn ordered(self, order: &[usize]) -> Format {
        Format { coords: order.iter().copied().map(Coord::Dim).collect(), ..self }
    }

    /// Replaces the coordinates of the levels, and the sort keys.
    #[must_use]
    pub fn remapped(self, coords: Vec<Coord>, keys: Vec<Key>) -> Format {
        Format { coords: coords.into(), keys: keys.into(), ..self }
    }

    /// Returns whether this is [`Format::dense`] of some dimension.
    pub fn is_dense(&self) -> bool {
        self.levels.iter().all(|l| l.kind == LevelKind::Dense)
            && self.coords.iter().enumerate().all(|(k, c)| *c == Coord::Dim(k))
            && self.fill.is_none()
    }

    /// Returns whether positions of a tensor in this format may have no element.
    pub fn stores_regions(&self) -> bool {
        self.levels.last().is_none_or(|level| level.kind.stores_regions())
    }

    /// Returns whether the last level has a list in no order, of elements in the order of the program that wrote them.
    pub fn is_listed_in_any_order(&self) -> bool {
        let is_list = |l: &Level| matches!(l.kind, LevelKind::Compressed | LevelKind::Hashed) && l.unique;
        self.levels.last().is_some_and(|l| is_list(l) && l.lists_without_order())
    }

    /// Returns whether a local tensor may have this format with a pattern of its own: elements are inserted one by one,
    /// in any order. Rows of a `bytemap`, which locates elements by coordinate and is cleared through its list, are the
    /// format of workspaces (`s.cache` of structured tensors, `s.set_format`).
    pub fn inserts(&self) -> bool {
        let Some((last, above)) = self.levels.split_last() else { return false };
        *last == Level { index: last.index, ..Level::new(LevelKind::Bytemap) }
            && above.iter().all(|l| l.kind == LevelKind::Dense)
            && self.coords.iter().enumerate().all(|(k, c)| *c == Coord::Dim(k))
            && self.keys.is_empty()
            && !self.drops
    }

    /// Returns whether an element shares its value with its mirror image across a diagonal.
    pub fn is_symmetric(&self) -> bool {
        self.levels.iter().any(|l| l.kind == LevelKind::Symmetric)
    }

    /// Creates the workspace format of `ndim` dimensions: rows of a `bytemap`.
    pub fn workspace(ndim: usize, fill: Option<Literal>) -> Format {
        let mut levels = vec![Level::new(LevelKind::Dense); ndim];
        if let Some(last) = levels.last_mut() {
            *last = Level::new(LevelKind::Bytemap);
        }
        Format { fill, pattern: Some(Pattern::fresh()), ..Format::new(levels) }
    }

    /// Returns whether some level stores an expression instead of a plain dimension, or sort keys exist.
    pub fn is_remapped(&self) -> bool {
        !self.keys.is_empty() || self.coords.iter().any(|c| !matches!(c, Coord::Dim(_)))
    }

    /// Returns the format of adjoints: the same elements are stored, with fill 0.
    #[must_use]
    pub fn derivative(&self) -> Format {
        let format = Format { fill: None, drops: true, sums: !self.is_injective(), ..self.clone() };
        if format.is_dense() { Format::dense(self.levels.len()) } else { format }
    }

    /// Returns the format of tangents: as for adjoints, but elements that share a stored value share one tangent,
    /// unless writes to them are summed (`sums`), as writes to the tangent are then too.
    #[must_use]
    pub fn tangent(&self) -> Format {
        Format { sums: self.sums, ..self.derivative() }
    }

    /// Returns whether each coordinate has a stored value of its own.
    pub fn is_injective(&self) -> bool {
        self.levels.iter().all(|l| l.facts().injective)
    }

    /// Returns a necessary condition for two elements of a tensor of `ndim` dimensions to share one stored value. In a
    /// dimension stored as runs, the data decide which elements share.
    pub fn identity(&self, ndim: usize) -> Identity {
        let mut same: Vec<usize> = (0..ndim).collect();
        if self.is_injective() {
            return Identity { same, exchanged: None };
        }
        // Only the last level may store one value for several coordinates (`check`).
        let symmetric = self.squares().find(|(level, _)| level.kind == LevelKind::Symmetric);
        let exchanged = symmetric.map(|(_, dims)| dims);
        let above = &self.coords[..self.coords.len() - 1];
        same.retain(|d| match exchanged {
            Some(dims) => !dims.contains(d),
            None => above.contains(&Coord::Dim(*d)),
        });
        Identity { same, exchanged }
    }

    /// Returns the dimension of each level, if every level stores a plain dimension and there are no sort keys.
    pub fn order(&self) -> Option<Vec<usize>> {
        let dim = |c: &Coord| match c {
            Coord::Dim(d) => Some(*d),
            _ => None,
        };
        if self.keys.is_empty() { self.coords.iter().map(dim).collect() } else { None }
    }

    /// Returns the tuple of coordinates and keys as a `remap=` function returns it: `(j - i, i, j)`.
    pub fn remap(&self) -> String {
        let dims = self.coords.iter().chain(self.keys.iter().map(|k| &k.coord)).flat_map(Coord::dims);
        coord::tuple(&self.coords, &self.keys, dims.max().map_or(0, |d| d + 1))
    }

    /// Returns the format in the syntax of programs, without its pattern.
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// Returns the text of the format with a function of that name as its `remap=`.
    pub fn text_with(&self, remap: &str) -> String {
        let mut parts: Vec<String> = self.levels.iter().map(Level::to_string).collect();
        match self.order() {
            None => parts.push(format!("remap={remap}")),
            Some(order) if order.iter().enumerate().any(|(k, d)| k != *d) => {
                // A single dimension has only one order, so the tuple needs no trailing comma.
                let order: Vec<String> = order.iter().map(usize::to_string).collect();
                parts.push(format!("order=({})", order.join(", ")));
            }
            Some(_) => {}
        }
        if let Some(fill) = self.fill {
            let dtype = match fill {
                Literal::Bool(_) => DType::Bool,
                Literal::Int(v) if i64::try_from(v).is_ok() => DType::I64,
                Literal::Int(_) => DType::U64,
                // f64 prints all digits: the value is of some float type and is read back as one.
                Literal::Float(_) => DType::F64,
            };
            parts.push(format!("fill={}", literal::text(fill, dtype)));
        }
        format!("format({})", parts.join(", "))
    }
}

/// Prints the format in the syntax of programs: `format(dense, compressed(index=i64), order=(1, 0))`. The pattern is
/// left out, and a `remap=` function is replaced by the tuple that it returns, in terms of `i`, `j`, `k` …
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_with(&self.remap()))
    }
}
