//! Literals on the command line: `3`, `2.5`, `-inf`, `true`, `[1, 2, 3]`, `[[1, 2], [3, 4]]`.
//!
//! A literal takes the parameter's type, like a weak value in the language: integers convert to integers (if in range)
//! and floats, floats to floats only.

use super::convert;
use super::want::Want;
use taffeta_ast::{DType, Diagnostic, Kind, Value};

/// Returns whether a text is a literal, and not a file name or a generator.
pub fn looks_like(text: &str) -> bool {
    text.starts_with('[') || Scalar::parse(text).is_some()
}

/// Number or truth value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Truth value: `true`, `True`.
    Bool(bool),
    /// Integer: `3`, `0xff`, `1_000`.
    Int(i128),
    /// Float: `2.5`, `1e-3`, `inf`, `nan`.
    Float(f64),
    /// Number beyond the range of every type, such as `1e400`, as an infinity of its sign.
    Beyond(f64),
}

impl Scalar {
    /// Parses a number in the notation of the language and of Python.
    pub fn parse(text: &str) -> Option<Scalar> {
        match text {
            "true" | "True" => return Some(Scalar::Bool(true)),
            "false" | "False" => return Some(Scalar::Bool(false)),
            _ => {}
        }
        let (negative, body) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let signed_zero = if negative { -1.0 } else { 1.0 };
        match body.to_ascii_lowercase().as_str() {
            "inf" | "infinity" => return Some(Scalar::Float(f64::INFINITY * signed_zero)),
            "nan" => return Some(Scalar::Float(f64::NAN)),
            _ => {}
        }
        let first = *body.as_bytes().first()?;
        if !(first.is_ascii_digit() || first == b'.') || body.ends_with('_') || body.contains("__") {
            return None;
        }
        let digits = body.replace('_', "");
        let int = match digits.get(..2) {
            Some("0x" | "0X") => i128::from_str_radix(&digits[2..], 16).ok(),
            Some("0b" | "0B") => i128::from_str_radix(&digits[2..], 2).ok(),
            Some("0o" | "0O") => i128::from_str_radix(&digits[2..], 8).ok(),
            _ => digits.parse::<i128>().ok(),
        };
        match int {
            Some(v) => Some(Scalar::Int(if negative { v.checked_neg()? } else { v })),
            // Infinity is spelled out; a number that rounds to it is a mistake.
            None => digits.parse::<f64>().ok().map(|v| match v * signed_zero {
                v if v.is_infinite() => Scalar::Beyond(v),
                v => Scalar::Float(v),
            }),
        }
    }
}

/// Reads a literal of any nesting depth.
pub fn read(text: &str, want: &Want) -> Result<Value, Diagnostic> {
    let mut parser = Parser { text, at: 0, scalars: Vec::new(), shape: Vec::new() };
    parser.item(0)?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(parser.error("unexpected text after the end of the literal"));
    }
    let Parser { scalars, shape, .. } = parser;
    let data = buffer(&scalars, want, "the literal", |i| convert::at(&shape, i))?;
    Value::new(shape, data)
        .ok_or_else(|| Diagnostic::new("input::literal", format!("`{text}` has rows of different lengths")))
}

/// Converts scalars to elements of the requested type.
pub(crate) fn buffer(
    scalars: &[Scalar],
    want: &Want,
    what: &str,
    place: impl Fn(usize) -> String,
) -> Result<taffeta_ast::Buffer, Diagnostic> {
    let n = scalars.len();
    match want.dtype.kind() {
        Kind::Float => convert::floats(want.dtype, n, |i| as_float(scalars[i], want, what, || place(i))),
        Kind::Int | Kind::Bool => convert::integers(want.dtype, n, |i| as_int(scalars[i], want, what, || place(i))),
    }
}

/// Converts a scalar to an element of a float type.
fn as_float(s: Scalar, want: &Want, what: &str, place: impl FnOnce() -> String) -> Result<f64, Diagnostic> {
    let v = match s {
        Scalar::Float(v) => v,
        Scalar::Int(v) => v as f64,
        Scalar::Beyond(v) => return Err(beyond(v, want, what, &place())),
        Scalar::Bool(b) => return Err(wrong(&b.to_string(), want, what, &place())),
    };
    if v.is_finite() && !convert::float_to(want.dtype, v).is_finite() {
        let found = if let Scalar::Int(v) = s { v.to_string() } else { format!("{v:?}") };
        return Err(Diagnostic::new(
            "data::range",
            format!("{what}: {found}{} does not fit parameter `{}` of type {}", place(), want.name, want.dtype),
        ));
    }
    Ok(v)
}

