//! Weft's operator library: the `.ft` files of `ops/`, embedded. A leaf: it knows nothing of the compiler.
//!
//! One operator, or a tight family, is one file; each operator's docstring holds formula, shapes, axis and type rules, a
//! numerical note, and an example that `tests/suite/libop.rs` runs (`>>> example(arguments)`, then one line for each
//! result). Names that start with `_` are helpers, which operators import (`from libop import _axes`).
//!
//! How operators are generic: they recurse over dimensions by passing views (`f(y[i], x[i])`), and shapes, axes and types
//! are static lists, computed while compiling. Axes that are known take the place of run-time strides, so what is left
//! after inlining are the loops that one would write by hand for that case.
//!
//! Adding an operator is adding a file (`build.rs` finds it).

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// The file that defines `name` (an operator or a helper), and its text.
pub fn source(name: &str) -> Option<(&'static str, &'static str)> {
    let at = NAMES.binary_search_by_key(&name, |entry| entry.0).ok()?;
    FILES.get(NAMES[at].1).copied()
}

/// The operators, sorted: what is visible in every program without an import.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|entry| entry.0).filter(|name| !name.starts_with('_'))
}

/// Every file with its text, sorted by name.
pub fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_file() {
        assert_eq!(source("log_softmax").map(|s| s.0), Some("softmax.ft"));
        assert!(source("_axes").is_some_and(|s| s.1.contains("def _axes(")));
        assert_eq!(source("no_such_operator"), None);
    }

    #[test]
    fn helpers_are_no_operators() {
        assert!(names().any(|n| n == "softmax"));
        assert!(!names().any(|n| n.starts_with('_')));
    }

    #[test]
    fn imports_of_helpers_resolve() {
        for (file, text) in files() {
            for line in text.lines().filter_map(|l| l.strip_prefix("from libop import ")) {
                for name in line.split(',') {
                    let found = source(name.trim()).map(|s| s.0);
                    assert!(found.is_some(), "{file} imports `{}`, which nothing defines", name.trim());
                    assert_ne!(found, Some(file), "{file} imports `{}` from itself", name.trim());
                }
            }
        }
    }

    #[test]
    fn every_operator_is_documented_with_an_example() {
        for name in names() {
            let (file, text) = source(name).expect("a name has a file");
            let start = text.find(&format!("\ndef {name}(")).expect("the file defines the name") + 1;
            let body = &text[start..];
            let body = &body[..body[1..].find("\ndef ").map_or(body.len(), |k| k + 1)];
            assert!(body.contains("\"\"\""), "{file}: {name} has no docstring");
            assert!(body.contains("Example:") && body.contains(">>> example("), "{file}: {name} has no example");
        }
    }
}
