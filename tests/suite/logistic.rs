//! `examples/logistic`: its gradient is the closed form, and training follows NumPy's.

use crate::programs::root;
use approx::assert_relative_eq;
use descent::{Data, LOSS, Plan, by_plane, train};
use ndarray::Array1;
use std::path::PathBuf;
use taffeta::{Backend, Outputs, Program};

#[path = "../../examples/support/curve.rs"]
mod curve;
#[path = "../../examples/logistic/descent.rs"]
mod descent;

fn program() -> Program {
    Program::load(root().join("examples/logistic/logistic.ft")).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the gradient in closed form: the derivative of `log(1 + exp(-m))` is `-1 / (1 + exp(m))`.
fn closed_form(data: &Data, w: &Array1<f64>, b: f64, decay: f64) -> (Array1<f64>, f64) {
    let margin = &data.y * &(data.x.dot(w) + b);
    let by_score = -&data.y / (1.0 + margin.mapv(f64::exp)) / data.y.len() as f64;
    (data.x.t().dot(&by_score) + w * decay, by_score.sum())
}

#[test]
fn the_gradient_is_the_closed_form() {
    let program = program();
    let data = Data::made(60, 7, 5);
    let b = 0.3;
    // At 0 all margins are 0, where the two formulas of the loss meet.
    let weights = [Array1::zeros(7), Array1::linspace(-2.0, 3.0, 7), Array1::linspace(300.0, -500.0, 7)];
    for backend in [Backend::Interp, Backend::C] {
        let options = by_plane().backend(backend);
        let both = program.compile("loss", &options).unwrap_or_else(|e| panic!("{e}"));
        let pair = program.differentiate("loss", &options).unwrap_or_else(|e| panic!("{e}"));
        for w in &weights {
            let b = if *w == weights[0] { 0.0 } else { b };
            let (by_w, by_b) = closed_form(&data, w, b, 0.1);
            let same = |found: &Outputs| {
                let gradient = found.array::<f64>("w.grad").expect("f64");
                assert_relative_eq!(
                    gradient.as_slice().expect("a row"),
                    by_w.as_slice().expect("a row"),
                    max_relative = 1e-12,
                    epsilon = 1e-14
                );
                assert_relative_eq!(
                    found.scalar::<f64>("b.grad").expect("f64"),
                    by_b,
                    max_relative = 1e-12,
                    epsilon = 1e-14
                );
            };
            let call = both.call().input("x", data.x.view()).input("y", data.y.view()).scalar("decay", 0.1);
            let call = call.input("w", w.view()).scalar("b", b).scalar(&format!("{LOSS}.grad"), 1.0);
            same(&call.run().unwrap_or_else(|e| panic!("{e}")));
            let call = pair.forward().input("x", data.x.view()).input("y", data.y.view()).scalar("decay", 0.1);
            let (_, tape) = call.input("w", w.view()).scalar("b", b).run().unwrap_or_else(|e| panic!("{e}"));
            same(&pair.backward(&tape).seed_scalar(LOSS, 1.0).run().unwrap_or_else(|e| panic!("{e}")));
        }
    }
}

#[test]
fn training_finds_the_separating_plane() {
    let (learn, test) = Data::made(1000, 20, 1).split(700);
    let plan = Plan { steps: 80, rate: 1.0, decay: 1e-4 };
    let course = train(&program(), &learn, &plan, |_, _| ()).unwrap_or_else(|e| panic!("{e}"));
    assert!(course.losses.windows(2).all(|l| l[1] < l[0]), "each step goes down: {:?}", course.losses);
    assert!(course.losses[80] < 0.35, "the loss is {} after 80 steps", course.losses[80]);
    let right = course.correct(&program(), &test).unwrap_or_else(|e| panic!("{e}"));
    assert!(right > 0.9, "{right} of the samples are classified correctly, of 0.95 possible");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let picture = folder.path().join("below/curve.svg");
    curve::curves(&picture, "t", "step", "loss", &[("loss", &course.losses)]).unwrap_or_else(|e| panic!("{e}"));
    let text = std::fs::read_to_string(&picture).expect("it is written");
    assert!(text.starts_with("<svg") && text.contains("<polyline"), "{text}");
    assert!(curve::curves(&picture, "t", "x", "y", &[("none", &[f64::NAN])]).is_err());
}

/// Checks the losses on Cora against those of the same steps in NumPy. `tests/README.md` says where the data is.
#[test]
fn training_on_cora_agrees_with_numpy() {
    let folder = std::env::var_os("TAFFETA_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let Some(data) = Data::published(&folder).unwrap_or_else(|e| panic!("{e}")) else {
        eprintln!("skipped: Cora is not in {} (TAFFETA_DATA names the folder of published data)", folder.display());
        return;
    };
    let (learn, test) = data.split(2000);
    let plan = Plan { steps: 50, rate: 1.0, decay: 1e-4 };
    let course = train(&program(), &learn, &plan, |_, _| ()).unwrap_or_else(|e| panic!("{e}"));
    assert_relative_eq!(course.losses[0], 2f64.ln(), max_relative = 1e-12);
    assert_relative_eq!(course.losses[50], 0.331_157_036_798_935_54, max_relative = 1e-9);
    let right = course.correct(&program(), &test).unwrap_or_else(|e| panic!("{e}"));
    assert_relative_eq!(right, 0.824_858_757_062_146_8, max_relative = 1e-12);
}
