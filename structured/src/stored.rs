//! Tensors in a format, as data: the arrays of their levels, and their elements.

use crate::coordinates::{Sorted, ranges};
use crate::levels::{self, Counts, Misfit, Packing, Unpacking};
use std::fmt;
use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::value::MAX_SIZE;
use taffeta_ast::{Buffer, DType, Expr, Literal, Value, bytes, coordinates};

/// A tensor in a format.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    shape: Vec<usize>,
    format: Format,
    arrays: Vec<Value>,
    hidden: Vec<i64>,
}

/// Why elements cannot be stored in a format.
#[derive(Clone, Debug, PartialEq)]
pub enum Unpackable {
    /// Nothing can be stored in that level yet.
    Level(Level),
    /// An element's indices are not those of the tensor.
    OutOfRange(Vec<i64>),
    /// The format is one of another number of dimensions, or the elements are not of one type and number.
    Shape,
    /// The level stores nothing there.
    Outside(Level, Vec<i64>),
    /// The tensor whose pattern it has stores nothing there.
    Elsewhere(Vec<i64>),
    /// The two elements are one in that level, and are not equal.
    Unequal(Level, [Vec<i64>; 2]),
    /// The two elements are in one fibre of that level, which has room for one.
    Second(Level, [Vec<i64>; 2]),
    /// A dimension is larger than any can be.
    Size(usize),
    /// There is no memory for all that the format stores: so many bytes, if they can be counted.
    Memory(Option<u64>),
    /// There are more elements, or larger coordinates, than indices of that type can say.
    Index(DType),
}

impl Unpackable {
    /// A level's complaint; `at` has the indices of an element.
    fn of(why: Misfit, level: Level, at: &dyn Fn(usize) -> Vec<i64>) -> Unpackable {
        match why {
            Misfit::Outside(e) => Unpackable::Outside(level, at(e)),
            Misfit::Unequal(a, b) => Unpackable::Unequal(level, [at(a), at(b)]),
            Misfit::Second(a, b) => Unpackable::Second(level, [at(a), at(b)]),
            Misfit::TooMany => Unpackable::Memory(None),
        }
    }
}

/// The indices of an element: `(0, 2)`.
struct Place<'i>(&'i [i64]);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(i64::to_string).collect();
        write!(f, "({})", all.join(", "))
    }
}

impl fmt::Display for Unpackable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unpackable::Level(level) => write!(f, "nothing can be stored in the level `{level}` yet"),
            Unpackable::OutOfRange(at) => write!(f, "there is an element at {}, which is not in the tensor", Place(at)),
            Unpackable::Outside(level, at) => {
                write!(f, "there is an element at {}, where `{level}` stores nothing", Place(at))
            }
            Unpackable::Elsewhere(at) => {
                write!(f, "there is an element at {}, which is not in the pattern", Place(at))
            }
            Unpackable::Unequal(level, [a, b]) => {
                write!(f, "the elements at {} and {} are not equal, and `{level}` stores one", Place(a), Place(b))
            }
            Unpackable::Second(level, [a, b]) => {
                let [a, b] = [Place(a), Place(b)];
                write!(f, "there are elements at {a} and {b}, of which `{level}` stores one at most")
            }
            Unpackable::Size(size) => write!(f, "a size of {size} is beyond {MAX_SIZE} (2^47)"),
            Unpackable::Memory(Some(most)) => {
                write!(f, "{} for what the format stores do not fit in memory", bytes::amount(*most))
            }
            Unpackable::Memory(None) => f.write_str("there is no memory for all that the format stores"),
            Unpackable::Shape => f.write_str("indices, elements and shape do not fit each other"),
            Unpackable::Index(dtype) => write!(f, "indices of type {dtype} are too small for the tensor"),
        }
    }
}

impl std::error::Error for Unpackable {}

