//! NumPy's `.npy` (format versions 1 to 3): a header that is a Python dictionary, then the elements.
//!
//! Reads every type of Taffeta, in either byte order and in C or Fortran order. Writes little-endian, C-ordered files
//! of version 1; `bf16`, which NumPy lacks, is written as `f32` (exactly).

use super::file::{file_error, os_error, truncated};
use super::want::Want;
use super::{convert, memory};
use half::f16;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use taffeta_ast::value::element_count;
use taffeta_ast::{Buffer, DType, Diagnostic, Value};

/// Header of a file.
#[derive(Clone, Debug, PartialEq)]
struct Header {
    dtype: DType,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads a file.
pub fn read(path: &Path, want: &Want) -> Result<Value, Diagnostic> {
    let file = super::file::open(path)?;
    let len = file.metadata().map_err(|e| os_error(path, &e))?.len();
    let value = read_from(&mut BufReader::new(file), Some(len), path)?;
    convert::to(value, want, &path.display().to_string())
}

/// Returns the element type and the number of dimensions of a file.
pub(super) fn declared(path: &Path) -> Result<(DType, usize), Diagnostic> {
    let header = read_header(&mut BufReader::new(super::file::open(path)?), path)?;
    Ok((header.dtype, header.shape.len()))
}

/// Reads an array in the file's type. `available` is the maximum number of bytes, if known.
pub fn read_from(reader: &mut dyn Read, available: Option<u64>, path: &Path) -> Result<Value, Diagnostic> {
    let header = read_header(reader, path)?;
    let what = path.display().to_string();
    let bytes = memory::check_tensor(header.dtype, &header.shape, &what)?;
    if available.is_some_and(|a| a < bytes as u64) {
        return Err(truncated(path));
    }
    let n = element_count(&header.shape).unwrap_or(0);
    let data = read_elements(reader, &header, n).map_err(|e| os_error(path, &e))?;
    Value::new(header.shape, data).ok_or_else(|| truncated(path))
}

/// Reads a string: an array without dimensions, of bytes or (as written by Python 2) of characters.
pub(super) fn read_text(reader: &mut dyn Read, path: &Path) -> Result<String, Diagnostic> {
    let bad = |what: &str| file_error("data::format", path, what);
    let header = header_text(reader, path)?;
    let (descr, _, shape) = fields(&header).map_err(|what| bad(&what))?;
    let kind = descr.trim_start_matches(['<', '|', '=']);
    let (bytes, length) = match (kind.get(..1), kind.get(1..).and_then(|n| n.parse::<usize>().ok())) {
        (Some("S"), Some(length)) => (1, length),
        (Some("U"), Some(length)) => (4, length),
        _ => return Err(bad(&format!("expected a string, found elements of type `{descr}`"))),
    };
    if !shape.is_empty() || length > 1000 {
        return Err(bad("expected a single string of at most 1000 characters"));
    }
    let mut all = vec![0u8; bytes * length];
    reader.read_exact(&mut all).map_err(|e| os_error(path, &e))?;
    let characters = all.chunks_exact(bytes).map(|c| if c[1..].iter().all(|b| *b == 0) { c[0] } else { b'?' });
    Ok(characters.take_while(|c| *c != 0).map(char::from).collect())
}

fn read_header(reader: &mut dyn Read, path: &Path) -> Result<Header, Diagnostic> {
    let text = header_text(reader, path)?;
    parse_header(&text).map_err(|what| file_error("data::format", path, what))
}

fn header_text(reader: &mut dyn Read, path: &Path) -> Result<String, Diagnostic> {
    let bad = |what: &str| file_error("data::format", path, what);
    let mut start = [0u8; 8];
    reader.read_exact(&mut start).map_err(|_| bad("not a NumPy file (it has no NumPy header)"))?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(bad("not a NumPy file (it does not start with \\x93NUMPY)"));
    }
    let len = match start[6] {
        1 => {
            let mut b = [0u8; 2];
            reader.read_exact(&mut b).map_err(|e| os_error(path, &e))?;
            u32::from(u16::from_le_bytes(b))
        }
        2 | 3 => {
            let mut b = [0u8; 4];
            reader.read_exact(&mut b).map_err(|e| os_error(path, &e))?;
            u32::from_le_bytes(b)
        }
        v => return Err(bad(&format!("NumPy format version {v} is not supported"))),
    };
    if len > 1_000_000 {
        return Err(bad("the NumPy header is longer than 1 MB"));
    }
    let mut text = vec![0u8; len as usize];
    reader.read_exact(&mut text).map_err(|e| os_error(path, &e))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the header's text from the value of entry `key` on.
fn entry<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let (at, len) = quoted.iter().find_map(|q| text.find(q.as_str()).map(|i| (i, q.len())))?;
    text[at + len..].trim_start().strip_prefix(':').map(str::trim_start)
}

