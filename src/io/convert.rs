//! Conversion from the element type of a file to that of a parameter.
//!
//! Conversions are allowed within a kind and from integers to floats. Floats are rounded (but not to infinity),
//! integers must be in range, and an integer must be exactly representable as a float. Other conversions would change
//! the meaning of the numbers and are refused.
use super::want::Want;
use taffeta_ast::half_precision::{to_bf16, to_f16};
use taffeta_ast::{Buffer, DType, Diagnostic, Kind, Value};

/// Numbers to convert.
pub(super) enum Numbers<'a> {
    /// Elements of a type of the language.
    Typed(&'a Buffer),
    /// Exact sums of integers.
    Integers(Vec<i128>),
    /// Sums of floats.
    Floats(Vec<f64>),
}

impl Numbers<'_> {
    fn len(&self) -> usize {
        match self {
            Numbers::Typed(data) => data.len(),
            Numbers::Integers(v) => v.len(),
            Numbers::Floats(v) => v.len(),
        }
    }

    fn float(&self, i: usize) -> f64 {
        match self {
            Numbers::Typed(data) => data.get_f64(i),
            Numbers::Integers(v) => v[i] as f64,
            Numbers::Floats(v) => v[i],
        }
    }

    fn integer(&self, i: usize) -> Option<i128> {
        match self {
            Numbers::Typed(data) => data.get_int(i),
            Numbers::Integers(v) => Some(v[i]),
            Numbers::Floats(_) => None,
        }
    }
}

/// Converts a value from a file or a part of it, named `what` in messages, to the requested type.
pub fn to(value: Value, want: &Want, what: &str) -> Result<Value, Diagnostic> {
    let from = value.dtype();
    if from == want.dtype {
        return Ok(value);
    }
    let place = |i: usize| match value.places() {
        Some(places) => at_index(&places.indices[i * value.shape().len()..][..value.shape().len()]),
        None => at(value.shape(), i),
    };
    let converted = numbers(&Numbers::Typed(value.data()), from, want, what, place)?;
    value
        .with_data(converted)
        .ok_or_else(|| Diagnostic::new("data::format", format!("{what}: shape and data disagree")))
}

/// Converts numbers to the requested type. `from` is the type of the elements or summands; `place` formats the location
/// of an element.
pub(super) fn numbers(
    data: &Numbers<'_>,
    from: DType,
    want: &Want,
    what: &str,
    place: impl Fn(usize) -> String,
) -> Result<Buffer, Diagnostic> {
    match (from.kind(), want.dtype.kind()) {
        (Kind::Int, Kind::Int) | (Kind::Int, Kind::Float) | (Kind::Float, Kind::Float) => {}
        _ => return Err(refused(from, want, what)),
    }
    if !want.dtype.is_float() {
        return integers(want.dtype, data.len(), |i| {
            let v = data.integer(i).ok_or_else(|| refused(from, want, what))?;
            in_range(v, want, what, || place(i))
        });
    }
    floats(want.dtype, data.len(), |i| {
        let v = data.float(i);
        let exact = match data.integer(i) {
            Some(int) => float_to(want.dtype, int as f64) as i128 == int,
            None => float_to(want.dtype, v).is_finite() || !v.is_finite(),
        };
        if exact {
            return Ok(v);
        }
        let found = data.integer(i).map_or_else(|| format!("{v}"), |int| int.to_string());
        Err(does_not_fit(want, what, &found, &place(i)))
    })
}

/// Returns `v` if it is in the range of the requested integer type (or `bool`).
pub(crate) fn in_range(v: i128, want: &Want, what: &str, place: impl FnOnce() -> String) -> Result<i128, Diagnostic> {
    match want.dtype.int_range() {
        Some((lo, hi)) if v < lo || v > hi => {
            Err(does_not_fit(want, what, &v.to_string(), &place()).note(format!("{} holds {lo} to {hi}", want.dtype)))
        }
        _ => Ok(v),
    }
}

/// Collects f64 values into a buffer of a float type.
pub(crate) fn floats(
    dtype: DType,
    n: usize,
    get: impl Fn(usize) -> Result<f64, Diagnostic>,
) -> Result<Buffer, Diagnostic> {
    Ok(match dtype {
        DType::F16 => Buffer::F16((0..n).map(|i| get(i).map(to_f16)).collect::<Result<_, _>>()?),
        DType::Bf16 => Buffer::Bf16((0..n).map(|i| get(i).map(to_bf16)).collect::<Result<_, _>>()?),
        DType::F32 => Buffer::F32((0..n).map(|i| get(i).map(|v| v as f32)).collect::<Result<_, _>>()?),
        _ => Buffer::F64((0..n).map(get).collect::<Result<_, _>>()?),
    })
}

