//! PolyBench/C 4.2: each of the 30 kernels, at the sizes of MINI, against the same kernel written with NumPy.

use crate::case::{Case, difference};
use crate::{programs, python};
use taffeta::Backend;
use taffeta::io::{Source, Want};

/// Results of the kernels of the suite and of NumPy differ by rounding alone, which these condition numbers let grow to
/// this.
const TOLERANCE: f64 = 1e-9;

#[test]
fn kernels_agree_with_numpy() {
    let programs = programs::below("tests/polybench");
    assert_eq!(programs.len(), 30);
    let folder = tempfile::tempdir().expect("a temporary folder");
    if python::run("tests/polybench/reference.py", &[folder.path()]).is_none() {
        return;
    }
    let faults = programs::for_each(&programs, |program| {
        let case = Case::parse(program, "run main").expect("a command");
        let kernel = program.path.file_stem().expect("a name").to_string_lossy().into_owned();
        let results = match case.run(Backend::C, true) {
            Ok(results) => results,
            Err(e) => return vec![format!("{kernel}: {e}")],
        };
        let compared = results.iter().filter_map(|(name, found)| {
            let want = Want::new(name, found.dtype(), found.shape().len());
            let file = Source::File { path: folder.path().join(format!("{kernel}.{name}.npy")), part: None };
            let expected = taffeta::io::read(&file, &want).unwrap_or_else(|d| panic!("{kernel}: {d}"));
            difference(&expected, found, TOLERANCE).map(|d| format!("{kernel}: `{name}`: {d}"))
        });
        compared.collect()
    })
    .concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
