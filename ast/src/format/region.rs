//! Elements that a tensor stores in formats of whole regions, where a program wrote some of them (format abstraction,
//! section 3.2).

use super::{Format, LevelKind};
use crate::coordinates::indices_at;
use rustc_hash::FxHashMap;

/// Coordinates of one level's elements under one prefix of coordinates.
type Fibres = FxHashMap<Vec<i64>, Vec<i64>>;

impl Format {
    /// Returns for each element of a tensor, in row-major order, whether the format stores it where a program wrote
    /// the elements marked in `written`. Levels that store lists have the written coordinates; dense levels and the
    /// like add the region around them.
    ///
    /// ```
    /// use taffeta_ast::format::Named;
    ///
    /// let band = Named::Band.format(2).unwrap();
    /// let written = [true, false, true, false, false, true];
    /// assert_eq!(band.region(&[2, 3], &written), [true, true, true, false, false, true]);
    /// ```
    pub fn region(&self, shape: &[i64], written: &[bool]) -> Vec<bool> {
        if !self.stores_regions() {
            return written.to_vec();
        }
        let all: Vec<Vec<i64>> = (0..written.len()).map(|k| indices_at(shape, k)).collect();
        let mut stored = vec![true; written.len()];
        for (level, kind) in self.levels.iter().map(|l| l.kind).enumerate() {
            let fibres = self.fibres(level, all.iter().zip(written).filter(|(_, w)| **w).map(|(at, _)| at));
            for (at, stored) in all.iter().zip(&mut stored).filter(|(_, s)| **s) {
                *stored = self.admits((level, kind), &fibres, at);
            }
        }
        stored
    }

    /// Groups the coordinates of a level's elements by those above. The level `squeezed` has one group.
    fn fibres<'a>(&self, level: usize, written: impl Iterator<Item = &'a Vec<i64>>) -> Fibres {
        let mut fibres = Fibres::default();
        for at in written {
            if let Some(c) = self.coords[level].value(at) {
                fibres.entry(self.prefix(level, at)).or_default().push(c);
            }
        }
        for all in fibres.values_mut() {
            all.sort_unstable();
            all.dedup();
        }
        fibres
    }

    /// Returns the coordinates of an element above a level; counters, which tell no elements apart, are left out.
    fn prefix(&self, level: usize, at: &[i64]) -> Vec<i64> {
        match self.levels[level].kind {
            LevelKind::Squeezed => Vec::new(),
            _ => self.coords[..level].iter().filter_map(|c| c.value(at)).collect(),
        }
    }

    /// Returns whether a level has a position for an element, given that those above do.
    fn admits(&self, (level, kind): (usize, LevelKind), fibres: &Fibres, at: &[i64]) -> bool {
        use LevelKind::*;
        let Some(own) = self.coords[level].value(at) else { return true };
        let fibre = || fibres.get(&self.prefix(level, at)).map_or(&[][..], Vec::as_slice);
        match kind {
            Compressed | Singleton | Hashed | Bytemap | Bitmap | Blocklist | Point | Squeezed | Sliced => {
                fibre().binary_search(&own).is_ok()
            }
            Banded => fibre().first().is_some_and(|first| *first <= own) && fibre().last() >= Some(&own),
            Ragged => fibre().last() >= Some(&own),
            LowerTriangular | UpperTriangular => self.stored_for(at).is_some(),
            Dense | RunLength | PackBits | Symmetric | Range | Offset => true,
        }
    }
}
