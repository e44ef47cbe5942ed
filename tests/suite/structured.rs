//! Structured parameters in C: the loops are those that an expert writes, and on real matrices they compute the same as
//! a loop over the elements.

use std::path::{Path, PathBuf};
use taffeta::{Backend, Options, Program};
use taffeta_ast::{Buffer, Diagnostics, Value};
use taffeta_structured::{Traversed, in_sections, sections, traversed};

fn products() -> Program {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sparse/products.ft");
    Program::load(&file).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the C of an entry up to the functions that callers use.
fn kernel(entry: &str, schedule: Option<&str>) -> String {
    let source = products().c_source(entry, &Options::default().schedule(schedule)).unwrap_or_else(|e| panic!("{e}"));
    let code = source.code;
    let end = code.find(&format!("int taf_arrays_{entry}_plan")).expect("the entry");
    code[..end].to_string()
}

/// Checks that the loop goes from one position to the next, without bounds checks, `while`, or tests of coordinates.
#[test]
fn rows_times_vectors_have_handwritten_loops() {
    for schedule in [None, Some("rows")] {
        let c = kernel("spmv", schedule);
        let lines: Vec<&str> = c.lines().map(str::trim).collect();
        let first = lines.iter().position(|l| l.starts_with("const int64_t j_p_end")).expect("the end of a row");
        let code: Vec<&str> = lines[first..].iter().copied().filter(|l| !l.starts_with("/*")).take(4).collect();
        assert_eq!(
            code,
            [
                "const int64_t j_p_end = (int64_t)A_pos1[i + 1];",
                "for (int64_t j_p = (int64_t)A_pos1[i]; j_p < j_p_end; j_p++) {",
                "y[i] += A_val[j_p] * x[(int64_t)A_crd1[j_p]];",
                "}",
            ],
            "{c}"
        );
        assert!(!c[c.find("spmv_kernel").expect("the kernel")..].contains("taf_fail("), "{c}");
        assert!(!c.contains("while"), "{c}");
        assert_eq!(c.contains("#pragma omp parallel"), schedule.is_some(), "{c}");
    }
}

/// Checks that a vectorised row gathers vectors of elements if it has enough elements (more, if the list is long), and
/// takes the rest one by one.
#[test]
fn vectorised_rows_are_gathered() {
    // The smallest vectors of any machine.
    let options = Options::default().schedule("vectors").portable(true);
    let source = products().c_source("spmv", &options).unwrap_or_else(|e| panic!("{e}"));
    let lines: Vec<&str> = source.code.lines().map(str::trim).filter(|l| !l.starts_with("/*")).collect();
    let first = lines.iter().position(|l| l.starts_with("int64_t j_p =")).expect("the start of a row");
    assert_eq!(
        lines[first..first + 10],
        [
            "int64_t j_p = (int64_t)A_pos1[i];",
            "if (j_p + (A_n1 > 262144 ? 32 : 2) <= (int64_t)A_pos1[i + 1]) {",
            "taf_f64x2 y_part_lanes[1] = {-0.0 - (taf_f64x2){0}};",
            "for (; j_p + 2 <= (int64_t)A_pos1[i + 1]; j_p += 2) {",
            "y_part_lanes[0] += *(const taf_f64x2_at *)&A_val[j_p] * (taf_f64x2){x[(int64_t)A_crd1[j_p]], x[(int64_t)A_crd1[j_p + 1]]};",
            "}",
            "y_part += taf_sum_f64x2(y_part_lanes[0]);",
            "}",
            "for (; j_p < (int64_t)A_pos1[i + 1]; j_p++) {",
            "y_part += A_val[j_p] * x[(int64_t)A_crd1[j_p]];",
        ],
        "{}",
        source.code
    );
}

/// Checks that a block of a row is loaded as whole vectors: assumptions about its position are not conditional loads.
#[test]
fn vectorised_blocks_have_contiguous_loads() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sparse/shapes.ft");
    let program = Program::load(&file).unwrap_or_else(|e| panic!("{e}"));
    let code = program.c_source("banded", &Options::default().portable(true)).unwrap_or_else(|e| panic!("{e}")).code;
    assert!(code.contains("*(const taf_f64x2_at *)&x[j]"), "{code}");
    assert!(!code.contains("bool holds"), "{code}");
}

