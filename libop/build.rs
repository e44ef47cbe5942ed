//! Lists the operators: every `ops/*.ft`, and every name that a file defines at its top level.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=ops");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let folder = Path::new(&here).join("ops");
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("libop/ops can be read")
        .map(|entry| entry.expect("libop/ops can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "ft"))
        .collect();
    paths.sort();

    let mut files = String::new();
    let mut names = Vec::new();
    for (k, path) in paths.iter().enumerate() {
        let text = fs::read_to_string(path).expect("an operator's file is text");
        let file = path.file_name().and_then(|f| f.to_str()).expect("an operator's file has a plain name");
        writeln!(files, "    ({file:?}, include_str!({:?})),", path.display()).expect("a string takes text");
        names.extend(definitions(&text).map(|name| (name.to_string(), k)));
    }
    names.sort();
    for pair in names.windows(2) {
        assert!(pair[0].0 != pair[1].0, "libop defines `{}` twice", pair[0].0);
    }
    let names: String = names.iter().map(|(name, k)| format!("    ({name:?}, {k}),\n")).collect();
    let table = format!(
        "/// Every file, with its text.\nconst FILES: &[(&str, &str)] = &[\n{files}];\n\
         /// Every name, sorted, with the number of its file.\nconst NAMES: &[(&str, usize)] = &[\n{names}];\n"
    );
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("table.rs"), table).expect("OUT_DIR can be written");
}

/// Names of the functions at the top level of a file.
fn definitions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next())
}
