//! Tests of all layouts: archives of SciPy, broken archives, and round trips.

use super::*;
use proptest::prelude::*;
use std::io::Cursor;
use taffeta_ast::format::presets;
use taffeta_ast::{Buffer, DType};

/// Builds an archive of arrays.
fn archive(format: &str, arrays: &[(&str, Value)]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let mut archive = Writer::new(&mut bytes);
    archive.add_text("format", format).expect("memory");
    arrays.iter().for_each(|(key, value)| archive.add(key, value).expect("memory"));
    archive.finish().expect("memory");
    bytes.into_inner()
}

fn list(v: &[i64]) -> Value {
    Value::new(vec![v.len()], Buffer::I64(v.to_vec())).expect("one dimension")
}

fn floats(shape: &[usize], v: &[f64]) -> Value {
    Value::new(shape.to_vec(), Buffer::F64(v.to_vec())).expect("as many")
}

/// Reads an archive for a parameter. As the arrays of its levels, it is the same tensor.
fn check(bytes: &[u8], want: &Want) -> Result<Value, String> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("a.npz");
    std::fs::write(&path, bytes).expect("a file");
    let prefix = format!("{}/", dir.path().display());
    let read = read(&path, want).map_err(|d| d.message.replace(&prefix, ""));
    match (read_arrays(&path), &read) {
        (Ok(Some(stored)), Ok(Some(value))) if stored.dtype() == value.dtype() && !stored.format().stores_regions() => {
            assert_eq!(stored.elements(), *value);
        }
        (Ok(Some(_)), Err(why)) => assert!(why.contains("parameter") || why.contains("dimensions"), "{why}"),
        _ => {}
    }
    read?.ok_or_else(|| "not sparse".to_string())
}

/// Checks that lists in order, or of coordinates in any order, are read as they are.
#[test]
fn arrays_of_matrices_are_taken_over() {
    let (dir, i32s) = (tempfile::tempdir().expect("a temporary folder"), |v: &[i32]| {
        Value::new(vec![v.len()], Buffer::I32(v.to_vec())).expect("one dimension")
    });
    let path = dir.path().join("a.npz");
    let (shape, data) = (("shape", list(&[2, 3])), ("data", floats(&[3], &[2.0, 5.0, 3.0])));
    let taken = |format: &str, arrays: &[(&str, Value)]| {
        let all: Vec<(&str, Value)> = [shape.clone(), data.clone()].into_iter().chain(arrays.iter().cloned()).collect();
        std::fs::write(&path, archive(format, &all)).expect("a file");
        read_arrays(&path).expect("it is read")
    };
    let csc = taken("csc", &[("indptr", list(&[0, 1, 2, 3])), ("indices", i32s(&[1, 0, 0]))]);
    let shuffled = taken("coo", &[("row", i32s(&[1, 0, 0])), ("col", list(&[0, 1, 2]))]);
    for stored in [csc, shuffled] {
        let stored = stored.expect("each element is there once");
        assert_eq!(Ok(stored.elements()), expected());
        assert!(stored.arrays()[..2].iter().all(|list| list.dtype() == DType::I32));
    }
    let refused = [
        taken("coo", &[("row", list(&[1, 0, 1])), ("col", list(&[0, 1, 0]))]),
        taken("coo", &[("row", list(&[1, 0, 2])), ("col", list(&[0, 1, 0]))]),
        taken("csr", &[("indptr", list(&[0, 2, 3])), ("indices", list(&[2, 1, 0]))]),
        taken("csr", &[("indptr", list(&[0, 2])), ("indices", list(&[1, 2, 0]))]),
        taken("csr", &[("indptr", list(&[0, 2, 4])), ("indices", list(&[1, 2, 0]))]),
    ];
    assert!(refused.iter().all(Option::is_none));
}

fn want() -> Want {
    Want::new("A", DType::F64, 2)
}

