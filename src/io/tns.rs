//! `.tns`, the text format of FROSTT, plain or compressed (`.tns.gz`): a line for each element, with its coordinates
//! counted from 1 and its value. Lines that begin with `#` are comments.
//!
//! ```text
//!   # a tensor of three dimensions        A line with one number, and one with as many, may come first: the number of
//!   1 4 1  2.5                            dimensions, and the sizes (ParTI writes them). Otherwise the sizes are those
//!   3 1 2  -1                             that the program knows, or the largest coordinates.
//! ```
//!
//! A compressed file is decompressed in pieces, and memory is checked as elements arrive: announced sizes allocate
//! nothing.

use super::elements::{Elements, Numbers, TextNumbers};
use super::file::broken;
use super::file::{file_error, line_error};
use super::want::{Want, shape_text};
use super::{memory, source};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use taffeta_ast::value::MAX_SIZE;
use taffeta_ast::{Buffer, DType, Diagnostic, Value};

/// Reads a tensor as sparse elements, summing repeated ones.
pub fn read(path: &Path, want: &Want) -> Result<Value, Diagnostic> {
    let mut tensor =
        Tensor { path, want, sizes: Vec::new(), given: Vec::new(), indices: Vec::new(), order: None, pair: None };
    let mut values = TextNumbers::default();
    let mut lines = Lines { reader: reader(path)?, path, number: 0, line: Vec::new() };
    while let Some((number, line)) = lines.next()? {
        tensor.line(line, number, &mut values)?;
    }
    let shape = tensor.shape()?;
    let values = Numbers::Typed(values.buffer(want.dtype));
    Elements { indices: tensor.indices, values }.tensor(shape, want, path)
}

/// Returns the number of dimensions of a file: that of its first element.
pub(super) fn dimensions(path: &Path) -> Result<usize, Diagnostic> {
    let mut lines = Lines { reader: reader(path)?, path, number: 0, line: Vec::new() };
    let mut counts: Vec<usize> = Vec::new();
    while let Some((_, line)) = lines.next()? {
        counts.push(line.split_whitespace().count());
        match counts[..] {
            // The number of dimensions, and the sizes, may come first.
            [1] | [1, _] => {}
            [1, sizes, _] => return Ok(sizes),
            [first, ..] => return Ok(first - 1),
            [] => {}
        }
    }
    match counts[..] {
        [1, sizes] => Ok(sizes),
        _ => Err(file_error("data::format", path, "the file has no elements, so its dimensions are not known")),
    }
}

/// Returns the element type of a file: `i64`, or `u64`, if all elements are in its range, else `f64`.
pub(super) fn dtype(path: &Path) -> Result<DType, Diagnostic> {
    let mut lines = Lines { reader: reader(path)?, path, number: 0, line: Vec::new() };
    let (mut header, mut is_signed, mut is_unsigned) = (0, true, true);
    let mut count = 0;
    while let Some((_, line)) = lines.next()?
        && (is_signed || is_unsigned)
    {
        // The number of dimensions, and the sizes, may come first.
        if count == 0 && line.split_whitespace().nth(1).is_none() {
            header = 2;
        }
        if count >= header {
            let value = line.split_whitespace().next_back().unwrap_or_default();
            is_signed &= value.parse::<i64>().is_ok();
            is_unsigned &= value.parse::<u64>().is_ok();
        }
        count += 1;
    }
    Ok(match (is_signed, is_unsigned) {
        _ if count <= header => DType::F64,
        (true, _) => DType::I64,
        (_, true) => DType::U64,
        _ => DType::F64,
    })
}

fn reader(path: &Path) -> Result<Box<dyn BufRead>, Diagnostic> {
    let file = BufReader::new(super::file::Counted::open(path)?);
    Ok(match source::extension(path).as_str() {
        "tns.gz" => Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(file))),
        _ => Box::new(file),
    })
}

/// State of the reader.
struct Tensor<'a> {
    path: &'a Path,
    want: &'a Want,
    /// Largest coordinate of each dimension.
    sizes: Vec<usize>,
    /// Known sizes: those of the program, or of the file's header.
    given: Vec<Option<usize>>,
    indices: Vec<i64>,
    /// Number of dimensions in the file's header, if it has one.
    order: Option<usize>,
    /// First line if it consists of two integers: an element of a vector, or a header that other programs write.
    pair: Option<(usize, [usize; 2])>,
}

