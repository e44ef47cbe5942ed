//! The table of diagnostic codes (`ast/src/codes`) against the sources: every code in use is explained, and every
//! explained code is in use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use taffeta_ast::codes;

/// Collects the Rust files of the crates, except those of tests.
fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = ["", "ast", "frontend", "analysis", "schedule", "autodiff", "structured", "codegen", "libop"];
    let mut folders: Vec<PathBuf> = crates.iter().map(|c| root.join(c).join("src")).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            match path.is_dir() {
                true if name != "tests" => folders.push(path),
                false if name.ends_with(".rs") && name != "tests.rs" => files.push(path),
                _ => {}
            }
        }
    }
    files
}

/// Returns whether the content of a string is a code: `area::problem`.
fn is_code(text: &str) -> bool {
    let word = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase() || "_-".contains(c));
    text.split_once("::").is_some_and(|(area, problem)| word(area) && word(problem))
}

/// Collects the codes passed where diagnostics are created, whatever they look like.
fn made(text: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| c.is_ascii_lowercase() || "_-:".contains(c);
    ["Diagnostic::new(", ".error(", ".error_help("].into_iter().flat_map(move |call| {
        let calls = text.split(call).skip(1);
        let first = calls.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split_once('"'));
        first.map(|(code, _)| code).filter(move |code| !code.is_empty() && code.chars().all(word))
    })
}

/// Collects the codes in the sources, each with a file.
fn used() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        // Tests at the end of a file may use any code.
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let codes = text.split('"').filter(|s| is_code(s)).chain(made(text));
        found.extend(codes.map(|c| (c.to_string(), path.clone())));
    }
    found
}

#[test]
fn every_code_is_explained() {
    let missing: Vec<String> = used()
        .into_iter()
        .filter(|(code, _)| codes::explain(code).is_none())
        .map(|(code, path)| format!("{code} ({})", path.display()))
        .collect();
    assert!(missing.is_empty(), "explain these in ast/src/codes:\n{}", missing.join("\n"));
}

#[test]
fn every_explained_code_is_used() {
    let used = used();
    assert!(used.len() > 200, "only {} codes were found", used.len());
    let unused: Vec<&str> =
        codes::groups().flat_map(|g| g.codes).map(|c| c.name).filter(|c| !used.contains_key(*c)).collect();
    assert!(unused.is_empty(), "no source reports {unused:?}");
}
