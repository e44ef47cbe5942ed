//! Arrays in vector registers and sums over lanes: the interpreter's results with vectors of every width.

use crate::compiled::run::{check_sizes, compile_with};
use crate::compiled::scheduled::{check_with, text};
use itertools::Itertools as _;
use taffeta_ast::{Buffer, Func, Value};
use taffeta_codegen::LowerOptions;
use taffeta_codegen::call::Context;
use taffeta_codegen::toolchain::CompileOptions;
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
use taffeta_schedule::Arg;

/// Returns the C for vectors of 16, 32 and 64 bytes, each compared with the interpreter.
fn check(program: &str, steps: &[(&str, &[Arg])]) -> [String; 3] {
    [16, 32, 64]
        .map(|vector_bytes| check_with(program, steps, &LowerOptions { vector_bytes, ..LowerOptions::default() }))
}

fn int(value: i64) -> Arg {
    Arg::from(value)
}

const MATMUL: &str = "
def matmul(a: f32[n, m], b: f32[m, p]) -> f32[n, p]:
    c = zeros((n, p), f32)
    for i in range(n):
        for j in range(p):
            for k in range(m):
                c[i, j] += a[i, k] * b[k, j]
    return c
";

#[test]
fn blocks_of_products_are_summed_in_registers() {
    let codes = check(
        MATMUL,
        &[
            ("split", &[text("i"), int(4)]),
            ("split", &[text("j"), int(16)]),
            ("reorder", &[Arg::from(vec!["i~o", "j~o", "k", "i~i", "j~i"])]),
            ("cache_reduction", &[text("k"), text("c")]),
            ("vectorize", &[text("j~i")]),
            ("unroll", &[text("i~i")]),
            ("separate_tail", &[text("j~o")]),
            ("separate_tail", &[text("i~o")]),
        ],
    );
    for (code, count) in codes.iter().zip_eq([16, 8, 4]) {
        assert!(code.contains(&format!(" c_partial[{count}];")), "{code}");
        assert!(code.contains("c_partial[3] += a["), "{code}");
        // The parts with guards, in which lanes differ, are beside it.
        assert!(code.contains("TAFFETA_ALIGNED float c_partial_2[64];"), "{code}");
    }
}

#[test]
fn lanes_compute_loads_constants_and_arithmetic() {
    let program = "
def f(a: f64[n, 16], s: f64[n], y: inout[f64[n, 16]]):
    for i in range(n):
        t = empty((16,), f64)
        for j in range(16):
            t[j] = s[i] / 2.0
        for j in range(16):
            t[j] += -(a[i, j] - s[i]) * a[i, 15 - j] if False else (1.0 - a[i, j]) * s[i] / 4.0
        if s[i] > 0.0:
            for j in range(16):
                t[j] *= 2.0 - a[i, j]
        for j in range(16):
            y[i, j] += t[j] * 3.0 + a[i, j]
";
    for (code, count) in check(program, &[]).iter().zip_eq([8, 4, 2]) {
        assert!(code.contains(&format!(" t[{count}];")), "{code}");
    }
}

#[test]
fn other_accesses_keep_an_array_in_memory() {
    for other in
        ["t[k[i] % 16] = 1.0", "total += t[3]", "for j in range(15):\n            t[j] = 0.0", "t[15 - i % 16] = 2.0"]
    {
        let program = format!(
            "
def f(a: f32[n, 16], k: i32[n], y: inout[f32[n, 16]]) -> f32:
    total: f32 = 0.0
    for i in range(n):
        t = empty((16,), f32)
        for j in range(16):
            t[j] = a[i, j]
        {other}
        for j in range(16):
            y[i, j] += t[j]
    return total
"
        );
        for code in check(&program, &[]) {
            assert!(code.contains("float t[16];"), "{other}: {code}");
        }
    }
    // Lanes that read elements written by others.
    let shifted = "
def f(a: f32[n, 17], y: inout[f32[n, 17]]):
    for i in range(n):
        t = empty((16,), f32)
        for j in range(16):
            t[j] = a[i, j]
        for j in range(16):
            y[i, j + 1] = y[i, j] + t[j]
";
    for code in check(shifted, &[]) {
        assert!(code.contains("float t[16];"), "{code}");
    }
}

#[test]
fn vectors_reduce_into_copies_of_threads() {
    let program = "
def f(a: f32[n, 32], y: inout[f32[32]]):
    for i in range(n):
        t = empty((32,), f32)
        for j in range(32):
            t[j] = a[i, j] * 2.0
        for j in range(32):
            y[j] += t[j]
";
    for code in check(program, &[("parallelize", &[text("i")])]) {
        assert!(code.contains("_at *)&y_own[0] += t[0];"), "{code}");
    }
}

