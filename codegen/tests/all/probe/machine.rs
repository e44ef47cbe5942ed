//! Measurement of this machine, and parsing of its output.

use taffeta_codegen::lower::vector_bytes;
use taffeta_codegen::probe::{Areas, measure};
use taffeta_codegen::testing::read_measured;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

const SAID: &str = "multiply_add 0.17 0.18\nlatency 1.3\nload 0.2\nstore 0.3\ngather 0.4\nstrided 0.5 1.2\n\
                    divide 1.4 2.8\n\
                    transcendental 6 9\nregion 2000\ntransfer 0.1\natomic 7\n\
                    level 0.015 2\nlevel 0.1 1.5\nshare 0.9\n";

#[test]
fn output_of_the_measurement_is_parsed() {
    let all = read_measured(SAID, 2).expect("it is whole");
    assert_eq!((all.multiply_add, all.region, all.levels), ([0.17, 0.18], 2000.0, vec![[0.015, 2.0], [0.1, 1.5]]));
    for (what, instead) in [
        ("latency 1.3\n", ""),
        ("latency 1.3", "latency nan"),
        ("latency 1.3", "latency -1"),
        ("latency 1.3", "latency 0"),
        ("latency 1.3", "latency inf"),
        ("latency 1.3", "latency 1.3 2"),
        ("divide 1.4 2.8", "divide 1.4"),
        ("level 0.1 1.5\n", ""),
    ] {
        assert_eq!(read_measured(&SAID.replace(what, instead), 2), None, "{instead}");
    }
}

/// Checks that the program compiles, runs and prints every number; never how fast the machine is.
#[test]
fn this_machine_can_be_measured() {
    let toolchain = Toolchain::find().expect("there is a compiler");
    let vector_bytes = vector_bytes(false);
    for threads in [1, 2] {
        let areas = Areas { vector_bytes, threads, bytes: vec![[1 << 17; 2], [1 << 20; 2], [1 << 23, 1 << 22]] };
        let found = measure(&toolchain, &CompileOptions::default(), &areas).expect("it runs");
        assert_eq!(found.levels.len(), 3);
    }
}
