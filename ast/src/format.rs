//! How tensors are stored, as far as the tree must know: a format's levels and fill, and the *facts* of levels that
//! legality and lowering ask for. How a level is traversed and assembled is structured lowering's business.

use crate::expr::Literal;
use std::sync::Arc;

/// Kinds of level (format abstraction, section 3; looplets, section 5). Dense programs use `Dense` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LevelKind {
    /// Every coordinate is stored, in order.
    Dense,
    /// The coordinates that are stored, in order, between two positions.
    Compressed,
}

/// What is true of a level whatever it holds (format abstraction, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelFacts {
    /// Every coordinate of the dimension is stored.
    pub full: bool,
    /// Coordinates are stored in increasing order.
    pub ordered: bool,
    /// No coordinate is stored twice under one parent.
    pub unique: bool,
    /// Coordinates can be found without a search.
    pub random_access: bool,
}

impl LevelKind {
    /// The level's facts.
    pub fn facts(self) -> LevelFacts {
        match self {
            LevelKind::Dense => LevelFacts { full: true, ordered: true, unique: true, random_access: true },
            LevelKind::Compressed => LevelFacts { full: false, ordered: true, unique: true, random_access: false },
        }
    }
}

/// A tensor's storage: one level for each dimension, outermost first, over a permutation of the dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// One level for each dimension.
    pub levels: Arc<[LevelKind]>,
    /// `order[k]` is the dimension that level `k` stores.
    pub order: Arc<[usize]>,
    /// The value of elements that are not stored; 0 unless given.
    pub fill: Option<Literal>,
}

impl Format {
    /// Row-major, every element stored.
    pub fn dense(ndim: usize) -> Format {
        Format { levels: vec![LevelKind::Dense; ndim].into(), order: (0..ndim).collect(), fill: None }
    }

    /// Whether this is [`Format::dense`] of some dimension.
    pub fn is_dense(&self) -> bool {
        self.levels.iter().all(|l| *l == LevelKind::Dense) && self.order.iter().enumerate().all(|(k, d)| k == *d)
    }
}
