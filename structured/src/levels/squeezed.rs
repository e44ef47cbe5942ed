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
use crate::level_assembly::{AssembledArrays, LevelAssembly, Path, branch, iterator_of, range, set, store_at};
use crate::looplet::{Fibre, Looplet, Positions, Stepper};
use std::sync::Arc;
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Origin, Stmt, StmtKind, Symbol, Tensor};

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
        let (place, count) = (Expr::var(position), level.counts[0].clone());
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

/// Place of a coordinate in the list; at first, whether it is there.
const RANK: usize = 0;

impl LevelAssembly for Squeezed {
    fn extras(&self) -> &'static [ArrayKind] {
        &[ArrayKind { name: "rank", positions: false, dtype: Some(DType::I64), length: |n| n.size.clone() }]
    }

    fn initial(&self, _: &TensorLevel, array: usize) -> Option<Expr> {
        (array == 1 + RANK).then(|| Expr::int(0))
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn fills(&self) -> bool {
        true
    }

    fn has_query(&self) -> bool {
        true
    }

    fn query(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let there = store_at(&path.assembly.levels[k].extras[RANK], coordinate, Expr::int(1), path.origin.clone());
        path.all.push(there);
    }

    fn decide(&self, assembly: &AssembledArrays, k: usize, origin: &Origin) -> Option<Stmt> {
        let own = &assembly.levels[k];
        let (count, rank, crd) = (&own.counts[0], &own.extras[RANK], &own.level.arrays[CRD]);
        let one = Expr::int(1);
        let over = |then: &dyn Fn(&Expr) -> Vec<Stmt>| {
            let c = iterator_of(&rank.symbol, "c");
            let at = Expr::var(&c);
            let there = Expr::int(0).less(&rank.load([at.clone()]));
            let body = branch(there, then(&at), Vec::new(), origin);
            range(&c, [Expr::int(0), rank.shape[0].clone()], body, origin)
        };
        let more = || set(count, count.load([]).plus(&one), origin);
        let listed = |at: &Expr| {
            let crd = store_at(crd, &count.load([]), at.clone(), origin.clone());
            vec![crd, store_at(rank, at, count.load([]), origin.clone()), more()]
        };
        // The room is made for all at once.
        let total =
            Arc::new(Tensor::dense(Symbol::new(format!("squeezed{k}.total")), DType::I64, Vec::new(), Role::Workspace));
        let all = [set(&total, Expr::int(0), origin), over(&|_| vec![set(&total, total.load([]).plus(&one), origin)])]
            .into_iter()
            .chain(assembly.extended(count, &total.load([]), origin))
            .chain([over(&listed)]);
        let body = Stmt::seq(all, origin.clone());
        Some(Stmt::new(StmtKind::VarDef { tensor: total.clone(), body }, origin.clone()))
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let own = &path.assembly.levels[k];
        let rank = own.extras[RANK].load([coordinate.clone()]);
        path.position = path.position.times(&own.counts[0].load([])).plus(&rank);
    }
}