/// Returns `[[0, 5, 3], [2, 0, 0]]`.
fn expected() -> Result<Value, String> {
    let data = Buffer::F64(vec![5.0, 3.0, 2.0]);
    Ok(Value::sparse(vec![2, 3], vec![0, 1, 0, 2, 1, 0], data, Literal::Float(0.0)).expect("in order"))
}

#[test]
fn formats_of_scipy() {
    let shape = ("shape", list(&[2, 3]));
    let data = |v: &[f64]| ("data", floats(&[v.len()], v));
    // Unordered, with a repeated element, and reserved room.
    let csr = [shape.clone(), data(&[3.0, 4.0, 1.0, 2.0, 9.0])]
        .into_iter()
        .chain([("indptr", list(&[0, 3, 4])), ("indices", list(&[2, 1, 1, 0, 0]))])
        .collect::<Vec<_>>();
    assert_eq!(check(&archive("csr", &csr), &want()), expected());
    let csc = [shape.clone(), data(&[2.0, 5.0, 3.0]), ("indptr", list(&[0, 1, 2, 3])), ("indices", list(&[1, 0, 0]))];
    assert_eq!(check(&archive("csc", &csc), &want()), expected());
    let coo = [shape.clone(), data(&[2.0, 5.0, 3.0]), ("row", list(&[1, 0, 0])), ("col", list(&[0, 1, 2]))];
    assert_eq!(check(&archive("coo", &coo), &want()), expected());
    // Diagonals 1, 2 and -1, by column.
    let numbers = floats(&[3, 3], &[7.0, 5.0, 0.0, 7.0, 7.0, 3.0, 2.0, 0.0, 7.0]);
    let dia = [shape.clone(), ("data", numbers), ("offsets", list(&[1, 2, -1]))];
    assert_eq!(check(&archive("dia", &dia), &want()), expected());
    let numbers = floats(&[2, 2, 1], &[0.0, 2.0, 3.0, 0.0]);
    let bsr = [shape.clone(), ("data", numbers), ("indptr", list(&[0, 2])), ("indices", list(&[0, 2]))];
    let two = Value::sparse(vec![2, 3], vec![0, 2, 1, 0], Buffer::F64(vec![3.0, 2.0]), Literal::Float(0.0));
    assert_eq!(check(&archive("bsr", &bsr), &want()), Ok(two.expect("in order")));
    let row = [("shape", list(&[4])), data(&[1.5]), ("indptr", list(&[0, 1])), ("indices", list(&[2]))];
    let vector = Value::sparse(vec![4], vec![2], Buffer::F64(vec![1.5]), Literal::Float(0.0)).expect("in order");
    assert_eq!(check(&archive("csr", &row), &Want::new("x", DType::F64, 1)), Ok(vector));
    // Elements of regions that equal the parameter's fill are dropped.
    let two = Want { fill: Some(Literal::Float(3.0)), ..want() };
    assert_eq!(check(&archive("bsr", &bsr), &two).expect("it is read").numbers(), [0.0, 2.0, 0.0]);
}

