//! Dense Jacobians: rows match reverse mode with unit seeds, columns match difference quotients; the interpreter and
//! compiled C agree, and printing preserves the program.

use crate::programs::root;
use itertools::Itertools as _;
use taffeta::{Backend, Options, Program};
use taffeta_ast::{Buffer, DType, Value};

fn value(dtype: DType, shape: &[usize], data: &[f64]) -> Value {
    let data = match dtype {
        DType::F32 => Buffer::F32(data.iter().map(|v| *v as f32).collect()),
        _ => Buffer::F64(data.to_vec()),
    };
    Value::new(shape.to_vec(), data).expect("as many numbers as the shape has")
}

/// Runs an entry; returns all results.
fn run(program: &Program, entry: &str, backend: Backend, params: Vec<Value>, sizes: &[i64]) -> Vec<Value> {
    let options = Options::default().optimize(false).backend(backend);
    let function = program.compile(entry, &options).unwrap_or_else(|e| panic!("{entry}: {e}"));
    function.run(params, sizes, 1).unwrap_or_else(|e| panic!("{entry}: {e}")).results
}

fn assert_near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    // Differentiated values are of about the size 1, and so are the errors of quotients by cancellation.
    let largest = expected.iter().fold(1.0f64, |a, b| a.max(b.abs()));
    for (k, (a, b)) in found.iter().zip_eq(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * largest, "{what}, number {k}: {a} and {b}");
    }
}

