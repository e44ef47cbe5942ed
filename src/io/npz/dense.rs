//! Dense arrays of an archive, by key, as `np.savez` writes them.

use super::archive::{Archive, Writer};
use crate::io::convert;
use crate::io::file::file_error;
use crate::io::want::Want;
use std::io::{Seek, Write};
use std::path::Path;
use taffeta_ast::{Diagnostic, Value};

/// Reads the array `key`; without a key the only array, or the one with the parameter's name.
pub fn read(path: &Path, key: Option<&str>, want: &Want) -> Result<Value, Diagnostic> {
    let mut archive = Archive::open(path)?;
    let names = archive.names();
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

/// Writes an archive of one array.
pub fn write(mut out: impl Write + Seek, key: &str, value: &Value) -> std::io::Result<()> {
    let mut archive = Writer::new(&mut out);
    archive.add(key, value)?;
    archive.finish()
}

fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    if quoted.is_empty() { "no arrays".into() } else { quoted.join(", ") }
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
