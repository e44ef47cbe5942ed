//! Fibres as runs of equal elements: what run-length and packed levels have in common.

use super::Packing;
use std::ops::Range;
use taffeta_ast::Literal;

/// Coordinates in a row that have one value.
pub(super) struct Run {
    pub(super) begin: i64,
    /// The coordinate after the last one.
    pub(super) end: i64,
    /// The elements in it; there are fewer than coordinates if it is of the fill.
    pub(super) elements: Range<usize>,
}

impl Run {
    /// How many coordinates it has.
    pub(super) fn length(&self) -> i64 {
        self.end - self.begin
    }
}

/// A fibre from its elements. What is not stored is the fill; neighbours that are equal are in one run.
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
