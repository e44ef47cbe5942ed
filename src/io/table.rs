//! Dense tables of numbers: `.csv` (comma), `.tsv` (tab), `.txt` (blanks or commas, `#` starts a comment).
//!
//! A first row that is not all numbers is a header. A two-dimensional parameter takes the table, a one-dimensional one
//! a single column or row, a scalar a single number; `file.csv:price` and `file.csv:2` (from 0) select a column.

use super::file::{file_error, line_error};
use super::literal::{self, Scalar};
use super::want::Want;
use std::io::Write;
use std::path::Path;
use taffeta_ast::{Diagnostic, Value};

/// Table with the contents of a file.
struct Table {
    header: Option<Vec<String>>,
    columns: usize,
    cells: Vec<Scalar>,
    /// Line of each row.
    lines: Vec<usize>,
}

/// Reads a table or one of its columns.
pub fn read(path: &Path, part: Option<&str>, want: &Want) -> Result<Value, Diagnostic> {
    let text = super::file::read_text(path)?;
    let table = parse(&text, path)?;
    let (mut cells, mut columns) = (table.cells, table.columns);
    if let Some(part) = part {
        let c = column(part, table.header.as_deref(), columns, path)?;
        cells = cells.into_iter().skip(c).step_by(columns.max(1)).collect();
        columns = 1;
    }
    let rows = table.lines.len();
    if rows == 0 {
        return nothing(table.header.as_deref(), want, path);
    }
    let shape = match want.ndim {
        0 if rows * columns == 1 => vec![],
        1 if columns == 1 => vec![rows],
        1 if rows == 1 => vec![columns],
        2 => vec![rows, columns],
        _ => {
            let d = file_error(
                "data::rank",
                path,
                format!(
                    "the table has {rows} rows and {columns} columns, but parameter `{}` has {}",
                    want.name,
                    super::want::dimensions(want.ndim)
                ),
            );
            return Err(match want.ndim {
                1 => d.help(format!("name a column: `{}:0`", path.display())),
                _ => d.help("use a `.npy` file"),
            });
        }
    };
    let file = path.display().to_string();
    let place = |i: usize| {
        let line = table.lines.get(i / columns.max(1)).copied().unwrap_or(0);
        format!(" on line {line}, column {}", i % columns.max(1) + 1)
    };
    let data = literal::buffer(&cells, want, &file, place)?;
    Value::new(shape, data).ok_or_else(|| file_error("data::format", path, "shape and data disagree"))
}

/// Returns the empty tensor for a table without rows, if the known sizes make the tensor empty; otherwise the file may
/// be the wrong one, or incomplete.
fn nothing(header: Option<&[String]>, want: &Want, path: &Path) -> Result<Value, Diagnostic> {
    if let Some(value) = want.empty.clone().and_then(|shape| Value::zeros(want.dtype, shape)) {
        return Ok(value);
    }
    let found = match header {
        Some(_) => "the table has only a header",
        None => "the table is empty",
    };
    Err(file_error("data::empty", path, format!("{found}: no numbers for parameter `{}`", want.name))
        .help("if the parameter has no elements, give its sizes with --size"))
}

