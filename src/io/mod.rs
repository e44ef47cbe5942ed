//! Readers and writers of tensors, one file for each format.
//!
//! *Does*: turns what a user writes after `--in NAME=` into a [`Value`] of the parameter's type, and results into
//! files. *May touch*: the file system; nothing of the language. *Design*: [`source::Source`] is the parsed text;
//! [`read`] picks the reader. A reader takes a [`Want`] (the parameter's name, type and number of dimensions) and gives
//! a value of exactly that type and rank, or a [`Diagnostic`] that names the file, and the line where the format has
//! lines. No input makes a reader panic, and none makes it allocate more than the input's own size warrants
//! ([`memory`]).

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

/// What a reader is asked for: the parameter that the tensor is meant for.
#[derive(Clone, Debug)]
pub struct Want {
    /// The parameter's name, for messages.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// Number of dimensions.
    pub ndim: usize,
    /// The shape, where it is known to have no elements before anything is read.
    pub empty: Option<Vec<usize>>,
    /// Each size that is known before this tensor is read; no more than there are dimensions.
    pub sizes: Vec<Option<usize>>,
    /// Of a structured parameter, the value of what is not stored.
    pub fill: Option<Literal>,
    /// Of a structured parameter, how it is stored.
    pub format: Option<Format>,
}

impl Want {
    /// A dense tensor of which no size is known.
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

/// Reads a file or a literal for a structured parameter: of a file that lists elements, these; of a dense one, all.
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

/// The elements of a file that lists them.
fn read_listed(path: &Path, want: &Want) -> Result<Option<Value>, Diagnostic> {
    match source::extension(path).as_str() {
        "csv" | "tsv" | "txt" if want.ndim == 2 => Err(edges::ambiguous(path, want)),
        "mtx" | "mtx.gz" => mtx::read_sparse(path, want).map(Some),
        "npz" => scipy::read(path, want),
        "tns" | "tns.gz" => tns::read(path, want).map(Some),
        _ => Ok(None),
    }
}

/// Whether a file does not say how large its tensor is, so that the sizes that other inputs have are wanted first.
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

/// Whether a part of a file is its edges: of a table, where a matrix is wanted.
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

/// `no dimension`, `1 dimension`, `2 dimensions`.
pub fn dimensions(n: usize) -> String {
    match n {
        0 => "no dimensions (a scalar)".to_string(),
        1 => "1 dimension".to_string(),
        n => format!("{n} dimensions"),
    }
}

/// `[3, 4]`; `[]` for a scalar.
pub fn shape_text(shape: &[usize]) -> String {
    format!("[{}]", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
}

/// A problem with a file as a whole.
pub(crate) fn file_error(code: &'static str, path: &Path, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(code, format!("{}: {what}", path.display()))
}

/// A problem on one line of a text file (counted from 1).
pub(crate) fn line_error(path: &Path, line: usize, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new("data::format", format!("{}:{line}: {what}", path.display()))
}

/// A float in a text file. One beyond the range of `f64` is refused: infinity is spelled.
pub(crate) fn float(text: &str) -> Option<f64> {
    let v: f64 = text.parse().ok()?;
    (v.is_finite() || !text.contains(|c: char| c.is_ascii_digit())).then_some(v)
}

/// What the operating system said about a file.
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

/// A file that ends too early.
pub(crate) fn truncated(path: &Path) -> Diagnostic {
    file_error("data::truncated", path, "the file ends before its data does")
        .help("the file is damaged or was not written to its end; make it again")
}

/// A text file as a whole; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String, Diagnostic> {
    // Pipes and devices have no length, and some have no end.
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

/// What a compressed file holds, piece by piece: memory is asked for as it comes.
fn unpacked(file: std::fs::File, path: &Path) -> Result<Vec<u8>, Diagnostic> {
    const PIECE: u64 = 16 << 20;
    let mut reader = flate2::read::MultiGzDecoder::new(std::io::BufReader::new(file));
    let mut all = Vec::new();
    loop {
        // What it grows to is twice as much.
        memory::check_bytes(2 * (all.len() as u128 + u128::from(PIECE)), &path.display().to_string())?;
        if reader.by_ref().take(PIECE).read_to_end(&mut all).map_err(|e| broken(path, &e))? == 0 {
            return Ok(all);
        }
    }
}

/// What went wrong with a file that may be compressed.
fn broken(path: &Path, e: &std::io::Error) -> Diagnostic {
    match e.kind() {
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData => {
            file_error("data::format", path, format!("this is not an intact compressed file ({e})"))
        }
        _ => os_error(path, e),
    }
}

/// Whether a path stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        line_error(path, line, "this is not a text file (not UTF-8)")
    })
}

/// Opens a file for reading; a directory is refused here, where the reason is still known.
pub(crate) fn open(path: &Path) -> Result<std::fs::File, Diagnostic> {
    let file = std::fs::File::open(path).map_err(|e| os_error(path, &e))?;
    if file.metadata().map_err(|e| os_error(path, &e))?.is_dir() {
        return Err(file_error("data::unreadable", path, "this is a directory, not a file"));
    }
    Ok(file)
}
