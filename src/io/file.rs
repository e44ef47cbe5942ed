//! Text files and their errors: plain or compressed, and standard input.

use super::{memory, source, stdin};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use taffeta_ast::Diagnostic;

/// Bytes of text that this process has read.
static READ: AtomicU64 = AtomicU64::new(0);

/// File whose bytes are counted as they are read.
pub(crate) struct Counted(std::fs::File);

impl Counted {
    pub(crate) fn open(path: &Path) -> Result<Counted, Diagnostic> {
        open(path).map(Counted)
    }
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read(into)?;
        READ.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Returns the number of bytes of text files, as they are on disk, that this process has read so far, for displays of
/// progress.
pub fn bytes_read() -> u64 {
    READ.load(Ordering::Relaxed)
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
        ErrorKind::IsADirectory => file_error("data::unreadable", path, "expected a file, found a directory"),
        ErrorKind::UnexpectedEof => truncated(path),
        _ => file_error("data::unreadable", path, e),
    }
}

/// Creates the diagnostic for a truncated file.
pub(crate) fn truncated(path: &Path) -> Diagnostic {
    file_error("data::truncated", path, "the file ends before its data does")
        .help("the file is damaged or incomplete; write it again")
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
    Counted(file).take(limit + 1).read_to_end(&mut bytes).map_err(|e| os_error(path, &e))?;
    if bytes.len() as u64 > limit {
        return Err(file_error("data::too_large", path, "cannot read more than 64 MB from a pipe or a device"));
    }
    text(path, bytes)
}

/// Opens a plain or compressed file, or standard input, with the number of its bytes if it is known.
pub fn reader(path: &Path) -> Result<(Box<dyn Read + Send>, Option<u64>), Diagnostic> {
    if is_stdin(path) {
        let bytes = stdin::bytes()?.to_vec();
        let length = bytes.len() as u64;
        return Ok((Box::new(std::io::Cursor::new(bytes)), Some(length)));
    }
    let file = open(path)?;
    if source::extension(path).ends_with(".gz") {
        return Ok((Box::new(flate2::read::MultiGzDecoder::new(std::io::BufReader::new(Counted(file)))), None));
    }
    let metadata = file.metadata().map_err(|e| os_error(path, &e))?;
    Ok((Box::new(Counted(file)), metadata.is_file().then_some(metadata.len())))
}

/// Decompresses a file in pieces, checking memory for each.
fn unpacked(file: std::fs::File, path: &Path) -> Result<Vec<u8>, Diagnostic> {
    const PIECE: u64 = 16 << 20;
    let mut reader = flate2::read::MultiGzDecoder::new(std::io::BufReader::new(Counted(file)));
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
pub(crate) fn broken(path: &Path, e: &std::io::Error) -> Diagnostic {
    match e.kind() {
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData => {
            file_error("data::format", path, format!("not a valid compressed file ({e})"))
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
        line_error(path, line, "not a text file (not valid UTF-8)")
    })
}

/// Opens a file for reading. Directories are refused here, where the reason is known.
pub(crate) fn open(path: &Path) -> Result<std::fs::File, Diagnostic> {
    let file = std::fs::File::open(path).map_err(|e| os_error(path, &e))?;
    if file.metadata().map_err(|e| os_error(path, &e))?.is_dir() {
        return Err(file_error("data::unreadable", path, "expected a file, found a directory"));
    }
    Ok(file)
}
