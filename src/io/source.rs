//! Source of an input, parsed from the text after `--in NAME=`: a literal, a generator or a file.
//!
//! Alternatives are tried in that order: `3` is a number, `rand(seed=1)` a generator, and any other text a path, with
//! the part of the file after the last colon (`mesh.obj:faces`, `data.npz:x`).

use super::generate::Generator;
use super::literal;
use std::fmt;
use std::path::{Path, PathBuf};
use taffeta_ast::Diagnostic;

/// Source of an input's elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Literal: `3`, `[1, 2, 3]`, `true`.
    Literal(String),
    /// Generator, for the parameter's shape: `rand`, `zeros`.
    Generator(Generator),
    /// File, or a part of it.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Part of the file: a key, a column, `faces`.
        part: Option<String>,
    },
}

/// Formats that are recognised, but not yet supported.
const LATER: [&str; 1] = ["bed"];

/// Extensions of recognised formats, with descriptions of their parts.
const FORMATS: [(&str, &str); 13] = [
    ("npy", ""),
    ("npz", "its arrays' names"),
    ("csv", "a column's name or number, or edges"),
    ("tsv", "a column's name or number, or edges"),
    ("txt", "a column's number, or edges"),
    ("obj", "vertices, faces or adjacency"),
    ("off", "vertices, faces or adjacency"),
    ("mtx", "rows, cols, values, indptr or shape"),
    ("mtx.gz", "rows, cols, values, indptr or shape"),
    ("png", ""),
    ("tns", ""),
    ("tns.gz", ""),
    ("bed", ""),
];

impl Source {
    /// Parses the text after `NAME=`.
    pub fn parse(text: &str) -> Result<Source, Diagnostic> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(Diagnostic::new("input::empty", "the value is empty")
                .help("give a file (`x.npy`), a literal (`3`, `[1, 2]`) or a generator (`rand`, `zeros`)"));
        }
        if literal::looks_like(trimmed) {
            return Ok(Source::Literal(trimmed.to_string()));
        }
        if let Some(generator) = Generator::parse(trimmed) {
            return generator.map(Source::Generator);
        }
        Source::file(trimmed)
    }

    fn file(text: &str) -> Result<Source, Diagnostic> {
        let whole = Path::new(text);
        if super::file::is_stdin(whole) {
            return Ok(Source::File { path: whole.to_path_buf(), part: None });
        }
        if let Some(part) = text.strip_prefix("-:") {
            return Ok(Source::File { path: PathBuf::from("-"), part: Some(part.to_string()) });
        }
        if known(whole) {
            return Ok(Source::File { path: whole.to_path_buf(), part: None });
        }
        if let Some((path, part)) = text.rsplit_once(':') {
            let path = Path::new(path);
            if known(path) {
                let parts = FORMATS.iter().find(|(e, _)| *e == extension(path)).map_or("", |f| f.1);
                if parts.is_empty() {
                    return Err(super::file::file_error(
                        "input::part",
                        path,
                        format!("this format has no parts, but `:{part}` asks for one"),
                    ));
                }
                return Ok(Source::File { path: path.to_path_buf(), part: Some(part.to_string()) });
            }
        }
        Err(unknown_format(whole, &extension(whole)))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Literal(text) if text.len() > 40 => {
                write!(f, "`{}…`", text.chars().take(40).collect::<String>())
            }
            Source::Literal(text) => write!(f, "`{text}`"),
            Source::Generator(g) => write!(f, "`{}`", g.text()),
            Source::File { path, .. } if super::file::is_stdin(path) => write!(f, "{}", super::stdin::NAME),
            Source::File { path, part: None } => write!(f, "{}", path.display()),
            Source::File { path, part: Some(part) } => write!(f, "{}:{part}", path.display()),
        }
    }
}

/// Returns the extension in lower case, with `tns.gz` and `mtx.gz` as one; empty without an extension.
pub fn extension(path: &Path) -> String {
    let end = |p: &Path| p.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let last = end(path);
    let inner = path.file_stem().map(|stem| end(Path::new(stem)));
    match inner.as_deref() {
        Some(inner @ ("tns" | "mtx")) if last == "gz" => format!("{inner}.gz"),
        _ => last,
    }
}

fn known(path: &Path) -> bool {
    let e = extension(path);
    FORMATS.iter().any(|(name, _)| *name == e)
}

/// Creates the diagnostic for a file without a reader.
pub(crate) fn unknown_format(path: &Path, extension: &str) -> Diagnostic {
    let text = path.display().to_string();
    let d = if extension.is_empty() {
        Diagnostic::new(
            "input::unknown",
            format!("`{text}` is neither a literal, nor a generator, nor a file with a known ending"),
        )
    } else {
        Diagnostic::new("input::unknown", format!("{text}: cannot read files that end in `.{extension}`"))
    };
    let near = near_generator(&text);
    let known: Vec<String> = FORMATS.iter().filter(|(e, _)| !LATER.contains(e)).map(|(e, _)| format!(".{e}")).collect();
    let help = format!(
        "files: {}; generators: {}; literals: 3, 2.5, [1, 2, 3], true",
        known.join(" "),
        Generator::NAMES.join(" ")
    );
    match near {
        Some(name) => d.help(format!("did you mean `{name}`?")).note(help),
        None => d.help(help),
    }
}

fn near_generator(text: &str) -> Option<&'static str> {
    let head = text.split('(').next().unwrap_or(text);
    taffeta_ast::spelling::nearest(head, Generator::NAMES.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        match Source::parse(text) {
            Ok(Source::Literal(t)) => format!("literal {t}"),
            Ok(Source::Generator(g)) => format!("generator {}", g.text()),
            Ok(Source::File { path, part }) => format!("file {} {part:?}", path.display()),
            Err(d) => format!("{d}; {}", d.help.as_deref().unwrap_or_default()),
        }
    }

    #[test]
    fn literals_generators_and_files_are_distinguished() {
        assert_eq!(kind("3"), "literal 3");
        assert_eq!(kind("-2.5e3"), "literal -2.5e3");
        assert_eq!(kind("[1, 2]"), "literal [1, 2]");
        assert_eq!(kind("-inf"), "literal -inf");
        assert_eq!(kind("rand(seed=1)"), "generator rand(seed=1)");
        assert_eq!(kind("3d.npy"), "file 3d.npy None");
        assert_eq!(kind("a:b/x.obj:faces"), "file a:b/x.obj Some(\"faces\")");
        assert_eq!(kind("rand.npy"), "file rand.npy None");
    }

    #[test]
    fn unknown_values_are_refused_with_suggestions() {
        assert!(kind("ramd").contains("did you mean `rand`?"));
        assert!(kind("x.npy:3").contains("has no parts"));
        assert!(kind("x.jpeg").contains("cannot read files that end in `.jpeg`"));
        assert!(kind("").contains("the value is empty"));
    }
}
