//! Local arrays of symbolic size in parallel loops: each thread has a part of the arena for them.

#![allow(unsafe_code)] // `Compiled::load` runs the compiled code

use crate::compiled::run::compile;
use crate::compiled::scheduled::{check, compare, scheduled, text};
use taffeta_ast::Value;
use taffeta_codegen::LowerOptions;
use taffeta_codegen::call::Context;

/// A scratch row in every iteration, another one nested in its scope, and one after that; and an array outside the
/// loop.
const ROWS: &str = "
def f(x: f64[n, m]) -> f64[n, m]:
    y = zeros((n, m), f64)
    scale = zeros((m,), f64)
    for k in range(m):
        scale[k] = cast(k, f64)
    for i in range(n):
        t = empty((m,), f64)
        for k in range(m):
            t[k] = x[i, k] + scale[k]
        if m > 2:
            u = empty((m, 2), f64)
            for k in range(m):
                u[k, 0] = t[k]
                u[k, 1] = t[m - 1 - k]
            for k in range(m):
                y[i, k] += u[k, 0] * u[k, 1]
        if m > 3:
            v = empty((3 * m,), f64)
            for k in range(3 * m):
                v[k] = t[k % m]
            for k in range(m):
                y[i, k] += v[2 * m + k] + t[k]
    return y
";

#[test]
fn threads_have_separate_parts_of_the_arena() {
    for distribution in ["static", "dynamic"] {
        let steps = [taffeta_schedule::Arg::from("i"), taffeta_schedule::Arg::named("schedule", distribution)];
        let c = check(ROWS, &[("parallelize", &steps)]);
        assert!(!c.contains("taf_heap_take"), "{c}");
        assert!(c.contains("(double *)(arena + plan->threads_at + (size_t)taf_thread() * plan->thread_bytes"), "{c}");
    }
    let c = check(ROWS, &[]);
    assert!(!c.contains("threads_at"), "{c}");
}

/// Checks that arrays alive at the same time are adjacent, that others share memory, and that every thread has its
/// part.
#[test]
fn parts_have_the_size_of_their_live_arrays() {
    let (_, after, _) = scheduled(ROWS, &[("parallelize", &[text("i")])]);
    let compiled = compile(&after, &LowerOptions::default());
    let x = Value::zeros(taffeta_ast::DType::F64, vec![10, 100]).expect("it fits");
    let bytes = |elements: usize| (elements * 8).next_multiple_of(64);
    for threads in [1, 2, 5] {
        let mut given = [x.clone()];
        let (_, report) = compiled.call_values(&mut Context::new(threads), &mut given, &[]).expect("it runs");
        assert_eq!(report.memory, bytes(100) + threads * (bytes(100) + bytes(300)));
    }
}