#[test]
fn sums_are_vectors_of_partial_sums() {
    let program = "
def f(x: f32[n, m], w: f32[m], z: f64[n, m]) -> (f32[n], f64[n]):
    y = zeros((n,), f32)
    v = zeros((n,), f64)
    for i in range(n):
        s: f32 = 0.0
        t: f64 = 1.0
        for k in range(m):
            s += x[i, k] * w[k] - 1.0
            t += z[i, k] / 2.0 * cast(x[i, k], f64)
        y[i] = s
        v[i] = t
    return y, v
";
    for (code, lanes) in check(program, &[("vectorize", &[text("k")])]).iter().zip_eq([4, 8, 16]) {
        assert!(code.contains(&format!("k + {} <= m; k += {}", 4 * lanes, 4 * lanes)), "{code}");
        assert!(code.contains(&format!("s += taf_sum_f32x{lanes}(")), "{code}");
        // Vectors of 8 bytes are not used: gcc would pass them through memory.
        let four = if lanes == 4 { "v" } else { "v4" };
        assert!(code.contains(&format!("taf_f32x4 v2 = {four} + ")), "{code}");
        assert!(code.contains(&format!("t += taf_sum_f64x{}(", lanes / 2)), "{code}");
        assert!(code.contains("__builtin_convertvector(*(const taf_f32x"), "{code}");
    }
}

/// Checks that the second lane of `x[j - 1]` is `x[j]`, and not `x[j + 1]`.
#[test]
fn lanes_gather_consecutive_rows() {
    let program = "
def f(x: f64[m, 3], w: f64[m], y: inout[f64[3]]):
    for c in range(3):
        s: f64 = 0.0
        for j in range(1, m):
            s += w[j] * x[j - 1, c]
        y[c] += s
";
    for code in check(program, &[("vectorize", &[text("j")])]) {
        assert!(code.contains("{x[(j - 1) * 3 + c], x[j * 3 + c]"), "{code}");
    }
}

/// Checks that four sums share the instructions that add up lanes.
#[test]
fn four_sums_share_their_horizontal_additions() {
    let program = |of_type: &str, length: &str| {
        format!(
            "
def f(q: {of_type}[4, {length}], x: {of_type}[n, {length}], y: inout[{of_type}[n, 4]]):
    for i in range(n):
        for j in range(4):
            s: {of_type} = 0.0
            for k in range({length}):
                s += q[j, k] * x[i, k]
            y[i, j] = s
"
        )
    };
    for (of_type, narrow) in [("f32", 4), ("f64", 2)] {
        for length in ["m", "64", "37"] {
            let steps: [(&str, &[Arg]); 2] = [("blend", &[text("j")]), ("vectorize", &[text("k")])];
            for (code, wide) in check(&program(of_type, length), &steps).iter().zip_eq([1, 2, 4]) {
                let lanes = narrow * wide;
                let sums = match lanes {
                    2 => format!("s += taf_sum_{of_type}x2(s_lanes[0]);"),
                    _ => format!("= taf_sum4_{of_type}x{lanes}(s_lanes[0], s_2_lanes[0], s_3_lanes[0], s_4_lanes[0]);"),
                };
                assert!(code.contains(&sums), "{code}");
            }
        }
    }
}

