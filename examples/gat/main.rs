//! Trains the graph attention network of `train.ft` on Cora from ten seeds, draws the curves, and says whether the
//! network guesses as well as it should. `benches/peers/gat_cora.py` does the same with PyTorch.
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
use training::{Graph, Plan, Trainer};

/// What the mean loss of the last ten epochs, and the mean accuracy on the test nodes, must reach.
const LOSS: f64 = 1.0;
const ACCURACY: f64 = 0.81;
const SEEDS: i64 = 10;

fn main() -> ExitCode {
    outcome::exit("gat", run())
}

fn run() -> Result<bool, Box<dyn Error>> {
    let program = Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/gat/train.ft"))?;
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
    let trainer = Trainer::new(&program, &graph, &plan)?;
    let mut courses = Vec::new();
    for seed in 0..SEEDS {
        let course = trainer.train(seed)?;
        let last = course.losses.last().copied().unwrap_or(f64::NAN);
        let (accuracy, ms) = (course.accuracy, 1000.0 * course.seconds);
        eprintln!("seed {seed}: loss {last:.4}, test accuracy {accuracy:.4}, {ms:.2} ms an epoch");
        courses.push(course);
    }

    let picture = outcome::picture("gat.svg");
    let names: Vec<String> = (0..SEEDS).map(|seed| format!("seed {seed}")).collect();
    let lines: Vec<(&str, &[f64])> =
        names.iter().map(String::as_str).zip(courses.iter().map(|c| &c.losses[..])).collect();
    curve::curves(&picture, "Graph attention", "epoch", "loss", &lines)?;

    let mean = |of: &dyn Fn(&training::Course) -> f64| courses.iter().map(of).sum::<f64>() / courses.len() as f64;
    let loss = mean(&|c| c.losses.iter().rev().take(10).sum::<f64>() / 10.0);
    let accuracy = mean(&|c| c.accuracy);
    let fastest = courses.iter().map(|c| 1000.0 * c.seconds).fold(f64::INFINITY, f64::min);
    println!(
        "{SEEDS} seeds, {} epochs each, at best {fastest:.2} ms an epoch; curves in {}",
        plan.epochs,
        picture.display()
    );
    println!(
        "mean loss {loss:.4} (must be below {LOSS}), mean test accuracy {accuracy:.4} (must be at least {ACCURACY})"
    );
    Ok(loss < LOSS && accuracy >= ACCURACY)
}
