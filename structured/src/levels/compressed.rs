//! `compressed`: a list of the stored coordinates per position of the level above (the columns of CSR). `pos[p] ..
//! pos[p + 1]` are the positions under `p`, and `crd` has their coordinates.
//!
//! ```text
//!     0 1 2 3        pos   0   2   2     3          coordinates 1 and 3 under position 0, none under 1, 0 under 2
//! 0   . a . b        crd   1 3       0
//! 1   . . . .
//! 2   c . . .
//! ```

use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, accumulate, zeros,
};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Fibre, Looplet, Positions, Stepper};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Compressed;

pub(crate) const POS: usize = 0;
pub(crate) const CRD: usize = 1;

impl LevelFormat for Compressed {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[
            ArrayKind { name: "pos", positions: true, dtype: None, length: |n| n.above.plus(&Expr::int(1)) },
            ArrayKind { name: "crd", positions: false, dtype: None, length: |n| n.hidden[0].clone() },
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
        let last = level.load(CRD, &at);
        let zero = Expr::int(0);
        let assumptions =
            vec![zero.less_eq(&at).and(&at.less(&level.positions)), zero.less_eq(&last).and(&last.less(&level.size))];
        Looplet::Stepper(Stepper {
            position: position.clone(),
            begin: level.load(POS, &above.positions.first),
            end: level.load(POS, &above.positions.end),
            last,
            body: Box::new(Looplet::Spike(Fibre::At(Positions::one(at)))),
            assumptions,
            full: false,
            unique: level.level.unique,
            ordered: level.level.ordered,
        })
    }

    fn contract(&self, level: Level) -> Option<Contract> {
        let (ordered, unique) = (level.ordered, level.unique);
        let rules =
            vec![Rule::Partition { pos: POS, total: 0 }, Rule::Coordinates { pos: POS, crd: CRD, ordered, unique }];
        Some(Contract { counts: vec![Counted::Length(CRD)], rules, list: Some((Some(POS), CRD)) })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let mut pos = zeros(*entries.count + 1)?;
        let mut crd: Vec<i64> = Vec::new();
        for (e, c) in entries.coordinates.iter().enumerate() {
            if (entries.begins)(e) {
                pos[entries.positions[e] as usize + 1] += 1;
                crd.push(*c);
            }
            entries.positions[e] = crd.len() as i64 - 1;
        }
        accumulate(&mut pos);
        *entries.count = crd.len() as i64;
        Ok(Packed { hidden: vec![crd.len() as i64], arrays: vec![pos, crd] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let (pos, crd) = (&arrays[POS], &arrays[CRD]);
        let fibre = |p: i64| {
            let own = pos[p as usize]..pos[p as usize + 1];
            own.map(move |q| Entry { above: p, coordinate: crd[q as usize], position: q })
        };
        (0..above.count).flat_map(fibre).collect()
    }
}

impl LevelAssembly for Compressed {
    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        path.list(self, k, CRD, coordinate);
    }
}
