//! Training of the network of `mnist.ft` on handwritten digits: draws the curve, and reports whether loss and accuracy
//! reach their bounds.
//!
//! ```text
//! TAFFETA_DATA=… cargo run --release --example mnist [FILE.svg]
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
use training::{Digits, Plan, train};

/// Bounds on the mean loss of the last epoch, and on the accuracy on held-out images.
const LOSS: f64 = 0.025;
const ACCURACY: f64 = 0.945;

fn main() -> ExitCode {
    outcome::exit("mnist", run())
}

fn run() -> Result<bool, Box<dyn Error>> {
    let program = Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mnist/mnist.ft"))?;
    let published = match std::env::var_os("TAFFETA_DATA") {
        Some(folder) => Digits::published(Path::new(&folder))?,
        None => None,
    };
    let digits = match published {
        Some(digits) => digits,
        None => {
            eprintln!("TAFFETA_DATA has no MNIST: made data, ten patterns under noise");
            Digits::made(&program, 10_000, 28 * 28)?
        }
    };
    let plan = Plan { hidden: 128, batch: 100, epochs: 20, rate: 1e-3, train: 8000, seed: 1 };
    let course = train(&program, &digits, &plan, |epoch, loss, accuracy| {
        eprintln!("epoch {epoch:2}: loss {loss:.4}, accuracy {accuracy:.4}");
    })?;

    let picture = outcome::picture("mnist.svg");
    curve::curves(&picture, "MNIST: a network of two layers", "step", "loss", &[("loss", &course.losses)])?;
    let (loss, accuracy) = (course.means().pop().unwrap_or(f64::NAN), course.accuracies.last().copied().unwrap_or(0.0));
    println!("{} images to learn from, {} kept back", plan.train, digits.labels.len() - plan.train);
    println!("{} steps in {:.2} s; curve in {}", course.losses.len(), course.seconds, picture.display());
    println!("loss {loss:.4} (must be below {LOSS}), accuracy {accuracy:.4} (must be at least {ACCURACY})");
    Ok(loss < LOSS && accuracy >= ACCURACY)
}
