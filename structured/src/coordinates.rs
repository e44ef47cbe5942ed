//! Coordinates that the levels of a format store, counted from the least coordinate that the tensor's sizes allow, and
//! elements sorted by them for packing.

use taffeta_ast::format::{Coord, Format};
use taffeta_ast::poly::tidy;
use taffeta_ast::{Buffer, Expr, coordinates};

/// Coordinate range of a level.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// Least value of the level's [`Format::coords`] expression, which is subtracted from it.
    pub(crate) low: Expr,
    /// Upper bound on the number of coordinates; `None` for a counter, whose number depends on the elements.
    pub(crate) size: Option<Expr>,
}

/// Returns the coordinate range of each level.
pub(crate) fn spaces(format: &Format, shape: &[Expr]) -> Vec<Space> {
    let one = |c: &Coord| match c.range(shape) {
        Some([low, end]) => match c {
            Coord::Dim(_) => Space { low, size: Some(end) },
            _ => Space { size: Some(tidy(&end.minus(&low))), low: tidy(&low) },
        },
        None => Space { low: Expr::int(0), size: None },
    };
    format.coords.iter().map(one).collect()
}

/// Returns the least coordinate of each level and the number of its coordinates, for constant sizes.
pub(crate) fn ranges(format: &Format, shape: &[usize]) -> Vec<(i64, Option<i64>)> {
    let shape: Vec<Expr> = shape.iter().map(|n| Expr::int(*n as i64)).collect();
    let known = |e: &Expr| e.as_int().unwrap_or_else(|| unreachable!("constant sizes give a constant"));
    // The computed number of coordinates of an empty tensor may be negative.
    let one = |s: &Space| (known(&s.low), s.size.as_ref().map(|n| known(n).max(0)));
    spaces(format, &shape).iter().map(one).collect()
}

/// Elements sorted in the order of a format's levels, without duplicates.
pub(crate) struct Sorted {
    /// Coordinates of all elements, for each level.
    pub(crate) coordinates: Vec<Vec<i64>>,
    /// First level at which each element's coordinates differ from those of its predecessor.
    pub(crate) depths: Vec<usize>,
    /// Indices of all elements, concatenated.
    pub(crate) indices: Vec<i64>,
    pub(crate) elements: Buffer,
}

impl Sorted {
    /// Sorts elements for a format, and sums duplicates.
    pub(crate) fn of(shape: &[usize], format: &Format, indices: &[i64], elements: &Buffer) -> Sorted {
        match format.order() {
            Some(order) => Sorted::in_order(shape, &order, indices, elements),
            None => Sorted::in_order(shape, &(0..shape.len()).collect::<Vec<_>>(), indices, elements)
                .remapped(format, shape),
        }
    }

    /// Sorts elements by dimensions in the given order, and sums duplicates.
    fn in_order(shape: &[usize], order: &[usize], indices: &[i64], elements: &Buffer) -> Sorted {
        let ndim = order.len();
        let sorted = coordinates::sorted(shape, order, indices);
        let at = |e: usize, d: usize| indices[e * ndim + d];
        // First element of each group of duplicates.
        let (mut firsts, mut depths): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut positions = Vec::with_capacity(sorted.len());
        let mut before = None;
        for e in &sorted {
            let depth = before.map_or(Some(0), |before| order.iter().position(|d| at(before, *d) != at(*e, *d)));
            if let Some(depth) = depth {
                firsts.push(*e);
                depths.push(depth);
            }
            positions.push(firsts.len() as i64 - 1);
            before = Some(*e);
        }
        let mut summed = Buffer::zeros(elements.dtype(), firsts.len());
        coordinates::place(elements, &sorted, &positions, &mut summed);
        let coordinates = order.iter().map(|d| firsts.iter().map(|e| at(*e, *d)).collect()).collect();
        let indices = firsts.iter().flat_map(|e| indices[e * ndim..(e + 1) * ndim].iter().copied()).collect();
        Sorted { coordinates, depths, indices, elements: summed }
    }

    /// Reorders elements, which are unique and sorted by their indices, by the coordinates of a remapped format.
    fn remapped(self, format: &Format, shape: &[usize]) -> Sorted {
        let (ndim, count) = (shape.len(), self.elements.len());
        let at = |e: usize| &self.indices[e * ndim..(e + 1) * ndim];
        let lows: Vec<i64> = ranges(format, shape).iter().map(|(low, _)| *low).collect();
        let coordinates: Vec<Vec<i64>> = (format.coords.iter().zip(&lows))
            .map(|(c, low)| match c {
                Coord::Counter(of) => counted(of, count, &at),
                c => (0..count).map(|e| value(c, at(e)) - low).collect(),
            })
            .collect();
        let keys: Vec<(usize, Vec<i64>)> =
            format.keys.iter().map(|k| (k.before, (0..count).map(|e| value(&k.coord, at(e))).collect())).collect();
        // Compared keys, most significant first: a sort key of the format precedes the coordinate of its level.
        let mut compared: Vec<&[i64]> = Vec::new();
        for k in 0..=coordinates.len() {
            compared.extend(keys.iter().filter(|(before, _)| *before == k).map(|(_, key)| &key[..]));
            compared.extend(coordinates.get(k).map(|own| &own[..]));
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|a, b| {
            compared.iter().map(|all| all[*a].cmp(&all[*b])).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        let depth = |a: usize, b: usize| (0..coordinates.len()).find(|k| coordinates[*k][a] != coordinates[*k][b]);
        let depths = (0..count).map(|e| match e {
            0 => 0,
            _ => depth(order[e - 1], order[e]).unwrap_or(coordinates.len()),
        });
        let mut elements = Buffer::zeros(self.elements.dtype(), count);
        for (to, e) in order.iter().enumerate() {
            elements.set(to, self.elements.get(*e));
        }
        Sorted {
            depths: depths.collect(),
            indices: order.iter().flat_map(|e| at(*e).iter().copied()).collect(),
            coordinates: coordinates.iter().map(|own| order.iter().map(|e| own[*e]).collect()).collect(),
            elements,
        }
    }
}

/// Evaluates a coordinate at an element's indices; `i64::MAX`, which is beyond all sizes (at most 2^47), if evaluation
/// fails.
fn value(c: &Coord, at: &[i64]) -> i64 {
    c.value(at).unwrap_or(i64::MAX)
}

/// Numbers each element, from 0, among the elements that agree in the coordinates `of`.
fn counted<'a>(of: &[Coord], count: usize, at: &dyn Fn(usize) -> &'a [i64]) -> Vec<i64> {
    let mut seen: rustc_hash::FxHashMap<Vec<i64>, i64> = rustc_hash::FxHashMap::default();
    let mut next = |e: usize| {
        let n = seen.entry(of.iter().map(|c| value(c, at(e))).collect()).or_insert(0);
        std::mem::replace(n, *n + 1)
    };
    (0..count).map(&mut next).collect()
}
