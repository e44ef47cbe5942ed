//! `bytemap`: one byte per coordinate, set if the coordinate is stored, and a list of the stored coordinates as in
//! `compressed`. The position of coordinate `i` under position `p` is `p * size + i`, as in `dense`: positions of
//! coordinates that are not stored are unused.
//!
//! ```text
//!     0 1 2 3        pos   0   2   2     3          coordinates 1 and 3 under position 0, none under 1, 0 under 2
//! 0   . a . b        crd   1 3       0
//! 1   . . . .        map   0 1 0 1   0 0 0 0   1 0 0 0
//! 2   c . . .        positions 1, 3 and 8 of 12
//! ```

use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, accumulate, zeros,
};
use crate::level_assembly::{LevelAssembly, Path};
use crate::looplet::{Fibre, Lookup, Looplet, Positions, Stepper};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{DType, Expr, Symbol};

pub(super) struct Bytemap;

const POS: usize = 0;
const CRD: usize = 1;
const MAP: usize = 2;

impl LevelFormat for Bytemap {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[
            ArrayKind { name: "pos", positions: true, dtype: None, length: |n| n.above.plus(&Expr::int(1)) },
            ArrayKind { name: "crd", positions: false, dtype: None, length: |n| n.hidden[0].clone() },
            ArrayKind { name: "map", positions: false, dtype: Some(DType::U8), length: |n| n.above.times(&n.size) },
        ]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["n"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.above.times(&counts.size)
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let position = above.positions.first.times(&level.size).plus(index);
        let stored = Expr::int(0).less(&level.load(MAP, &position));
        Some(Lookup { position, stored: Some(stored), assumptions: Vec::new() })
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, _: &Expr, position: &Symbol) -> Looplet {
        let entry = Expr::var(position);
        let last = level.load(CRD, &entry);
        let at = above.positions.first.times(&level.size).plus(&last);
        let zero = Expr::int(0);
        let assumptions = vec![
            zero.less_eq(&entry).and(&entry.less(&level.arrays[CRD].shape[0])),
            zero.less_eq(&last).and(&last.less(&level.size)),
        ];
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
        let rules = vec![
            Rule::Partition { pos: POS, total: 0 },
            Rule::Coordinates { pos: POS, crd: CRD, ordered, unique },
            Rule::Map { pos: POS, crd: CRD, map: MAP },
        ];
        Some(Contract { counts: vec![Counted::Length(CRD)], rules, list: None })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let count = entries.everywhere()?;
        let (mut pos, mut map) = (zeros(*entries.count + 1)?, zeros(count)?);
        let mut crd = Vec::new();
        for (e, c) in entries.coordinates.iter().enumerate() {
            let above = entries.positions[e];
            let at = above * entries.size + c;
            if (entries.begins)(e) {
                pos[above as usize + 1] += 1;
                crd.push(*c);
                map[at as usize] = 1;
            }
            entries.positions[e] = at;
        }
        accumulate(&mut pos);
        *entries.count = count;
        Ok(Packed { hidden: vec![crd.len() as i64], arrays: vec![pos, crd, map] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let (pos, crd) = (&arrays[POS], &arrays[CRD]);
        let fibre = |p: i64| {
            let own = pos[p as usize] as usize..pos[p as usize + 1] as usize;
            crd[own].iter().map(move |c| Entry { above: p, coordinate: *c, position: p * above.size + c })
        };
        (0..above.count).flat_map(fibre).collect()
    }
}

impl LevelAssembly for Bytemap {
    fn initial(&self, _: &TensorLevel, array: usize) -> Option<Expr> {
        (array == MAP).then(|| Expr::int(0))
    }

    fn fills(&self) -> bool {
        true
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let position = path.position.times(&path.assembly.levels[k].level.size).plus(coordinate);
        path.list(self, k, CRD, coordinate);
        path.store(k, MAP, &position, Expr::int(1));
        path.position = position;
    }
}
