//! Random tensors for the parameters of a case, in their formats.

use super::program::{Case, Data, Kind, Param};
use crate::random::{Random, fitted, random_elements};
use taffeta_ast::format::{Format, LevelKind};
use taffeta_ast::{Buffer, DType, Literal, Value};
use taffeta_structured::{Indices, Stored, Unfit, check};

/// Value of a parameter.
#[derive(Clone)]
pub struct Given {
    /// Stored elements, for the program with formats.
    pub logical: Value,
    /// All elements, for the program without formats.
    pub dense: Value,
    /// Arrays for the lowered program.
    pub arrays: Vec<Value>,
    pub hidden: Vec<i64>,
    /// Packed tensor, if the parameter is structured.
    pub stored: Option<Stored>,
}

/// Draws the value of a parameter, which depends on the case's seed and sizes and on the parameter alone. `format` is
/// that of the elaborated program, in which a dense format is dense even if the case gives it a fill. `of`: packed
/// tensor whose pattern the parameter shares, if any.
pub fn given(case: &Case, p: &Param, format: &Format, of: Option<&Stored>) -> Given {
    let name = p.name.bytes().fold(case.seed, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let mut random = Random(name);
    random.next(2);
    let shape: Vec<usize> = p.dims.iter().map(|d| case.sizes[d] as usize).collect();
    let (data, kind, dtype) = (p.data, case.kind, p.dtype);
    let most = if let Data::Below(dim) = data { case.sizes[dim] as usize } else { 0 };
    let element = move |random: &mut Random| match data {
        Data::Values => value(kind, dtype, random),
        Data::Below(_) => random.next(most.max(1)) as f64,
    };
    let typed = |elements: Vec<f64>| typed(dtype, elements);
    if format.is_dense() {
        let count = shape.iter().product();
        let all = typed((0..count).map(|_| element(&mut random)).collect());
        let value = Value::new(shape, all).expect("it fits");
        return Given {
            logical: value.clone(),
            dense: value.clone(),
            arrays: vec![value],
            hidden: Vec::new(),
            stored: None,
        };
    }
    if let Some(of) = of {
        let count = of.arrays().last().map_or(0, |v| v.data().len());
        let elements = typed((0..count).map(|_| element(&mut random)).collect());
        return following(of, format, Value::new(vec![count], elements).expect("it fits"));
    }
    // Packing sorts all lists; those of unordered levels are made by renaming coordinates.
    let names: Vec<Option<Vec<i64>>> =
        shape.iter().enumerate().map(|(d, n)| renamed(format, d, *n, &mut random)).collect();
    let (indices, elements) = random_elements(&mut random, &shape, &element);
    let (stored, _, _) = fitted(&shape, format, indices, elements, &typed);
    let stored = unordered(&stored, format, &shape, &names);
    let logical = stored.elements();
    let (dense, _) = logical.dense().expect("it is small");
    let hidden = stored.hidden().to_vec();
    Given { logical, dense, hidden, arrays: stored.arrays().to_vec(), stored: Some(stored) }
}

/// Builds a tensor with these values over the pattern of another one.
pub fn following(of: &Stored, format: &Format, elements: Value) -> Given {
    let stored = of.clone().followed_by(format.clone(), elements.clone());
    let logical = stored.elements();
    let (dense, _) = logical.dense().expect("it is small");
    Given { logical, dense, hidden: Vec::new(), arrays: vec![elements], stored: Some(stored) }
}

/// Draws an element.
fn value(kind: Kind, dtype: DType, random: &mut Random) -> f64 {
    const SPECIAL: [f64; 5] = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, 0.0];
    let whole = |random: &mut Random| random.next(17) as f64 - 8.0;
    match (kind, dtype) {
        (_, DType::Bool) => random.next(2) as f64,
        (_, DType::I32 | DType::I64) | (Kind::Integers | Kind::Truth, _) => whole(random),
        (Kind::Any, _) if random.next(6) == 0 => SPECIAL[random.next(SPECIAL.len())],
        (Kind::Tropical { most }, _) => match random.next(8) {
            0 if most => f64::NEG_INFINITY,
            0 => f64::INFINITY,
            _ => whole(random),
        },
        _ => whole(random) / 2.0,
    }
}

pub fn typed(dtype: DType, elements: Vec<f64>) -> Buffer {
    let mut out = Buffer::zeros(dtype, elements.len());
    for (k, v) in elements.into_iter().enumerate() {
        let literal = match dtype {
            DType::Bool => Literal::Bool(v != 0.0),
            _ if dtype.is_float() => Literal::Float(v),
            _ => Literal::Int(v as i128),
        };
        assert!(out.set(k, literal), "{v} is not a {dtype}");
    }
    out
}

/// Draws new names for the coordinates of a dimension, if its level is unordered.
fn renamed(format: &Format, dimension: usize, size: usize, random: &mut Random) -> Option<Vec<i64>> {
    let level = format.order()?.iter().position(|d| *d == dimension)?;
    let lists = format.levels[level].kind.has_lists();
    (lists && !format.levels[level].ordered).then(|| {
        let mut names: Vec<i64> = (0..size as i64).collect();
        (1..size).for_each(|k| names.swap(k, random.next(k + 1)));
        names
    })
}

/// Renames the coordinates of a packed tensor.
fn unordered(stored: &Stored, format: &Format, shape: &[usize], names: &[Option<Vec<i64>>]) -> Stored {
    let mut arrays = stored.arrays().to_vec();
    let mut first = 0;
    let counts = taffeta_structured::arrays_of(format).expect("all levels are known");
    for (count, dimension) in counts.into_iter().zip(format.order().unwrap_or_default()) {
        first += count;
        if let Some(names) = &names[dimension] {
            // The coordinates of a list are its last array.
            let crd = &arrays[first - 1];
            let named: Vec<f64> = crd.numbers().iter().map(|c| names[*c as usize] as f64).collect();
            arrays[first - 1] = Value::new(crd.shape().to_vec(), typed(crd.dtype(), named)).expect("as many");
        }
    }
    Stored::of_arrays(shape.to_vec(), format.clone(), arrays, stored.hidden().to_vec())
}

/// Borrows an array of indices.
pub fn indices(v: &Value) -> Indices<'_> {
    Indices::of(v.data()).unwrap_or_else(|| panic!("expected an array of u8, u16, i32 or i64, found {}", v.dtype()))
}

/// Returns the rule of the format for borrowed arrays that these arrays violate, if any. Levels whose arrays cannot be
/// borrowed have none.
pub fn lent(p: &Param, format: &Format, shape: &[usize], arrays: &[Value]) -> Option<String> {
    if format.is_dense() {
        return None;
    }
    let (values, levels) = arrays.split_last()?;
    let all: Vec<Indices<'_>> = levels.iter().map(indices).collect();
    match check(&p.name, shape, format, &all, values.data().len()) {
        Err(Unfit::Level(_)) | Ok(_) => None,
        Err(why) => Some(format!("the arrays of `{}` do not fit: {why}", p.name)),
    }
}

/// Returns whether a level may have too many positions for 8 bits, with dimensions of up to 9 coordinates.
pub fn needs_room(kind: LevelKind) -> bool {
    matches!(kind, LevelKind::Hashed)
}
