//! What the levels of a format store: coordinates, counted from the least that the tensor's sizes allow.

use taffeta_ast::format::{Coord, Format};
use taffeta_ast::poly::tidy;
use taffeta_ast::{Buffer, Expr, coordinates};

/// The coordinates that a level may have.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// What is taken from what [`Format::coords`] says: the least of it.
    pub(crate) low: Expr,
    /// How many there are, at most; `None` of a counter, whose elements say it.
    pub(crate) size: Option<Expr>,
}

/// The coordinates of each level.
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

/// The same for sizes that are known: the least coordinate, and how many there are.
pub(crate) fn ranges(format: &Format, shape: &[usize]) -> Vec<(i64, Option<i64>)> {
    let shape: Vec<Expr> = shape.iter().map(|n| Expr::int(*n as i64)).collect();
    let known = |e: &Expr| e.as_int().unwrap_or_else(|| unreachable!("it is computed of constants"));
    // Of an empty tensor there may be fewer than none.
    let one = |s: &Space| (known(&s.low), s.size.as_ref().map(|n| known(n).max(0)));
    spaces(format, &shape).iter().map(one).collect()
}

/// Elements in the order of a format's levels, each place once.
pub(crate) struct Sorted {
    /// For each level, one for each element.
    pub(crate) coordinates: Vec<Vec<i64>>,
    /// For each element, the first level at which its coordinates differ from those of the one before it.
    pub(crate) depths: Vec<usize>,
    /// The indices of each element, one element after the other.
    pub(crate) indices: Vec<i64>,
    pub(crate) elements: Buffer,
}

impl Sorted {
    /// What stands twice is summed.
    pub(crate) fn of(shape: &[usize], format: &Format, indices: &[i64], elements: &Buffer) -> Sorted {
        match format.order() {
            Some(order) => Sorted::in_order(shape, &order, indices, elements),
            None => Sorted::in_order(shape, &(0..shape.len()).collect::<Vec<_>>(), indices, elements)
                .remapped(format, shape),
        }
    }

    /// By dimensions.
    fn in_order(shape: &[usize], order: &[usize], indices: &[i64], elements: &Buffer) -> Sorted {
        let ndim = order.len();
        let sorted = coordinates::sorted(shape, order, indices);
        let at = |e: usize, d: usize| indices[e * ndim + d];
        // Of what stands at one place, the first.
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

    /// The same elements, which stand once and in the order of their indices, in that of a remapping.
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
        // What is compared, in its order.
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

/// What a coordinate is at the indices of an element of a tensor, whose sizes are at most 2^47.
fn value(c: &Coord, at: &[i64]) -> i64 {
    c.value(at).unwrap_or(i64::MAX)
}

/// The number of each element among those that have these in common.
fn counted<'a>(of: &[Coord], count: usize, at: &dyn Fn(usize) -> &'a [i64]) -> Vec<i64> {
    let mut seen: rustc_hash::FxHashMap<Vec<i64>, i64> = rustc_hash::FxHashMap::default();
    let mut next = |e: usize| {
        let n = seen.entry(of.iter().map(|c| value(c, at(e))).collect()).or_insert(0);
        std::mem::replace(n, *n + 1)
    };
    (0..count).map(&mut next).collect()
}
