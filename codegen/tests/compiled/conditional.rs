//! Conditional loads beside each other, for which gcc before 12.4 and 13.3 takes the masks of other lanes (its bug
//! 114375): right all the same, and no other loop pays for it.

use crate::scheduled::{check, text};
use taffeta_schedule::Arg;

const SAID: &str = "#define TAFFETA_CONDITIONAL_LOADS";

/// What rows of `m` elements of two types do with a condition of their own for each.
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
fn lanes_load_under_their_own_conditions() {
    for (m, dtype) in [(3, "f64"), (8, "f64"), (16, "f64"), (7, "f32"), (16, "f32"), (5, "i64"), (7, "i32")] {
        for program in programs(m, dtype) {
            let code = check(&program, &[]);
            assert!(code.contains(SAID), "{code}");
        }
    }
}

#[test]
fn they_do_so_where_schedules_unroll_and_vectorise() {
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

/// One load in an iteration has no other lane beside it, and what is loaded in any case needs no mask.
#[test]
fn other_loops_keep_their_masks() {
    let rows = programs(8, "f64")[0].replace("range(8)", "range(n)").replace(", 8]", ", n]");
    let always = programs(8, "f64")[0].replace("> 2", "+ x[i, j] > 2.0");
    for program in [rows, always] {
        let code = check(&program, &[]);
        assert!(!code.contains(SAID), "{code}");
    }
}
