//! Generates the table of the library: every `ops/*.ft`, `schedules/*.ft` and `formats/*.ft`, and the names that each
//! file defines at its top level: functions, or formats.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let mut table = String::new();
    let mut all = BTreeSet::new();
    let folders = [
        ("ops", "", "", functions as fn(&str) -> Vec<&str>),
        ("schedules", "schedules/", "SCHEDULE_", functions),
        ("formats", "formats/", "FORMAT_", formats),
    ];
    for (folder, prefix, constant, defined) in folders {
        println!("cargo::rerun-if-changed={folder}");
        let mut files = String::new();
        let mut names = Vec::new();
        for (k, path) in sources(folder).iter().enumerate() {
            let text = fs::read_to_string(path).expect("a file of the library is text");
            let file = path.file_name().and_then(|f| f.to_str()).expect("a file of the library has a plain name");
            let file = format!("{prefix}{file}");
            writeln!(files, "    ({file:?}, include_str!({:?})),", path.display()).expect("a string takes text");
            names.extend(defined(&text).into_iter().map(|name| (name.to_string(), k)));
        }
        names.sort();
        for (name, _) in &names {
            assert!(all.insert(name.clone()), "libop defines `{name}` twice");
        }
        let names: String = names.iter().map(|(name, k)| format!("    ({name:?}, {k}),\n")).collect();
        writeln!(
            table,
            "/// Every file of `{folder}`, with its text.\nconst {constant}FILES: &[(&str, &str)] = &[\n{files}];\n\
             /// Every name of `{folder}`, sorted, with the number of its file.\n\
             const {constant}NAMES: &[(&str, usize)] = &[\n{names}];"
        )
        .expect("a string takes text");
    }
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("table.rs"), table).expect("OUT_DIR can be written");
}

/// Returns the files of a folder, sorted.
fn sources(folder: &str) -> Vec<PathBuf> {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let mut paths: Vec<_> = fs::read_dir(Path::new(&here).join(folder))
        .expect("the library's folders can be read")
        .map(|entry| entry.expect("the library's folders can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "ft"))
        .collect();
    paths.sort();
    paths
}

/// Returns the names of the functions at the top level of a file.
fn functions(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next()).collect()
}

/// Returns the names of the formats of a file.
fn formats(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once(" = format(").map(|(name, _)| name)).collect()
}
