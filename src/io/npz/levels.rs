//! Taffeta's own layout, `taffeta`: the arrays of each level, for formats that SciPy lacks.
//!
//! | array | contents |
//! |---|---|
//! | `levels` | levels, outermost first, in program notation: `dense, compressed(ordered=False)` |
//! | `order` | dimension that each level stores |
//! | `remap` | instead of `order`: coordinate expressions of the levels, `(j - i, i, j)` |
//! | `pos1`, `crd1`, … | index arrays of each level, numbered from 0, as on the level's page in the book |
//! | `data` | elements, one for each position of the last level |
//! | `fill` | fill value |
//!
//! Earlier versions wrote coordinates and a fill instead, which are read as SciPy's `coo` is.
//!
//! Arrays from files are validated against the contracts of their levels, as are arrays borrowed from a caller.

use super::archive::{Writer, failed};
use super::coo;
use super::sparse::SparseArchive;
use crate::io::elements::{Elements, Numbers};
use crate::io::want::Want;
use taffeta_ast::format::{Format, Level, coord};
use taffeta_ast::spelling::counted;
use taffeta_ast::value::Places;
use taffeta_ast::{Buffer, Diagnostic, Literal, Value};
use taffeta_structured::{Indices, Stored, array_names, check};

pub(super) fn takes(_: &Format, _: &[usize]) -> bool {
    true
}

pub(super) fn read(archive: &mut SparseArchive<'_>, shape: &[usize], want: &Want) -> Result<Elements, Diagnostic> {
    if !archive.has("levels") {
        return coo::read(archive, shape, want);
    }
    let stored = stored(archive, shape)?;
    let (dtype, format) = (stored.dtype(), stored.format());
    let (listed, elements) = stored.listed().map_err(|why| archive.bad(why))?;
    let fill = format.fill.unwrap_or(Literal::zero(dtype));
    // Fill values are dropped only if the last level stores regions; otherwise all listed elements are stored.
    let whole = format.levels.last().is_some_and(|l| l.kind.stores_regions());
    let kept: Vec<usize> = (0..elements.len()).filter(|k| !whole || !same(elements.get(*k), fill)).collect();
    let ndim = shape.len();
    let indices = kept.iter().flat_map(|k| listed[k * ndim..(k + 1) * ndim].iter().copied()).collect();
    let mut values = Buffer::zeros(dtype, kept.len());
    kept.iter().enumerate().for_each(|(to, k)| assert!(values.set(to, elements.get(*k))));
    Ok(Elements { indices, values: Numbers::Typed(values) })
}

/// Reads the arrays of a tensor's levels.
pub(super) fn stored(archive: &mut SparseArchive<'_>, shape: &[usize]) -> Result<Stored, Diagnostic> {
    let text = archive.text("levels")?;
    let format = format(archive, shape.len())?;
    let names = array_names(&format);
    let names = names.ok_or_else(|| archive.bad(format!("`{text}` has levels that are not supported yet")))?;
    let mut arrays = Vec::new();
    for name in names.iter().map(String::as_str).chain(["data"]) {
        if !archive.has(name) {
            return Err(archive.bad(format!("array `{name}` of the levels `{text}` is missing")));
        }
        let array = archive.array(name)?;
        if array.shape().len() != 1 {
            return Err(archive.bad(format!("expected `{name}` to have one dimension, found {}", array.shape().len())));
        }
        arrays.push(array);
    }
    let Some((data, lists)) = arrays.split_last() else { unreachable!("the last array is `data`") };
    let mut borrowed = Vec::new();
    for (name, list) in names.iter().zip(lists) {
        let Some(indices) = Indices::of(list.data()) else {
            let what = format!("expected u8, u16, i32 or i64 in `{name}`, found {}", list.dtype());
            return Err(archive.bad(what));
        };
        borrowed.push(indices);
    }
    let hidden = check("", shape, &format, &borrowed, data.data().len()).map_err(|unfit| archive.bad(unfit))?;
    Ok(Stored::of_arrays(shape.to_vec(), format, arrays, hidden))
}

/// Reads the format of a tensor.
pub(super) fn format(archive: &mut SparseArchive<'_>, ndim: usize) -> Result<Format, Diagnostic> {
    let text = archive.text("levels")?;
    format_of(&text, archive, ndim)
}

