//! Checks of the rules of [`taffeta_ast::format::Contract`] on borrowed arrays. `codegen/include/taffeta_levels.h` has
//! the same checks in C.

use super::{Indices, List, Named, Unfit};
use std::ops::Range;
use taffeta_ast::format::Rule;

/// Arrays and sizes that a level's rules refer to. The lengths of the arrays are correct.
pub(super) struct Data<'a> {
    pub(super) arrays: &'a [Named<'a>],
    pub(super) hidden: &'a [i64],
    /// Size of the dimension.
    pub(super) size: i64,
    /// Lists above, innermost first.
    pub(super) lists: &'a [List<'a>],
    /// First slots, if a level above is `sliced`.
    pub(super) slots: Option<Indices<'a>>,
}

/// Yields the ranges between consecutive elements of a partition.
fn parts(pos: Indices<'_>) -> impl Iterator<Item = Range<usize>> {
    (1..pos.len()).map(move |k| pos.at(k - 1) as usize..pos.at(k) as usize)
}

impl Data<'_> {
    /// Checks a rule, given that the rules before it hold.
    pub(super) fn obeys(&self, rule: &Rule) -> Result<(), Unfit> {
        let all = |a: usize| self.arrays[a].indices;
        match *rule {
            Rule::Partition { pos, total } => partition(&self.arrays[pos], self.hidden[total]),
            Rule::Coordinates { pos, crd, ordered, unique } => {
                let mut all = parts(all(pos)).enumerate();
                all.try_for_each(|(p, part)| self.coordinates(&self.arrays[crd], p, part, ordered, unique))
            }
            Rule::Blocks { pos, start } => self.blocks(&self.arrays[pos], start.map(all)),
            Rule::Range { array, or_size } => {
                let most = if or_size { self.size } else { self.size - 1 };
                (0..all(array).len()).try_for_each(|k| self.within(&self.arrays[array], k, most).map(drop))
            }
            Rule::Slots { crd } => self.in_slots(&self.arrays[crd]),
            Rule::Rises { array } => rises(&self.arrays[array]),
            Rule::Tuples { crd, unique } => self.tuples(&self.arrays[crd], unique),
            Rule::Segments { pos, end, ofs, full } => {
                let mut all_parts = parts(all(pos)).enumerate();
                let ofs = ofs.map(|a| &self.arrays[a]);
                all_parts.try_for_each(|(p, part)| self.segments(&self.arrays[end], ofs, p, part, full))
            }
            Rule::Map { pos, crd, map } => self.map(all(pos), all(crd), &self.arrays[map]),
            Rule::Table { pos, crd, tpos, tbl } => {
                let both = parts(all(pos)).zip(parts(all(tpos)));
                both.enumerate().try_for_each(|(p, (part, slots))| table(all(crd), &self.arrays[tbl], p, part, slots))
            }
        }
    }

    /// Returns an element, and checks that it is between 0 and `most`, inclusive.
    fn within(&self, array: &Named<'_>, k: usize, most: i64) -> Result<i64, Unfit> {
        let c = array.indices.at(k);
        if (0..=most).contains(&c) {
            return Ok(c);
        }
        let what =
            format!("element {k} of `{}` is {c}, out of range for a dimension of size {}", array.name, self.size);
        Err(Unfit::Array(what))
    }

    /// Checks the coordinates of part `p` of a list.
    fn coordinates(
        &self,
        crd: &Named<'_>,
        p: usize,
        part: Range<usize>,
        ordered: bool,
        unique: bool,
    ) -> Result<(), Unfit> {
        let mut before = -1;
        for k in part.clone() {
            let c = self.within(crd, k, self.size - 1)?;
            if ordered && c < before {
                return crd.broken(format_args!("is not in order: element {k} is {c}, after {before}"));
            }
            if ordered && unique && c == before {
                return crd.twice(c, p);
            }
            before = c;
        }
        if !ordered && unique {
            let mut sorted: Vec<i64> = part.map(|k| crd.indices.at(k)).collect();
            sorted.sort_unstable();
            if let Some(same) = sorted.windows(2).find(|two| two[0] == two[1]) {
                return crd.twice(same[0], p);
            }
        }
        Ok(())
    }

    fn blocks(&self, pos: &Named<'_>, start: Option<Indices<'_>>) -> Result<(), Unfit> {
        let size = self.size;
        for (p, part) in parts(pos.indices).enumerate() {
            let (first, length) = (start.map_or(0, |a| a.at(p)), part.len() as i64);
            if first < 0 || first > size || length > size - first {
                return pos.broken(format_args!(
                    "has {length} coordinates from {first} under position {p}, out of range for a dimension of size \
                     {size}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that the coordinates of each fibre increase from slot to slot, up to the padding.
    fn in_slots(&self, crd: &Named<'_>) -> Result<(), Unfit> {
        let Some(pos) = self.slots else { return Ok(()) };
        let slots = pos.at(pos.len() - 1) as usize;
        let fibres = crd.indices.len().checked_div(slots).unwrap_or(0);
        for (p, part) in parts(pos).enumerate() {
            for f in 0..fibres {
                let mut before = -1;
                for s in part.clone() {
                    let (c, slot) = (crd.indices.at(s * fibres + f), s - part.start);
                    if c < before || c == before && c != self.size {
                        let fibre = p * fibres + f;
                        return crd.broken(format_args!(
                            "does not increase in fibre {fibre}: slot {slot} is {c}, after {before}"
                        ));
                    }
                    before = c;
                }
            }
        }
        Ok(())
    }

    fn tuples(&self, crd: &Named<'_>, unique: bool) -> Result<(), Unfit> {
        // Without a partitioned list above, no two positions have the same parent.
        let Some(pos) = self.lists.last().and_then(|l| l.pos) else { return Ok(()) };
        for part in parts(pos) {
            for k in part.skip(1) {
                if self.lists.iter().any(|l| l.crd.at(k) != l.crd.at(k - 1)) {
                    continue;
                }
                let (before, c) = (crd.indices.at(k - 1), crd.indices.at(k));
                if c < before {
                    return crd.broken(format_args!("is not in order: element {k} is {c}, after {before}"));
                }
                if unique && c == before {
                    return crd.broken(format_args!("repeats coordinate {c}: element {k} equals the one before"));
                }
            }
        }
        Ok(())
    }

    /// Checks the segments of part `p`; `full`: they cover the dimension.
    fn segments(
        &self,
        end: &Named<'_>,
        ofs: Option<&Named<'_>>,
        p: usize,
        part: Range<usize>,
        full: bool,
    ) -> Result<(), Unfit> {
        let mut before = 0;
        for b in part {
            let e = self.within(end, b, self.size)?;
            if e <= before {
                return end.broken(format_args!("does not increase: element {b} is {e}, after {before}"));
            }
            if let Some(ofs) = ofs {
                let (length, room) = (ofs.indices.at(b + 1) - ofs.indices.at(b), e - before);
                let fits = if full { length == 1 || length == room } else { 0 < length && length <= room };
                if !fits {
                    return ofs
                        .broken(format_args!("has {length} positions in segment {b}, which has {room} coordinates"));
                }
            }
            before = e;
        }
        if full && before != self.size {
            let size = self.size;
            return end.broken(format_args!("ends with {before} under position {p}, expected the size {size}"));
        }
        Ok(())
    }

    fn map(&self, pos: Indices<'_>, crd: Indices<'_>, map: &Named<'_>) -> Result<(), Unfit> {
        let size = self.size as usize;
        for (p, part) in parts(pos).enumerate() {
            if let Some(k) = part.clone().find(|k| map.indices.at(p * size + crd.at(*k) as usize) == 0) {
                let c = crd.at(k);
                return map.broken(format_args!("does not mark coordinate {c} under position {p}, which is stored"));
            }
            let marked = (p * size..(p + 1) * size).filter(|k| map.indices.at(*k) != 0).count();
            if marked != part.len() {
                let n = part.len();
                return map.broken(format_args!("marks {marked} coordinates under position {p}, but {n} are stored"));
            }
        }
        Ok(())
    }
}

fn rises(array: &Named<'_>) -> Result<(), Unfit> {
    for k in 1..array.indices.len() {
        let (before, c) = (array.indices.at(k - 1), array.indices.at(k));
        if c <= before {
            return array.broken(format_args!("does not increase: element {k} is {c}, after {before}"));
        }
    }
    Ok(())
}

fn partition(pos: &Named<'_>, total: i64) -> Result<(), Unfit> {
    let mut before = pos.indices.at(0);
    if before != 0 {
        return pos.broken(format_args!("begins with {before}, expected 0"));
    }
    for k in 1..pos.indices.len() {
        let next = pos.indices.at(k);
        if next < before {
            return pos.broken(format_args!("falls from {before} to {next} at element {k}"));
        }
        before = next;
    }
    if before != total {
        return pos.broken(format_args!("ends with {before}, but there are {total} positions"));
    }
    Ok(())
}

/// Checks the hash table of part `p` of a list.
fn table(crd: Indices<'_>, tbl: &Named<'_>, p: usize, part: Range<usize>, slots: Range<usize>) -> Result<(), Unfit> {
    let own = |t: i64| t == 0 || (part.start as i64) < t && t <= part.end as i64;
    if !slots.len().is_power_of_two() {
        return tbl.broken(format_args!("has {} slots under position {p}, which is not a power of two", slots.len()));
    }
    if let Some(k) = slots.clone().find(|k| !own(tbl.indices.at(*k))) {
        let t = tbl.indices.at(k);
        return tbl.broken(format_args!("has {t} in slot {k}, which is not a position under {p}"));
    }
    if slots.clone().all(|k| tbl.indices.at(k) != 0) {
        return tbl.broken(format_args!("has no free slot under position {p}"));
    }
    let mask = slots.len() as i64 - 1;
    for k in part {
        let mut s = crate::levels::slot(crd.at(k), mask);
        let mut found = tbl.indices.at(slots.start + s as usize);
        // Terminates, since a slot is free.
        while found != 0 && found != k as i64 + 1 {
            s = (s + 1) & mask;
            found = tbl.indices.at(slots.start + s as usize);
        }
        if found == 0 {
            return tbl.broken(format_args!("does not find the coordinate {} under position {p}", crd.at(k)));
        }
    }
    Ok(())
}
