//! Training of the logistic regression of `logistic.ft`: draws how the loss falls.
//!
//! ```text
//! TAFFETA_DATA=… cargo run --release --example logistic [FILE.svg]
//! ```
//!
//! The data is Cora's: which of 2708 papers are about neural networks, by which of 1433 words are in them. Without it,
//! points made here.

#[path = "../support/curve.rs"]
mod curve;
mod descent;
#[path = "../support/outcome.rs"]
mod outcome;

use descent::{Data, Plan};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use taffeta::Program;

/// Bounds on the loss, on Cora and on points made here, of which some are on the wrong side.
const LOSS: [f64; 2] = [0.2, 0.3];
/// Bound on the share of held-out samples on their side.
const CORRECT: f64 = 0.85;

fn main() -> ExitCode {
    outcome::exit("logistic", run())
}

fn run() -> Result<bool, Box<dyn Error>> {
    let program = Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/logistic/logistic.ft"))?;
    let published = match std::env::var_os("TAFFETA_DATA") {
        Some(folder) => Data::published(Path::new(&folder))?,
        None => None,
    };
    let (data, bar) = match published {
        Some(data) => (data, LOSS[0]),
        None => {
            eprintln!("TAFFETA_DATA has no Cora: made points");
            (Data::made(2708, 200, 1), LOSS[1])
        }
    };
    let (train, test) = data.split(2000);
    let plan = Plan { steps: 300, rate: 1.0, decay: 1e-4 };
    let course = descent::train(&program, &train, &plan, |step, loss| {
        if step % 25 == 0 {
            eprintln!("step {step:3}: loss {loss:.4}");
        }
    })?;
    let right = course.correct(&program, &test)?;

    let picture = outcome::picture("logistic.svg");
    curve::curves(&picture, "Logistic regression by gradient descent", "step", "loss", &[("loss", &course.losses)])?;
    let loss = course.losses.last().copied().unwrap_or(f64::NAN);
    println!("{} samples of {} numbers to learn from, {} kept back", train.y.len(), train.x.ncols(), test.y.len());
    println!(
        "{} steps in {:.2} s, a tape of {} bytes; curve in {}",
        plan.steps,
        course.seconds,
        course.tape,
        picture.display()
    );
    println!("loss {loss:.4} (must be below {bar}), on their side {right:.4} (must be at least {CORRECT})");
    Ok(loss < bar && right >= CORRECT)
}
