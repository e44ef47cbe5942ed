//! Tensor values, the data on which programs run. A dense value is a contiguous row-major buffer of any element type;
//! the value of a structured parameter holds its stored elements with their indices, whatever the format.

use crate::coordinates;
use crate::dtype::DType;
use crate::half_precision::{to_bf16, to_f16};
use crate::literal::Literal;
use half::vec::HalfBitsVecExt as _;
use half::{bf16, f16};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Elements of one type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // one variant per DType
pub enum Buffer {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Runs `$body` with `$v` bound to the typed vector of any buffer.
#[macro_export]
macro_rules! with_buffer {
    ($buffer:expr, $v:ident => $body:expr) => {
        match $buffer {
            $crate::value::Buffer::Bool($v) => $body,
            $crate::value::Buffer::I8($v) => $body,
            $crate::value::Buffer::I16($v) => $body,
            $crate::value::Buffer::I32($v) => $body,
            $crate::value::Buffer::I64($v) => $body,
            $crate::value::Buffer::U8($v) => $body,
            $crate::value::Buffer::U16($v) => $body,
            $crate::value::Buffer::U32($v) => $body,
            $crate::value::Buffer::U64($v) => $body,
            $crate::value::Buffer::F16($v) => $body,
            $crate::value::Buffer::Bf16($v) => $body,
            $crate::value::Buffer::F32($v) => $body,
            $crate::value::Buffer::F64($v) => $body,
        }
    };
}

impl Buffer {
    /// Changes the number of elements; new ones are zeros.
    pub fn resize(&mut self, len: usize) {
        with_buffer!(self, v => v.resize(len, Default::default()));
    }

