//! Descent around `fit.ft`: a mesh, a target picture, and the pose carried from step to step.

#[allow(clippy::duplicate_mod)] // the tests include all training programs in one crate
#[path = "../support/adam.rs"]
mod adam;
#[allow(clippy::duplicate_mod)]
#[path = "../support/mesh.rs"]
mod mesh;

use adam::Parameter;
pub use mesh::Mesh;
use ndarray::{ArrayD, arr1};
use std::error::Error;
use std::f32::consts::PI;
use taffeta::{Function, Options, Program, StaticValue};

/// Azimuth and elevation in radians, scale, and shift to the right and up.
pub type Pose = [f32; 5];

/// Hyperparameters of the search.
pub struct Plan {
    /// Pixels of a side of the picture.
    pub size: usize,
    /// Softness of the rasteriser.
    pub sigma: f32,
    pub steps: usize,
    /// Adam's rate in the first step; it falls to 0 along half a cosine.
    pub rate: f32,
}

/// Entries of `fit.ft`, compiled for a mesh.
pub struct Fitter<'m> {
    mesh: &'m Mesh,
    plan: &'m Plan,
    outline: Function,
    step: Function,
}

/// Result of the search.
pub struct Course {
    /// Loss of every step.
    pub losses: Vec<f64>,
    pub pose: Pose,
    pub seconds: f64,
}

impl Course {
    /// Returns the distance to another pose: the largest difference of angles, and that of scale and shifts.
    pub fn distance(&self, other: &Pose) -> (f32, f32) {
        let largest = |range: std::ops::Range<usize>| {
            range
                .map(|k| (self.pose[k] - other[k]).abs())
                .fold(0.0, |a: f32, b| if b > a || b.is_nan() { b } else { a })
        };
        (largest(0..2), largest(2..5))
    }
}

impl<'m> Fitter<'m> {
    /// Compiles the program.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn new(program: &Program, mesh: &'m Mesh, plan: &'m Plan) -> Result<Fitter<'m>, Box<dyn Error>> {
        let sized = Options::default().set("size", StaticValue::Int(plan.size as i128));
        let fast = Options::default().schedule("fast");
        Ok(Fitter { mesh, plan, outline: program.compile("outline", &sized)?, step: program.compile("step", &fast)? })
    }

    /// Draws the mesh's outline at a pose.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn draw(&self, pose: &Pose) -> Result<ArrayD<f32>, Box<dyn Error>> {
        let pose = arr1(pose);
        let call = self.outline.call().input("vertices", self.mesh.vertices.view());
        let call = call.input("faces", self.mesh.faces.view()).input("pose", pose.view());
        Ok(call.scalar("sigma", self.plan.sigma).run()?.array("image")?)
    }

    /// Searches for the pose of the target, from another one.
    ///
    /// # Errors
    ///
    /// A target of another size than the plan's.
    pub fn fit(&self, target: &ArrayD<f32>, from: &Pose) -> Result<Course, Box<dyn Error>> {
        let mut pose = [Parameter::new("pose", arr1(from).into_dyn())];
        let mut losses = Vec::new();
        let start = std::time::Instant::now();
        for k in 0..self.plan.steps {
            let rate = self.plan.rate * 0.5 * (1.0 + (PI * k as f32 / self.plan.steps as f32).cos());
            let call = self.step.call().input("vertices", self.mesh.vertices.view());
            let call = call.input("faces", self.mesh.faces.view()).input("target", target.view());
            let call = call.scalar("sigma", self.plan.sigma).scalar("t", k as i32 + 1).scalar("rate", rate);
            losses.push(f64::from(adam::change(call, &mut pose).run()?.scalar::<f32>("l")?));
        }
        let seconds = start.elapsed().as_secs_f64();
        let found: Vec<f32> = pose[0].value().iter().copied().collect();
        let pose = found.try_into().map_err(|_| "a pose has five numbers")?;
        Ok(Course { losses, pose, seconds })
    }
}
