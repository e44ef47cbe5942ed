//! Matrix Market: a dense parameter takes the whole matrix, and index lists take its parts.
//!
//! `A.mtx:rows`, `:cols` and `:values` are the stored entries, sorted by row and then column, with the other half of a
//! symmetric matrix written out; `:indptr` says where each row starts in them (`n + 1` numbers); `:shape` is `[n, m]`.
//! In the dense form entries that stand twice are summed.

use super::{Want, convert, file_error, line_error, memory, truncated};
use std::path::Path;
use taffeta_ast::{Buffer, DType, Diagnostic, Literal, Value};

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Pattern,
    Integer,
    Real,
}

#[derive(Clone, Copy, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

struct Banner {
    coordinate: bool,
    field: Field,
    symmetry: Symmetry,
}

/// Entries of a matrix, sorted by row and then column.
struct Matrix {
    rows: usize,
    cols: usize,
    integer: bool,
    pattern: bool,
    entries: Vec<(usize, usize, f64)>,
}

const PARTS: [&str; 5] = ["rows", "cols", "values", "indptr", "shape"];

/// Reads a matrix or a part of it.
pub fn read(path: &Path, part: Option<&str>, want: &Want) -> Result<Value, Diagnostic> {
    if let Some(p) = part.filter(|p| !PARTS.contains(p)) {
        let d = file_error("input::part", path, format!("a matrix has no `{p}`"));
        return Err(match taffeta_ast::spelling::nearest(p, PARTS) {
            Some(near) => d.help(format!("did you mean `{}:{near}`?", path.display())),
            None => d.help("it has `rows`, `cols`, `values`, `indptr` and `shape`"),
        });
    }
    let text = super::read_text(path)?;
    let matrix = parse(&text, path)?;
    let what = path.display().to_string();
    let list = |v: Vec<i64>| Value::new(vec![v.len()], Buffer::I64(v));
    let value = match part {
        Some("rows") => list(matrix.entries.iter().map(|e| e.0 as i64).collect()),
        Some("cols") => list(matrix.entries.iter().map(|e| e.1 as i64).collect()),
        Some("values") => {
            let v: Vec<f64> = matrix.entries.iter().map(|e| e.2).collect();
            Value::new(vec![v.len()], numbers(v, matrix.integer))
        }
        Some("indptr") => {
            memory::check_tensor(DType::I64, &[matrix.rows, 2], &what)?;
            let mut start = vec![0i64; matrix.rows + 1];
            for e in &matrix.entries {
                start[e.0 + 1] += 1;
            }
            for i in 0..matrix.rows {
                start[i + 1] += start[i];
            }
            list(start)
        }
        Some(_) => list(vec![matrix.rows as i64, matrix.cols as i64]),
        None => dense(&matrix, want, &what)?,
    };
    let value = value.ok_or_else(|| file_error("data::format", path, "shape and data disagree"))?;
    let shown = part.map_or(what.clone(), |p| format!("{what}:{p}"));
    convert::to(value, want, &shown)
}

/// Reads a matrix as its elements, those that stand twice summed. Elements that are written down are stored, zeros too.
pub fn read_sparse(path: &Path, want: &Want) -> Result<Value, Diagnostic> {
    let matrix = parse(&super::read_text(path)?, path)?;
    let mut entries: Vec<(usize, usize, f64)> = Vec::with_capacity(matrix.entries.len());
    for e in &matrix.entries {
        match entries.last_mut() {
            Some(last) if (last.0, last.1) == (e.0, e.1) => last.2 += e.2,
            _ => entries.push(*e),
        }
    }
    let column = want.ndim == 1 && matrix.cols == 1;
    let row = want.ndim == 1 && matrix.rows == 1 && !column;
    let (shape, indices): (Vec<usize>, Vec<i64>) = match (column, row) {
        (true, _) => (vec![matrix.rows], entries.iter().map(|e| e.0 as i64).collect()),
        (_, true) => (vec![matrix.cols], entries.iter().map(|e| e.1 as i64).collect()),
        _ => (vec![matrix.rows, matrix.cols], entries.iter().flat_map(|e| [e.0 as i64, e.1 as i64]).collect()),
    };
    let numbers = numbers(entries.iter().map(|e| e.2).collect(), matrix.integer);
    let what = path.display().to_string();
    let elements = match (matrix.pattern, want.dtype) {
        (true, DType::Bool) => Buffer::Bool(vec![true; entries.len()]),
        _ => {
            let list = Value::new(vec![entries.len()], numbers);
            let list = list.ok_or_else(|| file_error("data::format", path, "shape and data disagree"))?;
            convert::to(list, want, &what)?.into_parts().1
        }
    };
    Value::sparse(shape, indices, elements, Literal::zero(want.dtype))
        .ok_or_else(|| file_error("data::format", path, "shape and data disagree"))
}

