//! SciPy's `csr` and `csc`: lists of elements, one for each row or column.
//!
//! | array | contents |
//! |---|---|
//! | `indptr` | start of each row in `indices` and `data`, and the end of the last one; in `csc` of each column |
//! | `indices` | columns of the elements; in `csc` rows |

use super::archive::{Writer, check_room};
use super::sparse::SparseArchive;
use crate::io::columns::{Indices, are_wide};
use crate::io::elements::{Elements, Numbers};
use crate::io::want::Want;
use taffeta_ast::format::{Format, LevelKind, Named};
use taffeta_ast::spelling::counted;
use taffeta_ast::value::Places;
use taffeta_ast::{Buffer, Diagnostic, Value, coordinates};
use taffeta_structured::{Stored, check};

pub(super) fn is_csr(format: &Format, _: &[usize]) -> bool {
    is_compressed(format, [0, 1])
}

pub(super) fn is_csc(format: &Format, _: &[usize]) -> bool {
    is_compressed(format, [1, 0])
}

/// Returns whether a format has a list of distinct coordinates for each index of dimension `order[0]`.
fn is_compressed(format: &Format, order: [usize; 2]) -> bool {
    let [outer, inner] = &format.levels[..] else { return false };
    outer.kind == LevelKind::Dense
        && inner.kind == LevelKind::Compressed
        && inner.unique
        && format.order().is_some_and(|o| o == order)
}

pub(super) fn read_csr(archive: &mut SparseArchive<'_>, shape: &[usize], _: &Want) -> Result<Elements, Diagnostic> {
    // SciPy stores vectors as a row.
    if let [m] = shape {
        let Elements { indices, values } = lists(archive, [1, *m], "row")?;
        return Ok(Elements { indices: indices.into_iter().skip(1).step_by(2).collect(), values });
    }
    let shape = archive.matrix(shape)?;
    lists(archive, shape, "row")
}

pub(super) fn read_csc(archive: &mut SparseArchive<'_>, shape: &[usize], _: &Want) -> Result<Elements, Diagnostic> {
    let [n, m] = archive.matrix(shape)?;
    let mut elements = lists(archive, [m, n], "column")?;
    elements.indices.chunks_exact_mut(2).for_each(<[i64]>::reverse);
    Ok(elements)
}

/// Reads a matrix as the arrays of `csr` or, if `columns`, `csc`; `None` for other tensors, for lists in no order, and for
/// faulty files, which [`read_csr`] and [`read_csc`] refuse.
pub(super) fn stored(
    archive: &mut SparseArchive<'_>,
    shape: &[usize],
    columns: bool,
) -> Result<Option<Stored>, Diagnostic> {
    let &[n, m] = shape else { return Ok(None) };
    let named = if columns { Named::Csc } else { Named::Csr };
    let Some(format) = named.format(2).filter(|_| archive.has("indptr") && archive.has("indices")) else {
        return Ok(None);
    };
    let inner = if columns { n } else { m };
    let [starts, indices, values] = ["indptr", "indices", "data"].map(|key| archive.array(key));
    let [starts, indices, values] = [starts?, indices?, values?];
    let count = values.data().len();
    if [&indices, &values].iter().any(|list| list.shape() != [count]) {
        return Ok(None);
    }
    let wide = are_wide(shape, count);
    let starts = Indices::of(starts.into_parts().1, count + 1, wide);
    let (Some(starts), Some(indices)) = (starts, Indices::of(indices.into_parts().1, inner, wide)) else {
        return Ok(None);
    };
    let arrays = [starts.buffer(), indices.buffer()];
    let borrowed: Option<Vec<taffeta_structured::Indices<'_>>> =
        arrays.iter().map(taffeta_structured::Indices::of).collect();
    let Some(Ok(hidden)) = borrowed.map(|arrays| check("", shape, &format, &arrays, count)) else { return Ok(None) };
    let arrays = arrays.into_iter().filter_map(|list| Value::new(vec![list.len()], list)).chain([values]).collect();
    Ok(Some(Stored::of_arrays(shape.to_vec(), format, arrays, hidden)))
}

