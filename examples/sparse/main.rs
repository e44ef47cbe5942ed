//! Blending of one sheet of line drawings over another with `blend` of `pictures.ft`. Both are kept in runs, and lent
//! to the program without a copy; the result is a PNG picture.
//!
//! ```text
//! TAFFETA_DATA=… cargo run --release --example blend [FILE.png]
//! ```
//!
//! The drawings are Greek and Balinese letters of Omniglot; without it, rings made here.

mod blending;
#[path = "../support/outcome.rs"]
mod outcome;

use blending::Runs;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use taffeta::{Options, Program};

/// Opacity of the upper sheet.
const ALPHA: f64 = 0.7;
/// Minimum number of pixels per run, over both sheets.
const SHORTEST: f64 = 10.0;

fn main() -> ExitCode {
    outcome::exit("blend", run())
}

fn run() -> Result<bool, Box<dyn Error>> {
    let program = Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sparse/pictures.ft"))?;
    let published = match std::env::var_os("TAFFETA_DATA") {
        Some(folder) => blending::published(Path::new(&folder))?,
        None => None,
    };
    let sheets = published.unwrap_or_else(|| {
        eprintln!("TAFFETA_DATA has no images/omniglot_images_background_small1.zip: rings");
        blending::made()
    });
    let [over, under] = sheets.each_ref().map(Runs::of);
    let blend = program.compile("blend", &Options::default())?;
    let picture = blending::blend(&blend, &over, &under, ALPHA)?;

    let path = outcome::picture("blend.png");
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let value = taffeta::array::argument(picture.view()).to_value().ok_or("a picture that is not an array")?;
    taffeta::io::picture::write(&mut std::fs::File::create(&path)?, &value)?;

    let by_pixels = blending::pixels(&sheets[0], &sheets[1], ALPHA);
    let different = picture.iter().zip(&by_pixels).filter(|(a, b)| a != b).count();
    let (runs, pixels) = (over.count() + under.count(), 2 * picture.len());
    let length = pixels as f64 / runs as f64;
    println!(
        "two sheets of {} pixels in {} and {} runs; {}",
        picture.len(),
        over.count(),
        under.count(),
        path.display()
    );
    println!("{length:.1} pixels to a run (must be at least {SHORTEST}), {different} pixels are wrong (must be 0)");
    Ok(length >= SHORTEST && different == 0)
}
