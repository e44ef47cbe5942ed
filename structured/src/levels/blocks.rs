//! Blocks of consecutive coordinates, one per position of the level above: the common part of banded and ragged levels.

use crate::level::{Entry, MAX_POSITIONS, Misfit, Packing, accumulate, zeros};
use crate::level_assembly::{Path, set};
use taffeta_ast::Expr;

/// Packs blocks. Each ends with the last coordinate of its elements, and begins at `begin` of the first one. Returns
/// the first coordinates of the blocks (0 for empty ones), and the offsets of their positions.
pub(super) fn pack(entries: &mut Packing<'_>, begin: fn(i64) -> i64) -> Result<(Vec<i64>, Vec<i64>), Misfit> {
    let (mut start, mut pos) = (zeros(*entries.count)?, zeros(*entries.count + 1)?);
    for (p, c) in entries.positions.iter().zip(entries.coordinates) {
        let k = *p as usize;
        // Coordinates are sorted: this one is the first of its block.
        if pos[k + 1] == 0 {
            start[k] = begin(*c);
        }
        pos[k + 1] = c + 1 - start[k];
    }
    let count = pos.iter().try_fold(0i64, |sum, n| sum.checked_add(*n).filter(|sum| *sum <= MAX_POSITIONS));
    if count.is_none() {
        return Err(Misfit::TooMany);
    }
    accumulate(&mut pos);
    for (p, c) in entries.positions.iter_mut().zip(entries.coordinates) {
        let k = *p as usize;
        *p = pos[k] + c - start[k];
    }
    *entries.count = pos[start.len()];
    Ok((start, pos))
}

/// Lists the entries of the block under position `above`, which begins at coordinate `start`.
pub(super) fn unpack(pos: &[i64], above: i64, start: i64) -> impl Iterator<Item = Entry> {
    let (begin, end) = (pos[above as usize], pos[above as usize + 1]);
    (begin..end).map(move |q| Entry { above, coordinate: start + q - begin, position: q })
}

/// Appends this number of coordinates to the block of the present parent, up to that of the element.
pub(super) fn enter(path: &mut Path<'_>, k: usize, by: &Expr) {
    let count = &path.assembly.levels[k].counts[0];
    path.all.extend(path.assembly.extended(count, by, &path.origin));
    path.all.push(set(count, count.load([]).plus(by), &path.origin));
    path.position = count.load([]).minus(&Expr::int(1));
}
