//! Parsing of the facts that a program reports about its compiler.

use taffeta_codegen::probe::Facts;
use taffeta_codegen::testing::read_facts;

#[test]
fn output_of_the_probe_is_parsed() {
    let all = read_facts("openmp 201511\nthreads 4\nlibmvec 1\nblas libopenblas.so.0\nkind gcc\nversion 12.2.0\n");
    let blas = Some("libopenblas.so.0".to_string());
    let (kind, version, openmp) = ("gcc".to_string(), "12.2.0".to_string(), Some("4.5".to_string()));
    assert_eq!(all, Facts { kind, version, openmp, threads: 4, libmvec: true, blas });
    let none = read_facts("openmp 0\nthreads 1\nlibmvec 0\nblas \nkind clang\nversion 17.0.1\n");
    assert_eq!((none.openmp, none.libmvec, none.blas), (None, false, None));
}
