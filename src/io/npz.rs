//! NumPy's `.npz`: a zip archive of `.npy` files, one for each key. [`super::scipy`] reads archives of sparse tensors.

use super::file::{file_error, os_error};
use super::want::Want;
use super::{convert, npy};
use std::io::{BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use taffeta_ast::{Diagnostic, Value};
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
        let file = super::file::open(path)?;
        let length = file.metadata().map_err(|e| os_error(path, &e))?.len();
        let zip = zip::ZipArchive::new(BufReader::new(file)).map_err(|e| zip_error(path, e))?;
        let names = zip.file_names().map(|n| n.trim_end_matches(".npy").to_string()).collect();
        Ok(Archive { path, zip, names, most: length.saturating_mul(1032) })
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

/// Reads the array `key`; without a key the only array, or the one with the parameter's name.
pub fn read(path: &Path, key: Option<&str>, want: &Want) -> Result<Value, Diagnostic> {
    let mut archive = Archive::open(path)?;
    let names = &archive.names;
    let key = match key {
        Some(key) => key.to_string(),
        None if names.len() == 1 => names[0].clone(),
        None if names.contains(&want.name) => want.name.clone(),
        None => {
            return Err(file_error(
                "input::part",
                path,
                format!("expected the name of an array: the archive has {}", list(names)),
            )
            .help(format!("write `{}:KEY`", path.display())));
        }
    };
    if !names.contains(&key) {
        let d = file_error("input::part", path, format!("there is no array `{key}`: the archive has {}", list(names)));
        return Err(match taffeta_ast::spelling::nearest(&key, names.iter().map(String::as_str)) {
            Some(near) => d.help(format!("did you mean `{}:{near}`?", path.display())),
            None => d,
        });
    }
    let value = archive.array(&key)?;
    convert::to(value, want, &archive.shown(&key).display().to_string())
}

/// Writes an archive of one array, uncompressed like `np.savez`.
pub fn write(out: impl Write + Seek, key: &str, value: &Value) -> std::io::Result<()> {
    let mut archive = zip::ZipWriter::new(out);
    add(&mut archive, key, value)?;
    archive.finish()?;
    Ok(())
}

/// Adds an array to an archive.
pub(super) fn add<W: Write + Seek>(archive: &mut zip::ZipWriter<W>, key: &str, value: &Value) -> std::io::Result<()> {
    start(archive, key, value.data().len())?;
    npy::write(archive, value)
}

/// Adds a string as Python's `bytes`.
pub(super) fn add_text<W: Write + Seek>(archive: &mut zip::ZipWriter<W>, key: &str, text: &str) -> std::io::Result<()> {
    start(archive, key, text.len())?;
    npy::write_text(archive, text)
}

fn start<W: Write + Seek>(archive: &mut zip::ZipWriter<W>, key: &str, elements: usize) -> std::io::Result<()> {
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(elements > 1 << 28);
    Ok(archive.start_file(format!("{key}.npy"), options)?)
}

fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    if quoted.is_empty() { "no arrays".into() } else { quoted.join(", ") }
}

fn zip_error(path: &Path, e: ZipError) -> Diagnostic {
    match e {
        ZipError::Io(e) => os_error(path, &e),
        e => file_error("data::format", path, format!("not a valid `.npz` archive ({e})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;
    use taffeta_ast::{Buffer, DType};

    fn archive() -> Vec<u8> {
        let value = Value::new(vec![3], Buffer::F32(vec![1.0, 2.0, 3.0])).expect("one dimension");
        let mut b = Cursor::new(Vec::new());
        write(&mut b, "weights", &value).expect("memory");
        b.into_inner()
    }

    fn check(bytes: &[u8], key: Option<&str>) -> Result<Buffer, String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("x.npz");
        std::fs::write(&path, bytes).expect("a file");
        let want = Want::new("x", DType::F32, 1);
        read(&path, key, &want)
            .map(|v| v.into_parts().1)
            .map_err(|d| format!("{} {}", d.message, d.help.unwrap_or_default()))
    }

    #[test]
    fn arrays_are_found_by_key() {
        let expected = Ok(Buffer::F32(vec![1.0, 2.0, 3.0]));
        assert_eq!(check(&archive(), Some("weights")), expected);
        assert_eq!(check(&archive(), None), expected);
        let e = check(&archive(), Some("wieghts")).unwrap_err();
        assert!(e.contains("there is no array `wieghts`") && e.contains("x.npz:weights`?"), "{e}");
        assert!(check(b"PK no archive", None).unwrap_err().contains("a valid `.npz` archive"));
    }

    #[test]
    fn damaged_numbers_are_noticed() {
        let mut bytes = archive();
        // The last number: 3.0 in little-endian order.
        let at = bytes.windows(4).rposition(|w| w == 3.0f32.to_le_bytes()).expect("it is stored as it is");
        bytes[at] ^= 1;
        assert!(check(&bytes, None).unwrap_err().contains("the archive is damaged"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn damage_does_not_panic(at in 0usize..400, byte: u8, cut in 0usize..400) {
            let mut b = archive();
            let at = at % b.len();
            b[at] = byte;
            let _ = check(&b, None);
            let _ = check(&b[..cut.min(b.len())], None);
        }
    }
}
