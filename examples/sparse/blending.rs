//! Pictures in runs around `blend` of `pictures.ft`: sheets of line drawings, and their storage.

use ndarray::{Array2, s};
use std::error::Error;
use std::io::{Cursor, Read};
use std::path::Path;
use taffeta::{Function, LevelKind, Sparse};

/// Number of drawings on a sheet, across and down.
const SHEET: [usize; 2] = [10, 5];
/// Pixels of a drawing, across and down.
const DRAWING: usize = 105;

/// Picture as a codec keeps it: the beginning of each row's runs, the end of each run, and the value of its pixels.
pub struct Runs {
    shape: [usize; 2],
    pos: Vec<i32>,
    end: Vec<i32>,
    values: Vec<u8>,
}

impl Runs {
    /// Encodes a picture in runs.
    pub fn of(picture: &Array2<u8>) -> Runs {
        let mut runs = Runs { shape: picture.dim().into(), pos: vec![0], end: Vec::new(), values: Vec::new() };
        for row in picture.rows() {
            for (j, pixel) in row.iter().enumerate() {
                if j + 1 == row.len() || row[j + 1] != *pixel {
                    runs.end.push(j as i32 + 1);
                    runs.values.push(*pixel);
                }
            }
            runs.pos.push(runs.end.len() as i32);
        }
        runs
    }

    /// Returns the number of runs.
    pub fn count(&self) -> usize {
        self.end.len()
    }

    /// Returns the picture as Taffeta takes it: these arrays, and no copy of them.
    fn lent(&self) -> Sparse<'_> {
        Sparse::new(&self.values, &self.shape).dense().level(LevelKind::RunLength, &[&self.pos, &self.end])
    }
}

/// Blends one picture over another by `blend`.
///
/// # Errors
///
/// Pictures of different sizes.
pub fn blend(blend: &Function, over: &Runs, under: &Runs, alpha: f64) -> Result<Array2<u8>, Box<dyn Error>> {
    let (b, c) = (over.lent(), under.lent());
    let picture = blend.call().sparse("B", &b).sparse("C", &c).scalar("alpha", alpha).run()?;
    Ok(picture.array::<u8>("A")?.into_dimensionality()?)
}

/// Blends two pictures pixel by pixel, to compare with.
pub fn pixels(over: &Array2<u8>, under: &Array2<u8>, alpha: f64) -> Array2<u8> {
    ndarray::Zip::from(over)
        .and(under)
        .map_collect(|b, c| (alpha * f64::from(*b) + (1.0 - alpha) * f64::from(*c)).round_ties_even() as u8)
}

/// Reads two sheets of drawings from Omniglot in a folder of published data, the letters of one alphabet on each;
/// `None` if they are not there.
///
/// # Errors
///
/// A malformed file.
pub fn published(folder: &Path) -> Result<Option<[Array2<u8>; 2]>, Box<dyn Error>> {
    let path = folder.join("images/omniglot_images_background_small1.zip");
    if !path.is_file() {
        return Ok(None);
    }
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path)?)?;
    let sheet = |alphabet: &str, archive: &mut zip::ZipArchive<std::fs::File>| {
        let mut names: Vec<String> =
            archive.file_names().filter(|n| n.contains(alphabet) && n.ends_with(".png")).map(str::to_string).collect();
        names.sort();
        let mut sheet = Array2::from_elem((SHEET[1] * DRAWING, SHEET[0] * DRAWING), 255);
        let count = SHEET[0] * SHEET[1];
        if names.len() < count {
            return Err(format!("{} drawings of {alphabet} in the place of {count}", names.len()).into());
        }
        let step = names.len() / count;
        for (k, name) in names.iter().step_by(step).take(count).enumerate() {
            let mut bytes = Vec::new();
            archive.by_name(name)?.read_to_end(&mut bytes)?;
            let (top, left) = (k / SHEET[0] * DRAWING, k % SHEET[0] * DRAWING);
            sheet.slice_mut(s![top..top + DRAWING, left..left + DRAWING]).assign(&drawing(&bytes)?);
        }
        Ok::<_, Box<dyn Error>>(sheet)
    };
    Ok(Some([sheet("Greek/", &mut archive)?, sheet("Balinese/", &mut archive)?]))
}

/// Decodes a drawing from a PNG file.
fn drawing(bytes: &[u8]) -> Result<Array2<u8>, Box<dyn Error>> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info()?;
    let mut pixels = vec![0; reader.output_buffer_size().ok_or("a picture that is too large")?];
    let frame = reader.next_frame(&mut pixels)?;
    pixels.truncate(frame.buffer_size());
    Ok(Array2::from_shape_vec((DRAWING, DRAWING), pixels)?)
}

/// Draws two sheets of rings, which need no data.
pub fn made() -> [Array2<u8>; 2] {
    [9.0, 14.0].map(|width: f64| {
        Array2::from_shape_fn((SHEET[1] * DRAWING, SHEET[0] * DRAWING), |(i, j)| {
            let middle = |k: usize| (k % DRAWING) as f64 - DRAWING as f64 / 2.0;
            let ring = middle(i).hypot(middle(j)) % width;
            if ring < 3.0 { 0 } else { 255 }
        })
    })
}
