//! `taffeta doc`: manual entries of operators and schedules of the library, primitives of schedules, formats and their
//! levels, and functions that yield gradients. The texts come from docstrings, heads of primitives, and pages of the
//! book.

use super::output::{Failure, print};
use std::fmt::Write as _;
use taffeta::ast::format::{Format, Named};
use taffeta::ast::{Diagnostic, spelling};

/// Show the manual entry of a name of the language or the library
#[derive(clap::Args)]
#[command(after_help = "Examples:
  taffeta doc                     all names, by kind
  taffeta doc softmax             an operator: formula, shapes and types, an example
  taffeta doc split               a primitive of schedules: the rewrite, when it is legal
  taffeta doc csr                 a format: its levels
  taffeta doc compressed          a level: its arrays, as a picture
  taffeta doc grad                a function that gives gradients")]
pub struct Args {
    /// An operator or a schedule of the library, a primitive, a format, a level, or a gradient
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Pages of the book with tables whose rows begin with a name.
const STORAGE: &str = include_str!("../../docs/src/reference/storage.md");
const GRADIENTS: &str = include_str!("../../docs/src/gradients.md");

/// Pages of the book about levels, by level.
const LEVELS: [(&str, &str); 18] = [
    ("banded", include_str!("../../docs/src/reference/levels/banded.md")),
    ("bitmap", include_str!("../../docs/src/reference/levels/bitmap.md")),
    ("blocklist", include_str!("../../docs/src/reference/levels/blocklist.md")),
    ("bytemap", include_str!("../../docs/src/reference/levels/bytemap.md")),
    ("compressed", include_str!("../../docs/src/reference/levels/compressed.md")),
    ("dense", include_str!("../../docs/src/reference/levels/dense.md")),
    ("hashed", include_str!("../../docs/src/reference/levels/hashed.md")),
    ("offset", include_str!("../../docs/src/reference/levels/offset.md")),
    ("packbits", include_str!("../../docs/src/reference/levels/packbits.md")),
    ("point", include_str!("../../docs/src/reference/levels/point.md")),
    ("ragged", include_str!("../../docs/src/reference/levels/ragged.md")),
    ("range", include_str!("../../docs/src/reference/levels/range.md")),
    ("runlength", include_str!("../../docs/src/reference/levels/runlength.md")),
    ("singleton", include_str!("../../docs/src/reference/levels/singleton.md")),
    ("sliced", include_str!("../../docs/src/reference/levels/sliced.md")),
    ("squeezed", include_str!("../../docs/src/reference/levels/squeezed.md")),
    ("symmetric", include_str!("../../docs/src/reference/levels/symmetric.md")),
    ("triangular", include_str!("../../docs/src/reference/levels/triangular.md")),
];

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.name {
        Some(name) => print(&one(name)?),
        None => print(&all()),
    }
}

fn one(name: &str) -> Result<String, Diagnostic> {
    let operator = taffeta::libop::document(name).map(|d| format!("{}\n\n{}\n", d.signature, d.text));
    // A primitive may be written as in a schedule function: `s.split`.
    let method = name.strip_prefix("s.").unwrap_or(name);
    let primitive = taffeta::schedule::documentation().find(|p| p.name == method);
    let primitive =
        primitive.map(|p| format!("{}\n\n{}\n\n{}", p.signature, p.summary, p.text).trim_end().to_string() + "\n");
    // Some names have several entries (`split`).
    let found: Vec<String> = [operator, primitive, format(name), library_format(name), level(name), gradient(name)]
        .into_iter()
        .flatten()
        .collect();
    if !found.is_empty() {
        return Ok(found.join("\n\n"));
    }
    if taffeta::frontend::is_builtin(name) {
        let text = "is part of the language: see \"Expressions\" in the reference";
        return Ok(format!("`{name}` {text}\n"));
    }
    let d = Diagnostic::new("name::unknown", format!("the manual has no entry `{name}`"));
    let groups = groups();
    let known = groups.iter().flat_map(|(_, lines)| lines).map(|(name, _)| name.as_str());
    Err(match spelling::nearest(name, known) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help("`taffeta doc` lists all entries"),
    })
}

/// Returns a named format, and the number of dimensions that it is shown for.
fn named(name: &str) -> Option<(usize, Format)> {
    if name == "bcsr" {
        return Some((2, taffeta::ast::format::presets::bcsr(2, 2)));
    }
    // Most formats are formats of matrices.
    let named = Named::find(name)?;
    [2, 1, 3].into_iter().find_map(|n| Some((n, named.format(n)?)))
}

/// Describes a format: its notation in a program, and its levels.
fn format(name: &str) -> Option<String> {
    let (ndim, format) = named(name)?;
    let sizes = &["n", "n, m", "n, m, k"][ndim - 1];
    let written = if name == "bcsr" { "bcsr(2, 2)" } else { name };
    let mut out = format!("A: f64[{sizes}] @ {written}\n\nThe same as `{format}`:\n\n");
    let mut kinds: Vec<&str> = Vec::new();
    for kind in format.levels.iter().map(|l| l.kind.name()).filter(|k| LEVELS.iter().any(|(l, _)| l == k)) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let width = kinds.iter().map(|k| k.len()).max().unwrap_or(0);
    for kind in &kinds {
        let _ = writeln!(
            out,
            "  {kind:width$}  {}",
            row(STORAGE, kind).and_then(|r| r.into_iter().nth(1)).unwrap_or_default()
        );
    }
    let doc: Vec<String> = kinds.iter().map(|k| format!("`taffeta doc {k}`")).collect();
    let _ = writeln!(
        out,
        "\nTheir arrays: {}. Files: `.mtx`, `.tns`, `.npz` (\"Storage\" in the reference).",
        doc.join(", ")
    );
    Some(out)
}