impl Tensor<'_> {
    fn line(&mut self, line: &str, number: usize, values: &mut TextNumbers) -> Result<(), Diagnostic> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bad = |what: String| line_error(self.path, number, what);
        let size = |w: &&str| w.parse::<usize>().map_err(|_| bad(format!("`{w}` is not a size")));
        match (words.as_slice(), self.order, self.sizes.is_empty()) {
            ([one], None, true) => {
                let order = size(one)?;
                if order == 0 {
                    return Err(bad("expected at least one dimension, found 0".into()));
                }
                self.order = Some(order);
                return Ok(());
            }
            (sizes, Some(order), true) => {
                if sizes.len() != order {
                    let what = format!("expected {order} sizes after the number of dimensions");
                    return Err(bad(format!("{what}, found {}", sizes.len())));
                }
                self.given = sizes.iter().map(size).map(|n| n.map(Some)).collect::<Result<_, _>>()?;
                self.sizes = vec![0; order];
                return Ok(());
            }
            _ => {}
        }
        self.check_header(&words)?;
        if words.len() == 1 {
            return Err(bad("expected coordinates and a value".into()));
        }
        let Some((value, coordinates)) = words.split_last() else { return Ok(()) };
        if self.sizes.is_empty() {
            self.sizes = vec![0; coordinates.len()];
            let known = self.want.sizes.len() == coordinates.len();
            self.given = if known { self.want.sizes.clone() } else { vec![None; coordinates.len()] };
            self.pair = match words[..] {
                [a, b] if self.order.is_none() => a.parse().ok().zip(b.parse().ok()).map(|(a, b)| (number, [a, b])),
                _ => None,
            };
        }
        if coordinates.len() != self.sizes.len() {
            let what = format!("expected {} coordinates and a value", self.sizes.len());
            return Err(bad(format!("{what}, found {} words", words.len())));
        }
        self.room()?;
        for (k, word) in coordinates.iter().enumerate() {
            let most = self.given[k].unwrap_or(MAX_SIZE as usize);
            let c = word.parse::<usize>().map_err(|_| bad(format!("`{word}` is not a coordinate")))?;
            if c == 0 || c > most {
                return Err(bad(format!("coordinate {c} of dimension {k} is out of range: 1 to {most}")));
            }
            self.sizes[k] = self.sizes[k].max(c);
            self.indices.push(c as i64 - 1);
        }
        values.push(value).ok_or_else(|| bad(format!("expected a number in the range of f64, found `{value}`")))
    }

    /// Refuses a header with the numbers of dimensions and elements on one line. It is recognised at the first line
    /// with as many words as sizes, or as coordinates and a value, of that number of dimensions.
    fn check_header(&self, words: &[&str]) -> Result<(), Diagnostic> {
        let Some((number, [order, count])) = self.pair.filter(|_| words.len() != 2) else { return Ok(()) };
        if order == 0 || ![order, order.saturating_add(1)].contains(&words.len()) {
            return Ok(());
        }
        let what = format!("unexpected header `{order} {count}` (the numbers of dimensions and of elements)");
        Err(line_error(self.path, number, what)
            .help(format!("remove it, or write two lines instead: the number of dimensions, `{order}`, and the sizes")))
    }

    /// Checks memory for more elements whenever the vectors would grow.
    fn room(&self) -> Result<(), Diagnostic> {
        if self.indices.len() + self.sizes.len() <= self.indices.capacity() {
            return Ok(());
        }
        // Twice the coordinates, and as many values.
        let bytes = 2 * 8 * (self.indices.len() + self.indices.len() / self.sizes.len().max(1));
        memory::check_bytes(bytes as u128, &self.path.display().to_string())
    }

    fn shape(&self) -> Result<Vec<usize>, Diagnostic> {
        let given = if self.sizes.is_empty() { &self.want.sizes } else { &self.given };
        let largest = |k: usize| self.sizes.get(k).copied().filter(|_| !self.indices.is_empty());
        let shape: Option<Vec<usize>> = given.iter().enumerate().map(|(k, n)| n.or(largest(k))).collect();
        let none = || {
            file_error(
                "data::empty",
                self.path,
                format!("no elements to determine the sizes of parameter `{}`", self.want.name),
            )
            .help("give its sizes with --size")
        };
        shape.filter(|s| !s.is_empty()).ok_or_else(none)
    }
}

