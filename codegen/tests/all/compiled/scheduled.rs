//! Programs under schedules in C, on 1, 2 and 4 threads, against the interpreter without a schedule.

#![allow(unsafe_code)] // `Compiled::load` runs the compiled code

use crate::compiled::run::{assert_same, compile_with, scratch_dir};
use itertools::Itertools as _;
use std::collections::BTreeMap;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Buffer, DType, Expr, ExprKind, Func, Literal, Value};
use taffeta_codegen::call::Context;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{LowerOptions, c, lower};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
use taffeta_schedule::{Arg, Schedule};

/// Returns the first entry of a program, before and after a schedule.
pub fn scheduled(text: &str, steps: &[(&str, &[Arg])]) -> (Func, Func, Program) {
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    assert!(!program.entries().is_empty(), "{:?}", program.check(&NoHooks));
    let name = program.entries()[0].name.clone();
    let func = program.elaborate(&name, &BTreeMap::new(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
    let mut s = Schedule::new(func.clone());
    for (method, args) in steps {
        s.call(method, args).unwrap_or_else(|r| panic!("{method} is refused: {r:?}"));
    }
    (func, s.into_func(), program)
}

/// Runs a program under a schedule at several sizes and numbers of threads, and returns its C. Inputs are small
/// integers, so that sums are exact in any order.
pub fn check(text: &str, steps: &[(&str, &[Arg])]) -> String {
    check_with(text, steps, &LowerOptions::default())
}

pub fn check_with(text: &str, steps: &[(&str, &[Arg])], options: &LowerOptions) -> String {
    let (func, after, program) = scheduled(text, steps);
    compare(&func, &after, &program, options)
}

/// Compares a transformed program in C with the original in the interpreter, and returns the C.
pub fn compare(func: &Func, after: &Func, program: &Program, options: &LowerOptions) -> String {
    let lowered = lower(after, options).unwrap_or_else(|d| panic!("{d}"));
    let source = c::emit(&lowered, program.sources());
    let dir = scratch_dir();
    Toolchain::write(&source, &dir, "program").expect("the directory can be written");
    // Loops with lanes are optimised as users' are, for this machine's vectors.
    let usual = options.vector_bytes == LowerOptions::default().vector_bytes;
    let optimize = usual && source.code.contains("#pragma omp simd");
    let flags = CompileOptions { contract: false, optimize, ..CompileOptions::default() };
    let compiler = Toolchain::find().expect("a C compiler");
    let runtime = testkit::batch::runtime(&source, &compiler, &flags);
    let library =
        compiler.shared(&dir, "program", &flags, &runtime).unwrap_or_else(|d| panic!("{d:?}\n{}", source.code));
    // SAFETY: the library was just built from this C, in a directory of this test.
    let compiled = unsafe { taffeta_codegen::Compiled::load(&library, source.signature) }.expect("it can be loaded");
    for (seed, size) in [0, 1, 2, 3, 7, 33, 100].into_iter().enumerate() {
        let sizes: BTreeMap<String, i64> = func
            .sizes
            .iter()
            .enumerate()
            .map(|(k, s)| (s.name().to_string(), size + (k as i64 % 3) * size.min(1)))
            .collect();
        let params = inputs(func, &sizes, seed as u64);
        let expected = interp::run(func, &Inputs { sizes: sizes.clone(), params: params.clone() });
        for threads in [1, 2, 4] {
            let mut given = params.clone();
            let named: Vec<(&str, i64)> = sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
            let got = compiled.call_values(&mut Context::new(threads), &mut given, &named);
            match (&expected, got) {
                (Ok(want), Ok((results, _))) => {
                    want.results.iter().zip_eq(&results).for_each(|(want, have)| assert_same(want, have, &[]));
                    want.params.iter().zip_eq(&given).for_each(|(want, have)| assert_same(want, have, &[]));
                }
                (Err(want), Err(have)) => assert_eq!(want.kind.code(), have.kind.code()),
                (want, have) => {
                    panic!("{sizes:?}, {threads} threads: expected {want:?}, found {have:?}\n{}", source.code)
                }
            }
        }
    }
    source.code
}

/// Generates small integers of every type, in range as indices.
fn inputs(func: &Func, sizes: &BTreeMap<String, i64>, seed: u64) -> Vec<Value> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let least = sizes.values().copied().filter(|v| *v > 0).min().unwrap_or(1) as u64;
    let size = |e: &Expr| {
        let known = e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(s) => sizes.get(s.name()).map_or(e.clone(), |v| Expr::int(*v)),
            _ => e,
        });
        known.as_int().expect("a shape of sizes").max(0) as usize
    };
    let params = func.params.iter().map(|p| {
        let mut v = Value::zeros(p.tensor.dtype, p.tensor.shape.iter().map(size).collect()).expect("small");
        for k in 0..v.data().len() {
            let r = next();
            let x = match p.tensor.dtype {
                DType::Bool => Literal::Bool(r % 5 != 0),
                t if t.is_int() => Literal::Int(i128::from(r % least)),
                _ => Literal::Float((r % 9) as f64 - 4.0),
            };
            v.data_mut().set(k, x);
        }
        v
    });
    params.collect()
}

