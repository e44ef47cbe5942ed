//! Guards on a loop's own iterator that become its bounds, and conditions that must not.

use crate::compiled::scheduled::{check, text};
use taffeta_schedule::Arg;

/// Returns the kernel function.
fn kernel(c: &str) -> &str {
    let from = c.find("TAFFETA_KERNEL").expect("there is one");
    &c[from..from + c[from..].find("\n}\n").expect("it ends")]
}

const SCALED: &str = "
def f(x: f32[n], y: f32[n]) -> (f32[n], f32[n]):
    s = empty((n,), f32)
    d = empty((n,), f32)
    for i in range(n):
        s[i] = x[i] + y[i]
        d[i] = x[i] - y[i]
    return s, d
";

#[test]
fn guards_of_splits_become_upper_bounds() {
    let c = check(SCALED, &[("split", &[text("i"), Arg::from(16)])]);
    let c = kernel(&c);
    assert!(c.contains("i_i < taf_min_i64(16, n - i_o * 16); i_i++"), "{c}");
    assert!(!c.contains("if ("), "{c}");
}

/// Checks that a guard with a negated iterator becomes the lower bound.
#[test]
fn guards_of_negated_iterators_become_lower_bounds() {
    let program = "
def f(x: f32[n], k: static = 3) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        for j in range(8):
            if k - j <= 0 and i + j < n:
                y[i] += x[i + j]
                if j > 4:
                    y[i] *= 0.5
    return y
";
    let c = check(program, &[]);
    let c = kernel(&c);
    assert!(c.contains("j = 3; j < taf_min_i64(8, n - i); j++"), "{c}");
    assert!(c.contains("if (4 < j)") || c.contains("if (j > 4)"), "{c}");
}

/// Checks that guards stay if they cover part of the body, have an `else`, read memory, scale the iterator, or differ.
#[test]
fn other_guards_stay() {
    let program = "
def f(x: f32[n], k: i64[n]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        if i < 5:
            y[i] = x[i]
        y[i] += 1.0
    for i in range(n):
        if i < 6:
            y[i] += x[i]
        else:
            y[i] -= x[i]
    for i in range(n):
        if i < k[i]:
            y[i] += x[i]
    for i in range(n):
        if 2 * i < n:
            y[i] += x[i]
    for i in range(n):
        if i < 7:
            y[i] += x[i]
        if i < 8:
            y[i] += x[i]
    return y
";
    let c = check(program, &[]);
    let c = kernel(&c);
    assert_eq!(c.matches(" < n; ").count(), 6, "{c}");
    assert_eq!(c.matches("if (").count(), 6, "{c}");
}