/// Returns the element type, whether the order is Fortran's, and the shape.
fn fields(text: &str) -> Result<(&str, bool, Vec<usize>), String> {
    let descr = entry(text, "descr").ok_or("the header has no `descr`")?;
    if descr.starts_with('[') {
        return Err("records (structured types) are not supported: save each field as its own array".into());
    }
    let quote = descr.chars().next().filter(|c| *c == '\'' || *c == '"').ok_or("`descr` is not a string")?;
    let descr = descr[1..].split(quote).next().unwrap_or("");
    let fortran = match entry(text, "fortran_order").ok_or("the header has no `fortran_order`")? {
        t if t.starts_with("True") => true,
        t if t.starts_with("False") => false,
        _ => return Err("`fortran_order` is neither True nor False".into()),
    };
    let shape = entry(text, "shape").ok_or("the header has no `shape`")?;
    let shape = shape.strip_prefix('(').and_then(|s| s.split_once(')')).ok_or("`shape` is not a tuple")?.0;
    let shape = shape
        .split(',')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(|s| s.trim_end_matches('L').parse::<usize>().map_err(|_| format!("`{s}` in `shape` is not a size")))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((descr, fortran, shape))
}

fn parse_header(text: &str) -> Result<Header, String> {
    let (descr, fortran, shape) = fields(text)?;
    let (order, name) = match descr.chars().next() {
        Some(c @ ('<' | '>' | '|' | '=')) => (c, &descr[1..]),
        _ => ('=', descr),
    };
    let dtype = match name {
        "b1" | "?" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        n if n.starts_with('c') => return Err(format!("complex numbers (`{descr}`) are not supported")),
        n if n.starts_with(['U', 'S', 'O', 'M', 'm', 'V']) => {
            return Err(format!("elements of type `{descr}` are not numbers"));
        }
        _ => return Err(format!("elements of type `{descr}` are not supported")),
    };
    let big_endian = order == '>' || (order == '=' && cfg!(target_endian = "big"));
    Ok(Header { dtype, big_endian, fortran, shape })
}

fn read_elements(reader: &mut dyn Read, header: &Header, n: usize) -> std::io::Result<Buffer> {
    macro_rules! numbers {
        ($variant:ident, $t:ty, $size:literal) => {
            if header.big_endian {
                Buffer::$variant(row_major(blocks::<$size, $t>(reader, n, <$t>::from_be_bytes)?, header))
            } else {
                Buffer::$variant(row_major(blocks::<$size, $t>(reader, n, <$t>::from_le_bytes)?, header))
            }
        };
    }
    Ok(match header.dtype {
        DType::Bool => Buffer::Bool(row_major(blocks::<1, bool>(reader, n, |b| b[0] != 0)?, header)),
        DType::I8 => numbers!(I8, i8, 1),
        DType::I16 => numbers!(I16, i16, 2),
        DType::I32 => numbers!(I32, i32, 4),
        DType::I64 => numbers!(I64, i64, 8),
        DType::U8 => numbers!(U8, u8, 1),
        DType::U16 => numbers!(U16, u16, 2),
        DType::U32 => numbers!(U32, u32, 4),
        DType::U64 => numbers!(U64, u64, 8),
        DType::F16 => numbers!(F16, f16, 2),
        DType::F32 => numbers!(F32, f32, 4),
        DType::F64 | DType::Bf16 => numbers!(F64, f64, 8),
    })
}

