//! Structured parameters from files: every file format, and invalid files.

use super::Folder;
use expect_test::expect;
use std::io::Write as _;

const PROGRAM: &str = "\
def total(A: f64[n, m] @ csr, x: f64[m]) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += A[i, j] * x[j]
    return s


def cube(A: i32[n, m, k] @ csf) -> i64:
    s: i64 = 0
    for i in range(n):
        for j in range(m):
            for l in range(k):
                s += A[i, j, l]
    return s


def far(A: f64[n, m] @ dcsr) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += A[i, j]
    return s


def far_rows(A: f64[n, m] @ csr) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += A[i, j]
    return s


def blocks(A: f64[n, m] @ band) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(m):
            s += A[i, j]
    return s


def deep(A: f64[n, m, k] @ format(dense, dense, compressed)) -> f64:
    s = 0.0
    for i in range(n):
        for j in range(m):
            for l in range(k):
                s += A[i, j, l]
    return s


def plain(A: f64[n, m]) -> f64[n, m]:
    return A
";

fn folder() -> Folder {
    let folder = Folder::new(&[
        ("f.ft", PROGRAM),
        ("a.tns", "# a comment\n2 3 0.5\n1 1 2\n2 3 1\n"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 4 2\n1 1 2\n2 3 1.5\n"),
        ("cube.tns", "1 2 3 4\n2 1 1 -1\n"),
    ]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"2 3 0.5\n1 1 2\n2 3 1\n").expect("memory");
    folder.write("a.tns.gz", &encoder.finish().expect("memory"));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let matrix = std::fs::read(folder.path().join("a.mtx")).expect("it is there");
    encoder.write_all(&matrix).expect("memory");
    folder.write("a.mtx.gz", &encoder.finish().expect("memory"));
    folder
}

#[test]
fn every_kind_of_file_is_read() {
    let folder = folder();
    for file in ["a.tns", "a.tns.gz", "a.mtx", "a.mtx.gz"] {
        for backend in ["c", "interp"] {
            let input = format!("A={file}");
            // A `.tns` file does not store sizes: the number of columns comes from x.
            let args = ["run", "f.ft", "total", "--in", &input, "--in", "x=[1, 10, 100, 1000]", "--backend", backend];
            assert_eq!(folder.succeeds(&args), "s: f64 = 152\n", "{file}");
        }
    }
    let cube = ["run", "f.ft", "cube", "--in", "A=cube.tns", "--json"];
    let json: serde_json::Value = serde_json::from_str(&folder.succeeds(&cube)).expect("JSON");
    assert_eq!(json["sizes"], serde_json::json!({"n": 2, "m": 2, "k": 3}));
    assert_eq!(json["results"][0]["values"][0], 3);
    // A dense parameter reads these files too.
    let plain = ["run", "f.ft", "plain", "--in", "A=a.tns", "--size", "m=4", "--size", "n=3", "--out", "A=y.csv"];
    folder.succeeds(&plain);
    assert_eq!(
        std::fs::read_to_string(folder.path().join("y.csv")).expect("it is there"),
        "2.0,0.0,0.0,0.0\n0.0,0.0,1.5,0.0\n0.0,0.0,0.0,0.0\n"
    );
    let (status, out, _) = super::finish_with(
        &mut folder.command(&["run", "f.ft", "cube", "--in", "A=-"]),
        &std::fs::read(folder.path().join("a.tns.gz")).expect("it is there"),
    );
    assert_eq!((status, out.as_str()), (1, ""), "of another number of dimensions");
    let (status, out, err) = super::finish_with(
        &mut folder.command(&["run", "f.ft", "total", "--in", "A=-", "--in", "x=[1, 10, 100, 1000]"]),
        &std::fs::read(folder.path().join("a.mtx.gz")).expect("it is there"),
    );
    assert_eq!((status, out.as_str()), (0, "s: f64 = 152\n"), "{err}");
}

/// Checks that two columns of text are edges if `:edges` says so, and otherwise a dense matrix, which no structured
/// parameter takes.
#[test]
fn edge_lists_are_read_on_request() {
    let folder = folder();
    folder.write("g.txt", b"# Nodes: 4 Edges: 3\n0\t3\n2\t1\n0\t3\n");
    let total = ["run", "f.ft", "total", "--in", "x=[1, 10, 100, 1000]", "--in"];
    for backend in ["c", "interp"] {
        let args = [&total[..], &["A=g.txt:edges", "--backend", backend]].concat();
        assert_eq!(folder.succeeds(&args), "s: f64 = 2010\n");
    }
    let plain = ["run", "f.ft", "plain", "--in", "A=g.txt:edges", "--out", "A=y.csv"];
    folder.succeeds(&plain);
    let dense = std::fs::read_to_string(folder.path().join("y.csv")).expect("it is there");
    assert_eq!(dense, "0.0,0.0,0.0,2.0\n0.0,0.0,0.0,0.0\n0.0,1.0,0.0,0.0\n0.0,0.0,0.0,0.0\n");
    // Without `:edges`, the table itself is a dense matrix of two columns.
    assert!(folder.succeeds(&["run", "f.ft", "plain", "--in", "A=g.txt"]).contains("f64[3, 2]"));
    expect![[r#"
        input::part

          × g.txt: expected a sparse tensor for the structured parameter `A`, found a dense table
          help: to read an edge list (two vertices in a line, from 0), write `g.txt:edges`; save other
                matrices as .mtx, .npz or .npy

        1 error
    "#]]
    .assert_eq(&folder.fails(&[&total[..], &["A=g.txt"]].concat()));
}

/// Checks that the number of elements, a divisor of a mean, may exceed 64 bits.
#[test]
fn elements_are_counted_beyond_64_bits() {
    let folder = Folder::new(&[
        ("f.ft", "def average(A: f64[n, m, k] @ csf) -> f64:\n    return mean(A)\n"),
        ("a.tns", "1 1 1 1\n4821207 1774269 1805187 2\n3 4 5 4\n"),
    ]);
    let out = folder.succeeds(&["run", "f.ft", "average", "--in", "A=a.tns", "--grad", "A"]);
    expect![[r#"
        out: f64 = 4.53316e-19
        A.grad: f64[4821207, 1774269, 1805187]
          3 elements stored, all others 0
          (0, 0, 0) 6.4759361720722e-20
          (2, 3, 4) 6.4759361720722e-20
          (4821206, 1774268, 1805186) 6.4759361720722e-20
          min 6.47594e-20  max 6.47594e-20  mean 6.47594e-20
    "#]]
    .assert_eq(&out);
}

#[test]
fn errors_in_sparse_files() {
    let folder = folder();
    let total = |file: &str, more: &[&str]| {
        let input = format!("A={file}");
        folder.fails(&[&["run", "f.ft", "total", "--in", &input, "--in", "x=[1, 2]"][..], more].concat())
    };
    expect![[r#"
        data::format

          × a.tns:2: coordinate 3 of dimension 1 is out of range: 1 to 2

        1 error
    "#]]
    .assert_eq(&total("a.tns", &[]));
    expect![[r#"
        size::mismatch

          × parameter `x`, dimension 0: expected 4 (`m`), found 2
           ╭─[f.ft:1:38]
         1 │ def total(A: f64[n, m] @ csr, x: f64[m]) -> f64:
           ·                                      ─
         2 │     s = 0.0
           ╰────
          note: `m` is 4 by dimension 1 of `A`

        1 error
    "#]]
    .assert_eq(&total("a.mtx", &[]));
    expect![[r#"
        data::rank

          × parameter `A` has 2 dimensions, but cube.tns has 3 dimensions (its shape is [2, 2, 3])
           ╭─[f.ft:1:14]
         1 │ def total(A: f64[n, m] @ csr, x: f64[m]) -> f64:
           ·              ───────────────
         2 │     s = 0.0
           ╰────

        1 error
    "#]]
    .assert_eq(&total("cube.tns", &[]));
    folder.write("complex.mtx", b"%%MatrixMarket matrix coordinate complex general\n1 2 1\n1 1 2 3\n");
    expect![[r#"
        data::format

          × complex.mtx:1: `complex` matrices are not supported: programs have no complex numbers
          help: write its real and imaginary parts to two files (in SciPy `mmwrite("re.mtx", A.real)`)

        1 error
    "#]]
    .assert_eq(&total("complex.mtx", &[]));
    // The header announces more elements than the file's three.
    folder.write(
        "lie.mtx",
        b"%%MatrixMarket matrix coordinate real general\n9 2 1000000000000000\n1 1 1\n2 1 1\n3 1 1\n",
    );
    expect![[r#"
        data::truncated

          × lie.mtx: the file ends before its data does
          help: the file is damaged or incomplete; write it again

        1 error
    "#]]
    .assert_eq(&total("lie.mtx", &[]));
    folder.write("broken.tns.gz", b"\x1f\x8b\x08\x00 nothing like it");
    expect![[r#"
        data::format

          × broken.tns.gz: not a valid compressed file (corrupt deflate stream)

        1 error
    "#]]
    .assert_eq(&total("broken.tns.gz", &[]));
    folder.write("empty.tns", b"# nothing\n");
    expect![[r#"
        data::empty

          × empty.tns: no elements to determine the sizes of parameter `A`
          help: give its sizes with --size

        1 error
    "#]]
    .assert_eq(&total("empty.tns", &[]));
    let out = |path: &str| {
        let out = format!("s={path}");
        folder.fails(&["run", "f.ft", "total", "--in", "A=a.mtx", "--in", "x=[1, 2, 3, 4]", "--out", &out])
    };
    expect![[r#"
        output::format

          × `s.mtx`: result `s` is dense, but this file format stores sparse tensors
          help: write a `.npy` file

        1 error
    "#]]
    .assert_eq(&out("s.mtx"));
}

/// Checks that index arrays have 64 bits if the data needs them, no type is given, and the sizes are compiled in.
#[test]
fn indices_are_as_large_as_the_data_needs() {
    let folder = folder();
    let text = "%%MatrixMarket matrix coordinate real general\n10000000000 10000000000 3\n\
        10000000000 1 2\n3 9999999999 1.5\n4294967299 5 1\n";
    folder.write("far.mtx", text.as_bytes());
    let run = |more: &[&'static str]| [&["run", "f.ft", "far", "--in", "A=far.mtx"][..], more].concat();
    assert_eq!(folder.succeeds(&run(&[])), "s: f64 = 4.5\n");
    assert_eq!(folder.succeeds(&run(&["--repeat", "2"])).lines().next(), Some("s: f64 = 4.5"));
    // The interpreter stores parameters densely.
    assert!(folder.fails(&run(&["--backend", "interp"])).contains("does not fit in memory"));
    assert_eq!(folder.succeeds(&run(&["--generic"])), "s: f64 = 4.5\n");
    // Small coordinates in large dimensions.
    let near = "%%MatrixMarket matrix coordinate real general\n10000000000 10000000000 1\n1 1 2\n";
    folder.write("far.mtx", near.as_bytes());
    assert_eq!(folder.succeeds(&run(&[])), "s: f64 = 2\n");
    assert_eq!(folder.succeeds(&run(&["--generic"])), "s: f64 = 2\n");
}

/// Checks that a file is refused if its sizes would need more memory in the format than there is.
#[test]
fn formats_larger_than_memory_are_refused() {
    let folder = folder();
    let far =
        "%%MatrixMarket matrix coordinate real general\n10000000000000 10000000000000 2\n1 1 2\n1 9999999999999 1\n";
    folder.write("far.mtx", far.as_bytes());
    folder.write("far.tns", b"1 1 1 1\n10000000000000 10000000000000 2 1\n");
    let run = |entry: &str, file: &str, backend: &str| {
        folder.fails(&["run", "f.ft", entry, "--in", &format!("A={file}"), "--backend", backend])
    };
    for backend in ["c", "interp"] {
        let rows = run("far_rows", "far.mtx", backend);
        assert!(rows.contains("data::too_large") && rows.contains("160.00 TB of stored arrays do not fit"), "{rows}");
        let deep = run("deep", "far.tns", backend);
        assert!(deep.contains("the arrays that the format stores do not fit in memory"), "{deep}");
        folder.write("wide.mtx", far.replacen("10000000000000", "3", 1).as_bytes());
        let band = run("blocks", "wide.mtx", backend);
        assert!(band.contains("80.00 TB of stored arrays do not fit"), "{band}");
    }
}

/// Checks that warnings about loops come once, on standard error, for fresh and cached programs and for both backends;
/// with `--json` they are in the document.
#[test]
fn runs_warn_of_slow_loops() {
    let text = "def scan(a: f64[n] @ format(compressed)):\n    s = 0.0\n    for j in range(n):\n        s += exp(a[j]) * cast(j, f64)\n    return s\n\ndef total(a: f64[n] @ format(compressed)):\n    s = 0.0\n    for j in range(n):\n        s += a[j]\n    return s\n";
    let folder = Folder::new(&[("w.ft", text)]);
    let args = |entry| ["run", "w.ft", entry, "--in", "a=[0, 0, 0]"];
    for _ in 0..2 {
        let (code, out, err) = folder.taffeta(&args("scan"));
        assert_eq!((code, out.as_str()), (0, "s: f64 = 3\n"));
        assert_eq!(err.matches("structured::scan").count(), 1, "{err}");
        assert!(err.contains("1 warning"), "{err}");
    }
    let (code, _, err) = folder.taffeta(&args("total"));
    assert_eq!((code, err.as_str()), (0, ""));
    let (_, _, err) = folder.taffeta(&[&args("scan")[..], &["--backend", "interp"]].concat());
    assert_eq!(err.matches("structured::scan").count(), 1, "{err}");
    let (_, out, err) = folder.taffeta(&[&args("scan")[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((json["diagnostics"][0]["code"].as_str(), err.as_str()), (Some("structured::scan"), ""));
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(1));
}

/// Checks the explanation of loops in JSON.
#[test]
fn loops_are_explained_in_json() {
    let folder = folder();
    let out = folder.succeeds(&["show", "f.ft", "total", "--explain", "--json", "--size", "n=10"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let inner = &json["loops"][1];
    assert_eq!(inner["visited"], serde_json::json!([["A"]]));
    assert_eq!(inner["iterations"], "nnz(A)/10");
    assert_eq!(inner["operands"][0]["part"], "drives");
    assert_eq!(json["stored"], serde_json::json!({}));
    // The number of stored elements is read from the input, as in a run.
    for (input, stored) in [("A=a.mtx", 2), ("A=sprand(density=0.5)", 20)] {
        let args = ["show", "f.ft", "total", "--explain", "--in", input];
        let sizes = ["--size", "n=10", "--size", "m=4"];
        let args = if stored == 2 { args.to_vec() } else { [&args[..], &sizes].concat() };
        assert!(folder.succeeds(&args).contains(&format!("\n\nnnz(A) = {stored}\n")));
        let json = folder.succeeds(&[&args[..], &["--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["stored"], serde_json::json!({ "A": stored }));
    }
    let out = folder.succeeds(&["show", "f.ft", "plain", "--explain"]);
    assert!(out.starts_with("plain: ") && !out.contains("# Loops over structured tensors"), "{out}");
}

/// Checks that the gradient of a structured parameter is written to sparse files in the parameter's pattern, zeros
/// included, and densely to other files; a value shared by several elements is shown at each of them.
#[test]
fn gradients_are_written_in_the_pattern_of_the_parameter() {
    const TEXT: &str = "\
def spmv(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * x[j]
    return y


def back(G: f64[n, n] @ FORMAT) -> f64[n, n] @ pattern(G):
    return G
";
    let sparse = "1 1 0.0\n1 3 100.0\n3 1 0.0\n3 2 30.0\n";
    let runs = "1 1 0.0\n1 2 10.0\n1 3 100.0\n2 1 220.0\n2 2 220.0\n2 3 220.0\n3 1 0.0\n3 2 30.0\n3 3 300.0\n";
    for (format, a, expected, dense) in [
        ("csr", "A=[[1,0,2],[0,0,0],[4,3,0]]", sparse, "0.0,0.0,100.0\n0.0,0.0,0.0\n0.0,30.0,0.0\n"),
        ("dcsr", "A=[[1,0,2],[0,0,0],[4,3,0]]", sparse, "0.0,0.0,100.0\n0.0,0.0,0.0\n0.0,30.0,0.0\n"),
        ("coo", "A=[[1,0,2],[0,0,0],[4,3,0]]", sparse, "0.0,0.0,100.0\n0.0,0.0,0.0\n0.0,30.0,0.0\n"),
        ("vbl", "A=[[1,0,2],[0,0,0],[4,3,0]]", sparse, "0.0,0.0,100.0\n0.0,0.0,0.0\n0.0,30.0,0.0\n"),
        ("format(dense, hashed)", "A=[[1,0,2],[0,0,0],[4,3,0]]", sparse, "0.0,0.0,100.0\n0.0,0.0,0.0\n0.0,30.0,0.0\n"),
        // The sum of the derivatives at (0, 2) and (2, 0), which share a value.
        (
            "format(dense, symmetric)",
            "A=[[1,0,4],[0,0,3],[4,3,0]]",
            "1 1 0.0\n1 2 10.0\n1 3 100.0\n2 1 10.0\n2 2 20.0\n2 3 230.0\n3 1 100.0\n3 2 230.0\n3 3 300.0\n",
            "0.0,10.0,100.0\n10.0,20.0,230.0\n100.0,230.0,300.0\n",
        ),
        ("rle", "A=[[1,0,2],[0,0,0],[4,3,0]]", runs, "0.0,10.0,100.0\n220.0,220.0,220.0\n0.0,30.0,300.0\n"),
    ] {
        let folder = Folder::new(&[("f.ft", &TEXT.replace("FORMAT", format))]);
        let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it is there");
        let run = |args: &[&str], out: &str| drop(folder.succeeds(&[args, &["--out", out]].concat()));
        for backend in ["c", "interp"] {
            for extension in ["tns", "mtx", "npz", "npy", "csv"] {
                let inputs = ["--in", a, "--in", "x=[0, 10, 100]", "--in", "y.grad=[1, 2, 3]"];
                let gradient = [&["run", "f.ft", "spmv", "--grad", "A", "--backend", backend][..], &inputs].concat();
                run(&gradient, &format!("A.grad=g.{extension}"));
            }
            assert_eq!(text("g.tns"), expected, "{format}, {backend}");
            let count = expected.lines().count();
            let head = format!("%%MatrixMarket matrix coordinate real general\n3 3 {count}\n");
            assert_eq!(text("g.mtx"), head + expected, "{format}, {backend}");
            assert_eq!(text("g.csv"), dense, "{format}, {backend}");
            for file in ["g.mtx", "g.npz", "g.tns"] {
                let input = format!("G={file}");
                run(&["run", "f.ft", "back", "--in", &input, "--size", "n=3"], "G=again.tns");
                assert_eq!(text("again.tns"), expected, "{format}, {backend}, {file}");
            }
            // (A dense file does not record which zeros are stored, so none is.)
            run(&["run", "f.ft", "back", "--in", "G=g.npy"], "G=again.csv");
            assert_eq!(text("again.csv"), dense, "{format}, {backend}");
        }
    }
}

/// Checks that diagonals and blocks, all-zero ones included, are written to `.npz` in SciPy's layouts and read back;
/// blocks that do not divide the matrix have Taffeta's own layout.
#[test]
fn diagonals_and_blocks_are_written_in_the_layouts_of_scipy() {
    const TEXT: &str = "\
def spmv(A: f64[n, n] @ FORMAT, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * x[j]
    return y


def back(G: f64[n, n] @ FORMAT) -> f64[n, n] @ pattern(G):
    return G
";
    let a = "A=[[1,0,2,0],[0,0,0,0],[4,3,0,0],[0,0,0,5]]";
    for (format, layout) in [("dia", "dia"), ("bcsr(2, 2)", "bsr"), ("bcsr(1, 4)", "bsr"), ("bcsr(3, 3)", "taffeta")] {
        let folder = Folder::new(&[("f.ft", &TEXT.replace("FORMAT", format))]);
        let inputs = ["--in", a, "--in", "x=[1, 10, 100, 1000]", "--in", "y.grad=[1, 2, 3, 4]"];
        for out in ["A.grad=g.npz", "A.grad=g.csv"] {
            folder.succeeds(&[&["run", "f.ft", "spmv", "--grad", "A", "--out", out][..], &inputs].concat());
        }
        let dense = std::fs::read_to_string(folder.path().join("g.csv")).expect("it is there");
        for backend in ["c", "interp"] {
            let args = ["run", "f.ft", "back", "--in", "G=g.npz", "--backend", backend, "--out", "G=again.csv"];
            folder.succeeds(&args);
            let again = std::fs::read_to_string(folder.path().join("again.csv")).expect("it is there");
            assert_eq!(again, dense, "{format}, {backend}");
        }
        let bytes = std::fs::read(folder.path().join("g.npz")).expect("it is there");
        let says = |text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
        assert!(says(layout), "{format}");
        if crate::python::available("scipy").is_none() {
            continue;
        }
        let script = "import numpy, scipy.sparse; g = scipy.sparse.load_npz('g.npz'); print(g.format); \
                      assert (g.toarray() == numpy.loadtxt('g.csv', delimiter=',')).all()";
        if layout != "taffeta" {
            let out = std::process::Command::new(crate::python::interpreter())
                .args(["-c", script])
                .current_dir(folder.path())
                .output();
            let out = out.expect("Python starts");
            assert_eq!(String::from_utf8_lossy(&out.stdout), format!("{layout}\n"), "{out:?}");
        }
    }
}

/// Checks that elements of a seed outside of the result's pattern are ignored.
#[test]
fn seeds_beside_a_pattern_are_ignored() {
    let folder = Folder::new(&[(
        "f.ft",
        "\
def scaled(A: f64[n, n] @ csr, x: f64[n]) -> f64[n, n] @ pattern(A):
    B: f64[n, n] @ pattern(A) = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            B[i, j] = A[i, j] * x[j]
    return B


def other(A: f64[n, n] @ csr, W: f64[n, n] @ pattern(A)) -> f64:
    return sum(A * W)


forward = jvp(scaled, wrt=[\"A\"])
",
    )]);
    let inputs = ["--in", "A=[[1,0],[0,2]]", "--in", "x=[10, 100]"];
    for backend in ["c", "interp"] {
        let grad = |seed: &str, out: &str| {
            let args = ["run", "f.ft", "scaled", "--grad", "A,x", "--backend", backend, "--in", seed, "--out", out];
            folder.succeeds(&[&args[..], &inputs].concat())
        };
        let all = grad("B.grad=[[1,5],[6,3]]", "A.grad=a.tns");
        assert!(all.contains("x.grad: f64[2]\n  [1, 6]"), "{all}");
        assert_eq!(std::fs::read_to_string(folder.path().join("a.tns")).expect("it is there"), "1 1 10.0\n2 2 300.0\n");
        folder.write("seed.tns", b"1 1 1\n1 2 5\n2 1 6\n2 2 3\n");
        assert_eq!(grad("B.grad=seed.tns", "A.grad=a.tns"), all, "{backend}");
        let args = ["run", "f.ft", "forward", "--backend", backend, "--in", "A.tangent=[[1,5],[6,3]]"];
        let tangent = folder.succeeds(&[&args[..], &inputs].concat());
        assert!(tangent.contains("(0, 0) 10\n  (1, 1) 300\n"), "{tangent}");
    }
    // Elements outside of the pattern are refused in inputs that are not derivatives.
    let refused = folder.fails(&["run", "f.ft", "other", "--in", "A=[[1,0],[0,2]]", "--in", "W=[[1,5],[0,2]]"]);
    assert!(refused.contains("data::storage"), "{refused}");
}

/// Checks that a result is refused if it fits in memory in its format but not as elements.
#[test]
fn results_larger_than_memory_are_refused() {
    let folder = Folder::new(&[
        ("runs.ft", "def squares(A: f64[n, m] @ rle) -> f64:\n    return sum(A * A)\n"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n300000 300000 2\n1 1 2\n5 5 3\n"),
    ]);
    let said = folder.fails(&["run", "runs.ft", "--grad", "A", "--in", "A=a.mtx"]);
    assert!(said.contains("run::memory") && said.contains("result `A.grad`: "), "{said}");
    assert!(!said.contains("mistake in Taffeta"), "{said}");
}

/// Checks that the derivative of a bf16 value that stands for a row is summed in f32: a bf16 sum would stop at 256.
#[test]
fn gradients_of_shared_halves_are_summed_in_f32() {
    let folder = folder();
    let text = "def f(A: bf16[n, m] @ rle) -> f32:\n    s: f32 = 0.0\n    for i in range(n):\n        \
                for j in range(m):\n            s += A[i, j]\n    return s\n\n\ng = grad(f, wrt=[\"A\"])\n";
    folder.write("half.ft", text.as_bytes());
    let run = ["run", "half.ft", "g", "--in", "A=ones", "--size", "n=1", "--size", "m=4096", "--backend"];
    for backend in ["c", "interp"] {
        let printed = folder.succeeds(&[&run[..], &[backend]].concat());
        assert!(printed.ends_with("min 4096  max 4096  mean 4096\n"), "{printed}");
    }
}
