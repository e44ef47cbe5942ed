//! Parallel regions around sequential loops, with a barrier after every parallel loop: the interpreter's results and
//! errors on every number of threads.

use crate::compiled::programs;
use crate::compiled::run::scratch_dir;
use crate::compiled::scheduled::check;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{LowerOptions, c, lower};
use taffeta_schedule::Arg;

/// Runs a program with parallel loops of these names and returns its C.
fn parallel(text: &str, loops: &[&str]) -> String {
    with(text, loops, &[])
}

fn with(text: &str, loops: &[&str], more: &[Arg]) -> String {
    let args: Vec<Vec<Arg>> = loops.iter().map(|l| [&[Arg::from(*l)], more].concat()).collect();
    let steps: Vec<(&str, &[Arg])> = args.iter().map(|a| ("parallelize", a.as_slice())).collect();
    check(text, &steps)
}

/// Counts parallel regions and barriers.
fn counts(c: &str) -> (usize, usize) {
    let kernel = &c[c.find("static TAFFETA_KERNEL").expect("there is a kernel")..];
    (kernel.matches("#pragma omp parallel").count(), kernel.matches("taf_meet").count())
}

/// Checks two parallel loops in a time loop, with sequential code between them; forwards, backwards and in steps.
#[test]
fn a_time_loop_starts_threads_once() {
    for (over_time, step) in [("range(k)", "t++"), ("range(k - 1, -1, -1)", "t--"), ("range(1, k, 3)", "t += 3")] {
        let program = format!(
            "
def f(x: f64[n], w: f64[k]) -> (f64[n], f64[n], f64[k]):
    a = empty((n,), f64)
    b = zeros((n,), f64)
    z = zeros((k,), f64)
    a[...] = x
    for t in {over_time}:
        for i in range(1, n - 1):
            b[i] = a[i - 1] - a[i + 1] + w[t]
        for q in range(min(n, 3)):
            b[q] = w[t] + q
        z[t] = w[t] * 2.0
        for j in range(n):
            a[j] = b[n - 1 - j] + 1.0
    return a, b, z
"
        );
        for more in [&[][..], &[Arg::named("schedule", "dynamic"), Arg::named("chunk", 3)]] {
            let c = with(&program, &["i", "j"], more);
            assert_eq!(counts(&c), (1, 3), "{c}");
            assert!(c.contains(&format!("{step};\n")), "{c}");
            assert!(c.contains("if (taf_thread() == 0) f_t_alone("), "{c}");
            assert!(!c.contains("if (taf_failed(ctx))"), "{c}");
        }
    }
}

