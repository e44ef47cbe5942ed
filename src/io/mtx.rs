//! Matrix Market files: a dense parameter takes the whole matrix, a structured one its stored entries; the parts of a
//! file are lists.
//!
//! `A.mtx:rows`, `:cols` and `:values` are the stored entries, sorted by row and then column, with both halves of a
//! symmetric matrix; `:indptr` has the start of each row in these lists (`n + 1` numbers); `:shape` is `[n, m]`. In a
//! tensor, repeated entries are summed.
//!
//! Numbers are read as `f64`, `i64` or `u64` according to the file's field, and converted to the parameter's type;
//! elements of a pattern are 1. A file of real numbers may be declared Hermitian, which means symmetric.

mod list;
mod pieces;

use super::elements::{self, Elements, Numbers};
use super::file::{self, file_error, line_error, truncated};
use super::want::Want;
use super::{convert, memory, tns};
pub(super) use list::read_list;
use pieces::Columns;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use taffeta_ast::{Buffer, DType, Diagnostic, Literal, Value, coordinates};

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Pattern,
    Integer,
    Unsigned,
    Real,
}

#[derive(Clone, Copy, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// First line of a file.
struct Banner {
    coordinate: bool,
    field: Field,
    symmetry: Symmetry,
}

/// Lines before the entries.
struct Header {
    banner: Banner,
    shape: [usize; 2],
    /// Number of entries in the file.
    count: usize,
    /// Number of the line with the sizes.
    line: usize,
}

/// Matrix with all entries of its file, both halves if symmetric.
struct Matrix {
    shape: [usize; 2],
    /// Whether the file lists all elements.
    dense: bool,
    elements: Elements,
}

const PARTS: [&str; 5] = ["rows", "cols", "values", "indptr", "shape"];

/// Reads a matrix or a part of it.
pub fn read(path: &Path, part: Option<&str>, want: &Want) -> Result<Value, Diagnostic> {
    if let Some(p) = part.filter(|p| !PARTS.contains(p)) {
        let d = file_error("input::part", path, format!("a matrix has no part `{p}`"));
        return Err(match taffeta_ast::spelling::nearest(p, PARTS) {
            Some(near) => d.help(format!("did you mean `{}:{near}`?", path.display())),
            None => d.help("its parts are `rows`, `cols`, `values`, `indptr` and `shape`"),
        });
    }
    let matrix = parse(path)?;
    let Some(part) = part else {
        // Checks memory before building a matrix.
        memory::check_tensor(want.dtype, &matrix.shape, &path.display().to_string())?;
        return elements::dense(&matrix.tensor(want, path)?, path);
    };
    let what = path.display().to_string();
    let list = matrix.part(part, want, &what)?;
    let value = Value::new(vec![list.len()], list);
    let value = value.ok_or_else(|| file_error("data::format", path, "shape and data disagree"))?;
    convert::to(value, want, &format!("{what}:{part}"))
}

/// Reads a matrix as sparse elements, summing repeated ones. Explicit zeros are stored; a file that lists all elements
/// yields a dense value.
pub fn read_sparse(path: &Path, want: &Want) -> Result<Value, Diagnostic> {
    let matrix = parse(path)?;
    let dense = matrix.dense;
    let value = matrix.tensor(want, path)?;
    if dense { elements::dense(&value, path) } else { Ok(value) }
}

impl Matrix {
    /// Builds the matrix, or a column or row if one dimension is requested.
    fn tensor(mut self, want: &Want, path: &Path) -> Result<Value, Diagnostic> {
        let [n, m] = self.shape;
        let only =
            |e: Elements, d: usize| Elements { indices: e.indices.into_iter().skip(d).step_by(2).collect(), ..e };
        let shape = match want.ndim {
            1 if m == 1 => {
                self.elements = only(self.elements, 0);
                vec![n]
            }
            1 if n == 1 => {
                self.elements = only(self.elements, 1);
                vec![m]
            }
            _ => vec![n, m],
        };
        self.elements.tensor(shape, want, path)
    }

