//! Packing of elements into the arrays of a format, and unpacking. A packed tensor ([`Stored`]) is the data behind a
//! parameter of a lowered program: the arrays of the levels, the values, and the hidden sizes.

use crate::coordinates::{Sorted, ranges};
use crate::level::{Counts, Misfit, Packing, Unpacking};
use crate::levels;
use std::fmt;
use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::value::MAX_SIZE;
use taffeta_ast::{Buffer, DType, Expr, Literal, Value, bytes, coordinates};

/// Tensor packed in a format.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    shape: Vec<usize>,
    format: Format,
    arrays: Vec<Value>,
    hidden: Vec<i64>,
}

/// Reason why elements cannot be packed in a format.
#[derive(Clone, Debug, PartialEq)]
pub enum Unpackable {
    /// Level that cannot be packed.
    Level(Level),
    /// Indices of an element that is not in the tensor.
    OutOfRange(Vec<i64>),
    /// Mismatch of the format with the number of dimensions or with a dimension pair that must be square, or of the
    /// elements in type or number.
    Shape,
    /// Indices of an element where the level stores nothing.
    Outside(Level, Vec<i64>),
    /// Indices of an element outside of the pattern.
    Elsewhere(Vec<i64>),
    /// Two elements that the level stores as one, and that are not equal.
    Unequal(Level, [Vec<i64>; 2]),
    /// Two elements in a fibre of the level, which has room for one.
    Second(Level, [Vec<i64>; 2]),
    /// Dimension size beyond the maximum.
    Size(usize),
    /// Size of the storage in bytes, if it can be counted, for which there is no memory.
    Memory(Option<u64>),
    /// Index type that is too small for the number of elements, or for a coordinate.
    Index(DType),
}

impl Unpackable {
    /// Converts the error of a level; `at` returns the indices of an element.
    fn of(why: Misfit, level: Level, at: &dyn Fn(usize) -> Vec<i64>) -> Unpackable {
        match why {
            Misfit::Outside(e) => Unpackable::Outside(level, at(e)),
            Misfit::Unequal(a, b) => Unpackable::Unequal(level, [at(a), at(b)]),
            Misfit::Second(a, b) => Unpackable::Second(level, [at(a), at(b)]),
            Misfit::TooMany => Unpackable::Memory(None),
        }
    }
}

/// Indices of an element, displayed as `(0, 2)`.
struct ElementIndex<'i>(&'i [i64]);

impl fmt::Display for ElementIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(i64::to_string).collect();
        write!(f, "({})", all.join(", "))
    }
}

impl fmt::Display for Unpackable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unpackable::Level(level) => write!(f, "storing elements in level `{level}` is not supported yet"),
            Unpackable::OutOfRange(at) => write!(f, "the element at {} is outside the tensor", ElementIndex(at)),
            Unpackable::Outside(level, at) => {
                write!(f, "cannot store the element at {}: `{level}` stores nothing there", ElementIndex(at))
            }
            Unpackable::Elsewhere(at) => write!(f, "the element at {} is outside the pattern", ElementIndex(at)),
            Unpackable::Unequal(level, [a, b]) => {
                write!(
                    f,
                    "the elements at {} and {} differ, but `{level}` stores one for both",
                    ElementIndex(a),
                    ElementIndex(b)
                )
            }
            Unpackable::Second(level, [a, b]) => {
                let [a, b] = [ElementIndex(a), ElementIndex(b)];
                write!(f, "cannot store the elements at {a} and {b}: `{level}` stores at most one of them")
            }
            Unpackable::Size(size) => write!(f, "size {size} exceeds {MAX_SIZE} (2^47)"),
            Unpackable::Memory(Some(most)) => {
                write!(f, "{} of stored arrays do not fit in memory", bytes::amount(*most))
            }
            Unpackable::Memory(None) => f.write_str("the arrays that the format stores do not fit in memory"),
            Unpackable::Shape => f.write_str("indices, elements and shape do not match"),
            Unpackable::Index(dtype) => write!(f, "indices of type {dtype} are too small for the tensor"),
        }
    }
}

impl std::error::Error for Unpackable {}

impl Stored {
    /// Packs elements; `indices` holds one index per dimension for each element, one element after the other.
    /// Duplicates are summed (or combined by `or`, for `bool`). The indices of a level without an index type are i32,
    /// or i64 if one of them needs it.
    ///
    /// # Errors
    ///
    /// The first misfit that is found.
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

