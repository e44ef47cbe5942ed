//! `bitmap`: one bit per coordinate, set if the coordinate is stored. Each position of the level above has bytes of its
//! own, `(size + 7) // 8` of them; coordinate `i` is bit `i % 8` of byte `i // 8`, counted from the lowest. Its
//! position is `p * size + i`, as in `dense`: positions of coordinates that are not stored are unused.
//!
//! ```text
//!     0 1 2 3        bits   0b1010   0b0000   0b0001      coordinates 1 and 3 under position 0, none under 1,
//! 0   . a . b        positions 1, 3 and 8 of 12           0 under 2
//! 1   . . . .
//! 2   c . . .
//! ```

use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, zeros,
};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Lookup, Looplet};
use taffeta_ast::format::{Contract, Level};
use taffeta_ast::{DType, Expr, Op, Symbol};

pub(super) struct Bitmap;

const BITS: usize = 0;

/// Returns the number of bytes of a fibre.
fn bytes(size: &Expr) -> Expr {
    size.plus(&Expr::int(7)).floor_div(&Expr::int(8))
}

impl LevelFormat for Bitmap {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[ArrayKind {
            name: "bits",
            positions: false,
            dtype: Some(DType::U8),
            length: |n| n.above.times(&bytes(&n.size)),
        }]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.times(&counts.size)
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let p = &above.positions.first;
        let eight = Expr::int(8);
        let byte = level.load(BITS, &p.times(&bytes(&level.size)).plus(&index.floor_div(&eight)));
        let bit = Expr::apply(Op::Shr, vec![byte, index.modulo(&eight)]);
        let stored = Expr::apply(Op::BitAnd, vec![bit, Expr::int(1)]).equals(&Expr::int(1));
        Some(Lookup { position: p.times(&level.size).plus(index), stored: Some(stored), assumptions: Vec::new() })
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, _: &Symbol) -> Looplet {
        let Some(lookup) = self.lookup(level, above, index) else { unreachable!("every coordinate has a bit") };
        Looplet::Lookup(lookup)
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        Some(Contract::default())
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let count = entries.everywhere()?;
        let each = (entries.size + 7) / 8;
        let mut bits = zeros(*entries.count * each)?;
        for (p, c) in entries.positions.iter_mut().zip(entries.coordinates) {
            bits[(*p * each + c / 8) as usize] |= 1 << (c % 8);
            *p = *p * entries.size + c;
        }
        *entries.count = count;
        Ok(Packed { arrays: vec![bits], hidden: Vec::new() })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let each = (above.size + 7) / 8;
        let stored = |p: i64, c: i64| arrays[BITS][(p * each + c / 8) as usize] >> (c % 8) & 1 == 1;
        let fibre = |p: i64| {
            let own = (0..above.size).filter(move |c| stored(p, *c));
            own.map(move |c| Entry { above: p, coordinate: c, position: p * above.size + c })
        };
        (0..above.count).flat_map(fibre).collect()
    }
}

impl LevelAssembly for Bitmap {
    fn initial(&self, _: &TensorLevel, _: usize) -> Option<Expr> {
        Some(Expr::int(0))
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn is_computed(&self) -> bool {
        true
    }

    fn fills(&self) -> bool {
        true
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let level = &path.assembly.levels[k].level;
        let eight = Expr::int(8);
        let byte = path.position.times(&bytes(&level.size)).plus(&coordinate.floor_div(&eight));
        let bit = Expr::apply(Op::Shl, vec![Expr::int(1), coordinate.modulo(&eight)]);
        let with_bit = Expr::apply(Op::BitOr, vec![level.load(BITS, &byte), bit]);
        path.position = path.position.times(&level.size).plus(coordinate);
        path.store(k, BITS, &byte, with_bit);
    }
}