pub fn text(value: &str) -> Arg {
    Arg::from(value)
}

#[test]
fn scalars_have_partial_results() {
    let program = "
def f(x: f32[n], y: inout[f32], z: inout[f64]) -> i32:
    total: f32 = 1
    count: i32 = 0
    for i in range(n):
        total += x[i]
        y[...] = max(y, x[i])
        z[...] *= 2.0
        if x[i] > 0:
            count += 1
    y[...] += total
    return count
";
    let code = check(program, &[("parallelize", &[text("i")])]);
    for line in
        ["total += total_parts[", "count_part += count_part_parts[", "y_part = taf_max_f32(y_part, y_part_parts["]
    {
        assert!(code.contains(line), "{code}");
    }
    let shares = [text("i"), Arg::named("schedule", "dynamic"), Arg::named("chunk", 4)];
    let code = check(program, &[("parallelize", &shares)]);
    for clause in ["taf_add_all_f32: total", "+: count_part", "taf_max_all_f32: y_part"] {
        assert!(code.contains(&format!("reduction({clause})")), "{code}");
    }
}

/// Checks that other accesses to a reduction's target go to the tensor itself, not to the copies that hold partial
/// results: under a loop-invariant condition, an iteration has either the reduction or the other access.
#[test]
fn other_accesses_to_reduction_targets_bypass_partial_results() {
    let program = |other: &str| {
        format!(
            "
def f(v: f64[n], x: inout[f64[n, m]], y: inout[f64[m]]) -> f64:
    t = 1.0
    w = zeros((m,), f64)
    for i in range(n):
        for j in range(m):
            if i % 2 == 0:
                t += v[i]
                for k in range(m):
                    w[k] += v[i]
                    y[k] += v[i]
            else:
                {other}
    return t + w[0]
"
        )
    };
    let of_scalar = "x[i, j] = t";
    let of_array = "x[i, j] = w[(j + 1) % m] - y[j]";
    let by_another = "t = max(t, v[i])";
    let set =
        "if j == 0:\n                    t = v[i]\n                    w[0] = 2.0\n                    y[0] = 3.0";
    for other in [of_scalar, of_array, by_another, set] {
        check(&program(other), &[("parallelize", &[text("j")])]);
    }
    let scalar = "
def f(v: f64[n], x: inout[f64[n, m]]) -> f64:
    t = 1.0
    for i in range(n):
        for j in range(m):
            if i % 2 == 0:
                t += v[i]
            else:
                x[i, j] = t
    return t
";
    check(scalar, &[("vectorize", &[text("j")])]);
    check(scalar, &[("parallelize", &[text("j")])]);
}

/// Checks a target of lanes with indices of a merged loop, whose divisor is nonzero where the loop runs.
#[test]
fn lanes_reduce_into_elements_of_merged_loops() {
    let program = "
def f(a: f64[n], x: inout[f64[n, m]]):
    for i in range(n):
        for j in range(m):
            for l in range(n):
                x[i, j] += a[l]
";
    let code = check(program, &[("merge", &[text("i"), text("j")]), ("vectorize", &[text("l")])]);
    assert!(code.contains("x_part"), "{code}");
}