fn program(text: &str) -> Func {
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    let name = program.entries()[0].name.clone();
    program.elaborate(&name, &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"))
}

fn floats(values: Vec<f64>) -> Value {
    Value::new(vec![values.len()], Buffer::F64(values)).expect("as many values as the shape says")
}

/// Checks that a sum of nothing, or of -0, into -0 stays -0, and that NaN and infinities propagate.
#[test]
fn sums_over_lanes_keep_special_values() {
    let func = program(
        "
def f(x: f64[n]) -> f64:
    s: f64 = -0.0
    for k in range(n):
        s += x[k]
    return s
",
    );
    let mut s = taffeta_schedule::Schedule::new(func);
    s.call("vectorize", &[text("k")]).expect("sums can be vectorised");
    let func = s.into_func();
    for n in [0, 1, 8, 31, 32, 40, 70] {
        let zeros = floats(vec![-0.0; n]);
        let sum = check_sizes(&func, std::slice::from_ref(&zeros), &[]).expect("it runs").remove(0);
        assert!(sum.data().get_f64(0).is_sign_negative(), "{n}");
        for special in [f64::NAN, f64::INFINITY] {
            // In the first vector and in the last one, in the remainder, and at the ends of these.
            for at in [0, 5, 31, 33, n.saturating_sub(1)].into_iter().filter(|at| *at < n) {
                let mut all = vec![1.0; n];
                all[at] = special;
                let x = floats(all);
                check_sizes(&func, &[x], &[]).expect("it runs");
            }
        }
    }
}

/// Checks compilation with contraction (fused multiply-add), as programs are compiled by default.
#[test]
fn the_default_flags_compile_vectors() {
    let mut s = taffeta_schedule::Schedule::new(program(MATMUL));
    s.call("split", &[text("j"), int(16)]).expect("a split");
    s.call("reorder", &[Arg::from(vec!["k", "j~i"])]).expect("an exchange");
    s.call("vectorize", &[text("j~i")]).expect("lanes");
    compile_with(&s.into_func(), &LowerOptions::default(), &CompileOptions::default());
}

/// Checks the built-in vector exponential of f32 against the interpreter over its whole range and beyond.
#[test]
fn vector_exponentials_agree_with_the_interpreter() {
    let mut s = taffeta_schedule::Schedule::new(program(
        "
def f(x: f32[n]) -> (f32[n], f32[n]):
    y = empty((n,), f32)
    z = empty((n,), f32)
    for k in range(n):
        y[k] = exp(x[k])
        z[k] = sigmoid(min(max(x[k], -50.0), 50.0))
    return y, z
",
    ));
    s.call("vectorize", &[text("k")]).expect("lanes");
    let compiled = compile_with(&s.func().clone(), &LowerOptions::default(), &CompileOptions::default());
    let mut all: Vec<f32> = (-110_000..95_000).step_by(7).map(|k| k as f32 * 1e-3).collect();
    all.extend([
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
        88.7228,
        88.73,
        -103.98,
        -104.0,
    ]);
    let mut given = vec![Value::new(vec![all.len()], Buffer::F32(all.clone())).expect("as many as the shape says")];
    let (results, _) = compiled.call_values(&mut Context::new(1), &mut given, &[]).expect("it runs");
    for (k, x) in all.iter().enumerate() {
        let (have, want) = (results[0].data().get_f64(k) as f32, f64::from(*x).exp() as f32);
        // Subnormals are rounded by up to half of the smallest one.
        let near = (f64::from(have) - f64::from(want)).abs() <= 2e-7 * f64::from(want) + 2e-45;
        assert!(have == want || near || (have.is_nan() && want.is_nan()), "exp({x}): expected {want}, found {have}");
        let clamped = if x.is_nan() { f64::NAN } else { f64::from(*x).clamp(-50.0, 50.0) };
        let (have, want) = (results[1].data().get_f64(k), 1.0 / (1.0 + (-clamped).exp()));
        assert!(
            (have - want).abs() <= 4e-7 * want || (have.is_nan() && want.is_nan()),
            "sigmoid({x}): expected {want}, found {have}"
        );
    }
}

/// Checks that lane-invariant values, selects included, are computed before the loop, and that conjunctions are
/// evaluated at once.
#[test]
fn invariant_values_are_computed_before_the_loop() {
    let program = "
def f(p: f32[n, 2], x: f32[16], y: inout[f32[n, 16]]):
    for i in range(n):
        for j in range(16):
            d = p[i, 1] - p[i, 0]
            t = x[j] * (1.0 / max(d * d, 0.25))
            y[i, j] = t if t > 0.0 and d > 0.0 and t < 3.0 else d
";
    for code in check(program, &[("vectorize", &[text("j")])]) {
        let before = code.split("#pragma omp simd").next().expect("a loop");
        assert!(before.contains("float d = p[") && before.contains("taf_max_f32(0.25f, d * d)"), "{code}");
        assert!(code.contains("& (d > 0.0f)"), "{code}");
    }
}

#[test]
fn stores_beside_sums_are_vectorised() {
    let program = "
def f(x: f32[n, m], w: f32[n], z: f64[m], g: inout[f32[n, m]], p: inout[f64[m]]) -> f32[n]:
    y = zeros((n,), f32)
    q = zeros((n, m), f32)
    for i in range(n):
        s: f32 = 0.0
        for k in range(m):
            q[i, k] = x[i, k] - w[i]
            s += x[i, k] * q[i, k]
            g[i, k] += x[i, k] * w[i]
            p[k] *= z[k] * 0.5
        y[i] = s + q[i, m // 2]
    return y
";
    for (code, lanes) in check(program, &[("vectorize", &[text("k")])]).iter().zip_eq([4, 8, 16]) {
        assert!(code.contains(&format!("k + {} <= m; k += {}", 4 * lanes, 4 * lanes)), "{code}");
        assert!(code.contains(&format!("s += taf_sum_f32x{lanes}(")), "{code}");
        assert!(code.contains(&format!("*(taf_f32x{lanes}_at *)&g[")), "{code}");
        assert!(!code.contains("omp simd"), "{code}");
    }
    // Each thread has its own copy of the target.
    let shared = "
def f(x: f32[n, m], w: f32[n], g: inout[f32[m]]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        s: f32 = 0.0
        for k in range(m):
            s += x[i, k] * w[i]
            g[k] += x[i, k] * w[i]
        y[i] = s
    return y
";
    for code in check(shared, &[("vectorize", &[text("k")]), ("parallelize", &[text("i")])]) {
        assert!(code.contains("_at *)&g_own[k_2] += "), "{code}");
    }
}

#[test]
fn other_stores_are_left_to_the_compiler() {
    for store in ["q[2 * k] = x[k]", "q[k] = abs(x[k])", "q[k] = cast(k, f32)", "q[k] = x[k] if x[k] > 0.0 else 1.0"] {
        let program = format!(
            "
def f(x: f32[n], q: inout[f32[2 * n]]) -> f32:
    s: f32 = 0.0
    for k in range(n):
        s += x[k]
        {store}
    return s
"
        );
        for code in check(&program, &[("vectorize", &[text("k")])]) {
            assert!(!code.contains("s_lanes"), "{store}: {code}");
        }
    }
}
