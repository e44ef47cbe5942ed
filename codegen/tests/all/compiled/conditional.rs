//! Adjacent conditional loads, for which gcc before 12.4 and 13.3 uses the masks of other lanes (gcc bug 114375):
//! results are right nevertheless, and no other loop pays for the workaround.

use crate::compiled::scheduled::{check, text};
use taffeta_schedule::Arg;

const WORKAROUND: &str = "#define TAFFETA_CONDITIONAL_LOADS";

/// Generates programs over rows of `m` elements, with a condition per element.
fn programs(m: usize, dtype: &str) -> Vec<String> {
    let statements = [
        format!("y[i, j] = x[i, j] if c[i, j] > 2 else cast(0, {dtype})"),
        format!("y[i, j] += x[i, j] if c[i, j] > 2 else cast(0, {dtype})"),
        format!("y[i, j] = x[i, j] * cast(2, {dtype}) + cast(1, {dtype}) if c[i, j] > 2 else c[i, j]"),
        format!(
            "if c[i, j] > 2:\n                y[i, j] = x[i, j]\n            else:\n                \
             y[i, j] = cast(0, {dtype})"
        ),
        "if c[i, j] > 2:\n                y[0, j] += x[i, j]".to_string(),
    ];
    let whole = |s: &String| {
        let of = format!("{dtype}[n, {m}]");
        format!(
            "\ndef f(c: {of}, x: {of}, y: inout[{of}]):\n    for i in range(n):\n        \
             for j in range({m}):\n            {s}\n"
        )
    };
    statements.iter().map(whole).collect()
}

#[test]
fn adjacent_conditional_loads_are_detected() {
    for (m, dtype) in [(3, "f64"), (8, "f64"), (16, "f64"), (7, "f32"), (16, "f32"), (5, "i64"), (7, "i32")] {
        for program in programs(m, dtype) {
            let code = check(&program, &[]);
            assert!(code.contains(WORKAROUND), "{code}");
        }
    }
}

#[test]
fn results_are_right_after_unrolling_and_vectorising() {
    let program = &programs(8, "f64")[0];
    let steps: [&[(&str, &[Arg])]; 3] = [
        &[("unroll", &[text("j")])],
        &[("unroll", &[text("j")]), ("vectorize", &[text("i")])],
        &[("reorder", &[Arg::from(vec!["j", "i"])]), ("unroll", &[text("j")])],
    ];
    for steps in steps {
        check(program, steps);
    }
}

/// Checks that loops keep their masks if each iteration has a single load, or the loads are unconditional.
#[test]
fn other_loops_keep_their_masks() {
    let rows = programs(8, "f64")[0].replace("range(8)", "range(n)").replace(", 8]", ", n]");
    let always = programs(8, "f64")[0].replace("> 2", "+ x[i, j] > 2.0");
    // Branches of a loop that contains another loop stay branches.
    let outer = "\ndef f(c: f64[n], x: f64[n, 3], y: inout[f64[n, 3]]):\n    \
                 for i in range(n):\n        t: f64 = 0.0\n        for j in range(n):\n            t += c[j]\n        if t > c[i]:\n            \
                 for k in range(3):\n                y[i, k] += x[i, k]\n"
        .to_string();
    for program in [rows, always, outer] {
        let code = check(&program, &[]);
        assert!(!code.contains(WORKAROUND), "{code}");
    }
}

/// Checks that branches that reduce into one scalar become a single reduction without conditional loads, for operators
/// and types for which gcc before 12.4 builds masks of the wrong width (condition and reduction of different
/// widths).
#[test]
fn branches_become_one_reduction() {
    for (k, (compared, reduced)) in
        [("f32", "f64"), ("i64", "f32"), ("i32", "f64"), ("u8", "f64")].into_iter().enumerate()
    {
        let all = [
            ("s[0] += x[i]", format!("s[0] += cast(1, {reduced})")),
            ("s[0] -= x[i]", "s[0] += x[i] + x[i]".to_string()),
            ("s[0] = min(s[0], x[i])", format!("s[0] = min(s[0], cast(-2, {reduced}))")),
            ("s[0] = max(s[0], x[i])", format!("s[0] = max(s[0], cast(1, {reduced}))")),
        ];
        // All operators for the first pair of types, one operator for each other pair.
        for (first, second) in if k == 0 { &all[..] } else { &all[k..=k] } {
            let program = format!(
                "\ndef f(a: {compared}[n], b: {compared}[n], x: {reduced}[n], s: inout[{reduced}[1]]):\n    \
                 for i in range(n):\n        if a[i] > 0:\n            if b[i] > 0:\n                {first}\n            \
                 else:\n                {second}\n"
            );
            let code = check(&program, &[("vectorize", &[text("i")])]);
            let (_, body) = code.split_once("omp simd").expect("it is vectorised");
            let (body, _) = body.split_once("\n    }").expect("it ends");
            assert!(!body.contains("if ("), "{code}");
        }
    }
}

/// Checks that guarded operations stay guarded: elsewhere an index may be invalid, a divisor 0, or an array empty.
#[test]
fn guarded_operations_stay_guarded() {
    let programs = [
        "if c[i] > 0:\n            s[0] += x[k[i]] / y[k[i]]\n        else:\n            s[0] += 1",
        "if c[i] > 0 and k[i] < m:\n            s[0] += x[k[i]]",
        "if k[i] > 0:\n            s[0] += cast(k[i] % k[i] + 7 // k[i], f64)",
        "if i + 1 < n and c[i + 1] > 0:\n            s[0] += y[i]",
        "t: f64 = 0.0\n        if c[i] > 0:\n            t += x[k[i]]\n            y[i] = t\n        s[0] += t",
        "if c[i] > 0:\n            y[i] += 1.0\n            s[0] += y[i]\n        else:\n            s[0] = s[0] + y[i] * 2.0",
    ];
    for statements in programs {
        let program = format!(
            "\ndef f(c: f32[n], k: i32[n], x: f64[m], y: inout[f64[n]], s: inout[f64[1]]):\n    \
             for i in range(n):\n        {statements}\n"
        );
        check(&program, &[("vectorize", &[text("i")])]);
    }
}
