//! `packbits`: a list of segments of consecutive coordinates per position of the level above. A segment has one value,
//! or one for each of its coordinates. Every coordinate is in a segment, with the fill value if it is not stored.
//! `pos[p] .. pos[p + 1]` are the segments under position `p`, `end` has the end coordinate of each, exclusive, and
//! `ofs[b] .. ofs[b + 1]` are its positions: one for a run, otherwise one per coordinate. Three equal neighbours make a
//! run; shorter runs beside each other are joined to one segment.
//!
//! ```text
//!     0 1 2 3 4 5 6        pos   0            2   3    a run of a and a stretch under position 0, a run of the fill
//! 0   a a a b c . d        end   3   7        7        under 1
//! 1   . . . . . . .        ofs   0   1        5   6
//!                          val   a   b c 0 d  0
//! ```

use super::blocklist::{ARRAYS, Block};
use super::runs;
use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, zeros,
};
use crate::level_assembly::{AssembledArrays, LevelAssembly, Path, branch, is_same, iterator_of, range, set, store_at};
use crate::looplet::{Fibre, Looplet, Positions};
use std::sync::Arc;
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Origin, Stmt, StmtKind, Symbol, Tensor};

pub(super) struct PackBits;

const POS: usize = 0;
const END: usize = 1;
const OFS: usize = 2;

/// Minimum length of a run that is not joined with its neighbours: a shorter one saves less than its segment costs.
const RUN: i64 = 3;

impl LevelFormat for PackBits {
    fn arrays(&self) -> &'static [ArrayKind] {
        ARRAYS
    }

    fn hidden(&self) -> &'static [&'static str] {
        &["b", "n"]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        counts.hidden[1].clone()
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, position: &Symbol) -> Looplet {
        let Block { end, length, first, lookup } = Block::of(level, &Expr::var(position), index);
        let zero = Expr::int(0);
        let inside = zero.less_eq(&first).and(&first.less(&level.positions));
        let promise = zero.less(&end).and(&end.less_eq(&level.size)).and(&inside);
        let body = Looplet::Switch {
            cond: length.equals(&Expr::int(1)),
            then: Box::new(Looplet::Run(Fibre::At(Positions::one(first)))),
            otherwise: Box::new(Looplet::Lookup(lookup)),
        };
        Looplet::Stepper(Block::all(level, above, position, &end, promise, body))
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        let rules = vec![
            Rule::Partition { pos: POS, total: 0 },
            Rule::Partition { pos: OFS, total: 1 },
            Rule::Segments { pos: POS, end: END, ofs: Some(OFS), full: true },
        ];
        Some(Contract { counts: vec![Counted::Length(END), Counted::Last(OFS)], rules, list: None })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let mut pos = zeros(*entries.count + 1)?;
        let (mut end, mut ofs) = (Vec::new(), vec![0i64]);
        let mut count = 0;
        for (p, elements) in entries.fibres().into_iter().enumerate() {
            // Short runs join the segment beside them.
            for segment in runs::of(entries, elements).chunk_by(|a, b| a.length().max(b.length()) < RUN) {
                let (first, last) = (&segment[0], &segment[segment.len() - 1]);
                let is_run = segment.len() == 1;
                for e in first.elements.start..last.elements.end {
                    let own = entries.coordinates[e] - first.begin;
                    entries.positions[e] = if is_run { count } else { count + own };
                }
                count += if is_run { 1 } else { last.end - first.begin };
                end.push(last.end);
                ofs.push(count);
            }
            pos[p + 1] = end.len() as i64;
        }
        *entries.count = count;
        Ok(Packed { hidden: vec![end.len() as i64, count], arrays: vec![pos, end, ofs] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let (pos, end, ofs) = (&arrays[POS], &arrays[END], &arrays[OFS]);
        let mut entries = Vec::new();
        for p in 0..above.count {
            let mut next = 0;
            for b in pos[p as usize] as usize..pos[p as usize + 1] as usize {
                let is_run = ofs[b + 1] - ofs[b] == 1;
                let position = |c: i64| if is_run { ofs[b] } else { ofs[b] + c - next };
                entries.extend((next..end[b]).map(|c| Entry { above: p, coordinate: c, position: position(c) }));
                next = end[b];
            }
        }
        entries
    }
}

/// End coordinates of the runs of the fibre that is being added, behind a 0; the numbers of runs is the count [`RUNS`].
const RUN_ENDS: usize = 0;
/// Values of the runs.
const RUN_VALUES: usize = 1;
const RUNS: usize = 2;

/// Adds runs, and at the end of a fibre makes segments of them.
impl LevelAssembly for PackBits {
    fn extra_counts(&self) -> &'static [&'static str] {
        &["runs"]
    }

    fn extras(&self) -> &'static [ArrayKind] {
        &[ArrayKind {
            name: "run_end",
            positions: false,
            dtype: Some(DType::I64),
            length: |n| n.hidden[RUNS].plus(&Expr::int(1)),
        }]
    }

    fn extra_values(&self) -> Option<fn(&Counts) -> Expr> {
        Some(|n| n.hidden[RUNS].clone())
    }

    fn initial(&self, _: &TensorLevel, array: usize) -> Option<Expr> {
        (array == OFS || array == ARRAYS.len() + RUN_ENDS).then(|| Expr::int(0))
    }

    fn largest(&self, coordinate: &Expr) -> Option<Expr> {
        Some(coordinate.plus(&Expr::int(1)))
    }

    fn stores_size(&self) -> bool {
        true
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        path.open(self, k);
        let (assembly, origin, value) = (path.assembly, path.origin.clone(), path.value());
        path.all.push(filled(assembly, k, coordinate, &origin));
        path.all.push(added(assembly, k, &value, &coordinate.plus(&Expr::int(1)), &origin));
    }

    fn finish(&self, assembly: &AssembledArrays, k: usize, _: &Expr, origin: &Origin) -> Option<Stmt> {
        Some(segments(assembly, k, origin))
    }
}