    fn part(self, part: &str, want: &Want, what: &str) -> Result<Buffer, Diagnostic> {
        let [n, m] = self.shape;
        let indices = &self.elements.indices;
        let sorted = || coordinates::sorted(&self.shape, &[0, 1], indices);
        Ok(match part {
            "rows" => Buffer::I64(sorted().into_iter().map(|e| indices[2 * e]).collect()),
            "cols" => Buffer::I64(sorted().into_iter().map(|e| indices[2 * e + 1]).collect()),
            "values" => {
                let sorted = sorted();
                let values = self.elements.values.of(want)?;
                let positions: Vec<i64> = (0..sorted.len() as i64).collect();
                let mut list = Buffer::zeros(values.dtype(), sorted.len());
                coordinates::place(&values, &sorted, &positions, &mut list);
                list
            }
            "indptr" => {
                memory::check_tensor(DType::I64, &[n, 2], what)?;
                let mut start = vec![0i64; n + 1];
                indices.iter().step_by(2).for_each(|row| start[*row as usize + 1] += 1);
                (0..n).for_each(|i| start[i + 1] += start[i]);
                Buffer::I64(start)
            }
            _ => Buffer::I64(vec![n as i64, m as i64]),
        })
    }
}

/// Returns the element type that a file declares, and whether it lists elements.
pub(super) fn declared(path: &Path) -> Result<(DType, bool), Diagnostic> {
    let mut line = Vec::new();
    match super::source::extension(path).as_str() {
        // Compressed files are read as a whole.
        "mtx.gz" => line.extend(super::file::read_text(path)?.bytes().take_while(|b| *b != b'\n')),
        _ => {
            let mut start = BufReader::new(super::file::open(path)?).take(1 << 16);
            start.read_until(b'\n', &mut line).map_err(|e| super::file::os_error(path, &e))?;
        }
    }
    let Banner { coordinate, field, .. } = banner(&String::from_utf8_lossy(&line), path)?;
    let dtype = match field {
        Field::Pattern => DType::Bool,
        Field::Integer => DType::I64,
        Field::Unsigned => DType::U64,
        Field::Real => DType::F64,
    };
    Ok((dtype, coordinate))
}

fn banner(line: &str, path: &Path) -> Result<Banner, Diagnostic> {
    let words: Vec<String> = line.split_whitespace().map(str::to_ascii_lowercase).collect();
    if words.first().map(String::as_str) != Some("%%matrixmarket") {
        return Err(line_error(path, 1, "not a Matrix Market file: expected `%%MatrixMarket matrix …`"));
    }
    let parts =
        ["`matrix`", "`coordinate` or `array`", "a type of numbers, such as `real`", "a symmetry, such as `general`"];
    if let Some(missing) = parts.get(words.len() - 1) {
        let what = format!("expected {missing} after `{}`: the line is incomplete", line.trim());
        return Err(line_error(path, 1, what).help("write for example `%%MatrixMarket matrix coordinate real general`"));
    }
    let word = |k: usize| words.get(k).map_or("", String::as_str);
    let refused = |what: String| line_error(path, 1, what);
    let unsupported = |w: &str| refused(format!("`{w}` matrices are not supported"));
    if word(1) != "matrix" {
        return Err(unsupported(word(1)));
    }
    let coordinate = match word(2) {
        "coordinate" => true,
        "array" => false,
        w => return Err(unsupported(w)),
    };
    let field = match word(3) {
        "pattern" if coordinate => Field::Pattern,
        "pattern" => return Err(refused("expected `coordinate` for a `pattern` matrix, found `array`".into())),
        "integer" => Field::Integer,
        "unsigned-integer" => Field::Unsigned,
        "real" | "double" => Field::Real,
        "complex" => {
            return Err(refused("`complex` matrices are not supported: programs have no complex numbers".into())
                .help("write its real and imaginary parts to two files (in SciPy `mmwrite(\"re.mtx\", A.real)`)"));
        }
        w => return Err(unsupported(w)),
    };
    let symmetry = match word(4) {
        "general" => Symmetry::General,
        // Real numbers equal their conjugates.
        "symmetric" | "hermitian" => Symmetry::Symmetric,
        "skew-symmetric" if field == Field::Pattern || field == Field::Unsigned => {
            return Err(refused(format!("expected signed elements of a skew-symmetric matrix, found `{}`", word(3))));
        }
        "skew-symmetric" => Symmetry::Skew,
        w => return Err(unsupported(w)),
    };
    Ok(Banner { coordinate, field, symmetry })
}

