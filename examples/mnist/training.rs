//! Training loop around `mnist.ft`: data, batches, and the state carried from step to step.

use adam::Parameter;
use flate2::read::GzDecoder;
use ndarray::{Array1, Array2, ArrayD, ArrayView1, IxDyn};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::error::Error;
use std::io::Read;
use std::path::Path;
use taffeta::{Function, Options, Program, StaticValue};

#[allow(clippy::duplicate_mod)] // the tests include all training programs in one crate
#[path = "../support/adam.rs"]
mod adam;

/// Number of classes of digits.
const CLASSES: usize = 10;

/// Grey images, a row each, and their labels.
pub struct Digits {
    pub images: Array2<u8>,
    pub labels: Array1<u8>,
}

impl Digits {
    /// Reads the 10,000 images of MNIST's test set from a folder of published data; `None` if they are not there.
    ///
    /// # Errors
    ///
    /// Malformed files.
    pub fn published(folder: &Path) -> Result<Option<Digits>, Box<dyn Error>> {
        let images = folder.join("images/mnist_t10k-images-idx3-ubyte.gz");
        let labels = folder.join("images/mnist_t10k-labels-idx1-ubyte.gz");
        if !images.is_file() || !labels.is_file() {
            return Ok(None);
        }
        let (shape, pixels) = idx(&images)?;
        let (_, classes) = idx(&labels)?;
        let [n, height, width] = shape[..] else {
            return Err(format!("{}: {} dimensions in the place of 3", images.display(), shape.len()).into());
        };
        if classes.len() != n || classes.iter().any(|c| usize::from(*c) >= CLASSES) {
            return Err(format!("{}: no label from 0 to 9 for each of {n} images", labels.display()).into());
        }
        let images = Array2::from_shape_vec((n, height * width), pixels)?;
        Ok(Some(Digits { images, labels: Array1::from(classes) }))
    }

    /// Makes images of ten patterns under noise, which need no data.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn made(program: &Program, n: usize, pixels: usize) -> Result<Digits, Box<dyn Error>> {
        let sizes = [("n", n), ("pixels", pixels), ("classes", CLASSES)];
        let made = compile(program, "prototypes", None, &sizes)?.call().scalar("seed", 1i64).run()?;
        let images = made.array::<u8>("images")?.into_dimensionality()?;
        let labels = made.array::<u8>("labels")?.into_dimensionality()?;
        Ok(Digits { images, labels })
    }
}

/// Reads a file in MNIST's format: two zeros, the element type (8: bytes), the number of dimensions; the sizes,
/// big-endian; the elements.
fn idx(path: &Path) -> Result<(Vec<usize>, Vec<u8>), Box<dyn Error>> {
    let wrong = || format!("{}: not an IDX file of bytes", path.display());
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path)?).read_to_end(&mut bytes)?;
    let (&[0, 0, 8, dimensions], rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)? else {
        return Err(wrong().into());
    };
    let (sizes, elements) = rest.split_at_checked(4 * usize::from(dimensions)).ok_or_else(wrong)?;
    let shape: Vec<usize> = sizes.as_chunks::<4>().0.iter().map(|s| u32::from_be_bytes(*s) as usize).collect();
    let count = shape.iter().try_fold(1usize, |a, b| a.checked_mul(*b));
    if count != Some(elements.len()) {
        return Err(wrong().into());
    }
    Ok((shape, elements.to_vec()))
}

fn compile(
    program: &Program,
    entry: &str,
    schedule: Option<&str>,
    statics: &[(&str, usize)],
) -> Result<Function, taffeta::Error> {
    let mut options = Options::default().schedule(schedule);
    for (name, value) in statics {
        options = options.set(name, StaticValue::Int(*value as i128));
    }
    program.compile(entry, &options)
}

/// Hyperparameters of training.
pub struct Plan {
    pub hidden: usize,
    pub batch: usize,
    pub epochs: usize,
    pub rate: f32,
    /// Number of images to learn from; the others are held out to count errors.
    pub train: usize,
    pub seed: u64,
}

/// Result of training.
pub struct Course {
    /// Loss of every step.
    pub losses: Vec<f64>,
    /// Share of held-out images that are read rightly, after every epoch.
    pub accuracies: Vec<f64>,
    pub seconds: f64,
}

impl Course {
    /// Returns the mean loss of every epoch.
    pub fn means(&self) -> Vec<f64> {
        let epochs = self.accuracies.len().max(1);
        self.losses
            .chunks((self.losses.len() / epochs).max(1))
            .map(|l| l.iter().sum::<f64>() / l.len() as f64)
            .collect()
    }
}

/// Trains from scratch; `report` receives the mean loss and the accuracy of each epoch.
///
/// # Errors
///
/// A plan that does not fit the data.
pub fn train(
    program: &Program,
    digits: &Digits,
    plan: &Plan,
    mut report: impl FnMut(usize, f64, f64),
) -> Result<Course, Box<dyn Error>> {
    let (n, pixels) = digits.images.dim();
    if plan.batch == 0 || plan.batch > plan.train || plan.train >= n {
        return Err(format!("{n} images cannot be split into {} and the others", plan.train).into());
    }
    let sizes = [("pixels", pixels), ("hidden", plan.hidden), ("classes", CLASSES)];
    let first = compile(program, "init", None, &sizes)?.call().scalar("seed", plan.seed as i64).run()?;
    let zeros = |n: usize| ArrayD::zeros(IxDyn(&[n]));
    let mut network = [
        Parameter::new("w1", first.array("w1")?),
        Parameter::new("b1", zeros(plan.hidden)),
        Parameter::new("w2", first.array("w2")?),
        Parameter::new("b2", zeros(CLASSES)),
    ];
    let step = compile(program, "step", Some("fast"), &[])?;
    let errors = compile(program, "errors", Some("on_threads"), &[])?;

    // The held-out images, and the order of the others, are functions of the seed.
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    let mut order: Vec<i32> = (0..n as i32).collect();
    order.shuffle(&mut random);
    let (learned, kept) = order.split_at_mut(plan.train);

    let mut course = Course { losses: Vec::new(), accuracies: Vec::new(), seconds: 0.0 };
    for epoch in 1..=plan.epochs {
        let start = std::time::Instant::now();
        learned.shuffle(&mut random);
        let mut total = 0.0;
        let batches = learned.chunks_exact(plan.batch);
        let count = batches.len();
        for batch in batches {
            let t = course.losses.len() as i32 + 1;
            let mut call =
                step.call().input("picked", ArrayView1::from(batch)).scalar("t", t).scalar("rate", plan.rate);
            call = call.input("images", digits.images.view()).input("labels", digits.labels.view());
            let loss = f64::from(adam::change(call, &mut network).run()?.scalar::<f32>("l")?);
            total += loss;
            course.losses.push(loss);
        }
        course.seconds += start.elapsed().as_secs_f64();

        let mut call = errors.call().input("picked", ArrayView1::from(&*kept));
        call = call.input("images", digits.images.view()).input("labels", digits.labels.view());
        let wrong = adam::read(call, &network).run()?.scalar::<i32>("wrong")?;
        let accuracy = 1.0 - f64::from(wrong) / kept.len() as f64;
        course.accuracies.push(accuracy);
        report(epoch, total / count as f64, accuracy);
    }
    Ok(course)
}