/// Describes a format of the library: where it pays, and its definition.
fn library_format(name: &str) -> Option<String> {
    let about = taffeta::libop::about_format(name)?;
    let (_, text) = taffeta::libop::format(name)?;
    let (_, definition) = text[3..].split_once("\"\"\"")?;
    let definition: String = definition
        .trim()
        .lines()
        .map(|line| if line.is_empty() { "\n".to_string() } else { format!("    {line}\n") })
        .collect();
    Some(format!("A: f64[n, m] @ {name}\n\n{about}\n\nIts definition:\n\n{definition}"))
}

/// Returns the page of a level.
fn level(name: &str) -> Option<String> {
    LEVELS.iter().find(|(level, _)| *level == name).map(|(_, page)| page.to_string())
}

/// Describes parameters and results of a function that yields gradients.
fn gradient(name: &str) -> Option<String> {
    let [signature, takes, gives] = row(GRADIENTS, name)?.try_into().ok()?;
    let more = "Without `wrt`, all floating-point parameters are differentiated. `taffeta run --grad`, `taffeta grad`\n\
                and `taffeta check-grad` run, print and check gradients. \"Gradients\" in the manual has examples.";
    Some(format!("{}\n\nParameters: {takes}.\nResults: {gives}.\n\n{more}\n", signature.trim_matches('`')))
}

/// Finds the table row about a name, and returns its cells.
fn row(page: &str, name: &str) -> Option<Vec<String>> {
    page.lines().filter_map(|l| l.strip_prefix("| ")?.strip_suffix('|')).find_map(|line| {
        let cells: Vec<String> = line.split(" | ").map(|c| c.trim().trim_end_matches('|').trim().to_string()).collect();
        let first = cells.first()?.trim_start_matches(['[', '`']);
        let rest = first.strip_prefix(name)?;
        rest.starts_with(['`', '(']).then_some(cells)
    })
}

/// Returns all names by kind, with a summary line for each.
fn groups() -> Vec<(&'static str, Vec<(String, String)>)> {
    let library = |name: &str| taffeta::libop::document(name).map(|d| d.summary()).unwrap_or_default();
    let of_library =
        |names: &mut dyn Iterator<Item = &'static str>| names.map(|n| (n.to_string(), library(n))).collect();
    let primitives = taffeta::schedule::documentation().map(|p| (p.name.to_string(), p.summary.to_string()));
    let formats = Named::ALL.iter().map(|(name, _)| *name).chain(["bcsr"]).filter_map(|name| {
        let (_, format) = named(name)?;
        Some((name.to_string(), format.to_string()))
    });
    let own = taffeta::libop::format_names().filter(|name| Named::find(name).is_none());
    let own = own.map(|name| {
        let about = taffeta::libop::about_format(name).unwrap_or_default();
        (name.to_string(), about.lines().next().unwrap_or_default().trim_end_matches('.').to_string())
    });
    let second =
        |page: &str, name: &str, cell: usize| row(page, name).and_then(|r| r.into_iter().nth(cell)).unwrap_or_default();
    let levels = LEVELS.iter().map(|(name, _)| (name.to_string(), second(STORAGE, name, 1)));
    let gradients = ["grad", "value_and_grad", "vjp", "jvp", "jacobian"];
    vec![
        ("Operators", of_library(&mut taffeta::libop::names())),
        ("Schedules", of_library(&mut taffeta::libop::schedule_names())),
        ("Primitives of schedules", primitives.collect()),
        ("Formats", formats.chain(own).collect()),
        ("Levels of formats", levels.collect()),
        ("Gradients", gradients.map(|name| (name.to_string(), second(GRADIENTS, name, 2))).to_vec()),
    ]
}

fn all() -> String {
    let mut out = String::new();
    for (title, lines) in groups() {
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let gap = if out.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = writeln!(out, "{gap}{title}");
        for (name, summary) in lines {
            let _ = writeln!(out, "  {name:width$}  {summary}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use taffeta::ast::format::LevelKind;

    #[test]
    fn every_level_has_its_page_and_every_format_its_levels() {
        for kind in LevelKind::ALL {
            assert!(level(kind.name()).is_some(), "no page of `{}`", kind.name());
            assert!(row(STORAGE, kind.name()).is_some(), "no row of `{}`", kind.name());
        }
        for (name, _) in Named::ALL {
            let text = format(name).unwrap_or_else(|| panic!("`{name}` has no text"));
            assert!(text.contains(&format!("@ {name}\n")) && text.contains("The same as `format("), "{text}");
        }
        for (_, lines) in groups() {
            for (name, summary) in lines {
                assert!(!summary.is_empty(), "`{name}` has no summary");
                assert!(one(&name).is_ok(), "`taffeta doc {name}` finds nothing");
            }
        }
    }
}
