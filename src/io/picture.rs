//! PNG pictures: read as `[height, width]` (greyscale) or `[height, width, channels]`, written from either.
//!
//! An integer parameter takes the file's numbers (0 to 255, or 65535), a float parameter takes them scaled to 0..1.
//! Writing clips floats to 0..1 (NaN is refused), keeps `u8`, and converts `bool` to black and white.

use super::file::{file_error, os_error};
use super::want::Want;
use super::{convert, memory};
use std::io::{BufReader, Write};
use std::path::Path;
use taffeta_ast::{Buffer, DType, Diagnostic, Value};

/// Reads a picture.
pub fn read(path: &Path, want: &Want) -> Result<Value, Diagnostic> {
    let file = super::file::open(path)?;
    let mut decoder = png::Decoder::new(BufReader::new(file));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(|e| png_error(path, e))?;
    let (height, width) = (reader.info().height as usize, reader.info().width as usize);
    let (color, depth) = reader.output_color_type();
    let channels = color.samples();
    if want.ndim == 2 && channels != 1 {
        return Err(file_error(
            "data::rank",
            path,
            format!("the picture has {channels} channels, but parameter `{}` has 2 dimensions", want.name),
        )
        .help("declare it `[height, width, channels]`, or convert the picture to greyscale"));
    }
    let shape = if want.ndim == 2 { vec![height, width] } else { vec![height, width, channels] };
    let what = path.display().to_string();
    memory::check_tensor(DType::F64, &shape, &what)?;
    let size =
        reader.output_buffer_size().ok_or_else(|| file_error("data::too_large", path, "the picture is too large"))?;
    let mut bytes = vec![0; size];
    let frame = reader.next_frame(&mut bytes).map_err(|e| png_error(path, e))?;
    bytes.truncate(frame.buffer_size());
    let (numbers, white): (Vec<u16>, f64) = match depth {
        png::BitDepth::Sixteen => (bytes.chunks_exact(2).map(|c| u16::from_be_bytes([c[0], c[1]])).collect(), 65535.0),
        _ => (bytes.into_iter().map(u16::from).collect(), 255.0),
    };
    let data = if want.dtype.is_float() {
        Buffer::F64(numbers.into_iter().map(|x| f64::from(x) / white).collect())
    } else {
        Buffer::U16(numbers)
    };
    let value = Value::new(shape, data).ok_or_else(|| super::file::truncated(path))?;
    convert::to(value, want, &what)
}

fn png_error(path: &Path, e: png::DecodingError) -> Diagnostic {
    match e {
        png::DecodingError::IoError(e) => os_error(path, &e),
        png::DecodingError::LimitsExceeded => file_error("data::too_large", path, "the picture is too large"),
        e => file_error("data::format", path, format!("not a valid PNG picture ({e})")),
    }
}

/// Returns the reason why a type and rank cannot be a picture, if any; checked before the program runs.
pub fn refusal(dtype: DType, ndim: usize) -> Option<String> {
    if !(ndim == 2 || ndim == 3) {
        return Some(format!(
            "a picture has the shape [height, width] or [height, width, channels], but the result has {}",
            super::want::dimensions(ndim)
        ));
    }
    if !(dtype.is_float() || matches!(dtype, DType::U8 | DType::Bool)) {
        return Some(format!("a picture is made of floats from 0 to 1, of u8 or of bool, but the result is {dtype}"));
    }
    None
}

/// Returns the reason why a value cannot be written as a picture, although its type and rank allow it.
pub fn fault(value: &Value) -> Option<String> {
    let shape = value.shape();
    if shape.len() == 3 && !matches!(shape[2], 1 | 3 | 4) {
        return Some(format!("a picture has 1, 3 or 4 channels, but the shape is {}", super::want::shape_text(shape)));
    }
    if shape.iter().take(2).any(|d| *d == 0 || u32::try_from(*d).is_err()) {
        return Some(format!("a picture cannot have the shape {}", super::want::shape_text(shape)));
    }
    let data = value.data();
    (0..data.len()).find(|i| data.get_f64(*i).is_nan()).map(|i| format!("NaN{} has no colour", convert::at(shape, i)))
}

