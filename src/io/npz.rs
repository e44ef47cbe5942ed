//! NumPy's `.npz`: a zip archive of `.npy` files, one for each key.

use super::{Want, convert, file_error, npy, os_error};
use std::io::{BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use taffeta_ast::{Diagnostic, Value};
use zip::result::ZipError;

/// Reads the array `key`; without a key the only array, or the one that is called like the parameter.
pub fn read(path: &Path, key: Option<&str>, want: &Want) -> Result<Value, Diagnostic> {
    let file = super::open(path)?;
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|e| zip_error(path, e))?;
    let names: Vec<String> = archive.file_names().map(|n| n.trim_end_matches(".npy").to_string()).collect();
    if names.iter().any(|n| n == "indptr") && names.iter().any(|n| n == "indices") && key.is_none() {
        return Err(file_error(
            "data::unsupported",
            path,
            "this is a sparse SciPy matrix; sparse inputs are not supported yet",
        )
        .help(format!("name one of its arrays: {}:data", path.display())));
    }
    let key = match key {
        Some(key) => key.to_string(),
        None if names.len() == 1 => names[0].clone(),
        None if names.contains(&want.name) => want.name.clone(),
        None => {
            return Err(file_error("input::part", path, format!("which array is meant? It has {}", list(&names)))
                .help(format!("write `{}:KEY`", path.display())));
        }
    };
    if !names.contains(&key) {
        let d = file_error("input::part", path, format!("there is no array `{key}`; there is {}", list(&names)));
        return Err(match taffeta_ast::spelling::nearest(&key, names.iter().map(String::as_str)) {
            Some(near) => d.help(format!("did you mean `{}:{near}`?", path.display())),
            None => d,
        });
    }
    let shown = PathBuf::from(format!("{}:{key}", path.display()));
    let member = if archive.index_for_name(&format!("{key}.npy")).is_some() { format!("{key}.npy") } else { key };
    let mut entry = archive.by_name(&member).map_err(|e| zip_error(path, e))?;
    let len = entry.size();
    let value = npy::read_from(&mut entry, Some(len), &shown)?;
    convert::to(value, want, &shown.display().to_string())
}

/// Writes an archive of one array, uncompressed as `np.savez` does.
pub fn write(out: impl Write + Seek, key: &str, value: &Value) -> std::io::Result<()> {
    let mut archive = zip::ZipWriter::new(out);
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(value.data().len() > 1 << 28);
    archive.start_file(format!("{key}.npy"), options)?;
    npy::write(&mut archive, value)?;
    archive.finish()?;
    Ok(())
}

fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    if quoted.is_empty() { "nothing in it".into() } else { quoted.join(", ") }
}

fn zip_error(path: &Path, e: ZipError) -> Diagnostic {
    match e {
        ZipError::Io(e) => os_error(path, &e),
        e => file_error("data::format", path, format!("this is not an intact `.npz` archive ({e})")),
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
        let want = Want { name: "x".into(), dtype: DType::F32, ndim: 1, empty: None };
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
        assert!(check(b"PK no archive", None).unwrap_err().contains("an intact `.npz` archive"));
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
