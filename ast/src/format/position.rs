//! Validity of formats: each kind of level needs facts of the level above, and some kinds must be last. Also the
//! symmetries of formats that store half of a square matrix.

use super::{Coord, Format, Level, LevelKind, coord};
use crate::expr::Expr;
use std::fmt;

/// Reason why a format is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Number of the faulty level, from 0, if the fault is in one level.
    pub level: Option<usize>,
    /// Missing property.
    pub message: String,
    /// Text to write instead, if known.
    pub help: Option<String>,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Format {
    /// Checks that the levels can store tensors of `ndim` dimensions.
    ///
    /// # Errors
    ///
    /// The first missing property, in the terms of [`super::LevelFacts`].
    pub fn check(&self, ndim: usize) -> Result<(), Misplaced> {
        let whole = |message: String, help: &str| {
            let help = (!help.is_empty()).then(|| help.to_string());
            Err(Misplaced { level: None, message, help })
        };
        if self.is_remapped() {
            self.check_remap(ndim)?;
            return (0..self.levels.len()).try_for_each(|k| self.place(k));
        }
        if self.levels.len() != ndim || self.coords.len() != ndim {
            let levels = match self.levels.len() {
                1 => "one level".to_string(),
                n => format!("{n} levels"),
            };
            return whole(
                format!("a format of {levels} cannot store {ndim} dimensions"),
                "give it one level for each dimension",
            );
        }
        let order = self.order().unwrap_or_default();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..ndim) {
            let stored: Vec<String> = order.iter().map(usize::to_string).collect();
            let text = format!("`order=` names the dimensions {}, but there are {ndim}", stored.join(", "));
            return whole(text, "name each dimension once: `order=(1, 0)`");
        }
        (0..ndim).try_for_each(|k| self.place(k))
    }

    /// Checks that the stored coordinates determine an element's indices in a tensor of `ndim` dimensions.
    fn check_remap(&self, ndim: usize) -> Result<(), Misplaced> {
        let err = |level: Option<usize>, message: String, help: &str| {
            Err(Misplaced { level, message, help: (!help.is_empty()).then(|| help.to_string()) })
        };
        let (given, levels) = (self.coords.len(), self.levels.len());
        if given != levels {
            let text = format!("`remap=` gives {given} coordinates, but there are {levels} levels");
            return err(None, text, "return one coordinate for each level, and any number of `order(…)`");
        }
        let all = || self.coords.iter().chain(self.keys.iter().map(|k| &k.coord));
        let most = all().flat_map(Coord::dims).max().map_or(0, |d| d + 1);
        if most > ndim {
            return err(None, format!("`remap=` takes {most} dimensions, but there are {ndim}"), "");
        }
        let names = coord::names(ndim);
        // Existence of a range does not depend on sizes, so any size serves.
        let some = vec![Expr::int(7); ndim];
        if let Some(large) = all().find(|c| !c.is_small()) {
            let text = format!("computing `{large}` may take more than 64 bits");
            return err(None, text, "keep the product of all factors at most 256");
        }
        if let Some(key) = self.keys.iter().find(|k| matches!(k.coord, Coord::Counter(_))) {
            return err(None, format!("`order({})` cannot sort by a counter", key.coord), "leave out this key");
        }
        for (k, (c, level)) in self.coords.iter().zip(self.levels.iter()).enumerate() {
            match (c, level.kind) {
                (Coord::Counter(of), LevelKind::Sliced) => self.check_slots(k, of)?,
                (Coord::Counter(_), _) => {
                    let text = format!("`{level}` cannot store the counter `{c}`, which has no known bound");
                    return err(Some(k), text, "store a counter in a `sliced` level");
                }
                (_, LevelKind::Sliced) => {
                    return err(
                        Some(k),
                        "expected a counter for the level `sliced`, found none".into(),
                        "write `counter(i)`",
                    );
                }
                _ if c.range(&some).is_none() => {
                    let text = format!("`{level}` cannot store `{c}`, which has no known bounds");
                    let help =
                        "write an expression with bounds, such as `i + 1`, `j - i`, `i // 4`, `i % 4` or `i & 3`";
                    return err(Some(k), text, help);
                }
                _ => {}
            }
        }
        match self.indices(ndim).iter().position(Option::is_none) {
            None => self.check_keys(),
            Some(d) => {
                let name = &names[d];
                let text =
                    format!("no level determines the index `{name}`: elements that differ only in it would be equal");
                err(
                    None,
                    text,
                    &format!(
                        "store `{name}`, or coordinates that determine it, such as `{name} // 4` and `{name} % 4`"
                    ),
                )
            }
        }
    }

    /// Checks that slots stand below `dense` levels and above those of the fibres that they divide.
    fn check_slots(&self, k: usize, of: &[Coord]) -> Result<(), Misplaced> {
        let err = |message: &str| {
            let help = "write `format(sliced, dense, singleton, remap=f)`, where f returns `(counter(i), i, j)`, or \
                        `format(dense, sliced, dense, singleton, remap=f)`, where it returns \
                        `(i // 8, counter(i), i % 8, j)`";
            Err(Misplaced { level: Some(k), message: message.to_string(), help: Some(help.to_string()) })
        };
        let (above, [_, within @ .., last]) = self.levels.split_at(k) else {
            return err("`sliced` needs levels below it");
        };
        let computed = above.iter().chain(within).all(|l| l.kind == LevelKind::Dense);
        if !computed || last.kind != LevelKind::Singleton || !last.ordered || !last.unique {
            return err("expected `sliced` between `dense` levels, above an ordered `singleton`");
        }
        // The coordinates of a fibre, and those that the counter is over, determine each other.
        let fibre = self.coords[..k].iter().chain(&self.coords[k + 1..self.coords.len() - 1]);
        let same = Format::determine(fibre.clone(), of.iter()) && Format::determine(of.iter(), fibre);
        if !same || !self.keys.is_empty() {
            return err("`sliced` can only count elements with equal coordinates in the `dense` levels around it");
        }
        Ok(())
    }

    /// Checks that levels admit the order of the sort keys: the levels from a key's place to the one whose coordinate,
    /// with those above, determines the key must be declared unordered, and all but the last of these not unique.
    fn check_keys(&self) -> Result<(), Misplaced> {
        for key in self.keys.iter() {
            let says = |k: &usize| self.says(k + 1, &key.coord);
            let to = (0..self.levels.len()).find(says).unwrap_or(self.levels.len() - 1);
            for k in key.before..=to {
                let level = self.levels[k];
                let missing = match (level.ordered && level.kind.facts().ordered, level.unique && k < to) {
                    (true, true) => "unique=False, ordered=False",
                    (true, false) => "ordered=False",
                    (false, true) => "unique=False",
                    (false, false) => continue,
                };
                let (key, name) = (&key.coord, level.kind.name());
                let message = format!("`order({key})` changes the order of the coordinates of `{level}`");
                let help = match level.kind.has_lists() {
                    true => format!("write `{name}({missing})`, or move the key after this coordinate"),
                    false => {
                        "use a level of lists, which can have any order: `compressed(unique=False, ordered=False)`"
                            .to_string()
                    }
                };
                return Err(Misplaced { level: Some(k), message, help: Some(help) });
            }
        }
        Ok(())
    }

    /// Checks that level `k` may stand below the levels above it.
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
            let (above, text) = (above.kind.name(), "cannot be below a level that is not unique");
            let why =
                format!("`{name}` {text} (`{above}`): it is not branchless, and duplicates could not be told apart");
            return err(why, "write `singleton` below `compressed(unique=False)`");
        }
        let plain = |k: usize| matches!(self.coords[k], Coord::Dim(_));
        match level.kind {
            LevelKind::Range if !self.is_remapped() => err(
                "`range` needs coordinates above it that bound its own".into(),
                "write `dense`, or give the coordinates of the levels with `remap=`",
            ),
            LevelKind::Offset if self.derived(k).is_none() => {
                let text = "`offset` needs coordinates above it that determine its own";
                err(text.to_string(), "give the coordinates of the levels with `remap=`: `(j - i, i, j)`")
            }
            LevelKind::Sliced if !matches!(self.coords[k], Coord::Counter(_)) => err(
                "expected a counter for the level `sliced`, found none".into(),
                "give the coordinates of the levels with `remap=`: `(counter(i), i, j)`",
            ),
            // Empty slots are recognised by their coordinate.
            LevelKind::Singleton if self.levels[..k].iter().any(|l| l.kind == LevelKind::Sliced) => Ok(()),
            LevelKind::Singleton if above.is_none_or(|a| a.unique) => {
                let text = "`singleton` needs a level above it that is not unique";
                err(
                    text.to_string(),
                    "write `compressed(unique=False)` above it, or `point` for at most one coordinate",
                )
            }
            LevelKind::LowerTriangular | LevelKind::UpperTriangular | LevelKind::Symmetric
                if above.is_none_or(|a| a.kind != LevelKind::Dense) || !plain(k) || !plain(k - 1) =>
            {
                let text = format!("`{name}` stores half of a matrix and needs a `dense` level above it");
                err(text, &format!("write `format(dense, {level})`"))
            }
            // One value stands for many elements, so positions below it could not be told apart.
            _ if !level.kind.facts().injective && !last => {
                let text = format!("`{name}` is not injective: it stores one value for several coordinates");
                err(text, "make it the last level")
            }
            _ => Ok(()),
        }
    }

    /// Returns the levels that store half of a square matrix, with its two dimensions, which have equal sizes.
    pub fn squares(&self) -> impl Iterator<Item = (Level, [usize; 2])> {
        let half = |l: &Level| {
            matches!(l.kind, LevelKind::LowerTriangular | LevelKind::UpperTriangular | LevelKind::Symmetric)
        };
        let found = (1..self.levels.len()).filter(move |k| half(&self.levels[*k]));
        found.filter_map(|k| match (&self.coords[k - 1], &self.coords[k]) {
            (Coord::Dim(a), Coord::Dim(b)) => Some((self.levels[k], [*a, *b])),
            _ => None,
        })
    }

    /// Returns the indices of the element whose value is stored for the element at these indices: itself, or its mirror
    /// image across the diagonal in a symmetric matrix. `None` outside of a triangle, where nothing is stored.
    ///
    /// ```
    /// use taffeta_ast::format::Named;
    ///
    /// let symmetric = Named::Symmetric.format(2).unwrap();
    /// assert_eq!(symmetric.stored_for(&[0, 2]), Some(vec![2, 0]));
    /// assert_eq!(Named::LowerTriangular.format(2).unwrap().stored_for(&[0, 2]), None);
    /// ```
    pub fn stored_for(&self, at: &[i64]) -> Option<Vec<i64>> {
        let mut at = at.to_vec();
        for (level, [a, b]) in self.squares() {
            match level.kind {
                LevelKind::LowerTriangular if at[b] > at[a] => return None,
                LevelKind::UpperTriangular if at[b] < at[a] => return None,
                LevelKind::Symmetric if at[b] > at[a] => at.swap(a, b),
                _ => {}
            }
        }
        Some(at)
    }

    /// Returns the indices of all elements that share the stored value of the element at these indices, itself
    /// included.
    pub fn others(&self, at: &[i64]) -> Vec<Vec<i64>> {
        let mut all = vec![at.to_vec()];
        for (_, [a, b]) in self.squares().filter(|(level, _)| level.kind == LevelKind::Symmetric) {
            let mut exchanged: Vec<Vec<i64>> = all.iter().filter(|at| at[a] != at[b]).cloned().collect();
            exchanged.iter_mut().for_each(|at| at.swap(a, b));
            all.extend(exchanged);
        }
        all
    }

    /// Returns whether level `k` stores that plain dimension.
    pub fn stores(&self, k: usize, dimension: usize) -> bool {
        self.coords.get(k) == Some(&Coord::Dim(dimension))
    }
}