    /// Creates `len` zeros (`false` for `bool`).
    pub fn zeros(dtype: DType, len: usize) -> Buffer {
        match dtype {
            DType::Bool => Buffer::Bool(vec![false; len]),
            DType::I8 => Buffer::I8(vec![0; len]),
            DType::I16 => Buffer::I16(vec![0; len]),
            DType::I32 => Buffer::I32(vec![0; len]),
            DType::I64 => Buffer::I64(vec![0; len]),
            DType::U8 => Buffer::U8(vec![0; len]),
            DType::U16 => Buffer::U16(vec![0; len]),
            DType::U32 => Buffer::U32(vec![0; len]),
            DType::U64 => Buffer::U64(vec![0; len]),
            // Zeroed as integers, for which the system provides zero pages, as for all other types: the threads that
            // compute with the memory are the first to touch it.
            DType::F16 => Buffer::F16(vec![0u16; len].reinterpret_into()),
            DType::Bf16 => Buffer::Bf16(vec![0u16; len].reinterpret_into()),
            DType::F32 => Buffer::F32(vec![0.0; len]),
            DType::F64 => Buffer::F64(vec![0.0; len]),
        }
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        match self {
            Buffer::Bool(_) => DType::Bool,
            Buffer::I8(_) => DType::I8,
            Buffer::I16(_) => DType::I16,
            Buffer::I32(_) => DType::I32,
            Buffer::I64(_) => DType::I64,
            Buffer::U8(_) => DType::U8,
            Buffer::U16(_) => DType::U16,
            Buffer::U32(_) => DType::U32,
            Buffer::U64(_) => DType::U64,
            Buffer::F16(_) => DType::F16,
            Buffer::Bf16(_) => DType::Bf16,
            Buffer::F32(_) => DType::F32,
            Buffer::F64(_) => DType::F64,
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        with_buffer!(self, v => v.len())
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the element at `i` as f64 (integers beyond 2^53 are rounded; `bool` is 0 or 1), for summaries and
    /// comparisons.
    pub fn get_f64(&self, i: usize) -> f64 {
        match self {
            Buffer::Bool(v) => f64::from(u8::from(v[i])),
            Buffer::I8(v) => f64::from(v[i]),
            Buffer::I16(v) => f64::from(v[i]),
            Buffer::I32(v) => f64::from(v[i]),
            Buffer::I64(v) => v[i] as f64,
            Buffer::U8(v) => f64::from(v[i]),
            Buffer::U16(v) => f64::from(v[i]),
            Buffer::U32(v) => f64::from(v[i]),
            Buffer::U64(v) => v[i] as f64,
            Buffer::F16(v) => v[i].to_f64(),
            Buffer::Bf16(v) => v[i].to_f64(),
            Buffer::F32(v) => f64::from(v[i]),
            Buffer::F64(v) => v[i],
        }
    }

    /// Returns the element at `i` as an exact integer; `None` for floats.
    pub fn get_int(&self, i: usize) -> Option<i128> {
        match self {
            Buffer::Bool(v) => Some(i128::from(v[i])),
            Buffer::I8(v) => Some(i128::from(v[i])),
            Buffer::I16(v) => Some(i128::from(v[i])),
            Buffer::I32(v) => Some(i128::from(v[i])),
            Buffer::I64(v) => Some(i128::from(v[i])),
            Buffer::U8(v) => Some(i128::from(v[i])),
            Buffer::U16(v) => Some(i128::from(v[i])),
            Buffer::U32(v) => Some(i128::from(v[i])),
            Buffer::U64(v) => Some(i128::from(v[i])),
            Buffer::F16(_) | Buffer::Bf16(_) | Buffer::F32(_) | Buffer::F64(_) => None,
        }
    }
}

/// Access to single elements as typed constants.
impl Buffer {
    /// Returns the element at `i`.
    pub fn get(&self, i: usize) -> Literal {
        match self {
            Buffer::Bool(v) => Literal::Bool(v[i]),
            Buffer::I8(v) => Literal::Int(i128::from(v[i])),
            Buffer::I16(v) => Literal::Int(i128::from(v[i])),
            Buffer::I32(v) => Literal::Int(i128::from(v[i])),
            Buffer::I64(v) => Literal::Int(i128::from(v[i])),
            Buffer::U8(v) => Literal::Int(i128::from(v[i])),
            Buffer::U16(v) => Literal::Int(i128::from(v[i])),
            Buffer::U32(v) => Literal::Int(i128::from(v[i])),
            Buffer::U64(v) => Literal::Int(i128::from(v[i])),
            Buffer::F16(v) => Literal::Float(v[i].to_f64()),
            Buffer::Bf16(v) => Literal::Float(v[i].to_f64()),
            Buffer::F32(v) => Literal::Float(f64::from(v[i])),
            Buffer::F64(v) => Literal::Float(v[i]),
        }
    }

    /// Stores `value`, a constant of the element type (integers in range, floats rounded to it), at `i`. Returns
    /// whether its kind matches the element type.
    pub fn set(&mut self, i: usize, value: Literal) -> bool {
        match (self, value) {
            (Buffer::Bool(v), Literal::Bool(b)) => v[i] = b,
            (Buffer::I8(v), Literal::Int(x)) => v[i] = x as i8,
            (Buffer::I16(v), Literal::Int(x)) => v[i] = x as i16,
            (Buffer::I32(v), Literal::Int(x)) => v[i] = x as i32,
            (Buffer::I64(v), Literal::Int(x)) => v[i] = x as i64,
            (Buffer::U8(v), Literal::Int(x)) => v[i] = x as u8,
            (Buffer::U16(v), Literal::Int(x)) => v[i] = x as u16,
            (Buffer::U32(v), Literal::Int(x)) => v[i] = x as u32,
            (Buffer::U64(v), Literal::Int(x)) => v[i] = x as u64,
            (Buffer::F16(v), Literal::Float(x)) => v[i] = to_f16(x),
            (Buffer::Bf16(v), Literal::Float(x)) => v[i] = to_bf16(x),
            (Buffer::F32(v), Literal::Float(x)) => v[i] = x as f32,
            (Buffer::F64(v), Literal::Float(x)) => v[i] = x,
            _ => return false,
        }
        true
    }
}

/// Tensor: elements in row-major order and a shape whose product is their number. A sparse one ([`Value::sparse`]) has
/// some of its elements in row-major order, with their indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    shape: Vec<usize>,
    data: Buffer,
    places: Option<Arc<Places>>,
}

/// Coordinates of the elements of a sparse tensor.
#[derive(Clone, Debug)]
pub struct Places {
    /// Indices of one element after the other, in row-major order, without duplicates.
    pub indices: Vec<i64>,
    /// Value of all other elements.
    pub fill: Literal,
    /// Number of each element's stored value, where a format stores one value for several elements.
    pub stored_as: Option<Vec<i64>>,
}

/// Equality ignores shared storage, which is a property of formats and not of the tensor.
impl PartialEq for Places {
    fn eq(&self, other: &Places) -> bool {
        self.indices == other.indices && self.fill == other.fill
    }
}

impl Value {
    /// Creates a tensor from its elements; `None` if the shape's product is not their number.
    pub fn new(shape: Vec<usize>, data: Buffer) -> Option<Value> {
        (element_count(&shape)? == data.len()).then_some(Value { shape, data, places: None })
    }

