//! Requests to readers, and the words for shapes in messages.

use taffeta_ast::format::Format;
use taffeta_ast::spelling::counted;
use taffeta_ast::{DType, Literal};

/// Request to a reader: the parameter that the tensor is read for.
#[derive(Clone, Debug)]
pub struct Want {
    /// Parameter's name, for messages.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Number of dimensions.
    pub ndim: usize,
    /// Shape, if sizes known beforehand make the tensor empty.
    pub empty: Option<Vec<usize>>,
    /// Sizes known beforehand, at most one for each dimension.
    pub sizes: Vec<Option<usize>>,
    /// Fill value of a structured parameter.
    pub fill: Option<Literal>,
    /// Format of a structured parameter.
    pub format: Option<Format>,
}

impl Want {
    /// Creates a request for a dense tensor without known sizes.
    pub fn new(name: impl Into<String>, dtype: DType, ndim: usize) -> Want {
        Want { name: name.into(), dtype, ndim, empty: None, sizes: Vec::new(), fill: None, format: None }
    }
}

/// Formats a number of dimensions: `1 dimension`, `2 dimensions`.
pub fn dimensions(n: usize) -> String {
    match n {
        0 => "no dimensions (a scalar)".to_string(),
        n => counted(n, "dimension"),
    }
}

/// Formats a shape: `[3, 4]`; `[]` for a scalar.
pub fn shape_text(shape: &[usize]) -> String {
    format!("[{}]", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
}
