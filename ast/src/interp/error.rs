//! Errors that stop a program: reason, location, and the diagnostic that a user sees.

use crate::diag::Diagnostic;
use crate::scalar::Fault;
use crate::stmt::{AssertKind, Origin};
use std::fmt;

/// Reason why a program stopped.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorKind {
    /// Failed assertion.
    Assert {
        /// Origin of the assertion.
        kind: AssertKind,
        /// Message, with values filled in.
        message: String,
    },
    /// Index out of range.
    Index {
        /// Name of the tensor.
        tensor: String,
        /// Dimension, from 0.
        dim: usize,
        /// Value of the index.
        index: i64,
        /// Size of the dimension.
        size: i64,
    },
    /// Operation without a value.
    Arithmetic(Fault),
    /// `range` with step 0.
    ZeroStep,
    /// Read of an element that was never written.
    Uninitialised {
        /// Name of the tensor.
        tensor: String,
        /// Indices of the element.
        indices: Vec<i64>,
    },
    /// Write to an element outside of the tensor's pattern.
    Outside {
        /// Name of the tensor.
        tensor: String,
        /// Indices of the element.
        indices: Vec<i64>,
    },
    /// Element that the format of a tensor cannot hold.
    Misfit {
        /// Name of the tensor.
        tensor: String,
        /// Indices of the element.
        indices: Vec<i64>,
        /// Level.
        level: crate::format::Level,
        /// Reason, after the level.
        text: &'static str,
    },
    /// Element whose final value differs from that of another element with the same stored value.
    Unequal {
        /// Name of the tensor.
        tensor: String,
        /// Indices of the element.
        indices: Vec<i64>,
        /// Value of the element.
        value: String,
        /// Value of the other element.
        other: String,
    },
    /// Declaration of a tensor with a negative size.
    NegativeSize {
        /// Name of the tensor.
        tensor: String,
        /// Dimension, from 0.
        dim: usize,
        /// Size.
        size: i64,
    },
    /// Overflow in a tensor's size, or more than [`MAX_SIZE`](crate::value::MAX_SIZE) elements.
    SizeOverflow {
        /// Name of the tensor.
        tensor: String,
    },
    /// Tensor too large for this machine's memory.
    TooLarge {
        /// Name of the tensor.
        tensor: String,
        /// Shape of the tensor.
        shape: Vec<i64>,
    },
    /// Shape of an input that disagrees with the declaration.
    Shape {
        /// Name of the parameter.
        param: String,
        /// Dimension, from 0.
        dim: usize,
        /// Declared size, as written.
        declared: String,
        /// Value of the declared size.
        expected: i64,
        /// Size of the input.
        found: i64,
    },
    /// Any other fault of the inputs.
    Input(String),
    /// Assumption of a transformation that does not hold: a bug in this compiler.
    Assumption,
    /// Construct that the interpreter does not support.
    Unsupported(&'static str),
    /// Malformed tree: a bug in this compiler.
    Malformed(String),
}

/// Reason and location of a program's stop.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{kind}")]
pub struct RuntimeError {
    /// Statement; [`Origin::none`] before the first one.
    pub origin: Origin,
    /// Reason.
    pub kind: Box<ErrorKind>,
}