/// Parses the format that a file declares.
fn format_of(text: &str, archive: &mut SparseArchive<'_>, ndim: usize) -> Result<Format, Diagnostic> {
    let levels = Level::parse_list(text)
        .ok_or_else(|| archive.bad(format!("expected a list of levels in `levels`, found `{text}`")))?;
    let fill = Some(archive.fill()?.data().get(0));
    if archive.has("remap") {
        let remap = archive.text("remap")?;
        let (coords, keys) = coord::parse(&remap).ok_or_else(|| {
            archive.bad(format!("expected the coordinates of the levels in `remap`, found `{remap}`"))
        })?;
        let format = Format { fill, ..Format::new(levels).remapped(coords, keys) };
        format.check(ndim).map_err(|why| archive.bad(why))?;
        return Ok(format);
    }
    let order = archive.array("order")?;
    let order: Option<Vec<usize>> =
        (0..order.data().len()).map(|k| order.data().get_int(k).and_then(|d| usize::try_from(d).ok())).collect();
    let order = order.filter(|o| o.len() == ndim && (0..ndim).all(|d| o.contains(&d)));
    let order = order.ok_or_else(|| archive.bad(format!("expected each of the {ndim} dimensions once in `order`")))?;
    if levels.len() != ndim {
        let expected = counted(ndim, "level");
        return Err(archive.bad(format!("expected {expected} in `levels`, one for each dimension, found `{text}`")));
    }
    Ok(Format { fill, ..Format::new(levels).ordered(&order) })
}

/// Compares values: -0 equals 0, and NaN differs from itself.
fn same(a: Literal, b: Literal) -> bool {
    match (a, b) {
        (Literal::Float(a), Literal::Float(b)) => a == b,
        (a, b) => a == b,
    }
}

pub(super) fn write(archive: &mut Writer<'_>, value: &Value, places: &Places, format: &Format) -> std::io::Result<()> {
    let stored = Stored::pack(value.shape(), format, &places.indices, value.data());
    write_arrays(archive, &stored.map_err(failed)?)
}

