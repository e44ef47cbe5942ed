//! Results and local tensors at the limits of their formats: indices beyond the type of the arrays, elements that a
//! format cannot hold, reads and repeated stores while a tensor is assembled. Compiled programs agree with the
//! interpreter, or stop with an error that names the element.

use taffeta::ast::{Buffer, Value};
use taffeta::{Backend, Options, Outputs, Program};

const PROGRAM: &str = include_str!("misfits.ft");

fn matrix(rows: &[&[f64]]) -> Value {
    let shape = vec![rows.len(), rows.first().map_or(0, |r| r.len())];
    Value::new(shape, Buffer::F64(rows.concat())).expect("rows of one length")
}

/// Returns a matrix with an element in each column that `columns` names, in every row.
fn wide(size: usize, columns: &[usize]) -> Value {
    let row: Vec<f64> = (0..size).map(|j| if columns.contains(&j) { 2.0 } else { 0.0 }).collect();
    matrix(&[&row, &row])
}

fn run(entry: &str, a: &Value, backend: Backend) -> Result<Outputs, String> {
    let program = Program::from_source("misfits.ft", PROGRAM).unwrap_or_else(|e| panic!("{e}"));
    let function = program.compile(entry, &Options::default().optimize(false).backend(backend));
    let function = function.unwrap_or_else(|e| panic!("{entry}: {e}"));
    function.call().value("A", a).run().map_err(|e| e.to_string())
}

#[track_caller]
fn agrees(entry: &str, a: &Value) {
    let [c, interp] =
        [Backend::C, Backend::Interp].map(|b| run(entry, a, b).unwrap_or_else(|e| panic!("{entry}: {e}")));
    // (A NaN is printed as any other.)
    let numbers = |out: &Outputs| {
        let dense = out.value("C").expect("it is small").dense().expect("it is small").0;
        format!("{:?}", dense.numbers())
    };
    assert_eq!(numbers(&c), numbers(&interp), "{entry}");
}

#[track_caller]
fn stops(entry: &str, a: &Value, code: &str, text: &str) {
    let error = run(entry, a, Backend::C).err().unwrap_or_else(|| panic!("{entry} holds all"));
    assert!(error.contains(code) && error.replace("\n  │ ", " ").contains(text), "{entry}: {error}");
}

#[test]
fn indices_beyond_their_type_are_errors() {
    let columns = [3, 280];
    for entry in ["runs", "literals", "padded", "points"] {
        agrees(entry, &wide(255, &[3]));
        stops(
            entry,
            &wide(256, &[3]),
            "run::index",
            "a dimension of size 256 of `C` is too large for indices of type u8",
        );
    }
    for entry in ["listed", "blocks"] {
        agrees(entry, &wide(300, &[3]));
        stops(entry, &wide(300, &columns), "run::index", "an element of `C` has index 280 in dimension 1");
    }
    // The first index alone is stored, and numbers of slots.
    agrees("bands", &wide(300, &columns));
    stops("bands", &wide(300, &[280]), "run::index", "an element of `C` has index 280 in dimension 1");
    agrees("slots", &wide(300, &(0..280).collect::<Vec<_>>()));
}

#[test]
fn elements_that_a_format_cannot_hold_are_named() {
    let a = matrix(&[&[3.0, 0.0, 1.0], &[0.0, 0.0, 0.0], &[3.0, 0.0, 0.0]]);
    stops(
        "outermost",
        &a,
        "run::storage",
        "cannot store the element of `C` at (0, 2): `point` stores another one there",
    );
    stops("deep", &a, "run::storage", "cannot store the element of `C` at (…, 0, 2): `point` stores another one there");
    stops(
        "triangle",
        &a,
        "run::storage",
        "cannot store the element of `C` at (0, 2): `triangular` stores nothing there",
    );
}

