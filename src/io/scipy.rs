//! Sparse tensors in `.npz` in the layout of `scipy.sparse.save_npz`, and SciPy's `coo` extended by a fill. `levels.rs`
//! has Taffeta's own layout by levels.
//!
//! | array | in the formats | contents |
//! |---|---|---|
//! | `format` | all | name of the format: `csr csc coo dia bsr`, or `taffeta` |
//! | `shape` | all | sizes of the dimensions |
//! | `data` | all | elements; for `dia` `[diagonals, columns]`, for `bsr` `[blocks, r, c]` |
//! | `coords` | `coo`, `taffeta` | `[dimensions, elements]`: coordinates by dimension |
//! | `row`, `col` | `coo` of matrices | coordinates in two arrays |
//! | `indptr`, `indices` | `csr csc bsr` | start of each row (column, row of blocks) in the elements; their columns |
//! | `offsets` | `dia` | diagonals; `data[k, j]` is the element in column `j` of diagonal `k` |
//! | `fill` | `taffeta` | fill value |
//!
//! `dia` and `bsr` store whole regions, from which elements that equal the parameter's fill are dropped. In every
//! format, elements may be unordered and repeated.

mod write;

pub use write::{Layout, write};

use super::elements::{Elements, Numbers, check_sizes};
use super::file::file_error;
use super::npz::Archive;
use super::want::Want;
use super::{convert, levels};
use std::path::Path;
use taffeta_ast::{Buffer, Diagnostic, Literal, Value, coordinates};

/// Reads a sparse tensor; `None` if the archive holds other arrays.
pub fn read(path: &Path, want: &Want) -> Result<Option<Value>, Diagnostic> {
    let mut archive = Archive::open(path)?;
    if !["format", "shape", "data"].iter().all(|key| archive.has(key)) {
        return Ok(None);
    }
    let format = archive.text("format")?;
    let mut file = File { path, format: &format, archive };
    let shape: Vec<usize> = file.integers("shape", i64::MAX)?.into_iter().map(|n| n as usize).collect();
    check_sizes(&shape, path)?;
    let expects = |what: &str| file_error("data::format", path, format!("a `{format}` tensor needs {what}"));
    let matrix = || match shape.as_slice() {
        [n, m] => Ok([*n, *m]),
        // SciPy stores vectors in `csr` as a row.
        [m] if format == "csr" => Ok([1, *m]),
        _ => Err(expects("two dimensions")),
    };
    let mut elements = match format.as_str() {
        "taffeta" if file.archive.has("levels") => {
            let bad = |what: String| file_error("data::format", path, what);
            levels::read(&mut file.archive, &shape, &bad)?
        }
        "coo" | "taffeta" => file.coordinates(&shape)?,
        "csr" => file.compressed(matrix()?, false)?,
        "csc" => file.compressed(matrix()?, true)?,
        "bsr" => file.blocks(matrix()?, want)?,
        "dia" => file.diagonals(matrix()?, want)?,
        _ => return Err(file_error("data::unsupported", path, format!("format `{format}` is not supported"))),
    };
    if shape.len() == 1 && format == "csr" {
        elements.indices = elements.indices.into_iter().skip(1).step_by(2).collect();
    }
    if format == "taffeta" {
        file.check_fill(want)?;
    }
    elements.tensor(shape, want, path).map(Some)
}

/// Archive of a sparse tensor, with the name of its format.
struct File<'a> {
    path: &'a Path,
    format: &'a str,
    archive: Archive<'a>,
}

