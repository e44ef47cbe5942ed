//! Training of the mesh convolution of `train.ft` on the faces of a mesh: draws the curve, and reports whether the
//! losses reach their bounds.
//!
//! ```text
//! TAFFETA_DATA=… cargo run --release --example subdivnet [FILE.svg]
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
use training::{Mesh, Plan, Trainer, roughened};

/// Bounds on the share of unexplained variance: on the mesh to learn from, and on the other one. Results without
/// neighbours must be worse by the factor.
const LEARNED: f64 = 0.04;
const KEPT: f64 = 0.2;
const FACTOR: f64 = 5.0;

fn main() -> ExitCode {
    outcome::exit("subdivnet", run())
}

fn run() -> Result<bool, Box<dyn Error>> {
    let program = Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/subdivnet/train.ft"))?;
    let published = match std::env::var_os("TAFFETA_DATA") {
        Some(folder) => {
            let of = |name: &str| Mesh::published(Path::new(&folder), name);
            of("libigl_bunny.off")?.zip(of("softras_spot_triangulated.obj")?)
        }
        None => None,
    };
    let (names, meshes) = match published {
        Some(meshes) => (["the bunny", "spot"], meshes),
        None => {
            eprintln!(
                "TAFFETA_DATA has no meshes/libigl_bunny.off and meshes/softras_spot_triangulated.obj: two rough tori"
            );
            let rough = |tube, seed| Ok::<_, Box<dyn Error>>(roughened(Mesh::torus(48, 24, tube)?, 0.03, seed));
            (["the thick torus", "the thin torus"], (rough(0.6, 1)?, rough(0.4, 2)?))
        }
    };
    let plan = Plan { channels: 16, steps: 600, rate: 0.02, seed: 1 };
    let trainer = Trainer::new(&program, &plan)?;
    let (learned, kept) = (trainer.describe(&meshes.0)?, trainer.describe(&meshes.1)?);
    let linear = trainer.linear(&learned)?;
    let course = trainer.train(&learned, &kept)?;
    let alone = trainer.train(&learned.alone(), &kept.alone())?;

    let picture = outcome::picture("subdivnet.svg");
    curve::curves(
        &picture,
        "SubdivNet: how strongly a mesh is bent",
        "step",
        "share of variance not explained",
        &[("mesh convolution", &course.losses), ("without neighbours", &alone.losses)],
    )?;
    println!("{} faces of {} to learn from, {} of {} kept back", learned.count(), names[0], kept.count(), names[1]);
    println!("{} steps in {:.2} s; curves in {}", plan.steps, course.seconds, picture.display());
    println!("without neighbours: the best linear function {linear:.4}, the same network {:.4}", alone.learned);
    println!(
        "loss {:.4} (must be below {LEARNED}, and {FACTOR} times below those), on the kept mesh {:.4} (must be below {KEPT})",
        course.learned, course.kept
    );
    let others = linear.min(alone.learned);
    Ok(course.learned < LEARNED && FACTOR * course.learned < others && course.kept < KEPT)
}