/// Checks sequential loops in the time loop that may be empty, and arrays local to it and to each thread.
#[test]
fn sequential_code_around_parallel_loops() {
    let program = "
def f(x: f64[n, m], k: i64[m]) -> f64[n, m]:
    y = zeros((n, m), f64)
    for t in range(7):
        u = empty((n, m), f64)
        for b in range(k[0] - 2, 3):
            for c in range(b % 3):
                for i in range(n):
                    own = empty((m,), f64)
                    for j in range(m):
                        own[j] = x[i, m - 1 - j] + t
                    for j in range(m):
                        u[i, j] = own[j] * (b + c)
                for l in range(n):
                    for j in range(m):
                        y[n - 1 - l, j] += u[l, j]
    return y
";
    let (regions, meetings) = counts(&parallel(program, &["i", "l"]));
    assert_eq!((regions, meetings), (1, 2));
    // A scalar that never changes is private to every thread.
    let program = "
def f(x: f64[n], w: f64[k]) -> f64[n]:
    y = zeros((n,), f64)
    for t in range(k):
        s: f64 = sqrt(abs(w[t])) + 1.0
        if n > 3:
            y[2] = 1.0
        y[n // 2] *= 2.0
        for i in range(n):
            y[i] += x[i] / s
        for i in range(n):
            y[i] *= s
    return y
";
    let c = parallel(program, &["i#1", "i#2"]);
    assert_eq!(counts(&c), (1, 3), "{c}");
    assert!(c.contains("double s = "), "{c}");
}

/// Checks atomic updates, and printed lines.
#[test]
fn atomic_updates_and_prints_in_parallel_loops() {
    let program = "
def f(k: i64[n, m], y: inout[f64[n]]):
    for t in range(5):
        for i in range(n):
            for j in range(m):
                y[k[i, j] % n] += t
        print(\"step\", t)
        for i in range(n):
            y[i] = y[i] + 1.0
";
    let c = parallel(program, &["i#1", "i#2"]);
    assert_eq!(counts(&c), (1, 3), "{c}");
    assert!(c.contains("#pragma omp atomic"), "{c}");
}

/// Checks that an error, in a parallel loop or in sequential code, leaves the time loop: later code relies on it.
#[test]
fn errors_leave_for_all_threads() {
    let program = "
def f(x: i64[n], at: i64[n], y: inout[i64[n]]):
    for t in range(20):
        for i in range(n):
            assert x[i] + y[i] < 30, \"too large\"
            y[i] += x[(i + t) % n] * x[i]
        assert y[n // 2] != 9, \"nine\"
        for i in range(n):
            y[at[i] + y[i] % 2] = 1
        for j in range(n):
            y[j] = y[j] % 31
";
    let c = parallel(program, &["i#1", "j"]);
    assert_eq!(counts(&c), (1, 3), "{c}");
    assert_eq!(c.matches("if (taf_meet_failed(ctx, &t_region, &t_meetings)) goto t_end;").count(), 2, "{c}");
}

/// Checks that threads start if any of the loops is worth it.
#[test]
fn threads_start_only_for_large_loops() {
    let program = |size: &str| {
        format!(
            "
def f(x: f64[n, m], y: inout[f64[n]]):
    for t in range(m):
        for i in range({size}):
            y[i] += x[i, t]
        for j in range(n):
            y[j] = y[j] * 0.5
"
        )
    };
    let above = [Arg::named("above", 5)];
    let c = with(&program("n - 1"), &["i", "j"], &above);
    let worth =
        "taf_fork(taf_trips(0, n - 1, 1) > UINT64_C(5) || taf_trips(0, n, 1) > UINT64_C(5) ? taf_threads(ctx) : 1)";
    assert!(c.contains(worth), "{c}");
    assert_eq!(counts(&c), (1, 2), "{c}");
    // The size of the loops is unknown here.
    let c = with(&program("min(t, n)"), &["i", "j"], &above);
    assert_eq!(counts(&c), (2, 0), "{c}");
}

/// Checks that every parallel loop keeps a region of its own where the enclosing loop cannot run on all threads.
#[test]
fn regions_for_each_loop() {
    let body = |lines: &str| {
        let lines = lines.replace('\n', "\n        ");
        format!(
            "
def f(x: f64[n], k: i64[n], y: inout[f64[n]], z: inout[f64[4]], e: inout[i64[n]]):
    last: f64 = 0.0
    for t in range(n):
        {lines}
    y[0] = last
"
        )
    };
    for (why, lines, loops) in [
        ("a scalar", "s: f64 = 0.0\ns += z[1]\nfor i in range(1, n):\n    y[i] += s", &["i"][..]),
        ("a scalar outside", "for i in range(1, n):\n    y[i] += x[i]\nlast += y[t]", &["i"]),
        ("a small array", "s = zeros((4,), f64)\ns[t % 4] = z[1]\nfor i in range(1, n):\n    y[i] += s[i % 4]", &["i"]),
        ("partial results", "for i in range(1, n):\n    z[0] += x[i]", &["i"]),
        ("ends that change", "for i in range(e[0]):\n    y[i % n] = t\ne[0] = k[0] % 2", &["i"]),
        ("a condition", "if x[t] > 1:\n    for i in range(1, n):\n        y[i] += x[i]", &["i"]),
        ("alone", "z[0] = x[t]\nfor i in range(1, n):\n    y[i] += z[0]\nz[1] = y[t] + t", &["i"]),
    ] {
        // The case `ends that change` writes one element in several iterations.
        let program = body(lines);
        let program =
            if why == "ends that change" { program.replace("y[i % n] = t", "e[n - 1] += 1") } else { program };
        let (_, meetings) = counts(&parallel(&program, loops));
        assert_eq!(meetings, 0, "{why}");
    }
}

/// C program of a loop with barriers on four threads, which ends when it has lasted long enough, or one thread fails.
const MEETINGS: &str = r#"
#include "taffeta_runtime.h"

int main(void) {
    taffeta_ctx ctx = TAFFETA_CTX_INIT;
    int wrong = 0;
    for (int round = 0; round < 400; round++) {
        taf_region region = taf_fork(4);
        region.until = round % 3 == 0 ? omp_get_wtime() : 1e18;
        int64_t count[4] = {-1, -1, -1, -1}, iterations[4] = {0, 0, 0, 0};
        bool failed[4] = {false, false, false, false};
        ctx.status = TAFFETA_OK;
        const int fails_in = round % 5 == 1 ? round % 7 : 99, lasts = round % 3 == 0 ? 1 : 10;
#pragma omp parallel num_threads(4)
        {
            const int me = taf_thread();
            int64_t meetings = 0;
            do {
                if (iterations[me] == fails_in && me == round % 4) taf_fail(&ctx, TAFFETA_ERROR_ASSERT, 0, 0, "it failed");
                failed[me] = taf_meet_failed(&ctx, &region, &meetings);
                if (failed[me]) goto end;
                taf_meet(&region, &meetings);
                iterations[me]++;
            } while (iterations[me] < 10 && !taf_pauses(&ctx, &region, meetings));
        end:;
            count[me] = meetings;
        }
        for (int k = 0; k < 4; k++) {
            wrong += count[k] != count[0] || iterations[k] != iterations[0];
            wrong += failed[k] != (fails_in < lasts);
        }
        wrong += iterations[0] != (fails_in < lasts ? fails_in : lasts);
        taf_join(&region);
    }
    printf("%d", wrong);

    /* Time that several threads lose together is lost once. */
    taf_region region = taf_fork(4);
    taf_stood_still(&region, 10, 12);
    taf_stood_still(&region, 10, 11);
    taf_stood_still(&region, 11, 13);
    taf_stood_still(&region, 20, 21);
    printf(" %g", region.still);

    /* And there are fewer threads for the next. */
    taf_crowded.halvings = 0;
    taf_crowded.lost = 0;
    region = (taf_region){.threads = 4, .forked = omp_get_wtime() - 9e-3, .still = 8.9e-3};
    taf_join(&region);
    printf(" %d\n", taf_fork(4).threads);
    return 0;
}
"#;

#[test]
fn threads_leave_a_region_together() {
    let dir = scratch_dir();
    let func = programs::matmul(taffeta_ast::DType::F32);
    let source = c::emit(&lower(&func, &LowerOptions::default()).expect("it can be lowered"), &programs::sources());
    Toolchain::write(&source, &dir, "matmul").expect("the directory can be written");
    let main = dir.join("main.c");
    std::fs::write(&main, MEETINGS).expect("the directory can be written");
    let compiler = Toolchain::find().expect("a C compiler");
    let program = compiler.executable(&dir, "matmul", &[main], &CompileOptions::default());
    let output = std::process::Command::new(program.unwrap_or_else(|d| panic!("{d:?}"))).output();
    let text = String::from_utf8(output.expect("it can be run").stdout).expect("digits");
    assert_eq!(text, "0 4 2\n");
}