#[test]
fn tensors_are_read_and_written_again_while_they_are_assembled() {
    let a = matrix(&[&[3.0, 0.0, 1.0, 4.0], &[0.0; 4], &[-3.0, f64::NAN, 1.0, -0.0], &[1.0, 2.0, f64::INFINITY, 4.0]]);
    for entry in ["bits", "halves", "columns", "sums_of_rows", "prefixes", "negative", "tall"] {
        agrees(entry, &a);
    }
    let program = Program::from_source("misfits.ft", PROGRAM).unwrap_or_else(|e| panic!("{e}"));
    let refused = program.check().into_iter().filter(taffeta::ast::Diagnostic::is_error).collect::<Vec<_>>();
    let [diagonals, twice] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!(diagonals.message, "`C` is read between writes to it, while it is assembled");
    assert!(twice.message.contains("may be assigned several times"), "{}", twice.message);
}

/// Checks that `stored` tells explicit zeros from elements that are not stored.
#[test]
fn programs_ask_which_elements_are_stored() {
    let (at, values) = (vec![0, 0, 0, 2, 1, 1, 2, 0, 2, 3], Buffer::F64(vec![0.0, 1.0, -0.0, f64::NAN, 5.0]));
    let fill = taffeta::ast::Literal::Float(0.0);
    let a = Value::sparse(vec![3, 4], at, values, fill).expect("elements in order");
    for entry in ["counts", "others", "asked_whole", "asked_local", "asked_merge", "asked_result", "asked_plain"] {
        agrees(entry, &a);
    }
    let counts = |entry: &str, a: &Value| {
        let out = run(entry, a, Backend::C).unwrap_or_else(|e| panic!("{entry}: {e}"));
        out.value("C").expect("it is small").numbers()
    };
    assert_eq!(counts("counts", &a), [2.0, 1.0, 2.0]);
    assert_eq!(counts("asked_local", &a), [2.0, 1.0, 2.0]);
    assert_eq!(counts("asked_result", &a).iter().filter(|v| **v == 7.0).count(), 4);
    assert_eq!(counts("asked_plain", &a), [1.0; 3]);
    agrees("asked_dense", &matrix(&[&[1.0, 0.0]]));
    let text = "def f(A: f64[n] @ format(compressed)) -> f64:\n    s = 0.0\n    for i in range(n):\n        \
                s += 1.0 if stored(A[i] * 2.0) else 0.0\n    return s\n";
    let refused = Program::from_source("p.ft", text).and_then(|p| p.compile("f", &Options::default()).map(drop));
    let error = refused.expect_err("a product is in no tensor").to_string();
    assert!(error.contains("`stored` takes an element of a tensor"), "{error}");
}

/// Checks that formats of regions store more than a program wrote, and that a row is read as soon as it is complete.
#[test]
fn programs_ask_what_they_assembled() {
    let a = matrix(&[&[1.5, 0.0, 0.0, 2.0], &[0.0; 4], &[0.0, -1.0, 0.0, 0.0], &[0.0, 4.0, f64::NAN, 0.0]]);
    agrees("asked_regions", &a);
    let out = run("asked_regions", &a, Backend::C).unwrap_or_else(|e| panic!("{e}"));
    let found = out.value("C").expect("it is small").numbers();
    assert_eq!(found, [10.0, 7.0, 9.0, 16.0, 16.0, 16.0, 10.0, 16.0, 12.0, 16.0, 7.0]);
    agrees("asked_rows", &matrix(&[&[1.5, 0.0, 0.0, 2.0], &[0.0; 4], &[0.0, -1.0, 0.0, 0.0]]));
    agrees("asked_rows", &matrix(&[&[]]));
}

/// Checks that arguments in formats of blocks, and parts of tensors, are converted at calls.
#[test]
fn arguments_are_converted_by_their_levels() {
    let (at, values) = (vec![0, 0, 0, 2, 1, 1, 2, 0, 2, 3], Buffer::F64(vec![0.0, 1.0, -0.0, 7.0, 5.0]));
    let a = Value::sparse(vec![3, 4], at, values, taffeta::ast::Literal::Float(0.0)).expect("elements in order");
    for (entry, numbers) in [("morton_blocks", &[3.0, 3.0][..]), ("rows", &[5.0, 3.0])] {
        agrees(entry, &a);
        let out = run(entry, &a, Backend::C).unwrap_or_else(|e| panic!("{entry}: {e}"));
        assert_eq!(out.value("C").expect("it is small").numbers(), numbers, "{entry}");
    }
}