/// Reads `n` elements of `SIZE` bytes in blocks, to avoid a second copy of the file in memory.
fn blocks<const SIZE: usize, T>(
    reader: &mut dyn Read,
    n: usize,
    from: impl Fn([u8; SIZE]) -> T,
) -> std::io::Result<Vec<T>> {
    const ELEMENTS: usize = 1 << 15;
    let mut out = Vec::with_capacity(n);
    let mut block = vec![0u8; ELEMENTS.min(n.max(1)) * SIZE];
    while out.len() < n {
        let bytes = &mut block[..ELEMENTS.min(n - out.len()) * SIZE];
        reader.read_exact(bytes)?;
        out.extend(bytes.as_chunks::<SIZE>().0.iter().map(|c| from(*c)));
    }
    Ok(out)
}

/// Reorders elements of a Fortran-ordered file to row-major order.
fn row_major<T: Copy>(v: Vec<T>, header: &Header) -> Vec<T> {
    let shape = &header.shape;
    if !header.fortran || shape.len() < 2 || v.is_empty() {
        return v;
    }
    let mut strides = vec![1usize; shape.len()];
    for k in 1..shape.len() {
        strides[k] = strides[k - 1] * shape[k - 1];
    }
    let mut index = vec![0usize; shape.len()];
    let mut out = Vec::with_capacity(v.len());
    for _ in 0..v.len() {
        out.push(v[index.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()]);
        for k in (0..shape.len()).rev() {
            index[k] += 1;
            if index[k] < shape[k] {
                break;
            }
            index[k] = 0;
        }
    }
    out
}

/// Writes a tensor.
pub fn write(out: &mut dyn Write, value: &Value) -> std::io::Result<()> {
    let descr = match value.dtype() {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::U8 => "|u1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::Bf16 | DType::F32 => "<f4",
        DType::F64 => "<f8",
    };
    write_header(out, descr, value.shape())?;
    macro_rules! numbers {
        ($v:expr) => {
            $v.iter().try_for_each(|x| out.write_all(&x.to_le_bytes()))
        };
    }
    match value.data() {
        Buffer::Bool(v) => v.iter().try_for_each(|b| out.write_all(&[u8::from(*b)])),
        Buffer::I8(v) => numbers!(v),
        Buffer::I16(v) => numbers!(v),
        Buffer::I32(v) => numbers!(v),
        Buffer::I64(v) => numbers!(v),
        Buffer::U8(v) => out.write_all(v),
        Buffer::U16(v) => numbers!(v),
        Buffer::U32(v) => numbers!(v),
        Buffer::U64(v) => numbers!(v),
        Buffer::F16(v) => numbers!(v),
        Buffer::Bf16(v) => v.iter().try_for_each(|x| out.write_all(&x.to_f32().to_le_bytes())),
        Buffer::F32(v) => numbers!(v),
        Buffer::F64(v) => numbers!(v),
    }
}

/// Writes a string as Python's `bytes`.
pub(super) fn write_text(out: &mut dyn Write, text: &str) -> std::io::Result<()> {
    write_header(out, &format!("|S{}", text.len()), &[])?;
    out.write_all(text.as_bytes())
}

