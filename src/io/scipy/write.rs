//! Writer of sparse tensors in the layout of `scipy.sparse.save_npz`; the head of the reader (`scipy.rs`) documents the
//! arrays.

use crate::io::{memory, npz};
use std::io::{Error, Result, Seek, Write};
use taffeta_ast::format::{Coord, Format, Level, LevelKind, Named, presets};
use taffeta_ast::value::Places;
use taffeta_ast::{Buffer, Literal, Value, coordinates};

/// Layout of a written tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// SciPy's layout by rows.
    Csr,
    /// SciPy's layout by columns.
    Csc,
    /// Coordinate lists: SciPy's if the fill is 0.
    Coordinates,
    /// SciPy's diagonals, aligned by column.
    Dia,
    /// SciPy's blocks of the given rows and columns, which divide the matrix.
    Bsr([usize; 2]),
}

impl Layout {
    /// Returns SciPy's layout for tensors of a format and shape; `None` if SciPy has none.
    pub fn of(format: &Format, shape: &[usize]) -> Option<Layout> {
        let alike = |named: &Format| {
            let kinds = |f: &Format| f.levels.iter().map(|l| l.kind).collect::<Vec<_>>();
            kinds(format) == kinds(named) && format.coords == named.coords && format.keys == named.keys
        };
        if Named::Dia.format(shape.len()).is_some_and(|dia| alike(&dia)) {
            return Some(Layout::Dia);
        }
        if let ([n, m], Some([r, c])) = (shape, blocks(format))
            && alike(&presets::bcsr(r, c))
        {
            let [r, c] = [usize::try_from(r).ok()?, usize::try_from(c).ok()?];
            return (n % r == 0 && m % c == 0).then_some(Layout::Bsr([r, c]));
        }
        let lists = |l: &Level| (l.kind, l.unique);
        match (&format.levels.iter().map(lists).collect::<Vec<_>>()[..], &format.order()?[..]) {
            ([(LevelKind::Dense, _), (LevelKind::Compressed, true)], [0, 1]) => Some(Layout::Csr),
            ([(LevelKind::Dense, _), (LevelKind::Compressed, true)], [1, 0]) => Some(Layout::Csc),
            // A vector's list is a coordinate list, whether or not coordinates are unique.
            ([(LevelKind::Compressed, unique), rest @ ..], _)
                if (!unique || rest.is_empty()) && rest.iter().all(|(kind, _)| *kind == LevelKind::Singleton) =>
            {
                Some(Layout::Coordinates)
            }
            _ => None,
        }
    }
}

/// Returns the rows and columns of a block, if the format is one of matrix blocks.
fn blocks(format: &Format) -> Option<[i64; 2]> {
    let size = |k: usize| match format.coords.get(k)? {
        Coord::Apply(_, args) => match args[1] {
            Coord::Int(size) if size > 0 => Some(size),
            _ => None,
        },
        // A block of a single row or column.
        Coord::Dim(_) => Some(1),
        _ => None,
    };
    if format.coords.len() == 4 { Some([size(0)?, size(1)?]) } else { None }
}

/// Writes a sparse tensor.
pub fn write(out: impl Write + Seek, value: &Value, layout: Layout) -> Result<()> {
    let places = value.places().ok_or_else(|| failed("the tensor is dense"))?;
    let (shape, ndim) = (value.shape(), value.shape().len());
    let zero = places.fill == Literal::zero(value.dtype());
    let mut archive = zip::ZipWriter::new(out);
    let name = match layout {
        _ if !zero => "taffeta",
        Layout::Csr if ndim == 2 => "csr",
        Layout::Csc if ndim == 2 => "csc",
        Layout::Dia if ndim == 2 => "dia",
        Layout::Bsr(_) if ndim == 2 => "bsr",
        _ => "coo",
    };
    npz::add_text(&mut archive, "format", name)?;
    npz::add(&mut archive, "shape", &list(shape.iter().map(|n| *n as i64).collect())?)?;
    match (name, layout) {
        ("dia", _) => diagonals(&mut archive, value, places)?,
        ("bsr", Layout::Bsr(size)) => add_blocks(&mut archive, value, places, size)?,
        _ => elements(&mut archive, value, places, name)?,
    }
    if name == "taffeta" {
        let mut fill = Buffer::zeros(value.dtype(), 1);
        fill.set(0, places.fill);
        npz::add(&mut archive, "fill", &Value::scalar(fill).ok_or_else(|| failed("a number"))?)?;
    } else if name == "coo" && ndim != 2 {
        // SciPy represents tensors of other than two dimensions as sparse arrays only.
        let yes = Value::scalar(Buffer::Bool(vec![true])).ok_or_else(|| failed("a number"))?;
        npz::add(&mut archive, "_is_array", &yes)?;
    }
    archive.finish()?;
    Ok(())
}

type Archive<W> = zip::ZipWriter<W>;

