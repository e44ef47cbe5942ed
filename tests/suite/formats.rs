//! Random programs on structured tensors in NumPy, which knows no formats: a fixed batch, on finite values, agrees with
//! the interpreter.

use crate::case::{Named, save};
use crate::python;
use itertools::Itertools as _;
use serde_json::json;
use taffeta_ast::interp;
use testkit::cases::program::Kind;
use testkit::cases::tried::prepared;
use testkit::cases::{Case, case, kernels};

const SEEDS: std::ops::Range<u64> = 50_000..50_090;

/// Writes a program with its tensors and results to files; returns `None` if NumPy cannot decide the case or the run
/// fails.
fn written(case: &Case, folder: &std::path::Path) -> Option<serde_json::Value> {
    let prepared = prepared(case).unwrap_or_else(|e| panic!("seed {}: {e}", case.seed));
    let out = interp::run(&prepared.func, &prepared.inputs).ok().filter(|_| case.kind != Kind::Any)?;
    let at = folder.join(case.seed.to_string());
    let inputs =
        case.params.iter().zip_eq(&prepared.given).map(|(p, g)| -> Named { (p.name.clone(), g.dense.clone()) });
    let results = case.results.iter().zip_eq(out.results).map(|(r, v)| -> Named { (r.name.clone(), v) });
    save(&at.join("in"), &inputs.collect::<Vec<_>>());
    save(&at.join("out"), &results.collect::<Vec<_>>());
    let file = at.join("random.ft");
    std::fs::write(&file, case.text(true)).expect("it is written");
    Some(json!({
        "file": file,
        "name": format!("seed {}", case.seed),
        "entry": "f",
        "inputs": at.join("in"),
        "results": at.join("out"),
        "sizes": prepared.inputs.sizes,
        "statics": {},
    }))
}

#[test]
fn programs_in_random_formats_agree_with_numpy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // (NumPy's side supports no index modifiers.)
    let all = SEEDS.filter(|seed| case(*seed).is_plain() || seed % 3 == 0);
    let all = all.map(|seed| if seed % 3 == 0 { kernels::random(seed) } else { case(seed) });
    let manifests: Vec<serde_json::Value> = all.filter_map(|c| written(&c, folder.path())).collect();
    assert!(manifests.len() > 30, "only {}", manifests.len());
    let list = folder.path().join("cases.json");
    std::fs::write(&list, serde_json::to_vec(&manifests).expect("JSON")).expect("the list is written");
    if let Some(faults) = python::run("tests/numpy/run_cases.py", &[&list]) {
        assert!(faults.is_empty(), "{faults}");
    }
}
