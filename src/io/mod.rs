//! Readers and writers of tensors, one file or folder for each format.
//!
//! Converts the text after `--in NAME=` to a [`Value`] of the parameter's type, and results to files. Accesses the file
//! system only, and is independent of the language. [`source::Source`] is the parsed text, and [`read`] selects the
//! reader. A reader takes a [`Want`] (the parameter's name, type and number of dimensions) and returns a value of
//! exactly that type and rank, or a [`Diagnostic`] that names the file, and the line in text formats. No input makes a
//! reader panic, or allocate more than the input's own size warrants ([`memory`]).

mod columns;
pub mod convert;
pub mod declared;
pub mod edges;
mod elements;
pub(crate) mod file;
mod fitting;
pub mod generate;
pub mod literal;
pub mod memory;
pub mod mesh;
pub mod mtx;
pub mod npy;
pub mod npz;
pub mod output;
pub mod picture;
pub mod source;
mod stdin;
pub mod table;
pub mod tns;
mod want;

pub use file::{bytes_read, is_stdin, read_text};
pub use generate::Generator;
pub use source::Source;
pub use want::{Want, dimensions, shape_text};

use file::file_error;
use std::path::Path;
use taffeta_ast::{Diagnostic, Value};

/// Reads a file or a literal. Generators need a shape first: see [`Generator::generate`].
pub fn read(source: &Source, want: &Want) -> Result<Value, Diagnostic> {
    let value = match source {
        Source::Literal(text) => literal::read(text, want)?,
        Source::File { path, part } => read_file(path, part.as_deref(), want)?,
        Source::Generator(g) => {
            return Err(Diagnostic::new("input::shape", format!("cannot generate `{}` without a shape", g.text())));
        }
    };
    check_rank(&value, source, want)?;
    Ok(value)
}

/// Reads a file or a literal for a structured parameter: listed elements as sparse, other files as dense.
pub fn read_stored(source: &Source, want: &Want) -> Result<Value, Diagnostic> {
    let path = match source {
        Source::File { path, part: None } => path,
        Source::File { path, part: Some(part) } if lists_edges(path, part, want) => return edges::read(path, want),
        _ => return read(source, want),
    };
    let listed = match is_stdin(path) {
        true => stdin::read(|path| read_listed(path, want))?,
        false => read_listed(path, want)?,
    };
    let Some(value) = listed else { return read(source, want) };
    check_rank(&value, source, want)?;
    Ok(value)
}

/// Reads the elements of a file that lists them; `None` for other files.
fn read_listed(path: &Path, want: &Want) -> Result<Option<Value>, Diagnostic> {
    match source::extension(path).as_str() {
        "csv" | "tsv" | "txt" if want.ndim == 2 => Err(edges::ambiguous(path, want)),
        "mtx" | "mtx.gz" => mtx::read_sparse(path, want).map(Some),
        "npz" => npz::read(path, want),
        "tns" | "tns.gz" => tns::read(path, want).map(Some),
        _ => Ok(None),
    }
}

/// Returns whether a file does not specify the shape of its tensor, so that sizes from other inputs are solved first.
pub fn without_shape(source: &Source) -> bool {
    let Source::File { path, part } = source else { return false };
    let extension = match is_stdin(path) {
        true => stdin::file().map(source::extension).unwrap_or_default(),
        false => source::extension(path),
    };
    match extension.as_str() {
        "tns" | "tns.gz" => true,
        "csv" | "tsv" | "txt" => part.as_deref() == Some(edges::PART),
        _ => false,
    }
}

/// Returns whether a part of a table is an edge list: a matrix must be requested.
fn lists_edges(path: &Path, part: &str, want: &Want) -> bool {
    let table = || matches!(source::extension(path).as_str(), "csv" | "tsv" | "txt");
    part == edges::PART && want.ndim == 2 && table()
}

fn read_file(path: &Path, part: Option<&str>, want: &Want) -> Result<Value, Diagnostic> {
    if is_stdin(path) {
        return stdin::read(|path| read_file(path, part, want));
    }
    match source::extension(path).as_str() {
        "npy" => npy::read(path, want),
        "npz" if part.is_some() => npz::dense::read(path, part, want),
        "npz" => match npz::read(path, want)? {
            Some(sparse) => elements::dense(&sparse, path),
            None => npz::dense::read(path, None, want),
        },
        "csv" | "tsv" | "txt" => match part {
            Some(part) if lists_edges(path, part, want) => elements::dense(&edges::read(path, want)?, path),
            _ => table::read(path, part, want),
        },
        "obj" | "off" => mesh::read(path, part, want),
        "mtx" | "mtx.gz" => mtx::read(path, part, want),
        "png" => picture::read(path, want),
        "tns" | "tns.gz" => elements::dense(&tns::read(path, want)?, path),
        "bed" => Err(file_error("data::unsupported", path, "intervals are not supported yet")),
        other => Err(source::unknown_format(path, other)),
    }
}

fn check_rank(value: &Value, source: &Source, want: &Want) -> Result<(), Diagnostic> {
    let found = value.shape().len();
    if found == want.ndim {
        return Ok(());
    }
    Err(Diagnostic::new(
        "data::rank",
        format!(
            "parameter `{}` has {}, but {source} has {} (its shape is {})",
            want.name,
            dimensions(want.ndim),
            dimensions(found),
            shape_text(value.shape())
        ),
    ))
}
