//! `sliced`: slots, numbered from 0, as many as the fullest fibre has elements (the slots of ELL, which are equally
//! many for each row). It is the outermost level; below it are levels with computed positions, and `singleton` with the
//! coordinates, sorted in each fibre. Padding slots have the dimension's size as their coordinate.
//!
//! ```text
//!     0 1 2 3        count   2
//! 0   . a . b        slots   0       1                 row by row in slot 0, then row by row in slot 1
//! 1   . . . .        rows    0 1 2   0 1 2
//! 2   c . . .        crd     1 4 0   3 4 4             `singleton`: 4 where there is none
//! ```
//!
//! Traversal does not go slot by slot: a loop over the coordinates of a row steps from one of its slots to the next
//! ([`Slots`], the last level, which replaces the outermost and the last one).

use crate::level::{ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking};
use crate::level_assembly::{AssembledArrays, LevelAssembly, Path, set, store_at};
use crate::looplet::{Fibre, Looplet, Positions, Stepper};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Origin, Stmt, Symbol};

pub(super) struct Sliced;

impl LevelFormat for Sliced {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[ArrayKind { name: "count", positions: false, dtype: None, length: |_| Expr::int(1) }]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["n"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.times(&counts.hidden[0])
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, position: &Symbol) -> Looplet {
        Slots.fibre(level, above, index, position)
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        Some(Contract { counts: vec![Counted::Last(0)], ..Contract::default() })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let count = entries.everywhere()?;
        for (p, c) in entries.positions.iter_mut().zip(entries.coordinates) {
            *p = *p * entries.size + c;
        }
        *entries.count = count;
        Ok(Packed { arrays: vec![vec![entries.size]], hidden: vec![entries.size] })
    }

    fn unpack(&self, _: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let fibre =
            |p: i64| (0..above.size).map(move |c| Entry { above: p, coordinate: c, position: p * above.size + c });
        (0..above.count).flat_map(fibre).collect()
    }
}

/// Level of a traversal that steps through the slots of one fibre; it stands for `sliced` and the `singleton` below.
pub(crate) struct Slots;

const CRD: usize = 0;

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
        let (slot, count) = (Expr::var(position), level.counts[0].clone());
        let fibres = level.slots.clone().unwrap_or_else(|| unreachable!("a sliced level has a number of fibres"));
        let at = slot.times(&fibres).plus(&above.positions.first);
        let (last, zero) = (level.load(CRD, &at), Expr::int(0));
        let assumptions = vec![
            zero.less_eq(&slot).and(&slot.less(&count)),
            zero.less_eq(&at).and(&at.less(&level.positions)),
            zero.less_eq(&last).and(&last.less_eq(&level.size)),
        ];
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

/// Number of slots.
const COUNT: usize = 0;

impl LevelAssembly for Sliced {
    fn initial(&self, _: &TensorLevel, _: usize) -> Option<Expr> {
        Some(Expr::int(0))
    }

    fn fills(&self) -> bool {
        true
    }

    fn has_query(&self) -> bool {
        true
    }

    fn query(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let level = &path.assembly.levels[k].level;
        let (zero, after) = (Expr::int(0), coordinate.plus(&Expr::int(1)));
        let more = store_at(&level.arrays[COUNT], &zero, after.clone(), path.origin.clone());
        path.branch(level.load(COUNT, &zero).less(&after), vec![more], Vec::new());
    }

    fn decide(&self, assembly: &AssembledArrays, k: usize, origin: &Origin) -> Option<Stmt> {
        let own = &assembly.levels[k];
        let most = own.level.load(COUNT, &Expr::int(0));
        let all = assembly.extended(&own.counts[0], &most, origin);
        Some(Stmt::seq(all.into_iter().chain([set(&own.counts[0], most, origin)]), origin.clone()))
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let count = path.assembly.levels[k].counts[0].load([]);
        path.position = path.position.times(&count).plus(coordinate);
    }
}
