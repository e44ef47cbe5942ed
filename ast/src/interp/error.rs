//! What stops a program.

use crate::diag::Diagnostic;
use crate::scalar::Fault;
use crate::stmt::{AssertKind, Origin};
use std::fmt;

/// The reason why a program stopped.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorKind {
    /// An assertion does not hold.
    Assert {
        /// Who asked.
        kind: AssertKind,
        /// What it says, with values.
        message: String,
    },
    /// An index is out of range.
    Index {
        /// The tensor's name.
        tensor: String,
        /// Which index, from 0.
        dim: usize,
        /// Its value.
        index: i64,
        /// The tensor's size there.
        size: i64,
    },
    /// An operation has no value.
    Arithmetic(Fault),
    /// `range` with step 0.
    ZeroStep,
    /// An element is read before it is written.
    Uninitialised {
        /// The tensor's name.
        tensor: String,
        /// Which element.
        indices: Vec<i64>,
    },
    /// An element is written that is not in the tensor's pattern.
    Outside {
        /// The tensor's name.
        tensor: String,
        /// Which element.
        indices: Vec<i64>,
    },
    /// An element has another value in the end than one that is stored as the same value.
    Unequal {
        /// The tensor's name.
        tensor: String,
        /// Which element.
        indices: Vec<i64>,
        /// Its value.
        value: String,
        /// The other one's.
        other: String,
    },
    /// A tensor would have a negative size.
    NegativeSize {
        /// The tensor's name.
        tensor: String,
        /// Which dimension, from 0.
        dim: usize,
        /// The size.
        size: i64,
    },
    /// A size of a tensor wraps around, or it has more than [`MAX_SIZE`](crate::value::MAX_SIZE) elements.
    SizeOverflow {
        /// The tensor's name.
        tensor: String,
    },
    /// A tensor is too large for this machine.
    TooLarge {
        /// The tensor's name.
        tensor: String,
        /// Its shape.
        shape: Vec<i64>,
    },
    /// An input's shape disagrees with the declaration.
    Shape {
        /// The parameter's name.
        param: String,
        /// Which dimension, from 0.
        dim: usize,
        /// The size that was declared, as it is written.
        declared: String,
        /// Its value.
        expected: i64,
        /// The size that was given.
        found: i64,
    },
    /// Something else is wrong with the inputs.
    Input(String),
    /// What a transformation assumed does not hold: a mistake in this compiler.
    Assumption,
    /// The interpreter does not know this yet.
    Unsupported(&'static str),
    /// The tree breaks its own rules: a mistake in this compiler.
    Malformed(String),
}

/// Why a program stopped, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{kind}")]
pub struct RuntimeError {
    /// The statement; [`Origin::none`] before the first one.
    pub origin: Origin,
    /// The reason.
    pub kind: Box<ErrorKind>,
}

impl ErrorKind {
    /// The diagnostic's code. An assertion that lowering made has the code of the error that it stands for, so programs
    /// agree before and after lowering.
    pub fn code(&self) -> &'static str {
        match self {
            ErrorKind::Assert { kind: AssertKind::Program, .. } => "run::assert",
            ErrorKind::Assert { kind: AssertKind::Index, .. }
            | ErrorKind::Index { .. }
            | ErrorKind::Outside { .. }
            | ErrorKind::Unequal { .. } => "run::index",
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
            ErrorKind::Unequal { tensor, indices, value, other } => {
                let at = Subscript(indices);
                write!(f, "element {at} of `{tensor}` is {value}, and one that is stored as the same value is {other}")
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

/// `[1, 2]`; nothing for a scalar.
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
