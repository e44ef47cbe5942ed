//! Training of the graph attention networks of `train.ft` and `sparse.ft` on Cora, from ten seeds each: draws the
//! curves, and reports whether loss and accuracy reach their bounds. `benches/peers/gat_cora.py` does the same with
//! PyTorch.
//!
//! ```text
//! TAFFETA_DATA=… cargo run --release --example gat [FILE.svg]
//! ```

#[path = "../support/curve.rs"]
mod curve;
#[path = "../support/outcome.rs"]
mod outcome;
mod training;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use taffeta::Program;
use training::{Course, Form, Graph, Plan, Trainer};

/// Bounds on the mean loss of the last ten epochs, and on the mean accuracy on the test nodes.
const LOSS: f64 = 1.0;
const ACCURACY: f64 = 0.81;
const SEEDS: i64 = 10;

fn main() -> ExitCode {
    outcome::exit("gat", run())
}

fn run() -> Result<bool, Box<dyn Error>> {
    let published = match std::env::var_os("TAFFETA_DATA") {
        Some(folder) => Graph::cora(Path::new(&folder))?,
        None => None,
    };
    let graph = match published {
        Some(graph) => graph,
        None => {
            eprintln!(
                "TAFFETA_DATA has no Cora: a made graph, whose nodes share edges and words with others of their class"
            );
            Graph::made(2700, 7)?
        }
    };
    let plan = Plan { heads: 8, hidden: 8, epochs: 200, rate: 0.005, decay: 5e-4, drop: 0.6 };
    let [lists, matrices] = [Form::Lists, Form::Matrices].map(|form| courses(form, &graph, &plan));
    let (lists, matrices) = (lists?, matrices?);

    let picture = outcome::picture("gat.svg");
    let mean = |courses: &[Course]| -> Vec<f64> {
        (0..plan.epochs).map(|t| courses.iter().map(|c| c.losses[t]).sum::<f64>() / courses.len() as f64).collect()
    };
    let curves = [mean(&lists), mean(&matrices)];
    let lines: Vec<(&str, &[f64])> = ["lists", "matrices"].into_iter().zip(curves.iter().map(|c| &c[..])).collect();
    curve::curves(&picture, "Graph attention", "epoch", "mean loss", &lines)?;
    println!("{SEEDS} seeds, {} epochs each; curves in {}", plan.epochs, picture.display());
    let good = [("lists", &found(&lists)), ("matrices", &found(&matrices))].map(|(name, of)| {
        let Found { loss, accuracy, fastest } = of;
        println!(
            "{name}: mean loss {loss:.4} (must be below {LOSS}), mean test accuracy {accuracy:.4} (must be at least \
             {ACCURACY}), at best {fastest:.2} ms an epoch"
        );
        *loss < LOSS && *accuracy >= ACCURACY
    });
    Ok(good.iter().all(|g| *g))
}

/// Trains from all seeds.
fn courses(form: Form, graph: &Graph, plan: &Plan) -> Result<Vec<Course>, Box<dyn Error>> {
    let program = Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(form.file()))?;
    let trainer = Trainer::new(form, &program, graph, plan)?;
    let one = |seed: i64| {
        let course = trainer.train(seed)?;
        let last = course.losses.last().copied().unwrap_or(f64::NAN);
        let (accuracy, ms) = (course.accuracy, 1000.0 * course.seconds);
        eprintln!("{}, seed {seed}: loss {last:.4}, test accuracy {accuracy:.4}, {ms:.2} ms an epoch", form.file());
        Ok(course)
    };
    (0..SEEDS).map(one).collect()
}

/// Results over all seeds: means, and the fastest epoch in milliseconds.
struct Found {
    loss: f64,
    accuracy: f64,
    fastest: f64,
}

fn found(courses: &[Course]) -> Found {
    let mean = |of: &dyn Fn(&Course) -> f64| courses.iter().map(of).sum::<f64>() / courses.len() as f64;
    Found {
        loss: mean(&|c| c.losses.iter().rev().take(10).sum::<f64>() / 10.0),
        accuracy: mean(&|c| c.accuracy),
        fastest: courses.iter().map(|c| 1000.0 * c.seconds).fold(f64::INFINITY, f64::min),
    }
}
