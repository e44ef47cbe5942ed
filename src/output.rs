//! Results of calls: values, or tensors as the arrays of their format, which are converted to elements when these are
//! asked for.

use crate::error::{Error, Report};
use std::sync::OnceLock;
use taffeta_ast::{DType, Diagnostic, Value};
use taffeta_structured::Stored;

/// Result of a call.
#[derive(Clone, Debug)]
pub struct Output {
    /// Arrays of a tensor that the program made.
    stored: Option<Stored>,
    /// Elements.
    value: OnceLock<Value>,
}

impl Output {
    /// Returns the elements: converts those of a tensor with arrays of its own when they are first asked for, at some
    /// 80 bytes for each.
    ///
    /// # Errors
    ///
    /// A lack of memory ([`Error::Run`]): one stored value may stand for any number of elements.
    pub fn value(&self) -> Result<&Value, Error> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let Some(stored) = &self.stored else { unreachable!("a result has arrays or elements") };
        let value = stored.try_elements().map_err(|why| {
            Error::Run(Report::without_sources(vec![Diagnostic::new("run::memory", format!("a result: {why}"))]))
        })?;
        Ok(self.value.get_or_init(|| value))
    }

    /// Returns the arrays of a tensor that the program made; `None` for other results.
    pub fn stored(&self) -> Option<&Stored> {
        self.stored.as_ref()
    }

    pub(crate) fn into_stored(self) -> Option<Stored> {
        self.stored
    }

    /// Returns the sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        match (&self.stored, self.value.get()) {
            (Some(stored), _) => stored.shape(),
            (None, value) => value.map_or(&[], Value::shape),
        }
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        match (&self.stored, self.value.get()) {
            (Some(stored), _) => stored.dtype(),
            (None, value) => value.map_or(DType::F64, Value::dtype),
        }
    }

    /// Returns the bytes of the arrays.
    pub fn bytes(&self) -> usize {
        let size = |v: &Value| v.data().len() * v.dtype().size();
        match (&self.stored, self.value.get()) {
            (Some(stored), _) => stored.arrays().iter().map(size).sum(),
            (None, value) => value.map_or(0, size),
        }
    }

    pub(crate) fn into_value(self) -> Result<Value, Error> {
        self.value()?;
        let Some(value) = self.value.into_inner() else { unreachable!("it was asked for") };
        Ok(value)
    }
}

impl From<Value> for Output {
    fn from(value: Value) -> Output {
        Output { stored: None, value: OnceLock::from(value) }
    }
}

impl From<Stored> for Output {
    fn from(stored: Stored) -> Output {
        Output { stored: Some(stored), value: OnceLock::new() }
    }
}

/// Compares arrays, else elements.
impl PartialEq for Output {
    fn eq(&self, other: &Output) -> bool {
        match (&self.stored, &other.stored) {
            (Some(a), Some(b)) => a == b,
            _ => self.value().ok() == other.value().ok(),
        }
    }
}
