//! `blocklist`: a list of blocks of consecutive coordinates per position of the level above (variable block lengths,
//! VBL). `pos[p] .. pos[p + 1]` are the blocks under position `p`, `end` has the end coordinate of each, exclusive, and
//! `ofs[b] .. ofs[b + 1]` are the positions of block `b`.
//!
//! ```text
//!     0 1 2 3 4 5        pos   0        2   2      3      coordinates 1, 2 and 4 under position 0, 0 and 1 under 2
//! 0   . a b . c .        end   3    5       2
//! 1   . . . . . .        ofs   0    2   3          5
//! 2   d e . . . .
//! ```

use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, accumulate, zeros,
};
use crate::level_assembly::{LevelAssembly, Path, branch, set, store_at};
use crate::looplet::{Fibre, Lookup, Looplet, Phase, Stepper};
use taffeta_ast::format::{Contract, Counted, Level, Rule};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Blocklist;

const POS: usize = 0;
const END: usize = 1;
const OFS: usize = 2;

/// Arrays of levels that are lists of blocks.
pub(super) const ARRAYS: &[ArrayKind] = &[
    ArrayKind { name: "pos", positions: true, dtype: None, length: |n| n.above.plus(&Expr::int(1)) },
    ArrayKind { name: "end", positions: false, dtype: None, length: |n| n.hidden[0].clone() },
    ArrayKind { name: "ofs", positions: true, dtype: None, length: |n| n.hidden[0].plus(&Expr::int(1)) },
];

/// Block: end coordinate (exclusive), number of positions, and the positions of its coordinates.
pub(super) struct Block {
    pub(super) end: Expr,
    pub(super) length: Expr,
    /// Position of its first coordinate.
    pub(super) first: Expr,
    pub(super) lookup: Lookup,
}

impl Block {
    pub(super) fn of(level: &TensorLevel, block: &Expr, index: &Expr) -> Block {
        let end = level.load(END, block);
        let (first, after) = (level.load(OFS, block), level.load(OFS, &block.plus(&Expr::int(1))));
        let position = after.minus(&end).plus(index);
        let assumptions = vec![Expr::int(0).less_eq(&position).and(&position.less(&level.positions))];
        Block { end, length: after.minus(&first), first, lookup: Lookup { position, stored: None, assumptions } }
    }

    /// Builds the stepper over all blocks of a fibre, with a guarantee for each block.
    pub(super) fn all(
        level: &TensorLevel,
        above: &Parent,
        block: &Symbol,
        end: &Expr,
        promise: Expr,
        body: Looplet,
    ) -> Stepper {
        let at = Expr::var(block);
        Stepper {
            position: block.clone(),
            begin: level.load(POS, &above.positions.first),
            end: level.load(POS, &above.positions.end),
            last: end.minus(&Expr::int(1)),
            body: Box::new(body),
            assumptions: vec![Expr::int(0).less_eq(&at).and(&at.less(&level.arrays[END].shape[0])), promise],
            full: level.level.facts().full,
            unique: level.level.unique,
            ordered: level.level.ordered,
        }
    }
}

impl LevelFormat for Blocklist {
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
        let Block { end, length, lookup, .. } = Block::of(level, &Expr::var(position), index);
        let start = end.minus(&length);
        let promise = Expr::int(0).less_eq(&start).and(&start.less(&end)).and(&end.less_eq(&level.size));
        let body = Looplet::Sequence(vec![
            Phase { end: Some(start), looplet: Looplet::Run(Fibre::Fill) },
            Phase { end: Some(end.clone()), looplet: Looplet::Lookup(lookup) },
        ]);
        Looplet::Stepper(Block::all(level, above, position, &end, promise, body))
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        let rules = vec![
            Rule::Partition { pos: POS, total: 0 },
            Rule::Partition { pos: OFS, total: 1 },
            Rule::Segments { pos: POS, end: END, ofs: Some(OFS), full: false },
        ];
        Some(Contract { counts: vec![Counted::Length(END), Counted::Last(OFS)], rules, list: None })
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let mut pos = zeros(*entries.count + 1)?;
        let (mut end, mut ofs) = (Vec::new(), vec![0i64]);
        let (mut count, mut before) = (0, None);
        for (e, c) in entries.coordinates.iter().enumerate() {
            let above = entries.positions[e];
            if (entries.begins)(e) {
                match before == Some((above, c - 1)) {
                    true => {
                        end.pop();
                        ofs.pop();
                    }
                    false => pos[above as usize + 1] += 1,
                }
                count += 1;
                end.push(c + 1);
                ofs.push(count);
                before = Some((above, *c));
            }
            entries.positions[e] = count - 1;
        }
        accumulate(&mut pos);
        *entries.count = count;
        Ok(Packed { hidden: vec![end.len() as i64, count], arrays: vec![pos, end, ofs] })
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let (pos, end, ofs) = (&arrays[POS], &arrays[END], &arrays[OFS]);
        let block = |p: i64, b: usize| {
            let shift = end[b] - ofs[b + 1];
            (ofs[b]..ofs[b + 1]).map(move |q| Entry { above: p, coordinate: q + shift, position: q })
        };
        let fibre = |p: i64| (pos[p as usize] as usize..pos[p as usize + 1] as usize).flat_map(move |b| block(p, b));
        (0..above.count).flat_map(fibre).collect()
    }
}

impl LevelAssembly for Blocklist {
    fn initial(&self, _: &TensorLevel, array: usize) -> Option<Expr> {
        (array == OFS).then(|| Expr::int(0))
    }

    fn largest(&self, coordinate: &Expr) -> Option<Expr> {
        Some(coordinate.plus(&Expr::int(1)))
    }

    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        path.open(self, k);
        let own = &path.assembly.levels[k];
        let origin = path.origin.clone();
        let (one, [blocks, count]) = (Expr::int(1), [&own.counts[0], &own.counts[1]]);
        let (b, n) = (blocks.load([]), count.load([]));
        let store =
            |array: usize, at: &Expr, value: Expr| store_at(&own.level.arrays[array], at, value, origin.clone());
        let (last, after) = (b.minus(&one), coordinate.plus(&one));
        let more = |ofs: &Expr| [store(OFS, ofs, n.plus(&one)), set(count, n.plus(&one), &origin)];
        let mut extend = path.assembly.extended(count, &one, &origin);
        extend.push(store(END, &last, after.clone()));
        extend.extend(more(&b));
        let mut begin = path.assembly.extended(blocks, &one, &origin);
        begin.extend(path.assembly.extended(count, &one, &origin));
        begin.push(store(END, &b, after.clone()));
        begin.extend(more(&b.plus(&one)));
        begin.push(set(blocks, b.plus(&one), &origin));
        let begun = own.level.load(POS, &path.position).less(&b);
        let end = own.level.load(END, &last);
        let extend = branch(end.equals(coordinate), extend, Vec::new(), &origin);
        let adjacent = end.equals(coordinate).or(&end.equals(&after));
        path.branch(begun.and(&adjacent), vec![extend], begin);
        path.position = n.minus(&one);
    }
}