/// Converts a scalar to an element of an integer type or `bool`.
fn as_int(s: Scalar, want: &Want, what: &str, place: impl FnOnce() -> String) -> Result<i128, Diagnostic> {
    match s {
        Scalar::Int(v) => convert::in_range(v, want, what, place),
        Scalar::Bool(b) if want.dtype == DType::Bool => Ok(i128::from(b)),
        Scalar::Bool(b) => Err(wrong(&b.to_string(), want, what, &place())),
        Scalar::Float(v) => Err(wrong(&format!("{v:?}"), want, what, &place())),
        Scalar::Beyond(v) => Err(beyond(v, want, what, &place())),
    }
}

/// Creates the diagnostic for a number beyond the range of every type.
fn beyond(v: f64, want: &Want, what: &str, place: &str) -> Diagnostic {
    let bound = if v > 0.0 { "above 1.797e308" } else { "below -1.797e308" };
    let message =
        format!("{what}: a number {bound}{place} does not fit parameter `{}` of type {}", want.name, want.dtype);
    let d = Diagnostic::new("data::range", message);
    if want.dtype.is_float() {
        d.help(if v > 0.0 { "write `inf` for infinity" } else { "write `-inf` for infinity" })
    } else {
        d
    }
}

fn wrong(found: &str, want: &Want, what: &str, place: &str) -> Diagnostic {
    let expected = match want.dtype.kind() {
        Kind::Bool => "true or false",
        Kind::Int => "an integer",
        Kind::Float => "a number",
    };
    Diagnostic::new(
        "data::dtype",
        format!(
            "{what}: expected {expected}{place} for parameter `{}` of type {}, found {found}",
            want.name, want.dtype
        ),
    )
}

/// Recursive-descent parser of a literal, with the scalars read so far.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    scalars: Vec<Scalar>,
    /// Length of the first list at each depth; others must agree.
    shape: Vec<usize>,
}