#[test]
fn errors_name_the_expected_arrays() {
    let shape = ("shape", list(&[2, 3]));
    let data = ("data", floats(&[2], &[1.0, 2.0]));
    let with = |format: &str, more: &[(&'static str, Value)]| {
        let all: Vec<_> = [shape.clone(), data.clone()].into_iter().chain(more.iter().cloned()).collect();
        check(&archive(format, &all), &want()).unwrap_err()
    };
    let indices = || ("indices", list(&[0, 1]));
    let starts = |v: &[i64]| ("indptr", list(v));
    let with_blocks = |v: &[i64]| {
        let data = ("data", floats(&[1, 2, 1], &[1.0, 2.0]));
        check(&archive("bsr", &[shape.clone(), data, ("indices", list(&[0])), starts(v)]), &want()).unwrap_err()
    };
    for (found, says) in [
        (with("csr", &[indices(), starts(&[0, 2, 1])]), "`indptr` falls from 2 to 1"),
        (with("csr", &[indices(), starts(&[0, 1, 9])]), "`indptr` goes from 0 to 9, but `indices` has 2 numbers"),
        (with("csr", &[indices(), starts(&[1, 1, 2])]), "`indptr` goes from 1 to 2, but `indices` has 2 numbers"),
        (with("csr", &[indices(), starts(&[0, 2])]), "expected 3 numbers in `indptr`, one more than 2 rows, found 2"),
        (
            with("csc", &[indices(), starts(&[0, 2])]),
            "expected 4 numbers in `indptr`, one more than 3 columns, found 2",
        ),
        (with_blocks(&[0, 1, 1]), "expected 2 numbers in `indptr`, one more than 1 block row, found 3"),
        (with_blocks(&[0, 9]), "`indptr` goes from 0 to 9, but `indices` has 1 number"),
        (with("csc", &[("indices", list(&[0, 2])), starts(&[0, 1, 2, 2])]), "2 in `indices` is out of range: 0 to 1"),
        (with("csr", &[indices()]), "array `indptr` of the `csr` tensor is missing"),
        (
            with("coo", &[("row", list(&[0, 1])), ("col", list(&[3, 0]))]),
            "coordinate 3 of dimension 1 is out of range: 0 to 2",
        ),
        (
            with("coo", &[("row", list(&[0, -1])), ("col", list(&[2, 0]))]),
            "coordinate -1 of dimension 0 is out of range: 0 to 1",
        ),
        (
            with("coo", &[("row", list(&[0])), ("col", list(&[2, 0]))]),
            "the numbers of coordinates and of elements differ",
        ),
        (with("coo", &[("coords", list(&[0, 1]))]), "expected `coords` to have 2 dimensions for each element"),
        (with("dia", &[("offsets", list(&[0]))]), "expected 2 dimensions of `data` in a `dia` tensor, found 1"),
        (
            with("taffeta", &[("coords", list(&[0, 1, 2, 2])), ("fill", list(&[0, 0]))]),
            "expected a number in `fill`, found an array of shape [2]",
        ),
        (with("lil", &[]), "expected `format` to be one of dia, bsr, csr, csc, coo, taffeta, found `lil`"),
        (with("taffeta", &[("coords", list(&[0, 1, 2, 2]))]), "array `fill` of the `taffeta` tensor is missing"),
    ] {
        assert!(found.contains(says), "{found}");
    }
    let fill = ("fill", floats(&[], &[f64::INFINITY]));
    let other = with("taffeta", &[("coords", list(&[0, 1, 2, 2])), fill]);
    assert_eq!(other, "a.npz: the fill of the file is inf, but the fill of parameter `A` is 0");
    // A header that announces more data than the file has is not trusted.
    let whole = archive("coo", &[("shape", list(&[2, 3]))]);
    let mut zip = zip::ZipWriter::new_append(Cursor::new(whole)).expect("memory");
    zip.start_file("data.npy", zip::write::SimpleFileOptions::default()).expect("memory");
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000,), }\n";
    zip.write_all(b"\x93NUMPY\x01\x00").expect("memory");
    zip.write_all(&(header.len() as u16).to_le_bytes()).expect("memory");
    zip.write_all(header.as_bytes()).expect("memory");
    let huge = check(&zip.finish().expect("memory").into_inner(), &want()).unwrap_err();
    assert_eq!(huge, "a.npz:data: the file ends before its data does");
}

/// Checks that a tensor is written in a layout, and read back equal.
fn round_trips(value: &Value, format: Option<&Format>, layout: &str) {
    let mut bytes = Cursor::new(Vec::new());
    write(&mut bytes, value, format).expect("memory");
    let name = format!("S{}', 'fortran_order': False, 'shape': (), }}", layout.len());
    let written = String::from_utf8_lossy(bytes.get_ref());
    assert!(written.contains(&name) && written.contains(&format!("\n{layout}")), "{layout}");
    let fill = value.places().map(|places| places.fill);
    let want = Want { fill, ..Want::new("A", value.dtype(), value.shape().len()) };
    assert_eq!(check(bytes.get_ref(), &want).as_ref(), Ok(value), "{layout}");
}

