//! Tensors in a format, as data: the arrays of their levels, and their elements.

use crate::levels::{self, Counts, Packing, Unpacking};
use std::fmt;
use taffeta_ast::format::{Format, Level};
use taffeta_ast::{Buffer, DType, Expr, Literal, Value};

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
    /// There are more elements, or larger coordinates, than indices of that type can say.
    Index(DType),
}

impl fmt::Display for Unpackable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unpackable::Level(level) => write!(f, "nothing can be stored in the level `{level}` yet"),
            Unpackable::OutOfRange(indices) => {
                let all: Vec<String> = indices.iter().map(i64::to_string).collect();
                write!(f, "there is an element at ({}), which is not in the tensor", all.join(", "))
            }
            Unpackable::Shape => f.write_str("indices, elements and shape do not fit each other"),
            Unpackable::Index(dtype) => write!(f, "indices of type {dtype} are too small for the tensor"),
        }
    }
}

impl std::error::Error for Unpackable {}

impl Stored {
    /// Stores elements: `indices` has so many for each of them as there are dimensions, one element after the other.
    /// What stands twice is summed (of `bool`, or).
    ///
    /// # Errors
    ///
    /// What does not fit.
    pub fn pack(shape: &[usize], format: &Format, indices: &[i64], elements: &Buffer) -> Result<Stored, Unpackable> {
        let ndim = shape.len();
        if format.check(ndim).is_err() || indices.len() != elements.len() * ndim {
            return Err(Unpackable::Shape);
        }
        let inside = |at: &[i64]| at.iter().zip(shape).all(|(i, n)| usize::try_from(*i).is_ok_and(|i| i < *n));
        if let Some(outside) = indices.chunks_exact(ndim.max(1)).find(|at| !inside(at)) {
            return Err(Unpackable::OutOfRange(outside.to_vec()));
        }
        let order = format.order();
        let mut sorted: Vec<usize> = (0..elements.len()).collect();
        let key = |e: usize| order.iter().map(move |d| indices[e * ndim + d]);
        sorted.sort_by(|a, b| key(*a).cmp(key(*b)));

        let mut positions = vec![0i64; sorted.len()];
        let mut parents = vec![0i64; sorted.len()];
        let mut count = 1i64;
        let (mut arrays, mut hidden) = (Vec::new(), Vec::new());
        for (level, dimension) in format.levels.iter().zip(&order) {
            let kind = levels::of(level.kind).ok_or(Unpackable::Level(*level))?;
            let coordinates: Vec<i64> = sorted.iter().map(|e| indices[e * ndim + dimension]).collect();
            let mut packing = Packing {
                positions: &mut positions,
                coordinates: &coordinates,
                parents: &parents,
                count: &mut count,
                size: shape[*dimension] as i64,
                value: &|e| elements.get(sorted[e]),
                fill: format.fill.unwrap_or(Literal::zero(elements.dtype())),
                unique: level.unique,
            };
            let packed = kind.pack(&mut packing);
            let index = level.index.unwrap_or(DType::I32);
            for array in packed.arrays {
                arrays.push(index_array(&array, index)?);
            }
            hidden.extend(packed.hidden);
            parents = coordinates;
        }
        let mut values = filled(format, elements.dtype(), count);
        let mut last = None;
        for (e, p) in sorted.iter().zip(&positions) {
            let at = *p as usize;
            let new = elements.get(*e);
            let value = if last == Some(at) { both(values.get(at), new) } else { new };
            values.set(at, value);
            last = Some(at);
        }
        arrays.push(vector(values));
        Ok(Stored { shape: shape.to_vec(), format: format.clone(), arrays, hidden })
    }

    /// The arrays of its levels, outermost first, then its elements: what [`crate::Parameter::Stored`] lists.
    pub fn arrays(&self) -> &[Value] {
        &self.arrays
    }

