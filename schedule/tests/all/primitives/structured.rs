//! Loops that traverse structured tensors.

use crate::args;
use crate::primitives::common::{call, entry, list, refused};
use expect_test::expect;
use taffeta_ast::print;
use taffeta_schedule::{Arg, Schedule, Value};

const SPMV: &str = "
def f(A: f64[n, m] @ csr, x: f64[m], z: inout[f64[m]]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += A[i, j] * x[j]
    for k in range(m):
        z[k] = 2.0 * z[k]
    return y
";

#[test]
fn loops_over_stored_elements_take_marks_and_reorder() {
    let of = |steps: &[(&str, &[Arg])]| {
        let mut s = Schedule::new(entry(SPMV).0);
        for (method, arguments) in steps {
            call(&mut s, method, arguments).unwrap_or_else(|r| panic!("{method}: {r:?}"));
        }
        print::func(s.func())
    };
    let text = of(&[("reorder", args![list(&["j", "i"])]), ("vectorize", args!["i"])]);
    assert!(text.contains("for i in range(n):  # vectorize"), "{text}");
    // A loop that traverses no structured tensor allows every step.
    let text = of(&[("parallelize", args!["i"]), ("split", args!["k", 4]), ("unroll", args!["k~i"])]);
    assert!(text.contains("A: f64[n, m] @ format(dense, compressed)"), "{text}");
}

#[test]
fn loops_over_stored_elements_refuse_other_steps() {
    refused(
        SPMV,
        |s| call(s, "split", args!["j", 4]).map(drop),
        expect![[r#"
        schedule::unsupported (0): the loop `j` traverses the structured tensor `A`, and `split` would replace it
          `for j in range(m):` this loop
          help: only parallelize, vectorize and reorder apply to such loops
    "#]],
    );
    refused(
        SPMV,
        |s| call(s, "reverse", args!["i"]).map(drop),
        expect![[r#"
        schedule::unsupported (0): the loop `i` traverses the structured tensor `A`, and `reverse` would replace it
          `for i in range(n):` this loop
          help: only parallelize, vectorize and reorder apply to such loops
    "#]],
    );
    refused(
        SPMV,
        |s| call(s, "specialize", args!["i", "n > 2"]).map(drop),
        expect![[r#"
        schedule::unsupported (0): the loop `i` traverses the structured tensor `A`, and `specialize` would copy it
          `for i in range(n):` this loop
          help: only parallelize, vectorize and reorder apply to such loops
    "#]],
    );
    let pair = || list(&["i", "j"]);
    let tried: [(&str, &[Arg]); 6] = [
        ("merge", args!["i", "j"]),
        ("unroll", args!["j"]),
        ("blend", args!["j"]),
        ("polyhedral", args!["i"]),
        ("as_lib", args!["i"]),
        ("tile", args![pair(), Value::List(vec![Value::from(4), Value::from(4)])]),
    ];
    for (method, arguments) in tried {
        assert!(call(&mut Schedule::new(entry(SPMV).0), method, arguments).is_err(), "{method}");
    }
}

/// Checks that stores into two elements that share one value stay in order: the last one counts.
#[test]
fn stores_into_shared_values_stay_in_order() {
    refused(
        "
def f(A: f64[n, n] @ symmetric, x: f64[n]) -> f64[n, n] @ pattern(A):
    B = zeros((n, n), f64)
    for i in range(n):
        for j in range(n):
            B[i, j] = A[i, j] * x[j]
    return B
",
        |s| call(s, "reorder", args![list(&["j", "i"])]).map(drop),
        expect![[r#"
            schedule::dependence (6): it would reverse a dependence
              `B[i, j] = A[i, j] * x[j]` writes `B[i, j]` at i = 0, j = 1, then writes `B[i, j]` at i = 1, j = 0
              note: output dependence (WAW), carried by the loop `i`
              note: the element is B[0, 1] with n = 2
              note: one stored value of `B` stands for several elements
        "#]],
    );
}
