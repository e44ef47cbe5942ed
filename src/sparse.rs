//! Structured tensors on borrowed arrays, in CSR, CSC, COO, CSF or any format of levels: validated once, and passed to
//! C without a copy.

use crate::array::{Element, List};
use crate::error::Error;
use crate::packed;
use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use taffeta_ast::format::{Coord, Format, Key, Level, LevelKind, coord};
use taffeta_ast::{Buffer, DType, Diagnostic, Literal, Value};
use taffeta_codegen::call::Arg;
use taffeta_codegen::signature::TensorSig;
use taffeta_structured::{Indices, Stored, Unfit, has_positions};

/// Element type of index arrays: `u8`, `u16`, `i32` or `i64`.
pub trait Index: Element {
    /// Converts a list of positions, which are `i32` at least.
    fn positions(list: &[Self]) -> List<'_>;
}

macro_rules! indices {
    ($($small:ty)*; $($large:ty)*) => {
        $(impl Index for $small {
            fn positions(list: &[$small]) -> List<'_> {
                List::I32(list.iter().map(|p| i32::from(*p)).collect())
            }
        })*
        $(impl Index for $large {
            fn positions(list: &[$large]) -> List<'_> {
                borrowed(list)
            }
        })*
    };
}

indices!(u8 u16; i32 i64);

/// Structured tensor on borrowed arrays: [`crate::Call::sparse`] passes it to a program without a copy. The first call
/// validates the indices (bounds, order …), in time linear in the number of stored elements; since the arrays are
/// borrowed, the result holds for later calls.
///
/// ```
/// use ndarray::arr1;
/// use taffeta::{Options, Program, Sparse};
///
/// let program = Program::from_source("spmv.ft", "
/// def spmv(A: f64[n, m] @ csr, x: f64[m]) -> f64[n]:
///     y = zeros((n,), f64)
///     for i in range(n):
///         for j in range(m):
///             y[i] += A[i, j] * x[j]
///     return y
/// ")?;
/// let spmv = program.compile("spmv", &Options::default())?;
/// // 1 0 2
/// // 0 0 0
/// // 0 3 0
/// let (indptr, indices, values) = ([0, 2, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0]);
/// let a = Sparse::csr(&indptr, &indices, &values, [3, 3]);
/// let y = spmv.call().sparse("A", &a).input("x", arr1(&[1.0, 10.0, 100.0]).view()).run()?;
/// assert_eq!(y.array::<f64>("y")?, arr1(&[201.0, 0.0, 30.0]).into_dyn());
///
/// let indices = [0, 2, 3];
/// let broken = Sparse::csr(&indptr, &indices, &values, [3, 3]);
/// let error = spmv.call().sparse("A", &broken).input("x", arr1(&[0.0; 3]).view()).run().unwrap_err();
/// assert!(error.to_string().contains("element 2 of `A.crd1` is 3, out of range for a dimension of size 3"));
/// # Ok::<(), taffeta::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sparse<'a> {
    shape: Vec<usize>,
    levels: Vec<Level>,
    /// Dimension that each level stores.
    order: Option<Vec<usize>>,
    /// Coordinate expression of each level, with further sort keys, if more general than an order of dimensions.
    remap: Option<(Vec<Coord>, Vec<Key>)>,
    /// Index arrays of each level.
    arrays: Vec<Vec<List<'a>>>,
    values: List<'a>,
    /// Format that the arrays were validated for, with the hidden sizes.
    checked: OnceLock<(Format, Vec<i64>)>,
}