    /// All elements that it stores, which may be more than it was made of: a dense level below a position has all of
    /// its coordinates, with the fill where nothing was given.
    pub fn elements(&self) -> Value {
        let mut arrays = self.arrays.iter();
        let mut hidden = self.hidden.iter().map(|n| Expr::int(*n));
        // What the levels above store: the coordinates, outermost first, with the position below them.
        let mut found: Vec<(Vec<i64>, i64)> = vec![(Vec::new(), 0)];
        let mut count = 1;
        for (level, dimension) in self.format.levels.iter().zip(self.format.order()) {
            let kind = levels::of(level.kind).unwrap_or_else(|| unreachable!("`pack` knows its levels"));
            let own: Vec<Vec<i64>> = arrays.by_ref().take(kind.arrays().len()).map(integers).collect();
            // Levels that have others below them have one coordinate for each position.
            let mut at: Vec<Option<usize>> = vec![None; count as usize];
            found.iter().enumerate().for_each(|(k, (_, p))| at[*p as usize] = Some(k));
            let path = |p: i64| at[p as usize].map_or(&[][..], |k| &found[k].0);
            let size = self.shape[dimension] as i64;
            let parent = |p: i64| path(p).last().copied().unwrap_or(0);
            let entries = kind.unpack(&own, &Unpacking { count, size, parent: &parent });
            let below =
                entries.iter().map(|e| (path(e.above).iter().copied().chain([e.coordinate]).collect(), e.position));
            let below = below.collect();
            let hidden = hidden.by_ref().take(kind.hidden().len()).collect();
            let counts = Counts { above: Expr::int(count), size: Expr::int(size), hidden };
            count = kind.positions(&counts).as_int().unwrap_or_else(|| unreachable!("it is computed of constants"));
            found = below;
        }
        let order = self.format.order();
        let mut sorted: Vec<(Vec<i64>, usize)> = Vec::with_capacity(found.len());
        for (coordinates, position) in found {
            let mut at = vec![0; order.len()];
            order.iter().zip(coordinates).for_each(|(d, c)| at[*d] = c);
            sorted.push((at, position as usize));
        }
        sorted.sort();
        let Some(values) = self.arrays.last().map(Value::data) else { unreachable!("the elements come last") };
        let mut elements = Buffer::zeros(values.dtype(), sorted.len());
        for (e, (_, position)) in sorted.iter().enumerate() {
            elements.set(e, values.get(*position));
        }
        let indices = sorted.into_iter().flat_map(|(at, _)| at).collect();
        let fill = self.format.fill.unwrap_or(Literal::zero(values.dtype()));
        Value::sparse(self.shape.clone(), indices, elements, fill)
            .unwrap_or_else(|| unreachable!("a position has one place in the tensor"))
    }

    /// The numbers of positions that are sizes of lowered programs ([`crate::Layout::hidden`]), in their order.
    pub fn hidden(&self) -> &[i64] {
        &self.hidden
    }
}

/// An element that stands twice.
fn both(a: Literal, b: Literal) -> Literal {
    match (a, b) {
        (Literal::Bool(a), Literal::Bool(b)) => Literal::Bool(a || b),
        (Literal::Int(a), Literal::Int(b)) => Literal::Int(a.wrapping_add(b)),
        (Literal::Float(a), Literal::Float(b)) => Literal::Float(a + b),
        (_, b) => b,
    }
}

fn index_array(array: &[i64], index: DType) -> Result<Value, Unpackable> {
    let (_, most) = index.int_range().ok_or(Unpackable::Index(index))?;
    if array.iter().any(|v| i128::from(*v) > most) {
        return Err(Unpackable::Index(index));
    }
    let mut buffer = Buffer::zeros(index, array.len());
    for (k, v) in array.iter().enumerate() {
        buffer.set(k, Literal::Int(i128::from(*v)));
    }
    Ok(vector(buffer))
}

fn integers(array: &Value) -> Vec<i64> {
    let one = |k| array.data().get_int(k).map_or(0, |v| v as i64);
    (0..array.data().len()).map(one).collect()
}

fn filled(format: &Format, dtype: DType, count: i64) -> Buffer {
    let mut buffer = Buffer::zeros(dtype, count as usize);
    if let Some(fill) = format.fill {
        for k in 0..buffer.len() {
            buffer.set(k, fill);
        }
    }
    buffer
}

fn vector(buffer: Buffer) -> Value {
    let shape = vec![buffer.len()];
    let Some(value) = Value::new(shape, buffer) else { unreachable!("a vector is as long as its elements are many") };
    value
}