fn column(part: &str, header: Option<&[String]>, columns: usize, path: &Path) -> Result<usize, Diagnostic> {
    if let Some(i) = header.and_then(|h| h.iter().position(|n| n == part)) {
        return Ok(i);
    }
    if let Some(i) = part.parse::<usize>().ok().filter(|i| *i < columns) {
        return Ok(i);
    }
    let has = match header {
        Some(h) => format!("its columns are {}", h.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")),
        None => format!("it has {columns} columns, numbered from 0"),
    };
    Err(file_error("input::part", path, format!("there is no column `{part}`; {has}")))
}

fn parse(text: &str, path: &Path) -> Result<Table, Diagnostic> {
    match super::source::extension(path).as_str() {
        "txt" => {
            let rows = text.lines().enumerate().map(|(i, l)| {
                let body = l.split('#').next().unwrap_or("");
                Ok((
                    i + 1,
                    body.split(|c: char| c == ',' || c.is_whitespace())
                        .filter(|s| !s.is_empty())
                        .map(str::to_string)
                        .collect(),
                ))
            });
            collect(rows, path)
        }
        ending => {
            let delimiter = if ending == "tsv" { b'\t' } else { b',' };
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .delimiter(delimiter)
                .comment(Some(b'#'))
                .trim(csv::Trim::All)
                .from_reader(text.as_bytes());
            let mut lines = Lines { text: text.as_bytes(), at: 0, line: 1 };
            let rows = reader.records().map(move |r| match r {
                Ok(r) => {
                    let line = lines.of_record(r.position().map_or(0, |p| p.byte() as usize));
                    Ok((line, r.iter().map(str::to_string).collect()))
                }
                Err(e) => Err(file_error("data::format", path, e)),
            });
            collect(rows, path)
        }
    }
}

/// Counter of the lines of records, which come in order. The CSV reader's own line number is that of its previous
/// position: it misses the end of a line after a quoted field, blank lines and comments.
struct Lines<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// Returns the line of the record that the reader searched for from byte `start` on.
    fn of_record(&mut self, start: usize) -> usize {
        self.advance(start);
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'\n' | b'\r' => self.advance(self.at + 1),
                b'#' => {
                    let rest = &self.text[self.at..];
                    self.advance(self.at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()));
                }
                _ => break,
            }
        }
        self.line
    }

    fn advance(&mut self, to: usize) {
        let to = to.clamp(self.at, self.text.len());
        self.line += self.text[self.at..to].iter().filter(|b| **b == b'\n').count();
        self.at = to;
    }
}

fn collect(
    rows: impl Iterator<Item = Result<(usize, Vec<String>), Diagnostic>>,
    path: &Path,
) -> Result<Table, Diagnostic> {
    let mut table = Table { header: None, columns: 0, cells: Vec::new(), lines: Vec::new() };
    for row in rows {
        let (line, fields) = row?;
        if fields.is_empty() || fields == [""] {
            continue;
        }
        let first = table.lines.is_empty() && table.header.is_none();
        let parsed: Vec<Option<Scalar>> = fields.iter().map(|f| Scalar::parse(f)).collect();
        if first {
            table.columns = fields.len();
            if parsed.iter().any(Option::is_none) {
                table.header = Some(fields);
                continue;
            }
        }
        if fields.len() != table.columns {
            return Err(line_error(
                path,
                line,
                format!("found {} columns, but the first row has {}", fields.len(), table.columns),
            ));
        }
        for (k, (cell, field)) in parsed.into_iter().zip(&fields).enumerate() {
            let Some(cell) = cell else {
                return Err(line_error(
                    path,
                    line,
                    format!("column {}: `{}` is not a number", k + 1, field.chars().take(40).collect::<String>()),
                ));
            };
            table.cells.push(cell);
        }
        table.lines.push(line);
    }
    Ok(table)
}

/// Writes a tensor of at most two dimensions without a header; every number reads back exactly.
pub fn write(out: &mut dyn Write, value: &Value, delimiter: char) -> std::io::Result<()> {
    let columns = if value.shape().len() == 2 { value.shape()[1] } else { 1 };
    for i in 0..value.data().len() {
        let end = if columns == 0 || (i + 1) % columns == 0 { '\n' } else { delimiter };
        write!(out, "{}{end}", element(value, i))?;
    }
    Ok(())
}