fn failed(what: &str) -> Error {
    Error::other(what.to_string())
}

fn list(v: Vec<i64>) -> Result<Value> {
    Value::new(vec![v.len()], Buffer::I64(v)).ok_or_else(|| failed("a list"))
}

/// Writes the index lists of `csr`, `csc` and coordinates, and the elements.
fn elements<W: Write + Seek>(archive: &mut Archive<W>, value: &Value, places: &Places, name: &str) -> Result<()> {
    let (shape, ndim, count) = (value.shape(), value.shape().len(), value.data().len());
    let major = if name == "csc" { 1 } else { 0 };
    let mut order: Vec<usize> = (0..ndim).collect();
    order.rotate_left(major);
    let sorted = coordinates::sorted(shape, &order, &places.indices);
    let of = |d: usize| sorted.iter().map(|e| places.indices[e * ndim + d]).collect::<Vec<i64>>();
    match name {
        "csr" | "csc" => {
            npz::add(archive, "indices", &list(of(1 - major))?)?;
            npz::add(archive, "indptr", &list(starts(&of(major), shape[major])?)?)?;
        }
        "coo" if ndim == 2 => {
            npz::add(archive, "row", &list(of(0))?)?;
            npz::add(archive, "col", &list(of(1))?)?;
        }
        _ => {
            let all: Vec<i64> = (0..ndim).flat_map(of).collect();
            let all = Value::new(vec![ndim, count], Buffer::I64(all)).ok_or_else(|| failed("a table"))?;
            npz::add(archive, "coords", &all)?;
        }
    }
    let positions: Vec<i64> = (0..count as i64).collect();
    let mut data = Buffer::zeros(value.dtype(), count);
    coordinates::place(value.data(), &sorted, &positions, &mut data);
    npz::add(archive, "data", &Value::new(vec![count], data).ok_or_else(|| failed("a list"))?)
}

/// Returns the start of each of `n` rows among entries sorted by row.
fn starts(rows: &[i64], n: usize) -> Result<Vec<i64>> {
    check_room(n as u128 * 8)?;
    let mut starts = vec![0i64; n + 1];
    rows.iter().for_each(|c| starts[*c as usize + 1] += 1);
    (0..n).for_each(|i| starts[i + 1] += starts[i]);
    Ok(starts)
}

fn check_room(bytes: u128) -> Result<()> {
    memory::check_bytes(bytes, "the result").map_err(|d| failed(&d.message)).map(drop)
}

/// Writes diagonals: the element in column `j` of a diagonal is at index `j` of its row in `data`.
fn diagonals<W: Write + Seek>(archive: &mut Archive<W>, value: &Value, places: &Places) -> Result<()> {
    let width = value.shape()[1];
    let mut offsets: Vec<i64> = places.indices.chunks_exact(2).map(|at| at[1] - at[0]).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let position = |at: &[i64]| offsets.partition_point(|o| *o < at[1] - at[0]) as i64 * width as i64 + at[1];
    let positions = places.indices.chunks_exact(2).map(position).collect();
    regions(archive, value, positions, vec![offsets.len(), width])?;
    npz::add(archive, "offsets", &list(offsets)?)
}

/// Writes blocks, by rows of blocks.
fn add_blocks<W: Write + Seek>(
    archive: &mut Archive<W>,
    value: &Value,
    places: &Places,
    [r, c]: [usize; 2],
) -> Result<()> {
    let block = |at: &[i64]| (at[0] / r as i64, at[1] / c as i64);
    let mut all: Vec<(i64, i64)> = places.indices.chunks_exact(2).map(block).collect();
    all.sort_unstable();
    all.dedup();
    let position = |at: &[i64]| {
        let inside = at[0] % r as i64 * c as i64 + at[1] % c as i64;
        all.partition_point(|b| *b < block(at)) as i64 * (r * c) as i64 + inside
    };
    let positions = places.indices.chunks_exact(2).map(position).collect();
    regions(archive, value, positions, vec![all.len(), r, c])?;
    let (rows, columns): (Vec<i64>, Vec<i64>) = all.into_iter().unzip();
    npz::add(archive, "indices", &list(columns)?)?;
    npz::add(archive, "indptr", &list(starts(&rows, value.shape()[0] / r)?)?)
}

/// Writes `data` of the given shape with the elements at their positions, and 0 elsewhere.
fn regions<W: Write + Seek>(
    archive: &mut Archive<W>,
    value: &Value,
    positions: Vec<i64>,
    shape: Vec<usize>,
) -> Result<()> {
    let bytes = shape.iter().fold(value.dtype().size() as u128, |n, d| n.saturating_mul(*d as u128));
    check_room(bytes)?;
    let mut data = Buffer::zeros(value.dtype(), shape.iter().product());
    coordinates::scatter(value.data(), &positions, &mut data);
    npz::add(archive, "data", &Value::new(shape, data).ok_or_else(|| failed("regions"))?)
}
