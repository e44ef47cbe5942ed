//! Elements as sparse files list them: in any order, some perhaps several times. All readers of such files end here.

use super::{Want, convert, file_error, memory};
use std::path::Path;
use taffeta_ast::value::MAX_SIZE;
use taffeta_ast::{Buffer, DType, Diagnostic, Literal, Value};

/// What a file lists.
pub(super) struct Elements {
    /// Of one element after the other, as many as there are dimensions; each is in range.
    pub(super) indices: Vec<i64>,
    /// As many.
    pub(super) values: Numbers,
}

/// The elements that are listed.
pub(super) enum Numbers {
    /// As the file writes them.
    Typed(Buffer),
    /// So many ones: the file says only where there are elements.
    Ones(usize),
}

impl Elements {
    /// The tensor, in row-major order, of the type that is wanted. What stands twice is summed.
    pub(super) fn tensor(self, shape: Vec<usize>, want: &Want, path: &Path) -> Result<Value, Diagnostic> {
        check_sizes(&shape, path)?;
        // Besides the coordinates: their order, where each element goes, and the elements.
        let bytes = self.indices.len() as u128 * 16 + (self.indices.len() / shape.len().max(1)) as u128 * 48;
        memory::check_bytes(bytes, &path.display().to_string())?;
        let values = self.values.of(want)?;
        let value = Value::summed(shape, self.indices, &values, Literal::zero(values.dtype()))
            .ok_or_else(|| file_error("data::format", path, "shape and data disagree"))?;
        let value = convert::to(value, want, &path.display().to_string())?;
        Ok(value.with_fill(want.fill.unwrap_or(Literal::zero(want.dtype))))
    }
}

impl Numbers {
    /// As they are; ones are of the type that is wanted.
    pub(super) fn of(self, want: &Want) -> Result<Buffer, Diagnostic> {
        match self {
            Numbers::Typed(buffer) => Ok(buffer),
            Numbers::Ones(n) if want.dtype.is_float() => convert::floats(want.dtype, n, |_| Ok(1.0)),
            Numbers::Ones(n) => convert::integers(want.dtype, n, |_| Ok(1)),
        }
    }
}

/// Numbers of a text, in the type that holds them all: integers as long as there is nothing else.
#[derive(Default)]
pub(super) struct TextNumbers {
    integers: Vec<i64>,
    floats: Vec<f64>,
}

impl TextNumbers {
    /// Adds what is written there; `None` if it is not a number.
    pub(super) fn push(&mut self, word: &str) -> Option<()> {
        let v = super::float(word)?;
        match word.parse::<i64>() {
            Ok(int) if self.floats.is_empty() => self.integers.push(int),
            _ => {
                self.floats.extend(std::mem::take(&mut self.integers).into_iter().map(|int| int as f64));
                self.floats.push(v);
            }
        }
        Some(())
    }

    /// All of them; integers that are 0 or 1 are what a file of text has for `bool`.
    pub(super) fn buffer(self, dtype: DType) -> Buffer {
        if !self.floats.is_empty() {
            return Buffer::F64(self.floats);
        }
        match dtype {
            DType::Bool if self.integers.iter().all(|v| [0, 1].contains(v)) => {
                Buffer::Bool(self.integers.into_iter().map(|v| v == 1).collect())
            }
            _ => Buffer::I64(self.integers),
        }
    }
}

/// A sparse tensor as a dense one.
pub(super) fn dense(value: &Value, path: &Path) -> Result<Value, Diagnostic> {
    let what = path.display().to_string();
    memory::check_tensor(value.dtype(), value.shape(), &what)?;
    let too_large = || file_error("data::too_large", path, "there is no room for the tensor, which is wanted densely");
    value.dense().map(|(dense, _)| dense).ok_or_else(too_large)
}

/// Whether there are tensors that are so large.
pub(super) fn check_sizes(shape: &[usize], path: &Path) -> Result<(), Diagnostic> {
    match shape.iter().find(|n| **n as u128 > MAX_SIZE as u128) {
        Some(n) => Err(file_error("data::too_large", path, format!("a size of {n} is beyond {MAX_SIZE} (2^47)"))),
        None => Ok(()),
    }
}