/// Reads `n` lists of elements, with indices below `m`.
fn lists(archive: &mut SparseArchive<'_>, [n, m]: [usize; 2], list: &str) -> Result<Elements, Diagnostic> {
    let (_, data) = archive.data(1)?;
    let (starts, inner) = read_lists(archive, [n, m], list)?;
    // SciPy may reserve room for more elements than there are.
    let count = starts[n] as usize;
    if data.len() < count {
        return Err(archive.bad(format!("`data` has {}, but `indptr` counts {count}", counted(data.len(), "element"))));
    }
    let mut indices = Vec::with_capacity(2 * count);
    for outer in 0..n {
        for c in &inner[starts[outer] as usize..starts[outer + 1] as usize] {
            indices.extend([outer as i64, *c]);
        }
    }
    Ok(Elements { indices, values: Numbers::Typed(first(&data, count)) })
}

/// Reads the starts of `n` lists (rows, columns or block rows) and their indices, which are below `m`.
pub(super) fn read_lists(
    archive: &mut SparseArchive<'_>,
    [n, m]: [usize; 2],
    list: &str,
) -> Result<(Vec<i64>, Vec<i64>), Diagnostic> {
    let (starts, indices) = (archive.any_integers("indptr")?, archive.integers("indices", m as i64)?);
    if starts.len() != n + 1 {
        let expected = format!("{} in `indptr`, one more than {}", counted(n + 1, "number"), counted(n, list));
        return Err(archive.bad(format!("expected {expected}, found {}", starts.len())));
    }
    if let Some(k) = (1..starts.len()).find(|k| starts[*k] < starts[k - 1]) {
        return Err(archive.bad(format!("`indptr` falls from {} to {}", starts[k - 1], starts[k])));
    }
    if starts[0] != 0 || starts[n] > indices.len() as i64 {
        let range = format!("`indptr` goes from {} to {}", starts[0], starts[n]);
        return Err(archive.bad(format!("{range}, but `indices` has {}", counted(indices.len(), "number"))));
    }
    Ok((starts, indices))
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

pub(super) fn write_csr(archive: &mut Writer<'_>, value: &Value, places: &Places, _: &Format) -> std::io::Result<()> {
    write(archive, value, places, [0, 1])
}

pub(super) fn write_csc(archive: &mut Writer<'_>, value: &Value, places: &Places, _: &Format) -> std::io::Result<()> {
    write(archive, value, places, [1, 0])
}

/// Writes a list for each index of dimension `outer`.
fn write(archive: &mut Writer<'_>, value: &Value, places: &Places, [outer, inner]: [usize; 2]) -> std::io::Result<()> {
    let (shape, count) = (value.shape(), value.data().len());
    let sorted = coordinates::sorted(shape, &[outer, inner], &places.indices);
    let of = |d: usize| sorted.iter().map(|e| places.indices[e * 2 + d]).collect::<Vec<i64>>();
    archive.add_list("indices", of(inner))?;
    archive.add_list("indptr", starts(&of(outer), shape[outer])?)?;
    let positions: Vec<i64> = (0..count as i64).collect();
    let mut data = Buffer::zeros(value.dtype(), count);
    coordinates::place(value.data(), &sorted, &positions, &mut data);
    archive.add_data("data", vec![count], data)
}

/// Returns the start of each of `n` lists among the numbers of the lists of all entries, which are sorted.
pub(super) fn starts(lists: &[i64], n: usize) -> std::io::Result<Vec<i64>> {
    check_room(n as u128 * 8)?;
    let mut starts = vec![0i64; n + 1];
    lists.iter().for_each(|c| starts[*c as usize + 1] += 1);
    (0..n).for_each(|i| starts[i + 1] += starts[i]);
    Ok(starts)
}
