//! The examples that train do learn: shorter than `cargo run --example` does it, on made data always and on published data
//! where it is there.

use crate::programs::root;
use std::path::PathBuf;
use weft::Program;

#[path = "../../examples/mnist/training.rs"]
mod mnist;

fn program(file: &str) -> Program {
    Program::load(root().join("examples").join(file)).unwrap_or_else(|e| panic!("{e}"))
}

/// The folder of published data.
fn data() -> PathBuf {
    std::env::var_os("WEFT_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from)
}

#[test]
fn digits_are_learned() {
    let program = program("mnist/mnist.ft");
    let made = mnist::Digits::made(&program, 2400, 196).expect("it is made");
    let mut cases = vec![("made", made, 2000, 5, 0.25, 0.9)];
    match mnist::Digits::published(&data()).expect("MNIST is readable") {
        Some(digits) => cases.push(("MNIST", digits, 8000, 2, 0.4, 0.88)),
        None => eprintln!("skipped: MNIST is not in {}", data().display()),
    }
    for (name, digits, train, epochs, most, least) in cases {
        let plan = mnist::Plan { hidden: 64, batch: 20, epochs, rate: 2e-3, train, seed: 1 };
        let course = mnist::train(&program, &digits, &plan, |_, _, _| ()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (losses, accuracy) = (course.means(), course.accuracies[epochs - 1]);
        assert!(losses[0] > losses[epochs - 1], "{name}: losses {losses:?}");
        assert!(losses[epochs - 1] < most, "{name}: losses {losses:?}, after {:.1} s", course.seconds);
        assert!(accuracy > least, "{name}: accuracy {accuracy}");
    }
}
