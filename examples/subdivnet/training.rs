//! The training loop around `train.ft`: meshes, what their faces know, and the state that goes from one step to the
//! next.

#[allow(clippy::duplicate_mod)] // the tests take all programs that train into one crate
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

/// Moves every vertex at random, by up to `amount` in each direction: on a smooth torus, where a face is says how it is
/// bent.
pub fn roughened(mut mesh: Mesh, amount: f32, seed: u64) -> Mesh {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    mesh.vertices.mapv_inplace(|v| v + random.random_range(-amount..amount));
    mesh
}

/// The faces of a mesh: what each knows of itself, its neighbours, and by what angle it is bent towards them.
pub struct Faces {
    e: Array2<f32>,
    adj: Array2<i32>,
    bend: Array1<f32>,
}

impl Faces {
    /// Without neighbours: each face sees itself across all of its edges.
    pub fn alone(&self) -> Faces {
        let adj = Array2::from_shape_fn(self.adj.dim(), |(f, _)| f as i32);
        Faces { e: self.e.clone(), adj, bend: self.bend.clone() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.bend.len()
    }

    fn pass<'f, 'a>(&'a self, call: Call<'f, 'a>) -> Call<'f, 'a> {
        call.input("e", self.e.view()).input("adj", self.adj.view()).input("bend", self.bend.view())
    }
}

/// How training is done.
pub struct Plan {
    pub channels: usize,
    pub steps: usize,
    /// Adam's rate in the first step; it falls to 0 along half a cosine.
    pub rate: f32,
    pub seed: i64,
}

/// The entries of `train.ft`, compiled.
pub struct Trainer<'p> {
    plan: &'p Plan,
    describe: Function,
    per_face: Function,
    init: Function,
    step: Function,
    loss: Function,
}

/// What came out of it.
pub struct Course {
    /// The loss of every step.
    pub losses: Vec<f64>,
    /// The loss after the last step, on the faces that were learned from.
    pub learned: f64,
    /// The same on faces of another mesh.
    pub kept: f64,
    pub seconds: f64,
}

/// What a face knows of itself: normal, centre, area.
const FEATS: usize = 7;

impl<'p> Trainer<'p> {
    /// Compiles the program.
    ///
    /// # Errors
    ///
    /// None that is not a fault of Taffeta.
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

    /// What the faces of a mesh know, and are to say.
    ///
    /// # Errors
    ///
    /// None that is not a fault of Taffeta.
    pub fn describe(&self, mesh: &Mesh) -> Result<Faces, Box<dyn Error>> {
        let call = self.describe.call().input("vertices", mesh.vertices.view());
        let faces = call.input("faces", mesh.faces.view()).input("adj", mesh.adjacency.view()).run()?;
        Ok(Faces {
            e: faces.array::<f32>("e")?.into_dimensionality()?,
            adj: mesh.adjacency.clone(),
            bend: faces.array::<f32>("bend")?.into_dimensionality()?,
        })
    }

    /// The loss of the best linear function of what each face knows of itself.
    ///
    /// # Errors
    ///
    /// None that is not a fault of Taffeta.
    pub fn linear(&self, faces: &Faces) -> Result<f64, Box<dyn Error>> {
        let call = self.per_face.call().input("e", faces.e.view()).input("bend", faces.bend.view());
        Ok(f64::from(call.run()?.scalar::<f32>("out")?))
    }

    /// Trains from scratch on the faces of one mesh; those of the other are kept back.
    ///
    /// # Errors
    ///
    /// None that is not a fault of Taffeta.
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
