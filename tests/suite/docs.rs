//! The book, executed: every `taffeta` block of `docs/` is a file, and every `console` block is the output of the
//! command line.
//!
//! A `taffeta` block whose first line is `# name.ft` is written to that file; all blocks of one page share a folder. A
//! `console` block holds commands (`$ taffeta …`), each followed by its output (standard output, then standard error), of
//! which lines `…` leave parts out.
//! `UPDATE_EXPECT=1` rewrites the pages. Rust blocks are tested as documentation of the library.
//!
//! The page of the primitives consists of the heads of their files (`schedule/src/primitives/*.md`), whose examples are
//! run too: under each of their schedules the entry computes the same results as without one. A schedule named
//! `refused` must be refused.

use crate::case::{difference, tolerance};
use crate::probed::make_cache;
use crate::programs::FLAGS;
use itertools::Itertools as _;
use rayon::prelude::*;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use taffeta::{Backend, Options, Program};
use taffeta_schedule::Documentation;

/// Page generated from the primitives' files.
const PRIMITIVES: &str = "reference/primitives.md";
/// Page of diagnostic codes, generated from the table in `ast`.
const DIAGNOSTICS: &str = "reference/diagnostics.md";
/// Page generated from the operators' docstrings.
const OPERATORS: &str = "reference/operators.md";
/// Page of formats and kernels, generated from the explanations of lowering (`kernels.rs`).
const KERNELS: &str = "reference/kernels.md";
/// Generated pages.
const GENERATED: [&str; 4] = [PRIMITIVES, DIAGNOSTICS, OPERATORS, KERNELS];

