//! Cycles of files: in no crate do more than three files depend on each other, so that each can be read after those it
//! uses. Paths count (`use`, `crate::…`, `super::…`), not calls of methods: a type may have its methods in many files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Path of a module inside of its crate; empty for the root.
type Module = Vec<String>;

/// Largest cycle of files without a reason.
const MAX_CYCLE: usize = 3;

/// Crates by their folders.
const CRATES: [&str; 9] =
    ["ast", "analysis", "frontend", "schedule", "autodiff", "structured", "codegen", "testkit", "."];

/// Folders whose files may form one cycle, with the reason.
const ALLOWED: [(&str, &str, &str); 1] =
    [("frontend", "elaborate", "the files are methods of one type, which evaluates expressions, statements and calls")];

/// Returns the modules of a crate with their text, without comments and unit tests.
fn modules(src: &Path) -> BTreeMap<Module, String> {
    let mut out = BTreeMap::new();
    collect(src, src, &mut out);
    out
}

fn collect(src: &Path, dir: &Path, out: &mut BTreeMap<Module, String>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(src, &path, out);
            continue;
        }
        if path.extension().is_none_or(|e| e != "rs") || path.file_name().is_some_and(|n| n == "tests.rs") {
            continue;
        }
        let relative = path.strip_prefix(src).expect("a file of the crate").with_extension("");
        let mut module: Module = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| ["mod", "lib"].contains(&last.as_str())) {
            module.pop();
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let code: Vec<&str> = text.lines().map(|l| l.split("//").next().unwrap_or_default()).collect();
        // A visibility names a module without using it.
        let mut parts = code.join("\n");
        while let Some(at) = parts.find("pub(in ") {
            let end = parts[at..].find(')').map_or(parts.len(), |end| at + end + 1);
            parts.replace_range(at..end, "pub");
        }
        out.insert(module, parts.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_string());
    }
}

/// Returns the paths that a text mentions: those of `use` items one by one, and those in code.
fn paths(code: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let before = rest[..at].chars().next_back();
        let item = &rest[at + 4..];
        let end = item.find(';').unwrap_or(item.len());
        if before.is_none_or(char::is_whitespace) {
            listed("", &item[..end], &mut out);
        }
        rest = &item[end.min(item.len())..];
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    // `super::` alone begins a list of a `use` item.
    let words = code.split(|c: char| !is_part(c)).filter(|word| word.contains("::") && !word.ends_with("::"));
    out.extend(words.map(str::to_string));
    out
}

/// Expands `a::{b, c::{d}}` to `a::b` and `a::c::d`.
fn listed(prefix: &str, item: &str, out: &mut Vec<String>) {
    let (mut depth, mut start) = (0, 0);
    let ends = item.char_indices().chain([(item.len(), ',')]);
    for (k, c) in ends {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let one = item[start..k].trim();
                start = k + 1;
                match one.split_once('{') {
                    Some((head, list)) => {
                        let list = list.trim_end().strip_suffix('}').unwrap_or(list);
                        listed(&format!("{prefix}{}", head.trim()), list, out);
                    }
                    None if one.is_empty() => {}
                    None => out.push(format!("{prefix}{}", one.split(" as ").next().unwrap_or_default().trim())),
                }
            }
            _ => {}
        }
    }
}

/// Returns the module that a path in a module begins with, the longest there is.
fn target(all: &BTreeMap<Module, String>, here: &Module, path: &str) -> Option<Module> {
    let parts: Vec<&str> = path.split("::").filter(|p| !p.is_empty()).collect();
    let ups = parts.iter().take_while(|p| **p == "super").count();
    let (base, rest): (Module, &[&str]) = match parts.first()? {
        &"crate" => (Module::new(), &parts[1..]),
        &"self" => (here.clone(), &parts[1..]),
        &"super" => (here[..here.len().checked_sub(ups)?].to_vec(), &parts[ups..]),
        first => {
            let child: Module = here.iter().cloned().chain([first.to_string()]).collect();
            if !all.contains_key(&child) {
                return None;
            }
            (here.clone(), &parts[..])
        }
    };
    (0..=rest.len()).rev().find_map(|k| {
        let module: Module = base.iter().cloned().chain(rest[..k].iter().map(ToString::to_string)).collect();
        all.contains_key(&module).then_some(module)
    })
}

/// Returns the modules that a module reaches.
fn reached(edges: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = left.pop() {
        left.extend(edges[&module].iter().filter(|next| seen.insert((*next).clone())).cloned());
    }
    seen
}

/// Returns the cycles of a crate's files, the largest ones first.
fn cycles(src: &Path) -> Vec<Vec<String>> {
    let all = modules(src);
    let uses = |here: &Module, code: &str| -> BTreeSet<Module> {
        paths(code).iter().filter_map(|path| target(&all, here, path)).filter(|other| other != here).collect()
    };
    let edges: BTreeMap<Module, BTreeSet<Module>> =
        all.iter().map(|(here, code)| (here.clone(), uses(here, code))).collect();
    let reach: BTreeMap<&Module, BTreeSet<Module>> = edges.keys().map(|m| (m, reached(&edges, m))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for module in edges.keys() {
        let cycle: Vec<String> = reach[module]
            .iter()
            .filter(|other| reach[other].contains(module))
            .map(|m| if m.is_empty() { "lib".to_string() } else { m.join("::") })
            .collect();
        if !cycle.is_empty() {
            found.insert(cycle);
        }
    }
    let mut found: Vec<Vec<String>> = found.into_iter().collect();
    found.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
    found
}

#[test]
fn cycles_of_files_are_small() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut allowed = Vec::new();
    for name in CRATES {
        for cycle in cycles(&root.join(name).join("src")) {
            if cycle.len() <= MAX_CYCLE {
                continue;
            }
            let folder = ALLOWED.iter().find(|(of, folder, _)| {
                let inside = |m: &&String| m.starts_with(&format!("{folder}::")) || *m == folder;
                *of == name && cycle.iter().filter(|m| !inside(m)).count() <= 1
            });
            match folder {
                Some(reason) => allowed.push(reason),
                None => panic!("{} files of `{name}` depend on each other: {}", cycle.len(), cycle.join(", ")),
            }
        }
    }
    assert_eq!(allowed.len(), ALLOWED.len(), "an allowed cycle no longer exists");
}

#[test]
fn cycles_are_found() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::{A, b as other};\n"),
        ("a.rs", "use crate::b::{B, self};\n// use crate::c::C;\n"),
        ("b.rs", "pub struct B;\nfn f() { super::c::g() }\n"),
        ("c.rs", "use super::{a::A};\n#[cfg(test)]\nmod tests { use crate::D; }\n"),
    ];
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).expect("a file");
    }
    assert_eq!(cycles(dir.path()), [["a", "b", "c"]]);
}
