//! `symmetric`: a matrix that is equal to its transpose. It has no arrays, and stands below a `dense` level of the same
//! size. The lower half is stored, as in `triangular`; an element above the diagonal is stored as its counterpart.
//!
//! ```text
//!     0 1 2        positions   0   1 2   3 4 5        (1, 2) and (2, 1) are position 4
//! 0   a b d                    a   b c   d e f
//! 1   b c e
//! 2   d e f
//! ```

use super::halves;
use crate::level::{
    ArrayKind, Counts, Entry, LevelFormat, Misfit, Packed, Packing, Parent, TensorLevel, Unpacking, zeros,
};
use crate::level_assembly::{LevelAssembly, Path, is_same, store_at};
use crate::looplet::{Lookup, Looplet, Phase};
use taffeta_ast::format::{Contract, Level};
use taffeta_ast::{DType, Expr, Symbol};

pub(super) struct Symmetric;

fn lookup(level: &TensorLevel, above: &Parent, row: &Expr, column: &Expr) -> Lookup {
    let position = halves::lower(above, &level.size, row, column);
    let assumptions = vec![Expr::int(0).less_eq(&position).and(&position.less(&level.positions))];
    Lookup { position, stored: None, assumptions }
}

impl LevelFormat for Symmetric {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[]
    }

    fn hidden(&self) -> &'static [&'static str] {
        &[]
    }

    fn positions(&self, counts: &Counts) -> Expr {
        halves::positions(counts)
    }

    fn lookup(&self, level: &TensorLevel, above: &Parent, index: &Expr) -> Option<Lookup> {
        let row = &above.coordinate;
        Some(lookup(level, above, &row.max_with(index), &row.min_with(index)))
    }

    fn fibre(&self, level: &TensorLevel, above: &Parent, index: &Expr, _: &Symbol) -> Looplet {
        let row = &above.coordinate;
        let [left, right] = [[row, index], [index, row]].map(|[i, j]| Looplet::Lookup(lookup(level, above, i, j)));
        let end = Some(row.plus(&Expr::int(1)));
        Looplet::Sequence(vec![Phase { end, looplet: left }, Phase { end: None, looplet: right }])
    }

    fn contract(&self, _: Level) -> Option<Contract> {
        Some(Contract::default())
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Result<Packed, Misfit> {
        let count = halves::count(entries)?;
        // Number of the element at each position, plus 1; 0 if there is none.
        let mut found = zeros(count)?;
        for (e, (i, j)) in entries.parents.iter().zip(entries.coordinates).enumerate() {
            let position = halves::lower_position([entries.positions[e], *i], entries.size, *i.max(j), *i.min(j));
            match std::mem::replace(&mut found[position as usize], e as i64 + 1) {
                0 => {}
                other if (entries.value)(other as usize - 1).is_same((entries.value)(e)) => {}
                other => return Err(Misfit::Unequal(other as usize - 1, e)),
            }
            entries.positions[e] = position;
        }
        *entries.count = count;
        Ok(Packed { arrays: Vec::new(), hidden: Vec::new() })
    }

    fn unpack(&self, _: &[Vec<i64>], above: &Unpacking<'_>) -> Vec<Entry> {
        let fibre = |p: i64| {
            let i = (above.parent)(p);
            let position = move |j: i64| halves::lower_position([p, i], above.size, i.max(j), i.min(j));
            (0..above.size).map(move |j| Entry { above: p, coordinate: j, position: position(j) })
        };
        (0..above.count).flat_map(fibre).collect()
    }
}

/// Whether a position has an element.
const SEEN: usize = 0;

impl LevelAssembly for Symmetric {
    fn extras(&self) -> &'static [ArrayKind] {
        &[ArrayKind { name: "seen", positions: false, dtype: Some(DType::U8), length: halves::positions }]
    }

    fn initial(&self, _: &TensorLevel, _: usize) -> Option<Expr> {
        Some(Expr::int(0))
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn fills(&self) -> bool {
        true
    }

    /// Stores the value: both elements that share it must agree.
    fn enter(&self, path: &mut Path<'_>, k: usize, coordinate: &Expr) {
        let own = &path.assembly.levels[k];
        let (row, values) = (&path.coordinate, &path.assembly.values);
        let at = lookup(&own.level, &path.parent(), &row.max_with(coordinate), &row.min_with(coordinate)).position;
        let seen = own.extras[SEEN].load([at.clone()]).cast(DType::I64);
        let value = path.value();
        let agree = seen.equals(&Expr::int(0)).or(&is_same(&values.load([at.clone()]), &value));
        path.check(agree, k, coordinate, "stores one value for it and its mirror image, which differ");
        path.all.push(store_at(&own.extras[SEEN], &at, Expr::int(1), path.origin.clone()));
        path.all.push(store_at(values, &at, value, path.origin.clone()));
        path.position = at;
    }
}
