//! SciPy's `coo`: the coordinates of each element, for tensors of any number of dimensions.
//!
//! | array | contents |
//! |---|---|
//! | `row`, `col` | of a matrix: coordinates in two arrays |
//! | `coords` | otherwise: coordinates by dimension, `[dimensions, elements]` |
//! | `_is_array` | of other tensors than matrices: `True`, since SciPy has no others as `spmatrix` |

use super::archive::Writer;
use super::sparse::SparseArchive;
use crate::io::columns::{Columns, Indices, are_wide};
use crate::io::elements::{Elements, Numbers};
use crate::io::want::{Want, dimensions};
use std::path::Path;
use taffeta_ast::format::{Format, LevelKind};
use taffeta_ast::value::Places;
use taffeta_ast::{Buffer, DType, Diagnostic, Literal, Value};
use taffeta_structured::Stored;

/// Returns whether a format is a coordinate list.
pub(super) fn takes(format: &Format, _: &[usize]) -> bool {
    if format.order().is_none() {
        return false;
    }
    let [first, rest @ ..] = &format.levels[..] else { return false };
    // A vector's list is a coordinate list, whether or not coordinates are unique.
    first.kind == LevelKind::Compressed
        && (!first.unique || rest.is_empty())
        && rest.iter().all(|level| level.kind == LevelKind::Singleton)
}

pub(super) fn read(archive: &mut SparseArchive<'_>, shape: &[usize], _: &Want) -> Result<Elements, Diagnostic> {
    let (_, data) = archive.data(1)?;
    let lists: Vec<Vec<i64>> = if shape.len() == 2 && !archive.has("coords") {
        vec![archive.any_integers("row")?, archive.any_integers("col")?]
    } else {
        let all = archive.any_integers("coords")?;
        if all.len() != data.len() * shape.len() {
            let each = dimensions(shape.len());
            return Err(archive.bad(format!("expected `coords` to have {each} for each element")));
        }
        all.chunks(data.len().max(1)).map(<[i64]>::to_vec).collect()
    };
    if lists.iter().any(|l| l.len() != data.len()) {
        return Err(archive.bad("the numbers of coordinates and of elements differ"));
    }
    let mut indices = vec![0; data.len() * shape.len()];
    for (k, list) in lists.iter().enumerate() {
        let most = shape[k] as i64;
        for (e, c) in list.iter().enumerate() {
            if *c < 0 || *c >= most {
                let range = format!("0 to {}", most - 1);
                return Err(archive.bad(format!("coordinate {c} of dimension {k} is out of range: {range}")));
            }
            indices[e * shape.len() + k] = *c;
        }
    }
    Ok(Elements { indices, values: Numbers::Typed(data) })
}

/// Reads a matrix as the arrays of `coo`; `None` for other tensors, for elements that are listed several times, and for
/// faulty files, which [`read`] refuses.
pub(super) fn stored(
    archive: &mut SparseArchive<'_>,
    shape: &[usize],
    path: &Path,
) -> Result<Option<Stored>, Diagnostic> {
    let &[n, m] = shape else { return Ok(None) };
    if !["row", "col"].iter().all(|key| archive.has(key)) {
        return Ok(None);
    }
    let all = ["row", "col", "data"].map(|key| archive.array(key));
    let [rows, cols, values] = all;
    let [rows, cols, values] = [rows?, cols?, values?];
    let count = values.data().len();
    if [&rows, &cols, &values].iter().any(|list| list.shape() != [count]) {
        return Ok(None);
    }
    let wide = are_wide(shape, count);
    let [rows, cols] = [(rows, n), (cols, m)].map(|(list, size)| Indices::of(list.into_parts().1, size, wide));
    let (Some(rows), Some(cols)) = (rows, cols) else { return Ok(None) };
    Columns { rows, cols, values: values.into_parts().1 }.stored([n, m], path)
}

pub(super) fn write(archive: &mut Writer<'_>, value: &Value, places: &Places, _: &Format) -> std::io::Result<()> {
    let ndim = value.shape().len();
    let of = |d: usize| places.indices.iter().skip(d).step_by(ndim).copied();
    if ndim == 2 {
        archive.add_list("row", of(0).collect())?;
        archive.add_list("col", of(1).collect())?;
    } else {
        let all = (0..ndim).flat_map(of).collect();
        archive.add_data("coords", vec![ndim, value.data().len()], Buffer::I64(all))?;
    }
    archive.add_data("data", vec![value.data().len()], value.data().clone())?;
    match ndim {
        2 => Ok(()),
        _ => archive.add_number("_is_array", DType::Bool, Literal::Bool(true)),
    }
}

/// Writes the index arrays of a list, by level, and its elements.
pub(super) fn write_arrays(
    archive: &mut Writer<'_>,
    format: &Format,
    lists: &[Value],
    data: &Value,
) -> std::io::Result<()> {
    let order = format.order().unwrap_or_default();
    let of = |d: usize| order.iter().position(|own| *own == d).and_then(|k| lists.get(k));
    let all: Vec<&Value> = (0..order.len()).filter_map(of).collect();
    if let [row, col] = all[..] {
        archive.add_indices("row", row)?;
        archive.add_indices("col", col)?;
        return archive.add("data", data);
    }
    let numbers = |v: &&Value| (0..v.data().len()).filter_map(|k| v.data().get_int(k)).map(|c| c as i64).collect();
    let coords = all.iter().flat_map(|v| -> Vec<i64> { numbers(v) }).collect();
    archive.add_data("coords", vec![all.len(), data.data().len()], Buffer::I64(coords))?;
    archive.add("data", data)?;
    archive.add_number("_is_array", DType::Bool, Literal::Bool(true))
}