impl ErrorKind {
    /// Returns the diagnostic's code. An assertion created by lowering has the code of the error that it stands for, so
    /// that programs agree before and after lowering.
    pub fn code(&self) -> &'static str {
        match self {
            ErrorKind::Assert { kind: AssertKind::Program, .. } => "run::assert",
            ErrorKind::Assert { kind: AssertKind::Index, .. } | ErrorKind::Index { .. } => "run::index",
            ErrorKind::Assert { kind: AssertKind::Storage, .. }
            | ErrorKind::Outside { .. }
            | ErrorKind::Misfit { .. }
            | ErrorKind::Unequal { .. } => "run::storage",
            ErrorKind::Assert { kind: AssertKind::Arithmetic, .. } | ErrorKind::Arithmetic(_) | ErrorKind::ZeroStep => {
                "run::arithmetic"
            }
            ErrorKind::Assert { kind: AssertKind::Finite, .. } => "run::nonfinite",
            ErrorKind::Uninitialised { .. } => "run::uninitialised",
            ErrorKind::NegativeSize { .. } | ErrorKind::SizeOverflow { .. } | ErrorKind::TooLarge { .. } => "run::size",
            ErrorKind::Shape { .. } => "run::shape",
            ErrorKind::Input(_) => "run::input",
            ErrorKind::Unsupported(_) => "run::unsupported",
            ErrorKind::Assumption | ErrorKind::Malformed(_) => "internal::tree",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Assert { message, .. } if message.is_empty() => write!(f, "assertion failed"),
            ErrorKind::Assert { message, .. } => f.write_str(message),
            ErrorKind::Index { tensor, dim, index, size } => {
                write!(f, "index {index} is out of range for dimension {dim} of `{tensor}`, which has size {size}")
            }
            ErrorKind::Arithmetic(fault) => fault.fmt(f),
            ErrorKind::ZeroStep => write!(f, "the step of `range` is 0"),
            ErrorKind::Uninitialised { tensor, indices } => {
                write!(f, "`{tensor}{}` is read before it is written", Subscript(indices))
            }
            ErrorKind::Outside { tensor, indices } => {
                write!(f, "element {} of `{tensor}` {}", Subscript(indices), crate::format::OUTSIDE)
            }
            ErrorKind::Misfit { tensor, indices, level, text } => {
                let at: Vec<String> = indices.iter().map(i64::to_string).collect();
                write!(f, "cannot store the element of `{tensor}` at ({}): `{level}` {text}", at.join(", "))
            }
            ErrorKind::Unequal { tensor, indices, value, other } => {
                let at = Subscript(indices);
                write!(f, "element {at} of `{tensor}` is {value}{}{other}", crate::format::UNEQUAL)
            }
            ErrorKind::NegativeSize { tensor, dim, size } => {
                write!(f, "dimension {dim} of `{tensor}` has the negative size {size}")
            }
            ErrorKind::SizeOverflow { tensor } => {
                write!(f, "the size of `{tensor}` overflows: a tensor has at most 2^47 elements")
            }
            ErrorKind::TooLarge { tensor, shape } => {
                write!(f, "`{tensor}` of shape {} does not fit in memory", Subscript(shape))
            }
            ErrorKind::Shape { param, dim, declared, expected, found } => {
                write!(f, "dimension {dim} of `{param}` has size {found}, but ")?;
                match declared.parse::<i64>() {
                    Ok(_) => write!(f, "{expected} is declared"),
                    Err(_) => write!(f, "`{declared}` is {expected}"),
                }
            }
            ErrorKind::Input(text) | ErrorKind::Malformed(text) => f.write_str(text),
            ErrorKind::Assumption => write!(f, "an assumption of the compiler does not hold"),
            ErrorKind::Unsupported(what) => write!(f, "{what} are not supported yet"),
        }
    }
}

/// Formatter of indices: `[1, 2]`; nothing for a scalar.
struct Subscript<'a>(&'a [i64]);

impl fmt::Display for Subscript<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, i) in self.0.iter().enumerate() {
            write!(f, "{}{i}", if k == 0 { "[" } else { ", " })?;
        }
        if self.0.is_empty() { Ok(()) } else { f.write_str("]") }
    }
}

impl From<RuntimeError> for Diagnostic {
    fn from(e: RuntimeError) -> Diagnostic {
        let mut d = Diagnostic::new(e.kind.code(), e.kind.to_string()).at(e.origin.span());
        for call in e.origin.chain().iter().rev() {
            d = d.label(call.span, format!("in this call of `{}`", call.function));
        }
        d
    }
}
