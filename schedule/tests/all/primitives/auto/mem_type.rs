//! `auto_mem_type`: scratch arrays that would be allocated in every iteration.

use super::decides;
use expect_test::expect;

/// Checks a prefix of `x` in every iteration, which is at most as long as `x`.
#[test]
fn arrays_of_varying_size_get_their_maximum_size() {
    let text = "
def f(x: f64[n], y: inout[f64[n]]):
    for i in range(n):
        t = empty((i + 1,), f64)
        for k in range(i + 1):
            t[k] = x[k] * x[i]
        for k in range(i + 1):
            y[i] += t[i - k] * t[k]
";
    decides(
        text,
        "auto_mem_type",
        &[("n", 100)],
        expect![[r#"
            `t`
                keep                                         17.8 µs
              * set_mem_type("t", "arena")                   7.84 µs
            for i in range(n):
                t = empty((i + 1,), f64)  # arena
                for k in range(i + 1):
                    t[k] = x[k] * x[i]
                for k in range(i + 1):
                    y[i] += t[i - k] * t[k]
        "#]],
    );
}

/// Checks that a size without a known bound, the square of an iterator, is allocated; an array whose size is fixed
/// needs no change.
#[test]
fn arrays_of_unbounded_size_stay_on_the_heap() {
    let text = "
def f(x: f64[n], y: inout[f64[n]]):
    for i in range(n):
        s = empty((n,), f64)
        t = empty((i * i + 1,), f64)
        for k in range(i * i + 1):
            t[k] = x[k % n] * x[i]
            s[k % n] = t[k]
        for k in range(i * i + 1):
            y[i] += t[k] * s[k % n]
";
    decides(
        text,
        "auto_mem_type",
        &[("n", 100)],
        expect![[r#"
        for i in range(n):
            s = empty((n,), f64)
            t = empty((i * i + 1,), f64)
            for k in range(i * i + 1):
                t[k] = x[k % n] * x[i]
                s[k % n] = t[k]
            for k in range(i * i + 1):
                y[i] += t[k] * s[k % n]
    "#]],
    );
}
