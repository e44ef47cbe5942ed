//! Taffeta's operator library (`ops/`), its library of schedules (`schedules/`) and its library of formats
//! (`formats/`): `.ft` files, embedded. A leaf crate that does not depend on the compiler.
//!
//! One file holds one operator, or a tight family; each operator's docstring has formula, shapes, axis and type rules,
//! a numerical note, and an example that `tests/suite/libop.rs` runs (`>>> example(arguments)`, then one line per
//! result). Names that start with `_` are helpers, which operators import (`from libop import _axes`).
//!
//! Operators are generic: they recurse over dimensions by passing views (`f(y[i], x[i])`), and shapes, axes and types
//! are static lists, evaluated at compile time. Known axes replace run-time strides, so that inlining leaves the loops
//! that one would write by hand for the case.
//!
//! A schedule of the library is a function whose first parameter is the schedule `s`; its docstring describes the
//! effect on the loops and the return value, and has an example.
//!
//! A file of `formats/` defines a format, `name = format(…)`, and the function of its `remap=`; its docstring says how
//! elements are stored, and where that pays.
//!
//! A new operator, schedule or format needs only a new file (`build.rs` finds it).

mod document;

pub use document::{Document, about_format, document, families};

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// Returns the file that defines `name` (an operator or a helper), and its text.
pub fn source(name: &str) -> Option<(&'static str, &'static str)> {
    let at = NAMES.binary_search_by_key(&name, |entry| entry.0).ok()?;
    FILES.get(NAMES[at].1).copied()
}

/// Returns the operators, sorted: the names visible in every program without an import.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|entry| entry.0).filter(|name| !name.starts_with('_'))
}

/// Returns every file of operators with its text, sorted by name.
pub fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().copied()
}

/// Returns the file that defines the schedule `name` (`schedules/tile.ft`), and its text.
pub fn schedule(name: &str) -> Option<(&'static str, &'static str)> {
    let at = SCHEDULE_NAMES.binary_search_by_key(&name, |entry| entry.0).ok()?;
    SCHEDULE_FILES.get(SCHEDULE_NAMES[at].1).copied()
}

/// Returns the schedules, sorted: the names visible in every schedule without an import.
pub fn schedule_names() -> impl Iterator<Item = &'static str> {
    SCHEDULE_NAMES.iter().map(|entry| entry.0).filter(|name| !name.starts_with('_'))
}

/// Returns every file of schedules with its text, sorted by name.
pub fn schedule_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCHEDULE_FILES.iter().copied()
}

/// Returns the file that defines the format `name` (`formats/sell.ft`), and its text.
pub fn format(name: &str) -> Option<(&'static str, &'static str)> {
    let at = FORMAT_NAMES.binary_search_by_key(&name, |entry| entry.0).ok()?;
    FORMAT_FILES.get(FORMAT_NAMES[at].1).copied()
}

/// Returns the formats, sorted: the names visible in every program without an import.
pub fn format_names() -> impl Iterator<Item = &'static str> {
    FORMAT_NAMES.iter().map(|entry| entry.0)
}

/// Returns every file of formats with its text, sorted by name.
pub fn format_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMAT_FILES.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_files() {
        assert_eq!(source("log_softmax").map(|s| s.0), Some("softmax.ft"));
        assert!(source("_axes").is_some_and(|s| s.1.contains("def _axes(")));
        assert_eq!(source("no_such_operator"), None);
        assert_eq!(schedule("tile3d").map(|s| s.0), Some("schedules/tile.ft"));
        assert_eq!((schedule("softmax"), source("tile3d")), (None, None));
    }

    #[test]
    fn every_format_has_a_file_that_is_about_it() {
        assert!(format_names().eq(["bdia", "csb", "hicoo", "sell"]));
        for name in format_names() {
            assert_eq!(format(name).map(|f| f.0), Some(&*format!("formats/{name}.ft")));
            assert!(about_format(name).is_some_and(|text| !text.is_empty()), "{name} has no docstring");
        }
    }

    #[test]
    fn helpers_are_not_operators() {
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

    /// Returns the text of a function.
    fn definition(text: &'static str, name: &str) -> &'static str {
        let start = text.find(&format!("\ndef {name}(")).expect("the file defines the name") + 1;
        let body = &text[start..];
        &body[..body[1..].find("\ndef ").map_or(body.len(), |k| k + 1)]
    }

    #[test]
    fn every_schedule_is_documented_with_an_example() {
        for name in schedule_names() {
            let (file, text) = schedule(name).expect("a name has a file");
            let body = definition(text, name);
            let documented =
                body.contains("\"\"\"") && body.contains("Example:") && body.contains(&format!("{name}(s, "));
            assert!(documented, "{file}: {name} needs a docstring with an example");
        }
    }

    #[test]
    fn every_operator_is_documented_with_an_example() {
        for name in names() {
            let (file, text) = source(name).expect("a name has a file");
            let body = definition(text, name);
            assert!(body.contains("\"\"\""), "{file}: {name} has no docstring");
            assert!(body.contains("Example:") && body.contains(">>> example("), "{file}: {name} has no example");
        }
    }
}