impl Parser<'_> {
    /// Maximum nesting depth: tensors have few dimensions, and deeper nesting would exhaust the stack.
    const MAX_DEPTH: usize = 64;

    fn blanks(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start().len();
    }

    fn error(&self, what: impl std::fmt::Display) -> Diagnostic {
        let text: String = self.text.chars().take(60).collect();
        Diagnostic::new(
            "input::literal",
            format!("`{text}`, character {}: {what}", self.text[..self.at].chars().count() + 1),
        )
    }

    fn item(&mut self, depth: usize) -> Result<(), Diagnostic> {
        self.blanks();
        if !self.text[self.at..].starts_with('[') {
            return self.scalar(depth);
        }
        if depth >= Self::MAX_DEPTH {
            return Err(self.error("lists are nested too deeply"));
        }
        self.at += 1;
        let mut count = 0;
        let first_of_depth = self.shape.len() == depth;
        if first_of_depth {
            if !self.scalars.is_empty() {
                return Err(self.error("expected a number, found a list"));
            }
            self.shape.push(usize::MAX);
        }
        loop {
            self.blanks();
            if self.eat(']') {
                break;
            }
            self.item(depth + 1)?;
            count += 1;
            self.blanks();
            if self.eat(']') {
                break;
            }
            if !self.eat(',') {
                return Err(self.error("expected `,` or `]`"));
            }
        }
        match self.shape[depth] {
            usize::MAX => self.shape[depth] = count,
            expected if expected != count => {
                return Err(self.error(format!("expected a list of length {expected}, found one of length {count}")));
            }
            _ => {}
        }
        Ok(())
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.text[self.at..].starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    fn scalar(&mut self, depth: usize) -> Result<(), Diagnostic> {
        let rest = &self.text[self.at..];
        let end = rest.find([',', ']', '[']).unwrap_or(rest.len());
        let word = rest[..end].trim_end();
        let Some(s) = Scalar::parse(word) else {
            let found = if word.is_empty() { "nothing" } else { word };
            return Err(self.error(format!("expected a number, found {found}")));
        };
        if self.shape.len() != depth {
            return Err(self.error("expected a list, found a number"));
        }
        self.scalars.push(s);
        self.at += word.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use taffeta_ast::Buffer;

    fn check(text: &str, dtype: DType) -> Result<(Vec<usize>, Buffer), String> {
        let want = Want::new("x", dtype, 0);
        read(text, &want).map(Value::into_parts).map_err(|d| d.message)
    }

    #[test]
    fn literals_take_the_type_of_the_parameter() {
        assert_eq!(check("3", DType::F32), Ok((vec![], Buffer::F32(vec![3.0]))));
        assert_eq!(check("-0.0", DType::F64).map(|v| v.1.get_f64(0).is_sign_negative()), Ok(true));
        assert_eq!(check("[1, 2, 0x10,]", DType::U8), Ok((vec![3], Buffer::U8(vec![1, 2, 16]))));
        assert_eq!(check("[[1,2],[3,4]]", DType::I64), Ok((vec![2, 2], Buffer::I64(vec![1, 2, 3, 4]))));
        assert_eq!(check("[true, False]", DType::Bool), Ok((vec![2], Buffer::Bool(vec![true, false]))));
        assert_eq!(check("[]", DType::F32), Ok((vec![0], Buffer::F32(vec![]))));
        assert_eq!(check("[[], []]", DType::F32), Ok((vec![2, 0], Buffer::F32(vec![]))));
        assert_eq!(check("[inf, -inf]", DType::F32), Ok((vec![2], Buffer::F32(vec![f32::INFINITY, -f32::INFINITY]))));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert_eq!(
            check("[1, 256]", DType::U8).unwrap_err(),
            "the literal: 256 at [1] does not fit parameter `x` of type u8"
        );
        assert_eq!(
            check("2.5", DType::I32).unwrap_err(),
            "the literal: expected an integer for parameter `x` of type i32, found 2.5"
        );
        assert!(check("true", DType::F32).is_err());
        let message = |text: &str, dtype| check(text, dtype).unwrap_err();
        let large = "the literal: 1e39 does not fit parameter `x` of type f32";
        assert_eq!(message("1e39", DType::F32), large);
        assert_eq!(
            message("[0, 1e400]", DType::F64),
            "the literal: a number above 1.797e308 at [1] does not fit parameter `x` of type f64"
        );
        assert_eq!(
            message("-1e400", DType::F32),
            "the literal: a number below -1.797e308 does not fit parameter `x` of type f32"
        );
        assert!(message("1e400", DType::I32).contains("does not fit"));
        assert!(message(&"9".repeat(400), DType::F64).contains("does not fit"));
        assert!(message("70000", DType::F16).contains("does not fit"));
        assert!(
            message("-1", DType::U8).contains("does not fit") && message("128", DType::I8).contains("does not fit")
        );
        assert!(message("18446744073709551616", DType::U64).contains("does not fit"));
        assert_eq!(check("1e-400", DType::F64), Ok((vec![], Buffer::F64(vec![0.0]))));
    }

    #[test]
    fn ragged_and_broken_lists_are_refused() {
        assert_eq!(
            check("[[1, 2], [3]]", DType::F32).unwrap_err(),
            "`[[1, 2], [3]]`, character 13: expected a list of length 2, found one of length 1"
        );
        for bad in ["[1, [2]]", "[[1], 2]", "[1", "[1 2]", "[a]", "[1]]", "[,]", "[[[1]], [2]]", "[[], [[1]]]"] {
            assert!(check(bad, DType::F32).is_err(), "{bad}");
        }
        assert!(check(&"[".repeat(100_000), DType::F32).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in "[\\[\\],0-9eE.+x_a-fé -]{0,40}") {
            let _ = check(&text, DType::F32);
            let _ = check(&text, DType::I16);
        }

        #[test]
        fn integers_round_trip(v in proptest::collection::vec(any::<i64>(), 0..20)) {
            prop_assert_eq!(check(&format!("{v:?}"), DType::I64), Ok((vec![v.len()], Buffer::I64(v))));
        }

        #[test]
        fn floats_round_trip(v in proptest::collection::vec(any::<f32>().prop_filter("NaN differs from itself", |v| !v.is_nan()), 0..20)) {
            prop_assert_eq!(check(&format!("{v:?}"), DType::F32), Ok((vec![v.len()], Buffer::F32(v))));
        }
    }
}
