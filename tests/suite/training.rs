//! Training examples: they learn, in fewer steps than `cargo run --example` takes, on data made here always and on
//! published data where present.

use crate::programs::root;
use itertools::Itertools as _;
use std::path::PathBuf;
use taffeta::Program;

#[path = "../../examples/mnist/training.rs"]
mod mnist;

#[path = "../../examples/gat/training.rs"]
mod gat;

#[path = "../../examples/softras/fitting.rs"]
mod fit;

#[path = "../../examples/subdivnet/training.rs"]
mod bend;

fn program(file: &str) -> Program {
    Program::load(root().join("examples").join(file)).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the folder of published data.
fn data() -> PathBuf {
    std::env::var_os("TAFFETA_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from)
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
    learned(gat::Form::Lists);
}

/// Checks that the same network over sparse matrices learns as well, and that without random dropout it is the very
/// same.
#[test]
fn classes_of_nodes_are_learned_over_sparse_matrices() {
    learned(gat::Form::Matrices);
    let graph = gat::Graph::made(300, 7).expect("it is made");
    let plan = gat::Plan { heads: 4, hidden: 8, epochs: 10, rate: 0.005, decay: 5e-4, drop: 0.0 };
    let [lists, matrices] = [gat::Form::Lists, gat::Form::Matrices].map(|form| {
        let program = program(form.file());
        let trainer = gat::Trainer::new(form, &program, &graph, &plan).unwrap_or_else(|e| panic!("{e}"));
        trainer.train(3).unwrap_or_else(|e| panic!("{e}"))
    });
    for (a, b) in lists.losses.iter().zip_eq(&matrices.losses) {
        assert!((a - b).abs() < 1e-4 * a.abs(), "{:?}, {:?}", lists.losses, matrices.losses);
    }
    assert!(lists.losses[9] < lists.losses[0] - 0.1, "{:?}", lists.losses);
}

fn learned(form: gat::Form) {
    let program = program(form.file());
    let made = gat::Graph::made(600, 7).expect("it is made");
    let mut cases = vec![("made", made, 60, 1.9, 0.75)];
    match gat::Graph::cora(&data()).expect("Cora is readable") {
        Some(graph) => cases.push(("Cora", graph, 30, 1.9, 0.7)),
        None => eprintln!("skipped: Cora is not in {}", data().display()),
    }
    for (name, graph, epochs, most, least) in cases {
        let plan = gat::Plan { heads: 8, hidden: 8, epochs, rate: 0.005, decay: 5e-4, drop: 0.6 };
        let trainer = gat::Trainer::new(form, &program, &graph, &plan).unwrap_or_else(|e| panic!("{name}: {e}"));
        // A single seed may be unlucky.
        let seeds = 1..=2;
        let courses = seeds.map(|seed| trainer.train(seed).unwrap_or_else(|e| panic!("{name}: {e}"))).collect_vec();
        let accuracies = courses.iter().map(|c| c.accuracy).collect_vec();
        for course in &courses {
            let last = course.losses[plan.epochs - 1];
            assert!(
                last < most && last < course.losses[0],
                "{name}: losses {:?}, {:.4} s each",
                course.losses,
                course.seconds
            );
        }
        let mean = accuracies.iter().sum::<f64>() / accuracies.len() as f64;
        eprintln!("{name}: {accuracies:?}");
        assert!(mean > least, "{name}: accuracies {accuracies:?}");
    }
}

#[test]
fn poses_are_fitted() {
    let program = program("softras/fit.ft");
    let mut cases = vec![("torus", fit::Mesh::torus(12, 8, 0.4).expect("it is made"))];
    match fit::Mesh::published(&data(), "subdivnet_airplane.obj").expect("it is readable") {
        Some(mesh) => cases.push(("airplane", mesh)),
        None => eprintln!("skipped: subdivnet_airplane.obj is not in {}", data().display()),
    }
    let plan = fit::Plan { size: 32, sigma: 1e-3, steps: 150, rate: 0.04 };
    let (sought, start) = ([0.9, 0.7, 0.75, 0.1, -0.1], [0.6, 0.5, 0.9, 0.0, 0.0]);
    for (name, mesh) in cases {
        let fitter = fit::Fitter::new(&program, &mesh, &plan).unwrap_or_else(|e| panic!("{name}: {e}"));
        let target = fitter.draw(&sought).unwrap_or_else(|e| panic!("{name}: {e}"));
        let course = fitter.fit(&target, &start).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (first, last) = (course.losses[0], course.losses[plan.steps - 1]);
        let (angle, place) = course.distance(&sought);
        assert!(first > 1e-2 && last < 1e-5, "{name}: loss {first} to {last}, {:.1} s", course.seconds);
        assert!(angle < 0.02 && place < 0.01, "{name}: found {:?}", course.pose);
        let found = fitter.draw(&course.pose).unwrap_or_else(|e| panic!("{name}: {e}"));
        let most = found.iter().zip_eq(&target).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most < 0.1, "{name}: a pixel is off by {most}");
    }
}

#[test]
fn bends_are_learned_from_neighbours() {
    let program = program("subdivnet/train.ft");
    let torus = |tube, seed| bend::roughened(bend::Mesh::torus(32, 16, tube).expect("it is made"), 0.04, seed);
    let mut cases = vec![("torus", torus(0.6, 1), torus(0.4, 2))];
    let mesh = |name| bend::Mesh::published(&data(), name).expect("it is readable");
    match mesh("libigl_bunny.off").zip(mesh("softras_spot_triangulated.obj")) {
        Some((bunny, spot)) => cases.push(("bunny", bunny, spot)),
        None => eprintln!("skipped: the bunny or the cow is not in {}", data().display()),
    }
    let plan = bend::Plan { channels: 16, steps: 300, rate: 0.03, seed: 1 };
    let trainer = bend::Trainer::new(&program, &plan).unwrap_or_else(|e| panic!("{e}"));
    for (name, learned, kept) in cases {
        let faces = |mesh| trainer.describe(mesh).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (learned, kept) = (faces(&learned), faces(&kept));
        let linear = trainer.linear(&learned).unwrap_or_else(|e| panic!("{name}: {e}"));
        let train = |a, b| trainer.train(a, b).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (course, alone) = (train(&learned, &kept), train(&learned.alone(), &kept.alone()));
        let figures = format!(
            "{name}: {:.4} of {} faces in {:.1} s, {:.4} kept back; without neighbours {:.4}, linear {linear:.4}",
            course.learned,
            learned.count(),
            course.seconds,
            course.kept,
            alone.learned
        );
        eprintln!("{figures}");
        assert!(course.learned < 0.1 && course.kept < 0.3, "{figures}");
        assert!(course.learned < course.losses[0] && 3.0 * course.learned < linear.min(alone.learned), "{figures}");
    }
}
