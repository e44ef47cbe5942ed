//! Training loop around `train.ft`: meshes, the features of their faces, and the state carried from step to step.

#[allow(clippy::duplicate_mod)] // the tests include all training programs in one crate
#[path = "../support/adam.rs"]
mod adam;
#[allow(clippy::duplicate_mod)]
#[path = "../support/mesh.rs"]
mod mesh;

use adam::Parameter;
pub use mesh::Mesh;
use ndarray::{Array1, Array2, ArrayD, IxDyn};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::error::Error;
use std::f32::consts::PI;
use taffeta::{Call, Function, Options, Program, StaticValue};

/// Moves every vertex at random, by up to `amount` in each direction: on a smooth torus, the position of a face gives
/// away its bend.
pub fn roughened(mut mesh: Mesh, amount: f32, seed: u64) -> Mesh {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    mesh.vertices.mapv_inplace(|v| v + random.random_range(-amount..amount));
    mesh
}

/// Faces of a mesh: the features of each, its neighbours, and the angle by which it is bent towards them.
pub struct Faces {
    e: Array2<f32>,
    adj: Array2<i32>,
    bend: Array1<f32>,
}

impl Faces {
    /// Returns the faces without neighbours: each sees itself across all of its edges.
    pub fn alone(&self) -> Faces {
        let adj = Array2::from_shape_fn(self.adj.dim(), |(f, _)| f as i32);
        Faces { e: self.e.clone(), adj, bend: self.bend.clone() }
    }

    /// Returns the number of faces.
    pub fn count(&self) -> usize {
        self.bend.len()
    }

    fn pass<'f, 'a>(&'a self, call: Call<'f, 'a>) -> Call<'f, 'a> {
        call.input("e", self.e.view()).input("adj", self.adj.view()).input("bend", self.bend.view())
    }
}

/// Hyperparameters of training.
pub struct Plan {
    pub channels: usize,
    pub steps: usize,
    /// Adam's rate in the first step; it falls to 0 along half a cosine.
    pub rate: f32,
    pub seed: i64,
}

/// Entries of `train.ft`, compiled.
pub struct Trainer<'p> {
    plan: &'p Plan,
    describe: Function,
    per_face: Function,
    init: Function,
    step: Function,
    loss: Function,
}

/// Result of training.
pub struct Course {
    /// Loss of every step.
    pub losses: Vec<f64>,
    /// Loss after the last step, on the faces to learn from.
    pub learned: f64,
    /// Loss after the last step, on faces of another mesh.
    pub kept: f64,
    pub seconds: f64,
}

/// Number of features of a face: normal, centre, area.
const FEATS: usize = 7;

impl<'p> Trainer<'p> {
    /// Compiles the program.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn new(program: &Program, plan: &'p Plan) -> Result<Trainer<'p>, Box<dyn Error>> {
        let (mut statics, mut sized) = (Options::default(), Options::default());
        for (name, value) in [("feats", FEATS), ("channels", plan.channels)] {
            statics = statics.set(name, StaticValue::Int(value as i128));
            sized = sized.size(name, value as i64);
        }
        Ok(Trainer {
            plan,
            describe: program.compile("describe", &Options::default())?,
            per_face: program.compile("per_face", &Options::default())?,
            init: program.compile("init", &statics)?,
            step: program.compile("step", &sized.clone().schedule("fast"))?,
            loss: program.compile("loss", &sized)?,
        })
    }

    /// Computes the features and the targets of the faces of a mesh.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn describe(&self, mesh: &Mesh) -> Result<Faces, Box<dyn Error>> {
        let call = self.describe.call().input("vertices", mesh.vertices.view());
        let faces = call.input("faces", mesh.faces.view()).input("adj", mesh.adjacency.view()).run()?;
        Ok(Faces {
            e: faces.array::<f32>("e")?.into_dimensionality()?,
            adj: mesh.adjacency.clone(),
            bend: faces.array::<f32>("bend")?.into_dimensionality()?,
        })
    }

    /// Returns the loss of the best linear function of each face's own features.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn linear(&self, faces: &Faces) -> Result<f64, Box<dyn Error>> {
        let call = self.per_face.call().input("e", faces.e.view()).input("bend", faces.bend.view());
        Ok(f64::from(call.run()?.scalar::<f32>("out")?))
    }

    /// Trains from scratch on the faces of one mesh; those of the other are held out.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn train(&self, faces: &Faces, kept: &Faces) -> Result<Course, Box<dyn Error>> {
        let plan = self.plan;
        let weights = self.init.call().scalar("seed", plan.seed).run()?;
        let zeros = |n: usize| ArrayD::<f32>::zeros(IxDyn(&[n]));
        let mut network = vec![Parameter::new("b", zeros(plan.channels)), Parameter::new("bias", zeros(1))];
        for name in ["w0", "w1", "w2", "w3", "head"] {
            network.push(Parameter::new(name, weights.array(name)?));
        }
        let start = std::time::Instant::now();
        let mut losses = Vec::new();
        for k in 0..plan.steps {
            let rate = plan.rate * 0.5 * (1.0 + (PI * k as f32 / plan.steps as f32).cos());
            let call = faces.pass(self.step.call()).scalar("t", k as i32 + 1).scalar("rate", rate);
            losses.push(f64::from(adam::change(call, &mut network).run()?.scalar::<f32>("l")?));
        }
        let seconds = start.elapsed().as_secs_f64();
        let on = |faces: &Faces| -> Result<f64, Box<dyn Error>> {
            Ok(f64::from(adam::read(faces.pass(self.loss.call()), &network).run()?.scalar::<f32>("out")?))
        };
        Ok(Course { learned: on(faces)?, kept: on(kept)?, losses, seconds })
    }
}
