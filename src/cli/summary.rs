//! Summaries of results: name, type, shape, some values, minimum, maximum and mean.

use serde_json::{Value as Json, json};
use taffeta::ast::{DType, Value};
use taffeta::io::shape_text;

/// Number of values shown at either end of each dimension.
const EDGE: usize = 3;
/// Maximum number of elements that JSON output lists.
const JSON_VALUES: usize = 1000;

/// Statistics of floats, without NaNs, which are counted separately.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Statistics {
    /// Minimum; `None` without numbers.
    min: Option<f64>,
    /// Maximum.
    max: Option<f64>,
    /// Mean.
    mean: Option<f64>,
    /// Number of NaNs.
    nan: usize,
}

/// Computes the statistics in a single pass.
fn statistics(value: &Value) -> Statistics {
    let data = value.data();
    let (mut min, mut max, mut sum, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0usize);
    let mut compensation = 0.0;
    for i in 0..data.len() {
        let v = data.get_f64(i);
        if v.is_nan() {
            continue;
        }
        (min, max, count) = (min.min(v), max.max(v), count + 1);
        // Kahan summation: the mean of a hundred million values should not drift.
        let y = v - compensation;
        let t = sum + y;
        compensation = if t.is_finite() { (t - sum) - y } else { 0.0 };
        sum = t;
    }
    let some = |v: f64| (count > 0).then_some(v);
    Statistics { min: some(min), max: some(max), mean: some(sum / count.max(1) as f64), nan: data.len() - count }
}

/// Exact statistics of integers (and of `bool`, as 0 and 1), since `f64` cannot represent integers beyond 2^53.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Integers {
    min: i128,
    max: i128,
    sum: i128,
    count: i128,
}

/// Computes the statistics of integers; `None` for other types or without elements.
fn integers(value: &Value) -> Option<Integers> {
    let all = (0..value.data().len()).map_while(|i| value.data().get_int(i));
    all.fold(None, |found: Option<Integers>, v| {
        let f = found.unwrap_or(Integers { min: v, max: v, sum: 0, count: 0 });
        Some(Integers { min: f.min.min(v), max: f.max.max(v), sum: f.sum + v, count: f.count + 1 })
    })
}

impl Integers {
    /// Formats the mean with six digits, or with all digits before the point and three after it.
    fn mean_text(&self) -> String {
        let (whole, rest) = (self.sum / self.count, self.sum % self.count);
        if rest == 0 {
            return whole.to_string();
        }
        if whole.abs() < 1_000_000 {
            return float(self.mean());
        }
        let thousandths = (rest.abs() * 2000 + self.count) / (2 * self.count);
        let (whole, thousandths) = (whole.abs() + thousandths / 1000, thousandths % 1000);
        let sign = if self.sum < 0 { "-" } else { "" };
        trim(&format!("{sign}{whole}.{thousandths:03}")).to_string()
    }

    fn mean(&self) -> f64 {
        let (whole, rest) = (self.sum / self.count, self.sum % self.count);
        whole as f64 + rest as f64 / self.count as f64
    }
}

/// Formats the report of the clipped numbers of a picture; empty without any.
pub fn clipped(n: usize, of: usize) -> String {
    if n == 0 {
        return String::new();
    }
    let percent = 100.0 * n as f64 / of as f64;
    let percent = if percent < 0.1 { "less than 0.1".to_string() } else { trim(&format!("{percent:.1}")).to_string() };
    format!("  {n} of {of} numbers ({percent} %) are outside of 0 to 1, and were clipped\n")
}

/// Renders a summary of a result in a few lines.
pub fn text(name: &str, value: &Value) -> String {
    let shape = if value.shape().is_empty() { String::new() } else { shape_text(value.shape()) };
    let mut out = format!("{name}: {}{shape}", value.dtype());
    if value.shape().is_empty() {
        out.push_str(&format!(" = {}\n", element(value, 0)));
        return out;
    }
    out.push('\n');
    if value.places().is_some() {
        // Stored elements, with their indices.
        let text = value.to_string();
        for line in text.split_once("], ").map_or(&*text, |(_, elements)| elements).lines() {
            out.push_str(&format!("  {line}\n"));
        }
    } else {
        for line in values(value).lines() {
            out.push_str(&format!("  {line}\n"));
        }
    }
    if let Some(i) = integers(value) {
        out.push_str(&match value.dtype() {
            DType::Bool => format!("  {} of {} are true\n", i.sum, i.count),
            _ => format!("  min {}  max {}  mean {}\n", i.min, i.max, i.mean_text()),
        });
        return out;
    }
    let s = statistics(value);
    if let (Some(min), Some(max), Some(mean)) = (s.min, s.max, s.mean) {
        out.push_str(&format!("  min {}  max {}  mean {}", float(min), float(max), float(mean)));
        out.push_str(&if s.nan > 0 { format!("  ({} NaN)\n", s.nan) } else { "\n".into() });
    } else if s.nan > 0 {
        out.push_str(&format!("  all {} are NaN\n", s.nan));
    }
    out
}

