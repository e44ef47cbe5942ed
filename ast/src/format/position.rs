//! Which level may stand where: each needs facts of the level above it, and some of being the last.

use super::{Coord, Format, Level, LevelKind};
use std::fmt;

/// Why a format is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// The level, from 0, if it is about one.
    pub level: Option<usize>,
    /// What is missing.
    pub message: String,
    /// What to write instead, if that is known.
    pub help: Option<String>,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Format {
    /// Whether its levels can store tensors of so many dimensions.
    ///
    /// # Errors
    ///
    /// The first thing that is missing, in the words of [`super::LevelFacts`].
    pub fn check(&self, ndim: usize) -> Result<(), Misplaced> {
        let whole = |message: String, help: &str| {
            let help = (!help.is_empty()).then(|| help.to_string());
            Err(Misplaced { level: None, message, help })
        };
        if self.levels.len() != ndim || self.coords.len() != ndim {
            let levels = match self.levels.len() {
                1 => "one level".to_string(),
                n => format!("{n} levels"),
            };
            return whole(format!("a format of {levels} cannot store {ndim} dimensions"), "give it one level for each");
        }
        let mut order = self.order();
        order.sort_unstable();
        if !order.iter().copied().eq(0..ndim) {
            let stored: Vec<String> = self.order().iter().map(usize::to_string).collect();
            let text = format!("`order=` stores the dimensions {}, and there are {ndim}", stored.join(", "));
            return whole(text, "name each dimension once: `order=(1, 0)`");
        }
        (0..ndim).try_for_each(|k| self.place(k))
    }

    /// Whether level `k` may stand there.
    fn place(&self, k: usize) -> Result<(), Misplaced> {
        let level = self.levels[k];
        let (above, last) = (k.checked_sub(1).map(|k| self.levels[k]), k + 1 == self.levels.len());
        let name = level.kind.name();
        let err = |message: String, help: &str| {
            Err(Misplaced { level: Some(k), message, help: (!help.is_empty()).then(|| help.to_string()) })
        };
        if last && !level.unique {
            let text = format!("the last level, `{name}`, is not unique: an element would be stored twice");
            return err(text, "leave out `unique=False` there");
        }
        if let Some(above) = above
            && !above.unique
            && !level.kind.facts().branchless
        {
            let (above, text) = (above.kind.name(), "stands below a level that is not unique");
            let why = format!("`{name}` {text} (`{above}`), and is not branchless: the two could not be told apart");
            return err(why, "below `compressed(unique=False)` stands `singleton`");
        }
        match level.kind {
            LevelKind::Singleton if above.is_none_or(|a| a.unique) => {
                let text = "`singleton` has one coordinate for each position of a level above that is not unique, and \
                            there is none";
                err(
                    text.to_string(),
                    "write `compressed(unique=False)` above it, or `point` for at most one coordinate",
                )
            }
            LevelKind::LowerTriangular | LevelKind::UpperTriangular | LevelKind::Symmetric
                if above.is_none_or(|a| a.kind != LevelKind::Dense) =>
            {
                let text = format!("`{name}` is half of a matrix, and needs a full level above it: `dense`");
                err(text, &format!("write `format(dense, {level})`"))
            }
            // One value stands for many elements, so there is nothing below it to be told apart.
            _ if !level.kind.facts().injective && !last => {
                let text = format!("`{name}` is not injective: it stores one value for several coordinates");
                err(text, "it can be the last level alone")
            }
            _ => Ok(()),
        }
    }

    /// Levels that are half of a square matrix, with its two dimensions, which are of one size.
    pub fn squares(&self) -> impl Iterator<Item = (Level, [usize; 2])> {
        let order = self.order();
        let half = |l: &Level| {
            matches!(l.kind, LevelKind::LowerTriangular | LevelKind::UpperTriangular | LevelKind::Symmetric)
        };
        let found = (1..self.levels.len()).filter(move |k| half(&self.levels[*k]));
        found.map(move |k| (self.levels[k], [order[k - 1], order[k]]))
    }

    /// Whether level `k` stores that dimension and nothing else.
    pub fn stores(&self, k: usize, dimension: usize) -> bool {
        self.coords.get(k) == Some(&Coord::Dim(dimension))
    }
}