/// Checks a loop-invariant target whose index may have no value if the loop does not run: this is tested before partial
/// results are combined into it.
#[test]
fn lanes_reduce_into_elements_whose_index_may_fail() {
    let loaded = "
def f(a: i64[n + 10], m: i64, x: inout[i64[n + 10]]):
    for j in range(max(m - 2, 0), min(m + 1, m)):
        x[a[a[3]]] += 1
";
    let code = check(loaded, &[("vectorize", &[text("j")])]);
    assert!(code.contains("x_part"), "{code}");
    let divided = "
def f(a: f64[n], x: inout[f64[n, m]], y: inout[f64]):
    for i in range(m):
        y[...] = 1.0
    for i in range(n):
        for j in range(m):
            for l in range(n):
                x[i, j] += a[l]
";
    let steps: [(&str, &[Arg]); 3] =
        [("vectorize", &[text("l")]), ("merge", &[text("i#2"), text("j")]), ("fuse", &[text("i#1"), text("i~j")])];
    let code = check(divided, &steps);
    assert!(code.contains("x_part"), "{code}");
    let guarded = "
def f(a: f64[n], k: i64[m], x: inout[f64[m]], p: i64):
    for i in range(n):
        x[k[p] if p < m and p >= 0 else 0] += a[i]
";
    let code = check(guarded, &[("vectorize", &[text("i")])]);
    assert!(code.contains("x_part"), "{code}");
}

/// Checks that threads have copies of the array, and lanes an accumulator for the invariant element.
#[test]
fn threads_and_lanes_share_an_array() {
    let program = "
def f(a: i64[n], x: inout[i64[n * 3 + 10]]):
    for i in range(n):
        x[n * 3 + 7] = min(x[n * 3 + 7], a[i])
        x[i + (i * 2 + 2)] = min(x[i + (i * 2 + 2)], 1)
";
    let code = check(program, &[("vectorize", &[text("i")]), ("parallelize", &[text("i")])]);
    assert!(code.contains("x_own[") && code.contains("x_part"), "{code}");
}

/// Checks that lanes without reductions leave the element alone, which another thread may be changing.
#[test]
fn lanes_without_reductions_do_not_touch_the_target() {
    let program = "
def f(a: f64[n], x: inout[f64[5]]):
    for i in range(10):
        for j in range(n):
            if i < 5:
                x[i % 5] += a[j]
";
    let code = check(program, &[("vectorize", &[text("j")]), ("parallelize", &[text("i")])]);
    let combined = code.find("+= x_part;").expect("partial results are combined");
    assert!(code[..combined].trim_end().contains("x_part != "), "{code}");
}

#[test]
fn arrays_are_copied_for_every_thread() {
    let columns = "
def f(a: f32[n, m], y: inout[f32[m]], h: inout[i32[m, 5]]):
    for i in range(n):
        for j in range(m):
            y[j] += a[i, j]
            if a[i, j] > 0:
                h[j, 2] += 1
";
    let code = check(columns, &[("parallelize", &[text("i")])]);
    assert!(code.contains("y_own[j] +="), "{code}");
    // Of `h`, one column is copied.
    assert!(code.contains("h_part_own[j] +=") || code.contains("h_part_own[j]++"), "{code}");
    let slices = "
def f(a: i64[b, n, m], y: inout[i64[b, m]]):
    for k in range(b):
        for i in range(n):
            for j in range(m):
                y[k, j] += a[k, i, j]
";
    let code = check(slices, &[("parallelize", &[text("i"), Arg::named("schedule", "guided")])]);
    assert!(code.contains("y_part_own[j] +="), "{code}");
}

