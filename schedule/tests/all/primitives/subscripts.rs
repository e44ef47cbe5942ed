//! Subscripts that contain typed integers, which may wrap: proofs about them, and messages where there is no proof.

use crate::args;
use crate::primitives::common::{call, entry, refused};
use expect_test::expect;
use taffeta_schedule::Schedule;

/// Checks that each of the steps is accepted on the program as it is written.
fn free(text: &str) {
    let (func, _) = entry(text);
    for step in ["parallelize", "vectorize", "reverse"] {
        let mut s = Schedule::new(func.clone());
        if let Err(r) = call(&mut s, step, args!["i"]) {
            panic!("{step}: {} {:?}\n{text}", r.message, r.notes);
        }
    }
}

#[test]
fn typed_integers_in_subscripts() {
    // A name for a number, before the loop and in it.
    free(
        "def f(y: inout[f32[n]]):\n    h: i64 = n // 2\n    for i in range(n // 2):\n        y[h + i] = y[h + i] + 1\n",
    );
    free("def f(y: inout[f32[2 * n]]):\n    for i in range(n):\n        p: i64 = 2 * i\n        y[p] = y[p] * 3\n");
    free(
        "def f(y: inout[f32[4 * n]]):\n    for i in range(n):\n        p: i64 = 2 * i\n        q: i64 = p + p + 1\n        \
         y[q] = y[q - 1] * 3\n",
    );
    // Parameters with unknown values. In a type of w bits, sums repeat after 2^w iterations.
    for (dtype, most) in [("i8", 256), ("u8", 256), ("i32", 1 << 32), ("u32", 1 << 32), ("i64", 1i64 << 47)] {
        for (index, factor) in [("lo + i", 1), ("2 * i - lo", 2), ("lo - i", 1)] {
            let program = |most: i64| {
                format!(
                    "def f(y: inout[f32[n]], lo: {dtype}):\n    assert n <= {most}\n    for i in range(n):\n        \
                     y[{index}] = 1\n"
                )
            };
            free(&program(most / factor));
            let (func, _) = entry(&program(most * 2));
            let refused = call(&mut Schedule::new(func), "parallelize", args!["i"]).is_err();
            assert_eq!(refused, dtype != "i64", "{dtype} {index}");
        }
    }
    let nested = "def f(y: inout[f32[n, m]], lo: i64):\n    for i in range(n):\n        for j in range(m):\n            \
         y[i + lo, j - lo] = y[i + lo, j - lo] + 1\n";
    for step in ["parallelize", "reverse"] {
        assert!(call(&mut Schedule::new(entry(nested).0), step, args!["i"]).is_ok(), "{step}");
    }
    free("def f(y: inout[f32[n]], lo: i32):\n    for i in range(n):\n        y[cast(lo, i64) + i] = 1\n");
    free("def f(y: inout[f32[n]], k: i64[m]):\n    for i in range(n):\n        y[k[0] - i] = 1\n");
    free("def f(y: inout[f32[n]], k: i64[m]):\n    h: i64 = k[0]\n    for i in range(n):\n        y[h - i] = 1\n");
}

#[test]
fn changed_values_are_not_replaced_by_their_definition() {
    // `p` has another value at the read than at its definition.
    let text = "
def f(y: inout[f32[n]]):
    for i in range(n):
        p: i64 = i
        p = p // 2
        y[p] = y[p] + i
        y[p] = y[p] * 2
";
    let (func, _) = entry(text);
    for step in ["parallelize", "vectorize", "reverse"] {
        assert!(call(&mut Schedule::new(func.clone()), step, args!["i"]).is_err(), "{step}");
    }
    // An operand of its definition changes.
    let text = "
def f(y: inout[f32[n]], k: inout[i64[n]]):
    for i in range(n):
        p: i64 = k[0] + i
        k[0] = 3 - i
        y[p] = i
";
    let (func, _) = entry(text);
    assert!(call(&mut Schedule::new(func), "reverse", args!["i"]).is_err());
}

#[test]
fn refusals_name_nonaffine_subscripts() {
    refused(
        "def f(y: inout[f32[n]], h: i64):\n    for i in range(n):\n        y[h * i] = 3\n",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `y[h * i] = 3` writes `y[h * i]`, then writes `y[h * i]`
              note: output dependence (WAW), carried by the loop `i`
              note: cannot analyse the subscript `h * i`: it may wrap around, or is not affine; if it cannot wrap around, add an assertion: `assert 0 <= h and h < n`
        "#]],
    );
    refused(
        "def f(y: inout[f32[n]], lo: i32):\n    for i in range(n):\n        y[lo + i] = 3\n",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `y[lo + i] = 3` writes `y[lo + cast(i, i32)]`, then writes `y[lo + cast(i, i32)]`
              note: output dependence (WAW), carried by the loop `i`
              note: the subscript `lo + cast(i, i32)` is computed in i32, where it may wrap around: bound the range of the loop, `assert n <= 2147483647`, or compute it in i64, `cast(…, i64)`
        "#]],
    );
    // Multiples of an even number may coincide.
    refused(
        "def f(y: inout[f32[n]], a: i64, b: i64):\n    for i in range(a, b):\n        y[6 * i] = i\n",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `y[6 * i] = i` writes `y[i * 6]`, then writes `y[i * 6]`
              note: output dependence (WAW), carried by the loop `i`
              note: cannot analyse the subscript `i * 6`: it may wrap around, or is not affine
        "#]],
    );
}