/// Values of a file, by its field.
enum Entries {
    Pattern(usize),
    Integer(Vec<i64>),
    Unsigned(Vec<u64>),
    Real(Vec<f64>),
}

impl Entries {
    fn of(field: Field) -> Entries {
        match field {
            Field::Pattern => Entries::Pattern(0),
            Field::Integer => Entries::Integer(Vec::new()),
            Field::Unsigned => Entries::Unsigned(Vec::new()),
            Field::Real => Entries::Real(Vec::new()),
        }
    }

    fn reserve(&mut self, more: usize) {
        // Where there is no room, the column grows as entries come.
        let _ = match self {
            Entries::Pattern(_) => Ok(()),
            Entries::Integer(v) => v.try_reserve_exact(more),
            Entries::Unsigned(v) => v.try_reserve_exact(more),
            Entries::Real(v) => v.try_reserve_exact(more),
        };
    }

    /// Moves the values of other entries behind these.
    fn append(&mut self, other: &mut Entries) {
        match (self, other) {
            (Entries::Pattern(n), Entries::Pattern(more)) => *n += std::mem::take(more),
            (Entries::Integer(v), Entries::Integer(other)) => v.append(other),
            (Entries::Unsigned(v), Entries::Unsigned(other)) => v.append(other),
            (Entries::Real(v), Entries::Real(other)) => v.append(other),
            _ => unreachable!("all parts have the type of the file"),
        }
    }

    /// Adds a number, and returns whether the text is one.
    fn push_word(&mut self, text: &str) -> bool {
        match self {
            Entries::Pattern(_) => false,
            Entries::Integer(v) => text.parse().map(|number| v.push(number)).is_ok(),
            Entries::Unsigned(v) => text.parse().map(|number| v.push(number)).is_ok(),
            Entries::Real(v) => super::file::float(text).map(|number| v.push(number)).is_some(),
        }
    }

    /// Adds the value at the end of a line.
    fn push(&mut self, word: Option<&str>) -> Result<(), String> {
        let missing = || "the value is missing".to_string();
        let bad = |w: &str, what: &str| format!("expected {what}, found `{w}`");
        match self {
            Entries::Pattern(n) => {
                *n += 1;
                let extra = |w| format!("unexpected value `{w}`: a pattern has no values");
                return word.map_or(Ok(()), |w| Err(extra(w)));
            }
            Entries::Integer(v) => {
                let w = word.ok_or_else(missing)?;
                v.push(w.parse().map_err(|_| bad(w, "a 64-bit integer"))?);
            }
            Entries::Unsigned(v) => {
                let w = word.ok_or_else(missing)?;
                v.push(w.parse().map_err(|_| bad(w, "an unsigned 64-bit integer"))?);
            }
            Entries::Real(v) => {
                let w = word.ok_or_else(missing)?;
                v.push(super::file::float(w).ok_or_else(|| bad(w, "a number in the range of f64"))?);
            }
        }
        Ok(())
    }

    /// Repeats the last value for the other half of the matrix; `None` if its negation overflows.
    fn mirror(&mut self, skew: bool) -> Option<()> {
        match self {
            Entries::Pattern(n) => *n += 1,
            Entries::Unsigned(v) => v.extend(v.last().copied()),
            Entries::Integer(v) if skew => v.push(v.last()?.checked_neg()?),
            Entries::Integer(v) => v.extend(v.last().copied()),
            Entries::Real(v) if skew => v.push(-*v.last()?),
            Entries::Real(v) => v.extend(v.last().copied()),
        }
        Some(())
    }

