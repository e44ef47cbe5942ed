//! Structured arguments on borrowed arrays: results match the interpreter's, and arrays that break the invariants of
//! their levels are refused before any code relies on them.

use expect_test::{expect, expect_file};
use itertools::Itertools as _;
use std::path::Path;
use std::process::Command;
use taffeta::{Backend, DType, Diagnostic, Error, Function, LevelKind, Options, Program, Sparse};
use taffeta_ast::{Buffer, Literal, Value};
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};

/// Formats of matrices, one for each kind of level, with the names of their sums.
const MATRICES: [(&str, &str); 13] = [
    ("csr", "csr"),
    ("band", "band"),
    ("ragged", "ragged"),
    ("map", "format(dense, bytemap)"),
    ("hashed", "format(dense, hashed)"),
    ("point", "format(dense, point)"),
    ("rle", "rle"),
    ("vbl", "vbl"),
    ("packbits", "packbits"),
    ("diagonals", "dia"),
    ("slots", "ell"),
    ("blocks", "bcsr(2, 3)"),
    ("coo", "coo"),
];

/// Sums over a tensor of three dimensions, and over two matrices of one pattern.
const OTHERS: &str = r#"
def sum_deep(A: f64[n, m, k] @ format(dense, ragged, dense)) -> f64:
    s: f64 = 0.0
    for i in range(n):
        for j in range(m):
            for l in range(k):
                s += A[i, j, l]
    return s

def sum_both(A: f64[n, m] @ csr, B: f64[n, m] @ pattern(A)) -> f64:
    s: f64 = 0.0
    for i in range(n):
        for j in range(m):
            s += A[i, j] * B[i, j]
    return s
"#;

/// Returns the program with all sums.
fn sums() -> String {
    let sum = |(name, format): (&str, &str)| {
        format!(
            "def sum_{name}(A: f64[n, m] @ {format}) -> f64:\n    s: f64 = 0.0\n    for i in range(n):\n        \
             for j in range(m):\n            s += A[i, j]\n    return s\n\n"
        )
    };
    MATRICES.map(sum).concat() + OTHERS
}

#[test]
fn c_refuses_invalid_arrays() {
    let program = Program::from_source("sums.ft", &sums()).unwrap_or_else(|e| panic!("{e}"));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut files = Vec::new();
    for entry in MATRICES.map(|(name, _)| name).into_iter().chain(["deep", "both"]).map(|name| format!("sum_{name}")) {
        let source = program.c_source(&entry, &Options::default().schedule(None)).unwrap_or_else(|e| panic!("{e}"));
        let stem = source.signature.logical().c_name.clone();
        files.push(Toolchain::write(&source, dir.path(), &stem).expect("the directory can be written").source);
    }
    let main = dir.path().join("borrowed.c");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/borrowed.c");
    std::fs::copy(&own, &main).expect("the directory can be written");
    let sanitize = CompileOptions { sanitize: true, ..CompileOptions::default() };
    let compiler = Toolchain::find().expect("a C compiler");
    let made = compiler.executable(dir.path(), "borrowed", &files, &sanitize).unwrap_or_else(|d| panic!("{d:?}"));
    let output = Command::new(made).env("OMP_NUM_THREADS", "1").output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect_file!["borrowed.expect"].assert_eq(&String::from_utf8_lossy(&output.stdout));
}