impl Stored {
    /// Stores elements: `indices` has so many for each of them as there are dimensions, one element after the other.
    /// What stands twice is summed (of `bool`, or). The indices of a level that says no type of them are i32, or i64
    /// where one of them needs it.
    ///
    /// # Errors
    ///
    /// What does not fit.
    pub fn pack(shape: &[usize], format: &Format, indices: &[i64], elements: &Buffer) -> Result<Stored, Unpackable> {
        let ndim = shape.len();
        if let Some(size) = shape.iter().find(|n| **n as u128 > MAX_SIZE as u128) {
            return Err(Unpackable::Size(*size));
        }
        let is_square = |[a, b]: [usize; 2]| shape[a] == shape[b];
        if format.check(ndim).is_err()
            || !format.squares().all(|(_, square)| is_square(square))
            || indices.len() != elements.len() * ndim
        {
            return Err(Unpackable::Shape);
        }
        let inside = |at: &[i64]| at.iter().zip(shape).all(|(i, n)| usize::try_from(*i).is_ok_and(|i| i < *n));
        if let Some(outside) = indices.chunks_exact(ndim.max(1)).find(|at| !inside(at)) {
            return Err(Unpackable::OutOfRange(outside.to_vec()));
        }
        let Sorted { coordinates, depths, indices, elements } = Sorted::of(shape, format, indices, elements);
        let given = |e: usize| indices[e * ndim..(e + 1) * ndim].to_vec();
        let ranges = ranges(format, shape);

        let mut positions = vec![0i64; elements.len()];
        let outermost = vec![0i64; elements.len()];
        let mut count = 1i64;
        let (mut arrays, mut hidden) = (Vec::new(), Vec::new());
        let last = format.levels.len();
        for (k, level) in format.levels.iter().enumerate() {
            let kind = levels::of(level.kind).ok_or(Unpackable::Level(*level))?;
            let numbers = || coordinates[k].iter().max().map_or(0, |most| most + 1);
            let size = ranges[k].1.unwrap_or_else(numbers);
            room(level.kind, count, size)?;
            let unique = (k..last).find(|k| format.levels[*k].unique).unwrap_or(last);
            let mut packing = Packing {
                positions: &mut positions,
                coordinates: &coordinates[k],
                parents: if k == 0 { &outermost } else { &coordinates[k - 1] },
                count: &mut count,
                size,
                value: &|e| elements.get(e),
                fill: format.fill.unwrap_or(Literal::zero(elements.dtype())),
                begins: &|e| depths[e] <= unique,
            };
            let packed = kind.pack(&mut packing).map_err(|why| Unpackable::of(why, *level, &given))?;
            let large = || packed.arrays.iter().flatten().any(|v| i32::try_from(*v).is_err());
            let index = level.index.unwrap_or_else(|| if large() { DType::I64 } else { DType::I32 });
            for (array, own) in packed.arrays.into_iter().zip(kind.arrays()) {
                arrays.push(index_array(array, own.dtype_beside(index))?);
            }
            hidden.extend(packed.hidden);
        }
        let mut values = filled(format, elements.dtype(), count)?;
        coordinates::scatter(&elements, &positions, &mut values);
        arrays.push(vector(values));
        Ok(Stored { shape: shape.to_vec(), format: format.clone(), arrays, hidden })
    }

    /// A tensor of arrays for which [`crate::check`] gave these numbers.
    pub fn of_arrays(shape: Vec<usize>, format: Format, arrays: Vec<Value>, hidden: Vec<i64>) -> Stored {
        Stored { shape, format, arrays, hidden }
    }

    /// A tensor that is stored where this one is: these are its elements, one for each of this one's.
    #[must_use]
    pub fn followed_by(mut self, format: Format, elements: Value) -> Stored {
        self.arrays.pop();
        self.arrays.push(elements);
        Stored { format, ..self }
    }

