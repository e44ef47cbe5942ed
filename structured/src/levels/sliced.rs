//! `sliced`: slots, numbered from 0, for each position of the level above as many as its fullest fibre has elements:
//! the slots of ELL, equally many for each row, and of SELL, equally many for each row of a slice. Slots `pos[p]` to
//! `pos[p + 1]` belong to position `p`. Below are levels with computed positions, and `singleton` with the coordinates,
//! sorted in each fibre. Padding slots have the dimension's size as their coordinate.
//!
//! ```text
//!     0 1 2 3        pos     0           2
//! 0   . a . b        slots   0       1                 row by row in slot 0, then row by row in slot 1
//! 1   . . . .        rows    0 1 2   0 1 2
//! 2   c . . .        crd     1 4 0   3 4 4             `singleton`: 4 where there is none
//! ```
//!
//! Traversal does not go slot by slot: a loop over the coordinates of a row steps from one of its slots to the next
//! ([`Slots`], the last level, which replaces `sliced` and the last one).

use super::blocks;
use crate::level::{
    ArrayKind, Counts, Entry, FibreSlots, LevelFormat, MAX_POSITIONS, Misfit, Packed, Packing, Parent, TensorLevel,
    Unpacking, accumulate, zeros,
};
use crate::level_assembly::{AssembledArrays, LevelAssembly, Path, assume, iterator_of, range, set, store_at};
use crate::looplet::{Fibre, Looplet, Positions, Stepper};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{DType, Expr, ExprKind, Op, Origin, Stmt, Symbol};

pub(super) struct Sliced;

/// First slots, and the end of the last ones.
const POS: usize = 0;