/// Checks `J = jacobian(f, wrt=…, out=…)` of a program that also has `V = vjp(f, wrt=…, out=…)` with the seed last.
/// `wrt` holds the positions of parameters, `out` that of the result of `f`.
fn check(text: &str, (wrt, out): (&[usize], usize), params: &[Value], sizes: &[i64]) {
    let program = Program::from_source("jacobian.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let single = params.iter().any(|v| v.dtype() == DType::F32);
    let dtype = if single { DType::F32 } else { DType::F64 };
    let found = run(&program, "J", Backend::C, params.to_vec(), sizes);
    let interpreted = run(&program, "J", Backend::Interp, params.to_vec(), sizes);
    let printed =
        taffeta_ast::print::func(&program.logical("J", &Options::default()).unwrap_or_else(|e| panic!("{e}")));
    let again = Program::from_source("printed.ft", &printed).unwrap_or_else(|e| panic!("{printed}\n{e}"));
    let reread = run(&again, "J", Backend::C, params.to_vec(), sizes);
    for ((a, b), c) in found.iter().zip_eq(&interpreted).zip_eq(&reread) {
        assert_eq!(a.shape(), b.shape());
        assert_near("interpreter and C", &a.numbers(), &b.numbers(), if single { 1e-5 } else { 1e-12 });
        assert_eq!((a.shape(), a.numbers()), (c.shape(), c.numbers()), "printed and read again:\n{printed}");
    }
    assert_eq!(found.len(), wrt.len());
    let f = |params: Vec<Value>| run(&program, "f", Backend::C, params, sizes).swap_remove(out);
    let y = f(params.to_vec());
    let columns: Vec<usize> = wrt.iter().map(|k| params[*k].data().len()).collect();
    for (j, (k, n)) in found.iter().zip_eq(wrt.iter().zip_eq(&columns)) {
        let shape: Vec<usize> = y.shape().iter().chain(params[*k].shape()).copied().collect();
        assert_eq!(j.shape(), shape, "the result's dimensions, then the input's");
        assert_eq!(j.dtype(), y.dtype());
        for column in 0..*n {
            let step = if single { 1e-2 } else { 1e-4 };
            let at = |steps: f64| {
                let mut x = params[*k].numbers();
                x[column] += steps * step;
                let mut moved = params.to_vec();
                moved[*k] = value(dtype, params[*k].shape(), &x);
                f(moved).numbers()
            };
            let (a, b, c, d) = (at(-2.0), at(-1.0), at(1.0), at(2.0));
            let quotients: Vec<f64> =
                (0..a.len()).map(|i| (a[i] - 8.0 * b[i] + 8.0 * c[i] - d[i]) / (12.0 * step)).collect();
            let found: Vec<f64> = j.numbers().into_iter().skip(column).step_by(*n).collect();
            assert_near("difference quotients", &found, &quotients, if single { 1e-3 } else { 1e-8 });
        }
    }
    for row in 0..y.data().len() {
        let mut seed = vec![0.0; y.data().len()];
        seed[row] = 1.0;
        let seeded = params.iter().cloned().chain([value(y.dtype(), y.shape(), &seed)]).collect();
        let rows = run(&program, "V", Backend::C, seeded, sizes);
        for (j, (reverse, n)) in found.iter().zip_eq(rows.iter().zip_eq(&columns)) {
            let forward = &j.numbers()[row * n..][..*n];
            assert_near("a row by reverse mode", forward, &reverse.numbers(), if single { 1e-5 } else { 1e-12 });
        }
    }
}

const NETWORK: &str = "
def f(x: f64[n], A: f64[m, n], k: f64, shift: i32) -> (f64[m, 2], f64):
    y = zeros((m, 2), f64)
    norm: f64 = 0.0
    for i in range(m):
        t: f64 = 0.0
        for j in range(n):
            t += A[i, j] * sin(k * x[(j + shift) % n])
        y[i, 0] = exp(t) if t < 1.0 else 1.0 + t
        y[i, 1] = t * t
        norm += t * t
    return y, sqrt(norm + 1.0)

J = jacobian(f, wrt=[\"x\", \"A\", \"k\"], out=\"y\")
V = vjp(f, wrt=[\"x\", \"A\", \"k\"], out=\"y\")
";

fn network(dtype: DType, n: usize, m: usize) -> Vec<Value> {
    let some = |count: usize, by: f64| (0..count).map(|k| (by * (k + 1) as f64).sin()).collect::<Vec<f64>>();
    vec![
        value(dtype, &[n], &some(n, 0.7)),
        value(dtype, &[m, n], &some(n * m, 1.3)),
        value(dtype, &[], &[0.8]),
        Value::new(vec![], Buffer::I32(vec![2])).expect("one number"),
    ]
}

#[test]
fn rows_agree_with_gradients_and_columns_with_differences() {
    for (n, m) in [(4, 3), (1, 1), (5, 1), (0, 2), (3, 0), (0, 0)] {
        check(NETWORK, (&[0, 1, 2], 0), &network(DType::F64, n, m), &[n as i64, m as i64]);
    }
    let single = NETWORK.replace("f64", "f32");
    for (n, m) in [(4, 3), (0, 2)] {
        check(&single, (&[0, 1, 2], 0), &network(DType::F32, n, m), &[n as i64, m as i64]);
    }
}

#[test]
fn jacobians_of_scalars_have_one_row() {
    let text = NETWORK.replace("out=\"y\"", "out=\"out1\"");
    check(&text, (&[0, 1, 2], 1), &network(DType::F64, 4, 3), &[4, 3]);
}

/// Checks a loop that carries values, and an input that the result does not depend on.
#[test]
fn unused_inputs_have_zeros() {
    let text = "
def f(x: f64[n], unused: f64[2]) -> f64[n]:
    y = zeros((n,), f64)
    state: f64 = 1.0
    for i in range(n):
        state = state * cos(x[i]) + x[n - 1 - i]
        y[i] = state
    return y

J = jacobian(f)
V = vjp(f)
";
    let params = [value(DType::F64, &[3], &[0.3, -1.2, 2.0]), value(DType::F64, &[2], &[1.0, 2.0])];
    check(text, (&[0, 1], 0), &params, &[3]);
}

/// Checks that a Jacobian is inlined where it is called, and that functions of it are differentiated.
#[test]
fn jacobians_are_inlined_and_differentiated() {
    let text = "
def f(x: f64[n]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        y[i] = x[i] ** 3 + x[0] * x[i]
    return y

def trace(x: f64[n]) -> f64:
    D = jacobian(f)(x)
    s: f64 = 0.0
    for i in range(n):
        s += D[i, i]
    return s

dtrace = grad(trace)
";
    let program = Program::from_source("trace.ft", text).unwrap_or_else(|e| panic!("{e}"));
    let x = value(DType::F64, &[3], &[0.5, -1.0, 2.0]);
    for backend in [Backend::C, Backend::Interp] {
        // The derivative of y[i] by x[i] is 3 x[i]^2 + x[0], and of y[0] by x[0] 3 x[0]^2 + 2 x[0].
        let found = run(&program, "trace", backend, vec![x.clone()], &[3]);
        assert_near("trace", &found[0].numbers(), &[0.75 + 1.0 + 3.0 + 0.5 + 12.0 + 0.5], 1e-14);
        let found = run(&program, "dtrace", backend, vec![x.clone()], &[3]);
        assert_near("its gradient", &found[0].numbers(), &[3.0 + 4.0, -6.0, 12.0], 1e-14);
    }
}

#[test]
fn jacobian_of_bundle_adjustment() {
    let text = std::fs::read_to_string(root().join("examples/adbench/ba.ft")).expect("it is there");
    // The file has a function named `jacobian` of its own.
    let (before, _) = text.split_once("\npull = ").expect("a gradient");
    let of = "wrt=[\"cam\", \"point\", \"weight\"]";
    let text = format!("{before}\nJ = jacobian(f, {of})\nV = vjp(f, {of})\n").replace("reprojection", "f");
    let cam = [0.01, -0.2, 0.3, 0.5, -0.7, 1.1, 1.5, 0.01, -0.02, 0.05, -0.001];
    let turned = |axis: [f64; 3]| [&axis[..], &cam[3..]].concat();
    for cam in [cam.to_vec(), turned([0.0; 3])] {
        let params = [
            value(DType::F64, &[11], &cam),
            value(DType::F64, &[3], &[0.3, -0.4, 2.5]),
            value(DType::F64, &[], &[0.9]),
            value(DType::F64, &[2], &[0.1, 0.2]),
        ];
        check(&text, (&[0, 1, 2], 0), &params, &[]);
    }
}

#[test]
fn functions_without_jacobians_are_refused() {
    let refused = |text: &str| match Program::from_source("refused.ft", text)
        .and_then(|p| p.compile("J", &Options::default()).map(|_| ()))
    {
        Ok(()) => panic!("it is not refused"),
        Err(e) => e.to_string(),
    };
    let one = "def f(x: f64[n], k: i32) -> (f64[n], f64, i32):\n    y = 2.0 * x\n    return y, sum(x), k\n\n";
    for (call, expected) in [
        ("jacobian(f)", "`jacobian` needs one floating-point result, but `f` has"),
        ("jacobian(f, out=[\"y\", \"out1\"])", "`jacobian` needs one floating-point result"),
        ("jacobian(f, out=\"k\")", "`k` has type i32, which carries no derivative"),
        ("jacobian(f, out=\"z\")", "`f` has no result `z`"),
        ("jacobian(f, wrt=\"k\", out=\"y\")", "`k` has type i32, which carries no derivative"),
        ("jacobian(f, wrt=\"z\", out=\"y\")", "`f` has no parameter `z`"),
        ("jacobian(f, tape=\"all\")", "`jacobian` takes a function, `wrt=[…]` and `out=`"),
    ] {
        let found = refused(&format!("{one}J = {call}\n"));
        assert!(found.contains(expected), "{call}: {found}");
        assert_eq!(found.matches('×').count().max(1), 1, "{call}: one mistake, one report: {found}");
    }
    let written = "def f(x: inout[f64[n]]) -> f64:\n    x[...] = 2.0 * x\n    return sum(x)\n\nJ = jacobian(f)\n";
    assert!(refused(written).contains("which writes its parameter `x`"), "{}", refused(written));
    let whole = "def f(k: i32) -> f64:\n    return 2.0 * k\n\nJ = jacobian(f)\n";
    assert!(refused(whole).contains("`f` has no floating-point parameters"), "{}", refused(whole));
}