/// Iterator over lines that are neither empty nor comments, with their numbers.
struct Lines<'a> {
    reader: Box<dyn BufRead>,
    path: &'a Path,
    number: usize,
    line: Vec<u8>,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<(usize, &str)>, Diagnostic> {
        /// Maximum bytes of a line: a few hundred coordinates.
        const MAX_LINE: u64 = 1 << 16;
        loop {
            self.line.clear();
            self.number += 1;
            let read = self.reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut self.line);
            if read.map_err(|e| broken(self.path, &e))? == 0 {
                return Ok(None);
            }
            if self.line.len() as u64 == MAX_LINE && self.line.last() != Some(&b'\n') {
                return Err(line_error(self.path, self.number, format!("the line is longer than {MAX_LINE} bytes")));
            }
            if !matches!(self.line.trim_ascii().first(), None | Some(b'#')) {
                break;
            }
        }
        let text = std::str::from_utf8(&self.line);
        let text = text.map_err(|_| line_error(self.path, self.number, "not a text file (not valid UTF-8)"))?;
        Ok(Some((self.number, text.trim())))
    }
}

/// Writes the stored elements of a sparse tensor.
pub fn write(out: &mut dyn Write, value: &Value) -> std::io::Result<()> {
    let Some(places) = value.places() else {
        return Err(std::io::Error::other(format!("{} is dense", shape_text(value.shape()))));
    };
    write_listed(out, value.shape().len(), &places.indices, value.data())
}

/// Writes elements in the order in which they are listed; `indices` has `ndim` for each.
pub(super) fn write_listed(
    out: &mut (impl Write + ?Sized),
    ndim: usize,
    indices: &[i64],
    data: &Buffer,
) -> std::io::Result<()> {
    for (e, at) in indices.chunks_exact(ndim.max(1)).enumerate() {
        for c in at {
            write!(out, "{} ", c + 1)?;
        }
        writeln!(out, "{}", number(data, e))?;
    }
    Ok(())
}

