//! Elements of sparse files, in any order and possibly repeated: the common end of all readers of such files.

use super::file::file_error;
use super::want::Want;
use super::{convert, memory};
use std::path::Path;
use taffeta_ast::coordinates::{self, Merged};
use taffeta_ast::value::MAX_SIZE;
use taffeta_ast::{Buffer, DType, Diagnostic, Kind, Literal, Value};

/// Elements listed in a file.
pub(super) struct Elements {
    /// Coordinates of the elements, one per dimension for each, all in range.
    pub(super) indices: Vec<i64>,
    /// Values, one for each element.
    pub(super) values: Numbers,
}

/// Values of listed elements.
pub(super) enum Numbers {
    /// Values in the type of the file.
    Typed(Buffer),
    /// Number of ones, for a file that lists coordinates only.
    Ones(usize),
}

impl Elements {
    /// Builds the tensor in row-major order and the requested type. Repeated elements are summed, integers exactly and
    /// floats in `f64`, and the sum is converted as a single number is.
    pub(super) fn tensor(self, shape: Vec<usize>, want: &Want, path: &Path) -> Result<Value, Diagnostic> {
        check_sizes(&shape, path)?;
        let what = path.display().to_string();
        // Besides the coordinates: the sorted order, the position of each element, and the values.
        let bytes = self.indices.len() as u128 * 16 + (self.indices.len() / shape.len().max(1)) as u128 * 48;
        memory::check_bytes(bytes, &what)?;
        let values = self.values.of(want)?;
        let disagree = || file_error("data::format", path, "shape and data disagree");
        let inside = |at: &[i64]| at.iter().zip(&shape).all(|(i, n)| usize::try_from(*i).is_ok_and(|i| i < *n));
        let fits = !shape.is_empty() && self.indices.len() == values.len() * shape.len();
        if !fits || !self.indices.chunks_exact(shape.len()).all(inside) {
            return Err(disagree());
        }
        let merged = coordinates::merge(&shape, &self.indices);
        let fill = want.fill.unwrap_or(Literal::zero(want.dtype));
        let of = |data: Buffer, indices| Value::sparse(shape.clone(), indices, data, fill).ok_or_else(disagree);
        if merged.indices.len() < self.indices.len() && values.dtype().kind() != Kind::Bool {
            return of(summed(&values, &merged, shape.len(), want, &what)?, merged.indices);
        }
        let mut data = Buffer::zeros(values.dtype(), merged.indices.len() / shape.len());
        coordinates::place(&values, &merged.sorted, &merged.positions, &mut data);
        convert::to(of(data, merged.indices)?, want, &what).map(|v| v.with_fill(fill))
    }
}

/// Sums repeated elements, and converts the sums to the requested type.
fn summed(values: &Buffer, merged: &Merged, ndim: usize, want: &Want, what: &str) -> Result<Buffer, Diagnostic> {
    let place = |at: usize| {
        let times = merged.positions.iter().filter(|p| **p == at as i64).count();
        let place = convert::at_index(&merged.indices[at * ndim..][..ndim]);
        if times > 1 { format!("{place}, the sum of {times} elements,") } else { place }
    };
    let count = merged.indices.len() / ndim;
    let all = merged.sorted.iter().zip(&merged.positions).map(|(e, p)| (*e, *p as usize));
    if values.dtype().is_float() {
        let mut sums = vec![0.0f64; count];
        let mut last = None;
        for (e, p) in all {
            let (sum, v) = (sums[p], values.get_f64(e));
            // A single element keeps the sign of its zero.
            sums[p] = if last == Some(p) { sum + v } else { v };
            if sum.is_finite() && v.is_finite() && !sums[p].is_finite() {
                return Err(convert::does_not_fit(want, what, &sums[p].to_string(), &place(p)));
            }
            last = Some(p);
        }
        return convert::numbers(&convert::Numbers::Floats(sums), values.dtype(), want, what, place);
    }
    let mut sums = vec![0i128; count];
    all.for_each(|(e, p)| sums[p] += values.get_int(e).unwrap_or(0));
    convert::numbers(&convert::Numbers::Integers(sums), values.dtype(), want, what, place)
}

impl Numbers {
    /// Returns the values; ones get the requested type.
    pub(super) fn of(self, want: &Want) -> Result<Buffer, Diagnostic> {
        match self {
            Numbers::Typed(buffer) => Ok(buffer),
            Numbers::Ones(n) if want.dtype.is_float() => convert::floats(want.dtype, n, |_| Ok(1.0)),
            Numbers::Ones(n) => convert::integers(want.dtype, n, |_| Ok(1)),
        }
    }
}

/// Numbers read from text, in the narrowest common type: integers unless there are floats.
#[derive(Default)]
pub(super) struct TextNumbers {
    integers: Vec<i64>,
    /// Integers, if some exceed `i64` and none is negative.
    unsigned: Vec<u64>,
    floats: Vec<f64>,
}

impl TextNumbers {
    /// Adds the number in `word`; `None` if it is not a number.
    pub(super) fn push(&mut self, word: &str) -> Option<()> {
        let v = super::file::float(word)?;
        if self.floats.is_empty() {
            match word.parse::<i64>() {
                Ok(int) if self.unsigned.is_empty() => {
                    self.integers.push(int);
                    return Some(());
                }
                _ => {}
            }
            if let Ok(int) = word.parse::<u64>()
                && self.integers.iter().all(|int| *int >= 0)
            {
                self.unsigned.extend(std::mem::take(&mut self.integers).into_iter().map(|int| int as u64));
                self.unsigned.push(int);
                return Some(());
            }
        }
        self.widen();
        self.floats.push(v);
        Some(())
    }

    fn widen(&mut self) {
        self.floats.extend(std::mem::take(&mut self.integers).into_iter().map(|int| int as f64));
        self.floats.extend(std::mem::take(&mut self.unsigned).into_iter().map(|int| int as f64));
    }

    /// Returns the numbers; for `bool`, integers that are all 0 or 1 become `bool`.
    pub(super) fn buffer(mut self, dtype: DType) -> Buffer {
        if dtype.is_float() && !self.unsigned.is_empty() {
            self.widen();
        }
        if !self.floats.is_empty() {
            return Buffer::F64(self.floats);
        }
        if !self.unsigned.is_empty() {
            return Buffer::U64(self.unsigned);
        }
        match dtype {
            DType::Bool if self.integers.iter().all(|v| [0, 1].contains(v)) => {
                Buffer::Bool(self.integers.into_iter().map(|v| v == 1).collect())
            }
            _ => Buffer::I64(self.integers),
        }
    }
}

/// Converts a sparse tensor to a dense one.
pub(super) fn dense(value: &Value, path: &Path) -> Result<Value, Diagnostic> {
    let what = path.display().to_string();
    memory::check_tensor(value.dtype(), value.shape(), &what)?;
    let too_large = || file_error("data::too_large", path, "the dense tensor does not fit in memory");
    value.dense().map(|(dense, _)| dense).ok_or_else(too_large)
}

/// Checks that no size exceeds the maximum.
pub(super) fn check_sizes(shape: &[usize], path: &Path) -> Result<(), Diagnostic> {
    match shape.iter().find(|n| **n as u128 > MAX_SIZE as u128) {
        Some(n) => Err(file_error("data::too_large", path, format!("size {n} exceeds the maximum {MAX_SIZE} (2^47)"))),
        None => Ok(()),
    }
}