/// Products such as `y = A x`, each with a loop nest that follows its format.
const PRODUCTS: &str = r#"
def rows(A: f64[n, m] @ csr, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    return y

def columns(A: f64[n, m] @ csc, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for j in range(m):
        for i in range(n):
            y[i] += A[i, j] * x[j]
    return y

def tree(A: f64[n, m, k] @ csf, x: f64[k]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            for l in range(k):
                y[i] += A[i, j, l] * x[l]
    return y

def banded(A: f32[n, m] @ band, x: f32[m]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    return y

def narrow(A: f64[n, m] @ format(dense, compressed(index=u8)), x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    return y

def diagonals(A: f64[n, m] @ dia, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    return y

def blocks(A: f64[n, m] @ bcsr(2, 3), x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    return y

def list(A: f64[n, m] @ coo, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    return y

def both(A: f64[n, m] @ csr, B: f64[n, m] @ csr, x: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
        for j in range(m):
            y[i] += B[i, j]
    return y
"#;

fn compiled(entry: &str, options: &Options) -> Function {
    let program = Program::from_source("products.ft", PRODUCTS).unwrap_or_else(|e| panic!("{e}"));
    program.compile(entry, options).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the product of the arrays, which must be the same on both backends.
fn product(entry: &str, options: &Options, a: &Sparse<'_>, x: &Value) -> Vec<f64> {
    let of = |backend| {
        let f = compiled(entry, &options.clone().backend(backend));
        let out = f.call().sparse("A", a).value("x", x).run().unwrap_or_else(|e| panic!("{e}"));
        out.value("y").expect("a result").numbers()
    };
    let (c, interpreter) = (of(Backend::C), of(Backend::Interp));
    assert_eq!(c, interpreter, "{entry}");
    c
}

fn vector(elements: &[f64]) -> Value {
    Value::new(vec![elements.len()], Buffer::F64(elements.to_vec())).expect("as many as there are")
}

#[test]
fn rust_passes_borrowed_arrays_in_every_format() {
    let x = vector(&[1.0, 10.0, 100.0, 1000.0]);
    let plain = Options::default();
    // 1 . 2 .
    // . . . .
    // . 3 . 4
    let (values, rows) = ([1.0, 2.0, 3.0, 4.0], [201.0, 0.0, 4030.0]);
    let csr = Sparse::csr(&[0, 2, 2, 4], &[0, 2, 1, 3], &values, [3, 4]);
    assert_eq!(product("rows", &plain, &csr, &x), rows);
    let same = Sparse::new(&values, &[3, 4]).dense().level(LevelKind::Compressed, &[&[0, 2, 2, 4], &[0, 2, 1, 3]]);
    assert_eq!(product("rows", &plain, &same, &x), rows);
    let csc = Sparse::csc(&[0, 1, 2, 3, 4], &[0, 2, 0, 2], &[1.0, 3.0, 2.0, 4.0], [3, 4]);
    assert_eq!(product("columns", &plain, &csc, &x), rows);
    let csf = Sparse::csf(
        &[(&[0, 2], &[0, 2]), (&[0, 1, 3], &[1, 0, 1]), (&[0, 2, 3, 4], &[0, 2, 1, 3])],
        &values,
        &[3, 2, 4],
    );
    assert_eq!(product("tree", &plain, &csf, &x), rows);
    let coo = Sparse::coo(&[&[0, 0, 2, 2], &[0, 2, 1, 3]], &values, &[3, 4]);
    let f = compiled("list", &plain.clone().backend(Backend::Interp));
    let out = f.call().sparse("A", &coo).value("x", &x).run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(out.value("y").expect("y").numbers(), rows);
    let none: &[i32] = &[];
    // Diagonal 0 with 1, . and .; diagonal -1 with ., . and 3; diagonals 1 and 2 with . . 4 and 2 . .
    let held = [0.0, 0.0, 3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 4.0, 2.0, 0.0, 0.0];
    let dia = Sparse::new(&held, &[3, 4]).level(LevelKind::Squeezed, &[&[1, 2, 3, 4]]);
    let dia = dia.level(LevelKind::Range, &[none; 0]).level(LevelKind::Offset, &[none; 0]).remap("(j - i, i, j)");
    assert_eq!(product("diagonals", &plain, &dia, &x), rows);
    let of_blocks = |values: [[f64; 6]; 3]| values.concat();
    let held =
        of_blocks([[1.0, 0.0, 2.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0, 0.0, 0.0], [4.0, 9.0, 9.0, 9.0, 9.0, 9.0]]);
    let bcsr = Sparse::new(&held, &[3, 4]).dense().level(LevelKind::Compressed, &[&[0, 1, 3], &[0, 0, 1]]);
    let bcsr = bcsr.dense().dense().remap("(i // 2, j // 3, i % 2, j % 3)");
    assert_eq!(product("blocks", &plain, &bcsr, &x), rows);
    let empty: &[i32] = &[];
    let nothing = Sparse::csr(&[0], empty, &[0.0; 0], [0, 4]);
    assert_eq!(product("rows", &plain, &nothing, &x), [0.0; 0]);
    // NaN and infinities among the elements; an explicit zero is an element.
    let odd = Sparse::csr(&[0, 2, 3, 3], &[0, 3, 1], &[0.0, f64::INFINITY, f64::NAN], [3, 4]);
    let y = product_bits("rows", &odd, &vector(&[f64::INFINITY, 1.0, 1.0, 1.0]));
    assert!(y[0].is_nan() && y[1].is_nan() && y[2] == 0.0, "{y:?}");

    let band = Sparse::new(&[1.0f32, 2.0, 3.0], &[2, 4]).dense().level(LevelKind::Banded, &[&[0, 2, 3], &[1, 3]]);
    let narrow = Value::new(vec![4], Buffer::F32(vec![1.0, 10.0, 100.0, 1000.0])).expect("four elements");
    assert_eq!(product("banded", &plain, &band, &narrow), [210.0, 3000.0]);
}

/// Returns the product as [`product`] does, for results that may be NaN.
fn product_bits(entry: &str, a: &Sparse<'_>, x: &Value) -> Vec<f64> {
    let f = compiled(entry, &Options::default());
    let out = f.call().sparse("A", a).value("x", x).run().unwrap_or_else(|e| panic!("{e}"));
    let interp = compiled(entry, &Options::default().backend(Backend::Interp));
    let expected = interp.call().sparse("A", a).value("x", x).run().unwrap_or_else(|e| panic!("{e}"));
    let (c, expected) = (out.value("y").expect("y").numbers(), expected.value("y").expect("y").numbers());
    assert!(c.iter().zip_eq(&expected).all(|(a, b)| a == b || a.is_nan() && b.is_nan()), "{c:?} {expected:?}");
    c
}

#[test]
fn indices_must_have_the_compiled_type() {
    let x = vector(&[1.0, 10.0, 100.0, 1000.0]);
    let values = [1.0, 2.0, 3.0, 4.0];
    let rows = [201.0, 0.0, 4030.0];
    macro_rules! of_type {
        ($t:ty, $dtype:expr) => {{
            let (pos, crd): (&[$t], &[$t]) = (&[0, 2, 2, 4], &[0, 2, 1, 3]);
            let a = Sparse::csr(pos, crd, &values, [3, 4]);
            assert_eq!(product("rows", &Options::default().index("A", $dtype), &a, &x), rows);
        }};
    }
    of_type!(u8, DType::U8);
    of_type!(u16, DType::U16);
    of_type!(i32, DType::I32);
    of_type!(i64, DType::I64);
    // An index type in the format takes precedence over the option.
    let narrow = Sparse::csr(&[0u8, 2, 2, 4], &[0u8, 2, 1, 3], &values, [3, 4]);
    assert_eq!(product("narrow", &Options::default().index("A", DType::I64), &narrow, &x), rows);

    let f = compiled("rows", &Options::default());
    let wide = Sparse::csr(&[0i64, 2, 2, 4], &[0i64, 2, 1, 3], &values, [3, 4]);
    let refused = f.call().sparse("A", &wide).value("x", &x).run().unwrap_err();
    let d = diagnostic(&refused);
    assert_eq!(d.code, "data::dtype");
    assert_eq!(d.message, "parameter `A`: expected i32 elements in `A.pos1`, found i64");
    assert!(d.help.as_ref().is_some_and(|h| h.contains("Options::index(\"A\", DType::I64)")), "{d:?}");

    let program = Program::from_source("products.ft", PRODUCTS).unwrap_or_else(|e| panic!("{e}"));
    for (name, dtype, what) in [
        ("x", DType::I64, "parameter `x` is dense, so it has no index arrays"),
        ("B", DType::I64, "`rows` has no parameter `B`"),
        ("A", DType::F32, "expected index arrays of type u8, u16, i32 or i64, found f32"),
    ] {
        let refused = program.compile("rows", &Options::default().index(name, dtype)).err().expect("it is refused");
        assert_eq!(diagnostic(&refused).message, what);
    }
}

fn diagnostic(e: &Error) -> &Diagnostic {
    match e {
        Error::Input(r) | Error::Program(r) => &r.diagnostics[0],
        other => panic!("{other}"),
    }
}

/// Checks that both backends refuse broken arrays with the same message, before generated code or the interpreter sees
/// them.
#[test]
fn rust_refuses_invalid_arrays() {
    let (x, narrow) = (vector(&[1.0; 4]), Value::new(vec![4], Buffer::F32(vec![1.0; 4])).expect("four elements"));
    let four = [1.0, 2.0, 3.0, 4.0];
    let of = |entry: &str, a: &Sparse<'_>| {
        let message = |backend| {
            let f = compiled(entry, &Options::default().backend(backend));
            let refused = f.call().sparse("A", a).value("x", if entry == "banded" { &narrow } else { &x }).run();
            diagnostic(&refused.err().unwrap_or_else(|| panic!("{a} is accepted"))).message.clone()
        };
        assert_eq!(message(Backend::C), message(Backend::Interp));
        message(Backend::C)
    };
    let csr = |pos: &[i32], crd: &[i32]| of("rows", &Sparse::csr(pos, crd, &four, [3, 4]));
    let mut said = vec![
        csr(&[1, 2, 2, 4], &[0, 2, 1, 3]),
        csr(&[0, 3, 2, 4], &[0, 2, 1, 3]),
        csr(&[0, i32::MAX, i32::MAX, 4], &[0, 2, 1, 3]),
        csr(&[0, -5, 2, 4], &[0, 2, 1, 3]),
        csr(&[0, 2, 2, 3], &[0, 2, 1, 3]),
        csr(&[0, 2, 4], &[0, 2, 1, 3]),
        csr(&[], &[0, 2, 1, 3]),
        csr(&[0, 2, 2, 4], &[0, 2, 1]),
        csr(&[0, 2, 2, 4], &[0, 2, 1, 4]),
        csr(&[0, 2, 2, 4], &[-1, 2, 1, 3]),
        csr(&[0, 2, 2, 4], &[2, 0, 1, 3]),
        csr(&[0, 2, 2, 4], &[2, 2, 1, 3]),
    ];
    let (pos, crd) = ([0, 2, 2, 4], [0, 2, 1, 3]);
    said.push(of("rows", &Sparse::csr(&pos, &crd, &four[..3], [3, 4])));
    said.push(of("rows", &Sparse::csr(&pos, &crd, &[1.0f32; 4], [3, 4])));
    said.push(of("rows", &Sparse::csr(&pos, &crd, &four, [3, 5])));
    said.push(of("rows", &Sparse::csc(&pos, &crd, &four, [3, 4])));
    said.push(of("rows", &Sparse::csf(&[(&[0, 1], &[0]), (&[0, 1], &[0])], &four[..1], &[3, 4])));
    said.push(of("rows", &Sparse::new(&four, &[3, 4]).dense().level(LevelKind::Hashed, &[&pos, &crd])));
    said.push(of("rows", &Sparse::new(&four, &[3, 4]).dense().level(LevelKind::Compressed, &[&pos])));
    said.push(of("rows", &Sparse::new(&four, &[3, 4]).dense()));
    said.push(of(
        "banded",
        &Sparse::new(&[1.0f32; 3], &[2, 4]).dense().level(LevelKind::Banded, &[&[0, 2, 3], &[3, 0]]),
    ));
    expect![[r#"
        parameter `A`: `A.pos1` begins with 1, expected 0
        parameter `A`: `A.pos1` falls from 3 to 2 at element 2
        parameter `A`: `A.pos1` falls from 2147483647 to 4 at element 3
        parameter `A`: `A.pos1` falls from 0 to -5 at element 1
        parameter `A`: `A.pos1` ends with 3, but there are 4 positions
        parameter `A`: `A.pos1` has 3 elements, expected 4
        parameter `A`: `A.pos1` has 0 elements, expected 4
        parameter `A`: `A.pos1` ends with 4, but there are 3 positions
        parameter `A`: element 3 of `A.crd1` is 4, out of range for a dimension of size 4
        parameter `A`: element 0 of `A.crd1` is -1, out of range for a dimension of size 4
        parameter `A`: `A.crd1` is not in order: element 1 is 0, after 2
        parameter `A`: `A.crd1` repeats coordinate 2 under position 0
        parameter `A`: `A.val` has 3 elements, expected 4, one for each position
        parameter `A` is f64, but the array holds f32
        parameter `x`, dimension 0: expected 5 (`m`), found 4
        parameter `A` is in format(dense, compressed), but its value is in format(dense, compressed, order=(1, 0))
        parameter `A` is in format(dense, compressed), but its value is in format(compressed, compressed)
        parameter `A` is in format(dense, compressed), but its value is in format(dense, hashed)
        parameter `A`: expected 2 arrays of level 1, found 1
        parameter `A` is in format(dense, compressed), but its value is in format(dense)
        parameter `A`: `A.pos1` has 2 coordinates from 3 under position 0, out of range for a dimension of size 4
    "#]]
    .assert_eq(&(said.join("\n") + "\n"));

    let f = compiled("rows", &Options::default());
    let fine = Sparse::csr(&pos, &crd, &four, [3, 4]);
    let refused = f.call().sparse("x", &fine).sparse("A", &fine).run().unwrap_err();
    assert_eq!(diagnostic(&refused).message, "parameter `x` is dense, but its value is sparse");
}

/// Checks that borrowed, packed and dense arguments can be mixed, and that a tensor serves several calls and formats.
#[test]
fn borrowed_packed_and_dense_arguments_mix() {
    let x = vector(&[1.0, 10.0, 100.0, 1000.0]);
    let a = Sparse::csr(&[0, 2, 2, 4], &[0, 2, 1, 3], &[1.0, 2.0, 3.0, 4.0], [3, 4]);
    let packed = Value::sparse(vec![3, 4], vec![0, 1, 2, 2], Buffer::F64(vec![0.5, 0.25]), Literal::Float(0.0));
    let packed = packed.expect("they are in order");
    let dense = Value::new(vec![3, 4], Buffer::F64((0..12).map(f64::from).collect())).expect("twelve elements");
    let f = compiled("both", &Options::default());
    for _ in 0..2 {
        let y = f.call().sparse("A", &a).value("B", &packed).value("x", &x).run().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(y.value("y").expect("y").numbers(), [201.5, 0.0, 4030.25]);
        let y = f.call().sparse("B", &a).value("A", &dense).value("x", &x).run().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(y.value("y").expect("y").numbers(), [3213.0, 7654.0, 12105.0]);
    }
    // Arrays that pass the check for one type of indices are refused for another.
    let wide = compiled("both", &Options::default().index("A", DType::I64));
    assert!(wide.call().sparse("A", &a).value("B", &packed).value("x", &x).run().is_err());
}

#[test]
fn tensors_are_shown_with_their_elements() {
    let a = Sparse::csr(&[0i64, 2, 2, 4], &[0i64, 2, 1, 3], &[1.0, 2.5, f64::INFINITY, 4.0], [3, 4]);
    expect![[r#"
        f64[3, 4] @ format(dense, compressed(index=i64)), 4 elements stored, all others 0
        (0, 0) 1
        (0, 2) 2.5
        (2, 1) inf
        (2, 3) 4
    "#]]
    .assert_eq(&format!("{a}\n"));
    let broken = Sparse::csr(&[0, 2, 1, 4], &[0, 2, 1, 3], &[1.0; 4], [3, 4]);
    expect![[r#"
        f64[3, 4] @ format(dense, compressed), 4 elements stored, not a valid tensor: `pos1` falls from 2 to 1 at element 2
    "#]].assert_eq(&format!("{broken}\n"));
    let long: Vec<i32> = (0..1000).collect();
    let many = Sparse::csf(&[(&[0, 1000], &long)], &[true; 1000], &[1_000_000_000]);
    expect![[r#"
        bool[1000000000] @ format(compressed), 1000 elements stored, all others False
        (0) True
        (1) True
        (2) True
        (3) True
        (4) True
        (5) True
        ...
        (997) True
        (998) True
        (999) True
    "#]]
    .assert_eq(&format!("{many}\n"));
    let dense = Value::new(vec![2, 2], Buffer::I64(vec![1, 2, 3, 4])).expect("four elements");
    assert_eq!(dense.to_string(), "[[1 2]\n [3 4]]");
    let one = Value::sparse(vec![3], vec![1], Buffer::F32(vec![0.5]), Literal::Float(f64::INFINITY)).expect("in range");
    assert_eq!(one.to_string(), "f32[3], 1 element stored, all others inf\n(1) 0.5");
}