fn pages() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src")];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") && !GENERATED.iter().any(|g| path.ends_with(g)) {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Runs `taffeta` on a command line; returns standard output, then standard error.
fn run(arguments: &str, folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_taffeta"))
        .args(crate::programs::words(arguments))
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .env("OMP_NUM_THREADS", "2")
        .env("TAFFETA_CACHE_DIR", folder.join("cache"))
        .env("CFLAGS", FLAGS)
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    text.push_str(std::str::from_utf8(&output.stderr).unwrap());
    // Editors would lose trailing blanks.
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_string()
}

/// Returns whether the parts between lines `…` are printed, in this order; the first one at the begin, and the last
/// one at the end.
fn are_parts(shown: &[&str], printed: &str) -> bool {
    let printed: Vec<&str> = printed.lines().collect();
    let parts: Vec<&[&str]> = shown.split(|l| *l == "…").collect();
    let mut from = 0;
    for (k, part) in parts.iter().enumerate() {
        let places = match k {
            0 => 0..=0,
            _ if k + 1 == parts.len() => printed.len().saturating_sub(part.len())..=printed.len(),
            _ => from..=printed.len(),
        };
        match places.filter(|at| *at >= from).find(|at| printed[*at..].starts_with(part)) {
            Some(at) => from = at + part.len(),
            None => return false,
        }
    }
    true
}

/// Returns the page with the present output of its commands.
fn rewritten(page: &str, folder: &Path) -> String {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").unwrap();
        let Some(language) = line.strip_prefix("```").filter(|l| !l.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
        match language {
            "taffeta" => {
                let text = block.join("\n") + "\n";
                if let Some(name) = block.first().and_then(|l| l.strip_prefix("# ")).filter(|n| n.ends_with(".ft")) {
                    std::fs::write(folder.join(name), &text).unwrap();
                }
                out.push_str(&text);
            }
            "console" => {
                for (at, command) in block.iter().enumerate().filter_map(|(at, l)| Some((at, l.strip_prefix("$ ")?))) {
                    writeln!(out, "$ {command}").unwrap();
                    let shown: Vec<&str> =
                        block[at + 1..].iter().take_while(|l| !l.starts_with("$ ")).copied().collect();
                    let arguments =
                        command.strip_prefix("taffeta ").unwrap_or_else(|| panic!("not a taffeta command: {command}"));
                    let printed = run(arguments, folder);
                    if shown.contains(&"…") && are_parts(&shown, &printed) {
                        shown.iter().for_each(|l| writeln!(out, "{l}").unwrap());
                    } else if !printed.is_empty() {
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

/// Returns the page as it should be, and writes it to the file if requested; otherwise adds stale pages to the list.
fn current(path: &Path, now: impl FnOnce(&str) -> String, stale: &mut Vec<String>) -> String {
    let page = std::fs::read_to_string(path).unwrap_or_default();
    let now = now(&page);
    if now != page {
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, &now).unwrap();
        } else {
            let first = page.lines().zip(now.lines()).find(|(a, b)| a != b);
            stale.push(format!("{}: {first:?}", path.display()));
        }
    }
    now
}

fn nothing_is_stale(stale: &[String]) {
    assert!(stale.is_empty(), "run with UPDATE_EXPECT=1 and read the difference:\n{}", stale.join("\n"));
}

#[test]
fn every_command_of_the_book_prints_the_shown_output() {
    let stale: Vec<String> = pages()
        .par_iter()
        .flat_map(|path| {
            let (folder, mut stale) = (tempfile::tempdir().unwrap(), Vec::new());
            make_cache(&folder.path().join("cache"), FLAGS);
            current(path, |page| rewritten(page, folder.path()), &mut stale);
            stale
        })
        .collect();
    nothing_is_stale(&stale);
}

/// Returns the primitives that change programs, each with the file of its text.
fn primitives() -> Vec<(Documentation, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schedule/src/primitives");
    let steps = taffeta_schedule::documentation().filter(|d| !d.text.is_empty());
    steps.map(|d| (d, folder.join(format!("{}.md", d.name)))).collect()
}

/// Table 1 of FreeTensor (PLDI 2022), by its groups, with our names.
const TABLE_1: [(&str, &[(&str, &str)]); 5] = [
    (
        "loops",
        &[
            ("split", "split"),
            ("merge", "merge"),
            ("reorder", "reorder"),
            ("fission", "fission"),
            ("fuse", "fuse"),
            ("swap", "swap"),
        ],
    ),
    (
        "parallelizing",
        &[("parallelize", "parallelize"), ("unroll", "unroll"), ("blend", "blend"), ("vectorize", "vectorize")],
    ),
    ("memory hierarchy", &[("cache", "cache"), ("cache_reduce", "cache_reduction"), ("set_mtype", "set_mem_type")]),
    ("memory layout", &[("var_split", "var_split"), ("var_reorder", "var_reorder"), ("var_merge", "var_merge")]),
    ("others", &[("as_lib", "as_lib"), ("separate_tail", "separate_tail")]),
];

/// Builds the page of the primitives: a table of all, then the head of every primitive's file, in the order of the
/// registry.
fn page_of_primitives(steps: &[(Documentation, String)]) -> String {
    let mut out = String::from(
        "# Primitives of schedules\n\nEvery step is proved to keep what the program computes, or refused with the number of \
         the condition that does not\nhold, the two statement instances that would be reordered, and what would work. `L` is a \
         loop, `S` a statement, `T` a\ntensor: selectors or handles. This page is made of the heads of the files in \
         `schedule/src/primitives/`; the examples\nare run by the tests.\n",
    );
    out.push_str("\n| primitive | what it does | in Table 1 of FreeTensor |\n|---|---|---|\n");
    for (d, _) in steps {
        let row = TABLE_1.iter().find_map(|(group, rows)| {
            let (theirs, _) = rows.iter().find(|(_, ours)| *ours == d.name)?;
            Some(if *theirs == d.name { (*group).to_string() } else { format!("{group}, as `{theirs}`") })
        });
        writeln!(out, "| [`{}`](#{}) | {} | {} |", d.name, d.name, d.summary, row.unwrap_or_default()).unwrap();
    }
    for (d, text) in steps {
        write!(out, "\n## {}\n\n`{}`\n\n{}\n\n{}\n", d.name, d.signature, d.summary, text.trim()).unwrap();
    }
    out.push_str("\n## Questions\n\n| | |\n|---|---|\n");
    for d in taffeta_schedule::documentation().filter(|d| d.text.is_empty()) {
        writeln!(out, "| `{}` | {} |", d.signature, d.summary).unwrap();
    }
    out
}

#[test]
fn the_page_of_primitives_is_current() {
    let mut stale = Vec::new();
    let mut steps = Vec::new();
    for (d, path) in primitives() {
        let folder = tempfile::tempdir().unwrap();
        steps.push((d, current(&path, |text| rewritten(text, folder.path()), &mut stale)));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src").join(PRIMITIVES);
    current(&path, |_| page_of_primitives(&steps), &mut stale);
    nothing_is_stale(&stale);
    for (_, ours) in TABLE_1.iter().flat_map(|(_, rows)| *rows) {
        assert!(steps.iter().any(|(d, _)| d.name == *ours), "`{ours}` of Table 1 is missing");
    }
}

/// Builds the page of the operators: families in the order of their files, with the text of their docstrings.
fn page_of_operators() -> String {
    let mut out = String::from(
        "# The operator library\n\nOperators are written in Taffeta (`libop/ops/`), inlined like any function, and visible without an import; a name\nof your own hides them. `taffeta doc NAME` shows one on the command line. This page is made of their docstrings, whose\nexamples are run by the tests.\n",
    );
    for (title, names) in taffeta_libop::families() {
        write!(out, "\n## {}\n", title.trim_end_matches('.')).unwrap();
        for name in names {
            let d = taffeta_libop::document(name).unwrap();
            let (text, example) = d.parts();
            write!(out, "\n### `{}`\n\n{text}\n\n```python\n", d.signature).unwrap();
            for line in example.lines() {
                writeln!(out, "{}", line.strip_prefix("    ").unwrap_or(line)).unwrap();
            }
            out.push_str("```\n");
        }
    }
    out
}

#[test]
fn every_operator_is_in_the_reference() {
    let mut stale = Vec::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src").join(OPERATORS);
    let page = current(&path, |_| page_of_operators(), &mut stale);
    nothing_is_stale(&stale);
    for name in taffeta_libop::names() {
        assert!(page.contains(&format!("\n### `{name}(")), "`{name}` is not in the page of the operators");
    }
}

/// Returns the first picture of a text.
fn picture(text: &str) -> &str {
    let begin = text.find("```text\n").expect("a picture");
    let end = text[begin + 3..].find("```").expect("its end");
    &text[begin..begin + 3 + end]
}

#[test]
fn every_level_has_a_page_with_the_picture_of_its_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let summary = read("docs/src/SUMMARY.md");
    for kind in taffeta_ast::format::LevelKind::ALL {
        let name = kind.name();
        let page = read(&format!("docs/src/reference/levels/{name}.md"));
        let file = read(&format!("structured/src/levels/{name}.rs"));
        let head: Vec<&str> = file.lines().map_while(|l| l.strip_prefix("//!")).collect();
        let head = head.iter().map(|l| l.strip_prefix(' ').unwrap_or(l)).join("\n");
        assert_eq!(picture(&page), picture(&head), "{name}");
        assert!(page.contains("```console\n$ taffeta run "), "{name} has an example");
        assert!(summary.contains(&format!("(reference/levels/{name}.md)")), "{name} is in the summary");
    }
}

/// Builds the page of the codes: every group with its codes, as `taffeta explain` prints them.
fn page_of_diagnostics() -> String {
    let mut out = String::from(
        "# Diagnostics\n\nWhat the code in brackets behind a diagnostic means. `taffeta explain CODE` prints the same, and codes \
         do not\nchange their meaning. This page is made of the files in `ast/src/codes/`.\n",
    );
    for group in taffeta_ast::codes::groups() {
        write!(out, "\n## {}\n", group.title).unwrap();
        if !group.introduction.is_empty() {
            write!(out, "\n{}\n", group.introduction).unwrap();
        }
        for code in group.codes {
            write!(out, "\n### {}\n\n{}\n", code.name, code.text).unwrap();
        }
    }
    out
}

#[test]
fn the_page_of_diagnostics_is_current() {
    let mut stale = Vec::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src").join(DIAGNOSTICS);
    current(&path, |_| page_of_diagnostics(), &mut stale);
    nothing_is_stale(&stale);
}

/// Returns the text of a primitive's example, after checking that it uses the primitive and that its scheduled program
/// is shown.
fn example(d: &Documentation, path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let head = format!("```taffeta\n# {}.ft\n", d.name);
    let start = text.find(&head).unwrap_or_else(|| panic!("{}: no example {head}", path.display()));
    let block: String = text[start..].lines().skip(1).take_while(|l| *l != "```").map(|l| format!("{l}\n")).collect();
    assert!(block.contains(&format!("s.{}(", d.name)), "the example of {} does not use it", d.name);
    assert!(text.contains(&format!("\n$ taffeta show {}.ft", d.name)), "the example of {} is not shown", d.name);
    block
}

/// Returns the primitives' names, each with the text of its example.
pub fn examples() -> Vec<(&'static str, String)> {
    primitives().iter().map(|(d, path)| (d.name, example(d, path))).collect()
}

/// Collects the schedules of a program, each with its entry.
pub fn schedules(text: &str) -> Vec<(String, String)> {
    let name = |l: &str, before: &str| l.strip_prefix(before)?.split('(').next().map(str::to_string);
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter_map(|l| {
        let entry = l[0].strip_prefix("@schedule(")?.strip_suffix(')')?.to_string();
        Some((entry, name(l[1], "def ")?))
    });
    pairs.collect()
}

/// Runs an entry under a schedule on small integers at these sizes; returns parameters and results.
fn outcome(
    program: &Program,
    entry: &str,
    schedule: &str,
    backend: Backend,
    size: i64,
) -> Result<Vec<taffeta_ast::Value>, String> {
    let options = Options::default().optimize(false).schedule(schedule).backend(backend);
    let function = program.compile(entry, &options).map_err(|e| e.to_string())?;
    let signature = function.signature();
    let sizes: Vec<_> = signature.sizes.iter().enumerate().map(|(k, s)| (s.name.clone(), size + k as i64)).collect();
    let given: Vec<_> = signature.params().map(|p| (p.name.clone(), "randint(-4,5)".to_string())).collect();
    let inputs = taffeta::inputs::read(signature, &given, &sizes).map_err(|f| f[0].diagnostic.to_string())?;
    let ran = function.run(inputs.values, &inputs.sizes, 2).map_err(|e| e.to_string())?;
    Ok(ran.params.into_iter().chain(ran.results).collect())
}

#[test]
fn examples_of_primitives_compute_the_same_under_their_schedules() {
    let check = |(d, path): &(Documentation, PathBuf)| {
        let text = example(d, path);
        let program = Program::from_source(&format!("{}.ft", d.name), &text).unwrap_or_else(|e| panic!("{e}"));
        let all = schedules(&text);
        assert!(all.iter().any(|(_, s)| s != "refused"), "the example of {} has no schedule", d.name);
        for (entry, schedule) in all {
            if schedule == "refused" {
                let options = Options::default().schedule(schedule.as_str());
                let refusal = program.scheduled(&entry, &options).err().map(|e| e.to_string()).unwrap_or_default();
                assert!(refusal.contains("schedule::"), "{}: {entry} is not refused: {refusal}", d.name);
                continue;
            }
            for size in [1, 5, 24] {
                let before = outcome(&program, &entry, "none", Backend::Interp, size).unwrap_or_else(|e| panic!("{e}"));
                let after = outcome(&program, &entry, &schedule, Backend::C, size)
                    .unwrap_or_else(|e| panic!("{}: {entry} under {schedule}: {e}", d.name));
                for (x, y) in before.iter().zip_eq(&after) {
                    let apart = difference(x, y, tolerance(x.dtype()));
                    assert_eq!(apart, None, "{}: {entry} under {schedule} at {size}", d.name);
                }
            }
        }
    };
    crate::programs::for_each(&primitives(), check);
}

/// Checks that the chapter on scheduling quotes the example's text.
#[test]
fn the_chapter_on_scheduling_quotes_the_example() {
    let read = |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (chapter, example) = (read("docs/src/matmul.md"), read("examples/matmul/matmul.ft"));
    let program = &example[example.find("def matmul").unwrap()..];
    assert!(
        chapter.contains(program.trim_end()),
        "copy examples/matmul/matmul.ft from `def matmul` into docs/src/matmul.md"
    );
}