    /// Returns whether the last value is 0.
    fn ends_in_zero(&self) -> bool {
        match self {
            Entries::Integer(v) => v.last() == Some(&0),
            Entries::Real(v) => v.last() == Some(&0.0),
            Entries::Pattern(_) | Entries::Unsigned(_) => false,
        }
    }

    fn numbers(self) -> Numbers {
        match self {
            Entries::Pattern(n) => Numbers::Ones(n),
            Entries::Integer(v) => Numbers::Typed(Buffer::I64(v)),
            Entries::Unsigned(v) => Numbers::Typed(Buffer::U64(v)),
            Entries::Real(v) => Numbers::Typed(Buffer::F64(v)),
        }
    }
}

/// Reads a file.
fn parse(path: &Path) -> Result<Matrix, Diagnostic> {
    let (reader, length) = file::reader(path)?;
    let mut reader = BufReader::new(reader);
    let header = header(&mut reader, path)?;
    if !header.banner.coordinate {
        return array(&mut reader, &header, path);
    }
    let Columns { rows, cols, values } = pieces::read(&mut reader, &header, length, path)?;
    memory::check_bytes(rows.len() as u128 * 16, &path.display().to_string())?;
    let indices = (0..rows.len()).flat_map(|e| [rows.at(e), cols.at(e)]).collect();
    Ok(Matrix { shape: header.shape, dense: false, elements: Elements { indices, values: values.numbers() } })
}

/// Reads the lines up to the sizes.
fn header(reader: &mut dyn BufRead, path: &Path) -> Result<Header, Diagnostic> {
    let mut number = 0;
    let mut next = || -> Result<Option<(usize, String)>, Diagnostic> {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line).map_err(|e| file::broken(path, &e))? == 0 {
            return Ok(None);
        }
        number += 1;
        let line =
            String::from_utf8(line).map_err(|_| line_error(path, number, "not a text file (not valid UTF-8)"))?;
        Ok(Some((number, line.trim().to_string())))
    };
    let banner = banner(&next()?.map_or(String::new(), |(_, line)| line), path)?;
    let (line, sizes) = loop {
        match next()?.ok_or_else(|| truncated(path))? {
            (_, l) if l.is_empty() || l.starts_with('%') => {}
            found => break found,
        }
    };
    let sizes = sizes
        .split_whitespace()
        .map(|w| w.parse::<usize>().map_err(|_| line_error(path, line, format!("`{w}` is not a size"))))
        .collect::<Result<Vec<_>, _>>()?;
    let (rows, cols, count) = match (sizes.as_slice(), banner.coordinate) {
        ([n, m, count], true) => (*n, *m, *count),
        ([n, m], false) => (*n, *m, stored(*n, *m, banner.symmetry, path, line)?),
        (_, true) => return Err(line_error(path, line, "expected the numbers of rows, columns and entries")),
        (_, false) => return Err(line_error(path, line, "expected the numbers of rows and columns")),
    };
    elements::check_sizes(&[rows, cols], path)?;
    if banner.symmetry != Symmetry::General && rows != cols {
        return Err(line_error(path, line, format!("expected a symmetric matrix to be square, found {rows} × {cols}")));
    }
    Ok(Header { banner, shape: [rows, cols], count, line })
}

