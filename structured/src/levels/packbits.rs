//! `packbits`: a list of segments of consecutive coordinates per position of the level above. A segment has one value,
//! or one for each of its coordinates. Every coordinate is in a segment, with the fill value if it is not stored.
//! `pos[p] .. pos[p + 1]` are the segments under position `p`, `end` has the end coordinate of each, exclusive, and
//! `ofs[b] .. ofs[b + 1]` are its positions: one for a run, otherwise one per coordinate. Three equal neighbours make a
//! run; shorter runs beside each other are joined to one segment.
//!
//! ```text
//!     0 1 2 3 4 5 6        pos   0            2   3    a run of a and a stretch under position 0, a run of the fill
//! 0   a a a b c . d        end   3   7        7        under 1
//! 1   . . . . . . .        ofs   0   1        5   6
//!                          val   a   b c 0 d  0
//! ```

use super::blocklist::{ARRAYS, Block};
use super::runs;
use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, zeros,
};
use crate::looplet::{Fibre, Looplet, Positions};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Symbol};

pub(super) struct PackBits;

const POS: usize = 0;
const END: usize = 1;
const OFS: usize = 2;

/// Minimum length of a run that is not joined with its neighbours: a shorter one saves less than its segment costs.
const RUN: i64 = 3;

impl LevelFormat for PackBits {
    fn arrays(&self) -> &'static [ArrayKind] {
        ARRAYS
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["b", "n"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.hidden[1].clone()
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, position: &Symbol) -> Looplet {
        let Block { end, length, first, lookup } = Block::of(level, &Expr::var(position), index);
        let zero = Expr::int(0);
        let inside = zero.less_eq(&first).and(&first.less(&level.positions));
        let promise = zero.less(&end).and(&end.less_eq(&level.size)).and(&inside);
        let body = Looplet::Switch {
            cond: length.equals(&Expr::int(1)),
            then: Box::new(Looplet::Run(Fibre::At(Positions::one(first)))),
            otherwise: Box::new(Looplet::Lookup(lookup)),
        };
        Looplet::Stepper(Block::all(level, above, position, &end, promise, body))
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        let rules = vec![
            Rule::Partition { pos: POS, total: 0 },
            Rule::Partition { pos: OFS, total: 1 },
            Rule::Segments { pos: POS, end: END, ofs: Some(OFS), full: true },
        ];
        Some(Contract { counts: vec![Counted::Length(END), Counted::Last(OFS)], rules, list: None })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let mut pos = zeros(*entries.count + 1)?;
        let (mut end, mut ofs) = (Vec::new(), vec![0i64]);
        let mut count = 0;
        for (p, elements) in entries.fibres().into_iter().enumerate() {
            // Short runs join the segment beside them.
            for segment in runs::of(entries, elements).chunk_by(|a, b| a.length().max(b.length()) < RUN) {
                let (first, last) = (&segment[0], &segment[segment.len() - 1]);
                let is_run = segment.len() == 1;
                for e in first.elements.start..last.elements.end {
                    let own = entries.coordinates[e] - first.begin;
                    entries.positions[e] = if is_run { count } else { count + own };
                }
                count += if is_run { 1 } else { last.end - first.begin };
                end.push(last.end);
                ofs.push(count);
            }
            pos[p + 1] = end.len() as i64;
        }
        *entries.count = count;
        Ok(Packed { hidden: vec![end.len() as i64, count], arrays: vec![pos, end, ofs] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let (pos, end, ofs) = (&arrays[POS], &arrays[END], &arrays[OFS]);
        let mut entries = Vec::new();
        for p in 0..above.count {
            let mut next = 0;
            for b in pos[p as usize] as usize..pos[p as usize + 1] as usize {
                let is_run = ofs[b + 1] - ofs[b] == 1;
                let position = |c: i64| if is_run { ofs[b] } else { ofs[b] + c - next };
                entries.extend((next..end[b]).map(|c| Entry { above: p, coordinate: c, position: position(c) }));
                next = end[b];
            }
        }
        entries
    }
}