fn dense(matrix: &Matrix, want: &Want, what: &str) -> Result<Option<Value>, Diagnostic> {
    let shape = match want.ndim {
        1 if matrix.cols == 1 => vec![matrix.rows],
        1 if matrix.rows == 1 => vec![matrix.cols],
        _ => vec![matrix.rows, matrix.cols],
    };
    memory::check_tensor(DType::F64, &shape, what)?;
    let mut v = vec![0.0; matrix.rows * matrix.cols];
    for (i, j, x) in &matrix.entries {
        v[i * matrix.cols + j] += x;
    }
    Ok(Value::new(shape, numbers(v, matrix.integer)))
}

/// Integers stay integers, so that they fit integer parameters. (Those of the file were read exactly.)
fn numbers(v: Vec<f64>, integer: bool) -> Buffer {
    if integer { Buffer::I64(v.into_iter().map(|x| x as i64).collect()) } else { Buffer::F64(v) }
}

fn banner(line: &str, path: &Path) -> Result<Banner, Diagnostic> {
    let words: Vec<String> = line.split_whitespace().map(str::to_ascii_lowercase).collect();
    if words.first().map(String::as_str) != Some("%%matrixmarket") {
        return Err(line_error(path, 1, "a Matrix Market file starts with `%%MatrixMarket matrix …`"));
    }
    let word = |k: usize| words.get(k).map_or("", String::as_str);
    let unsupported = |w: &str| line_error(path, 1, format!("`{w}` matrices are not supported"));
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
        "integer" => Field::Integer,
        "real" | "double" => Field::Real,
        w => return Err(unsupported(w)),
    };
    let symmetry = match word(4) {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        w => return Err(unsupported(w)),
    };
    Ok(Banner { coordinate, field, symmetry })
}

fn parse(text: &str, path: &Path) -> Result<Matrix, Diagnostic> {
    let mut lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim()));
    let banner = banner(lines.next().map_or("", |l| l.1), path)?;
    let mut lines = lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('%'));
    let (line, sizes) = lines.next().ok_or_else(|| truncated(path))?;
    let sizes = sizes
        .split_whitespace()
        .map(|w| w.parse::<usize>().map_err(|_| line_error(path, line, format!("`{w}` is not a size"))))
        .collect::<Result<Vec<_>, _>>()?;
    let (rows, cols, count) = match (sizes.as_slice(), banner.coordinate) {
        ([n, m, count], true) => (*n, *m, *count),
        ([n, m], false) => (*n, *m, stored(*n, *m, banner.symmetry, path, line)?),
        (_, true) => return Err(line_error(path, line, "rows, columns and number of entries are expected")),
        (_, false) => return Err(line_error(path, line, "rows and columns are expected")),
    };
    if banner.symmetry != Symmetry::General && rows != cols {
        return Err(line_error(path, line, format!("a symmetric matrix of {rows} × {cols}")));
    }
    let pattern = banner.field == Field::Pattern;
    let mut matrix = Matrix { rows, cols, integer: banner.field != Field::Real, pattern, entries: Vec::new() };
    let mut position = if banner.symmetry == Symmetry::Skew { (1, 0) } else { (0, 0) };
    for _ in 0..count {
        let (line, text) = lines.next().ok_or_else(|| truncated(path))?;
        let mut words = text.split_whitespace();
        let (i, j) = if banner.coordinate {
            (index(words.next(), rows, "row", path, line)?, index(words.next(), cols, "column", path, line)?)
        } else {
            let at = position;
            position = next_in_column(at, rows, banner.symmetry);
            at
        };
        let x = value(words.next(), banner.field, path, line)?;
        if let Some(extra) = words.next() {
            return Err(line_error(path, line, format!("`{extra}` is too much on this line")));
        }
        matrix.entries.push((i, j, x));
        if i != j && banner.symmetry != Symmetry::General {
            matrix.entries.push((j, i, if banner.symmetry == Symmetry::Skew { -x } else { x }));
        }
    }
    if let Some((line, _)) = lines.next() {
        return Err(line_error(path, line, format!("more entries than the {count} that the file announces")));
    }
    matrix.entries.sort_by_key(|e| (e.0, e.1));
    Ok(matrix)
}

/// How many values an `array` file holds.
fn stored(n: usize, m: usize, symmetry: Symmetry, path: &Path, line: usize) -> Result<usize, Diagnostic> {
    let count = match symmetry {
        Symmetry::General => n.checked_mul(m),
        Symmetry::Symmetric => n.checked_add(1).and_then(|k| n.checked_mul(k)).map(|k| k / 2),
        Symmetry::Skew => n.checked_mul(n.saturating_sub(1)).map(|k| k / 2),
    };
    count.ok_or_else(|| line_error(path, line, "the size of the matrix overflows"))
}

