//! Declarations of the tensors in files: element type, number of dimensions and format, for readers without a parameter
//! that asks for them.

use super::file::file_error;
use super::{Want, mtx, npy, npz, source, stdin, tns};
use std::path::Path;
use taffeta_ast::format::{Format, Named};
use taffeta_ast::{DType, Diagnostic, Value};
use taffeta_structured::Stored;

/// Declaration of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Element type.
    pub dtype: DType,
    /// Number of dimensions.
    pub ndim: usize,
    /// Format in which the elements are listed; `None` for a dense file.
    pub format: Option<Format>,
}

/// Reads a tensor as its file declares it, with `sizes` where they are given. A list in no order is sorted, and
/// duplicates are summed.
///
/// # Errors
///
/// A file that is not readable, of an unknown kind, or with another number of dimensions than sizes.
pub fn read_declared(path: &Path, declared: Declared, sizes: Option<&[usize]>) -> Result<Stored, Diagnostic> {
    if super::is_stdin(path) {
        return stdin::read(|path| read_declared(path, declared, sizes));
    }
    let Declared { dtype, ndim, format } = declared;
    if let Some(sizes) = sizes.filter(|sizes| sizes.len() != ndim) {
        let expected = super::dimensions(ndim);
        return Err(file_error("data::rank", path, format!("expected sizes of {expected}, found {}", sizes.len())));
    }
    let known = sizes.map_or_else(Vec::new, |sizes| sizes.iter().copied().map(Some).collect());
    let fill = format.as_ref().and_then(|f| f.fill);
    let want = Want { sizes: known, fill, ..Want::new("IN", dtype, ndim) };
    let from = super::Source::File { path: path.to_path_buf(), part: None };
    let failed = |why: taffeta_structured::Unpackable| file_error("data::storage", path, why);
    let arrays = match source::extension(path).as_str() {
        "npz" => npz::read_arrays(path)?,
        "mtx" | "mtx.gz" => mtx::read_list(path)?,
        _ => None,
    };
    let stored = match format {
        _ if let Some(stored) = arrays => stored,
        Some(format) => {
            let value = super::read_stored(&from, &want)?;
            let Some(places) = value.places() else {
                return Err(file_error("data::format", path, "the file lists no elements"));
            };
            Stored::pack(value.shape(), &format, &places.indices, value.data()).map_err(failed)?
        }
        None => {
            let (shape, data) = super::read(&from, &want)?.into_parts();
            let vector = Value::new(vec![data.len()], data);
            Stored::of_arrays(shape, Format::dense(ndim), vector.into_iter().collect(), Vec::new())
        }
    };
    match sizes {
        Some(sizes) if sizes != stored.shape() => {
            let [given, own] = [sizes, stored.shape()].map(super::shape_text);
            Err(file_error("input::shape", path, format!("expected shape {given}, found {own}")))
        }
        _ => Ok(stored),
    }
}

/// Reads the declaration of a file.
///
/// # Errors
///
/// A file that is not readable, or of an unknown kind.
pub fn declared(path: &Path) -> Result<Declared, Diagnostic> {
    if super::is_stdin(path) {
        return stdin::read(declared);
    }
    let listed = |dtype: DType, ndim: usize| {
        let format = Named::Coo.format(ndim);
        let format = format.ok_or_else(|| file_error("data::format", path, "the tensor is a scalar"))?;
        Ok(Declared { dtype, ndim, format: Some(format) })
    };
    match source::extension(path).as_str() {
        "mtx" | "mtx.gz" => match mtx::declared(path)? {
            (dtype, true) => listed(dtype, 2),
            (dtype, false) => Ok(Declared { dtype, ndim: 2, format: None }),
        },
        "tns" | "tns.gz" => listed(tns::dtype(path)?, tns::dimensions(path)?),
        "npy" => npy::declared(path).map(|(dtype, ndim)| Declared { dtype, ndim, format: None }),
        "npz" => match npz::declared(path)? {
            Some((dtype, ndim, format)) => {
                Ok(Declared { dtype, ndim, format: Some(format).filter(|format| !format.is_dense()) })
            }
            None => Err(file_error("data::format", path, "the archive has no sparse tensor")
                .help("convert one of its arrays from a `.npy` file")),
        },
        _ => Err(file_error("data::format", path, "expected a file that ends in .mtx, .tns, .tns.gz, .npz or .npy")),
    }
}
