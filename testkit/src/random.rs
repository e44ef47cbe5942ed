//! Random tensors in all formats.

use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::{Buffer, DType, Literal, Value};
use taffeta_structured::{Stored, Unpackable};

/// Pseudo-random number generator (linear congruential).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }
}

/// Returns all valid formats of `ndim` levels, with and without the options of lists.
pub fn formats(ndim: usize) -> Vec<Format> {
    let mut levels: Vec<Level> = LevelKind::ALL.iter().map(|k| Level::new(*k)).collect();
    for kind in LevelKind::ALL.iter().filter(|k| k.has_lists()) {
        levels.push(Level { unique: false, ..Level::new(*kind) });
        levels.push(Level { ordered: false, ..Level::new(*kind) });
    }
    let mut all: Vec<Vec<Level>> = vec![Vec::new()];
    for _ in 0..ndim {
        let longer = all.iter().flat_map(|f| levels.iter().map(move |l| f.iter().copied().chain([*l]).collect()));
        all = longer.collect();
    }
    all.into_iter().map(Format::new).filter(|f| f.check(ndim).is_ok()).collect()
}

/// Formats of matrices whose levels store expressions of several dimensions: levels, and the result of a `remap=`.
const REMAPPED: &[(&str, &str)] = &[
    ("squeezed, range, offset", "(j - i, i, j)"),
    ("squeezed, range, offset", "(j - i, j, i)"),
    ("squeezed, range, offset", "(i + j, i, j)"),
    ("compressed, range, offset", "(j - i, i, j)"),
    ("dense, compressed", "(j - i, i)"),
    ("compressed, compressed", "(i + j, j)"),
    ("bitmap, hashed", "(j - i, j)"),
    ("dense, compressed, dense, dense", "(i // 2, j // 3, i % 2, j % 3)"),
    ("compressed, compressed, dense, dense", "(j >> 1, i // 3, j & 1, i % 3)"),
    ("dense, dense, dense, dense", "(i // 2, j // 2, i % 2, j % 2)"),
    ("dense, squeezed, dense, dense", "(i // 2, j // 3, i % 2, j % 3)"),
    ("dense, bytemap, compressed, banded", "(i // 4, j // 4, i % 4, j % 4)"),
    ("squeezed, range, offset, dense, dense", "(j // 3 - i // 2, i // 2, j // 3, i % 2, j % 3)"),
    ("sliced, dense, singleton", "(counter(i), i, j)"),
    ("sliced, dense, singleton", "(counter(j), j, i)"),
    ("sliced, dense, dense, singleton", "(counter(i % 2, i // 2), i // 2, i % 2, j)"),
    ("dense, sliced, dense, singleton", "(i // 2, counter(i), i % 2, j)"),
    ("dense, sliced, dense, singleton", "(j // 3, counter(j), j % 3, i)"),
    ("dense, sliced, singleton", "(i, counter(i), j)"),
    ("compressed, dense, compressed", "(i // 3, i % 3, j)"),
    ("dense, compressed, dense", "(i, j // 4, j % 4)"),
    ("dense, compressed, blocklist", "(i, j // 4, j % 4)"),
    ("compressed, compressed", "(i + 2, 3 * j + 1)"),
    (
        "compressed(unique=False, ordered=False), singleton(ordered=False), compressed(unique=False, ordered=False), \
         singleton(ordered=False)",
        "(order(morton(i // 4, j // 4)), i // 4, j // 4, order(morton(i % 4, j % 4)), i % 4, j % 4)",
    ),
    ("dense, compressed(ordered=False)", "(i, order(j % 3), j)"),
    ("compressed(unique=False), singleton, dense, dense", "(i // 2, j // 3, i % 2, j % 3)"),
    ("compressed(unique=False), singleton, dense", "(i, j // 4, j % 4)"),
];

/// Returns all remapped formats.
pub fn remapped() -> Vec<Format> {
    let one = |(levels, returned): &(&str, &str)| {
        let levels = Level::parse_list(levels).unwrap_or_else(|| panic!("{levels}"));
        let (coords, keys) = taffeta_ast::format::coord::parse(returned).unwrap_or_else(|| panic!("{returned}"));
        let format = Format::new(levels).remapped(coords, keys);
        format.check(2).unwrap_or_else(|why| panic!("{format}: {why}"));
        format
    };
    REMAPPED.iter().map(one).collect()
}

/// Draws a matrix in a remapped format, of random shape, fill and index type.
pub fn remapped_matrix(format: &Format, seed: u64) -> Drawn {
    let mut random = Random(seed);
    let shape = [random.next(9), random.next(9)];
    let index = [None, Some(DType::U8), Some(DType::I32), Some(DType::I64)][random.next(4)];
    let levels: Vec<Level> = format.levels.iter().map(|l| Level { index, ..*l }).collect();
    let fill = [None, Some(Literal::Float(f64::INFINITY)), Some(Literal::Float(7.5))][random.next(3)];
    of_shape(&Format { levels: levels.into(), fill, ..format.clone() }, &shape, &mut random)
}

