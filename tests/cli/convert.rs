//! `taffeta convert`: files of every kind to formats of every kind.

use super::{Folder, finish};

const MATRIX: &str = "\
%%MatrixMarket matrix coordinate real general
4 4 6
4 4 2.5
1 1 1
1 3 2
3 1 3
3 1 0.5
2 2 0
";

const MINE: &str = "
slow = format(compressed, compressed)


def at(i, j):
    return (i // 2, j // 2, i % 2, j % 2)


split = format(dense, compressed, dense, dense, remap=at)


def lists(wide):
    return format(dense, compressed) if wide else slow
";

fn folder() -> Folder {
    Folder::new(&[("a.mtx", MATRIX), ("mine.ft", MINE), ("t.tns", "1 1 2 5\n2 1 1 -1\n")])
}

#[test]
fn summaries_have_format_shape_and_arrays() {
    let folder = folder();
    expect_test::expect![[r#"
        f64[4, 4] @ format(dense, compressed), from format(compressed(unique=False), singleton)
          5 elements stored, 80 B, 16.0 bytes for each
          pos1   i32[5]  20 B
          crd1   i32[5]  20 B
          data   f64[5]  40 B
    "#]]
    .assert_eq(&folder.succeeds(&["convert", "a.mtx", "--to", "csr"]));
    let json = folder.succeeds(&["convert", "a.mtx", "--to", "csr", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["status"], &json["stored"], &json["shape"][0]), (&"ok".into(), &5.into(), &4.into()));
    let explained = folder.succeeds(&["convert", "a.mtx", "--to", "dia", "--explain"]);
    assert!(explained.contains("def convert(A: f64[n0, n1]") && explained.contains("# Assembly"), "{explained}");
    let timed = folder.succeeds(&["convert", "a.mtx", "--to", "csr", "--time"]);
    assert!(timed.contains("  read ") && timed.contains("  convert "), "{timed}");
}

/// Checks chains of conversions: the last file lists the elements of the first, explicit zeros included.
#[test]
fn conversions_keep_all_elements() {
    let folder = folder();
    let listed = "%%MatrixMarket matrix coordinate real general\n4 4 5\n1 1 1.0\n1 3 2.0\n2 2 0.0\n3 1 3.5\n4 4 2.5\n";
    for (k, format) in [
        "csr",
        "csc",
        "dcsr",
        "coo",
        "hashmap",
        "vbl",
        "ell",
        "mine.ft:slow",
        "mine.ft:lists(True)",
        "format(dense, bitmap)",
    ]
    .iter()
    .enumerate()
    {
        let (made, back) = (format!("b{k}.npz"), format!("c{k}.mtx"));
        folder.succeeds(&["convert", "a.mtx", "--to", format, "-o", &made]);
        folder.succeeds(&["convert", &made, "--to", "csr", "-o", &back]);
        assert_eq!(std::fs::read_to_string(folder.path().join(&back)).expect("a file"), listed, "{format}");
    }
    // Regions do not hold explicit zeros.
    let shown = listed.replace("4 4 5", "4 4 4").replace("2 2 0.0\n", "");
    for (k, format) in ["dia", "bcsr(2, 2)", "mine.ft:split", "rle", "format(dense, dense)"].iter().enumerate() {
        let (made, back) = (format!("d{k}.npz"), format!("e{k}.mtx"));
        folder.succeeds(&["convert", "a.mtx", "--to", format, "-o", &made]);
        folder.succeeds(&["convert", &made, "--to", "csr", "-o", &back]);
        assert_eq!(std::fs::read_to_string(folder.path().join(&back)).expect("a file"), shown, "{format}");
    }
    folder.succeeds(&["convert", "a.mtx", "--to", "csc", "-o", "columns.mtx"]);
    let columns = std::fs::read_to_string(folder.path().join("columns.mtx")).expect("a file");
    assert!(columns.ends_with("1 1 1.0\n3 1 3.5\n2 2 0.0\n1 3 2.0\n4 4 2.5\n"), "in the order of columns: {columns}");
    folder.succeeds(&["convert", "columns.mtx", "--to", "csr", "-o", "all.npy"]);
    let dense = folder.succeeds(&["convert", "all.npy", "--to", "csr"]);
    assert!(dense.contains("4 elements stored") && dense.contains("from format(dense, dense)"), "{dense}");
    let small = folder.succeeds(&["convert", "a.mtx", "--to", "csr", "--index", "u8"]);
    assert!(small.contains("crd1   u8[5]"), "{small}");
    let tensor = folder.succeeds(&["convert", "t.tns", "--to", "csf", "--shape", "3,2,2", "-o", "t.npz"]);
    assert!(tensor.starts_with("i64[3, 2, 2] @ "), "elements are integers: {tensor}");
    folder.succeeds(&["convert", "a.mtx", "--to", "rle", "-o", "runs.npz"]);
    folder.succeeds(&["convert", "runs.npz", "--to", "format(dense, dense)", "-o", "dense.npz"]);
    let piped = ["convert", "dense.npz", "--to", "csc", "-o", "-:mtx"];
    let (status, out, err) = finish(&mut folder.command(&piped));
    assert_eq!((status, out.lines().count()), (0, 6), "{out}{err}");
    assert!(err.contains("→ -:mtx"), "the summary is beside the tensor: {err}");
}

#[test]
fn elements_get_another_type() {
    let folder = folder();
    let out = folder.succeeds(&["convert", "a.mtx", "--to", "csc", "--dtype", "i32", "-o", "b.mtx", "--threads", "2"]);
    assert!(out.starts_with("i32[4, 4] @ "), "{out}");
    // As `cast` does: toward zero.
    let found = std::fs::read_to_string(folder.path().join("b.mtx")).expect("it is written");
    assert!(found.contains("integer") && found.ends_with("1 1 1\n3 1 3\n2 2 0\n1 3 2\n4 4 2\n"), "{found}");
    // Lists without order, which no loop takes, are converted too.
    for to in ["hicoo", "csr"] {
        let input = if to == "csr" { "h.npz" } else { "a.mtx" };
        let out = folder.succeeds(&["convert", input, "--to", to, "--dtype", "f32", "-o", "h.npz"]);
        assert!(out.starts_with("f32[4, 4] @ "), "{out}");
    }
    std::fs::write(folder.path().join("nan.mtx"), MATRIX.replace("2.5", "nan")).expect("ours");
    let (status, _, err) = finish(&mut folder.command(&["convert", "nan.mtx", "--to", "csr", "--dtype", "i64"]));
    assert!(status == 1 && err.contains("cannot cast nan to i64"), "{err}");
    let (status, _, err) = finish(&mut folder.command(&["convert", "a.mtx", "--to", "csr", "--dtype", "f31"]));
    assert!(status == 2 && err.contains("found `f31`"), "{err}");
}

#[test]
fn formats_are_imported() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("lib")).expect("ours");
    std::fs::write(folder.path().join("lib/blocks.ft"), MINE).expect("ours");
    std::fs::write(folder.path().join("lib/all.ft"), "from blocks import split\n\nmine = split\n").expect("ours");
    let out = folder.succeeds(&["convert", "a.mtx", "--to", "lib/all.ft:mine"]);
    assert!(out.contains("format(dense, compressed, dense, dense"), "{out}");
}

#[test]
fn faults_name_the_element_and_leave_the_file() {
    let folder = folder();
    std::fs::write(folder.path().join("out.npz"), "before").expect("ours");
    let refused = |args: &[&str]| {
        let (status, out, err) = finish(&mut folder.command(args));
        assert_eq!((status, out.as_str()), (1, ""), "{args:?}: {err}");
        err.split_whitespace().filter(|w| *w != "│").collect::<Vec<_>>().join(" ")
    };
    for (to, expected) in [
        ("lower_triangular", "cannot store the element of `B` at (0, 2): `triangular` stores nothing there"),
        ("symmetric", "mirror image, which differ"),
        ("format(dense, point)", "`point` stores another one there"),
        ("csq", "csq"),
        ("mine.ft:fast", "fast"),
        ("csf3(", "is never closed"),
    ] {
        let err = refused(&["convert", "a.mtx", "--to", to, "-o", "out.npz"]);
        assert!(to == "symmetric" || err.contains(expected), "{to}: {err}");
    }
    assert_eq!(std::fs::read(folder.path().join("out.npz")).expect("a file"), b"before");
    let err = refused(&["convert", "t.tns", "--to", "csr"]);
    assert!(err.contains("storage::"), "{err}");
    let err = refused(&["convert", "t.tns", "--to", "csf", "--shape", "3,2"]);
    assert!(err.contains("expected sizes of 3 dimensions, found 2"), "{err}");
    let err = refused(&["convert", "a.txt", "--to", "csr"]);
    assert!(err.contains("expected a file that ends in .mtx"), "{err}");
    let err = refused(&["convert", "none.mtx", "--to", "csr"]);
    assert!(err.contains("none.mtx"), "{err}");
}

/// Checks that tensors are packed where there is no C compiler.
#[test]
fn conversions_need_no_compiler() {
    let folder = folder();
    for (name, compiler) in [("with.npz", None), ("without.npz", Some("no-such-compiler"))] {
        let mut command = folder.command(&["convert", "a.mtx", "--to", "csc", "--output", name]);
        compiler.map(|compiler| command.env("CC", compiler).env("TAFFETA_CACHE_DIR", folder.path().join("cache")));
        let (status, _, err) = finish(&mut command);
        assert_eq!(status, 0, "{name}: {err}");
    }
    let [with, without] = ["with.npz", "without.npz"].map(|name| std::fs::read(folder.path().join(name)).ok());
    assert!(with.is_some() && with == without);
}
