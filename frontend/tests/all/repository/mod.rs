//! Checks that every program of the repository elaborates, is valid, and prints as a program that elaborates to the
//! same tree.

mod library;
mod mutations;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taffeta_ast::{Func, func, print, validate};
use taffeta_frontend::{Loader, NoHooks, Program, Source};

/// Loader of the operator library and of modules from the working tree.
struct Tree {
    library: BTreeMap<String, PathBuf>,
    schedules: BTreeMap<String, PathBuf>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

impl Tree {
    fn new() -> Tree {
        Tree { library: definitions("libop/ops"), schedules: definitions("libop/schedules") }
    }
}

/// Returns the names that the files of a folder define, each with its file.
fn definitions(folder: &str) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root().join(folder)).expect("libop is beside") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("text");
        for line in text.lines() {
            if let Some((name, _)) = line.strip_prefix("def ").and_then(|l| l.split_once('(')) {
                found.insert(name.to_string(), path.clone());
            }
        }
    }
    found
}

fn source(name: String, path: &Path) -> Result<Source, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    Ok(Source { name, path: Some(path.to_path_buf()), text: Arc::from(text) })
}

impl Loader for Tree {
    fn load(&self, module: &str, importing: Option<&Path>) -> Result<Source, String> {
        let path = importing.and_then(Path::parent).unwrap_or(Path::new(".")).join(format!("{module}.ft"));
        source(path.display().to_string(), &path)
    }

    fn prelude(&self, name: &str) -> Option<Source> {
        let path = self.library.get(name)?;
        source(format!("<libop>/{}", path.file_name()?.to_str()?), path).ok()
    }

    fn prelude_names(&self) -> Vec<String> {
        self.library.keys().filter(|n| !n.starts_with('_')).cloned().collect()
    }

    fn schedule(&self, name: &str) -> Option<Source> {
        let path = self.schedules.get(name)?;
        source(format!("<libop>/schedules/{}", path.file_name()?.to_str()?), path).ok()
    }

    fn schedule_names(&self) -> Vec<String> {
        self.schedules.keys().cloned().collect()
    }
}

fn programs(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            programs(&path, out);
        } else if path.extension().is_some_and(|e| e == "ft") {
            out.push(path);
        }
    }
}

fn describe(program: &Program, found: &taffeta_ast::Diagnostics) -> String {
    let one = |d: &taffeta_ast::Diagnostic| {
        let mut places = String::new();
        for l in &d.labels {
            places += &format!(
                "\n    {} {} {}",
                program.sources().locate(l.span),
                l.text,
                program.sources().line_text(l.span)
            );
        }
        format!("[{}] {}{places}\n    {}\n", d.code, d.message, d.notes.join("; "))
    };
    found.0.iter().map(one).collect()
}

/// Validates an elaborated entry, prints it and elaborates it again; returns the first problem.
fn problem(name: &str, f: &Func) -> Option<String> {
    if let Err(e) = validate::logical(f) {
        return Some(format!("{name}: not valid: {e:?}\n{}", print::func(f)));
    }
    let text = print::func(f);
    let again = Program::load(Source::inline("printed.ft", text.clone()), &taffeta_frontend::NoLoader);
    match again.elaborate(&f.name, &BTreeMap::new(), &NoHooks) {
        Err(found) => {
            Some(format!("{name}: the printed tree does not elaborate:\n{text}\n{}", describe(&again, &found)))
        }
        Ok(g) if func::same(f, &g) => None,
        Ok(g) => Some(format!("{name}: printed and parsed it differs:\n{text}\n----\n{}", print::func(&g))),
    }
}

/// Returns whether the diagnostic is only about gradients, which another crate implements: entries that use them are
/// printed and read again in `tests/suite/gradients.rs`.
fn needs_gradients(d: &taffeta_ast::Diagnostic) -> bool {
    d.code == "unsupported" && d.message == "gradients are not supported yet"
}

#[test]
fn every_program_elaborates_and_round_trips() {
    let tree = Tree::new();
    let mut files = Vec::new();
    for folder in ["examples", "tests/polybench", "tests/corpus/language", "tests/corpus/runtime"] {
        programs(&root().join(folder), &mut files);
    }
    files.sort();
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files.iter().filter(|p| p.display().to_string().contains(&only)) {
        let Ok(main) = source(path.display().to_string(), path) else { continue };
        let program = Program::load(main, &tree);
        let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        if !program.diagnostics().is_empty() {
            let found = taffeta_ast::Diagnostics(program.diagnostics().to_vec());
            wrong.push(format!("{shown}: {}", describe(&program, &found)));
            continue;
        }
        // Without hooks there are neither gradients nor schedules; warnings are allowed.
        let stops =
            |d: &taffeta_ast::Diagnostic| d.code != "unsupported" && d.severity == taffeta_ast::diag::Severity::Error;
        let found: Vec<_> = program.check(&NoHooks).into_iter().filter(stops).collect();
        if !found.is_empty() {
            wrong.push(format!("{shown}: {}", describe(&program, &taffeta_ast::Diagnostics(found))));
        }
        for entry in program.entries() {
            if entry.gradient_of.is_some() || entry.params.iter().any(|p| p.is_static && p.default.is_none()) {
                continue;
            }
            count += 1;
            let name = format!("{shown} {}", entry.name);
            match program.elaborate(&entry.name, &BTreeMap::new(), &NoHooks) {
                Ok(f) => wrong.extend(problem(&name, &f)),
                Err(found) if found.0.iter().all(needs_gradients) => count -= 1,
                Err(found) => wrong.push(format!("{name}: {}", describe(&program, &found))),
            }
        }
    }
    assert!(!only.is_empty() || count > 30, "only {count} entries were found");
    assert!(wrong.is_empty(), "{} of {count} entries:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the examples in the operators' docstrings: the lines from `Example:` to the first `>>>`.
fn examples(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "Example:" {
            let code: Vec<&str> = lines.by_ref().take_while(|l| !l.trim_start().starts_with(">>>")).collect();
            let indent = code.iter().filter(|l| !l.trim().is_empty()).map(|l| l.len() - l.trim_start().len()).min();
            let dedent = |l: &&str| l.get(indent.unwrap_or(0)..).unwrap_or("").to_string() + "\n";
            out.push(code.iter().map(dedent).collect());
        }
    }
    out
}

#[test]
fn every_operator_of_the_library_elaborates() {
    let tree = Tree::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("libop/ops")).expect("libop is beside") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("text");
        for code in examples(&text) {
            count += 1;
            let program = Program::load(Source::inline("example.ft", code.clone()), &tree);
            let name = path.file_name().map(|n| n.to_string_lossy().to_string()).unwrap_or_default();
            match program.elaborate("example", &BTreeMap::new(), &NoHooks) {
                Ok(f) => wrong.extend(problem(&name, &f)),
                Err(found) => wrong.push(format!("{name}: {}\n{code}", describe(&program, &found))),
            }
        }
    }
    assert!(count > 40, "only {count} examples were found");
    assert!(wrong.is_empty(), "{} of {count} examples:\n{}", wrong.len(), wrong.join("\n"));
}