/// Adds a run of the fill up to an end coordinate, unless the runs reach it.
fn filled(assembly: &AssembledArrays, k: usize, end: &Expr, origin: &Origin) -> Stmt {
    let own = &assembly.levels[k];
    let reached = own.extras[RUN_ENDS].load([own.counts[RUNS].load([])]);
    branch(reached.less(end), vec![added(assembly, k, &assembly.fill, end, origin)], Vec::new(), origin)
}

/// Adds a run: extends the last one if it has the same value.
fn added(assembly: &AssembledArrays, k: usize, value: &Expr, end: &Expr, origin: &Origin) -> Stmt {
    let own = &assembly.levels[k];
    let (runs, one) = (&own.counts[RUNS], Expr::int(1));
    let (ends, values, n) = (&own.extras[RUN_ENDS], &own.extras[RUN_VALUES], runs.load([]));
    let reach = |at: &Expr| store_at(ends, at, end.clone(), origin.clone());
    let mut append = assembly.extended(runs, &one, origin);
    append.push(reach(&n.plus(&one)));
    append.push(store_at(values, &n, value.clone(), origin.clone()));
    append.push(set(runs, n.plus(&one), origin));
    let same = Expr::int(0).less(&n).and(&is_same(&values.load([n.minus(&one)]), value));
    branch(same, vec![reach(&n)], append, origin)
}

/// Completes a fibre: makes segments of its runs, and removes these.
fn segments(assembly: &AssembledArrays, k: usize, origin: &Origin) -> Stmt {
    let own = &assembly.levels[k];
    let [blocks, count, runs] = [&own.counts[0], &own.counts[1], &own.counts[RUNS]];
    let (ends, values) = (&own.extras[RUN_ENDS], &own.extras[RUN_VALUES]);
    let scalar = |what: &str| {
        let symbol = iterator_of(&ends.symbol, what);
        Arc::new(Tensor::dense(symbol, DType::I64, Vec::new(), Role::Workspace))
    };
    let (from, to) = (scalar("from"), scalar("to"));
    let [q, c] = ["q", "c"].map(|what| iterator_of(&ends.symbol, what));
    let (one, run) = (Expr::int(1), Expr::int(RUN));
    let after = |e: &Expr| e.plus(&one);
    let is_short = |q: &Expr| ends.load([after(q)]).minus(&ends.load([q.clone()])).less(&run);
    let repeat = |cond: Expr, body: Stmt| Stmt::new(StmtKind::While { cond, body }, origin.clone());
    let append = |q: &Expr| {
        let mut all = assembly.extended(count, &one, origin);
        all.push(store_at(&assembly.values, &count.load([]), values.load([q.clone()]), origin.clone()));
        all.push(set(count, after(&count.load([])), origin));
        all
    };
    let (k0, k1, q1) = (from.load([]), to.load([]), Expr::var(&q));
    let joins = k1.less(&runs.load([])).and(&is_short(&k1.minus(&one))).and(&is_short(&k1));
    let each =
        range(&c, [ends.load([q1.clone()]), ends.load([after(&q1)])], Stmt::seq(append(&q1), origin.clone()), origin);
    let all = range(&q, [k0.clone(), k1.clone()], each, origin);
    let mut body = vec![
        set(&to, after(&k0), origin),
        repeat(joins, set(&to, after(&k1), origin)),
        branch(k1.equals(&after(&k0)), append(&k0), vec![all], origin),
    ];
    body.extend(assembly.extended(blocks, &one, origin));
    let b = blocks.load([]);
    body.push(store_at(&own.level.arrays[END], &b, ends.load([k1.clone()]), origin.clone()));
    body.push(store_at(&own.level.arrays[OFS], &after(&b), count.load([]), origin.clone()));
    body.push(set(blocks, after(&b), origin));
    body.push(set(&from, k1, origin));
    let all = [
        filled(assembly, k, &own.level.size, origin),
        set(&from, Expr::int(0), origin),
        repeat(k0.less(&runs.load([])), Stmt::seq(body, origin.clone())),
        set(runs, Expr::int(0), origin),
    ];
    let declared =
        |body, tensor: &Arc<Tensor>| Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone());
    [&from, &to].into_iter().fold(Stmt::seq(all, origin.clone()), declared)
}
