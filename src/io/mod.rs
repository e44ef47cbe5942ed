//! Readers and writers of tensors, one file for each format.
//!
//! Converts the text after `--in NAME=` to a [`Value`] of the parameter's type, and results to files. Accesses the file
//! system only, and is independent of the language. [`source::Source`] is the parsed text, and [`read`] selects the
//! reader. A reader takes a [`Want`] (the parameter's name, type and number of dimensions) and returns a value of
//! exactly that type and rank, or a [`Diagnostic`] that names the file, and the line in text formats. No input makes a
//! reader panic, or allocate more than the input's own size warrants ([`memory`]).

pub mod convert;
pub mod edges;
mod elements;
mod fitting;
pub mod generate;
mod levels;
pub mod literal;
pub mod memory;
pub mod mesh;
pub mod mtx;
pub mod npy;
pub mod npz;
pub mod output;
pub mod picture;
pub mod scipy;
pub mod source;
mod stdin;
pub mod table;
pub mod tns;

pub use generate::Generator;
pub use source::Source;

use std::io::Read;
use std::path::Path;
use taffeta_ast::format::Format;
use taffeta_ast::{DType, Diagnostic, Literal, Value};

/// Request to a reader: the parameter that the tensor is read for.
#[derive(Clone, Debug)]
pub struct Want {
    /// Parameter's name, for messages.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Number of dimensions.
    pub ndim: usize,
    /// Shape, if sizes known beforehand make the tensor empty.
    pub empty: Option<Vec<usize>>,
    /// Sizes known beforehand, at most one for each dimension.
    pub sizes: Vec<Option<usize>>,
    /// Fill value of a structured parameter.
    pub fill: Option<Literal>,
    /// Format of a structured parameter.
    pub format: Option<Format>,
}

impl Want {
    /// Creates a request for a dense tensor without known sizes.
    pub fn new(name: impl Into<String>, dtype: DType, ndim: usize) -> Want {
        Want { name: name.into(), dtype, ndim, empty: None, sizes: Vec::new(), fill: None, format: None }
    }
}

/// Reads a file or a literal. Generators need a shape first: see [`Generator::generate`].
pub fn read(source: &Source, want: &Want) -> Result<Value, Diagnostic> {
    let value = match source {
        Source::Literal(text) => literal::read(text, want)?,
        Source::File { path, part } => read_file(path, part.as_deref(), want)?,
        Source::Generator(g) => {
            return Err(Diagnostic::new("input::shape", format!("`{}` needs a shape before it can be made", g.text())));
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
        "npz" => scipy::read(path, want),
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
        "npz" if part.is_some() => npz::read(path, part, want),
        "npz" => match scipy::read(path, want)? {
            Some(sparse) => elements::dense(&sparse, path),
            None => npz::read(path, None, want),
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

/// Formats a number of dimensions: `1 dimension`, `2 dimensions`.
pub fn dimensions(n: usize) -> String {
    match n {
        0 => "no dimensions (a scalar)".to_string(),
        1 => "1 dimension".to_string(),
        n => format!("{n} dimensions"),
    }
}

/// Formats a shape: `[3, 4]`; `[]` for a scalar.
pub fn shape_text(shape: &[usize]) -> String {
    format!("[{}]", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
}

/// Creates the diagnostic for a fault of a whole file.
pub(crate) fn file_error(code: &'static str, path: &Path, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(code, format!("{}: {what}", path.display()))
}

/// Creates the diagnostic for a fault on one line of a text file (counted from 1).
pub(crate) fn line_error(path: &Path, line: usize, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new("data::format", format!("{}:{line}: {what}", path.display()))
}

/// Parses a float in a text file. Numbers beyond the range of `f64` are refused: infinity is spelled out.
pub(crate) fn float(text: &str) -> Option<f64> {
    let v: f64 = text.parse().ok()?;
    (v.is_finite() || !text.contains(|c: char| c.is_ascii_digit())).then_some(v)
}

/// Converts the operating system's error for a file to a diagnostic.
pub(crate) fn os_error(path: &Path, e: &std::io::Error) -> Diagnostic {
    use std::io::ErrorKind;
    match e.kind() {
        ErrorKind::NotFound => file_error("data::missing_file", path, "there is no such file")
            .help("check the path; relative paths start from the current directory"),
        ErrorKind::PermissionDenied => file_error("data::unreadable", path, "no permission to read this file"),
        ErrorKind::IsADirectory => file_error("data::unreadable", path, "this is a directory, not a file"),
        ErrorKind::UnexpectedEof => truncated(path),
        _ => file_error("data::unreadable", path, e),
    }
}

/// Creates the diagnostic for a truncated file.
pub(crate) fn truncated(path: &Path) -> Diagnostic {
    file_error("data::truncated", path, "the file ends before its data does")
        .help("the file is damaged or was not written to its end; make it again")
}

/// Reads a whole text file; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String, Diagnostic> {
    // Maximum bytes from pipes and devices, which have no length, and some of which have no end.
    const WITHOUT_LENGTH: u64 = 64_000_000;
    if is_stdin(path) {
        return text(path, stdin::bytes()?.to_vec());
    }
    let file = open(path)?;
    if source::extension(path).ends_with(".gz") {
        return text(path, unpacked(file, path)?);
    }
    let metadata = file.metadata().map_err(|e| os_error(path, &e))?;
    let limit = if metadata.is_file() { metadata.len().max(WITHOUT_LENGTH) } else { WITHOUT_LENGTH };
    memory::check_bytes(u128::from(metadata.len()), &path.display().to_string())?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| os_error(path, &e))?;
    if bytes.len() as u64 > limit {
        return Err(file_error(
            "data::too_large",
            path,
            "more than 64 MB come from something that is not a regular file",
        ));
    }
    text(path, bytes)
}

/// Decompresses a file in pieces, checking memory for each.
fn unpacked(file: std::fs::File, path: &Path) -> Result<Vec<u8>, Diagnostic> {
    const PIECE: u64 = 16 << 20;
    let mut reader = flate2::read::MultiGzDecoder::new(std::io::BufReader::new(file));
    let mut all = Vec::new();
    loop {
        // The vector grows to twice its size.
        memory::check_bytes(2 * (all.len() as u128 + u128::from(PIECE)), &path.display().to_string())?;
        if reader.by_ref().take(PIECE).read_to_end(&mut all).map_err(|e| broken(path, &e))? == 0 {
            return Ok(all);
        }
    }
}

/// Converts the error of a possibly compressed file to a diagnostic.
fn broken(path: &Path, e: &std::io::Error) -> Diagnostic {
    match e.kind() {
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData => {
            file_error("data::format", path, format!("this is not an intact compressed file ({e})"))
        }
        _ => os_error(path, e),
    }
}

/// Returns whether a path denotes standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        line_error(path, line, "this is not a text file (not UTF-8)")
    })
}

/// Opens a file for reading. Directories are refused here, where the reason is known.
pub(crate) fn open(path: &Path) -> Result<std::fs::File, Diagnostic> {
    let file = std::fs::File::open(path).map_err(|e| os_error(path, &e))?;
    if file.metadata().map_err(|e| os_error(path, &e))?.is_dir() {
        return Err(file_error("data::unreadable", path, "this is a directory, not a file"));
    }
    Ok(file)
}