/// Reads the elements of an `array` file.
fn array(reader: &mut dyn BufRead, header: &Header, path: &Path) -> Result<Matrix, Diagnostic> {
    let Header { banner, shape, count, .. } = header;
    let lines = reader.split(b'\n').enumerate().map(|(k, l)| (header.line + 1 + k, l));
    let mut lines = lines.map(|(line, bytes)| {
        let bytes = bytes.map_err(|e| file::broken(path, &e))?;
        let text = String::from_utf8(bytes).map_err(|_| line_error(path, line, "not a text file (not valid UTF-8)"))?;
        Ok::<_, Diagnostic>((line, text.trim().to_string()))
    });
    let mut next = || -> Result<Option<(usize, String)>, Diagnostic> {
        for line in lines.by_ref() {
            let (line, text) = line?;
            if !text.is_empty() && !text.starts_with('%') {
                return Ok(Some((line, text)));
            }
        }
        Ok(None)
    };
    // The announced number of elements is not trusted: memory grows with the lines read.
    let (mut indices, mut entries) = (Vec::new(), Entries::of(banner.field));
    let skew = banner.symmetry == Symmetry::Skew;
    let mut position = if skew { (1, 0) } else { (0, 0) };
    for _ in 0..*count {
        let (line, text) = next()?.ok_or_else(|| truncated(path))?;
        let mut words = text.split_whitespace();
        let (i, j) = position;
        position = next_in_column(position, shape[0], banner.symmetry);
        entries.push(words.next()).map_err(|message| line_error(path, line, message))?;
        if let Some(extra) = words.next() {
            return Err(line_error(path, line, format!("unexpected `{extra}` at the end of the line")));
        }
        indices.extend([i as i64, j as i64]);
        if i != j && banner.symmetry != Symmetry::General {
            indices.extend([j as i64, i as i64]);
            entries.mirror(skew).ok_or_else(|| line_error(path, line, "the negated value does not fit in 64 bits"))?;
        }
    }
    if let Some((line, _)) = next()? {
        return Err(line_error(path, line, format!("expected {count} entries, found more")));
    }
    Ok(Matrix { shape: *shape, dense: true, elements: Elements { indices, values: entries.numbers() } })
}

/// Returns the number of values in an `array` file.
fn stored(n: usize, m: usize, symmetry: Symmetry, path: &Path, line: usize) -> Result<usize, Diagnostic> {
    let count = match symmetry {
        Symmetry::General => n.checked_mul(m),
        Symmetry::Symmetric => n.checked_add(1).and_then(|k| n.checked_mul(k)).map(|k| k / 2),
        Symmetry::Skew => n.checked_mul(n.saturating_sub(1)).map(|k| k / 2),
    };
    count.ok_or_else(|| line_error(path, line, "the size of the matrix overflows"))
}

/// Returns the coordinates of the next value in an `array` file: down each column, below the diagonal if symmetric.
fn next_in_column((i, j): (usize, usize), rows: usize, symmetry: Symmetry) -> (usize, usize) {
    if i + 1 < rows {
        return (i + 1, j);
    }
    match symmetry {
        Symmetry::General => (0, j + 1),
        Symmetry::Symmetric => (j + 1, j + 1),
        Symmetry::Skew => (j + 2, j + 1),
    }
}

/// Writes the stored elements of a sparse matrix; a vector is a column. For `bool`, writes the true elements only.
pub fn write(out: &mut dyn Write, value: &Value) -> std::io::Result<()> {
    match value.places() {
        Some(places) => write_listed(out, value.shape(), &places.indices, value.data()),
        None => Err(std::io::Error::other(format!("{} is dense", super::want::shape_text(value.shape())))),
    }
}

