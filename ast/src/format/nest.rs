//! Loop nests over the stored elements of a format, in the order of its storage, as conversions traverse their sources.

use super::{Coord, Format};
use crate::expr::Expr;
use crate::symbol::Symbol;

/// Loop nest over the coordinates of a format's levels.
#[derive(Clone, Debug)]
pub struct StorageNest {
    /// Iterators from the outside in, each with its first value and its exclusive end.
    pub loops: Vec<(Symbol, [Expr; 2])>,
    /// Indices of the element in the innermost loop.
    pub at: Vec<Expr>,
    /// Those of the indices that may be out of range, of blocks and diagonals at an edge, with their sizes.
    pub open: Vec<[Expr; 2]>,
}

impl Format {
    /// Returns the nest over the elements of a tensor of that shape. `name` makes the iterator of a level's coordinate.
    /// A coordinate that those above determine has no loop.
    ///
    /// ```
    /// use taffeta_ast::format::Named;
    /// use taffeta_ast::{Expr, Symbol, print};
    ///
    /// let sizes = [Expr::var(&Symbol::new("n")), Expr::var(&Symbol::new("m"))];
    /// let nest = Named::Csc.format(2).unwrap().nest(&sizes, &|k| Symbol::new(format!("c{k}")));
    /// let loops: Vec<String> = nest.loops.iter().map(|(c, [_, end])| format!("{c} < {}", print::expr(end))).collect();
    /// assert_eq!(loops, ["c0 < m", "c1 < n"]);
    /// assert_eq!(nest.at.iter().map(print::expr).collect::<Vec<_>>(), ["c1", "c0"]);
    /// ```
    pub fn nest(&self, shape: &[Expr], name: &dyn Fn(usize) -> Symbol) -> StorageNest {
        let (mut loops, mut coordinates) = (Vec::new(), Vec::new());
        for (k, c) in self.coords.iter().enumerate() {
            coordinates.push(match (self.derived(k).and_then(|c| c.at(&coordinates)), c.range(shape)) {
                (Some(derived), _) => derived,
                (None, Some(range)) => {
                    let iter = name(k);
                    let coordinate = Expr::var(&iter);
                    loops.push((iter, range));
                    coordinate
                }
                // A counter does not determine an index.
                (None, None) => Expr::int(0),
            });
        }
        let mut nest = StorageNest { loops, at: Vec::new(), open: Vec::new() };
        for (d, (index, size)) in self.indices(shape.len()).iter().zip(shape).enumerate() {
            let index = index.as_ref().and_then(|c| c.at(&coordinates)).unwrap_or(Expr::int(0));
            let is_coordinate = |(k, c): (usize, &Coord)| *c == Coord::Dim(d) && index == coordinates[k];
            let is_iterator = nest.loops.iter().any(|(iter, _)| index == Expr::var(iter));
            if !is_iterator || !self.coords.iter().enumerate().any(is_coordinate) {
                nest.open.push([index.clone(), size.clone()]);
            }
            nest.at.push(index);
        }
        nest
    }
}