/// Returns a summary of a result as JSON. NaN and the infinities, which JSON lacks, are strings.
pub fn json(name: &str, value: &Value, file: Option<&str>) -> Json {
    let n = value.data().len();
    let (min, max, mean, nan) = match integers(value) {
        Some(i) => (int_json(i.min), int_json(i.max), float_json(i.mean()), 0),
        None => {
            let s = statistics(value);
            let number = |v: Option<f64>| v.map_or(Json::Null, float_json);
            (number(s.min), number(s.max), number(s.mean), s.nan)
        }
    };
    let mut out = json!({
        "name": name,
        "dtype": value.dtype().name(),
        "shape": value.shape(),
        "min": min,
        "max": max,
        "mean": mean,
        "nan": nan,
        "values": (0..n.min(JSON_VALUES)).map(|i| element_json(value, i)).collect::<Vec<_>>(),
        "truncated": n > JSON_VALUES,
    });
    if let Some(file) = file {
        out["file"] = json!(file);
    }
    out
}

/// Converts a float to a JSON number, or to a string if JSON lacks it.
pub fn float_json(v: f64) -> Json {
    if v.is_finite() { json!(v) } else { json!(float(v)) }
}

/// Converts an integer in the range of `i64` or `u64` to a JSON number.
fn int_json(v: i128) -> Json {
    i64::try_from(v).map_or_else(|_| json!(v as u64), |v| json!(v))
}

fn element_json(value: &Value, i: usize) -> Json {
    match (value.dtype(), value.data().get_int(i)) {
        (DType::Bool, Some(v)) => json!(v == 1),
        (_, Some(v)) => int_json(v),
        (_, None) => float_json(value.data().get_f64(i)),
    }
}