impl<'a> Sparse<'a> {
    /// Creates a matrix by rows: row `i` has the elements `indptr[i] .. indptr[i + 1]`, in columns `indices`.
    pub fn csr<I: Index, T: Element>(
        indptr: &'a [I],
        indices: &'a [I],
        values: &'a [T],
        shape: [usize; 2],
    ) -> Sparse<'a> {
        Sparse::new(values, &shape).dense().level(LevelKind::Compressed, &[indptr, indices])
    }

    /// Creates a matrix by columns: column `j` has the elements `indptr[j] .. indptr[j + 1]`, in rows `indices`.
    pub fn csc<I: Index, T: Element>(
        indptr: &'a [I],
        indices: &'a [I],
        values: &'a [T],
        shape: [usize; 2],
    ) -> Sparse<'a> {
        Sparse::csr(indptr, indices, values, shape).order(&[1, 0])
    }

    /// Creates a tensor from a list of elements: `coordinates` has one list per dimension.
    pub fn coo<I: Index, T: Element>(coordinates: &[&'a [I]], values: &'a [T], shape: &[usize]) -> Sparse<'a> {
        let mut all = Sparse::new(values, shape);
        if let Some((first, _)) = coordinates.split_first() {
            // All elements form a single list.
            let count = first.len();
            let pos = match I::DTYPE {
                DType::I64 => List::I64(Cow::Owned(vec![0, i64::try_from(count).unwrap_or(i64::MAX)])),
                _ => List::I32(Cow::Owned(vec![0, i32::try_from(count).unwrap_or(i32::MAX)])),
            };
            let index = Some(I::DTYPE).filter(|d| *d != DType::I32);
            all.levels.push(Level { unique: shape.len() < 2, index, ..Level::new(LevelKind::Compressed) });
            all.arrays.push(vec![pos, borrowed(first)]);
        }
        coordinates.iter().skip(1).fold(all, |all, own| all.level(LevelKind::Singleton, &[*own]))
    }

    /// Creates a tensor that is compressed in every dimension: `levels` has positions and coordinates of each
    /// dimension.
    pub fn csf<I: Index, T: Element>(levels: &[(&'a [I], &'a [I])], values: &'a [T], shape: &[usize]) -> Sparse<'a> {
        let all = Sparse::new(values, shape);
        levels.iter().fold(all, |all, (pos, crd)| all.level(LevelKind::Compressed, &[*pos, *crd]))
    }

    /// Creates a tensor in any format: `values` are the stored elements; [`Sparse::level`] adds the arrays of each
    /// level, outermost first.
    pub fn new<T: Element>(values: &'a [T], shape: &[usize]) -> Sparse<'a> {
        let (values, shape) = (borrowed(values), shape.to_vec());
        let (levels, arrays) = (Vec::new(), Vec::new());
        Sparse { shape, levels, order: None, remap: None, arrays, values, checked: OnceLock::new() }
    }

    /// Borrows the arrays of a result that a program made ([`crate::Outputs::stored`]).
    pub fn of(stored: &'a Stored) -> Sparse<'a> {
        let format = stored.format();
        let (shape, levels) = (stored.shape().to_vec(), format.levels.to_vec());
        let mut lists = stored.arrays().iter().map(List::of);
        let mut take = |n: usize| lists.by_ref().take(n).collect::<Vec<List<'a>>>();
        let counts = taffeta_structured::arrays_of(format).unwrap_or_default();
        let arrays = counts.into_iter().map(&mut take).collect();
        let values = take(1).pop().unwrap_or_else(|| unreachable!("the values are the last array"));
        let order = format.order();
        let remap = order.is_none().then(|| (format.coords.to_vec(), format.keys.to_vec()));
        Sparse { shape, levels, order, remap, arrays, values, checked: OnceLock::new() }
    }

    /// Adds a level, with its arrays in the order drawn in the manual. Positions in `u8` or `u16` are copied, since
    /// programs take them as `i32`.
    #[must_use]
    pub fn level<I: Index>(mut self, kind: LevelKind, arrays: &[&'a [I]]) -> Sparse<'a> {
        let index = Some(I::DTYPE).filter(|d| *d != DType::I32 && kind.has_indices());
        self.levels.push(Level { index, ..Level::new(kind) });
        let list = |(k, a): (usize, &&'a [I])| if has_positions(kind, k) { I::positions(a) } else { borrowed(a) };
        self.arrays.push(arrays.iter().enumerate().map(list).collect());
        self
    }

    /// Adds a dense level, which has no arrays.
    #[must_use]
    pub fn dense(self) -> Sparse<'a> {
        self.level::<i32>(LevelKind::Dense, &[])
    }

    /// Sets the dimension that each level stores, if not in order.
    #[must_use]
    pub fn order(mut self, order: &[usize]) -> Sparse<'a> {
        self.order = Some(order.to_vec());
        self
    }

    /// Sets the coordinate expressions that the levels store, as the function of a `remap=` returns them, in the
    /// dimensions `i`, `j`, `k` …: `"(j - i, i, j)"`. Text that does not parse is ignored.
    #[must_use]
    pub fn remap(mut self, returned: &str) -> Sparse<'a> {
        self.remap = coord::parse(returned);
        self
    }

    /// Copies the borrowed arrays.
    #[must_use]
    pub fn into_owned(self) -> Sparse<'static> {
        let own = |lists: Vec<List<'_>>| lists.into_iter().map(List::into_owned).collect();
        let Sparse { shape, levels, order, remap, arrays, values, checked } = self;
        let (arrays, values) = (arrays.into_iter().map(own).collect(), values.into_owned());
        Sparse { shape, levels, order, remap, arrays, values, checked }
    }

    /// Returns the bytes of owned arrays.
    pub(crate) fn own_bytes(&self) -> usize {
        self.arrays.iter().flatten().chain([&self.values]).map(List::own_bytes).sum()
    }

    /// Returns the sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// Returns the number of stored elements.
    pub fn stored(&self) -> usize {
        self.values.len()
    }

    /// Returns the format of the levels.
    pub fn format(&self) -> Format {
        let format = Format::new(self.levels.clone());
        match (&self.remap, &self.order) {
            (Some((coords, keys)), _) => format.remapped(coords.clone(), keys.clone()),
            (None, Some(order)) => format.ordered(order),
            (None, None) => format,
        }
    }

    /// Validates the arrays for a parameter's format, so that C may trust them, and returns the hidden sizes.
    pub(crate) fn checked(&self, name: &str, format: &Format) -> Result<Vec<i64>, Unfit> {
        if let Some((_, hidden)) = self.checked.get().filter(|(f, _)| f == format) {
            return Ok(hidden.clone());
        }
        let indices: Vec<Indices<'_>> = self.arrays.iter().flatten().filter_map(indices).collect();
        let hidden = taffeta_structured::check(name, &self.shape, format, &indices, self.stored())?;
        // Only one format is memoised; arrays in another format are validated each time.
        let _ = self.checked.set((format.clone(), hidden.clone()));
        Ok(hidden)
    }

    /// Returns the fault of the tensor as an argument for a structured parameter, if any. `compiled` has names and
    /// types of the arrays that C expects, if C is the backend.
    pub(crate) fn fault(&self, param: &TensorSig, compiled: Option<Vec<(&str, DType)>>) -> Option<Diagnostic> {
        let storage = param.storage.as_ref()?;
        let (format, own) = (storage.format(param.dtype), self.format());
        let kinds = |f: &Format| f.levels.iter().map(|l| l.kind).collect::<Vec<_>>();
        let d = |text: String| Diagnostic::new("data::storage", text);
        if kinds(&format) != kinds(&own) || format.coords != own.coords || format.keys != own.keys {
            return Some(d(format!("parameter `{}` is in {format}, but its value is in {own}", param.name)));
        }
        let expected = taffeta_structured::arrays_of(&format)?;
        let mut levels = expected.iter().zip(&self.arrays).enumerate();
        if let Some((k, (n, given))) = levels.find(|(_, (n, given))| **n != given.len()) {
            let given = given.len();
            let text = format!("parameter `{}`: expected {n} arrays of level {k}, found {given}", param.name);
            return Some(d(text));
        }
        let mut wanted = compiled.into_iter().flatten().zip(self.arrays.iter().flatten());
        if let Some(((name, expected), given)) = wanted.find(|((_, expected), given)| *expected != given.dtype()) {
            let why = Unfit::DType { name: name.to_string(), expected, given: given.dtype() };
            return Some(refused(param, &why));
        }
        self.checked(&param.name, &format).err().map(|why| refused(param, &why))
    }

    /// Returns the arrays, then the elements, as C arguments.
    pub(crate) fn args(&self) -> impl Iterator<Item = Arg<'_>> {
        self.arrays.iter().flatten().chain([&self.values]).filter_map(List::as_arg)
    }

    /// Copies the elements into a value. The arrays must fit `format`.
    pub(crate) fn to_value(&self, name: &str, format: &Format) -> Result<Value, Unfit> {
        self.to_stored(name, format)?.try_elements().map_err(|why| Unfit::Array(why.to_string()))
    }

    /// Copies the arrays, which must fit `format`.
    pub(crate) fn to_stored(&self, name: &str, format: &Format) -> Result<Stored, Unfit> {
        let hidden = self.checked(name, format)?;
        Ok(Stored::of_arrays(self.shape.clone(), format.clone(), self.values(), hidden))
    }

    /// Returns a tensor of the same shape in which nothing is stored.
    pub(crate) fn without_elements(&self, format: &Format) -> Value {
        let fill = format.fill.unwrap_or(Literal::zero(self.dtype()));
        let none = Value::sparse(self.shape.clone(), Vec::new(), Buffer::zeros(self.dtype(), 0), fill);
        none.unwrap_or_else(|| unreachable!("no element is out of order"))
    }

    /// Copies the arrays, then the elements.
    fn values(&self) -> Vec<Value> {
        self.arrays.iter().flatten().chain([&self.values]).filter_map(List::to_value).collect()
    }
}

