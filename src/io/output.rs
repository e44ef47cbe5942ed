//! Results into files, all or nothing: every target is checked before the program runs, every file is written beside
//! its place under a temporary name, and only when all are whole are they renamed.

use super::{npy, npz, picture, source, table};
use std::fs::Permissions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use taffeta_ast::{DType, Diagnostic, Value};
use tempfile::NamedTempFile;

/// A result and the file that it goes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The result's name.
    pub name: String,
    /// The file.
    pub path: PathBuf,
}

impl Target {
    /// Whether a result of this type and rank can go there. Nothing is written.
    pub fn check(&self, dtype: DType, ndim: usize) -> Result<(), Diagnostic> {
        let refuse = |what: String| Diagnostic::new("output::format", format!("`{}`: {what}", self.path.display()));
        match source::extension(&self.path).as_str() {
            "npy" | "npz" => {}
            "csv" | "tsv" | "txt" if ndim <= 2 => {}
            "csv" | "tsv" | "txt" => {
                return Err(refuse(format!("a table has at most 2 dimensions, but result `{}` has {ndim}", self.name))
                    .help("write a `.npy` file"));
            }
            "png" => {
                if let Some(what) = picture::refusal(dtype, ndim) {
                    return Err(refuse(what).help("write a `.npy` file"));
                }
            }
            "mtx" | "tns" => {
                return Err(refuse("sparse results are not supported yet".into()).help("write a `.npy` file"));
            }
            "" => {
                return Err(
                    refuse("a result's file needs an ending".into()).help("one of .npy .npz .csv .tsv .txt .png")
                );
            }
            other => {
                return Err(refuse(format!("files that end in `.{other}` cannot be written"))
                    .help("one of .npy .npz .csv .tsv .txt .png"));
            }
        }
        if self.path.is_dir() {
            return Err(refuse("this is a directory".into()));
        }
        let dir = directory(&self.path);
        if !dir.is_dir() {
            return Err(Diagnostic::new(
                "output::directory",
                format!("`{}`: there is no directory `{}`", self.path.display(), dir.display()),
            )
            .help(format!("make it first: mkdir -p {}", dir.display())));
        }
        Ok(())
    }

    /// Whether both are the same file, however it is written (`y.npy`, `./y.npy`).
    pub fn same_file(&self, other: &Target) -> bool {
        let place = |t: &Target| {
            let dir = directory(&t.path);
            (dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf()), t.path.file_name().map(ToOwned::to_owned))
        };
        place(self) == place(other)
    }

    /// Writes the value under a temporary name.
    fn prepare(&self, value: &Value) -> Result<NamedTempFile, Diagnostic> {
        let failed = |e: std::io::Error| {
            Diagnostic::new("output::write", format!("`{}` cannot be written: {e}", self.path.display()))
        };
        if source::extension(&self.path) == "png"
            && let Some(fault) = picture::fault(value)
        {
            return Err(Diagnostic::new(
                "output::format",
                format!("`{}`: result `{}`: {fault}", self.path.display(), self.name),
            ));
        }
        // As for any new file, the user's umask decides who may read it.
        let file = tempfile::Builder::new()
            .prefix(".taffeta-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory(&self.path))
            .map_err(failed)?;
        let mut out = BufWriter::new(file);
        match source::extension(&self.path).as_str() {
            "npz" => npz::write(&mut out, &self.name, value),
            "csv" => table::write(&mut out, value, ','),
            "tsv" => table::write(&mut out, value, '\t'),
            "txt" => table::write(&mut out, value, ' '),
            "png" => picture::write(&mut out, value),
            _ => npy::write(&mut out, value),
        }
        .and_then(|()| out.flush())
        .map_err(failed)?;
        out.into_inner().map_err(|e| failed(e.into_error()))
    }
}

/// Writes all values; on any error no file is changed.
pub fn write_all(items: &[(Target, &Value)]) -> Result<(), Diagnostic> {
    let prepared = items.iter().map(|(t, v)| t.prepare(v)).collect::<Result<Vec<_>, _>>()?;
    for ((target, _), file) in items.iter().zip(prepared) {
        file.persist(&target.path).map_err(|e| {
            Diagnostic::new("output::write", format!("`{}` cannot be written: {}", target.path.display(), e.error))
        })?;
    }
    Ok(())
}

/// Writes a text: all of it, or nothing.
///
/// # Errors
///
/// The file cannot be written.
pub fn write_text(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let failed =
        |e: std::io::Error| Diagnostic::new("output::write", format!("`{}` cannot be written: {e}", path.display()));
    let mut file = tempfile::Builder::new()
        .prefix(".taffeta-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory(path))
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.persist(path).map(drop).map_err(|e| failed(e.error))
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taffeta_ast::Buffer;

    #[test]
    fn all_or_nothing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let target = |name: &str| Target { name: name.into(), path: dir.path().join(name) };
        let good = Value::new(vec![1, 1], Buffer::F32(vec![0.5])).expect("a value");
        let nan = Value::new(vec![1, 1], Buffer::F32(vec![f32::NAN])).expect("a value");
        let e = write_all(&[(target("a.npy"), &good), (target("b.png"), &nan)]).unwrap_err();
        assert_eq!(e.code, "output::format");
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 0);
        write_all(&[(target("a.npy"), &good), (target("b.png"), &good), (target("c.npz"), &nan)])
            .expect("all are good");
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 3);
    }

    #[test]
    fn targets_are_checked_beforehand() {
        let check = |path: &str, dtype, ndim| {
            Target { name: "y".into(), path: path.into() }.check(dtype, ndim).map_err(|d| d.message)
        };
        assert_eq!(check("y.npy", DType::F32, 7), Ok(()));
        assert!(check("y.csv", DType::F32, 3).unwrap_err().contains("at most 2 dimensions"));
        assert!(check("y.png", DType::I32, 2).unwrap_err().contains("floats from 0 to 1"));
        assert!(check("y.jpg", DType::F32, 2).unwrap_err().contains("`.jpg` cannot be written"));
        assert!(check("y", DType::F32, 2).unwrap_err().contains("needs an ending"));
        assert!(check("no/such/y.npy", DType::F32, 2).unwrap_err().contains("there is no directory `no/such`"));
    }
}