    /// A tensor that is stored where this one is, with the elements of a sparse one: the fill where that has none.
    ///
    /// # Errors
    ///
    /// It has elements where this one stores nothing, and the format does not drop them; or it has unequal ones where
    /// this one stores one value; or there is no memory.
    pub fn followed_by_elements(&self, format: Format, of: &Value) -> Result<Stored, Unpackable> {
        let (ndim, places) = (self.shape.len(), of.places().ok_or(Unpackable::Shape)?);
        let count = self.arrays.last().map_or(0, |v| v.data().len());
        let mut values = filled(&format, of.dtype(), count as i64)?;
        let mut found = if self.shape.contains(&0) { Vec::new() } else { self.found()? };
        found.sort();
        let one = |e: usize| &places.indices[e * ndim..(e + 1) * ndim];
        for e in 0..of.data().len() {
            // Of one that is stored several times, the first has all of it.
            let from = found.partition_point(|(at, _)| &at[..] < one(e));
            let Some((_, position)) = found.get(from).filter(|(at, _)| at == one(e)) else {
                if format.drops {
                    continue;
                }
                return Err(Unpackable::Elsewhere(one(e).to_vec()));
            };
            values.set(*position as usize, of.data().get(e));
        }
        if let Some(level) = self.format.levels.last().filter(|_| !self.format.is_injective()) {
            self.shared_values(&found, &values, of).map_err(|pair| Unpackable::Unequal(*level, pair))?;
        }
        Ok(self.clone().followed_by(format, vector(values)))
    }

    /// Makes sure that all elements that one value stands for are that value; the indices of two that are not.
    fn shared_values(&self, found: &[(Vec<i64>, i64)], values: &Buffer, of: &Value) -> Result<(), [Vec<i64>; 2]> {
        let (ndim, places) = (self.shape.len(), of.places().map_or(&[][..], |p| &p.indices));
        let fill = of.places().map_or(Literal::zero(of.dtype()), |p| p.fill);
        let all: Vec<&[i64]> = places.chunks_exact(ndim.max(1)).collect();
        let element = |at: &[i64]| all.binary_search(&at).map_or(fill, |e| of.data().get(e));
        let Some((at, position)) = found.iter().find(|(at, p)| element(at) != values.get(*p as usize)) else {
            return Ok(());
        };
        let other = found.iter().find(|(other, p)| p == position && other != at);
        Err([at.clone(), other.map_or(at.clone(), |(other, _)| other.clone())])
    }

    /// The arrays of its levels, outermost first, then its elements: what [`crate::Parameter::Stored`] lists.
    pub fn arrays(&self) -> &[Value] {
        &self.arrays
    }

    /// The same, taken out.
    pub fn into_arrays(self) -> Vec<Value> {
        self.arrays
    }

    /// [`Self::try_elements`] of a tensor that is known to be small.
    ///
    /// # Panics
    ///
    /// Where there is no memory for them.
    pub fn elements(&self) -> Value {
        self.try_elements().unwrap_or_else(|why| panic!("{why}"))
    }

    /// All elements that it stores, which may be more than it was made of: a dense level below a position has all of
    /// its coordinates, with the fill where nothing was given.
    ///
    /// # Errors
    ///
    /// There is no memory for them: one value may stand for any number of elements.
    pub fn try_elements(&self) -> Result<Value, Unpackable> {
        let none = |values: &Value| Buffer::zeros(values.dtype(), 0);
        if let Some(values) = self.arrays.last().filter(|_| self.shape.contains(&0)) {
            let fill = self.format.fill.unwrap_or(Literal::zero(values.dtype()));
            let all = Value::summed(self.shape.clone(), Vec::new(), &none(values), fill);
            return Ok(all.unwrap_or_else(|| unreachable!("there is nothing in it")));
        }
        let found = self.found()?;
        let (indices, elements) = self.elements_at(&found);
        let fill = self.format.fill.unwrap_or(Literal::zero(elements.dtype()));
        let sorted = |indices: Vec<i64>, elements: &Buffer, fill: Literal| {
            Value::summed(self.shape.clone(), indices, elements, fill)
                .unwrap_or_else(|| unreachable!("coordinates are in the tensor"))
        };
        if self.format.is_injective() {
            // Levels that are not unique may have one element several times.
            return Ok(sorted(indices, &elements, fill));
        }
        let positions = Buffer::I64(found.iter().map(|(_, position)| *position).collect());
        let positions = sorted(indices.clone(), &positions, Literal::Int(0));
        let positions = (0..positions.data().len()).filter_map(|k| positions.data().get_int(k));
        Ok(sorted(indices, &elements, fill).stored_as(positions.map(|p| p as i64).collect()))
    }