/// Checks that two galloping lists continue at the larger of their coordinates, each in steps that double and then
/// halve, without bounds checks.
#[test]
fn galloping_lists() {
    let text = "def dot(a: f64[n] @ format(compressed), b: f64[n] @ format(compressed)):\n    s = 0.0\n    for j in range(n):\n        s += a[gallop(j)] * b[gallop(j)]\n    return s\n";
    let program = Program::from_source("dot.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let code = program.c_source("dot", &Options::default().schedule(None)).unwrap_or_else(|e| panic!("{e}")).code;
    let (begin, end) =
        (code.find("dot_kernel").expect("the kernel"), code.find("int taf_arrays_dot_plan").expect("the entry"));
    let lines: Vec<&str> = code[begin..end].lines().map(str::trim).filter(|l| !l.starts_with("/*")).collect();
    let first = lines.iter().position(|l| l.starts_with("int64_t j_a")).expect("positions");
    let last = lines.iter().rposition(|l| l.starts_with('}')).expect("the end");
    expect_test::expect![[r#"
        int64_t j_a;
        int64_t j_a_end;
        int64_t j_b;
        int64_t j_b_end;
        j_a = (int64_t)a_pos0[0];
        j_a_end = (int64_t)a_pos0[1];
        j_b = (int64_t)b_pos0[0];
        j_b_end = (int64_t)b_pos0[1];
        double s_2 = *s;
        while (j_a < j_a_end && j_b < j_b_end) {
        int64_t j;
        j = taf_max_i64((int64_t)a_crd0[j_a], (int64_t)b_crd0[j_b]);
        {
        int64_t j_a_top;
        int64_t j_a_probe;
        int64_t j_a_by;
        j_a_top = j_a_end;
        j_a_probe = j_a;
        j_a_by = 1;
        while (j_a_probe < j_a_top) {
        if ((int64_t)a_crd0[j_a_probe] < j) {
        j_a = j_a_probe + 1;
        j_a_probe = j_a_probe + j_a_by;
        j_a_by = j_a_by * 2;
        } else {
        j_a_top = j_a_probe;
        }
        }
        while (j_a < j_a_top) {
        int64_t j_a_mid = j_a + ((j_a_top - j_a) >> 1);
        if ((int64_t)a_crd0[j_a_mid] < j) {
        j_a = j_a_mid + 1;
        } else {
        j_a_top = j_a_mid;
        }
        }
        }
        {
        int64_t j_b_top;
        int64_t j_b_probe;
        int64_t j_b_by;
        j_b_top = j_b_end;
        j_b_probe = j_b;
        j_b_by = 1;
        while (j_b_probe < j_b_top) {
        if ((int64_t)b_crd0[j_b_probe] < j) {
        j_b = j_b_probe + 1;
        j_b_probe = j_b_probe + j_b_by;
        j_b_by = j_b_by * 2;
        } else {
        j_b_top = j_b_probe;
        }
        }
        while (j_b < j_b_top) {
        int64_t j_b_mid = j_b + ((j_b_top - j_b) >> 1);
        if ((int64_t)b_crd0[j_b_mid] < j) {
        j_b = j_b_mid + 1;
        } else {
        j_b_top = j_b_mid;
        }
        }
        }
        if (j_a < j_a_end && j_b < j_b_end) {
        if ((int64_t)a_crd0[j_a] == j && (int64_t)b_crd0[j_b] == j) {
        s_2 += a_val[j_a] * b_val[j_b];
        j_a = j_a + 1;
        j_b = j_b + 1;
        }
        }
        }
        *s = s_2;
        return TAFFETA_OK;
        }"#]]
    .assert_eq(&lines[first..=last].join("\n"));
    assert!(!code[begin..end].contains("taf_fail"), "{code}");
}

/// Returns the matrices of `TAFFETA_DATA`, small ones and large ones.
fn matrices() -> Vec<PathBuf> {
    let Some(data) = std::env::var_os("TAFFETA_DATA") else { return Vec::new() };
    let folder = Path::new(&data).join("matrices");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut all: Vec<PathBuf> = files.map(|f| f.expect("a file").path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "mtx"));
    assert!(all.len() > 10, "only {} matrices in {}", all.len(), folder.display());
    all.sort();
    all
}

/// Computes `A x` in f64, element by element, and the sum of the magnitudes in each row.
fn product(a: &Value, x: &[f64]) -> (Vec<f64>, Vec<f64>) {
    // A file may list all elements.
    let a = if a.places().is_some() { a.clone() } else { a.only(taffeta_ast::Literal::Float(0.0), |_| true) };
    let (mut y, mut scale) = (vec![0.0; a.shape()[0]], vec![0.0; a.shape()[0]]);
    let places = a.places().expect("it is sparse");
    for (at, v) in places.indices.chunks_exact(2).zip(a.numbers()) {
        let term = v * x[at[1] as usize];
        y[at[0] as usize] += term;
        scale[at[0] as usize] += term.abs();
    }
    (y, scale)
}

#[test]
fn products_with_real_matrices() {
    let program = products();
    let ways = [("spmv", None), ("spmv", Some("rows")), ("spmv", Some("vectors")), ("by_columns", None)];
    let entries: Vec<_> = ways
        .iter()
        .map(|(entry, schedule)| {
            program.compile(entry, &Options::default().schedule(*schedule)).unwrap_or_else(|e| panic!("{e}"))
        })
        .collect();
    let mut compared = 0;
    for path in matrices() {
        let given = [("A".to_string(), path.display().to_string()), ("x".to_string(), "rand(seed=1)".to_string())];
        let read = taffeta::inputs::read(entries[0].signature(), &given, &[]);
        // A matrix of complex numbers is refused, with the reason.
        let inputs = match read {
            Ok(inputs) => inputs,
            Err(faults) => {
                assert!(
                    faults[0].diagnostic.message.contains("complex"),
                    "{}: {}",
                    path.display(),
                    faults[0].diagnostic
                );
                continue;
            }
        };
        let (expected, scale) = product(&inputs.values[0], &inputs.values[1].numbers());
        for function in &entries {
            let ran = function.run(inputs.values.clone(), &inputs.sizes, 2).unwrap_or_else(|e| panic!("{e}"));
            let found = ran.results[0].numbers();
            assert_eq!(found.len(), expected.len());
            for (k, (a, b)) in expected.iter().zip(&found).enumerate() {
                assert!((a - b).abs() <= 1e-12 * scale[k], "{}: row {k}: expected {a}, found {b}", path.display());
            }
        }
        compared += 1;
    }
    assert!(compared > 10 || std::env::var_os("TAFFETA_DATA").is_none(), "only {compared} matrices");
}

/// Checks that a matrix of 10^9 times 10^9 takes the memory of its elements.
#[test]
fn memory_is_proportional_to_stored_elements() {
    let text = "def total(A: f64[n, m] @ dcsr):\n    s = 0.0\n    for i in range(n):\n        for j in range(m):\n            s += A[i, j]\n    return s\n";
    let program = Program::from_source("total.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let total = program.compile("total", &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let wide = 1_000_000_000;
    let count = 10_000;
    let indices: Vec<i64> = (0..count).flat_map(|k| [k * 99_999, (k * 7_919_000_003) % wide]).collect();
    let elements = taffeta_ast::Buffer::F64((0..count).map(|k| k as f64).collect());
    let zero = taffeta_ast::Literal::Float(0.0);
    let a = Value::sparse(vec![wide as usize; 2], indices, elements, zero).expect("it is in order");
    let out = total.call().value("A", &a).run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(out.scalar::<f64>("s").expect("a number"), (count * (count - 1) / 2) as f64);
}

/// Checks the number of triangles in real graphs against SciPy's (the sum of A A A elementwise, divided by six).
#[test]
fn triangle_counts_of_real_graphs() {
    let Some(data) = std::env::var_os("TAFFETA_DATA") else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sparse/graphs.ft");
    let program = Program::load(&file).unwrap_or_else(|e| panic!("{e}"));
    let of = |entry| program.compile(entry, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let (triangles, leapfrog) = (of("triangles"), of("triangles_leapfrog"));
    for (graph, expected) in [("karate.mtx", 45.0), ("cora_edges.mtx", 1630.0)] {
        let path = Path::new(&data).join("graphs").join(graph);
        let given = [("A".to_string(), path.display().to_string())];
        let inputs = taffeta::inputs::read(triangles.signature(), &given, &[])
            .unwrap_or_else(|e| panic!("{:?}", e[0].diagnostic));
        let ran = triangles.run(inputs.values.clone(), &inputs.sizes, 1).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(ran.results[0].numbers(), [expected], "{graph}");
        let ran = leapfrog.run(inputs.values, &inputs.sizes, 1).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(ran.results[0].numbers(), [expected], "{graph}, by leaps");
    }
}

/// Checks that sections of a program are lowered as in the whole, since schedules query them one by one.
#[test]
fn sections_are_lowered_like_the_whole_program() {
    let told = |of: Result<Traversed, Diagnostics>| of.ok().map(|t| (t.scans.len(), t.seeks, t.order_violations));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut compared = 0;
    let files =
        ["graphs", "layers", "pictures", "products", "shapes", "tensors"].map(|name| format!("sparse/{name}.ft"));
    for file in files.into_iter().chain(["gat/sparse.ft".to_string()]) {
        let program = Program::load(examples.join(&file)).unwrap_or_else(|e| panic!("{e}"));
        for entry in program.entries() {
            for schedule in [None, Some("auto")] {
                let Ok(made) = program.scheduled(&entry.name, &Options::default().schedule(schedule)) else { continue };
                let func = made.func();
                let apart = in_sections(func, |section| traversed(&section.func(func)));
                assert_eq!(told(traversed(func)), told(apart), "{file} {} {schedule:?}", entry.name);
                compared += usize::from(sections(func).len() > 1);
            }
        }
    }
    assert!(compared > 2, "{compared} programs have several sections");
}

/// Checks that an `inout` parameter beside a structured one is written back.
#[test]
fn inout_parameters_are_written_back() {
    let text = "def f(A: f64[n, n] @ csr, x: inout[f64[n]]):\n    for i in range(n):\n        x[i] += A[i, i]\n";
    let program = Program::from_source("back.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let value = |shape: &[usize], numbers: &[f64]| {
        Value::new(shape.to_vec(), Buffer::F64(numbers.to_vec())).expect("as many numbers as the shape says")
    };
    let a = value(&[2, 2], &[1.0, 2.0, 0.0, 3.0]);
    for backend in [Backend::Interp, Backend::C] {
        let f = program.compile("f", &Options::default().backend(backend)).unwrap_or_else(|e| panic!("{e}"));
        let ran = f.run(vec![a.clone(), value(&[2], &[10.0, 20.0])], &[2], 1).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(ran.params[1].numbers(), [11.0, 23.0], "{backend:?}");
        assert_eq!(ran.params[0].numbers(), a.numbers(), "{backend:?}");
    }
}

/// Elements with their indices.
type Elements = [([usize; 2], f64)];

/// Array expression over a structured tensor `A`, with its value for these elements and `y`.
type Expression = (&'static str, fn(&Elements, &[f64]) -> Vec<f64>);

const EXPRESSIONS: [Expression; 5] = [
    ("transpose(A) @ y", |a, y| summed(a, y, |v, [i, j], y| (j, v * y[i]))),
    ("tanh(A) @ y", |a, y| summed(a, y, |v, [i, j], y| (i, v.tanh() * y[j]))),
    ("where(A > 2.0, A, 0.0) @ y", |a, y| summed(a, y, |v, [i, j], y| (i, if v > 2.0 { v * y[j] } else { 0.0 }))),
    ("(2.0 * A * A) @ y", |a, y| summed(a, y, |v, [i, j], y| (i, 2.0 * v * v * y[j]))),
    ("sum(A * transpose(A)) * y", |a, y| {
        let all = summed(a, y, |v, [i, j], _| (0, if i == j { v * v } else { 0.0 }))[0];
        y.iter().map(|y| all * y).collect()
    }),
];

/// Function from an element to the index of a sum, and the term that it adds there.
type Term = fn(f64, [usize; 2], &[f64]) -> (usize, f64);

/// Sums up the terms of all elements.
fn summed(a: &Elements, y: &[f64], f: Term) -> Vec<f64> {
    let mut out = vec![0.0; y.len()];
    for (at, v) in a {
        let (place, v) = f(*v, *at, y);
        out[place] += v;
    }
    out
}

/// Checks that array expressions cost the number of stored elements, as the equivalent loops do: on matrices that no
/// memory could hold.
#[test]
fn array_expressions_take_time_of_stored_elements() {
    for (value, expected) in EXPRESSIONS {
        let text = format!("def f(A: f64[n, n] @ csr, y: f64[n]) -> f64[n]:\n    return {value}\n");
        let program = Program::from_source("expression.ft", &text).unwrap_or_else(|e| panic!("{e}"));
        for (n, backend) in [(1_000_000, Backend::C), (7, Backend::C), (7, Backend::Interp)] {
            let f = program.compile("f", &Options::default().backend(backend)).unwrap_or_else(|e| panic!("{e}"));
            let size = usize::try_from(n).expect("a size");
            let all = [([0, size - 1], 1.0), ([2, 2], 3.0), ([2, 5], 2.5), ([size - 2, 0], -4.0), ([size - 1; 2], 5.0)];
            let indices = all.iter().flat_map(|(at, _)| at.map(|i| i as i64)).collect();
            let elements = Buffer::F64(all.iter().map(|(_, v)| *v).collect());
            let zero = taffeta_ast::Literal::Float(0.0);
            let a = Value::sparse(vec![size; 2], indices, elements, zero).expect("it is in order");
            let y: Vec<f64> = (0..n).map(|k| (k % 5) as f64 - 1.5).collect();
            let given = Value::new(vec![size], Buffer::F64(y.clone())).expect("as many as there are");
            let out = f.run(vec![a, given], &[n], 1).unwrap_or_else(|e| panic!("{value}: {e}"));
            let found = out.results[0].numbers();
            let same = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-12 * y.abs();
            let expected = expected(&all, &y);
            assert!(found.len() == size && found.iter().zip(&expected).all(same), "{value} on {backend:?}");
        }
    }
}

/// Checks that an expression read by several statements stays a tensor, and so does one in a program with a schedule of
/// its own.
#[test]
fn expressions_read_by_several_statements_stay_tensors() {
    let text = "def f(A: f64[n, n] @ csr, x: f64[n]) -> (f64[n], f64[n]):\n    B = tanh(A)\n    return B @ x, x @ B\n\n\n\
                def g(A: f64[n, n] @ csr, x: f64[n]) -> f64[n]:\n    return tanh(A) @ x\n\n\n\
                @schedule(g)\ndef rows(s):\n    s.parallelize(\"i\")\n";
    let program = Program::from_source("twice.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let locals = |entry: &str, schedule: Option<&str>| {
        let func = program.logical(entry, &Options::default().schedule(schedule)).unwrap_or_else(|e| panic!("{e}"));
        let mut found = 0;
        func.body.walk(&mut |s| {
            let matrix = matches!(s.kind(), taffeta_ast::StmtKind::VarDef { tensor, .. } if tensor.ndim() == 2);
            found += usize::from(matrix);
        });
        found
    };
    assert_eq!([locals("f", None), locals("g", None), locals("g", Some("rows"))], [1, 0, 1]);
}

/// Checks that a schedule that lowers without sizes lowers with any sizes compiled in.
#[test]
fn schedules_lowered_without_sizes_lower_with_sizes() {
    let text = "
def add(A: f64[n] @ format(compressed), x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        y[i] = A[i] + x[i]
    return y

@schedule(add)
def parts(s):
    s.split(\"i\", parts=3)
    s.parallelize(\"i~o\")

def columns(A: f64[n, m] @ csr, B: f64[n, m] @ csr) -> f64[m]:
    y = zeros((m,), f64)
    for j in range(m):
        for i in range(n):
            y[j] += A[i, j] * B[i, j]
    return y

@schedule(columns)
def at_once(s):
    s.parallelize(\"j\")
";
    let program = Program::from_source("sizes.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let numbers = |shape: &[usize]| {
        let all = (0..shape.iter().product()).map(|k: usize| if k % 3 == 1 { 0.0 } else { k as f64 + 1.0 }).collect();
        Value::new(shape.to_vec(), Buffer::F64(all)).expect("as many numbers as the shape says")
    };
    for (entry, schedule) in [("add", "parts"), ("columns", "at_once")] {
        for n in [0, 1, 2, 3, 7] {
            let (names, shapes): (&[&str], [&[usize]; 2]) = match entry {
                "add" => (&["n"], [&[n], &[n]]),
                _ => (&["n", "m"], [&[n, 2], &[n, 2]]),
            };
            let sizes: Vec<i64> = [n as i64, 2][..names.len()].to_vec();
            let inputs = || shapes.iter().map(|shape| numbers(shape)).collect::<Vec<Value>>();
            let plain = Options::default().schedule(None);
            let known = names.iter().map(ToString::to_string).zip(sizes.iter().copied());
            let known = plain.clone().schedule(schedule).sizes(known);
            let run = |options: &Options| {
                let f = program.compile(entry, options).unwrap_or_else(|e| panic!("{entry}, {n}: {e}"));
                f.run(inputs(), &sizes, 2).unwrap_or_else(|e| panic!("{entry}, {n}: {e}")).results[0].numbers()
            };
            assert_eq!(run(&known), run(&plain.backend(Backend::Interp)), "{entry}, {n}");
        }
    }
}

/// Checks sums over two bytemaps in lanes: gcc before 12.4 makes wrong masks of two conditions on bytes and a sum of
/// eight bytes.
#[test]
fn vectorised_sums_over_two_bytemaps_are_correct() {
    let text = "
def f(x: f64[n], z: f64[n]) -> f64:
    t: f64[n] @ format(bytemap) = zeros((n,), f64)
    u: f64[n] @ format(bytemap) = zeros((n,), f64)
    for i in range(n):
        if x[i] > 1.0:
            t[i * 7 % n] += x[i]
        if z[i] > 1.0:
            u[i * 3 % n] += z[i]
    s = 0.0
    for j in range(n):
        s += t[j] + u[j]
    return s

@schedule(f)
def lanes(s):
    s.vectorize(\"j\")
";
    let program = Program::from_source("bytemaps.ft", text).unwrap_or_else(|e| panic!("{e}"));
    for n in [0_usize, 1, 9, 1000] {
        let numbers = |by: usize| Buffer::F64((0..n).map(|k| (k * by % 4) as f64).collect());
        let sum = |by: usize| (0..n).map(|k| (k * by % 4) as f64).filter(|v| *v > 1.0).sum::<f64>();
        for schedule in ["auto", "none", "lanes"] {
            let f = program.compile("f", &Options::default().schedule(schedule)).unwrap_or_else(|e| panic!("{e}"));
            let inputs = [5, 3].map(|by| Value::new(vec![n], numbers(by)).expect("as many numbers"));
            let out = f.run(inputs.to_vec(), &[n as i64], 1).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(out.results[0].numbers(), [sum(5) + sum(3)], "{schedule}, {n}");
        }
    }
}
