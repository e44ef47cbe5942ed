//! C types and constants of element types.
//!
//! `f16` and `bf16` are stored as 16 bits (`uint16_t`, so that every compiler takes them) and computed as `float`: the
//! value of an expression of such a type is a `float` that the type represents exactly.

use taffeta_ast::expr::Literal;
use taffeta_ast::{DType, Kind};

/// Returns the C type of an element in memory.
pub(super) fn stored(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::U8 => "uint8_t",
        DType::U16 | DType::F16 | DType::Bf16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}

/// Returns the C type of a value.
pub(super) fn value(dtype: DType) -> &'static str {
    if is_narrow_float(dtype) { "float" } else { stored(dtype) }
}

/// Returns whether the type is stored in 16 bits and computed as `float`.
pub(super) fn is_narrow_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16)
}

/// Returns the name in `taffeta_dtype`.
pub(crate) fn abi(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "TAFFETA_BOOL",
        DType::I8 => "TAFFETA_I8",
        DType::I16 => "TAFFETA_I16",
        DType::I32 => "TAFFETA_I32",
        DType::I64 => "TAFFETA_I64",
        DType::U8 => "TAFFETA_U8",
        DType::U16 => "TAFFETA_U16",
        DType::U32 => "TAFFETA_U32",
        DType::U64 => "TAFFETA_U64",
        DType::F16 => "TAFFETA_F16",
        DType::Bf16 => "TAFFETA_BF16",
        DType::F32 => "TAFFETA_F32",
        DType::F64 => "TAFFETA_F64",
    }
}

/// Prints a constant. `exact`: the literal must have the type's width by itself, since no other operand determines it.
pub fn literal(v: Literal, dtype: DType, exact: bool) -> String {
    match v {
        Literal::Bool(b) => b.to_string(),
        Literal::Int(i) => integer(i, dtype, exact),
        Literal::Float(f) => float(f, dtype),
    }
}

fn integer(i: i128, dtype: DType, exact: bool) -> String {
    match dtype {
        DType::I64 if i == i128::from(i64::MIN) => "INT64_MIN".to_string(),
        DType::I64 if exact || i32::try_from(i).is_err() || i == i128::from(i32::MIN) => format!("INT64_C({i})"),
        DType::I32 if i == i128::from(i32::MIN) => "INT32_MIN".to_string(),
        DType::U64 if exact || u32::try_from(i).is_err() => format!("UINT64_C({i})"),
        DType::U32 | DType::U64 => format!("{i}u"),
        _ => i.to_string(),
    }
}

fn float(f: f64, dtype: DType) -> String {
    debug_assert_eq!(dtype.kind(), Kind::Float);
    let wide = dtype == DType::F64;
    if f.is_nan() {
        return if wide { "(double)NAN" } else { "NAN" }.to_string();
    }
    if f.is_infinite() {
        let sign = if f < 0.0 { "-" } else { "" };
        return format!("{sign}{}INFINITY", if wide { "(double)" } else { "" });
    }
    // Shortest digits that read back as the same number of the type.
    if wide { format!("{f:?}") } else { format!("{:?}f", f as f32) }
}
