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
use crate::level_assembly::{AssembledArrays, LevelAssembly, Path, assume, counted, iterator_of, range, set, store_at};
use crate::looplet::{Fibre, Looplet, Positions, Stepper};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Origin, Stmt, Symbol};

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
    fn adds_one(&self) -> bool {
        true
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        path.list(self, k, CRD, coordinate);
    }
}

/// Assembly in two passes, for elements that come fibre by fibre in no order: the first pass counts the elements of
/// each fibre, the second one stores each at the next position of its fibre.
///
/// ```text
/// pos[p + 1] += 1                   in the first pass
/// pos[p + 1] += pos[p]              for all p, behind it: the end of each fibre
/// q = pos[p]; crd[q] = j            in the second pass; pos[p] moves from the begin of the fibre to its end,
/// pos[p] = q + 1                    which is the begin of the next one
/// ```
pub(super) struct Scattered;

/// Counts beside the number of positions: number of elements in the first pass, and the next position in the second.
const TOTAL: usize = 1;
const NEXT: usize = 2;

impl LevelAssembly for Scattered {
    fn extra_counts(&self) -> &'static [&'static str] {
        &["total", "next"]
    }

    fn initial(&self, _: &TensorLevel, array: usize) -> Option<Expr> {
        (array == POS).then(|| Expr::int(0))
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn opens(&self) -> bool {
        false
    }

    fn has_query(&self) -> bool {
        true
    }

    fn query(&self, path: &mut Path<'_>, k: usize, _: &Expr) {
        let own = &path.assembly.levels[k];
        let (total, pos, one) = (&own.counts[TOTAL], &own.level.arrays[POS], Expr::int(1));
        let at = path.position.plus(&one);
        let more = own.level.load(POS, &at).plus(&one);
        path.all.push(set(total, total.load([]).plus(&one), &path.origin));
        path.all.push(store_at(pos, &at, more, path.origin.clone()));
    }

    /// Numbers positions from the end of one fibre to the end of the next one.
    fn decide(&self, assembly: &AssembledArrays, k: usize, origin: &Origin) -> Option<Stmt> {
        let own = &assembly.levels[k];
        let (pos, total) = (&own.level.arrays[POS], own.counts[TOTAL].load([]));
        let tensor = Symbol::new(pos.symbol.name().rsplit_once('.').map_or("", |(tensor, _)| tensor));
        let r = iterator_of(&pos.symbol, "r");
        let (at, next) = (Expr::var(&r), Expr::var(&r).plus(&Expr::int(1)));
        let sum = own.level.load(POS, &next).plus(&own.level.load(POS, &at));
        let sums = range(&r, [Expr::int(0), own.parents.clone()], store_at(pos, &next, sum, origin.clone()), origin);
        let all = counted(&tensor, &total, pos.dtype, origin)
            .into_iter()
            .chain([sums])
            .chain(assembly.extended(&own.counts[0], &total, origin))
            .chain([set(&own.counts[0], total.clone(), origin)]);
        Some(Stmt::seq(all, origin.clone()))
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let own = &path.assembly.levels[k];
        let (next, parent, pos) = (&own.counts[NEXT], path.position.clone(), &own.level.arrays[POS]);
        let at = next.load([]);
        path.all.push(set(next, own.level.load(POS, &parent).cast(taffeta_ast::DType::I64), &path.origin));
        path.all.push(assume(Expr::int(0).less_eq(&at).and(&at.less(&own.counts[0].load([]))), &path.origin));
        path.last.push(store_at(pos, &parent, at.plus(&Expr::int(1)), path.origin.clone()));
        path.store(k, CRD, &at, coordinate.clone());
        path.position = at;
    }

    /// Moves the ends of fibres to the begins of the next ones.
    fn close(&self, assembly: &AssembledArrays, k: usize, origin: &Origin) -> Option<Stmt> {
        let own = &assembly.levels[k];
        let (pos, parents) = (&own.level.arrays[POS], &own.parents);
        let r = iterator_of(&pos.symbol, "r");
        let to = parents.minus(&Expr::var(&r));
        let previous = own.level.load(POS, &to.minus(&Expr::int(1)));
        let moved = range(&r, [Expr::int(0), parents.clone()], store_at(pos, &to, previous, origin.clone()), origin);
        let first = store_at(pos, &Expr::int(0), Expr::int(0), origin.clone());
        Some(Stmt::seq([moved, first], origin.clone()))
    }
}
