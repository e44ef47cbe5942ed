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
use crate::level_assembly::{AssembledArrays, LevelAssembly, Path, branch, is_same, set, store_at};
use crate::looplet::{Fibre, Looplet, Positions, Stepper};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Origin, Stmt, Symbol};

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

impl LevelAssembly for RunLength {
    fn largest(&self, coordinate: &Expr) -> Option<Expr> {
        Some(coordinate.plus(&Expr::int(1)))
    }

    fn stores_size(&self) -> bool {
        true
    }

    fn joins(&self) -> bool {
        true
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        path.open(self, k);
        let (parent, origin) = (path.position.clone(), path.origin.clone());
        path.all.push(filled(path.assembly, k, &parent, coordinate, &origin));
        let (value, end) = (path.value(), path.run_end.clone().unwrap_or(coordinate.plus(&Expr::int(1))));
        path.all.push(added(path.assembly, k, &parent, &value, &end, &origin));
    }

    fn finish(&self, assembly: &AssembledArrays, k: usize, parent: &Expr, origin: &Origin) -> Option<Stmt> {
        Some(filled(assembly, k, parent, &assembly.levels[k].level.size, origin))
    }
}

/// Adds a run of the fill up to an end coordinate, unless the runs of the fibre reach it.
fn filled(assembly: &AssembledArrays, k: usize, parent: &Expr, end: &Expr, origin: &Origin) -> Stmt {
    let own = &assembly.levels[k];
    let count = own.counts[0].load([]);
    let is_short = |reached: &Expr| {
        branch(reached.less(end), vec![added(assembly, k, parent, &assembly.fill, end, origin)], Vec::new(), origin)
    };
    let reached = own.level.load(END, &count.minus(&Expr::int(1)));
    let begun = own.level.load(POS, parent).less(&count);
    branch(begun, vec![is_short(&reached)], vec![is_short(&Expr::int(0))], origin)
}

/// Adds a run to the fibre of a parent: extends the last one if it has the same value.
fn added(assembly: &AssembledArrays, k: usize, parent: &Expr, value: &Expr, end: &Expr, origin: &Origin) -> Stmt {
    let own = &assembly.levels[k];
    let (count, one) = (&own.counts[0], Expr::int(1));
    let n = count.load([]);
    let last = n.minus(&one);
    let ends = |at: &Expr| store_at(&own.level.arrays[END], at, end.clone(), origin.clone());
    let begun = own.level.load(POS, parent).less(&n);
    let mut append = assembly.extended(count, &one, origin);
    append.push(ends(&n));
    append.push(store_at(&assembly.values, &n, value.clone(), origin.clone()));
    append.push(set(count, n.plus(&one), origin));
    let same = is_same(&assembly.values.load([last.clone()]), value);
    branch(begun.and(&same), vec![ends(&last)], append, origin)
}