impl LevelFormat for Sliced {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[ArrayKind { name: "pos", positions: true, dtype: None, length: |n| n.above.plus(&Expr::int(1)) }]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["n"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.hidden[0].clone()
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, position: &Symbol) -> Looplet {
        Slots.fibre(level, above, index, position)
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        let rules = vec![Rule::Partition { pos: POS, total: 0 }];
        Some(Contract { counts: vec![Counted::Last(POS)], rules, list: None })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let mut pos = zeros(*entries.count + 1)?;
        for (p, c) in entries.positions.iter().zip(entries.coordinates) {
            let slots = &mut pos[*p as usize + 1];
            *slots = (c + 1).max(*slots);
        }
        let count = pos.iter().try_fold(0i64, |sum, n| sum.checked_add(*n).filter(|sum| *sum <= MAX_POSITIONS));
        if count.is_none() {
            return Err(Misfit::TooMany);
        }
        accumulate(&mut pos);
        for (p, c) in entries.positions.iter_mut().zip(entries.coordinates) {
            *p = pos[*p as usize] + c;
        }
        *entries.count = pos[pos.len() - 1];
        Ok(Packed { arrays: vec![pos], hidden: vec![*entries.count] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        (0..above.count).flat_map(|p| blocks::unpack(&arrays[POS], p, 0)).collect()
    }
}

/// Level of a traversal that steps through the slots of one fibre; it stands for `sliced` and the `singleton` below.
pub(crate) struct Slots;

const CRD: usize = 0;

/// Splits the position of a fibre into the position above `sliced` and the number of the fibre below that.
fn split(fibre: &Expr, within: &[Expr]) -> (Expr, Expr) {
    let (mut above, mut number, mut factor) = (fibre.clone(), Expr::int(0), Expr::int(1));
    for size in within.iter().rev() {
        let (quotient, rest) = match known_split(&above, size) {
            Some(both) => both,
            None => {
                let by = |op| Expr::apply(op, vec![above.clone(), size.clone()]);
                (by(Op::FloorDiv), by(Op::Mod))
            }
        };
        number = rest.times(&factor).plus(&number);
        factor = factor.times(size);
        above = quotient;
    }
    (above, number)
}

/// Returns `a` and `b` of a position `a * size + b` below a dense level, where that is how it reads.
fn known_split(position: &Expr, size: &Expr) -> Option<(Expr, Expr)> {
    let ExprKind::Apply(Op::Add, sum) = position.kind() else { return None };
    let [product, rest] = &sum[..] else { return None };
    let ExprKind::Apply(Op::Mul, factors) = product.kind() else { return None };
    let [above, by] = &factors[..] else { return None };
    (by == size).then(|| (above.clone(), rest.clone()))
}

impl LevelFormat for Slots {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.clone()
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, _: &Expr, position: &Symbol) -> Looplet {
        let Some(FibreSlots { within, first }) = &level.slots else { unreachable!("a sliced level has fibres") };
        let (slot, fibre, zero) = (Expr::var(position), &above.positions.first, Expr::int(0));
        let fibres = within.iter().fold(Expr::int(1), |n, size| n.times(size));
        let mut assumptions = Vec::new();
        let (count, at) = match first {
            None => (level.counts[0].clone(), slot.times(&fibres).plus(fibre)),
            Some(first) => {
                let (p, fibre) = split(fibre, within);
                let next = p.plus(&Expr::int(1));
                let [begin, end] = [&p, &next].map(|p| first.load([p.clone()]).cast(DType::I64));
                assumptions.push(zero.less_eq(&p).and(&next.less(&first.shape[0])));
                (end.minus(&begin), begin.plus(&slot).times(&fibres).plus(&fibre))
            }
        };
        let last = level.load(CRD, &at);
        assumptions.extend([
            zero.less_eq(&slot).and(&slot.less(&count)),
            zero.less_eq(&at).and(&at.less(&level.positions)),
            zero.less_eq(&last).and(&last.less_eq(&level.size)),
        ]);
        Looplet::Stepper(Stepper {
            position: position.clone(),
            begin: zero,
            end: count,
            last,
            body: Box::new(Looplet::Spike(Fibre::At(Positions::one(at)))),
            assumptions,
            full: false,
            unique: true,
            ordered: true,
        })
    }

    /// Returns the contract of the `singleton` level that has these coordinates.
    fn contract(&self, _: Level) -> Option<Contract> {
        let rules = vec![Rule::Range { array: CRD, or_size: true }, Rule::Slots { crd: CRD }];
        Some(Contract { rules, ..Contract::default() })
    }

    fn pack(&self, _: &mut Packing<'_>) -> Result<Packed, Misfit> {
        unreachable!("the levels below a sliced level are packed")
    }

    fn unpack(&self, _: &[Vec<i64>], _: &Unpacking<'_>) -> Vec<Entry> {
        unreachable!("the levels below a sliced level are unpacked")
    }
}

impl LevelAssembly for Sliced {
    /// Returns 0: at first, the number of slots of each position above stands where they end.
    fn initial(&self, _: &TensorLevel, _: usize) -> Option<Expr> {
        Some(Expr::int(0))
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn opens(&self) -> bool {
        false
    }

    fn fills(&self) -> bool {
        true
    }

    fn has_query(&self) -> bool {
        true
    }

    fn query(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let level = &path.assembly.levels[k].level;
        let one = Expr::int(1);
        let (end, slots) = (path.position.plus(&one), coordinate.plus(&one));
        path.all.push(assume(Expr::int(0).less(&end).and(&end.less(&level.arrays[POS].shape[0])), &path.origin));
        let more = store_at(&level.arrays[POS], &end, slots.clone(), path.origin.clone());
        path.branch(level.load(POS, &end).less(&slots), vec![more], Vec::new());
    }

    fn decide(&self, assembly: &AssembledArrays, k: usize, origin: &Origin) -> Option<Stmt> {
        let own = &assembly.levels[k];
        let pos = &own.level.arrays[POS];
        let p = iterator_of(&pos.symbol, "p");
        let next = Expr::var(&p).plus(&Expr::int(1));
        let inside = Expr::int(0).less(&next).and(&next.less(&pos.shape[0]));
        let sum = own.level.load(POS, &Expr::var(&p)).plus(&own.level.load(POS, &next));
        let body = [assume(inside, origin), store_at(pos, &next, sum, origin.clone())];
        let scan = range(&p, [Expr::int(0), own.parents.clone()], Stmt::seq(body, origin.clone()), origin);
        let total = own.level.load(POS, &own.parents);
        let all = assembly.extended(&own.counts[0], &total, origin);
        let all = std::iter::once(scan).chain(all).chain([set(&own.counts[0], total, origin)]);
        Some(Stmt::seq(all, origin.clone()))
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        path.position = path.assembly.levels[k].level.load(POS, &path.position).plus(coordinate);
    }
}