    /// Creates a tensor of zeros; `None` if the number of elements or bytes overflows.
    pub fn zeros(dtype: DType, shape: Vec<usize>) -> Option<Value> {
        let len = element_count(&shape)?;
        len.checked_mul(dtype.size()).filter(|b| *b <= isize::MAX as usize)?;
        Some(Value { shape, data: Buffer::zeros(dtype, len), places: None })
    }

    /// Creates a scalar from a buffer of one element.
    pub fn scalar(data: Buffer) -> Option<Value> {
        Value::new(Vec::new(), data)
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Returns the sizes; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the elements, row-major.
    pub fn data(&self) -> &Buffer {
        &self.data
    }

    /// Returns the elements for writing.
    pub fn data_mut(&mut self) -> &mut Buffer {
        &mut self.data
    }

    /// Creates a sparse tensor: `indices` holds one index per dimension for each of `elements`. `None` if indices are
    /// out of range, not in row-major order, or of the wrong number.
    ///
    /// ```
    /// use taffeta_ast::{Buffer, Literal, Value};
    ///
    /// let wide = vec![1_000_000_000; 2];
    /// let a = Value::sparse(wide, vec![3, 5, 4, 0], Buffer::F64(vec![1.5, 2.5]), Literal::Float(0.0)).unwrap();
    /// assert_eq!((a.data().len(), a.places().map(|p| p.indices.len())), (2, Some(4)));
    /// ```
    pub fn sparse(shape: Vec<usize>, indices: Vec<i64>, elements: Buffer, fill: Literal) -> Option<Value> {
        let ndim = shape.len();
        let inside = |at: &[i64]| at.iter().zip(&shape).all(|(i, n)| usize::try_from(*i).is_ok_and(|i| i < *n));
        let fits = ndim > 0 && indices.len() == elements.len().checked_mul(ndim)?;
        let sorted = || indices.chunks_exact(ndim).is_sorted_by(|a, b| a < b);
        let ok = fits && indices.chunks_exact(ndim).all(inside) && sorted();
        ok.then(|| Value { shape, data: elements, places: Some(Arc::new(Places { indices, fill, stored_as: None })) })
    }

    /// Creates a sparse tensor of elements in any order. Elements with equal indices are summed (`bool` uses or;
    /// integers wrap). `None` if indices are out of range, or of the wrong number.
    ///
    /// ```
    /// use taffeta_ast::{Buffer, Literal, Value};
    ///
    /// let (indices, elements) = (vec![2, 1, 0, 0, 2, 1], Buffer::I32(vec![1, 5, 2]));
    /// let a = Value::summed(vec![3, 3], indices, &elements, Literal::Int(0)).unwrap();
    /// assert_eq!((a.data(), &a.places().unwrap().indices[..]), (&Buffer::I32(vec![5, 3]), &[0, 0, 2, 1][..]));
    /// ```
    pub fn summed(shape: Vec<usize>, indices: Vec<i64>, elements: &Buffer, fill: Literal) -> Option<Value> {
        let ndim = shape.len();
        let inside = |at: &[i64]| at.iter().zip(&shape).all(|(i, n)| usize::try_from(*i).is_ok_and(|i| i < *n));
        let fits = ndim > 0 && indices.len() == elements.len().checked_mul(ndim)?;
        if !fits || !indices.chunks_exact(ndim).all(inside) {
            return None;
        }
        let merged = coordinates::merge(&shape, &indices);
        let mut data = Buffer::zeros(elements.dtype(), merged.indices.len() / ndim);
        coordinates::place(elements, &merged.sorted, &merged.positions, &mut data);
        let places = Places { indices: merged.indices, fill, stored_as: None };
        Some(Value { shape, data, places: Some(Arc::new(places)) })
    }

    /// Replaces the elements, keeping their indices; `None` if the number differs.
    pub fn with_data(self, data: Buffer) -> Option<Value> {
        (data.len() == self.data.len()).then_some(Value { data, ..self })
    }

    /// Returns the coordinates of the elements, if the tensor is sparse: [`Value::data`] then has these elements alone.
    pub fn places(&self) -> Option<&Places> {
        self.places.as_deref()
    }

    /// Declares which elements of a sparse tensor share a stored value: those with equal numbers in `values`. A dense
    /// tensor stays as it is.
    #[must_use]
    pub fn stored_as(self, values: Vec<i64>) -> Value {
        let places = self.places.map(|p| Arc::new(Places { stored_as: Some(values), ..(*p).clone() }));
        Value { places, ..self }
    }

    /// Returns, for each row-major offset, the first one that shares its stored value; `None` if all have their own.
    pub(crate) fn shared(&self) -> Option<Vec<usize>> {
        let places = self.places.as_deref()?;
        let values = places.stored_as.as_ref()?;
        let mut shared: Vec<usize> = (0..element_count(&self.shape)?).collect();
        let mut first: FxHashMap<i64, usize> = FxHashMap::default();
        for (at, value) in places.indices.chunks_exact(self.shape.len()).zip(values) {
            let place = self.place(at);
            shared[place] = *first.entry(*value).or_insert(place);
        }
        Some(shared)
    }

    /// Returns the row-major offset of an element.
    fn place(&self, at: &[i64]) -> usize {
        at.iter().zip(&self.shape).fold(0, |place, (i, n)| place * n + *i as usize)
    }

    /// Samples a dense tensor at the elements of a sparse one of that shape; all others become 0.
    pub(crate) fn sampled(&self, at: &Value) -> Option<Value> {
        let places = at.places()?;
        let mut data = Buffer::zeros(self.dtype(), at.data.len());
        for (e, indices) in places.indices.chunks_exact(self.shape.len()).enumerate() {
            data.set(e, self.data.get(self.place(indices)));
        }
        let places = Places { fill: Literal::zero(self.dtype()), ..places.clone() };
        Some(Value { shape: self.shape.clone(), data, places: Some(Arc::new(places)) })
    }

    /// Replaces the value of all elements that are not stored; a dense tensor stays as it is.
    #[must_use]
    pub fn with_fill(self, fill: Literal) -> Value {
        let places = self.places.map(|p| match p.fill == fill {
            true => p,
            false => Arc::new(Places { fill, ..(*p).clone() }),
        });
        Value { places, ..self }
    }

    /// Returns the dense tensor with the mask of its stored elements; `None` if memory does not suffice.
    pub fn dense(&self) -> Option<(Value, Vec<bool>)> {
        let len = element_count(&self.shape)?;
        let Some(places) = &self.places else { return Some((self.clone(), vec![true; len])) };
        len.checked_mul(self.dtype().size() + 1).filter(|bytes| Vec::<u8>::new().try_reserve_exact(*bytes).is_ok())?;
        let mut data = Buffer::zeros(self.dtype(), len);
        for k in 0..len {
            data.set(k, places.fill);
        }
        let mut has = vec![false; len];
        for (e, at) in places.indices.chunks_exact(self.shape.len()).enumerate() {
            let place = self.place(at);
            data.set(place, self.data.get(e));
            has[place] = true;
        }
        Some((Value::new(self.shape.clone(), data)?, has))
    }

    /// Returns the indices of an element, by its number in [`Self::data`].
    pub fn indices_of(&self, element: usize) -> Vec<i64> {
        let ndim = self.shape.len();
        match &self.places {
            Some(places) => places.indices[element * ndim..(element + 1) * ndim].to_vec(),
            None => coordinates::indices_at(&self.shape, element),
        }
    }

    /// Returns the elements of a dense tensor for which `keep` holds (by row-major offset), as a sparse tensor.
    #[must_use]
    pub fn only(&self, fill: Literal, keep: impl Fn(usize) -> bool) -> Value {
        let kept: Vec<usize> = (0..self.data.len()).filter(|k| keep(*k)).collect();
        let indices = kept.iter().flat_map(|k| self.indices_of(*k)).collect();
        let mut data = Buffer::zeros(self.dtype(), kept.len());
        for (e, k) in kept.into_iter().enumerate() {
            data.set(e, self.data.get(k));
        }
        Value { shape: self.shape.clone(), data, places: Some(Arc::new(Places { indices, fill, stored_as: None })) }
    }

    /// Returns the elements as f64 (see [`Buffer::get_f64`]).
    pub fn numbers(&self) -> Vec<f64> {
        (0..self.data.len()).map(|k| self.data.get_f64(k)).collect()
    }

    /// Replaces the elements of a floating-point tensor, rounding to its type; `None` for other types, or if the number
    /// of elements differs.
    ///
    /// ```
    /// use taffeta_ast::{Buffer, DType, Value};
    ///
    /// let zeros = Value::zeros(DType::F16, vec![2]).unwrap();
    /// let new = zeros.with_numbers(vec![0.5, 0.1]).unwrap();
    /// assert_eq!((new.dtype(), new.numbers()), (DType::F16, vec![0.5, 0.0999755859375]));
    /// assert_eq!(zeros.with_numbers(vec![0.5]), None);
    /// assert_eq!(Value::scalar(Buffer::I32(vec![1])).unwrap().with_numbers(vec![1.0]), None);
    /// ```
    pub fn with_numbers(&self, numbers: Vec<f64>) -> Option<Value> {
        if !self.dtype().is_float() || numbers.len() != self.data.len() {
            return None;
        }
        let mut new = self.clone();
        for (k, v) in numbers.into_iter().enumerate() {
            new.data.set(k, Literal::Float(v));
        }
        Some(new)
    }

    /// Returns the same elements with one dimension; a scalar stays one.
    #[must_use]
    pub fn flatten(self) -> Value {
        let shape = if self.shape.is_empty() { Vec::new() } else { vec![self.data.len()] };
        Value { shape, ..self }
    }

    /// Splits the tensor into shape and elements.
    pub fn into_parts(self) -> (Vec<usize>, Buffer) {
        (self.shape, self.data)
    }
}

/// Maximum size of a dimension, and maximum number of elements of a tensor (sizes of 0 counted as 1), with which
/// programs are run. Nothing larger fits in memory: 2^47 bytes is the address space of the machines that Taffeta runs
/// on.
pub const MAX_SIZE: i64 = 1 << 47;

/// Returns the product of a shape, or `None` if it overflows.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    // A tensor with an empty dimension has no elements, however large the other sizes are.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))
}
