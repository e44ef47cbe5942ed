//! Atomic output of results: every target is checked before the program runs, every file is written beside its target
//! under a temporary name, and files are renamed only when all are complete.
//!
//! A symbolic link is kept, and its target written. An existing target that is not a regular file is never replaced.

use super::{elements, mtx, npy, npz, picture, source, table, tns};
use std::fs::Permissions;
use std::io::{BufWriter, Cursor, ErrorKind, IsTerminal, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use taffeta_ast::format::Format;
use taffeta_ast::{DType, Diagnostic, Literal, Value};
use taffeta_codegen::temporary::File;
use taffeta_structured::Stored;

/// Sink of a file's bytes.
pub(super) trait Sink: Write + Seek {}

impl<T: Write + Seek> Sink for T {}

/// Result with its target file; `-` is standard output, and `-:csv` is standard output as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Name of the result.
    pub name: String,
    /// Path of the file.
    pub path: PathBuf,
    /// Format of a structured result.
    pub format: Option<Format>,
}

impl Target {
    /// Returns whether the target is standard output.
    pub fn is_stdout(&self) -> bool {
        self.path.to_str().is_some_and(|p| p == "-" || p.starts_with("-:"))
    }

    /// Returns the file format: the extension, or for standard output, the word after `-:`. Plain `-` is `npz` for a
    /// structured result and `npy` for a dense one.
    fn kind(&self) -> String {
        match self.path.to_str().and_then(|p| p.strip_prefix('-')) {
            Some("") => if self.format.is_some() { "npz" } else { "npy" }.to_string(),
            Some(kind) if kind.starts_with(':') => kind[1..].to_string(),
            _ => source::extension(&self.path),
        }
    }

    /// Checks that a result of this type and rank can be written to the target. Writes nothing.
    pub fn check(&self, dtype: DType, ndim: usize) -> Result<(), Diagnostic> {
        let refuse = |what: String| Diagnostic::new("output::format", format!("`{}`: {what}", self.path.display()));
        match self.kind().as_str() {
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
            "mtx" | "tns" => self.check_sparse(dtype, ndim).map_err(|(what, help)| refuse(what).help(help))?,
            "" => {
                return Err(refuse("the file name needs an ending".into())
                    .help("use .npy .npz .csv .tsv .txt .png, or for a structured result also .mtx .tns"));
            }
            other => {
                return Err(refuse(format!("cannot write files that end in `.{other}`"))
                    .help("use .npy .npz .csv .tsv .txt .png, or for a structured result also .mtx .tns"));
            }
        }
        if !self.is_stdout() {
            return writable(&self.path);
        }
        if matches!(self.kind().as_str(), "npy" | "npz" | "png") && std::io::stdout().is_terminal() {
            let what = format!("cannot write result `{}` to a terminal in a binary format", self.name);
            return Err(
                refuse(what).help(format!("write `--out {}=-:txt` for text, or omit it for a summary", self.name))
            );
        }
        Ok(())
    }

    /// Checks that a file format for elements can hold the result; an error is a message and a help text.
    fn check_sparse(&self, dtype: DType, ndim: usize) -> Result<(), (String, &'static str)> {
        let Some(format) = &self.format else {
            return Err((
                format!("result `{}` is dense, but this file format stores sparse tensors", self.name),
                "write a `.npy` file",
            ));
        };
        if format.fill.is_some_and(|fill| fill != Literal::zero(dtype)) {
            let what = format!("result `{}` has a fill, which this file format cannot store", self.name);
            return Err((what, "write a `.npz` file"));
        }
        if self.kind() == "mtx" && ndim > 2 {
            let what = format!("a matrix has at most 2 dimensions, but result `{}` has {ndim}", self.name);
            return Err((what, "write a `.tns` or `.npz` file"));
        }
        Ok(())
    }