/// Checks that local tensors take the mirror images of elements, or stop, as results do.
#[test]
fn local_tensors_are_symmetric_or_stop() {
    let nan = f64::NAN;
    let even = matrix(&[&[1.5, 0.0, 2.0], &[0.0, -1.0, nan], &[2.0, nan, 0.0]]);
    let odd = matrix(&[&[1.5, 0.0, 2.0], &[0.0, -1.0, 0.0], &[3.0, 0.0, 0.0]]);
    for a in [&even, &odd] {
        agrees("mirrored", a);
    }
    agrees("mirrored_argument", &even);
    agrees("two_points", &matrix(&[&[0.0, 1.0], &[2.0, 0.0]]));
    let differ = "at (2, 0): `symmetric` stores one value for it and its mirror image, which differ";
    for backend in [Backend::C, Backend::Interp] {
        for (entry, text) in
            [("mirrored_argument", differ), ("two_points", "at (0, 2): `point` stores another one there")]
        {
            let error = run(entry, &odd, backend).err().unwrap_or_else(|| panic!("{entry} holds all"));
            assert!(error.contains("run::storage") && error.replace("\n  │ ", " ").contains(text), "{entry}: {error}");
        }
    }
}

/// Checks that elements are stored over others, with the fill where nothing is stored.
#[test]
fn elements_are_stored_over_others() {
    let a = matrix(&[&[1.5, -3.0, 2.0], &[0.0, -1.0, 0.0], &[-2.0, 4.0, 0.0]]);
    for entry in [
        "overwritten_bits",
        "overwritten_triangle",
        "overwritten_rows",
        "overwritten_lists",
        "cleared_lists",
        "reversed_rows",
    ] {
        agrees(entry, &a);
    }
    let out = run("overwritten_bits", &a, Backend::C).unwrap_or_else(|e| panic!("{e}"));
    let found = out.value("C").expect("it is small").dense().expect("it is small").0.numbers();
    assert_eq!(found, [0.0, -1.0, 0.0, -2.0, 4.0, 0.0, 1.5, -3.0, 2.0]);
}

/// Checks local tensors in loops that are split by stored rows, and tensors to which nothing is written.
#[test]
fn tensors_without_elements_are_assembled() {
    let a = matrix(&[&[1.5, 0.0, 2.0], &[0.0, 0.0, 0.0], &[-2.0, 4.0, 0.0]]);
    for entry in ["rows_in_parts", "no_slots", "no_diagonals", "no_blocks", "no_numbers"] {
        agrees(entry, &a);
    }
}

/// Checks that a condition on an element out of range stops the program, as a value does.
#[test]
fn conditions_on_elements_out_of_range_stop() {
    let a = matrix(&[&[1.5, 0.0, 0.0], &[0.0, 2.0, 0.0]]);
    for entry in ["beyond", "beyond_stored", "beyond_dense"] {
        stops(entry, &a, "run::index", "index 3 is out of range for dimension 1 of `A`, which has size 3");
    }
    agrees("up_to_the_end", &a);
}

/// Checks that a negated sparse matrix has the elements of the matrix, and no -0 elsewhere.
#[test]
fn the_negation_of_a_sparse_matrix_has_its_elements() {
    let a = matrix(&[&[3.0, 0.0, 1.0], &[0.0, 0.0, 0.0]]);
    for backend in [Backend::C, Backend::Interp] {
        let out = run("negative", &a, backend).expect("it runs");
        let places = out.value("C").expect("it is small").places().expect("it is sparse").indices.len() / 2;
        assert_eq!(places, 2, "{backend:?}");
    }
}
