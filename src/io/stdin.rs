//! Standard input, denoted by `-` wherever a file is read. It can be read only once, so its contents are kept for
//! repeated use.
//!
//! The format of a file follows from its extension. Standard input has none: its first bytes determine the format, and
//! its contents are written to a temporary file with that extension for the reader.

use super::memory;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use taffeta_ast::Diagnostic;
use taffeta_codegen::temporary::Folder;

/// Name in messages.
pub(super) const NAME: &str = "standard input";

/// Returns the whole contents.
pub(super) fn bytes() -> Result<&'static [u8], Diagnostic> {
    static BYTES: OnceLock<Result<Vec<u8>, Diagnostic>> = OnceLock::new();
    let read = || {
        // Size of the pieces read, so that input that exceeds memory is refused in time.
        const PIECE: u64 = 16 << 20;
        let mut all = Vec::new();
        let mut input = std::io::stdin().lock();
        loop {
            memory::check_bytes(all.len() as u128 + u128::from(PIECE), NAME)?;
            match input.by_ref().take(PIECE).read_to_end(&mut all) {
                Ok(0) => return Ok(all),
                Ok(_) => {}
                Err(e) => return Err(Diagnostic::new("data::unreadable", format!("{NAME}: {e}"))),
            }
        }
    };
    BYTES.get_or_init(read).as_deref().map_err(Clone::clone)
}

/// Reads standard input as a file. Diagnostics name standard input, since the user does not know the temporary file.
pub(super) fn read<T>(reader: impl FnOnce(&Path) -> Result<T, Diagnostic>) -> Result<T, Diagnostic> {
    let path = file()?;
    reader(path).map_err(|d| {
        let named = |text: String| text.replace(&path.display().to_string(), NAME);
        Diagnostic {
            message: named(d.message),
            notes: d.notes.into_iter().map(named).collect(),
            help: d.help.map(named),
            ..d
        }
    })
}

/// Returns a temporary file with the contents, which lives as long as the process.
pub(super) fn file() -> Result<&'static Path, Diagnostic> {
    static FILE: OnceLock<Result<(Folder, PathBuf), Diagnostic>> = OnceLock::new();
    let lay = || {
        let bytes = bytes()?;
        let failed = |e: std::io::Error| Diagnostic::new("data::unreadable", format!("{NAME}: {e}"));
        let dir = Folder::new("taffeta-input-").map_err(failed)?;
        let path = dir.path().join(format!("standard-input.{}", extension(bytes)));
        std::fs::write(&path, bytes).map_err(failed)?;
        Ok((dir, path))
    };
    FILE.get_or_init(lay).as_ref().map(|(_, path)| path.as_path()).map_err(Clone::clone)
}

/// First bytes of a Matrix Market file.
const MATRIX_MARKET: &[u8] = b"%%MatrixMarket";

/// Determines the extension of the format by the first bytes.
fn extension(bytes: &[u8]) -> &'static str {
    let first_line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    match bytes {
        b if b.starts_with(b"\x93NUMPY") => "npy",
        b if b.starts_with(b"PK\x03\x04") => "npz",
        b if b.starts_with(b"\x89PNG") => "png",
        b if b.starts_with(MATRIX_MARKET) => "mtx",
        b if b.starts_with(b"\x1f\x8b") => {
            let mut first = Vec::new();
            let mut unpacked = flate2::read::MultiGzDecoder::new(b).take(MATRIX_MARKET.len() as u64);
            match unpacked.read_to_end(&mut first) {
                Ok(_) if first == MATRIX_MARKET => "mtx.gz",
                _ => "tns.gz",
            }
        }
        b if b.starts_with(b"OFF") => "off",
        b if b.starts_with(b"v ") || b.starts_with(b"# ") && b.windows(3).any(|w| w == b"\nv ") => "obj",
        _ if first_line.contains(&b',') => "csv",
        _ if first_line.contains(&b'\t') => "tsv",
        _ => "txt",
    }
}

#[cfg(test)]
mod tests {
    use super::extension;

    #[test]
    fn formats_are_detected_by_their_first_bytes() {
        for (bytes, expected) in [
            (&b"\x93NUMPY\x01"[..], "npy"),
            (b"PK\x03\x04", "npz"),
            (b"%%MatrixMarket matrix", "mtx"),
            (b"\x1f\x8b\x08", "tns.gz"),
            (b"OFF\n3 1 0", "off"),
            (b"v 1 2 3\n", "obj"),
            (b"# a mesh\nv 1 2 3\n", "obj"),
            (b"# a table\n1 2 3\n", "txt"),
            (b"a,b\n1,2", "csv"),
            (b"1\t2\n", "tsv"),
            (b"1 2\n", "txt"),
            (b"", "txt"),
        ] {
            assert_eq!(extension(bytes), expected, "{bytes:?}");
        }
    }
}
