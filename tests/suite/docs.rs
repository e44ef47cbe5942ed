//! The book is run: every `weft` block of `docs/` is a file, and every `console` block is what the command line prints.
//!
//! A `weft` block whose first line is `# name.ft` is written to that file; all blocks of one page share a folder. A `console`
//! block holds commands (`$ weft …`), each followed by what it prints (standard output, then standard error).
//! `UPDATE_EXPECT=1` rewrites the pages. Rust blocks are tested as documentation of the library.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn pages() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src")];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// What `weft` prints for the rest of a command line: standard output, then standard error.
fn run(arguments: &str, folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .env("WEFT_CACHE_DIR", folder.join("cache"))
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    text.push_str(std::str::from_utf8(&output.stderr).unwrap());
    // Trailing blanks would be lost by editors.
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_string()
}

/// The page as it should be, with what its commands print now.
fn rewritten(page: &str, folder: &Path) -> String {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").unwrap();
        let Some(language) = line.strip_prefix("```").filter(|l| !l.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
        match language {
            "weft" => {
                let text = block.join("\n") + "\n";
                if let Some(name) = block.first().and_then(|l| l.strip_prefix("# ")).filter(|n| n.ends_with(".ft")) {
                    std::fs::write(folder.join(name), &text).unwrap();
                }
                out.push_str(&text);
            }
            "console" => {
                for command in block.iter().filter_map(|l| l.strip_prefix("$ ")) {
                    writeln!(out, "$ {command}").unwrap();
                    let arguments =
                        command.strip_prefix("weft ").unwrap_or_else(|| panic!("not a weft command: {command}"));
                    let printed = run(arguments, folder);
                    if !printed.is_empty() {
                        writeln!(out, "{printed}").unwrap();
                    }
                }
            }
            _ => block.iter().for_each(|l| writeln!(out, "{l}").unwrap()),
        }
        out.push_str("```\n");
    }
    out
}

#[test]
fn every_command_of_the_book_prints_what_the_book_says() {
    let mut stale = Vec::new();
    for path in pages() {
        let folder = tempfile::tempdir().unwrap();
        let page = std::fs::read_to_string(&path).unwrap();
        let now = rewritten(&page, folder.path());
        if now != page {
            if std::env::var_os("UPDATE_EXPECT").is_some() {
                std::fs::write(&path, now).unwrap();
            } else {
                let first = page.lines().zip(now.lines()).find(|(a, b)| a != b);
                stale.push(format!("{}: {first:?}", path.display()));
            }
        }
    }
    assert!(stale.is_empty(), "run with UPDATE_EXPECT=1 and read the difference:\n{}", stale.join("\n"));
}

/// The page of the primitives: the head of every primitive's file, in the order of the registry.
fn primitives() -> String {
    let mut out = String::from(
        "# Primitives of schedules\n\nEvery step is proved to keep what the program computes, or refused with the number of the condition that does not hold, the two\nstatement instances that would be reordered, and what would work. `L` is a loop, `S` a statement, `T` a tensor: selectors or handles.\nThis page is made of the heads of the files in `schedule/src/primitives/`.\n",
    );
    let all: Vec<_> = weft_schedule::documentation().collect();
    let (steps, questions): (Vec<_>, Vec<_>) = all.into_iter().partition(|d| !d.text.is_empty());
    for d in steps {
        write!(out, "\n## {}\n\n`{}`\n\n{}\n\n{}\n", d.name, d.signature, d.summary, d.text.trim()).unwrap();
    }
    out.push_str("\n## Questions\n\n| | |\n|---|---|\n");
    for d in questions {
        writeln!(out, "| `{}` | {} |", d.signature, d.summary).unwrap();
    }
    out
}

#[test]
fn the_page_of_primitives_is_made_of_their_files() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/reference/primitives.md");
    let now = primitives();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap_or_default() == now, "run with UPDATE_EXPECT=1");
}
