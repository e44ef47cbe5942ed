//! Coordinates of an assembled tensor's levels from the indices of an element; counters number elements as they come.

use crate::level_assembly::{AssembledArrays, iterator_of, range, set, store_at};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::format::{Coord, Format};
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Origin, Stmt, Symbol, Tensor};

/// Coordinates of a tensor's levels.
#[derive(Clone, Debug)]
pub(super) struct Remapping {
    coords: Vec<Coord>,
    /// Least coordinate of each level.
    lows: Vec<Expr>,
    shape: Vec<Expr>,
    /// Array of each level that counts, and its place for an element.
    counters: Vec<Option<(Arc<Tensor>, Vec<Coord>)>>,
}

impl Remapping {
    pub(super) fn new(tensor: &Tensor, format: &Format, assembly: &AssembledArrays) -> Remapping {
        let counter = |(k, c): (usize, &Coord)| match c {
            Coord::Counter(of) => {
                let length = of.iter().fold(Expr::int(1), |n, c| n.times(&extent(c, &tensor.shape)));
                Some((local(&tensor.symbol, &format!("counter{k}"), vec![length]), of.to_vec()))
            }
            _ => None,
        };
        Remapping {
            coords: format.coords.to_vec(),
            lows: assembly.levels.iter().map(|own| own.level.low.clone()).collect(),
            shape: tensor.shape.clone(),
            counters: format.coords.iter().enumerate().map(counter).collect(),
        }
    }

    /// Returns the arrays that count.
    pub(super) fn counters(&self) -> impl Iterator<Item = &Arc<Tensor>> {
        self.counters.iter().flatten().map(|(counter, _)| counter)
    }

    /// Returns the coordinates of an element, level by level.
    pub(super) fn coordinates(&self, at: &[Expr]) -> Vec<Expr> {
        self.coordinates_with(at, &FxHashMap::default())
    }

    fn coordinates_with(&self, at: &[Expr], held: &FxHashMap<Symbol, Arc<Tensor>>) -> Vec<Expr> {
        let one = |(k, c): (usize, &Coord)| match &self.counters[k] {
            Some((counter, of)) => match held.get(&counter.symbol) {
                Some(scalar) => scalar.load([]),
                None => counter.load([self.place(of, at)]),
            },
            None => match c {
                Coord::Dim(d) => at[*d].clone(),
                c => known(c, at).minus(&self.lows[k]),
            },
        };
        self.coords.iter().enumerate().map(one).collect()
    }

    /// Builds the statements that count an element.
    pub(super) fn counted(&self, at: &[Expr], origin: &Origin) -> Vec<Stmt> {
        self.counted_with(at, &FxHashMap::default(), origin)
    }

    fn counted_with(&self, at: &[Expr], held: &FxHashMap<Symbol, Arc<Tensor>>, origin: &Origin) -> Vec<Stmt> {
        let one = |(counter, of): &(Arc<Tensor>, Vec<Coord>)| {
            if let Some(scalar) = held.get(&counter.symbol) {
                return set(scalar, scalar.load([]).plus(&Expr::int(1)), origin);
            }
            let place = self.place(of, at);
            store_at(counter, &place, counter.load([place.clone()]).plus(&Expr::int(1)), origin.clone())
        };
        self.counters.iter().flatten().map(one).collect()
    }

    /// Builds the statements that set all counters to 0.
    pub(super) fn restarted(&self, origin: &Origin) -> Vec<Stmt> {
        let one = |counter: &Arc<Tensor>| {
            let r = iterator_of(&counter.symbol, "r");
            let body = store_at(counter, &Expr::var(&r), Expr::int(0), origin.clone());
            range(&r, [Expr::int(0), counter.shape[0].clone()], body, origin)
        };
        self.counters().map(one).collect()
    }

    /// Returns the place of an element in the array of a counter.
    fn place(&self, of: &[Coord], at: &[Expr]) -> Expr {
        of.iter().fold(Expr::int(0), |place, c| {
            let low = c.range(&self.shape).map_or(Expr::int(0), |[low, _]| low);
            place.times(&extent(c, &self.shape)).plus(&known(c, at).minus(&low))
        })
    }
}

/// Pass over the writes of a tensor.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    /// Tensor.
    pub(super) tensor: Symbol,
    /// Whether elements are counted, rather than entered.
    pub(super) counts: bool,
    /// Whether the fibres of the last level are sorted behind the pass.
    pub(super) sorts: bool,
    /// Dimension of each coordinate of the writes.
    pub(super) dims: Vec<usize>,
    pub(super) remapping: Arc<Remapping>,
}

impl Pass {
    /// Returns the coordinates of an element's levels, and the statements that count it behind its write. Counters in
    /// `held` are in scalars.
    pub(super) fn coordinates(
        &self,
        at: &[Expr],
        held: &FxHashMap<Symbol, Arc<Tensor>>,
        origin: &Origin,
    ) -> (Vec<Expr>, Vec<Stmt>) {
        let at = self.by_dimension(at);
        (self.remapping.coordinates_with(&at, held), self.remapping.counted_with(&at, held, origin))
    }

    /// Returns the counters, each with its place for an element and the number of places.
    pub(super) fn places(&self, at: &[Expr]) -> Vec<(Arc<Tensor>, [Expr; 2])> {
        let at = self.by_dimension(at);
        let counters = self.remapping.counters.iter().flatten();
        let size = |counter: &Tensor, of: &[Coord]| match of {
            [Coord::Dim(d)] => self.remapping.shape[*d].clone(),
            _ => counter.shape[0].clone(),
        };
        counters.map(|(c, of)| (c.clone(), [self.remapping.place(of, &at), size(c, of)])).collect()
    }

    fn by_dimension(&self, at: &[Expr]) -> Vec<Expr> {
        let mut at: Vec<(usize, Expr)> = self.dims.iter().copied().zip(at.iter().cloned()).collect();
        at.sort_by_key(|(d, _)| *d);
        at.into_iter().map(|(_, index)| index).collect()
    }
}

/// Declares a local array of i64, named after a tensor.
pub(super) fn local(tensor: &Symbol, what: &str, shape: Vec<Expr>) -> Arc<Tensor> {
    let name = Symbol::new(format!("{}.{what}", tensor.name().replace('.', "_")));
    Arc::new(Tensor::dense(name, DType::I64, shape, Role::Workspace))
}

pub(super) fn known(c: &Coord, at: &[Expr]) -> Expr {
    c.at(at).unwrap_or_else(|| unreachable!("levels store no Morton codes, and counters are arrays"))
}

/// Returns the number of values of a coordinate.
fn extent(c: &Coord, shape: &[Expr]) -> Expr {
    c.range(shape).map_or(Expr::int(1), |[low, end]| end.minus(&low).max_with(&Expr::int(0)))
}