#[test]
fn random_accesses_are_atomic() {
    for (dtype, op) in [
        ("f32", "y[k[i]] += x[i]"),
        ("f64", "y[k[i]] *= x[i]"),
        ("i32", "y[k[i]] = max(y[k[i]], x[i])"),
        ("f32", "y[k[i]] = min(y[k[i]], x[i])"),
        ("u8", "y[k[i]] += x[i]"),
        ("i64", "y[k[i]] |= x[i]"),
        ("i16", "y[k[i]] &= x[i]"),
        ("bool", "y[k[i]] &= x[i]"),
        ("bool", "y[k[i]] |= x[i]"),
        ("f16", "y[k[i]] += x[i]"),
        ("bf16", "y[k[i]] = max(y[k[i]], x[i])"),
    ] {
        let program = format!(
            "
def f(x: {dtype}[n], k: i32[n], y: inout[{dtype}[m]]):
    for i in range(n):
        {op}
"
        );
        let code = check(&program, &[("parallelize", &[text("i")])]);
        assert!(code.contains("omp atomic") || code.contains("taf_atomic"), "{code}");
    }
}

/// Checks that an update is visible to a later read in its iteration, and so cannot be deferred to a copy.
#[test]
fn updates_are_visible_in_their_iteration() {
    let code = check(
        "
def f(x: f32[n], y: inout[f32[n + 1]], z: inout[f32[n]], w: inout[f32[n + 6]]):
    for i in range(n):
        y[0] += x[i]
        y[i + 1] += x[i]
        z[i] = y[i + 1]
        w[min(i, 5)] += x[i]
        if i < 3:
            w[i] = max(w[i], 0)
",
        &[("parallelize", &[text("i")])],
    );
    assert_eq!(code.matches("omp atomic").count(), 3, "{code}");
}

#[test]
fn small_arrays_with_any_index_are_copied_per_thread() {
    let code = check(
        "
def f(k: i32[n], x: f32[n], h: inout[f32[256]], c: inout[bf16[256]]):
    for i in range(n):
        h[k[i]] += x[i]
        c[k[i]] = max(c[k[i]], cast(x[i], bf16))
",
        &[("parallelize", &[text("i")])],
    );
    assert!(code.contains("h_own[") && code.contains("c_own["), "{code}");
}

#[test]
fn truth_values_and_bits() {
    check(
        "
def f(x: i32[n], a: bool[n]) -> (bool, bool, i32, u8, i8):
    every: bool = True
    some: bool = False
    bits: i32 = 0
    sum: u8 = 250
    product: i8 = 3
    for i in range(n):
        every &= a[i]
        some |= a[i]
        bits |= x[i]
        sum += cast(x[i], u8)
        product *= cast(x[i] + 2, i8)
    return every, some, bits, sum, product
",
        &[("parallelize", &[text("i")])],
    );
}

