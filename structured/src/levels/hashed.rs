//! `hashed`: a list of the stored coordinates per position of the level above, and a hash table that finds a coordinate
//! in the list. `pos` and `crd` are as in `compressed`, except that the coordinates of a list may have any order.
//! `tpos[p] .. tpos[p + 1]` is the table of position `p`: the number of slots is the least power of two that is at
//! least twice the length of the list, so that one is free; an empty list has one slot. `tbl` has the position of the
//! slot's coordinate plus 1, or 0 if the slot is free.
//!
//! ```text
//!     0 1 2 3        pos    0   2   2     3         coordinates 1 and 3 under position 0, none under 1, 0 under 2
//! 0   . a . b        crd    1 3       0
//! 1   . . . .        tpos   0         4   5     7
//! 2   c . . .        tbl    2 1 . .   .   3 .       (a dot is 0: free)
//! ```
//!
//! Probing for coordinate `j` begins at the slot given by [`slot`], and proceeds to the next slot, from the last one to
//! the first, until the coordinate or a free slot is found:
//!
//! ```text
//! mask = tpos[p + 1] - tpos[p] - 1
//! s = (((j ^ (j >> 32)) * -7046029254386353131) >> 32) & mask      an i64 that wraps
//! while tbl[tpos[p] + s] != 0 and crd[tbl[tpos[p] + s] - 1] != j:
//!     s = (s + 1) & mask
//! position = tbl[tpos[p] + s] - 1                                -1: not stored
//! ```

use super::compressed::{self, Compressed};
use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, zeros,
};
use crate::looplet::{Looplet, Positions, Probe};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Op, Symbol};

pub(super) struct Hashed;

const TPOS: usize = 2;
const TBL: usize = 3;

/// Multiplier of the hash: 2^64 divided by the golden ratio, which scatters consecutive coordinates (Knuth, volume 3,
/// 6.4).
const FACTOR: i64 = 0x9E37_79B9_7F4A_7C15_u64 as i64;

/// Returns the slot at which probing for a coordinate begins, in a table of `mask + 1` slots.
pub fn slot(coordinate: i64, mask: i64) -> i64 {
    ((coordinate ^ (coordinate >> 32)).wrapping_mul(FACTOR) >> 32) & mask
}

impl LevelFormat for Hashed {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[
            ArrayKind { name: "pos", positions: true, dtype: None, length: |n| n.above.plus(&Expr::int(1)) },
            ArrayKind { name: "crd", positions: false, dtype: None, length: |n| n.hidden[0].clone() },
            ArrayKind { name: "tpos", positions: true, dtype: None, length: |n| n.above.plus(&Expr::int(1)) },
            ArrayKind { name: "tbl", positions: true, dtype: None, length: |n| n.hidden[1].clone() },
        ]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["n", "t"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.hidden[0].clone()
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, position: &Symbol) -> Looplet {
        Compressed.fibre(level, above, index, position)
    }

    fn probe(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Probe> {
        let Positions { first, end } = &above.positions;
        let [begin, after] = [first, end].map(|p| level.load(TPOS, p));
        let slot = Symbol::new("slot");
        let at = begin.plus(&Expr::var(&slot));
        let high = Expr::apply(Op::Shr, vec![index.clone(), Expr::int(32)]);
        let mixed = Expr::apply(Op::BitXor, vec![index.clone(), high]).times(&Expr::int(FACTOR));
        Some(Probe {
            mask: after.minus(&begin).minus(&Expr::int(1)),
            hash: Expr::apply(Op::Shr, vec![mixed, Expr::int(32)]),
            entry: level.load(TBL, &at).minus(&Expr::int(1)),
            assumptions: vec![Expr::int(0).less_eq(&at).and(&at.less(&level.arrays[TBL].shape[0]))],
            slot,
        })
    }

    fn contract(&self, level: Level) -> Option<Contract> {
        let Contract { mut counts, mut rules, list } = Compressed.contract(level)?;
        let (pos, crd) = (compressed::POS, compressed::CRD);
        counts.push(Counted::Length(TBL));
        rules.push(Rule::Partition { pos: TPOS, total: 1 });
        rules.push(Rule::Table { pos, crd, tpos: TPOS, tbl: TBL });
        Some(Contract { counts, rules, list })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let fibres = *entries.count;
        let Packed { mut arrays, mut hidden } = Compressed.pack(entries)?;
        let (pos, crd) = (&arrays[compressed::POS], &arrays[compressed::CRD]);
        let mut begins = zeros(fibres + 1)?;
        for (k, own) in pos.windows(2).enumerate() {
            begins[k + 1] = begins[k] + (2 * (own[1] - own[0]) as u64).next_power_of_two() as i64;
        }
        let slots = begins[fibres as usize];
        let mut table = zeros(slots)?;
        for (own, place) in pos.windows(2).zip(begins.windows(2)) {
            let (begin, mask) = (place[0], place[1] - place[0] - 1);
            for p in own[0]..own[1] {
                let mut s = slot(crd[p as usize], mask);
                while table[(begin + s) as usize] != 0 {
                    s = (s + 1) & mask;
                }
                table[(begin + s) as usize] = p + 1;
            }
        }
        arrays.extend([begins, table]);
        hidden.push(slots);
        Ok(Packed { arrays, hidden })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        Compressed.unpack(arrays, above)
    }
}
