//! `squeezed`: the coordinates that occur in some fibre, listed once for all positions of the level above (the
//! diagonals of DIA). Each position above has a position for each coordinate of the list: of `k` coordinates, the one
//! at place `s` under position `p` has position `p * k + s`.
//!
//! ```text
//!     0 1 2 3        crd   2   3   5               diagonals j - i, from -2 on: 0, 1 and 3
//! 0   a b . c
//! 1   . d e .
//! 2   . . . f
//! ```

use crate::level::{ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking};
use crate::looplet::{Fibre, Looplet, Positions, Stepper};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Squeezed;

const CRD: usize = 0;

impl LevelFormat for Squeezed {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[ArrayKind { name: "crd", positions: false, dtype: None, length: |n| n.hidden[0].clone() }]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["n"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.times(&counts.hidden[0])
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, _: &Expr, position: &Symbol) -> Looplet {
        let (place, count) = (Expr::var(position), Expr::var(&level.hidden[0]));
        let last = level.load(CRD, &place);
        let zero = Expr::int(0);
        let assumptions =
            vec![zero.less_eq(&place).and(&place.less(&count)), zero.less_eq(&last).and(&last.less(&level.size))];
        let at = above.positions.first.times(&count).plus(&place);
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

    fn contract(&self, _: Level) -> Option<Contract> {
        let rules = vec![Rule::Range { array: CRD, or_size: false }, Rule::Rises { array: CRD }];
        Some(Contract { counts: vec![Counted::Length(CRD)], rules, list: None })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let mut crd = entries.coordinates.to_vec();
        crd.sort_unstable();
        crd.dedup();
        let count = crd.len() as i64;
        for (p, c) in entries.positions.iter_mut().zip(entries.coordinates) {
            *p = *p * count + crd.partition_point(|other| other < c) as i64;
        }
        *entries.count =
            entries.count.checked_mul(count).filter(|n| *n <= crate::level::MAX_POSITIONS).ok_or(Misfit::TooMany)?;
        Ok(Packed { arrays: vec![crd], hidden: vec![count] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let crd = &arrays[CRD];
        let fibre = |p: i64| {
            let own = crd.iter().zip(0..);
            own.map(move |(c, s)| Entry { above: p, coordinate: *c, position: p * crd.len() as i64 + s })
        };
        (0..above.count).flat_map(fibre).collect()
    }
}