/// Writes elements in the order in which they are listed; `indices` has one or two for each.
pub(super) fn write_listed(
    out: &mut (impl Write + ?Sized),
    shape: &[usize],
    indices: &[i64],
    data: &Buffer,
) -> std::io::Result<()> {
    let [n, rest @ ..] = shape else { return Err(std::io::Error::other("a scalar is not a matrix")) };
    let m = rest.first().copied().unwrap_or(1);
    let field = match data {
        Buffer::Bool(_) => "pattern",
        Buffer::U64(v) if v.iter().any(|v| i64::try_from(*v).is_err()) => "unsigned-integer",
        _ if data.dtype().is_float() => "real",
        _ => "integer",
    };
    let written = |e: &usize| data.get(*e) != Literal::Bool(false);
    let count = (0..data.len()).filter(written).count();
    writeln!(out, "%%MatrixMarket matrix coordinate {field} general\n{n} {m} {count}")?;
    for e in (0..data.len()).filter(written) {
        let at = &indices[e * (1 + rest.len())..];
        write!(out, "{} {}", at[0] + 1, if rest.is_empty() { 1 } else { at[1] + 1 })?;
        match field {
            "pattern" => writeln!(out)?,
            _ => writeln!(out, " {}", tns::number(data, e))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, part: Option<&str>, dtype: DType, ndim: usize) -> Result<(Vec<usize>, Buffer), String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.mtx");
        std::fs::write(&path, text).expect("a file");
        let want = Want::new("x", dtype, ndim);
        let prefix = format!("{}/", dir.path().display());
        read(&path, part, &want).map(Value::into_parts).map_err(|d| d.message.replace(&prefix, ""))
    }

    const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate pattern symmetric\n% c\n3 3 3\n2 1\n3 1\n3 3\n";

    #[test]
    fn symmetric_entries_are_written_out_and_sorted() {
        let ints = |v: &[i32]| Ok((vec![v.len()], Buffer::I32(v.to_vec())));
        assert_eq!(check(SYMMETRIC, Some("rows"), DType::I32, 1), ints(&[0, 0, 1, 2, 2]));
        assert_eq!(check(SYMMETRIC, Some("cols"), DType::I32, 1), ints(&[1, 2, 0, 0, 2]));
        assert_eq!(check(SYMMETRIC, Some("indptr"), DType::I32, 1), ints(&[0, 2, 3, 5]));
        assert_eq!(check(SYMMETRIC, Some("shape"), DType::I32, 1), ints(&[3, 3]));
        let dense = Buffer::F32(vec![0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
        assert_eq!(check(SYMMETRIC, None, DType::F32, 2), Ok((vec![3, 3], dense)));
        // Entries above the diagonal are mirrored too, as SciPy does.
        let upper = "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 2 7\n2 2 5\n";
        assert_eq!(check(upper, None, DType::I64, 2), Ok((vec![2, 2], Buffer::I64(vec![0, 7, 7, 5]))));
    }

    #[test]
    fn arrays_are_read_by_columns() {
        let general = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4.5\n";
        assert_eq!(check(general, None, DType::F64, 2), Ok((vec![2, 2], Buffer::F64(vec![1.0, 3.0, 2.0, 4.5]))));
        let skew = "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n";
        assert_eq!(check(skew, None, DType::I64, 2), Ok((vec![3, 3], Buffer::I64(vec![0, -1, -2, 1, 0, -3, 2, 3, 0]))));
        let column = "%%MatrixMarket matrix array real general\n2 1\n1\n2\n";
        assert_eq!(check(column, None, DType::F64, 1), Ok((vec![2], Buffer::F64(vec![1.0, 2.0]))));
    }

    fn sparse(text: &str, dtype: DType, ndim: usize) -> Result<Value, String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.mtx");
        std::fs::write(&path, text).expect("a file");
        read_sparse(&path, &Want::new("x", dtype, ndim)).map_err(|d| d.message)
    }

    #[test]
    fn every_field_and_symmetry_is_read() {
        let file = |kind: &str, rest: &str| format!("%%MatrixMarket matrix coordinate {kind}\n{rest}");
        let of = |shape: &[usize], indices: &[i64], data: Buffer| {
            let zero = Literal::zero(data.dtype());
            Ok(Value::sparse(shape.to_vec(), indices.to_vec(), data, zero).expect("it is in order"))
        };
        // A repeated element, and an explicit zero.
        let general = file("real general", "2 3 4\n2 3 1.5\n1 1 0\n2 3 2\n1 2 -1e-3\n");
        assert_eq!(
            sparse(&general, DType::F64, 2),
            of(&[2, 3], &[0, 0, 0, 1, 1, 2], Buffer::F64(vec![0.0, -1e-3, 3.5]))
        );
        let symmetric = file("integer symmetric", "3 3 2\n3 1 9007199254740993\n2 2 -7\n");
        let both = Buffer::I64(vec![9007199254740993, -7, 9007199254740993]);
        assert_eq!(sparse(&symmetric, DType::I64, 2), of(&[3, 3], &[0, 2, 1, 1, 2, 0], both));
        assert!(sparse(&symmetric, DType::F64, 2).unwrap_err().contains("9007199254740993 at [0, 2] does not fit"));
        let skew = file("real skew-symmetric", "2 2 1\n2 1 4\n");
        assert_eq!(sparse(&skew, DType::F32, 2), of(&[2, 2], &[0, 1, 1, 0], Buffer::F32(vec![-4.0, 4.0])));
        let hermitian = file("real hermitian", "2 2 1\n2 1 4\n");
        assert_eq!(sparse(&hermitian, DType::F32, 2), of(&[2, 2], &[0, 1, 1, 0], Buffer::F32(vec![4.0, 4.0])));
        let pattern = file("pattern general", "2 2 2\n2 1\n1 2\n");
        for ones in [Buffer::Bool(vec![true; 2]), Buffer::U8(vec![1; 2]), Buffer::F32(vec![1.0; 2])] {
            assert_eq!(sparse(&pattern, ones.dtype(), 2), of(&[2, 2], &[0, 1, 1, 0], ones));
        }
        // Sums are converted to the parameter's type.
        let many = file("pattern general", &format!("1 1 300\n{}", "1 1\n".repeat(300)));
        assert_eq!(sparse(&many, DType::I16, 2), of(&[1, 1], &[0, 0], Buffer::I16(vec![300])));
        assert!(
            sparse(&many, DType::U8, 2)
                .unwrap_err()
                .ends_with(": 300 at [0, 0], the sum of 300 elements, does not fit parameter `x` of type u8")
        );
        let large = file("integer general", "1 1 2\n1 1 9223372036854775807\n1 1 2\n");
        assert_eq!(sparse(&large, DType::U64, 2), of(&[1, 1], &[0, 0], Buffer::U64(vec![(1 << 63) + 1])));
        assert!(sparse(&large, DType::I64, 2).unwrap_err().contains("9223372036854775809 at [0, 0], the sum of 2"));
        let beyond = file("real general", "1 1 2\n1 1 1e308\n1 1 1e308\n");
        assert!(sparse(&beyond, DType::F64, 2).unwrap_err().contains("inf at [0, 0], the sum of 2 elements, does not"));
        let unsigned = file("unsigned-integer general", "1 1 1\n1 1 18446744073709551615\n");
        assert_eq!(sparse(&unsigned, DType::U64, 2), of(&[1, 1], &[0, 0], Buffer::U64(vec![u64::MAX])));
        let column = file("real general", "4 1 2\n4 1 2\n2 1 1\n");
        assert_eq!(sparse(&column, DType::F64, 1), of(&[4], &[1, 3], Buffer::F64(vec![1.0, 2.0])));
        // A file that lists all elements is dense; packing drops elements that equal the fill.
        let array = "%%MatrixMarket matrix array real general\n2 2\n1\n0\n3\n4\n";
        assert_eq!(
            sparse(array, DType::F64, 2),
            Ok(Value::new(vec![2, 2], Buffer::F64(vec![1.0, 3.0, 0.0, 4.0])).expect("4"))
        );
    }

    #[test]
    fn written_files_round_trip() {
        for data in [
            Buffer::F64(vec![0.1, f64::INFINITY, -1e300]),
            Buffer::F32(vec![0.1, 1e-40, -0.0]),
            Buffer::I8(vec![-128, 0, 127]),
            Buffer::U64(vec![1, u64::MAX, 0]),
            Buffer::Bool(vec![true; 3]),
        ] {
            for (shape, indices) in [(vec![3, 1 << 40], vec![0, 5, 2, 0, 2, 1 << 39]), (vec![9], vec![0, 4, 8])] {
                let value = Value::sparse(shape, indices, data.clone(), Literal::zero(data.dtype())).expect("in order");
                let mut text = Vec::new();
                write(&mut text, &value).expect("memory");
                let text = String::from_utf8(text).expect("text");
                assert_eq!(sparse(&text, data.dtype(), value.shape().len()), Ok(value), "{text}");
            }
        }
    }

    #[test]
    fn errors_name_the_line() {
        let head = "%%MatrixMarket matrix coordinate real general\n";
        for (text, says) in [
            ("1 2 3\n".to_string(), "a.mtx:1: not a Matrix Market file: expected `%%MatrixMarket matrix …`"),
            (
                "%%MatrixMarket matrix coordinate real\n1 1 1\n1 1 5\n".into(),
                "a.mtx:1: expected a symmetry, such as `general` after `%%MatrixMarket matrix coordinate real`: \
                 the line is incomplete",
            ),
            (
                "%%MatrixMarket\n1 1 1\n1 1 5\n".into(),
                "a.mtx:1: expected `matrix` after `%%MatrixMarket`: the line is incomplete",
            ),
            (
                "%%MatrixMarket matrix coordinate complex general\n".into(),
                "a.mtx:1: `complex` matrices are not supported: programs have no complex numbers",
            ),
            (
                "%%MatrixMarket matrix array pattern general\n".into(),
                "a.mtx:1: expected `coordinate` for a `pattern` matrix, found `array`",
            ),
            (
                "%%MatrixMarket matrix coordinate pattern skew-symmetric\n".into(),
                "a.mtx:1: expected signed elements of a skew-symmetric matrix, found `pattern`",
            ),
            (
                "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 3\n".into(),
                "a.mtx:3: expected 0 on the diagonal of a skew-symmetric matrix",
            ),
            (
                "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 9223372036854775808\n".into(),
                "a.mtx:3: expected a 64-bit integer, found `9223372036854775808`",
            ),
            (
                "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 -9223372036854775808\n".into(),
                "a.mtx:3: the negated value does not fit in 64 bits",
            ),
            (
                "%%MatrixMarket matrix coordinate pattern general\n2 2 1000000000000000\n1 1\n".into(),
                "a.mtx: the file ends before its data does",
            ),
            (
                "%%MatrixMarket matrix array real general\n9999999 9999999\n1\n".into(),
                "a.mtx: the file ends before its data does",
            ),
            (
                "%%MatrixMarket matrix coordinate real general\n999999999999999 2 1\n1 1 1\n".into(),
                "a.mtx: size 999999999999999 exceeds the maximum 140737488355328 (2^47)",
            ),
            (format!("{head}2 2\n"), "a.mtx:2: expected the numbers of rows, columns and entries"),
            (format!("{head}2 2 1\n3 1 1\n"), "a.mtx:3: row 3 is out of range: 1 to 2"),
            (format!("{head}2 2 1\n1 0 1\n"), "a.mtx:3: column 0 is out of range: 1 to 2"),
            (format!("{head}2 2 1\n1 1 x\n"), "a.mtx:3: expected a number in the range of f64, found `x`"),
            (format!("{head}2 2 1\n1 1 1e400\n"), "a.mtx:3: expected a number in the range of f64, found `1e400`"),
            (format!("{head}2 2 2\n1 1 1\n"), "a.mtx: the file ends before its data does"),
            (format!("{head}2 2 1\n1 1 1\n1 2 1\n"), "a.mtx:4: expected 1 entries, found more"),
        ] {
            assert_eq!(check(&text, Some("values"), DType::F64, 1).unwrap_err(), says);
        }
        let wide = format!("{head}999999999999 999999999999 0\n");
        assert!(check(&wide, None, DType::F64, 2).unwrap_err().contains("overflows"));
        assert!(check(SYMMETRIC, Some("row"), DType::I32, 1).unwrap_err().contains("no part `row`"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn arbitrary_text_does_not_panic(
            kind in "(coordinate|array) (real|integer|unsigned-integer|pattern) (general|symmetric|skew-symmetric|hermitian)",
            lines in proptest::collection::vec("[0-4]( [-0-4]){0,3}", 0..6),
        ) {
            let text = format!("%%MatrixMarket matrix {kind}\n{}", lines.join("\n"));
            for part in [None, Some("rows"), Some("indptr"), Some("values")] {
                let _ = check(&text, part, DType::F32, 2);
            }
            let _ = sparse(&text, DType::I16, 1);
        }
    }
}