/// Formats a float with six significant digits, without trailing zeros.
pub fn float(v: f64) -> String {
    if v.is_nan() {
        return "nan".into();
    }
    if v.is_infinite() || v == 0.0 {
        return format!("{v}");
    }
    let magnitude = v.abs().log10().floor() as i32;
    if !(-4..=6).contains(&magnitude) {
        let text = format!("{v:.5e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trim(mantissa));
    }
    trim(&format!("{v:.*}", (5 - magnitude).max(0) as usize)).to_string()
}

fn trim(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

fn element(value: &Value, i: usize) -> String {
    match (value.dtype(), value.data().get_int(i)) {
        (DType::Bool, Some(v)) => (v == 1).to_string(),
        (_, Some(v)) => v.to_string(),
        (_, None) => float(value.data().get_f64(i)),
    }
}

/// Formats the values as nested lists, with dots for omitted ones.
fn values(value: &Value) -> String {
    let mut out = String::new();
    nested(value, 0, 0, &mut out);
    out
}

fn nested(value: &Value, dim: usize, offset: usize, out: &mut String) {
    let shape = value.shape();
    let Some(&n) = shape.get(dim) else {
        out.push_str(&element(value, offset));
        return;
    };
    let stride: usize = shape[dim + 1..].iter().product();
    let last = dim + 1 == shape.len();
    // Long lists show both ends; outer dimensions show fewer elements than the innermost.
    let edge = if last { EDGE } else { 2 };
    out.push('[');
    for k in 0..n {
        if n > 2 * edge && k == edge {
            out.push_str(if last { ", …" } else { ",\n" });
            if !last {
                out.push_str(&format!("{}…", " ".repeat(dim + 1)));
            }
        }
        if n > 2 * edge && k >= edge && k < n - edge {
            continue;
        }
        if k > 0 {
            out.push(',');
            out.push_str(&if last { " ".to_string() } else { format!("\n{}", " ".repeat(dim + 1)) });
        }
        nested(value, dim + 1, offset + k * stride, out);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use taffeta::ast::Buffer;

    fn check(shape: &[usize], data: Buffer, expected: Expect) {
        expected.assert_eq(&text("y", &Value::new(shape.to_vec(), data).expect("a value")));
    }

    #[test]
    fn results_are_summarised() {
        check(
            &[],
            Buffer::F64(vec![-0.5]),
            expect![[r#"
            y: f64 = -0.5
        "#]],
        );
        check(
            &[8],
            Buffer::F32((0..8).map(|i| i as f32 / 3.0).collect()),
            expect![[r#"
            y: f32[8]
              [0, 0.333333, 0.666667, …, 1.66667, 2, 2.33333]
              min 0  max 2.33333  mean 1.16667
        "#]],
        );
        check(
            &[2, 2],
            Buffer::I64(vec![1, 2, 3, -4]),
            expect![[r#"
            y: i64[2, 2]
              [[1, 2],
               [3, -4]]
              min -4  max 3  mean 0.5
        "#]],
        );
        check(
            &[5, 7],
            Buffer::F64((0..35).map(|i| f64::from(i) * 1e9).collect()),
            expect![[r#"
            y: f64[5, 7]
              [[0, 1e9, 2e9, …, 4e9, 5e9, 6e9],
               [7e9, 8e9, 9e9, …, 1.1e10, 1.2e10, 1.3e10],
               …,
               [2.1e10, 2.2e10, 2.3e10, …, 2.5e10, 2.6e10, 2.7e10],
               [2.8e10, 2.9e10, 3e10, …, 3.2e10, 3.3e10, 3.4e10]]
              min 0  max 3.4e10  mean 1.7e10
        "#]],
        );
        check(
            &[3],
            Buffer::F32(vec![f32::NAN, f32::INFINITY, 1.0]),
            expect![[r#"
            y: f32[3]
              [nan, inf, 1]
              min 1  max inf  mean inf  (1 NaN)
        "#]],
        );
        check(
            &[2],
            Buffer::F32(vec![f32::NAN; 2]),
            expect![[r#"
            y: f32[2]
              [nan, nan]
              all 2 are NaN
        "#]],
        );
        check(
            &[3],
            Buffer::Bool(vec![true, false, true]),
            expect![[r#"
            y: bool[3]
              [true, false, true]
              2 of 3 are true
        "#]],
        );
        check(
            &[0, 3],
            Buffer::F32(vec![]),
            expect![[r#"
            y: f32[0, 3]
              []
        "#]],
        );
        check(
            &[2, 0],
            Buffer::F32(vec![]),
            expect![[r#"
            y: f32[2, 0]
              [[],
               []]
        "#]],
        );
    }

    #[test]
    fn integers_are_exact() {
        // Neighbours that `f64` cannot distinguish.
        let big = 1i64 << 53;
        check(
            &[3],
            Buffer::I64(vec![big + 1, big + 3, big + 2]),
            expect![[r#"
                y: i64[3]
                  [9007199254740993, 9007199254740995, 9007199254740994]
                  min 9007199254740993  max 9007199254740995  mean 9007199254740994
            "#]],
        );
        check(
            &[2],
            Buffer::I64(vec![i64::MIN, i64::MIN + 1]),
            expect![[r#"
                y: i64[2]
                  [-9223372036854775808, -9223372036854775807]
                  min -9223372036854775808  max -9223372036854775807  mean -9223372036854775807.5
            "#]],
        );
        check(
            &[3],
            Buffer::U64(vec![u64::MAX, u64::MAX, u64::MAX - 1]),
            expect![[r#"
                y: u64[3]
                  [18446744073709551615, 18446744073709551615, 18446744073709551614]
                  min 18446744073709551614  max 18446744073709551615  mean 18446744073709551614.667
            "#]],
        );
        check(
            &[2],
            Buffer::I32(vec![-2, -3]),
            expect![[r#"
                y: i32[2]
                  [-2, -3]
                  min -3  max -2  mean -2.5
            "#]],
        );
        let v = Value::new(vec![2], Buffer::I64(vec![big + 1, big + 1])).expect("a value");
        assert_eq!(json("y", &v, None)["min"], json!(big + 1));
        let v = Value::new(vec![1], Buffer::U64(vec![u64::MAX])).expect("a value");
        assert_eq!(json("y", &v, None)["max"], json!(u64::MAX));
    }

    #[test]
    fn clipped_numbers_are_reported() {
        assert_eq!(clipped(0, 10), "");
        assert_eq!(clipped(3, 8), "  3 of 8 numbers (37.5 %) are outside of 0 to 1, and were clipped\n");
        assert_eq!(clipped(8, 8), "  8 of 8 numbers (100 %) are outside of 0 to 1, and were clipped\n");
        assert!(clipped(1, 1_000_000).contains("(less than 0.1 %)"));
    }

    #[test]
    fn json_has_no_nan() {
        let v = Value::new(vec![2], Buffer::F32(vec![f32::NAN, 1.5])).expect("a value");
        assert_eq!(
            json("y", &v, None).to_string(),
            r#"{"dtype":"f32","max":1.5,"mean":1.5,"min":1.5,"name":"y","nan":1,"shape":[2],"truncated":false,"values":["nan",1.5]}"#
        );
        let u = Value::new(vec![1], Buffer::U64(vec![u64::MAX])).expect("a value");
        assert_eq!(json("y", &u, None)["values"][0], json!(u64::MAX));
    }
}
