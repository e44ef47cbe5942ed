//! `auto_use_lib`: matrix products by a library, alone and cut out of loops.

use super::{PRODUCT, decides};
use expect_test::expect;

#[test]
fn large_products_call_a_library() {
    decides(
        PRODUCT,
        "auto_use_lib",
        &[("n", 500)],
        expect![[r#"
            `i`
                keep                                         128 ms
              * as_lib("i")                                  2.09 ms
            for i in range(n):  # library
                for j in range(n):
                    for k in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    decides(
        PRODUCT,
        "auto_use_lib",
        &[("n", 4)],
        expect![[r#"
            for i in range(n):
                for j in range(n):
                    for k in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    // A nest that is no product; and a product that reads its output.
    let others = "
def f(a: f32[n, n], b: f32[n, n], c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] = max(c[i, j], a[i, k] + b[k, j])
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] += c[i, k] * b[k, j]
";
    decides(
        others,
        "auto_use_lib",
        &[("n", 500)],
        expect![[r#"
            `i#2`
              * keep                                         291 ms
                as_lib("i#2")                                refused: `c` is read in the nest that writes it
            for i in range(n):
                for j in range(n):
                    for k in range(n):
                        c[i, j] = max(c[i, j], a[i, k] + b[k, j])
            for i in range(n):
                for j in range(n):
                    for k in range(n):
                        c[i, j] += c[i, k] * b[k, j]
        "#]],
    );
}

/// Checks two layers of a network, row by row.
#[test]
fn products_are_split_out_of_loops() {
    let text = "
def f(x: f32[n, d], w: f32[d, d], v: f32[d, d], y: inout[f32[n, d]]):
    for i in range(n):
        t = zeros((d,), f32)
        for k in range(d):
            for j in range(d):
                t[j] += x[i, k] * w[k, j]
        for j in range(d):
            t[j] = max(t[j], 0.0)
        for k in range(d):
            for j in range(d):
                y[i, j] += t[k] * v[k, j]
        for j in range(d):
            y[i, j] = exp(y[i, j])
";
    decides(
        text,
        "auto_use_lib",
        &[("n", 1000), ("d", 200)],
        expect![[r#"
            `i`
                keep                                         3.78 ms
              * as_lib of 2 products in "i", cut out         1.60 ms
            t = empty((n, d), f32)
            for i in range(n):
                for t.d0 in range(d):
                    t[i, t.d0] = 0.0
            for i in range(n):  # library
                for k in range(d):
                    for j in range(d):
                        t[i, j] += x[i, k] * w[k, j]
            for i in range(n):
                for j in range(d):
                    t[i, j] = max(t[i, j], 0.0)
            for i in range(n):  # library
                for k in range(d):
                    for j in range(d):
                        y[i, j] += t[i, k] * v[k, j]
            for i in range(n):
                for j in range(d):
                    y[i, j] = exp(y[i, j])
        "#]],
    );
}

/// Checks that a product whose rows depend on those of the step before is not cut out.
#[test]
fn products_with_dependent_iterations_are_not_split_out() {
    let text = "
def f(w: f32[d, d], h: inout[f32[n + 1, d, d]], c: inout[f32[n, d, d]]):
    for i in range(n):
        for r in range(d):
            for k in range(d):
                for j in range(d):
                    c[i, r, j] += h[i, r, k] * w[k, j]
            for j in range(d):
                h[i + 1, r, j] = tanh(c[i, r, j])
";
    decides(
        text,
        "auto_use_lib",
        &[("n", 1000), ("d", 200)],
        expect![[r#"
            `i`
                keep                                         958 ms
                as_lib("i")                                  refused: cannot separate the product from the statements beside it: the first half depends on the second half in earlier iterations of `i`
              * as_lib("r")                                  384 ms
            for i in range(n):
                for r in range(d):  # library
                    for k in range(d):
                        for j in range(d):
                            c[i, r, j] += h[i, r, k] * w[k, j]
                for r in range(d):
                    for j in range(d):
                        h[i + 1, r, j] = tanh(c[i, r, j])
        "#]],
    );
    let text = "
def f(w: f32[d, d], h: inout[f32[n + 1, d]], c: inout[f32[n, d]]):
    for i in range(n):
        for k in range(d):
            for j in range(d):
                c[i, j] += h[i, k] * w[k, j]
        for j in range(d):
            h[i + 1, j] = tanh(c[i, j])
";
    decides(
        text,
        "auto_use_lib",
        &[("n", 1000), ("d", 200)],
        expect![[r#"
        `i`
          * keep                                         4.79 ms
            as_lib("i")                                  refused: cannot separate the product from the statements beside it: the first half depends on the second half in earlier iterations of `i`
        `s.writes("c")[0]`
          * keep                                         4.79 ms
            as_lib of the product in "i", cut out        refused: the first half depends on the second half in earlier iterations of `i`
        for i in range(n):
            for k in range(d):
                for j in range(d):
                    c[i, j] += h[i, k] * w[k, j]
            for j in range(d):
                h[i + 1, j] = tanh(c[i, j])
    "#]],
    );
}

/// Checks that a batch of small products runs on threads as a whole: a library would synchronise the threads in each
/// product.
#[test]
fn batches_of_small_products_are_divided_among_threads() {
    let program = "
def f(a: f32[b, n, p], c: f32[b, p, m], y: inout[f32[b, n, m]]):
    for l in range(b):
        for i in range(n):
            for j in range(m):
                for k in range(p):
                    y[l, i, j] += a[l, i, k] * c[l, k, j]
";
    let sizes = |n| [("b", 64), ("n", n), ("p", n), ("m", n)];
    decides(
        program,
        "auto_use_lib",
        &sizes(128),
        expect![[r#"
        `l`
            keep                                         61.0 ms
            as_lib("l")                                  3.09 ms
          * as_lib("i")                                  2.93 ms
        for l in range(b):
            for i in range(n):  # library
                for j in range(m):
                    for k in range(p):
                        y[l, i, j] += a[l, i, k] * c[l, k, j]
    "#]],
    );
    decides(
        program,
        "auto_use_lib",
        &sizes(1000),
        expect![[r#"
        `l`
            keep                                         65.4 s
          * as_lib("l")                                  1.02 s
        for l in range(b):  # library
            for i in range(n):
                for j in range(m):
                    for k in range(p):
                        y[l, i, j] += a[l, i, k] * c[l, k, j]
    "#]],
    );
}

/// Checks products as gradients have them: a factor computed into a scalar, and two products in one nest.
#[test]
fn scalars_do_not_hide_products() {
    let text = "
def f(alpha: f64, a: f64[n, m], b: f64[m, p], g: f64[n, p], da: inout[f64[n, m]], db: inout[f64[m, p]]):
    for i in range(n):
        for k in range(m):
            for j in range(p):
                part = alpha * a[i, k]
                own = g[i, j] * b[k, j]
                db[k, j] += g[i, j] * part
                da[i, k] += own * alpha
";
    decides(
        text,
        "auto_use_lib",
        &[("n", 240), ("m", 240), ("p", 240)],
        expect![[r#"
            `i`
                keep                                         2.63 ms
              * as_lib of 2 products in "i", cut out         1.02 ms
            for i in range(n):  # library
                for k in range(m):
                    for j in range(p):
                        db[k, j] += g[i, j] * (alpha * a[i, k])
            for i in range(n):  # library
                for k in range(m):
                    for j in range(p):
                        da[i, k] += g[i, j] * b[k, j] * alpha
        "#]],
    );
}

/// Checks that a library, which has threads of its own, is compared with the enclosing loop of the products on threads.
/// Products of rows as short as vectors are no faster by a library, and the intermediate values would go through
/// memory.
#[test]
fn loops_are_compared_with_libraries_on_threads() {
    let text = "
def f(x: f32[n, d], w: f32[d, d], v: f32[d, d], y: inout[f32[n, d]]):
    for i in range(n):
        t = zeros((d,), f32)
        for k in range(d):
            for j in range(d):
                t[j] += x[i, k] * w[k, j]
        for k in range(d):
            for j in range(d):
                y[i, j] += t[k] * v[k, j]
";
    decides(
        text,
        "auto_use_lib",
        &[("n", 100_000), ("d", 8)],
        expect![[r#"
        `i`
          * keep                                         1.98 ms
            as_lib of 2 products in "i", cut out         1.99 ms
        `s.writes("t")[1]`
          * keep                                         1.98 ms
            as_lib of the product in "i", cut out        2.11 ms
        `s.writes("y")[0]`
          * keep                                         1.98 ms
            as_lib of the product in "i", cut out        2.06 ms
        for i in range(n):
            t = empty((d,), f32)
            for t.d0 in range(d):
                t[t.d0] = 0.0
            for k in range(d):
                for j in range(d):
                    t[j] += x[i, k] * w[k, j]
            for k in range(d):
                for j in range(d):
                    y[i, j] += t[k] * v[k, j]
    "#]],
    );
}