/// Formats an element such that it reads back exactly.
pub(super) fn number(data: &Buffer, e: usize) -> String {
    match (data, data.get_int(e)) {
        (Buffer::F32(v), _) => format!("{:?}", v[e]),
        (_, Some(int)) => int.to_string(),
        (_, None) => format!("{:?}", data.get_f64(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, compressed: bool, want: &Want) -> Result<Value, String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join(if compressed { "a.tns.gz" } else { "a.tns" });
        let mut bytes = text.as_bytes().to_vec();
        if compressed {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(&bytes).expect("memory");
            bytes = encoder.finish().expect("memory");
        }
        std::fs::write(&path, bytes).expect("a file");
        let prefix = format!("{}/", dir.path().display());
        read(&path, want).map_err(|d| d.message.replace(&prefix, ""))
    }

    fn sparse(shape: &[usize], indices: &[i64], data: Buffer) -> Result<Value, String> {
        let zero = taffeta_ast::Literal::zero(data.dtype());
        Ok(Value::sparse(shape.to_vec(), indices.to_vec(), data, zero).expect("it is in order"))
    }

    #[test]
    fn elements_are_read_in_any_order_and_summed() {
        let want = Want::new("A", DType::F32, 3);
        let text = "# a comment\n3 1 2 -1\n\n1 4 1 2.5\n 3\t1 2 0.5\n";
        for compressed in [false, true] {
            let expected = sparse(&[3, 4, 2], &[0, 3, 0, 2, 0, 1], Buffer::F32(vec![2.5, -0.5]));
            assert_eq!(check(text, compressed, &want), expected);
        }
        let given = Want { sizes: vec![Some(5), None, Some(2)], ..want.clone() };
        assert_eq!(check(text, false, &given).expect("it fits").shape(), [5, 4, 2]);
        let header = sparse(&[3, 9], &[0, 8], Buffer::I32(vec![7]));
        assert_eq!(check("2\n3 9\n1 9 7\n", false, &Want::new("A", DType::I32, 2)), header);
        let flags = sparse(&[2], &[0, 1], Buffer::Bool(vec![true, false]));
        assert_eq!(check("1 1\n2 0\n", false, &Want::new("A", DType::Bool, 1)), flags);
        // Sums are converted to the parameter's type, or refused if out of range.
        let bytes = |text: &str| check(text, false, &Want::new("A", DType::U8, 1));
        assert_eq!(bytes("1 300\n1 -200\n2 7\n"), sparse(&[2], &[0, 1], Buffer::U8(vec![100, 7])));
        let refused = "a.tns: 300 at [0], the sum of 2 elements, does not fit parameter `A` of type u8";
        assert_eq!(bytes("1 200\n1 100\n"), Err(refused.to_string()));
        let most = check("1 18446744073709551615\n2 5\n", false, &Want::new("A", DType::U64, 1));
        assert_eq!(most, sparse(&[2], &[0, 1], Buffer::U64(vec![u64::MAX, 5])));
        let wide = check("1 9223372036854775807\n1 1\n", false, &Want::new("A", DType::U64, 1));
        assert_eq!(wide, sparse(&[1], &[0], Buffer::U64(vec![1 << 63])));
        let narrow = check("1 9223372036854775807\n1 1\n", false, &Want::new("A", DType::I64, 1)).unwrap_err();
        assert!(
            narrow.starts_with("a.tns: 9223372036854775808 at [0], the sum of 2 elements, does not fit"),
            "{narrow}"
        );
        let empty = Want { sizes: vec![Some(2), Some(3)], ..Want::new("A", DType::F64, 2) };
        assert_eq!(check("# nothing\n", false, &empty), sparse(&[2, 3], &[], Buffer::F64(vec![])));
    }

    #[test]
    fn errors_name_the_line() {
        let want = Want { sizes: vec![Some(4), None], ..Want::new("A", DType::F64, 2) };
        for (text, says) in [
            ("1 1 1\n5 1 1\n", "a.tns:2: coordinate 5 of dimension 0 is out of range: 1 to 4"),
            ("1 0 1\n", "a.tns:1: coordinate 0 of dimension 1 is out of range: 1 to 140737488355328"),
            (
                "1 999999999999999 1\n",
                "a.tns:1: coordinate 999999999999999 of dimension 1 is out of range: 1 to 140737488355328",
            ),
            ("1 -1 1\n", "a.tns:1: `-1` is not a coordinate"),
            ("# x\n1 1 x\n", "a.tns:2: expected a number in the range of f64, found `x`"),
            ("1 1 1\n1 1\n", "a.tns:2: expected 2 coordinates and a value, found 2 words"),
            ("1 1 1\n1\n", "a.tns:2: expected coordinates and a value"),
            ("2 1\n4 4\n1 1 1\n", "a.tns:1: unexpected header `2 1` (the numbers of dimensions and of elements)"),
            ("3 9\n4 4 4\n1 1 1 1\n", "a.tns:1: unexpected header `3 9` (the numbers of dimensions and of elements)"),
            ("1 9\n4\n1 1\n", "a.tns:1: unexpected header `1 9` (the numbers of dimensions and of elements)"),
            ("2 1.5\n1 1 1\n", "a.tns:2: expected 1 coordinates and a value, found 3 words"),
            ("3\n2 2\n", "a.tns:2: expected 3 sizes after the number of dimensions, found 2"),
            ("0\n", "a.tns:1: expected at least one dimension, found 0"),
            ("", "a.tns: no elements to determine the sizes of parameter `A`"),
        ] {
            assert_eq!(check(text, false, &want).unwrap_err(), says);
        }
        let long = check(&"1 ".repeat(100_000), true, &want).unwrap_err();
        assert_eq!(long, "a.tns.gz:1: the line is longer than 65536 bytes");
    }

    #[test]
    fn written_files_round_trip() {
        let numbers = vec![0.1, f64::NAN, f64::INFINITY, -1e300, 5e-324, -0.0];
        let indices: Vec<i64> = (0..6).flat_map(|k| [k, 2 * k]).collect();
        let value = sparse(&[6, 11], &indices, Buffer::F64(numbers.clone())).expect("a value");
        let mut text = Vec::new();
        write(&mut text, &value).expect("memory");
        let text = String::from_utf8(text).expect("text");
        let back = check(&text, true, &Want::new("A", DType::F64, 2)).expect("it is read");
        assert_eq!((back.shape(), back.places()), (value.shape(), value.places()));
        let bits = |v: Vec<f64>| v.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(back.numbers()), bits(numbers), "{text}");
    }
}