impl File<'_> {
    fn bad(&self, what: impl std::fmt::Display) -> Diagnostic {
        file_error("data::format", self.path, what)
    }

    /// Reads a list of integers from 0 to below `most`.
    fn integers(&mut self, key: &str, most: i64) -> Result<Vec<i64>, Diagnostic> {
        let list = self.any_integers(key)?;
        match list.iter().find(|v| **v < 0 || **v >= most) {
            Some(v) => Err(self.bad(format!("{v} in `{key}` is out of range: 0 to {}", most - 1))),
            None => Ok(list),
        }
    }

    fn any_integers(&mut self, key: &str) -> Result<Vec<i64>, Diagnostic> {
        if !self.archive.has(key) {
            return Err(self.bad(format!("array `{key}` of the `{}` tensor is missing", self.format)));
        }
        let value = self.archive.array(key)?;
        if value.shape().len() > 1 && key != "coords" {
            return Err(self.bad(format!("expected `{key}` to have one dimension, found {}", value.shape().len())));
        }
        let data = match value.into_parts().1 {
            Buffer::I64(list) => return Ok(list),
            data => data,
        };
        let one = |k| data.get_int(k).and_then(|v| i64::try_from(v).ok());
        let list: Option<Vec<i64>> = (0..data.len()).map(one).collect();
        list.ok_or_else(|| self.bad(format!("expected integers within i64 in `{key}`, found {}", data.dtype())))
    }

    fn data(&mut self, ndim: usize) -> Result<(Vec<usize>, Buffer), Diagnostic> {
        let (shape, data) = self.archive.array("data")?.into_parts();
        match shape.len() == ndim {
            true => Ok((shape, data)),
            false => Err(self.bad(format!(
                "expected {ndim} dimensions of `data` in a `{}` tensor, found {}",
                self.format,
                shape.len()
            ))),
        }
    }

    fn coordinates(&mut self, shape: &[usize]) -> Result<Elements, Diagnostic> {
        let (_, data) = self.data(1)?;
        let most = |k: usize| shape[k] as i64;
        let lists: Vec<Vec<i64>> = if self.archive.has("coords") {
            let all = self.any_integers("coords")?;
            if all.len() != data.len() * shape.len() {
                return Err(self.bad(format!(
                    "expected `coords` to have {} for each element",
                    super::want::dimensions(shape.len())
                )));
            }
            all.chunks(data.len().max(1)).map(<[i64]>::to_vec).collect()
        } else if shape.len() == 2 {
            vec![self.any_integers("row")?, self.any_integers("col")?]
        } else {
            return Err(self.bad("array `coords` of the `coo` tensor is missing"));
        };
        if lists.iter().any(|l| l.len() != data.len()) {
            return Err(self.bad("the numbers of coordinates and of elements differ"));
        }
        let mut indices = vec![0; data.len() * shape.len()];
        for (k, list) in lists.iter().enumerate() {
            for (e, c) in list.iter().enumerate() {
                if *c < 0 || *c >= most(k) {
                    let range = format!("0 to {}", most(k) - 1);
                    return Err(self.bad(format!("coordinate {c} of dimension {k} is out of range: {range}")));
                }
                indices[e * shape.len() + k] = *c;
            }
        }
        Ok(Elements { indices, values: Numbers::Typed(data) })
    }

    /// Reads the starts of the rows and the column indices, for `rows` rows and `columns` columns.
    fn rows(&mut self, rows: usize, columns: usize) -> Result<(Vec<i64>, Vec<i64>), Diagnostic> {
        let (starts, indices) = (self.any_integers("indptr")?, self.integers("indices", columns as i64)?);
        if starts.len() != rows + 1 {
            return Err(self.bad(format!("expected `indptr` to have one number more than the {rows} rows")));
        }
        if let Some(k) = (1..starts.len()).find(|k| starts[*k] < starts[k - 1]) {
            return Err(self.bad(format!("`indptr` falls from {} to {}", starts[k - 1], starts[k])));
        }
        if starts[0] != 0 || starts[rows] > indices.len() as i64 {
            let what = format!("`indptr` goes from {} to {}", starts[0], starts[rows]);
            return Err(self.bad(format!("{what}, but there are {} elements", indices.len())));
        }
        Ok((starts, indices))
    }

    fn compressed(&mut self, [n, m]: [usize; 2], by_columns: bool) -> Result<Elements, Diagnostic> {
        let (_, data) = self.data(1)?;
        let (rows, columns) = if by_columns { (m, n) } else { (n, m) };
        let (starts, inner) = self.rows(rows, columns)?;
        // SciPy may reserve room for more elements than there are.
        let count = starts[rows] as usize;
        if data.len() < count {
            return Err(self.bad(format!("`data` has {} elements, but `indptr` counts {count}", data.len())));
        }
        let mut indices = Vec::with_capacity(2 * count);
        for row in 0..rows {
            for c in &inner[starts[row] as usize..starts[row + 1] as usize] {
                indices.extend(if by_columns { [*c, row as i64] } else { [row as i64, *c] });
            }
        }
        Ok(Elements { indices, values: Numbers::Typed(first(&data, count)) })
    }

    fn blocks(&mut self, [n, m]: [usize; 2], want: &Want) -> Result<Elements, Diagnostic> {
        let (shape, data) = self.data(3)?;
        let [_, r, c] = shape[..] else { unreachable!("`data` has three dimensions") };
        if r == 0 || c == 0 || n % r != 0 || m % c != 0 {
            return Err(self.bad(format!("blocks of {r} × {c} do not divide a matrix of {n} × {m}")));
        }
        let (starts, columns) = self.rows(n / r, m / c)?;
        let count = starts[n / r] as usize;
        if shape[0] < count {
            return Err(self.bad(format!("`data` has {} blocks, but `indptr` counts {count}", shape[0])));
        }
        let mut kept = NonFill::new(&data, want);
        for row in 0..n / r {
            let own = starts[row] as usize..starts[row + 1] as usize;
            for (block, column) in own.clone().zip(&columns[own]) {
                for k in 0..r * c {
                    let at = [(row * r + k / c) as i64, column * c as i64 + (k % c) as i64];
                    kept.add(block * r * c + k, at);
                }
            }
        }
        Ok(kept.elements())
    }

    fn diagonals(&mut self, [n, m]: [usize; 2], want: &Want) -> Result<Elements, Diagnostic> {
        let (shape, data) = self.data(2)?;
        let offsets = self.any_integers("offsets")?;
        let [count, width] = shape[..] else { unreachable!("`data` has two dimensions") };
        if offsets.len() != count {
            return Err(self.bad(format!("`offsets` has {} diagonals, but `data` has {count}", offsets.len())));
        }
        let mut kept = NonFill::new(&data, want);
        for (k, offset) in offsets.iter().enumerate() {
            // The element in column j stands in row j - offset.
            let to = (width.min(m) as i64).min(offset.saturating_add(n as i64));
            for j in (*offset).max(0)..to {
                kept.add(k * width + j as usize, [j - offset, j]);
            }
        }
        Ok(kept.elements())
    }

    /// Checks that the fill of a file equals the parameter's.
    fn check_fill(&mut self, want: &Want) -> Result<(), Diagnostic> {
        if !self.archive.has("fill") {
            return Err(self.bad("array `fill` of the `taffeta` tensor is missing"));
        }
        let value = self.archive.array("fill")?;
        if !value.shape().is_empty() {
            return Err(self.bad("expected one number in `fill`"));
        }
        let wanted = want.fill.unwrap_or(Literal::zero(want.dtype));
        let found = convert::to(value, want, &self.archive.shown("fill").display().to_string())?.data().get(0);
        let nan = |l: Literal| matches!(l, Literal::Float(v) if v.is_nan());
        if found == wanted || nan(found) && nan(wanted) {
            return Ok(());
        }
        let shown = |l: Literal| match l {
            Literal::Bool(b) => b.to_string(),
            Literal::Int(v) => v.to_string(),
            Literal::Float(v) => v.to_string(),
        };
        let (found, wanted) = (shown(found), shown(wanted));
        let what = format!("the fill of the file is {found}, but the fill of parameter `{}` is {wanted}", want.name);
        Err(file_error("data::storage", self.path, what).help(format!("declare the parameter with `fill={found}`")))
    }
}