fn write_header(out: &mut dyn Write, descr: &str, shape: &[usize]) -> std::io::Result<()> {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = if sizes.len() == 1 { format!("({},)", sizes[0]) } else { format!("({})", sizes.join(", ")) };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // NumPy aligns the data to 64 bytes: magic, version, length, header and a newline.
    header.push_str(&" ".repeat((64 - (10 + header.len() + 1) % 64) % 64));
    header.push('\n');
    let len = u16::try_from(header.len()).map_err(|_| std::io::Error::other("the shape has too many dimensions"))?;
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(header.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut b = b"\x93NUMPY\x01\x00".to_vec();
        b.extend((header.len() as u16).to_le_bytes());
        b.extend(header.as_bytes());
        b.extend(data);
        b
    }

    fn check(b: &[u8]) -> Result<(Vec<usize>, Buffer), String> {
        read_from(&mut &*b, Some(b.len() as u64), Path::new("x.npy")).map(Value::into_parts).map_err(|d| d.message)
    }

    #[test]
    fn orders_and_shapes_are_understood() {
        assert_eq!(check(&bytes("'<i2'", "False", "(2,)", &[1, 0, 2, 0])), Ok((vec![2], Buffer::I16(vec![1, 2]))));
        assert_eq!(check(&bytes("'>i2'", "False", "(2,)", &[1, 0, 0, 2])), Ok((vec![2], Buffer::I16(vec![256, 2]))));
        assert_eq!(check(&bytes("'|b1'", "False", "()", &[7])), Ok((vec![], Buffer::Bool(vec![true]))));
        assert_eq!(check(&bytes("'|u1'", "False", "(0, 3)", &[])), Ok((vec![0, 3], Buffer::U8(vec![]))));
        assert_eq!(
            check(&bytes("'|u1'", "True", "(2, 3)", &[0, 3, 1, 4, 2, 5])),
            Ok((vec![2, 3], Buffer::U8(vec![0, 1, 2, 3, 4, 5])))
        );
        assert_eq!(check(&bytes("'<f2'", "False", "(1,)", &[0, 0x3c])), Ok((vec![1], Buffer::F16(vec![f16::ONE]))));
    }

    #[test]
    fn files_without_numbers_are_refused() {
        assert_eq!(check(b"hello, world").unwrap_err(), "x.npy: not a NumPy file (it does not start with \\x93NUMPY)");
        assert!(check(b"").is_err());
        assert!(check(&bytes("'<c8'", "False", "(1,)", &[0; 8])).unwrap_err().contains("complex"));
        assert!(check(&bytes("'|O'", "False", "(1,)", &[0; 8])).unwrap_err().contains("not numbers"));
        assert!(check(&bytes("[('a', '<f4')]", "False", "(1,)", &[0; 8])).unwrap_err().contains("records"));
        assert!(check(&bytes("'<f4'", "False", "(-1,)", &[])).unwrap_err().contains("not a size"));
        assert_eq!(
            check(&bytes("'<f4'", "False", "(2,)", &[0; 7])).unwrap_err(),
            "x.npy: the file ends before its data does"
        );
        let huge = bytes("'<f4'", "False", "(99999999999, 99999999999)", &[]);
        assert!(check(&huge).unwrap_err().contains("overflows"));
    }

    proptest! {
        #[test]
        fn files_round_trip(v in proptest::collection::vec(any::<f64>().prop_filter("", |v| !v.is_nan()), 0..40), cut in 0usize..200) {
            let value = Value::new(vec![v.len()], Buffer::F64(v)).expect("one dimension");
            let mut b = Vec::new();
            write(&mut b, &value).expect("memory");
            prop_assert_eq!(b.len() % 64, (value.data().len() * 8) % 64);
            prop_assert_eq!(check(&b).map(|(s, d)| Value::new(s, d)), Ok(Some(value.clone())));
            let cut = cut.min(b.len().saturating_sub(1));
            prop_assert!(check(&b[..cut]).is_err() );
        }

        #[test]
        fn damaged_headers_do_not_panic(at in 0usize..120, byte: u8) {
            let mut b = bytes("'<i4'", "False", "(2, 2)", &[1; 16]);
            let at = at % b.len();
            b[at] = byte;
            let _ = check(&b);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(noise in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut b = b"\x93NUMPY\x01\x00".to_vec();
            b.extend(noise);
            let _ = check(&b);
        }
    }
}
