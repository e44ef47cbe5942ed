//! Layers of this crate: the tree, its constructors and everything else do not depend on the interpreter, which comes
//! last, together with the random programs that it runs.

use std::path::Path;

/// Collects the sources of a folder, with their paths in the crate.
fn sources(folder: &Path, out: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the crate") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push((path.display().to_string(), std::fs::read_to_string(&path).expect("a source")));
        }
    }
}

#[test]
fn only_random_programs_use_the_interpreter() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    sources(&root, &mut all);
    let uses = |text: &str| {
        let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
        code.filter(|l| l.contains("interp::") || l.contains("use crate::{") && l.contains("interp")).count()
    };
    let of = |folder: &str| all.iter().filter(|(p, _)| p.contains(&format!("src/{folder}/"))).collect::<Vec<_>>();
    // The search finds the known uses.
    assert!(of("random").iter().any(|(_, text)| uses(text) > 0));
    for (path, text) in &all {
        let later = of("interp").iter().chain(&of("random")).any(|(p, _)| p == path);
        assert!(later || uses(text) == 0, "{path} uses the interpreter");
    }
}