/// Elements of regions that differ from the fill.
struct NonFill<'a> {
    data: &'a Buffer,
    fill: Literal,
    sources: Vec<usize>,
    indices: Vec<i64>,
}

impl<'a> NonFill<'a> {
    fn new(data: &'a Buffer, want: &Want) -> NonFill<'a> {
        NonFill { data, fill: want.fill.unwrap_or(Literal::zero(want.dtype)), sources: Vec::new(), indices: Vec::new() }
    }

    fn add(&mut self, source: usize, at: [i64; 2]) {
        let number = match (self.data.get(source), self.fill) {
            // The file's kind of numbers may differ from the parameter's.
            (Literal::Int(a), Literal::Float(b)) => a as f64 == b,
            (Literal::Float(a), Literal::Float(b)) => a == b,
            (a, b) => a == b,
        };
        if !number {
            self.sources.push(source);
            self.indices.extend(at);
        }
    }

    fn elements(self) -> Elements {
        let positions: Vec<i64> = (0..self.sources.len() as i64).collect();
        let mut values = Buffer::zeros(self.data.dtype(), self.sources.len());
        coordinates::place(self.data, &self.sources, &positions, &mut values);
        Elements { indices: self.indices, values: Numbers::Typed(values) }
    }
}

/// Returns the first `count` elements.
fn first(data: &Buffer, count: usize) -> Buffer {
    if data.len() == count {
        return data.clone();
    }
    let positions: Vec<i64> = (0..count as i64).collect();
    let sources: Vec<usize> = (0..count).collect();
    let mut out = Buffer::zeros(data.dtype(), count);
    coordinates::place(data, &sources, &positions, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::super::npz;
    use super::*;
    use proptest::prelude::*;
    use std::io::{Cursor, Write as _};
    use taffeta_ast::DType;

    /// Builds an archive of arrays.
    fn archive(format: &str, arrays: &[(&str, Value)]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        npz::add_text(&mut zip, "format", format).expect("memory");
        arrays.iter().for_each(|(key, value)| npz::add(&mut zip, key, value).expect("memory"));
        zip.finish().expect("memory").into_inner()
    }

    fn list(v: &[i64]) -> Value {
        Value::new(vec![v.len()], Buffer::I64(v.to_vec())).expect("one dimension")
    }

    fn floats(shape: &[usize], v: &[f64]) -> Value {
        Value::new(shape.to_vec(), Buffer::F64(v.to_vec())).expect("as many")
    }

    fn check(bytes: &[u8], want: &Want) -> Result<Value, String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.npz");
        std::fs::write(&path, bytes).expect("a file");
        let prefix = format!("{}/", dir.path().display());
        let read = read(&path, want).map_err(|d| d.message.replace(&prefix, ""))?;
        read.ok_or_else(|| "not sparse".to_string())
    }

    fn want() -> Want {
        Want::new("A", DType::F64, 2)
    }

    /// Returns `[[0, 5, 3], [2, 0, 0]]`.
    fn expected() -> Result<Value, String> {
        let data = Buffer::F64(vec![5.0, 3.0, 2.0]);
        Ok(Value::sparse(vec![2, 3], vec![0, 1, 0, 2, 1, 0], data, Literal::Float(0.0)).expect("in order"))
    }

    #[test]
    fn formats_of_scipy() {
        let shape = ("shape", list(&[2, 3]));
        let data = |v: &[f64]| ("data", floats(&[v.len()], v));
        // Unordered, with a repeated element, and reserved room.
        let csr = [shape.clone(), data(&[3.0, 4.0, 1.0, 2.0, 9.0])]
            .into_iter()
            .chain([("indptr", list(&[0, 3, 4])), ("indices", list(&[2, 1, 1, 0, 0]))])
            .collect::<Vec<_>>();
        assert_eq!(check(&archive("csr", &csr), &want()), expected());
        let csc =
            [shape.clone(), data(&[2.0, 5.0, 3.0]), ("indptr", list(&[0, 1, 2, 3])), ("indices", list(&[1, 0, 0]))];
        assert_eq!(check(&archive("csc", &csc), &want()), expected());
        let coo = [shape.clone(), data(&[2.0, 5.0, 3.0]), ("row", list(&[1, 0, 0])), ("col", list(&[0, 1, 2]))];
        assert_eq!(check(&archive("coo", &coo), &want()), expected());
        // Diagonals 1, 2 and -1, by column.
        let numbers = floats(&[3, 3], &[7.0, 5.0, 0.0, 7.0, 7.0, 3.0, 2.0, 0.0, 7.0]);
        let dia = [shape.clone(), ("data", numbers), ("offsets", list(&[1, 2, -1]))];
        assert_eq!(check(&archive("dia", &dia), &want()), expected());
        let numbers = floats(&[2, 2, 1], &[0.0, 2.0, 3.0, 0.0]);
        let bsr = [shape.clone(), ("data", numbers), ("indptr", list(&[0, 2])), ("indices", list(&[0, 2]))];
        let two = Value::sparse(vec![2, 3], vec![0, 2, 1, 0], Buffer::F64(vec![3.0, 2.0]), Literal::Float(0.0));
        assert_eq!(check(&archive("bsr", &bsr), &want()), Ok(two.expect("in order")));
        let row = [("shape", list(&[4])), data(&[1.5]), ("indptr", list(&[0, 1])), ("indices", list(&[2]))];
        let vector = Value::sparse(vec![4], vec![2], Buffer::F64(vec![1.5]), Literal::Float(0.0)).expect("in order");
        assert_eq!(check(&archive("csr", &row), &Want::new("x", DType::F64, 1)), Ok(vector));
        // Elements of regions that equal the parameter's fill are dropped.
        let two = Want { fill: Some(Literal::Float(3.0)), ..want() };
        assert_eq!(check(&archive("bsr", &bsr), &two).expect("it is read").numbers(), [0.0, 2.0, 0.0]);
    }

    #[test]
    fn errors_name_the_expected_arrays() {
        let shape = ("shape", list(&[2, 3]));
        let data = ("data", floats(&[2], &[1.0, 2.0]));
        let with = |format: &str, more: &[(&'static str, Value)]| {
            let all: Vec<_> = [shape.clone(), data.clone()].into_iter().chain(more.iter().cloned()).collect();
            check(&archive(format, &all), &want()).unwrap_err()
        };
        let indices = || ("indices", list(&[0, 1]));
        let starts = |v: &[i64]| ("indptr", list(v));
        for (found, says) in [
            (with("csr", &[indices(), starts(&[0, 2, 1])]), "`indptr` falls from 2 to 1"),
            (with("csr", &[indices(), starts(&[0, 1, 9])]), "`indptr` goes from 0 to 9, but there are 2 elements"),
            (with("csr", &[indices(), starts(&[1, 1, 2])]), "`indptr` goes from 1 to 2, but there are 2 elements"),
            (with("csr", &[indices(), starts(&[0, 2])]), "expected `indptr` to have one number more than the 2 rows"),
            (
                with("csc", &[("indices", list(&[0, 2])), starts(&[0, 1, 2, 2])]),
                "2 in `indices` is out of range: 0 to 1",
            ),
            (with("csr", &[indices()]), "array `indptr` of the `csr` tensor is missing"),
            (
                with("coo", &[("row", list(&[0, 1])), ("col", list(&[3, 0]))]),
                "coordinate 3 of dimension 1 is out of range: 0 to 2",
            ),
            (
                with("coo", &[("row", list(&[0, -1])), ("col", list(&[2, 0]))]),
                "coordinate -1 of dimension 0 is out of range: 0 to 1",
            ),
            (
                with("coo", &[("row", list(&[0])), ("col", list(&[2, 0]))]),
                "the numbers of coordinates and of elements differ",
            ),
            (with("coo", &[("coords", list(&[0, 1]))]), "expected `coords` to have 2 dimensions for each element"),
            (with("dia", &[("offsets", list(&[0]))]), "expected 2 dimensions of `data` in a `dia` tensor, found 1"),
            (with("lil", &[]), "format `lil` is not supported"),
            (with("taffeta", &[("coords", list(&[0, 1, 2, 2]))]), "array `fill` of the `taffeta` tensor is missing"),
        ] {
            assert!(found.contains(says), "{found}");
        }
        let fill = ("fill", floats(&[], &[f64::INFINITY]));
        let other = with("taffeta", &[("coords", list(&[0, 1, 2, 2])), fill]);
        assert_eq!(other, "a.npz: the fill of the file is inf, but the fill of parameter `A` is 0");
        // A header that announces more data than the file has is not trusted.
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        npz::add_text(&mut zip, "format", "coo").expect("memory");
        npz::add(&mut zip, "shape", &list(&[2, 3])).expect("memory");
        zip.start_file("data.npy", zip::write::SimpleFileOptions::default()).expect("memory");
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000,), }\n";
        zip.write_all(b"\x93NUMPY\x01\x00").expect("memory");
        zip.write_all(&(header.len() as u16).to_le_bytes()).expect("memory");
        zip.write_all(header.as_bytes()).expect("memory");
        let huge = check(&zip.finish().expect("memory").into_inner(), &want()).unwrap_err();
        assert_eq!(huge, "a.npz:data: the file ends before its data does");
    }