/// Collects integers in range into a buffer of an integer type (or `bool`).
pub(crate) fn integers(
    dtype: DType,
    n: usize,
    get: impl Fn(usize) -> Result<i128, Diagnostic>,
) -> Result<Buffer, Diagnostic> {
    macro_rules! collect {
        ($variant:ident, $t:ty) => {
            Buffer::$variant((0..n).map(|i| get(i).map(|v| v as $t)).collect::<Result<_, _>>()?)
        };
    }
    Ok(match dtype {
        DType::Bool => Buffer::Bool((0..n).map(|i| get(i).map(|v| v != 0)).collect::<Result<_, _>>()?),
        DType::I8 => collect!(I8, i8),
        DType::I16 => collect!(I16, i16),
        DType::I32 => collect!(I32, i32),
        DType::U8 => collect!(U8, u8),
        DType::U16 => collect!(U16, u16),
        DType::U32 => collect!(U32, u32),
        DType::U64 => collect!(U64, u64),
        _ => collect!(I64, i64),
    })
}

/// Rounds `v` to a float type.
pub(crate) fn float_to(dtype: DType, v: f64) -> f64 {
    match dtype {
        DType::F16 => to_f16(v).to_f64(),
        DType::Bf16 => to_bf16(v).to_f64(),
        DType::F32 => f64::from(v as f32),
        _ => v,
    }
}

pub(super) fn does_not_fit(want: &Want, what: &str, found: &str, place: &str) -> Diagnostic {
    Diagnostic::new(
        "data::range",
        format!("{what}: {found}{place} does not fit parameter `{}` of type {}", want.name, want.dtype),
    )
}

fn refused(from: DType, want: &Want, what: &str) -> Diagnostic {
    let d = Diagnostic::new(
        "data::dtype",
        format!("{what}: holds {from}, but parameter `{}` is {}", want.name, want.dtype),
    );
    let numpy = match want.dtype {
        DType::Bool => "bool".to_string(),
        d if d.is_float() => format!("float{}", d.size() * 8),
        d if d.is_unsigned_int() => format!("uint{}", d.size() * 8),
        d => format!("int{}", d.size() * 8),
    };
    match (from.kind(), want.dtype.kind()) {
        (Kind::Float, Kind::Int) => d.help(format!(
            "convert the file (in NumPy `x.astype(\"{numpy}\")`), or declare the parameter `{from}` and use `cast`"
        )),
        (_, Kind::Bool) => d.help("convert the file (in NumPy `x != 0`)"),
        _ => d.help(format!("convert the file (in NumPy `x.astype(\"{numpy}\")`)")),
    }
}

/// Formats the location of element `i` of a tensor: ` at [1, 2]`; empty for a scalar.
pub(crate) fn at(shape: &[usize], mut i: usize) -> String {
    if shape.is_empty() {
        return String::new();
    }
    let mut index = vec![0; shape.len()];
    for (k, d) in shape.iter().enumerate().rev() {
        index[k] = i % d.max(&1);
        i /= d.max(&1);
    }
    format!(" at {}", super::want::shape_text(&index))
}

/// Formats the location of an element: ` at [1, 2]`.
pub(super) fn at_index(index: &[i64]) -> String {
    let all: Vec<String> = index.iter().map(i64::to_string).collect();
    format!(" at [{}]", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(data: Buffer, dtype: DType) -> Result<Buffer, String> {
        let n = data.len();
        let want = Want::new("x", dtype, 1);
        let value = Value::new(vec![n], data).expect("one dimension");
        to(value, &want, "x.npy").map(|v| v.into_parts().1).map_err(|d| d.message)
    }

    #[test]
    fn floats_are_rounded_and_do_not_overflow() {
        assert_eq!(check(Buffer::F64(vec![0.1]), DType::F32), Ok(Buffer::F32(vec![0.1])));
        let nan = check(Buffer::F64(vec![f64::NAN, f64::INFINITY]), DType::F32).unwrap();
        assert!(matches!(nan, Buffer::F32(v) if v[0].is_nan() && v[1] == f32::INFINITY));
        let e = check(Buffer::F64(vec![0.0, 1e300]), DType::F32).unwrap_err();
        assert!(e.ends_with("at [1] does not fit parameter `x` of type f32"), "{e}");
    }

    #[test]
    fn integers_are_checked() {
        assert_eq!(check(Buffer::I64(vec![-5]), DType::I8), Ok(Buffer::I8(vec![-5])));
        assert_eq!(check(Buffer::U64(vec![u64::MAX]), DType::U64), Ok(Buffer::U64(vec![u64::MAX])));
        assert_eq!(
            check(Buffer::I64(vec![300]), DType::U8).unwrap_err(),
            "x.npy: 300 at [0] does not fit parameter `x` of type u8"
        );
        assert_eq!(check(Buffer::I64(vec![3]), DType::F32), Ok(Buffer::F32(vec![3.0])));
        assert!(check(Buffer::I64(vec![(1 << 24) + 1]), DType::F32).is_err());
        assert!(check(Buffer::I64(vec![i64::MAX]), DType::F64).is_err());
        assert!(check(Buffer::I32(vec![70000]), DType::F16).is_err());
    }

    #[test]
    fn other_kinds_are_refused() {
        assert_eq!(
            check(Buffer::F32(vec![1.0]), DType::I32).unwrap_err(),
            "x.npy: holds f32, but parameter `x` is i32"
        );
        assert!(check(Buffer::U8(vec![1]), DType::Bool).is_err());
        assert!(check(Buffer::Bool(vec![true]), DType::F32).is_err());
    }
}
