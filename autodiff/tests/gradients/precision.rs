//! Accumulation types of derivatives.

use crate::check::{derivative, program};
use expect_test::{Expect, expect};
use itertools::Itertools as _;
use taffeta_ast::interp::{Inputs, run};
use taffeta_ast::{Buffer, DType, Func, StmtKind, Value};
use taffeta_autodiff::{Kind, Tape, memory};

/// Checks the types of the tensors that accumulate derivatives, by name.
#[track_caller]
fn check(text: &str, kind: Kind, expect: Expect) {
    let func = derivative(&program(text), kind, Tape::All);
    let mut found: Vec<String> = func
        .results
        .iter()
        .chain(func.params.iter().map(|p| &p.tensor))
        .map(|t| format!("{}: {}\n", t.symbol, t.dtype))
        .collect();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            found.push(format!("{}: {}\n", tensor.symbol, tensor.dtype));
        }
    });
    let derived = |t: &String| t.contains(".grad") || t.contains(".tangent");
    expect.assert_eq(&found.into_iter().filter(derived).join(""));
}

const SHIFTED: &str = "def f(x: f32[n], c: f32) -> f32:
    s: f64 = 0.0
    for i in range(n):
        s += x[i] + c
    return s / n
";

#[test]
fn adjoints_of_scalars_in_loops_accumulate_in_f64() {
    check(
        SHIFTED,
        Kind::Grad,
        expect![[r#"
        x.grad: f32
        c.grad: f32
        out.grad: f32
        c.grad.sum: f64
        s.grad: f64
    "#]],
    );
}

#[test]
fn short_loops_and_overwritten_elements_accumulate_in_their_own_type() {
    let text = "def f(x: f32[n], c: f32) -> f32[n]:
    y = empty((n,), f32)
    for i in range(n):
        t = x[i] * x[i]
        for k in range(3):
            y[i] += t * t
    for k in range(8):
        y[k] *= c
    return y
";
    check(
        text,
        Kind::Vjp,
        expect![[r#"
        x.grad: f32
        c.grad: f32
        y.grad: f32
        y.grad: f32
        t.grad: f32
    "#]],
    );
}

#[test]
fn added_vectors_accumulate_in_f64_and_products_do_not() {
    let text = "def f(x: f32[n, d], W: f32[d, k], b: f32[k], g: f32[d]) -> f32[n, k]:
    y = empty((n, k), f32)
    for i in range(n):
        for j in range(k):
            y[i, j] = b[j]
        for l in range(d):
            for j in range(k):
                y[i, j] += x[i, l] * g[l] * W[l, j]
    return y
";
    check(
        text,
        Kind::Vjp,
        expect![[r#"
        x.grad: f32
        W.grad: f32
        b.grad: f32
        g.grad: f32
        y.grad: f32
        b.grad.sum: f64
        y.part.grad: f32
    "#]],
    );
}

#[test]
fn gathered_elements_accumulate_in_their_own_type() {
    let text = "def f(table: f32[m, d], k: i32[n]) -> f32[n, d]:
    y = empty((n, d), f32)
    for i in range(n):
        for j in range(d):
            y[i, j] = table[k[i], j]
    return y
";
    check(
        text,
        Kind::Vjp,
        expect![[r#"
        table.grad: f32
        y.grad: f32
    "#]],
    );
}

#[test]
fn adjoints_of_halves_accumulate_in_f32() {
    let text = "def f(x: bf16[n, d], W: f16[d], z: inout[f16[n]]) -> (f16[n], f16):
    y = empty((n,), f16)
    s: f32 = 0.0
    for i in range(n):
        y[i] = 0.0
        for j in range(d):
            y[i] += cast(x[i, j], f16) * W[j]
        z[i] = z[i] * y[i]
        s += y[i]
    return y, s
";
    check(
        text,
        Kind::Vjp,
        expect![[r#"
        x.grad: bf16
        W.grad: f16
        y.grad: f16
        s.grad: f16
        z.grad: f16
        W.grad.sum: f32
        z.grad.sum: f32
        y.grad.sum: f32
        s.grad: f32
    "#]],
    );
    check(
        text,
        Kind::Jvp,
        expect![[r#"
        y.tangent: f16
        s.tangent: f16
        x.tangent: bf16
        W.tangent: f16
        z.tangent: f16
        z.tangent.sum: f32
        y.tangent.sum: f32
        s.tangent: f32
    "#]],
    );
}

/// Checks that sums of 16-bit floats are exact to the last digit, forward and backward.
#[test]
fn sums_of_halves_are_rounded_once() {
    let text = "def f(x: bf16[n], c: f16, k: i32[n], e: f16[2]) -> (bf16, f32):
    s: bf16 = 0.0
    t: f32 = 0.0
    for i in range(n):
        s += x[i]
        t += c + e[k[i]]
    return s, t
";
    let func = program(text);
    let n = 4096;
    let ones = |dtype: DType, shape: Vec<usize>| {
        let one = Value::zeros(dtype, shape.clone()).expect("small");
        one.with_numbers(vec![1.0; shape.iter().product()]).expect("as many")
    };
    let k = Value::new(vec![n], Buffer::I32(vec![1; n])).expect("as many");
    let x = [ones(DType::Bf16, vec![n]), ones(DType::F16, vec![]), k, ones(DType::F16, vec![2])];
    let numbers = |func: &Func, more: &[Value]| -> Vec<Vec<f64>> {
        let params = x.iter().chain(more).cloned().collect();
        let sizes = [("n".to_string(), n as i64)].into_iter().collect();
        let out = run(func, &Inputs { params, sizes }).unwrap_or_else(|e| panic!("{e:?}"));
        out.results.iter().map(Value::numbers).collect()
    };
    // The program's own sum stops at 256.
    assert_eq!(numbers(&func, &[])[0], [256.0]);
    let jvp = derivative(&func, Kind::Jvp, Tape::Auto);
    let tangents = numbers(&jvp, &[ones(DType::Bf16, vec![n]), ones(DType::F16, vec![]), ones(DType::F16, vec![2])]);
    assert_eq!(tangents, [[4096.0], [8192.0]]);
    let vjp = derivative(&func, Kind::Vjp, Tape::Auto);
    let found = numbers(&vjp, &[ones(DType::Bf16, vec![]), ones(DType::F32, vec![])]);
    assert_eq!(found, [vec![1.0; n], vec![4096.0], vec![0.0, 4096.0]]);
}

#[test]
fn budgets_count_wider_accumulators() {
    let text = "def f(x: TYPE[n], y: TYPE[n]) -> TYPE:
    s: f64 = 0.0
    for i in range(n):
        s += x[i] * y[i]
        s += x[n - 1 - i]
    return s
";
    let peak = |dtype: &str| {
        let func = derivative(&program(&text.replace("TYPE", dtype)), Kind::Grad, Tape::Auto);
        memory::peak(&func, &[("n".to_string(), 100)].into_iter().collect()).expect("the size is known")
    };
    // `x.grad` has two contributions to an element, `y.grad` one.
    assert_eq!([peak("f64"), peak("f32"), peak("bf16")], [0, 0, 400]);
}