/// Writes the arrays of a tensor's levels.
pub(super) fn write_arrays(archive: &mut Writer<'_>, stored: &Stored) -> std::io::Result<()> {
    let format = stored.format();
    let names = array_names(format).ok_or_else(|| failed(format!("`{format}` is not supported yet")))?;
    for (name, array) in names.iter().map(String::as_str).chain(["data"]).zip(stored.arrays()) {
        archive.add(name, array)?;
    }
    let levels: Vec<String> = format.levels.iter().map(Level::to_string).collect();
    archive.add_text("levels", &levels.join(", "))?;
    match format.order() {
        Some(order) => archive.add_list("order", order.into_iter().map(|d| d as i64).collect()),
        None => archive.add_text("remap", &format.remap()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::npz;
    use proptest::prelude::*;
    use std::io::Cursor;
    use taffeta_ast::DType;

    const VECTORS: &[&str] = &[
        "compressed",
        "compressed(ordered=False)",
        "compressed(index=u8)",
        "hashed",
        "bytemap",
        "bitmap",
        "banded",
        "ragged",
        "blocklist",
        "runlength(index=i64)",
        "packbits",
    ];

    fn written(value: &Value, levels: &str, order: &[usize]) -> Vec<u8> {
        let format = Format::new(Level::parse_list(levels).expect("levels")).ordered(order);
        let places = value.places().expect("it is sparse");
        let format = Format { fill: Some(places.fill), ..format };
        let mut bytes = Cursor::new(Vec::new());
        let mut archive = Writer::new(&mut bytes);
        archive.add_text("format", "taffeta").expect("memory");
        archive.add_list("shape", value.shape().iter().map(|n| *n as i64).collect()).expect("memory");
        write(&mut archive, value, places, &format).unwrap_or_else(|e| panic!("{levels}: {e}"));
        archive.add_number("fill", value.dtype(), places.fill).expect("memory");
        archive.finish().expect("memory");
        bytes.into_inner()
    }

    fn read_back(bytes: &[u8], want: &Want) -> Result<Value, String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.npz");
        std::fs::write(&path, bytes).expect("a file");
        let read = npz::read(&path, want).map_err(|d| d.message)?;
        read.ok_or_else(|| "no tensor".to_string())
    }

    #[test]
    fn written_files_round_trip() {
        for fill in [0.0, f64::INFINITY] {
            let fill = Literal::Float(fill);
            let given = |shape: &[usize], indices: &[i64]| {
                let elements = (1..=indices.len() / shape.len()).map(|v| v as f64).collect();
                Value::sparse(shape.to_vec(), indices.to_vec(), Buffer::F64(elements), fill).expect("in order")
            };
            for levels in VECTORS {
                let value = given(&[9], if *levels == "ragged" { &[0, 1, 2] } else { &[3, 4, 5] });
                let want = Want { fill: Some(fill), ..Want::new("A", DType::F64, 1) };
                assert_eq!(read_back(&written(&value, levels, &[0]), &want), Ok(value), "{levels}");
            }
            for (levels, indices) in [
                ("dense, hashed", [0, 2, 1, 0, 1, 2]),
                ("compressed, compressed", [0, 2, 2, 0, 2, 1]),
                ("compressed(unique=False), singleton", [0, 2, 2, 0, 2, 1]),
                ("dense, triangular", [1, 0, 1, 1, 2, 0]),
                ("dense, triangular(upper=True)", [0, 1, 0, 2, 1, 2]),
                ("hashed, bytemap", [0, 2, 2, 0, 2, 1]),
            ] {
                for order in [[0, 1], [1, 0]] {
                    let flipped = order == [1, 0];
                    let mut pairs: Vec<[i64; 2]> = indices.chunks(2).map(|p| [p[order[0]], p[order[1]]]).collect();
                    pairs.sort_unstable();
                    let value = given(&[3, 3], &pairs.concat());
                    let want = Want { fill: Some(fill), ..Want::new("A", DType::F64, 2) };
                    assert_eq!(read_back(&written(&value, levels, &order), &want), Ok(value), "{levels} {flipped}");
                }
            }
        }
    }

    /// Builds a file with a vector of `size` elements.
    fn vector(levels: &str, arrays: &[(&str, &[i32])], elements: usize, size: i64, fill: Option<f64>) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let mut archive = Writer::new(&mut bytes);
        archive.add_text("format", "taffeta").expect("memory");
        archive.add_text("levels", levels).expect("memory");
        for (name, list) in arrays {
            archive.add_data(name, vec![list.len()], Buffer::I32(list.to_vec())).expect("memory");
        }
        archive.add_list("order", vec![0]).expect("memory");
        archive.add_list("shape", vec![size]).expect("memory");
        archive.add_data("data", vec![elements], Buffer::F64(vec![1.0; elements])).expect("memory");
        if let Some(fill) = fill {
            archive.add_number("fill", DType::F64, Literal::Float(fill)).expect("memory");
        }
        archive.finish().expect("memory");
        bytes.into_inner()
    }

    #[test]
    fn errors_name_the_expected_arrays() {
        let said = |levels: &str, arrays: &[(&str, &[i32])]| {
            read_back(&vector(levels, arrays, 3, 9, Some(0.0)), &Want::new("A", DType::F64, 1))
                .expect_err("it is broken")
        };
        let (pos, crd): (&[i32], &[i32]) = (&[0, 3], &[3, 4, 5]);
        for (levels, arrays, expected) in [
            ("compressed", &[("pos0", pos)][..], "array `crd0` of the levels `compressed` is missing"),
            ("compressed", &[("pos0", pos), ("crd0", &[3, 5, 4])], "`crd0`"),
            ("compressed", &[("pos0", pos), ("crd0", &[3, 4, 9])], "`crd0`"),
            ("compressed", &[("pos0", &[0, 2]), ("crd0", crd)], "`pos0`"),
            ("compressed, dense", &[("pos0", pos), ("crd0", crd)], "expected 1 level in `levels`"),
            ("csr", &[("pos0", pos), ("crd0", crd)], "expected a list of levels in `levels`, found `csr`"),
        ] {
            let message = said(levels, arrays);
            assert!(message.contains(expected), "{message}");
        }
        let without = vector("compressed", &[("pos0", pos), ("crd0", crd)], 3, 9, None);
        let message = read_back(&without, &Want::new("A", DType::F64, 1)).expect_err("it is broken");
        assert!(message.ends_with("array `fill` of the `taffeta` tensor is missing"), "{message}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn arbitrary_arrays_do_not_panic(
            kind in 0..VECTORS.len(),
            lists in proptest::collection::vec(proptest::collection::vec(-2i32..12, 0..6), 4),
            count in 0usize..12,
            size in prop_oneof![0i64..12, Just(1 << 46)],
        ) {
            let format = Format::new(Level::parse_list(VECTORS[kind]).expect("levels"));
            let names = array_names(&format).expect("known");
            let lists = lists.iter().map(Vec::as_slice);
            let arrays: Vec<(&str, &[i32])> = names.iter().map(String::as_str).zip(lists).collect();
            let bytes = vector(VECTORS[kind], &arrays, count, size, Some(0.0));
            let _ = read_back(&bytes, &Want::new("A", DType::F64, 1));
        }
    }
}