    /// The indices and the elements of all that it stores, in the order of the levels: of levels that are not unique,
    /// one place may come several times.
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    pub fn listed(&self) -> Result<(Vec<i64>, Buffer), Unpackable> {
        let found = if self.shape.contains(&0) { Vec::new() } else { self.found()? };
        Ok(self.elements_at(&found))
    }

    fn elements_at(&self, found: &[(Vec<i64>, i64)]) -> (Vec<i64>, Buffer) {
        let Some(values) = self.arrays.last().map(Value::data) else { unreachable!("the elements come last") };
        let mut elements = Buffer::zeros(values.dtype(), found.len());
        let mut indices = Vec::with_capacity(found.len() * self.shape.len());
        for (e, (at, position)) in found.iter().enumerate() {
            elements.set(e, values.get(*position as usize));
            indices.extend(at);
        }
        (indices, elements)
    }

    /// The indices of what is stored, with the position of each, as the levels have it. The tensor is not empty.
    fn found(&self) -> Result<Vec<(Vec<i64>, i64)>, Unpackable> {
        let mut arrays = self.arrays.iter();
        let mut hidden = self.hidden.iter().map(|n| Expr::int(*n));
        // What the levels above store: the coordinates, outermost first, with the position below them.
        let mut found: Vec<(Vec<i64>, i64)> = vec![(Vec::new(), 0)];
        let mut count = 1;
        let ranges = ranges(&self.format, &self.shape);
        for (k, level) in self.format.levels.iter().enumerate() {
            let kind = levels::of(level.kind).unwrap_or_else(|| unreachable!("`pack` knows its levels"));
            let own: Vec<Vec<i64>> = arrays.by_ref().take(kind.arrays().len()).map(integers).collect();
            // Levels that have others below them have one coordinate for each position.
            let mut at: Vec<Option<usize>> = vec![None; count as usize];
            found.iter().enumerate().for_each(|(k, (_, p))| at[*p as usize] = Some(k));
            let path = |p: i64| at[p as usize].map_or(&[][..], |k| &found[k].0);
            let own_hidden: Vec<Expr> = hidden.by_ref().take(kind.hidden().len()).collect();
            let counted = || own_hidden.first().and_then(Expr::as_int).unwrap_or(0);
            let size = ranges[k].1.unwrap_or_else(counted);
            // Without an array that is as long as that.
            if level.kind.facts().full || level.kind == LevelKind::Range {
                fits(i128::from(count) * i128::from(size) * 16)?;
            }
            let parent = |p: i64| path(p).last().copied().unwrap_or(0);
            let by = self.format.derived(k).filter(|_| level.kind == LevelKind::Offset);
            let derived =
                |p: i64| by.as_ref().and_then(|c| c.value(&raw(path(p), &ranges))).map_or(0, |c| c - ranges[k].0);
            let entries = kind.unpack(&own, &Unpacking { count, size, parent: &parent, derived: &derived });
            // A position that is left unused has no fibre.
            let entries = entries.iter().filter(|e| at[e.above as usize].is_some());
            let below = entries.map(|e| (path(e.above).iter().copied().chain([e.coordinate]).collect(), e.position));
            let below = below.collect();
            let counts = Counts { above: Expr::int(count), size: Expr::int(size), hidden: own_hidden };
            count = kind.positions(&counts).as_int().unwrap_or_else(|| unreachable!("it is computed of constants"));
            found = below;
        }
        Ok(self.placed(&found, &ranges))
    }

