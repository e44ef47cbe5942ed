//! Triangle meshes for examples: files of published data, and a torus made by the project: `#[path =
//! "../support/mesh.rs"] mod mesh;`.

use ndarray::Array2;
use std::error::Error;
use std::path::Path;
use taffeta::io::{self, Source, Want};
use taffeta::{Element, Options, Program, StaticValue};
use taffeta_ast::DType;

/// Vertices, the corners of each face, and the face across each of its edges (itself if there is none).
pub struct Mesh {
    pub vertices: Array2<f32>,
    pub faces: Array2<i32>,
    #[allow(dead_code)] // not every example asks for neighbours
    pub adjacency: Array2<i32>,
}

impl Mesh {
    /// Reads a file under `meshes/` in a folder of published data; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// A malformed file.
    pub fn published(folder: &Path, name: &str) -> Result<Option<Mesh>, Box<dyn Error>> {
        let path = folder.join("meshes").join(name);
        if !path.is_file() {
            return Ok(None);
        }
        Ok(Some(Mesh {
            vertices: part(&path, "vertices", DType::F32)?,
            faces: part(&path, "faces", DType::I32)?,
            adjacency: part(&path, "adjacency", DType::I32)?,
        }))
    }

    /// Makes a torus of `rings` rings with `sides` sides; `tube` is its thickness.
    ///
    /// # Errors
    ///
    /// Only faults of Taffeta.
    pub fn torus(rings: usize, sides: usize, tube: f64) -> Result<Mesh, Box<dyn Error>> {
        let program = Program::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/meshes/torus.ft"))?;
        let options = Options::default()
            .set("rings", StaticValue::Int(rings as i128))
            .set("sides", StaticValue::Int(sides as i128))
            .set("tube", StaticValue::Float(tube));
        let made = program.compile("torus", &options)?.call().run()?;
        Ok(Mesh {
            vertices: made.array::<f32>("vertices")?.into_dimensionality()?,
            faces: made.array::<i32>("faces")?.into_dimensionality()?,
            adjacency: made.array::<i32>("adjacency")?.into_dimensionality()?,
        })
    }
}

fn part<T: Element>(path: &Path, part: &str, dtype: DType) -> Result<Array2<T>, Box<dyn Error>> {
    let source = Source::File { path: path.to_path_buf(), part: Some(part.to_string()) };
    let want = Want::new(part, dtype, 2);
    let value = io::read(&source, &want).map_err(|d| format!("{}: {}", path.display(), d.message))?;
    let array = taffeta::array::to_array::<T>(value).ok_or_else(|| format!("{}: no numbers", path.display()))?;
    Ok(array.into_dimensionality()?)
}
