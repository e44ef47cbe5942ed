//! Zip archives of `.npy` files: access by key, and writing one array after the other.

use crate::io::file::{file_error, open, os_error};
use crate::io::{memory, npy};
use std::io::{BufReader, Error, Read, Seek, Write};
use std::path::{Path, PathBuf};
use taffeta_ast::{Buffer, DType, Diagnostic, Literal, Value};
use zip::result::ZipError;

/// Open archive.
pub(super) struct Archive<'a> {
    path: &'a Path,
    zip: zip::ZipArchive<BufReader<std::fs::File>>,
    names: Vec<String>,
    /// Maximum number of decompressed bytes, by deflate's maximum ratio of 1032 to 1.
    most: u64,
}

impl<'a> Archive<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Archive<'a>, Diagnostic> {
        let file = open(path)?;
        let length = file.metadata().map_err(|e| os_error(path, &e))?.len();
        let zip = zip::ZipArchive::new(BufReader::new(file)).map_err(|e| zip_error(path, e))?;
        let names = zip.file_names().map(|n| n.trim_end_matches(".npy").to_string()).collect();
        Ok(Archive { path, zip, names, most: length.saturating_mul(1032) })
    }

    /// Returns the keys of the arrays.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.names.iter().any(|n| n == key)
    }

    /// Reads an array in the file's type.
    pub(super) fn array(&mut self, key: &str) -> Result<Value, Diagnostic> {
        let shown = self.shown(key);
        let (mut entry, length) = self.entry(key)?;
        let value = npy::read_from(&mut entry, Some(length), &shown)?;
        // The zip reader verifies the checksum at the end of the entry.
        match entry.read(&mut [0]) {
            Ok(0) => Ok(value),
            Ok(_) => Err(file_error("data::format", &shown, "unexpected data after the end of the array")),
            Err(e) => Err(file_error("data::format", &shown, format!("the archive is damaged ({e})"))),
        }
    }

    /// Reads a Python string without dimensions.
    pub(super) fn text(&mut self, key: &str) -> Result<String, Diagnostic> {
        let shown = self.shown(key);
        npy::read_text(&mut self.entry(key)?.0, &shown)
    }

    pub(super) fn shown(&self, key: &str) -> PathBuf {
        PathBuf::from(format!("{}:{key}", self.path.display()))
    }

    fn entry(&mut self, key: &str) -> Result<(impl Read, u64), Diagnostic> {
        let file = format!("{key}.npy");
        let member = if self.zip.index_for_name(&file).is_some() { file } else { key.to_string() };
        let entry = self.zip.by_name(&member).map_err(|e| zip_error(self.path, e))?;
        let length = entry.size().min(self.most);
        Ok((entry, length))
    }
}

fn zip_error(path: &Path, e: ZipError) -> Diagnostic {
    match e {
        ZipError::Io(e) => os_error(path, &e),
        e => file_error("data::format", path, format!("not a valid `.npz` archive ({e})")),
    }
}

/// File or memory that takes an archive.
pub(super) trait Sink: Write + Seek {}

impl<T: Write + Seek> Sink for T {}

/// Archive to be written, uncompressed like `np.savez`.
pub(super) struct Writer<'a> {
    zip: zip::ZipWriter<&'a mut dyn Sink>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut dyn Sink) -> Writer<'a> {
        Writer { zip: zip::ZipWriter::new(out) }
    }

    pub(super) fn add(&mut self, key: &str, value: &Value) -> std::io::Result<()> {
        self.start(key, value.data().len())?;
        npy::write(&mut self.zip, value)
    }

    /// Adds data of a shape, which has as many elements.
    pub(super) fn add_data(&mut self, key: &str, shape: Vec<usize>, data: Buffer) -> std::io::Result<()> {
        self.add(key, &Value::new(shape, data).ok_or_else(|| failed("shape and data disagree"))?)
    }

    /// Adds a list of integers.
    pub(super) fn add_list(&mut self, key: &str, list: Vec<i64>) -> std::io::Result<()> {
        self.add_data(key, vec![list.len()], Buffer::I64(list))
    }

    /// Adds an index array; small types are widened, since SciPy has i32 and i64 alone.
    pub(super) fn add_indices(&mut self, key: &str, array: &Value) -> std::io::Result<()> {
        match array.data() {
            Buffer::U8(v) => self.add_list(key, v.iter().map(|c| i64::from(*c)).collect()),
            Buffer::U16(v) => self.add_list(key, v.iter().map(|c| i64::from(*c)).collect()),
            _ => self.add(key, array),
        }
    }

    /// Adds a number without dimensions.
    pub(super) fn add_number(&mut self, key: &str, dtype: DType, number: Literal) -> std::io::Result<()> {
        let mut data = Buffer::zeros(dtype, 1);
        data.set(0, number);
        self.add_data(key, Vec::new(), data)
    }

    /// Adds a string as Python's `bytes`.
    pub(super) fn add_text(&mut self, key: &str, text: &str) -> std::io::Result<()> {
        self.start(key, text.len())?;
        npy::write_text(&mut self.zip, text)
    }

    /// Completes the archive.
    pub(super) fn finish(self) -> std::io::Result<()> {
        self.zip.finish()?;
        Ok(())
    }

    fn start(&mut self, key: &str, elements: usize) -> std::io::Result<()> {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .large_file(elements > 1 << 28);
        Ok(self.zip.start_file(format!("{key}.npy"), options)?)
    }
}

/// Creates the error of a writer.
pub(super) fn failed(what: impl std::fmt::Display) -> Error {
    Error::other(what.to_string())
}

/// Checks that an array of a result can be allocated.
pub(super) fn check_room(bytes: u128) -> std::io::Result<()> {
    memory::check_bytes(bytes, "the result").map_err(|d| failed(d.message))
}