#[test]
fn failing_checks_stop_parallel_reductions() {
    // An input index exceeds `n`: the interpreter stops there, and so does every number of threads.
    check(
        "
def f(k: i32[n], x: f32[n], y: inout[f32[n]], h: inout[f32[8]]):
    for i in range(n):
        y[k[i] + k[i] // 2] += x[i]
        h[i % 8] += x[i]
",
        &[("parallelize", &[text("i")])],
    );
}

#[test]
fn loops_with_unknown_steps() {
    check(
        "
def f(b: i32, s: i32, x: inout[f32[n]]) -> f32:
    total: f32 = 0
    for i in range(b, n, s + 1):
        total += x[i]
        x[i] = 0
    return total
",
        &[("parallelize", &[text("i")])],
    );
}

#[test]
fn signs_of_zero_and_nan_are_preserved() {
    let (_, after, _) = scheduled(
        "
def f(x: f32[n], s: inout[f32], least: inout[f32]):
    for i in range(n):
        s[...] += x[i]
        least[...] = min(least, x[i])
",
        &[("parallelize", &[text("i")])],
    );
    let compiled = compile_with(&after, &LowerOptions::default(), &CompileOptions::default());
    for n in [0usize, 1, 9] {
        for threads in [1, 2, 4] {
            let scalar = |x: f32| Value::new(vec![], Buffer::F32(vec![x])).expect("a scalar");
            let x = Value::new(vec![n], Buffer::F32(vec![-0.0; n])).expect("n numbers");
            let mut given = vec![x, scalar(-0.0), scalar(1.0)];
            compiled.call_values(&mut Context::new(threads), &mut given, &[]).expect("it runs");
            assert_eq!(given[1].data().get_f64(0).to_bits(), (-0.0f64).to_bits(), "{n} zeros on {threads} threads");
            let mut numbers = vec![2.0f32; n];
            numbers.iter_mut().last().into_iter().for_each(|x| *x = f32::NAN);
            let mut given =
                vec![Value::new(vec![n], Buffer::F32(numbers)).expect("n numbers"), scalar(0.0), scalar(1.0)];
            compiled.call_values(&mut Context::new(threads), &mut given, &[]).expect("it runs");
            assert_eq!(given[2].data().get_f64(0).is_nan(), n > 0);
        }
    }
}

/// Returns the heads of the loops after `omp simd`, each with whether gcc vectorised it.
fn vectorised(code: &str) -> Vec<(String, bool)> {
    let compiler = Toolchain::find().expect("a C compiler");
    let dir = scratch_dir();
    for (name, text) in [("p.c", code), ("taffeta.h", c::TAFFETA_H), ("taffeta_runtime.h", c::TAFFETA_RUNTIME_H)] {
        std::fs::write(dir.join(name), text).expect("the directory can be written");
    }
    let output = std::process::Command::new(compiler.program())
        .args(Toolchain::flags(&CompileOptions::default()))
        .args(["-fopenmp", "-c", "p.c", "-o", "p.o", "-fopt-info-vec-optimized"])
        .current_dir(&dir)
        .output()
        .expect("it can be run");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    // gcc reports the location of some statement of the loop.
    let places: Vec<usize> = report
        .lines()
        .filter(|l| l.contains("loop vectorized"))
        .filter_map(|l| l.strip_prefix("p.c:")?.split(':').next()?.parse().ok())
        .collect();
    let lines: Vec<&str> = code.lines().collect();
    let loops = (1..lines.len()).filter(|k| lines[k - 1].starts_with("#pragma omp") && lines[k - 1].contains(" simd"));
    loops
        .map(|k| {
            let depth = lines[k].len() - lines[k].trim_start().len();
            let end = (k..lines.len()).find(|e| lines[*e] == format!("{}}}", " ".repeat(depth))).unwrap_or(k);
            (lines[k].trim().to_string(), places.iter().any(|p| (k + 1..=end).contains(p)))
        })
        .collect()
}

/// Returns whether the compiler reports vectorisation, for a machine with vectors.
fn reports() -> bool {
    let compiler = Toolchain::find().expect("a C compiler");
    let clang = compiler.program().canonicalize().is_ok_and(|p| p.to_string_lossy().contains("clang"));
    cfg!(all(target_arch = "x86_64", target_env = "gnu")) && !clang
}

/// Checks that the results are the same, and that all vectorised loops are vector code.
fn check_vector(text: &str, steps: &[(&str, &[Arg])]) -> String {
    let code = check(text, steps);
    assert_vector_code(&code);
    code
}

fn assert_vector_code(code: &str) {
    if reports() {
        let loops = vectorised(code);
        // Sums are written with vectors, so the compiler need not find them.
        assert!(!loops.is_empty() || code.contains("taf_sum_"), "no vectorised loop:\n{code}");
        loops.iter().for_each(|(head, done)| assert!(done, "`{head}` is not vector code:\n{code}"));
    }
}

#[test]
fn contiguous_loops_are_vector_code() {
    for dtype in ["f32", "f64", "i32"] {
        let program = format!(
            "
def f(a: {dtype}[n], x: {dtype}[n], y: inout[{dtype}[n]]):
    for i in range(n):
        t = a[i] * x[i]
        y[i] = t + y[i] if t > 0 else -t
"
        );
        check_vector(&program, &[("vectorize", &[text("i")])]);
        check_vector(&program, &[("vectorize", &[text("i"), Arg::named("width", 8)])]);
    }
}

#[test]
fn reductions_are_vector_code() {
    for dtype in ["f32", "f64", "i32"] {
        for op in ["y[i] += a[i, j] * x[j]", "y[i] = max(y[i], a[i, j])", "y[i] = min(y[i], a[i, j] + x[j])"] {
            let program = format!(
                "
def f(a: {dtype}[n, m], x: {dtype}[m], y: inout[{dtype}[n]]):
    for i in range(n):
        for j in range(m):
            {op}
"
            );
            let code = check_vector(&program, &[("vectorize", &[text("j")])]);
            assert!(code.contains("y_part"), "{code}");
            if dtype == "f32" {
                check_vector(&program, &[("vectorize", &[text("j")]), ("parallelize", &[text("i")])]);
            }
        }
    }
}

#[test]
fn guards_of_a_split_become_bounds() {
    let program = "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        y[i] = x[i] * 2 + 1
";
    let code = check_vector(program, &[("split", &[text("i"), Arg::from(32)]), ("vectorize", &[text("i~i")])]);
    assert!(code.contains("taf_min_i64(32, n - ") && !code.contains("if (i"), "{code}");
    let shifted = [
        ("split", &[text("i"), Arg::from(8), Arg::named("shift", 3)][..]),
        ("vectorize", &[text("i~i")][..]),
        ("parallelize", &[text("i~o")][..]),
    ];
    check(program, &shifted);
}

#[test]
fn branches_become_masks_and_checks_run_before() {
    check_vector(
        "
def f(x: f32[n], y: inout[f32[n]]) -> f32:
    total: f32 = 0
    for i in range(n):
        if x[i] > 0:
            y[i] = x[i] + 1
            total += x[i]
    return total
",
        &[("vectorize", &[text("i")])],
    );
    let code = check_vector(
        "
def f(x: f32[n], k: i32[n], y: inout[f32[n]]):
    for i in range(n):
        p = k[i] + k[i] // 2
        y[i] = x[p] * 2
",
        &[("vectorize", &[text("i")])],
    );
    assert_eq!(code.matches("for (int64_t i").count(), 2, "{code}");
}

#[test]
fn mathematical_functions_are_vector_code() {
    let (_, after, program) = scheduled(
        "
def f(x: f32[n], z: f64[n], y: inout[f32[n]], w: inout[f64[n]]):
    for i in range(n):
        y[i] = exp(x[i]) + sqrt(abs(x[i]))
    for j in range(n):
        w[j] = exp(z[j]) * sin(z[j]) if z[j] > 0 else 0
",
        &[("vectorize", &[text("i")]), ("vectorize", &[text("j")])],
    );
    let lowered = lower(&after, &LowerOptions::default()).unwrap_or_else(|d| panic!("{d}"));
    let code = c::emit(&lowered, program.sources()).code;
    assert_vector_code(&code);
}

#[test]
fn several_elements_of_one_tensor_have_separate_accumulators() {
    let code = check_vector(
        "
def f(x: f32[n], k: i32[2], y: inout[f32[n + 2]], z: inout[f32[n, 3]]):
    for i in range(n):
        y[0] += x[i]
        y[1] += x[i] * 2
        z[i, 1] += x[i]
",
        &[("vectorize", &[text("i")])],
    );
    assert!(code.contains("reduction(taf_add_all_f32: y_part, y_part_2)"), "{code}");
    // The index is loaded from a tensor, and may be out of range where the loop does not run.
    check(
        "
def f(x: f32[n], k: i32[m], y: inout[f32[m]]):
    for j in range(m):
        for i in range(n):
            if x[i] > 1:
                y[k[j] + k[j] // 2] += x[i]
",
        &[("parallelize", &[text("i")])],
    );
}

#[test]
fn threads_and_lanes_together() {
    let columns = "
def f(a: f32[n, m], y: inout[f32[m]], z: inout[f64[m]]):
    for i in range(n):
        for j in range(m):
            y[j] += a[i, j]
            z[0] += cast(a[i, j], f64)
";
    let code = check_vector(columns, &[("parallelize", &[text("i")]), ("vectorize", &[text("j")])]);
    assert!(code.contains("_at *)&y_own[j] +=") && code.contains("z_part += taf_sum_f64x"), "{code}");
    let both = "
def f(x: f32[n], y: inout[f32[n]]) -> (f32, i32):
    least: f32 = 3
    count: i32 = 0
    for i in range(n):
        least = min(least, x[i])
        count += 1
        y[i] = x[i] * 2
    return least, count
";
    let code =
        check_vector(both, &[("parallelize", &[text("i")]), ("vectorize", &[text("i"), Arg::named("width", 16)])]);
    assert!(code.contains("omp for simd schedule(static) simdlen(16)"), "{code}");
    let sum = "
def f(x: f32[n]) -> f64:
    total = 0.0
    for i in range(n):
        total += cast(x[i], f64)
    return total
";
    let code = check_vector(sum, &[("parallelize", &[text("i")]), ("vectorize", &[text("i")])]);
    assert!(code.contains("omp simd reduction(taf_add_all_f64: total"), "{code}");
    assert!(code.contains("taf_fork(i_team)"), "{code}");
}

/// Checks time tiles of stencils, executed in wavefronts on several threads.
#[test]
fn stencils_run_in_tiles_of_time() {
    let names = |all: &[&str]| Arg::from(all.iter().map(|n| taffeta_schedule::Value::from(*n)).collect::<Vec<_>>());
    let code = check(
        "
def f(steps: i32, A: inout[f64[n, m]], B: inout[f64[n, m]]):
    for t in range(min(steps, 5)):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                B[i, j] = A[i, j] + A[i, j - 1] + A[i, 1 + j] + A[1 + i, j] + A[i - 1, j]
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = B[i, j] - B[i, j - 1] - B[i, 1 + j] + B[1 + i, j] + B[i - 1, j]
",
        &[
            ("polyhedral", &[text("t")]),
            ("tile", &[names(&["t", "t~i", "t~j"]), Arg::from(vec![2i64, 4, 16]), Arg::named("wavefront", true)]),
            ("parallelize", &[text("t~i~o")]),
        ],
    );
    assert!(code.contains("#pragma omp parallel"), "{code}");
    assert!(!code.contains("taf_index"), "every index is proved to be in range:\n{code}");
    check(
        "
def f(steps: i32, A: inout[f64[n, n]]):
    for t in range(min(steps, 4)):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = A[i - 1, j - 1] - A[i, j - 1] + A[i, j] - A[i, j + 1] + A[i + 1, j - 1]
",
        &[
            ("polyhedral", &[text("t")]),
            ("tile", &[names(&["t", "t~i", "t~i~j"]), Arg::from(vec![2i64, 4, 4]), Arg::named("wavefront", true)]),
            ("parallelize", &[text("t~i~o")]),
        ],
    );
}

#[test]
fn unread_elements_are_not_stored() {
    let code = check(
        "def f(x: f32[n]) -> f32[n]:
    z = empty((n,), f32)
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[i] + 1
        z[i] = 2 * t[i]
    return z
",
        &[("cache", &["i".into(), "t".into()])],
    );
    assert!(code.contains("t_cache["), "{code}");
    // The dead array has no slot in the arena.
    assert!(!code.contains("restrict t ="), "{code}");
}

/// Checks that a reduction in a branch that a known size removes has no partial result.
#[test]
fn removed_reductions_have_no_partial_results() {
    let program = "
def f(x: f64[n], z: inout[f64[n]], y: inout[f64]):
    for i in range(n):
        z[i] = x[i]
        if n > 200:
            y[...] += x[i]
";
    let (_, after, program) = scheduled(program, &[("vectorize", &[text("i")])]);
    for (n, sums) in [(100, false), (300, true)] {
        let options = LowerOptions { sizes: [("n".to_string(), n)].into_iter().collect(), ..LowerOptions::default() };
        let known = taffeta_codegen::lower::specialise(&after, &options.sizes).unwrap_or_else(|d| panic!("{d}"));
        let simple = taffeta_analysis::pass::simplify::run(&known);
        let code = c::emit(&lower(&simple, &options).unwrap_or_else(|d| panic!("{d}")), program.sources()).code;
        assert_eq!(code.contains("y_part"), sums, "{code}");
    }
}
