//! Data, and gradient descent by a forward and a backward pass.

use ndarray::{Array1, Array2, s};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::error::Error;
use std::path::Path;
use std::time::Instant;
use taffeta::{Gradient, Options, Program};

/// Samples in rows, and their classes: 1 or -1.
pub struct Data {
    pub x: Array2<f64>,
    pub y: Array1<f64>,
}

impl Data {
    /// Reads Cora: the words of each paper, and whether it is about neural networks (class 3). `None` if it is not
    /// there.
    pub fn published(folder: &Path) -> Result<Option<Data>, Box<dyn Error>> {
        let (features, labels) = (folder.join("graphs/cora_features.mtx"), folder.join("graphs/cora_labels.txt"));
        if !features.is_file() || !labels.is_file() {
            return Ok(None);
        }
        // A Matrix Market file is read like any input of a program.
        let program = Program::from_source("words.ft", "def words(x: f64[n, d]):\n    return x\n")?;
        let words = program.compile("words", &Options::default())?;
        let given = [("x".to_string(), features.display().to_string())];
        let inputs = taffeta::inputs::read(words.signature(), &given, &[]).map_err(|f| f[0].diagnostic.to_string())?;
        let x = words.call().value("x", &inputs.values[0]).run()?.array::<f64>("x")?.into_dimensionality()?;
        let text = std::fs::read_to_string(labels)?;
        let class = |word: &str| if word == "3" { 1.0 } else { -1.0 };
        let y: Array1<f64> = text.split_whitespace().map(class).collect();
        if x.nrows() != y.len() {
            return Err(format!("{} papers, but {} classes", x.nrows(), y.len()).into());
        }
        Ok(Some(Data { x, y }))
    }

    /// Makes points around the origin, labelled by their side of a plane; one label in twenty is wrong.
    pub fn made(samples: usize, numbers: usize, seed: u64) -> Data {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let normal = Array1::from_shape_simple_fn(numbers, || rng.random_range(-1.0..1.0));
        let x = Array2::from_shape_simple_fn((samples, numbers), || rng.random_range(-1.0..1.0));
        let y = x.dot(&normal).mapv(|score| if (score > 0.0) == rng.random_bool(0.95) { 1.0 } else { -1.0 });
        Data { x, y }
    }

    /// Splits the samples into the first ones and the others.
    pub fn split(&self, first: usize) -> (Data, Data) {
        let part = |rows: std::ops::Range<usize>| Data {
            x: self.x.slice(s![rows.clone(), ..]).to_owned(),
            y: self.y.slice(s![rows]).to_owned(),
        };
        (part(0..first), part(first..self.y.len()))
    }
}

/// Hyperparameters of training.
pub struct Plan {
    pub steps: usize,
    pub rate: f64,
    pub decay: f64,
}

/// Result of training.
pub struct Course {
    pub w: Array1<f64>,
    pub b: f64,
    /// Losses before each step, and after the last.
    pub losses: Vec<f64>,
    pub seconds: f64,
    /// Bytes of a tape.
    pub tape: usize,
}

/// Returns options for the gradient with respect to the plane, of the program under its schedule.
pub fn by_plane() -> Options {
    let gradient = Gradient::default().wrt(["w", "b"]);
    Options::default().gradient(gradient).schedule("fast")
}

/// Descends along the gradient over all samples, from 0.
pub fn train(
    program: &Program,
    data: &Data,
    plan: &Plan,
    mut progress: impl FnMut(usize, f64),
) -> Result<Course, taffeta::Error> {
    let pair = program.differentiate("loss", &by_plane())?;
    let mut course = Course { w: Array1::zeros(data.x.ncols()), b: 0.0, losses: Vec::new(), seconds: 0.0, tape: 0 };
    let start = Instant::now();
    for step in 0..=plan.steps {
        let call = pair.forward().input("x", data.x.view()).input("y", data.y.view()).scalar("decay", plan.decay);
        let (results, tape) = call.input("w", course.w.view()).scalar("b", course.b).run()?;
        let loss: f64 = results.scalar(LOSS)?;
        course.losses.push(loss);
        progress(step, loss);
        if step == plan.steps {
            break;
        }
        let gradients = pair.backward(&tape).seed_scalar(LOSS, 1.0).run()?;
        course.tape = tape.bytes();
        // The tape is not used beyond this point, so the arrays that it borrows may change.
        course.w.scaled_add(-plan.rate, &gradients.array::<f64>("w.grad")?);
        course.b -= plan.rate * gradients.scalar::<f64>("b.grad")?;
    }
    course.seconds = start.elapsed().as_secs_f64();
    Ok(course)
}

/// Name of the program's result.
pub const LOSS: &str = "cost";

impl Course {
    /// Returns the share of the samples that are on their side.
    pub fn correct(&self, program: &Program, data: &Data) -> Result<f64, taffeta::Error> {
        let correct = program.compile("correct", &Options::default())?;
        let call = correct.call().input("x", data.x.view()).input("y", data.y.view());
        call.input("w", self.w.view()).scalar("b", self.b).run()?.scalar("right")
    }
}
