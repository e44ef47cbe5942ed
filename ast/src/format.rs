//! How tensors are stored, as far as the tree must know: the levels of a format, what each stores, the value of what is
//! not stored, and the *facts* of levels that legality and lowering ask for. How a level is traversed and assembled is
//! structured lowering's business.
//!
//! A format is a tree of coordinates, one level of it for each [`Level`], outermost first. A *fibre* is what one level
//! holds under one position of the level above it (format abstraction, section 3).
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
pub mod named;
mod position;

pub use contract::{Contract, Counted, Rule};
pub use coord::{Coord, Key};
pub use level::{Level, LevelFacts, LevelKind};
pub use named::Named;
pub use position::Misplaced;

use crate::dtype::DType;
use crate::expr::{Expr, Literal};
use crate::print;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which tensors share their index arrays: those of one pattern store the same elements, in the same order, whatever
/// they are called. `pattern(A)` and adjoints have that of the tensor that they are made from; no pattern is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern(u64);

/// What is said of an element that is written where its tensor, `@ pattern(A)`, has none.
pub const OUTSIDE: &str = "is written, and is not in its pattern: write what is 0 where the pattern stores nothing, or \
                           leave `@ pattern(…)` out, and the tensor is dense";

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Pattern {
    /// One that no other tensor has.
    pub fn fresh() -> Pattern {
        Pattern(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A tensor's storage: levels, outermost first, and what each of them stores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// Outermost first.
    pub levels: Arc<[Level]>,
    /// What each level stores, one for each of them.
    pub coords: Arc<[Coord]>,
    /// What else elements are sorted by.
    pub keys: Arc<[Key]>,
    /// The value of elements that are not stored; 0 (or false) unless given.
    pub fill: Option<Literal>,
    /// With whom it shares its index arrays; dense tensors have none.
    pub pattern: Option<Pattern>,
    /// Whether writes where nothing is stored vanish, as they do in derivatives. Elsewhere they are errors.
    pub drops: bool,
    /// Whether what is written to the elements that one stored value stands for is summed there, as it is in adjoints.
    /// Elsewhere each is what it would be alone, and they are equal in the end.
    pub sums: bool,
}

/// When two elements of a tensor may be one value that is stored: their indices are equal in some dimensions, and in
/// two more, if there are such, they are equal too, or each is that of the other one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// In these they have equal indices.
    pub same: Vec<usize>,
    /// In these two they have equal indices, or the one has those of the other exchanged: halves of matrices that are
    /// equal to their transposes.
    pub exchanged: Option<[usize; 2]>,
}

impl Format {
    /// Row-major, every element stored.
    pub fn dense(ndim: usize) -> Format {
        Format::new(vec![Level::new(LevelKind::Dense); ndim])
    }

    /// Levels that store the dimensions in their order.
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

    /// The same levels, of which level `k` stores dimension `order[k]`.
    #[must_use]
    pub fn ordered(self, order: &[usize]) -> Format {
        Format { coords: order.iter().copied().map(Coord::Dim).collect(), ..self }
    }

    /// The same levels, which store these, sorted by these keys too.
    #[must_use]
    pub fn remapped(self, coords: Vec<Coord>, keys: Vec<Key>) -> Format {
        Format { coords: coords.into(), keys: keys.into(), ..self }
    }

    /// Whether this is [`Format::dense`] of some dimension.
    pub fn is_dense(&self) -> bool {
        self.levels.iter().all(|l| l.kind == LevelKind::Dense)
            && self.coords.iter().enumerate().all(|(k, c)| *c == Coord::Dim(k))
            && self.fill.is_none()
    }

    /// Whether a local tensor can have this format and a pattern of its own: elements are inserted one by one, in any
    /// order. Rows of a `bytemap`, in which elements are found by their coordinates and which are cleared by their
    /// lists, are the format of workspaces (`s.cache` of structured tensors, `s.set_format`).
    pub fn inserts(&self) -> bool {
        let Some((last, above)) = self.levels.split_last() else { return false };
        *last == Level { index: last.index, ..Level::new(LevelKind::Bytemap) }
            && above.iter().all(|l| l.kind == LevelKind::Dense)
            && self.coords.iter().enumerate().all(|(k, c)| *c == Coord::Dim(k))
            && self.keys.is_empty()
            && !self.drops
    }

    /// The format of workspaces of so many dimensions: rows of a `bytemap`.
    pub fn workspace(ndim: usize, fill: Option<Literal>) -> Format {
        let mut levels = vec![Level::new(LevelKind::Dense); ndim];
        if let Some(last) = levels.last_mut() {
            *last = Level::new(LevelKind::Bytemap);
        }
        Format { fill, pattern: Some(Pattern::fresh()), ..Format::new(levels) }
    }

    /// Whether levels store something else than a dimension each.
    pub fn is_remapped(&self) -> bool {
        !self.keys.is_empty() || self.coords.iter().any(|c| !matches!(c, Coord::Dim(_)))
    }

    /// The format of adjoints of tensors in this one: stored where these are, 0 elsewhere.
    #[must_use]
    pub fn derivative(&self) -> Format {
        let format = Format { fill: None, drops: true, sums: !self.is_injective(), ..self.clone() };
        if format.is_dense() { Format::dense(self.levels.len()) } else { format }
    }

    /// The format of tangents of tensors in this one: as that of adjoints, but one value stands for equal elements,
    /// unless it is the sum of several: then so is its tangent.
    #[must_use]
    pub fn tangent(&self) -> Format {
        Format { sums: self.sums, ..self.derivative() }
    }

    /// Whether one value is stored for each coordinate, and not one for several.
    pub fn is_injective(&self) -> bool {
        self.levels.iter().all(|l| l.facts().injective)
    }

    /// When two elements of a tensor of so many dimensions may be one value that is stored. All that are one are found
    /// so; of those in a dimension with runs, which are one depends on what is stored.
    pub fn identity(&self, ndim: usize) -> Identity {
        let mut same: Vec<usize> = (0..ndim).collect();
        if self.is_injective() {
            return Identity { same, exchanged: None };
        }
        // It is the last level that stores one value for several coordinates (`check`).
        let symmetric = self.squares().find(|(level, _)| level.kind == LevelKind::Symmetric);
        let exchanged = symmetric.map(|(_, dims)| dims);
        let above = &self.coords[..self.coords.len() - 1];
        same.retain(|d| match exchanged {
            Some(dims) => !dims.contains(d),
            None => above.contains(&Coord::Dim(*d)),
        });
        Identity { same, exchanged }
    }

    /// Which dimension each level stores, where each stores one.
    pub fn order(&self) -> Option<Vec<usize>> {
        let dim = |c: &Coord| match c {
            Coord::Dim(d) => Some(*d),
            _ => None,
        };
        if self.keys.is_empty() { self.coords.iter().map(dim).collect() } else { None }
    }

    /// What each level and key is of, as the function of a `remap=` returns it: `(j - i, i, j)`.
    pub fn remap(&self) -> String {
        let dims = self.coords.iter().chain(self.keys.iter().map(|k| &k.coord)).flat_map(Coord::dims);
        coord::tuple(&self.coords, &self.keys, dims.max().map_or(0, |d| d + 1))
    }

    /// The format as programs write it, whatever its pattern.
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// The same, where a function of that name is its `remap=`.
    pub fn text_with(&self, remap: &str) -> String {
        let mut parts: Vec<String> = self.levels.iter().map(Level::to_string).collect();
        match self.order() {
            None => parts.push(format!("remap={remap}")),
            Some(order) if order.iter().enumerate().any(|(k, d)| k != *d) => {
                // (One dimension has one order.)
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
                // All digits: it is of some type of floats, and is read back as one.
                Literal::Float(_) => DType::F64,
            };
            parts.push(format!("fill={}", print::expr(&Expr::literal(fill, dtype))));
        }
        format!("format({})", parts.join(", "))
    }
}

/// As programs write it: `format(dense, compressed(index=i64), order=(1, 0))`. Its pattern is left out, and in the
/// place of the function of a `remap=` stands what that returns, of `i`, `j`, `k` …
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_with(&self.remap()))
    }
}

#[cfg(test)]
mod tests;
