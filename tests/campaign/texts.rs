//! Texts of every kind: neither the parser nor elaboration panics, and accepted programs are valid.

use crate::{Finding, panic_text};
use std::collections::BTreeMap;
use std::path::Path;
use taffeta::Program;
use taffeta_ast::span::FileId;
use taffeta_ast::validate;
use taffeta_frontend::NoHooks;
use taffeta_frontend::parse::parse;
use testkit::{mutate, texts};

/// Parses random characters, tokens or edits; returns the fault: a panic, or a span outside of the text.
pub fn parser(seed: u64) -> Option<Finding> {
    let text = match seed % 4 {
        0 => texts::noise(seed),
        1 | 2 => texts::soup(seed),
        _ => texts::mutant(seed),
    };
    let place = |span: taffeta_ast::Span| text.get(span.start as usize..span.end as usize);
    let outside = std::panic::catch_unwind(|| {
        let labels = parse(&text, FileId(0)).1.into_iter().flat_map(|d| d.labels);
        labels.filter(|l| place(l.span).is_none()).map(|l| format!("{:?} is not a part of the text", l.span)).next()
    });
    about(outside, &text)
}

/// Returns the finding about a text, if any; a panic is one.
fn about(found: std::thread::Result<Option<String>>, text: &str) -> Option<Finding> {
    let what = found.unwrap_or_else(|panic| Some(panic_text(&*panic)))?;
    Some(Finding { what, files: vec![("ft", text.as_bytes().to_vec())] })
}

/// Returns the sources of the programs in the repository.
pub fn sources() -> Vec<String> {
    let mut folders: Vec<_> =
        ["examples", "tests/polybench", "tests/corpus"].map(|f| Path::new(env!("CARGO_MANIFEST_DIR")).join(f)).into();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of programs").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ft") {
                files.push(path);
            }
        }
    }
    files.sort();
    // A few files of the corpus are deliberately not text.
    files.iter().filter_map(|f| std::fs::read_to_string(f).ok()).filter(|text| text.contains("def ")).collect()
}

/// Elaborates a program with random mistakes; returns the fault: a panic, or an invalid function.
pub fn mutant(seed: u64, sources: &[String]) -> Option<Finding> {
    let mut random = mutate::Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let text = mutate::mutate(&sources[random.below(sources.len())], &mut random);
    let elaborated = std::panic::catch_unwind(|| {
        let program = Program::from_source("mutant.ft", &text).ok()?;
        program.entries().iter().find_map(|entry| {
            let func = program.front().elaborate(&entry.name, &BTreeMap::new(), &NoHooks).ok()?;
            validate::logical(&func).err().map(|e| format!("{}: not valid: {e:?}", entry.name))
        })
    });
    about(elaborated, &text)
}