    /// Returns whether two targets are the same file, regardless of notation (`y.npy`, `./y.npy`) and links.
    pub fn same_file(&self, other: &Target) -> bool {
        let place = |t: &Target| {
            let path = resolved(&t.path);
            let dir = directory(&path);
            (dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf()), path.file_name().map(ToOwned::to_owned))
        };
        let inode = |t: &Target| std::fs::metadata(&t.path).ok().map(|m| (m.dev(), m.ino()));
        self.is_stdout() && other.is_stdout()
            || place(self) == place(other)
            || inode(self).is_some_and(|i| inode(other) == Some(i))
    }

    /// Counts the numbers that the file changes: those that a picture clips.
    pub fn clipped(&self, value: &Value) -> usize {
        if self.kind() == "png" { picture::clipped(value) } else { 0 }
    }

    /// Writes the value under a temporary name, or into memory.
    fn prepare(&self, item: Item<'_>) -> Result<Prepared, Diagnostic> {
        let failed = |e: std::io::Error| cannot_write(&self.path, &e);
        let elements;
        let value = match item {
            Item::Value(value) => value,
            Item::Stored(stored) if self.takes_arrays(stored) => {
                return self.made(|out| self.write_stored(out, stored)).map_err(failed);
            }
            Item::Stored(stored) => {
                elements = stored.try_elements().map_err(|why| {
                    Diagnostic::new("output::write", format!("cannot write `{}`: {why}", self.path.display()))
                })?;
                &elements
            }
        };
        if self.kind() == "png"
            && let Some(fault) = picture::fault(value)
        {
            return Err(Diagnostic::new(
                "output::format",
                format!("`{}`: result `{}`: {fault}", self.path.display(), self.name),
            ));
        }
        let extension = self.kind();
        let listed = matches!(extension.as_str(), "mtx" | "tns" | "npz");
        let all;
        let value = match (value.places(), listed) {
            (Some(_), false) => {
                all = elements::dense(value, &self.path)?;
                &all
            }
            _ => value,
        };
        self.made(|out| self.write(out, value)).map_err(failed)
    }

    /// Writes under a temporary name, or into memory.
    fn made(&self, write: impl FnOnce(&mut dyn Sink) -> std::io::Result<()>) -> std::io::Result<Prepared> {
        if self.is_stdout() {
            let mut bytes = Cursor::new(Vec::new());
            write(&mut bytes)?;
            return Ok(Prepared::Output(bytes.into_inner()));
        }
        let mut made = beside(&resolved(&self.path))?;
        let mut out = BufWriter::new(&mut made.file);
        write(&mut out).and_then(|()| out.flush())?;
        drop(out);
        Ok(Prepared::File(made))
    }

    /// Returns whether the file is written from the arrays of a format.
    fn takes_arrays(&self, stored: &Stored) -> bool {
        match self.kind().as_str() {
            "mtx" | "tns" => true,
            "npz" => npz::takes_arrays(stored),
            _ => false,
        }
    }

    fn write_stored(&self, mut out: &mut dyn Sink, stored: &Stored) -> std::io::Result<()> {
        let listed = || stored.listed().map_err(|why| std::io::Error::other(why.to_string()));
        match self.kind().as_str() {
            "mtx" => {
                let (indices, elements) = listed()?;
                mtx::write_listed(out, stored.shape(), &indices, &elements)
            }
            "tns" => {
                let (indices, elements) = listed()?;
                tns::write_listed(out, stored.shape().len(), &indices, &elements)
            }
            _ => npz::write_arrays(&mut out, stored),
        }
    }

    fn write(&self, mut out: &mut dyn Sink, value: &Value) -> std::io::Result<()> {
        match self.kind().as_str() {
            "mtx" => mtx::write(out, value),
            "tns" => tns::write(out, value),
            "npz" if value.places().is_some() => npz::write(&mut out, value, self.format.as_ref()),
            "npz" => npz::dense::write(&mut out, &self.name, value),
            "csv" => table::write(out, value, ','),
            "tsv" => table::write(out, value, '\t'),
            "txt" => table::write(out, value, ' '),
            "png" => picture::write(out, value),
            _ => npy::write(out, value),
        }
    }
}