/// Checks that a loop that needs more memory than there is reports an error before it runs.
#[test]
fn parts_larger_than_memory_are_refused() {
    let program = "
def f(x: f64[n]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(n):
        t = empty((100000000 * n, 1000000 * n), f64)
        t[i, i] = x[i]
        y[i] = t[i, i]
    return y
";
    let (_, after, _) = scheduled(program, &[("parallelize", &[text("i")])]);
    let compiled = compile(&after, &LowerOptions::default());
    let x = Value::zeros(taffeta_ast::DType::F64, vec![1]).expect("it fits");
    let error = compiled.call_values(&mut Context::new(3), &mut [x], &[]).expect_err("there is no such memory");
    let text = error.to_string();
    assert!(text.contains("no memory for the 800000000000000 bytes of `t`, of "), "{text}");
}

/// Checks that few iterations run on one thread, with partial results or without.
#[test]
fn small_loops_start_no_threads() {
    let program = "
def f(x: f64[n, m]) -> (f64[n], f64[m]):
    y = zeros((n,), f64)
    z = zeros((m,), f64)
    for i in range(n):
        t = empty((m,), f64)
        for k in range(m):
            t[k] = x[i, k] * 2.0
        for k in range(m):
            y[i] += t[k]
    for i in range(n - 1, -1, -2):
        for k in range(m):
            z[k] += x[i, k]
    return y, z
";
    let above = |l: &str| [taffeta_schedule::Arg::from(l), taffeta_schedule::Arg::named("above", 5)];
    let c = check(program, &[("parallelize", &above("i#1")), ("parallelize", &above("i#2"))]);
    assert!(c.contains("taf_fork(taf_trips(0, n, 1) > UINT64_C(5) ? taf_threads(ctx) : 1)"), "{c}");
    assert!(c.contains("_team = !(taf_trips(n - 1, -1, -2) > UINT64_C(5)) ? 1 : taf_team(ctx, "), "{c}");
}

/// Checks that an array whose size changes with enclosing loops has room for the largest, on one and several threads.
#[test]
fn arrays_of_varying_size_fit_their_maximum() {
    let prefixes = "
def f(x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        t = empty((i + 1,), f64)
        for k in range(i + 1):
            t[k] = x[k] * x[i]
        for k in range(i + 1):
            y[i] += t[i - k] * t[k]
    return y
";
    let arena = [text("t"), text("arena")];
    let c = check(prefixes, &[("set_mem_type", &arena)]);
    assert!(!c.contains("taf_heap_take"), "{c}");
    let c = check(prefixes, &[("set_mem_type", &arena), ("parallelize", &[text("i")])]);
    assert!(!c.contains("taf_heap_take"), "{c}");
    let (_, after, _) = scheduled(prefixes, &[("set_mem_type", &arena)]);
    let compiled = compile(&after, &LowerOptions::default());
    let mut given = [Value::zeros(taffeta_ast::DType::F64, vec![100]).expect("it fits")];
    let (_, report) = compiled.call_values(&mut Context::new(1), &mut given, &[]).expect("it runs");
    assert_eq!(report.memory, (100usize * 8).next_multiple_of(64));
}

/// Checks that a small array of known size that only one thread touches is placed apart from shared memory.
#[test]
fn arrays_of_one_thread_are_placed_apart() {
    let program = "
def f(x: f64[n]) -> f64:
    most: f64 = 0.0
    if most < 1.0:
        t = empty((n,), f64)
        for i in range(n):
            t[i] = x[i] * 2.0
        for k in range(n):
            most += t[k]
    u = empty((n,), f64)
    v = empty((n,), f64)
    for k in range(n):
        u[k] = x[k] + most
        v[k] = u[k] * u[k]
    for k in range(n):
        most += v[n - 1 - k]
    return most
";
    let steps: [(&str, &[taffeta_schedule::Arg]); 1] = [("parallelize", &[text("i")])];
    let (func, after, program) = scheduled(program, &steps);
    let of_size =
        |n: i64| LowerOptions { sizes: [("n".to_string(), n)].into_iter().collect(), ..LowerOptions::default() };
    let x = |n: usize| Value::zeros(taffeta_ast::DType::F64, vec![n]).expect("it fits");
    let memory = |func, options: &LowerOptions, n: usize| {
        let compiled = compile(func, options);
        let (_, report) = compiled.call_values(&mut Context::new(2), &mut [x(n)], &[]).expect("it runs");
        report.memory
    };
    // Arrays of at most 16 KiB are on the stack. Both, one and none of `u` and `v` are placed apart.
    for (n, apart, together) in [(4096, 3 * 32768, 2 * 32768), (9000, 2 * 72000, 2 * 72000), (20000, 320000, 320000)] {
        let known = of_size(n as i64);
        assert_eq!(memory(&after, &known, n), apart, "{n}");
        // A sequential program places no array apart, nor does one with unknown sizes.
        assert_eq!(memory(&func, &known, n), together, "{n}");
        assert_eq!(memory(&after, &LowerOptions::default(), n), together, "{n}");
    }
    // Contents are right there, too.
    let (known, mut given) = (of_size(9000), [x(9000)]);
    given[0] = given[0].with_numbers((0..9000).map(|k| f64::from(k % 7)).collect()).expect("as many");
    let [want, have] = [&func, &after].map(|f| {
        let (results, _) =
            compile(f, &known).call_values(&mut Context::new(2), &mut given.clone(), &[]).expect("it runs");
        results[0].clone()
    });
    assert_eq!(want, have);
    compare(&func, &after, &program, &LowerOptions::default());
}
