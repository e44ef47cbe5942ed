//! The README's claims about its first program: without a schedule of its own it runs on all cores and in vectors.

use crate::programs::root;
use std::process::Command;
use taffeta::{Options, Program};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

/// Returns the first block of Python in a text.
fn first_program(text: &str) -> &str {
    let begin = text.find("```python\n").expect("a program") + "```python\n".len();
    &text[begin..begin + text[begin..].find("```").expect("its end")]
}

#[test]
fn the_first_program_is_parallel_and_vectorised() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a README");
    let program = Program::from_source("subdivnet.ft", first_program(&readme)).unwrap_or_else(|e| panic!("{e}"));
    // The sizes of the mesh that `make demo` makes, as a call would have them. (No machine is measured here.)
    let options = Options::default().hint("n_faces", 2304).hint("feats", 64).portable(true);
    let source = program.c_source("circular_diff", &options).unwrap_or_else(|e| panic!("{e}"));
    // On a machine with one core there is no work to share.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!(source.code.contains("#pragma omp parallel"), cores > 1, "{}", source.code);

    let compiler = Toolchain::find().expect("a C compiler");
    let clang = compiler.program().canonicalize().is_ok_and(|p| p.to_string_lossy().contains("clang"));
    if clang || !cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
        eprintln!("skipped: the compiler does not report vectorised loops");
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = Toolchain::write(&source, dir.path(), "subdivnet").expect("the directory can be written").source;
    let output = Command::new(compiler.program())
        .args(Toolchain::flags(&CompileOptions::default()))
        .args(["-fopenmp", "-fopt-info-vec-optimized", "-c", "-o", "subdivnet.o"])
        .arg(&file)
        .current_dir(dir.path())
        .output()
        .expect("it can be run");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    // gcc reports the line of some statement of the loop over features.
    let lines: Vec<&str> = source.code.lines().collect();
    let is_sum =
        |line: usize| (line.saturating_sub(3)..line + 3).any(|k| lines.get(k).is_some_and(|l| l.contains("fabs")));
    let place = |l: &str| l.split(':').nth(1).and_then(|n| n.parse().ok());
    let vectors = report.lines().filter(|l| l.contains("loop vectorized")).filter_map(place);
    assert!(vectors.into_iter().any(is_sum), "{report}\n{}", source.code);
}
