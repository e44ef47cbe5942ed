//! The entries of a file as a list of coordinates.

use super::{Entries, header, pieces};
use crate::io::columns::Columns;
use crate::io::file;
use std::io::BufReader;
use std::path::Path;
use taffeta_ast::{Buffer, Diagnostic};
use taffeta_structured::Stored;

/// Reads a file that lists each element once as `coo`, by rows or by columns, with elements in the type of the file;
/// `None` for other files: those that list all elements, or one several times.
pub fn read_list(path: &Path) -> Result<Option<Stored>, Diagnostic> {
    let (reader, length) = file::reader(path)?;
    let mut reader = BufReader::new(reader);
    let header = header(&mut reader, path)?;
    if !header.banner.coordinate {
        return Ok(None);
    }
    let pieces::Columns { rows, cols, values } = pieces::read(&mut reader, &header, length, path)?;
    let values = match values {
        Entries::Pattern(n) => Buffer::Bool(vec![true; n]),
        Entries::Integer(v) => Buffer::I64(v),
        Entries::Unsigned(v) => Buffer::U64(v),
        Entries::Real(v) => Buffer::F64(v),
    };
    Columns { rows, cols, values }.stored(header.shape, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Want;
    use taffeta_ast::{DType, Value};

    /// Writes a file with these entries, and reads it.
    fn listed(entries: &[(usize, usize)], n: usize) -> (Option<Stored>, Result<Value, String>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.mtx");
        let lines: Vec<String> =
            entries.iter().enumerate().map(|(k, (i, j))| format!("{} {}  {k}.5\n", i + 1, j + 1)).collect();
        let head = format!("%%MatrixMarket matrix coordinate real general\n% c\n{n} {n} {}\n", entries.len());
        std::fs::write(&path, head + &lines.concat()).expect("a file");
        let value = super::super::read_sparse(&path, &Want::new("x", DType::F64, 2)).map_err(|d| d.message);
        (read_list(&path).unwrap_or_else(|d| panic!("{}", d.message)), value)
    }

    /// Checks files of several pieces, with entries in any order.
    #[test]
    fn lists_have_the_elements_of_the_file() {
        let n = 300;
        let rows: Vec<(usize, usize)> = (0..n * n).map(|k| (k / n, k % n)).collect();
        let columns: Vec<(usize, usize)> = rows.iter().map(|(i, j)| (*j, *i)).collect();
        let shuffled: Vec<(usize, usize)> = (0..n * n).map(|k| rows[k * 7919 % (n * n)]).collect();
        for (entries, order) in [(&rows, [0, 1]), (&columns, [1, 0]), (&shuffled, [0, 1]), (&vec![], [0, 1])] {
            let (stored, value) = listed(entries, n);
            let stored = stored.expect("each element is listed once");
            assert_eq!(stored.format().order(), Some(order.to_vec()));
            assert_eq!(Ok(stored.elements()), value);
        }
        let sparse: Vec<(usize, usize)> = vec![(250_000, 3), (7, 299_999), (7, 0)];
        let (stored, value) = listed(&sparse, 300_000);
        assert_eq!(stored.map(|s| s.elements()), value.ok());
        assert!(listed(&[(1, 1), (0, 0), (1, 1)], 2).0.is_none(), "an element is listed twice");
    }

    /// Checks that faults in later pieces name their lines.
    #[test]
    fn faults_name_their_lines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.mtx");
        let good = "1 2 3.25\n".repeat(400_000);
        for (rest, says) in [
            ("1 x 2\n", "400003: `x` is not a column number"),
            ("\n% c\n5 1 2\n", "400005: row 5 is out of range: 1 to 3"),
            ("1 1 1\n1 1 1\n", "400004: expected 400001 entries, found more"),
            ("1 1 1 1", "400003: unexpected `1` at the end of the line"),
            ("1 1 \u{e9}", "400003: expected a number in the range of f64, found `\u{e9}`"),
        ] {
            let head = "%%MatrixMarket matrix coordinate real general\n3 3 400001\n";
            std::fs::write(&path, format!("{head}{good}{rest}")).expect("a file");
            let error = read_list(&path).expect_err(rest).message;
            assert!(error.ends_with(says), "{error}");
        }
    }
}