/// Result to be written.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// Elements.
    Value(&'a Value),
    /// Arrays of a format.
    Stored(&'a Stored),
}

impl<'a> From<&'a Value> for Item<'a> {
    fn from(value: &'a Value) -> Item<'a> {
        Item::Value(value)
    }
}

/// Value that is written but not yet published.
enum Prepared {
    File(File),
    /// Bytes for standard output.
    Output(Vec<u8>),
}

/// Writes all values; on any error, no file is changed.
pub fn write_all<'a>(items: &[(Target, impl Into<Item<'a>> + Copy)]) -> Result<(), Diagnostic> {
    let prepared = items.iter().map(|(t, v)| t.prepare((*v).into())).collect::<Result<Vec<_>, _>>()?;
    for ((target, _), prepared) in items.iter().zip(prepared) {
        match prepared {
            Prepared::File(file) => file.persist(&resolved(&target.path)),
            Prepared::Output(bytes) => written(&bytes),
        }
        .map_err(|e| cannot_write(&target.path, &e))?;
    }
    Ok(())
}

/// Writes to standard output. A closed pipe is not an error.
fn written(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a text file atomically.
///
/// # Errors
///
/// The file cannot be written.
pub fn write_text(path: &Path, text: &str) -> Result<(), Diagnostic> {
    writable(path)?;
    let failed = |e: std::io::Error| cannot_write(path, &e);
    let path = &resolved(path);
    let mut made = beside(path).map_err(failed)?;
    made.file.write_all(text.as_bytes()).map_err(failed)?;
    made.persist(path).map_err(failed)
}

/// Checks that a file can be written: an existing one is a writable regular file, and the folder accepts new files.
/// Leaves nothing behind.
///
/// # Errors
///
/// The reason why the file cannot be written.
pub fn writable(path: &Path) -> Result<(), Diagnostic> {
    let target = resolved(path);
    if target.is_symlink() {
        return Err(Diagnostic::new("output::write", format!("`{}`: the symbolic links form a cycle", path.display())));
    }
    match std::fs::metadata(&target) {
        Ok(meta) if meta.is_dir() => {
            return Err(Diagnostic::new("output::format", format!("`{}` is a directory", path.display())));
        }
        Ok(meta) if !meta.is_file() => {
            let what = format!("`{}` is not a regular file", path.display());
            return Err(Diagnostic::new("output::format", what));
        }
        Ok(_) => drop(std::fs::OpenOptions::new().append(true).open(&target).map_err(|e| cannot_write(path, &e))?),
        Err(_) => {}
    }
    let dir = directory(&target);
    if !dir.is_dir() {
        return Err(Diagnostic::new(
            "output::directory",
            format!("`{}`: there is no directory `{}`", path.display(), dir.display()),
        )
        .help(format!("make it first: mkdir -p {}", dir.display())));
    }
    folder_takes_files(dir).map_err(|e| cannot_write(path, &e))
}

/// Checks that new files can be created in a folder, or in its nearest existing ancestor.
///
/// # Errors
///
/// The system's error.
pub fn folder_takes_files(dir: &Path) -> std::io::Result<()> {
    let absolute = std::path::absolute(dir)?;
    let there = absolute.ancestors().find(|a| a.exists()).unwrap_or(Path::new("/"));
    File::inside(there, ".taffeta-", Permissions::from_mode(0o600)).map(drop).map_err(without_path)
}

/// Creates a temporary file beside `path`, with the permissions of an existing file. For a new file, the user's umask
/// determines the permissions.
fn beside(path: &Path) -> std::io::Result<File> {
    let made = File::inside(directory(path), ".taffeta-", Permissions::from_mode(0o666)).map_err(without_path)?;
    if let Ok(meta) = std::fs::metadata(path) {
        made.file.as_file().set_permissions(Permissions::from_mode(meta.mode() & 0o777))?;
    }
    Ok(made)
}

/// Strips the name of a temporary file from an error, since it is unknown to the user.
fn without_path(e: std::io::Error) -> std::io::Error {
    let said = e.get_ref().and_then(|inner| inner.source()).map(ToString::to_string);
    said.map_or(e, std::io::Error::other)
}

fn cannot_write(path: &Path, e: &std::io::Error) -> Diagnostic {
    let name = if path.as_os_str() == "-" { "standard output".to_string() } else { format!("`{}`", path.display()) };
    Diagnostic::new("output::write", format!("cannot write {name}: {e}"))
}

/// Follows symbolic links, also to missing files.
fn resolved(path: &Path) -> PathBuf {
    /// Maximum number of links; more are a cycle.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = directory(&path).join(target),
            Err(_) => break,
        }
    }
    path
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
    fn outputs_are_written_all_or_none() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let target = |name: &str| Target { name: name.into(), path: dir.path().join(name), format: None };
        let good = Value::new(vec![1, 1], Buffer::F32(vec![0.5])).expect("a value");
        let nan = Value::new(vec![1, 1], Buffer::F32(vec![f32::NAN])).expect("a value");
        let e = write_all(&[(target("a.npy"), &good), (target("b.png"), &nan)]).unwrap_err();
        assert_eq!(e.code, "output::format");
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 0);
        write_all(&[("a.npy", &good), ("b.png", &good), ("c.npz", &nan)].map(|(name, v)| (target(name), v)))
            .expect("all are good");
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 3);
    }

    #[test]
    fn links_are_written_through() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let target = |name: &str| Target { name: name.into(), path: dir.path().join(name), format: None };
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, dir.path().join(name)).expect("a link");
        std::fs::create_dir(dir.path().join("real")).expect("a folder");
        std::fs::write(dir.path().join("real/y.npy"), "before").expect("a file");
        std::fs::set_permissions(dir.path().join("real/y.npy"), Permissions::from_mode(0o640)).expect("ours");
        link("real/y.npy", "y.npy");
        link("real", "folder");
        link("y.npy", "again.npy");
        link("real/new.npy", "new.npy");
        std::fs::hard_link(dir.path().join("real/y.npy"), dir.path().join("hard.npy")).expect("a link");
        let one = target("real/y.npy");
        for name in ["y.npy", "again.npy", "folder/y.npy", "./y.npy", "real/../y.npy", "hard.npy"] {
            assert!(one.same_file(&target(name)) && target(name).same_file(&one), "{name}");
        }
        assert!(target("new.npy").same_file(&target("folder/new.npy")), "files that do not exist yet are compared too");
        assert!(!target("new.npy").same_file(&one));
        let value = Value::new(vec![1], Buffer::F32(vec![0.5])).expect("a value");
        write_all(&["again.npy", "new.npy"].map(|name| (target(name), &value))).expect("all are good");
        for name in ["y.npy", "again.npy", "new.npy"] {
            assert!(dir.path().join(name).is_symlink(), "{name}");
        }
        let written = std::fs::read(dir.path().join("real/y.npy")).expect("it is there");
        assert_eq!(std::fs::read(dir.path().join("real/new.npy")).expect("it is there"), written);
        assert_eq!(std::fs::metadata(&one.path).expect("it is there").mode() & 0o777, 0o640);
        // A target that is not a regular file is never replaced, and a cycle of links is refused.
        link("/dev/null", "null.npy");
        link("circle.npy", "circle.npy");
        for name in ["null.npy", "circle.npy"] {
            assert!(target(name).check(DType::F32, 1).is_err(), "{name}");
        }
        assert!(!std::fs::metadata("/dev/null").expect("it is there").is_file());
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 8, "nothing is left behind");
    }

    #[test]
    fn targets_are_checked_beforehand() {
        let check = |path: &str, dtype, ndim| {
            Target { name: "y".into(), path: path.into(), format: None }.check(dtype, ndim).map_err(|d| d.message)
        };
        assert_eq!(check("y.npy", DType::F32, 7), Ok(()));
        assert!(check("y.csv", DType::F32, 3).unwrap_err().contains("at most 2 dimensions"));
        assert!(check("y.png", DType::I32, 2).unwrap_err().contains("floats from 0 to 1"));
        assert!(check("y.jpg", DType::F32, 2).unwrap_err().contains("cannot write files that end in `.jpg`"));
        assert!(check("y", DType::F32, 2).unwrap_err().contains("needs an ending"));
        assert!(check("/proc/y.npy", DType::F32, 2).unwrap_err().starts_with("cannot write `/proc/y.npy`: "));
        assert!(check("no/such/y.npy", DType::F32, 2).unwrap_err().contains("there is no directory `no/such`"));
    }
}
