//! `.npz`: zip archives of `.npy` files, one for each key. An archive holds dense arrays ([`dense`]), or one sparse
//! tensor in the layouts of `scipy.sparse.save_npz` or Taffeta's own. `LAYOUTS` has a row for each layout of sparse
//! tensors, and the layout's file documents its arrays, beside those of every layout:
//!
//! | array | contents |
//! |---|---|
//! | `format` | name of the layout |
//! | `shape` | sizes of the dimensions |
//! | `data` | elements |
//!
//! Elements may be unordered and repeated.

mod archive;
mod bsr;
mod compressed;
mod coo;
pub mod dense;
mod dia;
mod levels;
mod regions;
mod sparse;

use super::elements::{Elements, check_sizes};
use super::file::file_error;
use super::want::Want;
use archive::{Writer, failed};
use compressed::{is_csc, is_csr, read_csc, read_csr, write_csc, write_csr};
use sparse::SparseArchive;
use std::io::{Seek, Write};
use std::path::Path;
use taffeta_ast::format::{Format, Named, presets};
use taffeta_ast::value::Places;
use taffeta_ast::{DType, Diagnostic, Literal, Value};
use taffeta_structured::Stored;

/// Layout of a sparse tensor in an archive.
struct Layout {
    /// Text of the array `format`.
    name: &'static str,
    /// Whether the layout stores a fill. The fill of the others is 0.
    fill: bool,
    /// Test whether tensors of a format and shape are written in this layout.
    takes: fn(&Format, &[usize]) -> bool,
    /// Reader of the elements of a tensor of a shape.
    read: fn(&mut SparseArchive<'_>, &[usize], &Want) -> Result<Elements, Diagnostic>,
    /// Writer of all arrays but `format`, `shape` and `fill`.
    write: fn(&mut Writer<'_>, &Value, &Places, &Format) -> std::io::Result<()>,
}

/// Layouts, of which the first that takes a tensor is written. Taffeta's own takes all.
static LAYOUTS: [Layout; 6] = [
    Layout { name: "dia", fill: false, takes: dia::takes, read: dia::read, write: dia::write },
    Layout { name: "bsr", fill: false, takes: bsr::takes, read: bsr::read, write: bsr::write },
    Layout { name: "csr", fill: false, takes: is_csr, read: read_csr, write: write_csr },
    Layout { name: "csc", fill: false, takes: is_csc, read: read_csc, write: write_csc },
    Layout { name: "coo", fill: false, takes: coo::takes, read: coo::read, write: coo::write },
    Layout { name: "taffeta", fill: true, takes: levels::takes, read: levels::read, write: levels::write },
];

/// Reads a sparse tensor; `None` if the archive holds other arrays.
pub fn read(path: &Path, want: &Want) -> Result<Option<Value>, Diagnostic> {
    let Some(mut archive) = SparseArchive::open(path)? else { return Ok(None) };
    let Some(layout) = LAYOUTS.iter().find(|layout| layout.name == archive.layout) else {
        let names = LAYOUTS.each_ref().map(|layout| layout.name).join(", ");
        let what = format!("expected `format` to be one of {names}, found `{}`", archive.layout);
        return Err(file_error("data::unsupported", path, what));
    };
    let shape: Vec<usize> = archive.integers("shape", i64::MAX)?.into_iter().map(|n| n as usize).collect();
    check_sizes(&shape, path)?;
    let elements = (layout.read)(&mut archive, &shape, want)?;
    if layout.fill {
        archive.check_fill(want)?;
    }
    elements.tensor(shape, want, path).map(Some)
}

/// Reads a tensor as the arrays of its levels; `None` for archives whose elements must be put in order or summed.
pub(super) fn read_arrays(path: &Path) -> Result<Option<Stored>, Diagnostic> {
    let Some(mut archive) = SparseArchive::open(path)? else { return Ok(None) };
    let shape: Vec<usize> = archive.integers("shape", i64::MAX)?.into_iter().map(|n| n as usize).collect();
    check_sizes(&shape, path)?;
    match archive.layout.as_str() {
        "taffeta" if archive.has("levels") => levels::stored(&mut archive, &shape).map(Some),
        "csr" => compressed::stored(&mut archive, &shape, false),
        "csc" => compressed::stored(&mut archive, &shape, true),
        "coo" => coo::stored(&mut archive, &shape, path),
        _ => Ok(None),
    }
}

/// Returns the element type, the number of dimensions and the format of a sparse tensor; `None` for other archives.
pub(super) fn declared(path: &Path) -> Result<Option<(DType, usize, Format)>, Diagnostic> {
    let Some(mut archive) = SparseArchive::open(path)? else { return Ok(None) };
    let ndim = archive.integers("shape", i64::MAX)?.len();
    let data = archive.array("data")?;
    let named = |named: Named| named.format(ndim);
    let format = match (archive.layout.as_str(), data.shape()) {
        ("csr", _) => named(Named::Csr),
        ("csc", _) => named(Named::Csc),
        ("dia", _) => named(Named::Dia),
        ("bsr", [_, r, c]) => Some(presets::bcsr(*r as i64, *c as i64)),
        ("taffeta", _) if archive.has("levels") => Some(levels::format(&mut archive, ndim)?),
        _ => None,
    };
    // Other layouts are lists of coordinates.
    let format = format.or_else(|| named(Named::Coo)).ok_or_else(|| archive.bad("the tensor is a scalar"))?;
    Ok(Some((data.dtype(), ndim, format)))
}

/// Writes a sparse tensor in the layout of its format; coordinates if it has none.
pub fn write(mut out: impl Write + Seek, value: &Value, format: Option<&Format>) -> std::io::Result<()> {
    let places = value.places().ok_or_else(|| failed("the tensor is dense"))?;
    let shape = value.shape();
    let format = format.cloned().or_else(|| Named::Coo.format(shape.len()));
    let format = Format { fill: Some(places.fill), ..format.ok_or_else(|| failed("the tensor is a scalar"))? };
    let zero = places.fill == Literal::zero(value.dtype());
    let layout = LAYOUTS.iter().find(|layout| (layout.fill || zero) && (layout.takes)(&format, shape));
    let layout = layout.unwrap_or_else(|| unreachable!("Taffeta's own layout takes all tensors"));
    let mut archive = Writer::new(&mut out);
    archive.add_text("format", layout.name)?;
    archive.add_list("shape", shape.iter().map(|n| *n as i64).collect())?;
    (layout.write)(&mut archive, value, places, &format)?;
    if layout.fill {
        archive.add_number("fill", value.dtype(), places.fill)?;
    }
    archive.finish()
}

/// Returns whether a tensor is written from the arrays of its levels.
pub(super) fn takes_arrays(stored: &Stored) -> bool {
    !matches!(layout_of(stored).name, "dia" | "bsr")
}

/// Returns the layout of a tensor.
fn layout_of(stored: &Stored) -> &'static Layout {
    let format = stored.format();
    let zero = format.fill.is_none_or(|fill| fill == Literal::zero(stored.dtype()));
    let layout = LAYOUTS.iter().find(|layout| (layout.fill || zero) && (layout.takes)(format, stored.shape()));
    layout.unwrap_or_else(|| unreachable!("Taffeta's own layout takes all tensors"))
}

/// Writes a tensor from the arrays of its levels, in the layout of its format.
pub(super) fn write_arrays(mut out: impl Write + Seek, stored: &Stored) -> std::io::Result<()> {
    let layout = layout_of(stored);
    let mut archive = Writer::new(&mut out);
    archive.add_text("format", layout.name)?;
    archive.add_list("shape", stored.shape().iter().map(|n| *n as i64).collect())?;
    match (layout.name, stored.arrays()) {
        ("csr" | "csc", [pos, crd, data]) => {
            archive.add_indices("indices", crd)?;
            archive.add_indices("indptr", pos)?;
            archive.add("data", data)?;
        }
        ("coo", [_, lists @ .., data]) => coo::write_arrays(&mut archive, stored.format(), lists, data)?,
        _ => levels::write_arrays(&mut archive, stored)?,
    }
    if layout.fill {
        let fill = stored.format().fill.unwrap_or(Literal::zero(stored.dtype()));
        archive.add_number("fill", stored.dtype(), fill)?;
    }
    archive.finish()
}

#[cfg(test)]
mod tests;
