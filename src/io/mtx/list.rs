//! The entries of a file as a list of coordinates. Entries in the order of rows, or in that of columns, stay where they
//! are; others are put in the order of rows, one array after the other.

use super::pieces::{self, Columns, Indices};
use super::{Entries, header};
use crate::io::{file, memory};
use rayon::prelude::*;
use std::io::BufReader;
use std::path::Path;
use taffeta_ast::format::Named;
use taffeta_ast::{Buffer, Diagnostic, Value};
use taffeta_structured::Stored;

/// Reads a file that lists each element once as `coo`, by rows or by columns, with elements in the type of the file;
/// `None` for other files: those that list all elements, or one several times.
pub fn read_list(path: &Path) -> Result<Option<Stored>, Diagnostic> {
    let (reader, length) = file::reader(path)?;
    let mut reader = BufReader::new(reader);
    let header = header(&mut reader, path)?;
    let Some(format) = Named::Coo.format(2).filter(|_| header.banner.coordinate) else { return Ok(None) };
    let columns = pieces::read(&mut reader, &header, length, path)?;
    let count = columns.rows.len();
    let (columns, order) = match [columns.is_in_order(false), columns.is_in_order(true)] {
        [true, _] => (columns, [0, 1]),
        [false, true] => (Columns { rows: columns.cols, cols: columns.rows, ..columns }, [1, 0]),
        [false, false] => {
            memory::check_bytes(count as u128 * 16, &path.display().to_string())?;
            let order = columns.order(header.shape);
            let columns = columns.ordered(&order);
            if !columns.is_in_order(false) {
                return Ok(None);
            }
            (columns, [0, 1])
        }
    };
    let Columns { rows, cols, values } = columns;
    let end = count as i64;
    let begins = match &rows {
        Indices::I32(_) if i32::try_from(end).is_err() => return Ok(None),
        Indices::I32(_) => Buffer::I32(vec![0, end as i32]),
        Indices::I64(_) => Buffer::I64(vec![0, end]),
    };
    let values = match values {
        Entries::Pattern(n) => Buffer::Bool(vec![true; n]),
        Entries::Integer(v) => Buffer::I64(v),
        Entries::Unsigned(v) => Buffer::U64(v),
        Entries::Real(v) => Buffer::F64(v),
    };
    let vector = |buffer: Buffer| Value::new(vec![buffer.len()], buffer);
    let arrays = [begins, rows.buffer(), cols.buffer(), values].into_iter().filter_map(vector).collect();
    Ok(Some(Stored::of_arrays(header.shape.to_vec(), format.ordered(&order), arrays, vec![end])))
}

impl Columns {
    /// Returns whether entries are in the order of rows, then of columns, or the other way around, each once.
    fn is_in_order(&self, by_columns: bool) -> bool {
        let at = |e: usize| match by_columns {
            false => (self.rows.at(e), self.cols.at(e)),
            true => (self.cols.at(e), self.rows.at(e)),
        };
        (1..self.rows.len()).into_par_iter().all(|e| at(e - 1) < at(e))
    }

    /// Returns the numbers of the entries in order: by columns first, unless they are, then by rows.
    fn order(&self, [n, m]: [usize; 2]) -> Vec<usize> {
        let count = self.rows.len();
        let mut order: Vec<usize> = (0..count).collect();
        if count < n.max(m) / 4 {
            order.par_sort_by_key(|e| (self.rows.at(*e), self.cols.at(*e)));
            return order;
        }
        if (1..count).into_par_iter().any(|e| self.cols.at(e - 1) > self.cols.at(e)) {
            order = counted(&order, m, &self.cols);
        }
        counted(&order, n, &self.rows)
    }

    /// Puts the entries in this order, one column after the other.
    fn ordered(self, order: &[usize]) -> Columns {
        fn picked<T: Copy + Send + Sync>(v: &[T], order: &[usize]) -> Vec<T> {
            order.par_iter().map(|e| v[*e]).collect()
        }
        let indices = |v: Indices| match v {
            Indices::I32(v) => Indices::I32(picked(&v, order)),
            Indices::I64(v) => Indices::I64(picked(&v, order)),
        };
        Columns {
            rows: indices(self.rows),
            cols: indices(self.cols),
            values: match self.values {
                Entries::Pattern(n) => Entries::Pattern(n),
                Entries::Integer(v) => Entries::Integer(picked(&v, order)),
                Entries::Unsigned(v) => Entries::Unsigned(picked(&v, order)),
                Entries::Real(v) => Entries::Real(picked(&v, order)),
            },
        }
    }
}

/// Sorts numbers of entries by a column, stably, by counting.
fn counted(order: &[usize], size: usize, by: &Indices) -> Vec<usize> {
    let mut next = vec![0usize; size + 1];
    for e in order {
        next[by.at(*e) as usize + 1] += 1;
    }
    for k in 0..size {
        next[k + 1] += next[k];
    }
    let mut sorted = vec![0; order.len()];
    for e in order {
        let place = &mut next[by.at(*e) as usize];
        sorted[*place] = *e;
        *place += 1;
    }
    sorted
}

impl Indices {
    fn buffer(self) -> Buffer {
        match self {
            Indices::I32(v) => Buffer::I32(v),
            Indices::I64(v) => Buffer::I64(v),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Want;
    use taffeta_ast::DType;

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