/// Counts the numbers outside of 0 to 1, which are clipped in the written picture.
pub fn clipped(value: &Value) -> usize {
    let data = value.data();
    if !value.dtype().is_float() {
        return 0;
    }
    (0..data.len()).filter(|i| !(0.0..=1.0).contains(&data.get_f64(*i))).count()
}

/// Writes a picture, which must have no [`fault`].
pub fn write(out: &mut dyn Write, value: &Value) -> std::io::Result<()> {
    let shape = value.shape();
    let side = |k: usize| u32::try_from(shape[k]).map_err(std::io::Error::other);
    let mut encoder = png::Encoder::new(out, side(1)?, side(0)?);
    encoder.set_color(match shape.get(2) {
        None | Some(1) => png::ColorType::Grayscale,
        Some(3) => png::ColorType::Rgb,
        Some(_) => png::ColorType::Rgba,
    });
    encoder.set_depth(png::BitDepth::Eight);
    let data = value.data();
    let bytes: Vec<u8> = match data {
        Buffer::U8(v) => v.clone(),
        _ => (0..data.len()).map(|i| (data.get_f64(i).clamp(0.0, 1.0) * 255.0).round() as u8).collect(),
    };
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&bytes)?;
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], dtype: DType, ndim: usize) -> Result<(Vec<usize>, Buffer), String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("x.png");
        std::fs::write(&path, bytes).expect("a file");
        let want = Want::new("img", dtype, ndim);
        let prefix = format!("{}/", dir.path().display());
        read(&path, &want).map(Value::into_parts).map_err(|d| d.message.replace(&prefix, ""))
    }

    fn picture(shape: &[usize], data: Buffer) -> Vec<u8> {
        let value = Value::new(shape.to_vec(), data).expect("a picture");
        assert_eq!(fault(&value), None);
        let mut b = Vec::new();
        write(&mut b, &value).expect("memory");
        b
    }

    #[test]
    fn pictures_round_trip() {
        let grey = picture(&[1, 3], Buffer::F32(vec![-1.0, 0.2, 7.0]));
        assert_eq!(check(&grey, DType::U8, 2), Ok((vec![1, 3], Buffer::U8(vec![0, 51, 255]))));
        assert_eq!(check(&grey, DType::F32, 2), Ok((vec![1, 3], Buffer::F32(vec![0.0, 0.2, 1.0]))));
        let rgb = picture(&[1, 1, 3], Buffer::U8(vec![1, 2, 3]));
        assert_eq!(check(&rgb, DType::I32, 3), Ok((vec![1, 1, 3], Buffer::I32(vec![1, 2, 3]))));
        assert!(check(&rgb, DType::F32, 2).unwrap_err().contains("the picture has 3 channels"));
    }

    #[test]
    fn clipped_numbers_are_counted() {
        let count = |data: Buffer| clipped(&Value::new(vec![1, data.len()], data).expect("a picture"));
        assert_eq!(count(Buffer::F32(vec![0.0, -0.0, 1.0, 0.5])), 0);
        assert_eq!(count(Buffer::F64(vec![-1e-9, 1.0 + 1e-9, f64::INFINITY, f64::NEG_INFINITY, 0.5])), 4);
        assert_eq!(count(Buffer::U8(vec![0, 255])), 0);
        assert_eq!(count(Buffer::Bool(vec![true])), 0);
    }

    #[test]
    fn other_arrays_than_pictures_are_refused() {
        assert!(check(b"no png at all", DType::F32, 2).unwrap_err().contains("a valid PNG"));
        assert!(refusal(DType::F32, 1).is_some());
        assert!(refusal(DType::I64, 2).is_some());
        let nan = Value::new(vec![1, 2], Buffer::F64(vec![0.0, f64::NAN])).expect("a value");
        assert_eq!(fault(&nan).as_deref(), Some("NaN at [0, 1] has no colour"));
        let five = Value::new(vec![1, 1, 5], Buffer::U8(vec![0; 5])).expect("a value");
        assert!(fault(&five).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn damage_does_not_panic(at in 0usize..100, byte: u8, cut in 0usize..100) {
            let mut b = picture(&[2, 2], Buffer::U8(vec![1, 2, 3, 4]));
            let at = at % b.len();
            b[at] = byte;
            let _ = check(&b, DType::F32, 2);
            let _ = check(&b[..cut.min(b.len())], DType::F32, 2);
        }
    }
}
