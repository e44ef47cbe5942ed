//! `runlength`: a list of runs of equal elements per position of the level above. Every coordinate is in a run, in one
//! of the fill value if it is not stored. `pos[p] .. pos[p + 1]` are the runs under position `p`, and `end` has the end
//! coordinate of each, exclusive. Equal neighbours are in one run: a NaN is equal to a NaN, and 0 is not equal to -0.
//!
//! ```text
//!     0 1 2 3 4 5        pos   0       3   4       7      runs a, b and 0 under position 0, one of the fill under 1
//! 0   a a a b . .        end   3 4 6   6   1 4 6
//! 1   . . . . . .        val   a b 0   0   c d c
//! 2   c d d d c c
//! ```

use super::runs;
use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, zeros,
};
use crate::looplet::{Fibre, Looplet, Positions, Stepper};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Symbol};

pub(super) struct RunLength;

const POS: usize = 0;
const END: usize = 1;

impl LevelFormat for RunLength {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[
            ArrayKind { name: "pos", positions: true, dtype: None, length: |n| n.above.plus(&Expr::int(1)) },
            ArrayKind { name: "end", positions: false, dtype: None, length: |n| n.hidden[0].clone() },
        ]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["n"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.hidden[0].clone()
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, _: &Expr, position: &Symbol) -> Looplet {
        let at = Expr::var(position);
        let end = level.load(END, &at);
        let zero = Expr::int(0);
        Looplet::Stepper(Stepper {
            position: position.clone(),
            begin: level.load(POS, &above.positions.first),
            end: level.load(POS, &above.positions.end),
            last: end.minus(&Expr::int(1)),
            assumptions: vec![
                zero.less_eq(&at).and(&at.less(&level.positions)),
                zero.less(&end).and(&end.less_eq(&level.size)),
            ],
            body: Box::new(Looplet::Run(Fibre::At(Positions::one(at)))),
            full: true,
            unique: level.level.unique,
            ordered: level.level.ordered,
        })
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        let rules =
            vec![Rule::Partition { pos: POS, total: 0 }, Rule::Segments { pos: POS, end: END, ofs: None, full: true }];
        Some(Contract { counts: vec![Counted::Length(END)], rules, list: None })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let mut pos = zeros(*entries.count + 1)?;
        let mut end = Vec::new();
        for (p, elements) in entries.fibres().into_iter().enumerate() {
            for run in runs::of(entries, elements) {
                entries.positions[run.elements].fill(end.len() as i64);
                end.push(run.end);
            }
            pos[p + 1] = end.len() as i64;
        }
        *entries.count = end.len() as i64;
        Ok(Packed { hidden: vec![end.len() as i64], arrays: vec![pos, end] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let (pos, end) = (&arrays[POS], &arrays[END]);
        let mut entries = Vec::new();
        for p in 0..above.count {
            let mut next = 0;
            for position in pos[p as usize]..pos[p as usize + 1] {
                let after = end[position as usize];
                entries.extend((next..after).map(|coordinate| Entry { above: p, coordinate, position }));
                next = after;
            }
        }
        entries
    }
}