const SPECIAL: [f64; 6] = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 7.5];

/// Draws any number, including zeros, NaN and infinities.
fn any(random: &mut Random) -> f64 {
    match random.next(4) {
        0 => SPECIAL[random.next(SPECIAL.len())],
        _ => random.next(50) as f64,
    }
}

/// Draws elements at random coordinates: in few or all rows, in runs, with duplicates.
pub fn random_elements(
    random: &mut Random,
    shape: &[usize],
    element: &dyn Fn(&mut Random) -> f64,
) -> (Vec<i64>, Vec<f64>) {
    let count: usize = shape.iter().product();
    let last = shape.last().copied().unwrap_or(1).max(1);
    let full = random.next(count / last + 1);
    let (density, twice) = (random.next(5), random.next(8) == 0);
    let (mut indices, mut elements) = (Vec::new(), Vec::new());
    let mut value = 1.0;
    for k in 0..count {
        if random.next(4) >= density && k / last != full {
            continue;
        }
        if random.next(3) > 0 {
            value = element(random);
        }
        let mut at = vec![0; shape.len()];
        let mut rest = k;
        for (d, n) in shape.iter().enumerate().rev() {
            at[d] = (rest % n) as i64;
            rest /= n;
        }
        for _ in 0..if twice { 2 } else { 1 } {
            indices.extend(&at);
            elements.push(value);
        }
    }
    (indices, elements)
}

pub fn equal(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Packs the elements that the format can hold; returns the packed tensor and these elements.
fn packed(shape: &[usize], format: &Format, indices: Vec<i64>, elements: Vec<f64>) -> (Stored, Value) {
    let fill = format.fill.unwrap_or(Literal::Float(0.0));
    let (stored, indices, elements) = fitted(shape, format, indices, elements, &Buffer::F64);
    let lists = Format::new(vec![Level::new(LevelKind::Compressed); shape.len()]);
    let given = Stored::pack(shape, &lists, &indices, &Buffer::F64(elements)).expect("lists hold all elements");
    (stored, given.elements().with_fill(fill))
}

/// Packs the elements that the format can hold, converted by `typed`; returns the packed tensor and these elements.
pub fn fitted(
    shape: &[usize],
    format: &Format,
    mut indices: Vec<i64>,
    mut elements: Vec<f64>,
    typed: &dyn Fn(Vec<f64>) -> Buffer,
) -> (Stored, Vec<i64>, Vec<f64>) {
    let ndim = shape.len();
    loop {
        let of = |at: &[i64]| indices.chunks_exact(ndim).position(|p| p == at).expect("every element was given");
        match Stored::pack(shape, format, &indices, &typed(elements.clone())) {
            Ok(stored) => return (stored, indices, elements),
            Err(Unpackable::Outside(_, at) | Unpackable::Second(_, [_, at])) => {
                let e = of(&at);
                elements.remove(e);
                indices.drain(e * ndim..(e + 1) * ndim);
            }
            Err(Unpackable::Unequal(_, [a, b])) => {
                let [a, b] = [of(&a), of(&b)];
                // Packing sums duplicates, and all of them stay.
                for k in 0..elements.len() {
                    if indices[k * ndim..(k + 1) * ndim] == indices[b * ndim..(b + 1) * ndim] {
                        elements[k] = elements[a];
                    }
                }
            }
            Err(why) => panic!("{why}"),
        }
    }
}

/// Random tensor in a format: packed, and the elements that were packed.
pub struct Drawn {
    pub format: Format,
    pub stored: Stored,
    pub given: Value,
}

/// Draws a tensor in these levels, of random shape, dimension order, fill and index type.
pub fn tensor(format: &Format, seed: u64) -> Drawn {
    let mut random = Random(seed);
    let ndim = format.levels.len();
    let most = [12, 7, 4][ndim - 1];
    let mut shape: Vec<usize> = (0..ndim).map(|_| random.next(most)).collect();
    if format.squares().count() > 0 {
        let size = shape[0];
        shape.fill(size);
    }
    let fills = [None, Some(Literal::Float(f64::INFINITY)), Some(Literal::Float(f64::NAN)), Some(Literal::Float(7.5))];
    let index = [None, Some(DType::U8), Some(DType::U16), Some(DType::I32), Some(DType::I64)][random.next(5)];
    let levels: Vec<Level> = format.levels.iter().map(|l| Level { index, ..*l }).collect();
    let mut order: Vec<usize> = (0..ndim).collect();
    (1..ndim).for_each(|k| order.swap(k, random.next(k + 1)));
    let format = Format { fill: fills[random.next(4)], ..Format::new(levels).ordered(&order) };
    of_shape(&format, &shape, &mut random)
}

/// Draws a tensor of that shape.
pub fn of_shape(format: &Format, shape: &[usize], random: &mut Random) -> Drawn {
    let (indices, elements) = random_elements(random, shape, &any);
    let (stored, given) = packed(shape, format, indices, elements);
    Drawn { format: format.clone(), stored, given }
}
