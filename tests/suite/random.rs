//! Random programs in NumPy: a fixed batch, printed as Taffeta and run by the shim, agrees with the interpreter.

use crate::case::{Named, save};
use crate::python;
use itertools::Itertools as _;
use serde_json::json;
use taffeta_ast::random::{Options, program};
use taffeta_ast::{interp, print};

const SEEDS: std::ops::Range<u64> = 7000..7060;

#[test]
fn random_programs_agree_with_numpy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let manifests: Vec<serde_json::Value> = SEEDS
        .map(|seed| {
            let case = program(seed, &Options::default());
            let out = interp::run(&case.func, &case.inputs).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let names =
                |n: usize| case.func.interface().nth(n).map(|t| t.symbol.name().to_string()).unwrap_or_default();
            let named = |(n, v)| -> Named { (names(n), v) };
            let at = folder.path().join(seed.to_string());
            let inputs: Vec<Named> = case.inputs.params.iter().cloned().enumerate().map(named).collect();
            let inout = case.func.params.iter().map(|p| p.mode == taffeta_ast::func::ParamMode::InOut);
            let params =
                out.params.into_iter().enumerate().zip_eq(inout).filter(|(_, written)| *written).map(|(v, _)| v);
            let first = case.func.params.len();
            let results = out.results.into_iter().enumerate().map(|(n, v)| (first + n, v));
            save(&at.join("in"), &inputs);
            save(&at.join("out"), &params.chain(results).map(named).collect::<Vec<_>>());
            let file = at.join("random.ft");
            // Iterators of whole tensors have a dot in their names, which Python reads as an attribute.
            let text = print::func(&case.func).replace(".d", "_d");
            std::fs::write(&file, text).expect("it is written");
            json!({
                "file": file,
                "name": format!("seed {seed}"),
                "entry": case.func.name,
                "inputs": at.join("in"),
                "results": at.join("out"),
                "sizes": case.inputs.sizes,
                "statics": {},
            })
        })
        .collect();
    let list = folder.path().join("cases.json");
    std::fs::write(&list, serde_json::to_vec(&manifests).expect("JSON")).expect("the list is written");
    if let Some(faults) = python::run("tests/numpy/run_cases.py", &[&list]) {
        assert!(faults.is_empty(), "{faults}");
    }
}
