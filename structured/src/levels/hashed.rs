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
use crate::level_assembly::{AssembledArrays, AssembledLevel, LevelAssembly, Path, range, set, store_at};
use crate::looplet::{Looplet, Positions, Probe};
use std::sync::Arc;
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Op, Origin, Stmt, StmtKind, Symbol, Tensor};

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
        Some(Probe {
            mask: after.minus(&begin).minus(&Expr::int(1)),
            hash: hash(index),
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

impl LevelAssembly for Hashed {
    fn initial(&self, _: &TensorLevel, array: usize) -> Option<Expr> {
        (array == TBL).then(|| Expr::int(0))
    }

    fn adds_one(&self) -> bool {
        true
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        path.list(self, k, compressed::CRD, coordinate);
    }

    /// Makes the tables.
    fn close(&self, assembly: &AssembledArrays, k: usize, origin: &Origin) -> Option<Stmt> {
        let own = &assembly.levels[k];
        let (total, slots) = (own.level.load(TPOS, &own.parents), &own.counts[1]);
        let mut all = sized(own, origin);
        all.extend(assembly.extended(slots, &total, origin));
        all.push(set(slots, total, origin));
        all.push(filled(own, origin));
        Some(Stmt::seq(all, origin.clone()))
    }
}

/// Builds the statements that compute the first slots of all tables.
fn sized(own: &AssembledLevel, origin: &Origin) -> Vec<Stmt> {
    let level = &own.level;
    let (p, size) = (Symbol::new("p"), scalar("size"));
    let (one, two, at) = (Expr::int(1), Expr::int(2), Expr::var(&p));
    let next = at.plus(&one);
    let length = level.load(compressed::POS, &next).minus(&level.load(compressed::POS, &at)).times(&two);
    let double = set(&size, size.load([]).times(&two), origin);
    let cond = size.load([]).less(&length);
    let body = [
        set(&size, one, origin),
        Stmt::new(StmtKind::While { cond, body: double }, origin.clone()),
        store_at(&level.arrays[TPOS], &next, level.load(TPOS, &at).plus(&size.load([])), origin.clone()),
    ];
    let body = declared(Stmt::seq(body, origin.clone()), &size, origin);
    let first = store_at(&level.arrays[TPOS], &Expr::int(0), Expr::int(0), origin.clone());
    vec![first, range(&p, [Expr::int(0), own.parents.clone()], body, origin)]
}

/// Builds the loop that puts the coordinates of all lists into their tables.
fn filled(own: &AssembledLevel, origin: &Origin) -> Stmt {
    let level = &own.level;
    let [p, q] = ["p", "q"].map(Symbol::new);
    let slot = scalar("slot");
    let (one, at) = (Expr::int(1), Expr::var(&p));
    let next = at.plus(&one);
    let begin = level.load(TPOS, &at);
    let mask = level.load(TPOS, &next).minus(&begin).minus(&one);
    let masked = |e: Expr| Expr::apply(Op::BitAnd, vec![e, mask.clone()]);
    let place = begin.plus(&slot.load([]));
    let cond = level.load(TBL, &place).equals(&Expr::int(0)).negate();
    let body = [
        set(&slot, masked(hash(&level.load(compressed::CRD, &Expr::var(&q)))), origin),
        Stmt::new(StmtKind::While { cond, body: set(&slot, masked(slot.load([]).plus(&one)), origin) }, origin.clone()),
        store_at(&level.arrays[TBL], &place, Expr::var(&q).plus(&one), origin.clone()),
    ];
    let body = declared(Stmt::seq(body, origin.clone()), &slot, origin);
    let fibre = range(&q, [&at, &next].map(|at| level.load(compressed::POS, at)), body, origin);
    range(&p, [Expr::int(0), own.parents.clone()], fibre, origin)
}

fn scalar(name: &str) -> Arc<Tensor> {
    Arc::new(Tensor::dense(Symbol::new(name), DType::I64, Vec::new(), Role::Workspace))
}

fn declared(body: Stmt, tensor: &Arc<Tensor>, origin: &Origin) -> Stmt {
    Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone())
}

/// Builds the hash of a coordinate, whose lowest bits are its slot.
fn hash(index: &Expr) -> Expr {
    let high = Expr::apply(Op::Shr, vec![index.clone(), Expr::int(32)]);
    let mixed = Expr::apply(Op::BitXor, vec![index.clone(), high]).times(&Expr::int(FACTOR));
    Expr::apply(Op::Shr, vec![mixed, Expr::int(32)])
}