#[test]
fn written_files_round_trip() {
    let sparse = |shape: &[usize], indices: &[i64], data: Buffer, fill| {
        Value::sparse(shape.to_vec(), indices.to_vec(), data, fill).expect("in order")
    };
    let named = |name: Named| name.format(2);
    for data in [Buffer::F32(vec![0.1, f32::INFINITY, -0.0]), Buffer::I16(vec![3, 0, -1]), Buffer::Bool(vec![true; 3])]
    {
        let zero = Literal::zero(data.dtype());
        let matrix = sparse(&[3, 4], &[0, 3, 1, 0, 2, 2], data.clone(), zero);
        let layouts = [(Named::Csr, "csr"), (Named::Csc, "csc"), (Named::Coo, "coo"), (Named::Dcsr, "taffeta")];
        layouts.iter().for_each(|(format, layout)| round_trips(&matrix, named(*format).as_ref(), layout));
        round_trips(&sparse(&[9], &[0, 4, 8], data.clone(), zero), Named::Coo.format(1).as_ref(), "coo");
        let far = [0, 0, 0, 7, 1, 2, 1 << 39, 0, 1];
        round_trips(&sparse(&[1 << 40, 2, 3], &far, data, zero), None, "coo");
    }
    // Of regions, elements that equal the fill are not read back.
    let matrix = sparse(&[3, 4], &[0, 3, 1, 0, 2, 2], Buffer::I64(vec![5, 6, 7]), Literal::Int(0));
    round_trips(&matrix, named(Named::Dia).as_ref(), "dia");
    round_trips(&matrix, Some(&presets::bcsr(3, 2)), "bsr");
    round_trips(&matrix, Some(&presets::bcsr(2, 2)), "taffeta");
    // SciPy's layouts have no fill.
    let infinity = Literal::Float(f64::INFINITY);
    let far = sparse(&[2, 2], &[1, 0], Buffer::F64(vec![1.5]), infinity);
    [named(Named::Csr), None].iter().for_each(|format| round_trips(&far, format.as_ref(), "taffeta"));
    let coordinates = [
        ("shape", list(&[2, 2])),
        ("data", floats(&[1], &[1.5])),
        ("coords", list(&[1, 0])),
        ("fill", floats(&[], &[f64::INFINITY])),
    ];
    assert_eq!(check(&archive("taffeta", &coordinates), &Want { fill: Some(infinity), ..want() }), Ok(far));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_arrays_do_not_panic(
        format in "(csr|csc|coo|dia|bsr|taffeta)",
        shape in proptest::collection::vec(prop_oneof![0i64..5, Just(-1), Just(i64::MAX), Just(1 << 46)], 0..4),
        lists in proptest::collection::vec(proptest::collection::vec(-2i64..6, 0..5), 3),
        data in prop_oneof![
            Just(floats(&[3], &[1.0; 3])), Just(floats(&[2, 2], &[0.5; 4])), Just(floats(&[1, 2, 2], &[2.0; 4])),
            Just(floats(&[0, 3, 3], &[])), Just(floats(&[], &[1.0])),
        ],
    ) {
        let [a, b, c] = [0, 1, 2].map(|k| list(&lists[k]));
        let bytes = archive(&format, &[
            ("shape", list(&shape)), ("data", data), ("indptr", a.clone()), ("indices", b.clone()),
            ("row", a.clone()), ("col", b), ("offsets", a), ("fill", c),
        ]);
        for ndim in 1..3 {
            let _ = check(&bytes, &Want::new("A", DType::F32, ndim));
        }
    }
}