    #[test]
    fn written_files_round_trip() {
        for data in
            [Buffer::F32(vec![0.1, f32::INFINITY, -0.0]), Buffer::I16(vec![3, 0, -1]), Buffer::Bool(vec![true; 3])]
        {
            let zero = Literal::zero(data.dtype());
            for layout in [Layout::Csr, Layout::Csc, Layout::Coordinates] {
                for (shape, indices) in [
                    (vec![3, 4], vec![0, 3, 1, 0, 2, 2]),
                    (vec![9], vec![0, 4, 8]),
                    (vec![1 << 40, 2, 3], vec![0, 0, 0, 7, 1, 2, 1 << 39, 0, 1]),
                ] {
                    let value = Value::sparse(shape, indices, data.clone(), zero).expect("in order");
                    let mut bytes = Cursor::new(Vec::new());
                    write(&mut bytes, &value, layout).expect("memory");
                    let want = Want::new("A", data.dtype(), value.shape().len());
                    assert_eq!(check(bytes.get_ref(), &want), Ok(value), "{layout:?}");
                }
            }
        }
        let far = Value::sparse(vec![2, 2], vec![1, 0], Buffer::F64(vec![1.5]), Literal::Float(f64::INFINITY));
        let far = far.expect("in order");
        let mut bytes = Cursor::new(Vec::new());
        write(&mut bytes, &far, Layout::Csr).expect("memory");
        let want = Want { fill: Some(Literal::Float(f64::INFINITY)), ..want() };
        assert_eq!(check(bytes.get_ref(), &want), Ok(far));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn arbitrary_arrays_do_not_panic(
            format in "(csr|csc|coo|dia|bsr|taffeta)",
            shape in proptest::collection::vec(prop_oneof![0i64..5, Just(-1), Just(i64::MAX), Just(1 << 46)], 0..4),
            lists in proptest::collection::vec(proptest::collection::vec(-2i64..6, 0..5), 3),
            data in prop_oneof![
                Just(floats(&[3], &[1.0; 3])), Just(floats(&[2, 2], &[0.5; 4])), Just(floats(&[1, 2, 2], &[2.0; 4])),
                Just(floats(&[0, 3, 3], &[])), Just(floats(&[], &[1.0])),
            ],
        ) {
            let [a, b, c] = [0, 1, 2].map(|k| list(&lists[k]));
            let bytes = archive(&format, &[
                ("shape", list(&shape)), ("data", data), ("indptr", a.clone()), ("indices", b.clone()),
                ("row", a.clone()), ("col", b), ("offsets", a), ("fill", c),
            ]);
            for ndim in 1..3 {
                let _ = check(&bytes, &Want::new("A", DType::F32, ndim));
            }
        }
    }
}
