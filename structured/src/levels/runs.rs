//! Runs of equal elements in a fibre: the common part of `runlength` and `packbits`.

use crate::level::Packing;
use std::ops::Range;
use taffeta_ast::Literal;

/// Consecutive coordinates with one value.
pub(super) struct Run {
    pub(super) begin: i64,
    /// End coordinate, exclusive.
    pub(super) end: i64,
    /// Elements in the run; fewer than coordinates in a run of the fill value.
    pub(super) elements: Range<usize>,
}

impl Run {
    /// Returns the number of coordinates.
    pub(super) fn length(&self) -> i64 {
        self.end - self.begin
    }
}

/// Splits a fibre into runs of equal neighbours, with the fill value where no element is given.
pub(super) fn of(entries: &Packing<'_>, elements: Range<usize>) -> Vec<Run> {
    let mut runs: Vec<(Run, Literal)> = Vec::new();
    let mut add = |[begin, end]: [i64; 2], elements: Range<usize>, value: Literal| match runs.last_mut() {
        Some((run, before)) if before.is_same(value) => {
            run.end = end;
            run.elements.end = elements.end;
        }
        _ => runs.push((Run { begin, end, elements }, value)),
    };
    let mut next = 0;
    for e in elements.clone() {
        let c = entries.coordinates[e];
        if next < c {
            add([next, c], e..e, entries.fill);
        }
        add([c, c + 1], e..e + 1, (entries.value)(e));
        next = c + 1;
    }
    if next < entries.size {
        add([next, entries.size], elements.end..elements.end, entries.fill);
    }
    runs.into_iter().map(|(run, _)| run).collect()
}
