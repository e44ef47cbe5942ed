//! One meaning, many implementations: for every `# taffeta: run` command in the folders of [`all_programs`], the
//! interpreter and CPython with NumPy give the same results. So does C for all sizes, by the command's own schedule or
//! by rules (for every fifth command of the corpus and every second one of the others), and, for one command in twelve,
//! C with the sizes compiled in. C for all sizes as written is compared by `sanitized`.

use crate::case::{Case, Named, differences, save};
use crate::{programs, python};
use itertools::Itertools as _;
use serde_json::json;
use std::path::Path;
use taffeta::Backend;

/// Returns the programs whose commands run to their end.
pub fn all_programs() -> Vec<programs::Program> {
    ["tests/corpus/language", "tests/polybench", "examples", "benches"].into_iter().flat_map(programs::below).collect()
}

fn compare(case: &Case<'_>, what: &str, expected: &[Named], found: Result<Vec<Named>, taffeta::Error>) -> Vec<String> {
    let at = |text: String| format!("{}: {}\n    interpreter and {what}: {text}", case.program.name(), case.command);
    match found {
        Err(e) => vec![at(e.to_string())],
        Ok(found) => differences(expected, &found).into_iter().map(at).collect(),
    }
}

#[test]
fn interpreter_compiled_c_and_numpy_agree() {
    let programs = all_programs();
    let cases: Vec<Case<'_>> =
        programs.iter().flat_map(|p| p.commands.iter().filter_map(move |c| Case::parse(p, c))).collect();
    assert!(cases.len() > 150, "only {} commands found", cases.len());
    let folder = tempfile::tempdir().expect("a temporary folder");

    let numbered: Vec<(usize, &Case<'_>)> = cases.iter().enumerate().collect();
    let outcomes = programs::for_each(&numbered, |(k, case)| {
        let expected = match case.run(Backend::Interp, true) {
            Ok(expected) => expected,
            Err(e) => return (None, vec![format!("{}: {}\n{e}", case.program.name(), case.command)]),
        };
        let mut faults = Vec::new();
        if k % 12 == 1 {
            faults.extend(compare(case, "C for these sizes", &expected, case.run(Backend::C, false)));
        }
        // The corpus is also run by rules for its sizes, by `corpus`.
        let every = if case.program.name().starts_with("tests/corpus/") { 5 } else { 2 };
        if k.is_multiple_of(every) {
            let scheduled = match &case.schedule {
                Some(_) => Case { optimize: k.is_multiple_of(8), ..(*case).clone() },
                None => Case { schedule: Some("auto".into()), optimize: k.is_multiple_of(24), ..(*case).clone() },
            };
            faults.extend(compare(case, "scheduled C", &expected, scheduled.run(Backend::C, true)));
        }
        (Some(manifest(case, &folder.path().join(k.to_string()), &expected)), faults)
    });

    let mut faults = Vec::new();
    let mut manifests = Vec::new();
    for (manifest, found) in outcomes {
        manifests.extend(manifest);
        faults.extend(found);
    }
    let list = folder.path().join("cases.json");
    std::fs::write(&list, serde_json::to_vec(&manifests).expect("JSON")).expect("the list is written");
    if let Some(output) = python::run("tests/numpy/run_cases.py", &[&list]) {
        faults.extend(output.lines().map(str::to_string));
    }
    assert!(faults.is_empty(), "{}\n{} faults in {} commands", faults.join("\n"), faults.len(), cases.len());
}

/// Writes the inputs that NumPy needs to run a case, and the results to compare with, to files; returns their manifest.
fn manifest(case: &Case<'_>, folder: &Path, results: &[Named]) -> serde_json::Value {
    let (function, inputs) = case.compile(Backend::Interp, true).unwrap_or_else(|e| panic!("{e}"));
    let named: Vec<Named> = function.signature().params().map(|p| p.name.clone()).zip_eq(inputs.values).collect();
    let dense = |(name, v): Named| (name, v.dense().expect("inputs of tests are small").0);
    let named: Vec<Named> = named.into_iter().map(dense).collect();
    save(&folder.join("in"), &named);
    save(&folder.join("out"), results);
    let sizes: serde_json::Map<String, serde_json::Value> = function
        .signature()
        .sizes
        .iter()
        .map(|s| s.name.clone())
        .zip_eq(inputs.sizes.iter().map(|v| json!(v)))
        .collect();
    json!({
        "file": case.program.path,
        "name": format!("{}: {}", case.program.name(), case.command),
        "entry": case.entry,
        "inputs": folder.join("in"),
        "results": folder.join("out"),
        "sizes": sizes,
        "statics": case.statics.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
    })
}