/// The place of the next value of an `array` file: down each column, below the diagonal if symmetric.
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

fn index(word: Option<&str>, n: usize, what: &str, path: &Path, line: usize) -> Result<usize, Diagnostic> {
    let word = word.ok_or_else(|| line_error(path, line, format!("the {what} is missing")))?;
    match word.parse::<usize>() {
        Ok(i) if (1..=n).contains(&i) => Ok(i - 1),
        Ok(i) => Err(line_error(path, line, format!("{what} {i} is out of range: 1 to {n}"))),
        Err(_) => Err(line_error(path, line, format!("`{word}` is not a {what} number"))),
    }
}

fn value(word: Option<&str>, field: Field, path: &Path, line: usize) -> Result<f64, Diagnostic> {
    match (field, word) {
        (Field::Pattern, None) => Ok(1.0),
        (Field::Pattern, Some(w)) => Err(line_error(path, line, format!("`{w}` is too much: a pattern has no values"))),
        (_, None) => Err(line_error(path, line, "the value is missing")),
        (Field::Real, Some(w)) => {
            super::float(w).ok_or_else(|| line_error(path, line, format!("`{w}` is not a number in the range of f64")))
        }
        (Field::Integer, Some(w)) => {
            let v: i64 = w.parse().map_err(|_| line_error(path, line, format!("`{w}` is not an integer")))?;
            if v.unsigned_abs() > 1 << 53 {
                return Err(line_error(path, line, format!("{v} is too large: integers up to 2^53 are supported")));
            }
            Ok(v as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, part: Option<&str>, dtype: DType, ndim: usize) -> Result<(Vec<usize>, Buffer), String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.mtx");
        std::fs::write(&path, text).expect("a file");
        let want = Want { name: "x".into(), dtype, ndim, empty: None };
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
    }

    #[test]
    fn arrays_run_down_the_columns() {
        let general = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4.5\n";
        assert_eq!(check(general, None, DType::F64, 2), Ok((vec![2, 2], Buffer::F64(vec![1.0, 3.0, 2.0, 4.5]))));
        let skew = "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n";
        assert_eq!(check(skew, None, DType::I64, 2), Ok((vec![3, 3], Buffer::I64(vec![0, -1, -2, 1, 0, -3, 2, 3, 0]))));
        let column = "%%MatrixMarket matrix array real general\n2 1\n1\n2\n";
        assert_eq!(check(column, None, DType::F64, 1), Ok((vec![2], Buffer::F64(vec![1.0, 2.0]))));
    }

    #[test]
    fn faults_name_the_line() {
        let head = "%%MatrixMarket matrix coordinate real general\n";
        for (text, says) in [
            ("1 2 3\n".to_string(), "a.mtx:1: a Matrix Market file starts with `%%MatrixMarket matrix …`"),
            (
                "%%MatrixMarket matrix coordinate complex general\n".into(),
                "a.mtx:1: `complex` matrices are not supported",
            ),
            (format!("{head}2 2\n"), "a.mtx:2: rows, columns and number of entries are expected"),
            (format!("{head}2 2 1\n3 1 1\n"), "a.mtx:3: row 3 is out of range: 1 to 2"),
            (format!("{head}2 2 1\n1 0 1\n"), "a.mtx:3: column 0 is out of range: 1 to 2"),
            (format!("{head}2 2 1\n1 1 x\n"), "a.mtx:3: `x` is not a number in the range of f64"),
            (format!("{head}2 2 1\n1 1 1e400\n"), "a.mtx:3: `1e400` is not a number in the range of f64"),
            (format!("{head}2 2 2\n1 1 1\n"), "a.mtx: the file ends before its data does"),
            (format!("{head}2 2 1\n1 1 1\n1 2 1\n"), "a.mtx:4: more entries than the 1 that the file announces"),
        ] {
            assert_eq!(check(&text, Some("values"), DType::F64, 1).unwrap_err(), says);
        }
        let wide = format!("{head}999999999999 999999999999 0\n");
        assert!(check(&wide, None, DType::F64, 2).unwrap_err().contains("overflows"));
        assert!(check(SYMMETRIC, Some("row"), DType::I32, 1).unwrap_err().contains("no `row`"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn noise_does_not_panic(
            kind in "(coordinate|array) (real|integer|pattern) (general|symmetric|skew-symmetric)",
            lines in proptest::collection::vec("[0-4]( [-0-4]){0,3}", 0..6),
        ) {
            let text = format!("%%MatrixMarket matrix {kind}\n{}", lines.join("\n"));
            for part in [None, Some("rows"), Some("indptr"), Some("values")] {
                let _ = check(&text, part, DType::F32, 2);
            }
        }
    }
}
