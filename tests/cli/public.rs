//! The command line's dependence on the library's public interface alone, as the head of `src/cli/mod.rs` says.

use std::path::Path;

#[test]
fn the_command_line_uses_only_the_public_interface() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(root.join("cli")).unwrap().map(|e| e.unwrap().path());
    for path in files.chain([root.join("main.rs")]) {
        let text = std::fs::read_to_string(&path).unwrap();
        for (k, line) in text.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//")) {
            let crates = ["ast", "frontend", "analysis", "schedule", "autodiff", "structured", "codegen", "libop"];
            let inside = crates.iter().any(|c| line.contains(&format!("taffeta_{c}::")));
            assert!(!inside && !line.contains("pipeline::"), "{}:{}: {line}", path.display(), k + 1);
        }
    }
}
