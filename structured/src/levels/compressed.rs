//! `compressed`: the coordinates that are stored, as a list for each position of the level above (the format of CSR's
//! columns). `pos[p] .. pos[p + 1]` are the positions under `p`, and `crd` has their coordinates.
//!
//! ```text
//!     0 1 2 3        pos   0   2   2     3          coordinates 1 and 3 under position 0, none under 1, 0 under 2
//! 0   . a . b        crd   1 3       0
//! 1   . . . .
//! 2   c . . .
//! ```

use super::{Access, ArrayKind, LevelFormat, Packing};
use crate::layout::FlatLevel;
use crate::looplet::{Fibre, Looplet, Stepper};
use taffeta_ast::{Expr, Symbol};

pub(super) struct Compressed;

const POS: usize = 0;
const CRD: usize = 1;

impl LevelFormat for Compressed {
    fn arrays(&self) -> &'static [ArrayKind] {
        &[
            ArrayKind { name: "pos", length: |above, _| above.plus(&Expr::int(1)) },
            ArrayKind { name: "crd", length: |_, own| own.clone() },
        ]
    }

    fn positions(&self, _: &Expr, _: &Expr, own: &mut dyn FnMut() -> Expr) -> Expr {
        own()
    }

    fn access(&self, level: &FlatLevel, above: &Expr, _: &Expr, position: &Symbol) -> Access {
        let at = Expr::var(position);
        let last = level.load(CRD, &at);
        let (zero, end) = (Expr::int(0), level.load(POS, &above.plus(&Expr::int(1))));
        let promises =
            vec![zero.less_eq(&at).and(&at.less(&level.positions)), zero.less_eq(&last).and(&last.less(&level.size))];
        Access::Traversed(Looplet::Stepper(Stepper {
            position: position.clone(),
            begin: level.load(POS, above),
            end,
            last,
            body: Box::new(Looplet::Spike { body: Fibre::Fill, tail: Fibre::At(at) }),
            promises,
        }))
    }

    fn pack(&self, entries: &mut Packing<'_>) -> Vec<Vec<i64>> {
        let mut pos = vec![0i64; *entries.count as usize + 1];
        let mut crd: Vec<i64> = Vec::new();
        let mut before = None;
        for (p, c) in entries.positions.iter_mut().zip(entries.coordinates) {
            let new = (*p, *c);
            if before != Some(new) {
                before = Some(new);
                pos[*p as usize + 1] += 1;
                crd.push(*c);
            }
            *p = crd.len() as i64 - 1;
        }
        for k in 1..pos.len() {
            pos[k] += pos[k - 1];
        }
        *entries.count = crd.len() as i64;
        vec![pos, crd]
    }

    fn unpack(&self, arrays: &[Vec<i64>], above: i64, _: i64) -> Vec<(i64, i64)> {
        let (pos, crd) = (&arrays[POS], &arrays[CRD]);
        let fibre = |p: i64| (pos[p as usize]..pos[p as usize + 1]).map(move |q| (p, crd[q as usize]));
        (0..above).flat_map(fibre).collect()
    }
}
