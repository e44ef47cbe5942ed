//! Layers of this crate: its modules stand in one order, in which each uses only those before it.

use std::collections::BTreeMap;
use std::path::Path;

/// Modules, from data and facts to the crate's root; `reverse` is a folder.
const ORDER: [&str; 30] = [
    "memory",
    "request",
    "data",
    "build",
    "names",
    "extent",
    "facts",
    "partials",
    "custom_vjp",
    "activity",
    "expression",
    "precision",
    "name_subexpressions",
    "recompute_policy",
    "invert",
    "value_sources",
    "residuals",
    "reverse",
    "check",
    "cleanup",
    "copies",
    "program",
    "patterns",
    "checkpointing",
    "plan",
    "explain",
    "forward",
    "jacobian",
    "pair",
    "lib",
];

/// Returns the text of a file without its comments.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|l| l.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the modules named in `crate::…` paths: `crate::a`, `crate::{a, b::{self, C}}`.
fn used(code: &str) -> Vec<String> {
    let word = |s: &str| s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut out = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        // `pub(crate)` is not a path, nor is the end of another name.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + path.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            out.push(word(rest));
            continue;
        };
        let (mut depth, mut start) = (0, true);
        for (k, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && !c.is_whitespace() => {
                    out.push(word(&list[k..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    out
}

/// Returns the text of every module; the files of a folder are one module.
fn modules() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for entry in std::fs::read_dir(&root).expect("the sources").map(|e| e.expect("an entry").path()) {
        let name = entry.file_stem().expect("a name").to_string_lossy().into_owned();
        if entry.is_dir() {
            for file in std::fs::read_dir(&entry).expect("a folder").map(|e| e.expect("an entry").path()) {
                all.entry(name.clone()).or_default().push_str(&code(&file));
            }
        } else {
            all.entry(name).or_default().push_str(&code(&entry));
        }
    }
    all
}

#[test]
fn module_paths_are_parsed() {
    let text = "use crate::a::{B, c};\nuse crate::{d, e::{self, F}, g};\nfn f() { crate::h::i(); xcrate::j }";
    assert_eq!(used(text), ["a", "d", "e", "g", "h"]);
}

#[test]
fn no_module_uses_a_later_one() {
    let modules = modules();
    let position = |m: &str| ORDER.iter().position(|o| *o == m);
    let mut edges = 0;
    for (name, text) in &modules {
        let here = position(name).unwrap_or_else(|| panic!("`{name}` has no place in the order"));
        for other in used(text) {
            let there = position(&other).unwrap_or_else(|| panic!("`{name}` uses `{other}`, which is not a module"));
            assert!(there < here, "`{name}` uses `{other}`, which comes after it");
            edges += 1;
        }
    }
    assert!(edges > 50, "only {edges} uses were found");
    let missing: Vec<&&str> = ORDER.iter().filter(|o| !modules.contains_key(**o)).collect();
    assert!(missing.is_empty(), "no such modules: {missing:?}");
}

#[test]
fn the_builder_of_backward_passes_has_no_public_fields() {
    let text = code(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reverse/mod.rs"));
    let at = text.find("struct Reverse<").expect("the struct");
    let fields = &text[at..at + text[at..].find("\n}").expect("its end")];
    assert!(!text[..at].ends_with("pub(crate) ") && !fields.contains("pub"), "{fields}");
}