    /// Builds a tensor from arrays that [`crate::check`] has accepted, and the hidden sizes that it returned.
    pub fn of_arrays(shape: Vec<usize>, format: Format, arrays: Vec<Value>, hidden: Vec<i64>) -> Stored {
        Stored { shape, format, arrays, hidden }
    }

    /// Replaces the values and the format: a tensor stored over this one's pattern, with one element for each of this
    /// one's.
    #[must_use]
    pub fn followed_by(mut self, format: Format, elements: Value) -> Stored {
        self.arrays.pop();
        self.arrays.push(elements);
        Stored { format, ..self }
    }

    /// Packs the elements of a sparse tensor over this one's pattern, with the fill value where the sparse tensor has
    /// no element.
    ///
    /// # Errors
    ///
    /// An element outside of the pattern, if the format does not drop it; unequal elements where this tensor stores one
    /// value; or a lack of memory.
    pub fn followed_by_elements(&self, format: Format, of: &Value) -> Result<Stored, Unpackable> {
        let (ndim, places) = (self.shape.len(), of.places().ok_or(Unpackable::Shape)?);
        let count = self.arrays.last().map_or(0, |v| v.data().len());
        let mut values = filled(&format, of.dtype(), count as i64)?;
        let mut found = if self.shape.contains(&0) { Vec::new() } else { self.found()? };
        found.sort();
        let one = |e: usize| &places.indices[e * ndim..(e + 1) * ndim];
        for e in 0..of.data().len() {
            // An element that is stored several times is held by its first position.
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

    /// Checks that all elements that share a stored value equal it; the error has the indices of two that differ.
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

    /// Returns the arrays of the levels, outermost first, then the values, in the order of
    /// [`crate::Parameter::Stored`].
    pub fn arrays(&self) -> &[Value] {
        &self.arrays
    }

    /// Returns the sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.arrays.last().map_or(DType::F64, Value::dtype)
    }

    /// Returns the format.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Moves the arrays out.
    pub fn into_arrays(self) -> Vec<Value> {
        self.arrays
    }

    /// Returns all stored elements, like [`Self::try_elements`], of a tensor that is known to be small.
    ///
    /// # Panics
    ///
    /// If there is no memory for them.
    pub fn elements(&self) -> Value {
        self.try_elements().unwrap_or_else(|why| panic!("{why}"))
    }

    /// Returns all stored elements. They may be more than were packed: a dense level below a position stores all of its
    /// coordinates, with the fill value where none was given.
    ///
    /// # Errors
    ///
    /// A lack of memory, since one value may stand for any number of elements.
    pub fn try_elements(&self) -> Result<Value, Unpackable> {
        let none = |values: &Value| Buffer::zeros(values.dtype(), 0);
        if let Some(values) = self.arrays.last().filter(|_| self.shape.contains(&0)) {
            let fill = self.format.fill.unwrap_or(Literal::zero(values.dtype()));
            let all = Value::summed(self.shape.clone(), Vec::new(), &none(values), fill);
            return Ok(all.unwrap_or_else(|| unreachable!("an empty tensor has a value")));
        }
        let found = self.found()?;
        let (indices, elements) = self.elements_at(&found);
        let fill = self.format.fill.unwrap_or(Literal::zero(elements.dtype()));
        let sorted = |indices: Vec<i64>, elements: &Buffer, fill: Literal| {
            Value::summed(self.shape.clone(), indices, elements, fill)
                .unwrap_or_else(|| unreachable!("indices are in range"))
        };
        if self.format.is_injective() {
            // Levels that are not unique may store an element several times.
            return Ok(sorted(indices, &elements, fill));
        }
        let positions = Buffer::I64(found.iter().map(|(_, position)| *position).collect());
        let positions = sorted(indices.clone(), &positions, Literal::Int(0));
        let positions = (0..positions.data().len()).filter_map(|k| positions.data().get_int(k));
        Ok(sorted(indices, &elements, fill).stored_as(positions.map(|p| p as i64).collect()))
    }

    /// Returns the indices and values of all stored elements, in the order of the levels; levels that are not unique
    /// may list a place several times.
    ///
    /// # Errors
    ///
    /// A lack of memory.
    pub fn listed(&self) -> Result<(Vec<i64>, Buffer), Unpackable> {
        let found = if self.shape.contains(&0) { Vec::new() } else { self.found()? };
        Ok(self.elements_at(&found))
    }

    /// Returns the tensor with its lists in the order of coordinates, as [`Self::pack`] makes them.
    ///
    /// # Errors
    ///
    /// A lack of memory.
    pub fn sorted(&self) -> Result<Stored, Unpackable> {
        let (indices, elements) = self.listed()?;
        Stored::pack(&self.shape, &self.format, &indices, &elements)
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

    /// Returns the indices of all stored elements, with the position of each, in the order of the levels. The tensor
    /// must not be empty.
    fn found(&self) -> Result<Vec<(Vec<i64>, i64)>, Unpackable> {
        let mut arrays = self.arrays.iter();
        let mut hidden = self.hidden.iter().map(|n| Expr::int(*n));
        // Entries of the levels above: the coordinates, outermost first, and the position below them.
        let mut found: Vec<(Vec<i64>, i64)> = vec![(Vec::new(), 0)];
        let mut count = 1;
        let ranges = ranges(&self.format, &self.shape);
        for (k, level) in self.format.levels.iter().enumerate() {
            let kind = levels::of(level.kind).unwrap_or_else(|| unreachable!("`pack` knows its levels"));
            let own: Vec<Vec<i64>> = arrays.by_ref().take(kind.arrays().len()).map(integers).collect();
            // Levels with others below them have one coordinate per position.
            let mut at: Vec<Option<usize>> = vec![None; count as usize];
            found.iter().enumerate().for_each(|(k, (_, p))| at[*p as usize] = Some(k));
            let path = |p: i64| at[p as usize].map_or(&[][..], |k| &found[k].0);
            let own_hidden: Vec<Expr> = hidden.by_ref().take(kind.hidden().len()).collect();
            let counted = || own_hidden.first().and_then(Expr::as_int).unwrap_or(0);
            let size = ranges[k].1.unwrap_or_else(counted);
            // These levels expand to all coordinates without an array of that length.
            if level.kind.facts().full || level.kind == LevelKind::Range {
                fits(i128::from(count) * i128::from(size) * LISTED)?;
            }
            let parent = |p: i64| path(p).last().copied().unwrap_or(0);
            let by = self.format.derived(k).filter(|_| level.kind == LevelKind::Offset);
            let derived =
                |p: i64| by.as_ref().and_then(|c| c.value(&raw(path(p), &ranges))).map_or(0, |c| c - ranges[k].0);
            let entries = kind.unpack(&own, &Unpacking { count, size, parent: &parent, derived: &derived });
            // An unused position has no fibre.
            let entries = entries.iter().filter(|e| at[e.above as usize].is_some());
            let below = entries.map(|e| (path(e.above).iter().copied().chain([e.coordinate]).collect(), e.position));
            let below = below.collect();
            let counts = Counts { above: Expr::int(count), size: Expr::int(size), hidden: own_hidden };
            count = kind.positions(&counts).as_int().unwrap_or_else(|| unreachable!("constant counts give a constant"));
            found = below;
        }
        Ok(self.placed(&found, &ranges))
    }

    /// Converts coordinates, with positions, to indices. Places outside of the tensor are dropped: levels that store
    /// regions extend beyond it.
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

    /// Returns the hidden sizes of lowered programs ([`crate::Layout::hidden`]), in their order.
    pub fn hidden(&self) -> &[i64] {
        &self.hidden
    }
}

/// Bytes of a listed element: its coordinates, and its position.
const LISTED: i128 = 80;

/// Converts coordinates that count from the least to values of the format's coordinate expressions.
fn raw(coordinates: &[i64], ranges: &[(i64, Option<i64>)]) -> Vec<i64> {
    coordinates.iter().zip(ranges).map(|(c, (low, _))| c + low).collect()
}

/// Checks that there is memory for the arrays of a level below `above` positions: their length may follow from sizes
/// alone.
fn room(kind: LevelKind, above: i64, size: i64) -> Result<(), Unpackable> {
    match kind {
        // No arrays.
        LevelKind::Dense
        | LevelKind::Range
        | LevelKind::Offset
        | LevelKind::LowerTriangular
        | LevelKind::UpperTriangular
        | LevelKind::Symmetric => Ok(()),
        LevelKind::Bytemap | LevelKind::Bitmap => fits(i128::from(above) * i128::from(size) * 8),
        // One number per position above, at 8 bytes each, and a copy of it in the index type.
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
    let Some(value) = Value::new(shape, buffer) else { unreachable!("a vector has the length of its buffer") };
    value
}