    /// Coordinates, with positions, as indices. Those that are outside of the tensor are left out: levels that store
    /// regions have room beside it.
    fn placed(&self, found: &[(Vec<i64>, i64)], ranges: &[(i64, Option<i64>)]) -> Vec<(Vec<i64>, i64)> {
        let by = self.format.indices(self.shape.len());
        let inside = |at: &[i64]| at.iter().zip(&self.shape).all(|(i, n)| usize::try_from(*i).is_ok_and(|i| i < *n));
        let one = |(coordinates, position): &(Vec<i64>, i64)| {
            let coordinates = raw(coordinates, ranges);
            let at: Vec<i64> = by.iter().map(|c| c.as_ref()?.value(&coordinates)).collect::<Option<_>>()?;
            inside(&at).then_some((at, *position))
        };
        found.iter().filter_map(one).collect()
    }

    /// The numbers of positions that are sizes of lowered programs ([`crate::Layout::hidden`]), in their order.
    pub fn hidden(&self) -> &[i64] {
        &self.hidden
    }
}

/// What the format says of coordinates that are counted from the least.
fn raw(coordinates: &[i64], ranges: &[(i64, Option<i64>)]) -> Vec<i64> {
    coordinates.iter().zip(ranges).map(|(c, (low, _))| c + low).collect()
}

/// Whether there is memory for the arrays of a level, of whose positions above there are `above`. How many there are
/// may follow from sizes alone.
fn room(kind: LevelKind, above: i64, size: i64) -> Result<(), Unpackable> {
    match kind {
        // They have no arrays.
        LevelKind::Dense
        | LevelKind::Range
        | LevelKind::Offset
        | LevelKind::LowerTriangular
        | LevelKind::UpperTriangular
        | LevelKind::Symmetric => Ok(()),
        LevelKind::Bytemap | LevelKind::Bitmap => fits(i128::from(above) * i128::from(size) * 8),
        // A number for each position above, of 8 bytes and of the type of indices.
        _ => fits((i128::from(above) + 1) * 16),
    }
}

fn fits(most: i128) -> Result<(), Unpackable> {
    if bytes::fit(most.unsigned_abs()) { Ok(()) } else { Err(Unpackable::Memory(u64::try_from(most).ok())) }
}

fn index_array(array: Vec<i64>, index: DType) -> Result<Value, Unpackable> {
    fn all<T: TryFrom<i64>>(array: &[i64]) -> Option<Vec<T>> {
        array.iter().map(|v| T::try_from(*v).ok()).collect()
    }
    let buffer = match index {
        DType::U8 => all(&array).map(Buffer::U8),
        DType::U16 => all(&array).map(Buffer::U16),
        DType::I32 => all(&array).map(Buffer::I32),
        DType::I64 => Some(Buffer::I64(array)),
        _ => None,
    };
    buffer.map(vector).ok_or(Unpackable::Index(index))
}

fn integers(array: &Value) -> Vec<i64> {
    let one = |k| array.data().get_int(k).map_or(0, |v| v as i64);
    (0..array.data().len()).map(one).collect()
}

fn filled(format: &Format, dtype: DType, count: i64) -> Result<Buffer, Unpackable> {
    fits(i128::from(count) * dtype.size() as i128)?;
    let mut buffer = Buffer::zeros(dtype, count as usize);
    if let Some(fill) = format.fill {
        for k in 0..buffer.len() {
            buffer.set(k, fill);
        }
    }
    Ok(buffer)
}

fn vector(buffer: Buffer) -> Value {
    let shape = vec![buffer.len()];
    let Some(value) = Value::new(shape, buffer) else { unreachable!("a vector is as long as its elements are many") };
    value
}