/// Formats an element such that it reads back exactly.
pub fn element(value: &Value, i: usize) -> String {
    use taffeta_ast::Buffer;
    match value.data() {
        Buffer::Bool(v) => v[i].to_string(),
        Buffer::F32(v) => format!("{:?}", v[i]),
        Buffer::F16(v) => format!("{:?}", v[i].to_f32()),
        Buffer::Bf16(v) => format!("{:?}", v[i].to_f32()),
        Buffer::F64(v) => format!("{:?}", v[i]),
        other => other.get_int(i).unwrap_or_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use taffeta_ast::{Buffer, DType};

    fn check(
        name: &str,
        text: &str,
        part: Option<&str>,
        dtype: DType,
        ndim: usize,
    ) -> Result<(Vec<usize>, Buffer), String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let want = Want::new("x", dtype, ndim);
        let prefix = format!("{}/", dir.path().display());
        read(&path, part, &want).map(Value::into_parts).map_err(|d| d.message.replace(&prefix, ""))
    }

    #[test]
    fn tables_and_columns_are_read() {
        let t = "a,b\n1,2\n3,4\n";
        assert_eq!(check("t.csv", t, None, DType::I32, 2), Ok((vec![2, 2], Buffer::I32(vec![1, 2, 3, 4]))));
        assert_eq!(check("t.csv", t, Some("b"), DType::F32, 1), Ok((vec![2], Buffer::F32(vec![2.0, 4.0]))));
        assert_eq!(check("t.csv", t, Some("0"), DType::I64, 1), Ok((vec![2], Buffer::I64(vec![1, 3]))));
        assert_eq!(
            check("t.txt", "# edges\n0 1\n2, 3 # last\n", None, DType::I32, 2),
            Ok((vec![2, 2], Buffer::I32(vec![0, 1, 2, 3])))
        );
        assert_eq!(check("t.txt", "3\n-1\n", None, DType::I32, 1), Ok((vec![2], Buffer::I32(vec![3, -1]))));
        assert_eq!(check("t.csv", "nan,-inf,1e-3\n", None, DType::F64, 1).map(|t| t.0), Ok(vec![3]));
    }

    #[test]
    fn errors_name_line_and_column() {
        assert_eq!(
            check("t.csv", "1,2\n3\n", None, DType::F32, 2).unwrap_err(),
            "t.csv:2: found 1 columns, but the first row has 2"
        );
        assert_eq!(
            check("t.csv", "1,2\n3,x\n", None, DType::F32, 2).unwrap_err(),
            "t.csv:2: column 2: `x` is not a number"
        );
        assert_eq!(
            check("t.csv", "1,2\n3,4.5\n", None, DType::I32, 2).unwrap_err(),
            "t.csv: expected an integer on line 2, column 2 for parameter `x` of type i32, found 4.5"
        );
        for (text, line) in [
            ("\"a\",\"b\"\n1,x\n", 2),
            ("\"a\",\"b\"\r\n1,2\r\n1,x\r\n", 3),
            ("\"a\nlong\",\"b\"\n\n# c\n1,x\n", 5),
            ("# c\n\n\"1\",\"2\"\n\"1\",\"x\"", 4),
            ("a,b\n1,2\n   \n1,x\n", 4),
        ] {
            let found = check("t.csv", text, None, DType::F32, 2).unwrap_err();
            assert_eq!(found, format!("t.csv:{line}: column 2: `x` is not a number"), "{text:?}");
        }
        let large = check("t.csv", "\"a\"\n1\n1e39\n", None, DType::F32, 1).unwrap_err();
        assert_eq!(large, "t.csv: 1e39 on line 3, column 1 does not fit parameter `x` of type f32");
        assert!(check("t.csv", "1\n1e400\n", None, DType::F64, 1).unwrap_err().contains("on line 2, column 1"));
        assert!(check("t.csv", "1\n300\n", None, DType::U8, 1).unwrap_err().contains("300 on line 2, column 1"));
        assert!(check("t.csv", "1,2\n", Some("7"), DType::I32, 1).unwrap_err().contains("numbered from 0"));
        assert!(check("t.csv", "1,2\n3,4\n", None, DType::I32, 1).unwrap_err().contains("2 rows and 2 columns"));
    }

    #[test]
    fn tables_without_numbers_need_given_sizes() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in [("a.csv", ""), ("b.csv", "x,y\n"), ("c.txt", "# nothing\n"), ("d.tsv", "\n\n")] {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("a file");
            let mut want = Want::new("x", DType::F64, 2);
            let refused = read(&path, None, &want).unwrap_err();
            assert_eq!(refused.code, "data::empty", "{name}");
            assert!(refused.message.ends_with("for parameter `x`"), "{}", refused.message);
            want.empty = Some(vec![0, 3]);
            assert_eq!(read(&path, None, &want).map(|v| v.shape().to_vec()), Ok(vec![0, 3]), "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn tables_round_trip(v in proptest::collection::vec(any::<f32>().prop_filter("", |v| !v.is_nan()), 2..3)) {
            let value = Value::new(vec![1, v.len()], Buffer::F32(v)).expect("two dimensions");
            let mut b = Vec::new();
            write(&mut b, &value, ',').expect("memory");
            let text = String::from_utf8(b).expect("text");
            prop_assert_eq!(check("t.csv", &text, None, DType::F32, 2), Ok(value.into_parts()));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "[0-9a-z,\"\n\r #.é-]{0,60}") {
            for name in ["t.csv", "t.tsv", "t.txt"] {
                let _ = check(name, &text, None, DType::F32, 2);
                let _ = check(name, &text, Some("1"), DType::I8, 1);
            }
        }
    }
}