/// Creates the diagnostic for arrays that do not fit.
pub(crate) fn refused(param: &TensorSig, why: &Unfit) -> Diagnostic {
    let text = format!("parameter `{}`: {why}", param.name);
    match why {
        Unfit::DType { given, .. } => Diagnostic::new("data::dtype", text).help(format!(
            "compile it with `Options::index(\"{}\", DType::{given:?})`, or write `index={given}` in the format",
            param.name
        )),
        _ => Diagnostic::new("data::storage", text),
    }
}

/// Structured parameter of a call.
pub(crate) enum Structured<'a> {
    /// Borrowed arrays, with their hidden sizes.
    Lent(&'a Sparse<'a>, Vec<i64>),
    /// Arrays packed for this call, with their hidden sizes.
    Packed((Vec<Value>, Vec<i64>)),
}

impl Structured<'_> {
    /// Returns the hidden sizes, which only the arrays determine.
    pub(crate) fn hidden(&self) -> Vec<i64> {
        match self {
            Structured::Lent(_, hidden) => hidden.clone(),
            Structured::Packed((_, hidden)) => hidden.clone(),
        }
    }

    /// Returns the number of stored elements.
    pub(crate) fn stored(&self) -> usize {
        match self {
            Structured::Lent(tensor, _) => tensor.stored(),
            Structured::Packed((arrays, _)) => arrays.last().map_or(0, |elements| elements.data().len()),
        }
    }

    /// Builds a result that shares this parameter's pattern from its elements.
    ///
    /// # Errors
    ///
    /// Insufficient memory for all stored elements.
    pub(crate) fn followed(
        &self,
        of: &TensorSig,
        sig: &TensorSig,
        sizes: &[i64],
        elements: Value,
    ) -> Result<Value, Error> {
        match self.tensor(of, sizes) {
            Some(of) => packed::followed(sig, of, &elements),
            None => Ok(elements),
        }
    }

    /// Copies the parameter, described by `of`, into a packed tensor; `None` if a size of its shape is unknown.
    pub(crate) fn tensor(&self, of: &TensorSig, sizes: &[i64]) -> Option<Stored> {
        let (format, shape) = (of.storage.as_ref()?.format(of.dtype), of.shape(sizes)?);
        let arrays = match self {
            Structured::Lent(tensor, _) => tensor.values(),
            Structured::Packed((arrays, _)) => arrays.clone(),
        };
        Some(Stored::of_arrays(shape, format, arrays, self.hidden()))
    }

    /// Returns the arrays, then the elements, as C arguments.
    pub(crate) fn args(&self) -> Vec<Arg<'_>> {
        match self {
            Structured::Lent(tensor, _) => tensor.args().collect(),
            Structured::Packed((arrays, _)) => arrays.iter().map(Arg::from).collect(),
        }
    }
}

/// Wraps a borrowed list.
fn borrowed<T: Element>(list: &[T]) -> List<'_> {
    T::list(Cow::Borrowed(list))
}

/// Converts a list of indices; `None` for other types, which [`Index`] excludes.
fn indices<'s>(list: &'s List<'_>) -> Option<Indices<'s>> {
    match list {
        List::U8(a) => Some(Indices::U8(a)),
        List::U16(a) => Some(Indices::U16(a)),
        List::I32(a) => Some(Indices::I32(a)),
        List::I64(a) => Some(Indices::I64(a)),
        _ => None,
    }
}

/// Shows type, format, number of stored elements, and some elements with their indices.
impl fmt::Display for Sparse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let format = self.format();
        write!(f, "{}[{}] @ {format}, ", self.dtype(), dims.join(", "))?;
        match self.to_value("", &format) {
            Ok(value) => {
                let text = value.to_string();
                f.write_str(text.split_once("], ").map_or(&text, |(_, elements)| elements))
            }
            Err(why) => write!(f, "{} elements stored, not a valid tensor: {why}", self.stored()),
        }
    }
}
