//! Element types and their promotion.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // the names are the documentation
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

/// Kind of an element type: stores convert within a kind, `cast` crosses kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `bool`
    Bool,
    /// Signed and unsigned integers.
    Int,
    /// Floating point.
    Float,
}

impl DType {
    /// Every type, in the order of the language reference.
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::Bf16,
        DType::F32,
        DType::F64,
    ];

    /// Returns the name that programs use.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Finds the type of that name.
    pub fn parse(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Returns the type's kind.
    pub fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => Kind::Float,
            _ => Kind::Int,
        }
    }

    /// Returns whether this is a floating-point type.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    /// Returns whether this is an integer type (`bool` is not).
    pub fn is_int(self) -> bool {
        self.kind() == Kind::Int
    }

    /// Returns whether this is a signed integer type.
    pub fn is_signed_int(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// Returns whether this is an unsigned integer type.
    pub fn is_unsigned_int(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// Returns the size of one element in bytes.
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::Bf16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// Returns the smallest and largest value of an integer type (0 and 1 for `bool`); `None` for floats.
    pub fn int_range(self) -> Option<(i128, i128)> {
        let bits = self.size() as u32 * 8;
        match self.kind() {
            Kind::Bool => Some((0, 1)),
            Kind::Int if self.is_signed_int() => Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)),
            Kind::Int => Some((0, (1i128 << bits) - 1)),
            Kind::Float => None,
        }
    }

    /// Returns the common type of two *typed* operands, as in JAX: `bool` yields to everything, an integer yields to
    /// any float, integers of one signedness go to the wider one, mixed signedness to the next signed type that holds
    /// both (`u64` with a signed type has none and goes to `f64`), and `f16` with `bf16` gives `f32`.
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        if self == other {
            return self;
        }
        match (self.kind(), other.kind()) {
            (Kind::Bool, _) => other,
            (_, Kind::Bool) => self,
            (Kind::Float, Kind::Int) => self,
            (Kind::Int, Kind::Float) => other,
            (Kind::Float, Kind::Float) => match (self, other) {
                (F16, Bf16) | (Bf16, F16) => F32,
                _ => self.max(other), // declared narrow to wide
            },
            (Kind::Int, Kind::Int) => {
                if self.is_signed_int() == other.is_signed_int() {
                    return if self.size() >= other.size() { self } else { other };
                }
                let (signed, unsigned) = if self.is_signed_int() { (self, other) } else { (other, self) };
                if signed.size() > unsigned.size() {
                    return signed;
                }
                match unsigned {
                    U8 => I16,
                    U16 => I32,
                    U32 => I64,
                    _ => F64,
                }
            }
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
