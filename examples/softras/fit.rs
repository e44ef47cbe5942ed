//! Search for a mesh's pose from a picture of its outline with `fit.ft`: draws the curve and the pictures, and reports
//! whether the pose was found.
//!
//! ```text
//! TAFFETA_DATA=… cargo run --release --example fit [FILE.svg]
//! ```

#[path = "../support/curve.rs"]
mod curve;
mod fitting;
#[path = "../support/outcome.rs"]
mod outcome;

use fitting::{Fitter, Mesh, Plan, Pose};
use ndarray::ArrayD;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use taffeta::Program;

/// Bounds on the loss, and on the distance of the pose: in radians, and in scale and shift (the picture is 2 wide).
const LOSS: f64 = 1e-6;
const ANGLE: f32 = 0.005;
const PLACE: f32 = 0.002;

/// Pose of the target, and the starts of the search.
const TARGET: Pose = [0.9, 0.7, 0.75, 0.1, -0.1];
const STARTS: [Pose; 3] = [[0.4, 0.4, 0.95, 0.0, 0.0], [1.3, 0.9, 0.6, 0.0, 0.0], [1.2, 0.3, 0.85, 0.3, 0.1]];

fn main() -> ExitCode {
    outcome::exit("fit", run())
}

fn run() -> Result<bool, Box<dyn Error>> {
    let program = Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/softras/fit.ft"))?;
    let published = match std::env::var_os("TAFFETA_DATA") {
        Some(folder) => Mesh::published(Path::new(&folder), "subdivnet_airplane.obj")?,
        None => None,
    };
    let (name, mesh) = match published {
        Some(mesh) => ("airplane", mesh),
        None => {
            eprintln!("TAFFETA_DATA has no meshes/subdivnet_airplane.obj: a torus");
            ("torus", Mesh::torus(24, 12, 0.4)?)
        }
    };
    let plan = Plan { size: 64, sigma: 3e-4, steps: 200, rate: 0.03 };
    let fitter = Fitter::new(&program, &mesh, &plan)?;
    let target = fitter.draw(&TARGET)?;

    let picture = outcome::picture("fit.svg");
    if let Some(folder) = picture.parent() {
        std::fs::create_dir_all(folder)?;
    }
    write(&picture, "target", &target)?;
    let mut courses = Vec::new();
    let mut all = true;
    for (k, start) in STARTS.iter().enumerate() {
        let course = fitter.fit(&target, start)?;
        write(&picture, &format!("before{k}"), &fitter.draw(start)?)?;
        write(&picture, &format!("after{k}"), &fitter.draw(&course.pose)?)?;
        let (angle, place) = course.distance(&TARGET);
        let last = course.losses.last().copied().unwrap_or(f64::NAN);
        println!(
            "start {k}: loss {:.4} to {last:.2e} (must be below {LOSS:.0e}), off by {angle:.5} rad (at most {ANGLE}) and {place:.5} (at most {PLACE}), {:.1} ms a step",
            course.losses.first().copied().unwrap_or(f64::NAN),
            1000.0 * course.seconds / plan.steps as f64,
        );
        all &= last < LOSS && angle <= ANGLE && place <= PLACE;
        courses.push(course);
    }
    let names: Vec<String> = (0..STARTS.len()).map(|k| format!("start {k}")).collect();
    let lines: Vec<(&str, &[f64])> =
        names.iter().map(String::as_str).zip(courses.iter().map(|c| &c.losses[..])).collect();
    curve::curves(&picture, "Soft rasteriser: the pose of a mesh", "step", "loss", &lines)?;
    println!(
        "{name}: {} faces, {2} x {2} pixels, {3} steps; curves in {1}, pictures beside it",
        mesh.faces.nrows(),
        picture.display(),
        plan.size,
        plan.steps
    );
    Ok(all)
}

/// Writes a picture beside the curve: `fit.svg`, `fit-target.png`.
fn write(curve: &Path, what: &str, image: &ArrayD<f32>) -> Result<(), Box<dyn Error>> {
    let stem = curve.file_stem().map_or_else(Default::default, |s| s.to_string_lossy().into_owned());
    let value = taffeta::array::argument(image.view()).to_value().ok_or("a picture that is not an array")?;
    let mut file = std::fs::File::create(curve.with_file_name(format!("{stem}-{what}.png")))?;
    Ok(taffeta::io::picture::write(&mut file, &value)?)
}
