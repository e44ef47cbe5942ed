//! PolyBench/C 4.2: each of the 30 kernels, at the sizes of MINI, against the same kernel written with NumPy.

use crate::case::{Case, difference};
use crate::{programs, python};
use itertools::Itertools as _;
use taffeta::io::{Source, Want};
use taffeta::{Backend, Options, Program};

/// Tolerance between kernels and NumPy, which differ by rounding alone, amplified by the kernels' condition numbers.
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

/// Kernels that repeat parallel loops, with those loops, and the number of barriers in an iteration.
const ON_THREADS: [(&str, &[&str], usize); 6] = [
    ("jacobi-1d", &["jacobi_1d.i#1", "jacobi_1d.i#2"], 2),
    ("jacobi-2d", &["jacobi_2d.i#1", "jacobi_2d.i#2"], 2),
    ("heat-3d", &["heat_3d.i#1", "heat_3d.i#2"], 2),
    // (The first loop runs on one thread alone.)
    ("fdtd-2d", &["fdtd_2d.i#1", "fdtd_2d.i#2", "fdtd_2d.i#3"], 4),
    ("adi", &["adi.i#1", "adi.i#2"], 2),
    ("lu", &["lu.j#2"], 2),
];

#[test]
fn repeated_parallel_loops_share_a_region() {
    for (kernel, loops, meetings) in ON_THREADS {
        let file = programs::root().join(format!("tests/polybench/{kernel}.ft"));
        let text = std::fs::read_to_string(&file).expect("a kernel");
        let text = format!("{text}\n\n@schedule(main)\ndef threads(s):\n    s.parallelize({loops:?})\n");
        let program = Program::from_source(&format!("{kernel}.ft"), &text).unwrap_or_else(|e| panic!("{e}"));
        let options = Options::default().schedule("threads");
        let code = program.c_source("main", &options).unwrap_or_else(|e| panic!("{e}")).code;
        let found = (code.matches("#pragma omp parallel").count(), code.matches("taf_meet").count());
        assert_eq!(found, (1, meetings), "{kernel}: {code}");
        let run = |options: &Options, threads| {
            let function = program.compile("main", options).unwrap_or_else(|e| panic!("{e}"));
            function.run(Vec::new(), &[], threads).unwrap_or_else(|e| panic!("{kernel}: {e}")).results
        };
        let expected = run(&Options::default().backend(Backend::Interp), 1);
        for threads in [1, 2, 4] {
            for (want, have) in expected.iter().zip_eq(&run(&options, threads)) {
                let differs = difference(want, have, 1e-12);
                assert_eq!(differs, None, "{kernel} on {threads} threads");
            }
        }
    }
}
