//! The examples that train do learn: shorter than `cargo run --example` does it, on made data always and on published data
//! where it is there.

use crate::programs::root;
use std::path::PathBuf;
use weft::Program;

#[path = "../../examples/mnist/training.rs"]
mod mnist;

#[path = "../../examples/gat/training.rs"]
mod gat;

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

#[test]
fn classes_of_nodes_are_learned() {
    let program = program("gat/train.ft");
    let made = gat::Graph::made(600, 7).expect("it is made");
    let mut cases = vec![("made", made, 1.9, 0.6)];
    match gat::Graph::cora(&data()).expect("Cora is readable") {
        Some(graph) => cases.push(("Cora", graph, 1.9, 0.7)),
        None => eprintln!("skipped: Cora is not in {}", data().display()),
    }
    for (name, graph, most, least) in cases {
        let plan = gat::Plan { heads: 8, hidden: 8, epochs: 30, rate: 0.005, decay: 5e-4, drop: 0.6 };
        let trainer = gat::Trainer::new(&program, &graph, &plan).unwrap_or_else(|e| panic!("{name}: {e}"));
        let course = trainer.train(1).unwrap_or_else(|e| panic!("{name}: {e}"));
        let last = course.losses[plan.epochs - 1];
        assert!(
            last < most && last < course.losses[0],
            "{name}: losses {:?}, {:.4} s each",
            course.losses,
            course.seconds
        );
        assert!(course.accuracy > least, "{name}: accuracy {}", course.accuracy);
    }
}
