//! Rules of automatic scheduling, each on programs made for it, with what it decides.

use crate::common::{body, entry, same};
use expect_test::{Expect, expect};
use std::sync::Arc;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

/// What a rule decides about a program, for two threads and sizes that are expected, and what it makes of it.
fn decides(text: &str, method: &str, sizes: &[(&str, i64)], expected: Expect) {
    let (func, _) = entry(text);
    let mut target = Target::portable(2);
    target.sizes = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let mut s = Schedule::new(func.clone()).aimed_at(Arc::new(target));
    s.call(method, &[]).unwrap_or_else(|r| panic!("{}", r.message));
    same(&func, s.func());
    let decisions: String = s.decisions().iter().map(ToString::to_string).collect();
    expected.assert_eq(&format!("{decisions}{}", body(s.func())));
}

const PRODUCT: &str = "
def f(a: f32[n, n], b: f32[n, n], c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]
";

#[test]
fn the_innermost_loop_goes_through_what_lies_side_by_side() {
    decides(
        PRODUCT,
        "auto_reorder",
        &[("n", 500)],
        expect![[r#"
            `i`
                keep                                         128 ms
                reorder(["j", "k", "i"])                     241 ms
                reorder(["k", "j", "i"])                     241 ms
              * reorder(["i", "k", "j"])                     20.5 ms
                reorder(["k", "i", "j"])                     21.1 ms
                reorder(["j", "i", "k"])                     128 ms
            for i in range(n):
                for k in range(n):
                    for j in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    // Column sums; and rows, which are right.
    let sums = "
def f(a: f32[n, n], y: inout[f32[n]], z: inout[f32[n]]):
    for j in range(n):
        for i in range(n):
            y[j] += a[i, j]
    for i in range(n):
        for j in range(n):
            z[j] += a[i, j]
";
    decides(
        sums,
        "auto_reorder",
        &[("n", 2000)],
        expect![[r#"
            `j#1`
                keep                                         5.45 ms
              * reorder(["i#1", "j#1"])                      3.21 ms
            `i#2`
              * keep                                         3.21 ms
                reorder(["j#2", "i#2"])                      5.45 ms
            for i in range(n):
                for j in range(n):
                    y[j] += a[i, j]
            for i in range(n):
                for j in range(n):
                    z[j] += a[i, j]
        "#]],
    );
}

#[test]
fn orders_that_a_dependence_forbids_are_refused() {
    let text = "
def f(a: inout[f32[n, n]]):
    for j in range(1, n):
        for i in range(n - 1):
            a[i, j] = a[i + 1, j - 1] * 2
";
    decides(
        text,
        "auto_reorder",
        &[("n", 2000)],
        expect![[r#"
            `j`
              * keep                                         3.84 ms
                reorder(["i", "j"])                          refused: it would reverse a dependence
            for j in range(1, n):
                for i in range(n - 1):
                    a[i, j] = a[i + 1, j - 1] * 2.0
        "#]],
    );
}

#[test]
fn what_stands_between_loops_gets_loops_of_its_own() {
    let text = "
def f(x: f64[n, m], c: inout[f64[m, m]]):
    for i in range(m - 1):
        for j in range(i + 1, m):
            c[i, j] = 0
            for k in range(n):
                c[i, j] += x[k, i] * x[k, j]
            c[j, i] = c[i, j]
";
    decides(
        text,
        "auto_reorder",
        &[("n", 1000), ("m", 1000)],
        expect![[r#"
            `i`
                keep                                         961 ms
                reorder(["j", "k", "i"])                     refused: the nest is not perfect, and `k` may not run at all
                reorder(["k", "j", "i"])                     refused: the nest is not perfect, and `k` may not run at all
                reorder(["i", "k", "j"])                     refused: the nest is not perfect, and `k` may not run at all
                reorder(["k", "i", "j"])                     refused: the nest is not perfect, and `k` may not run at all
                reorder(["j", "i", "k"])                     refused: the nest is not perfect, and `k` may not run at all
              * fission("j", before="k"), fission("j#2", after="k"), reorder(["k", "j"]) 165 ms
            for i in range(m - 1):
                for j in range(i + 1, m):
                    c[i, j] = 0.0
                for k in range(n):
                    for j in range(i + 1, m):
                        c[i, j] += x[k, i] * x[k, j]
                for j in range(i + 1, m):
                    c[j, i] = c[i, j]
        "#]],
    );
}

#[test]
fn sums_and_functions_are_made_of_vector_instructions() {
    let text = "
def f(a: f32[n, n], b: f32[n], k: i32[n], y: inout[f32[n]], z: inout[f32[n]], w: inout[f32[n, 3]]):
    for i in range(n):
        for j in range(n):
            y[i] += a[i, j]
        for j in range(n):
            z[j] = exp(a[i, j])
        for j in range(3):
            w[i, j] += a[i, j]
        for j in range(n):
            y[i] += a[j, i]
        for j in range(n):
            y[k[j]] += a[i, j]
";
    decides(
        text,
        "auto_vectorize",
        &[("n", 1000)],
        expect![[r#"
            `j#1`
                keep                                         10.1 ms
              * vectorize("j#1")                             8.99 ms
            `j#2`
                keep                                         8.99 ms
              * vectorize("j#2")                             3.68 ms
            `j#3`
              * keep                                         3.68 ms
                vectorize("j#3")                             3.68 ms
            `j#4`
                keep                                         3.68 ms
              * vectorize("j#4")                             3.34 ms
            `j#5`
              * keep                                         3.34 ms
                vectorize("j#5")                             refused: iterations of `j#5` reduce into elements that change with them
            for i in range(n):
                for j in range(n):  # vectorize, partial(y +)
                    y[i] += a[i, j]
                for j in range(n):  # vectorize
                    z[j] = exp(a[i, j])
                for j in range(3):
                    w[i, j] += a[i, j]
                for j in range(n):  # vectorize, partial(y +)
                    y[i] += a[j, i]
                for j in range(n):
                    y[cast(k[j], i64)] += a[i, j]
        "#]],
    );
}

#[test]
fn large_products_are_done_by_a_library() {
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
    // Not a product; and one that reads what it writes.
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

#[test]
fn cheap_intermediates_are_computed_where_they_are_read() {
    let text = "
def f(x: f32[n, m]) -> f32[n, m]:
    t = empty((n, m), f32)
    u = empty((n, m), f32)
    y = empty((n, m), f32)
    for i in range(n):
        for j in range(m):
            t[i, j] = x[i, j] * 2
    for i in range(n):
        for j in range(m):
            u[i, j] = exp(t[i, j])
    for i in range(n):
        for j in range(m):
            y[i, j] = u[i, j] + u[i, m - 1 - j]
    return y
";
    decides(
        text,
        "auto_inline",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
            `t`
                keep                                         28.7 ms
              * inline("t")                                  21.7 ms
            y = empty((n, m), f32)
            u = empty((n, m), f32)
            for i in range(n):
                for j in range(m):
                    u[i, j] = exp(x[i, j] * 2.0)
            for i in range(n):
                for j in range(m):
                    y[i, j] = u[i, j] + u[i, m - 1 - j]
            return y
        "#]],
    );
}

#[test]
fn loops_that_use_the_same_tensors_are_one() {
    let text = "
def f(x: f32[n, m]) -> f32[n, m]:
    t = empty((n, m), f32)
    y = empty((n, m), f32)
    for i in range(n):
        for j in range(m):
            t[i, j] = x[i, j] * 2
    for i in range(n):
        for j in range(m):
            y[i, j] = t[i, j] + x[i, j]
    return y
";
    decides(
        text,
        "auto_fuse",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
            `i#1`
                keep                                         18.0 ms
              * fuse("i#1", "i#2"), fuse("j#1", "j#2"), contract("t") 7.20 ms
            y = empty((n, m), f32)
            for i in range(n):
                for j in range(m):
                    t = empty((), f32)
                    t = x[i, j] * 2.0
                    y[i, j] = t + x[i, j]
            return y
        "#]],
    );
    // Each could run on threads, and together they could not.
    let text = "
def f(x: f32[n], a: inout[f32[n]], b: inout[f32[n]]):
    for i in range(n):
        a[i] = x[i] * 2
    for i in range(n):
        b[i] = a[max(i - 1, 0)]
";
    decides(
        text,
        "auto_fuse",
        &[("n", 3000000)],
        expect![[r#"
            `i#1`
              * keep                                         4.80 ms
                fuse("i#1", "i#2")                           refused: the loop could not run on threads any more
            for i in range(n):
                a[i] = x[i] * 2.0
            for i in range(n):
                b[i] = a[max(i - 1, 0)]
        "#]],
    );
}

/// A convolution: no library knows it, blocks of channels and columns share what is loaded.
#[test]
fn contractions_are_summed_in_blocks() {
    let text = "
def f(x: f32[8, n + 2], w: f32[48, 8, 3], y: inout[f32[48, n]]):
    for o in range(48):
        for c in range(8):
            for a in range(3):
                for i in range(n):
                    y[o, i] += x[c, i + a] * w[o, c, a]
";
    decides(
        text,
        "auto_tile",
        &[("n", 1000)],
        expect![[r#"
        `o`
            keep                                         98.2 µs
            blocks of "o" 4, "i" 16 in registers         47.9 µs
            blocks of "o" 6, "i" 16 in registers         45.8 µs
          * blocks of "o" 4, "i" 24 in registers         44.7 µs
            blocks of "o" 3, "i" 32 in registers         46.1 µs
            blocks of "o" 2, "i" 32 in registers         50.3 µs
        for o_o in range(12):
            for i_o in range(n // 24):
                y_partial = empty((4, 24), f32)
                for y.partial.d0 in range(4):
                    for y.partial.d1 in range(24):
                        y_partial[y.partial.d0, y.partial.d1] = 0.0
                for c in range(8):
                    for a in range(3):
                        for i_i in range(24):  # vectorize
                            y_partial[0, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4, c, a]
                            y_partial[1, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 1, c, a]
                            y_partial[2, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 2, c, a]
                            y_partial[3, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 3, c, a]
                for y.partial.back.d0 in range(4):
                    for y.partial.back.d1 in range(24):
                        y[o_o * 4 + y.partial.back.d0, i_o * 24 + y.partial.back.d1] += y_partial[y.partial.back.d0, y.partial.back.d1]
            for i_o in range(n // 24, (n + 23) // 24):
                y_partial = empty((4, 24), f32)
                for y.partial.d0 in range(4):
                    for y.partial.d1 in range(24):
                        y_partial[y.partial.d0, y.partial.d1] = 0.0
                for c in range(8):
                    for a in range(3):
                        for i_i in range(24):  # vectorize
                            if i_o * 24 + i_i < n:
                                y_partial[0, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4, c, a]
                            if i_o * 24 + i_i < n:
                                y_partial[1, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 1, c, a]
                            if i_o * 24 + i_i < n:
                                y_partial[2, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 2, c, a]
                            if i_o * 24 + i_i < n:
                                y_partial[3, i_i] += x[c, i_o * 24 + i_i + a] * w[o_o * 4 + 3, c, a]
                for y.partial.back.d0 in range(4):
                    for y.partial.back.d1 in range(24):
                        if i_o * 24 + y.partial.back.d1 < n:
                            y[o_o * 4 + y.partial.back.d0, i_o * 24 + y.partial.back.d1] += y_partial[y.partial.back.d0, y.partial.back.d1]
    "#]],
    );
}

/// Sums of 16 columns in registers; those of all columns are too many.
#[test]
fn sums_of_a_few_elements_are_in_registers() {
    let text = "
def f(w: f32[n], h: f32[n, 16], y: inout[f32[16]], g: f32[n, m], z: inout[f32[m]]):
    for k in range(n):
        for j in range(16):
            y[j] += w[k] * h[k, j]
    for k in range(n):
        for j in range(m):
            z[j] += w[k] * g[k, j]
";
    decides(
        text,
        "auto_accumulate",
        &[("n", 1000), ("m", 20)],
        expect![[r#"
            `k#1`
                keep                                         8.12 µs
              * cache_reduction("k#1", "y"), vectorize("j#1") 6.82 µs
            y_partial = empty((16,), f32)
            for y.partial.d0 in range(16):
                y_partial[y.partial.d0] = 0.0
            for k in range(n):
                for j in range(16):  # vectorize
                    y_partial[j] += w[k] * h[k, j]
            for y.partial.back.d0 in range(16):
                y[y.partial.back.d0] += y_partial[y.partial.back.d0]
            del y_partial
            for k in range(n):
                for j in range(m):
                    z[j] += w[k] * g[k, j]
        "#]],
    );
}

#[test]
fn short_innermost_loops_are_unrolled() {
    let text = "
def f(a: f32[n, 3], b: f32[n, 40], y: inout[f32[n]]):
    for i in range(n):
        for j in range(3):
            y[i] += a[i, j]
    for i in range(n):
        for j in range(40):
            y[i] += b[i, j]
";
    decides(
        text,
        "auto_unroll",
        &[("n", 1000)],
        expect![[r#"
            `j#1`
                keep                                         19.7 µs
              * unroll("j#1")                                17.1 µs
            for i in range(n):
                y[i] += a[i, 0]
                y[i] += a[i, 1]
                y[i] += a[i, 2]
            for i in range(n):
                for j in range(40):
                    y[i] += b[i, j]
        "#]],
    );
}

#[test]
fn outer_loops_run_on_threads() {
    decides(
        PRODUCT,
        "auto_parallelize",
        &[("n", 500)],
        expect![[r#"
            `i`
                keep                                         163 ms
              * parallelize("i")                             81.4 ms
                parallelize("j")                             82.4 ms
                parallelize("k")                             201 s
            for i in range(n):  # parallel
                for j in range(n):
                    for k in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    // Too small; of a size that nobody knows; carried by the outer loop.
    decides(
        PRODUCT,
        "auto_parallelize",
        &[("n", 8)],
        expect![[r#"
            `i`
              * keep                                         775 ns
                parallelize("i")                             2.39 µs
                parallelize("j")                             16.4 µs
                parallelize("k")                             142 µs
            for i in range(n):
                for j in range(n):
                    for k in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    decides(
        PRODUCT,
        "auto_parallelize",
        &[],
        expect![[r#"
            `i`
                keep                                         1.30 s
              * parallelize("i", above=15)                   651 ms
                parallelize("j", above=63)                   653 ms
                parallelize("k", above=1023)                 1.30 s
            for i in range(n):  # parallel(above=15)
                for j in range(n):
                    for k in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    let carried = "
def f(a: inout[f32[t, n]]):
    for i in range(1, t):
        for j in range(n):
            a[i, j] = a[i - 1, j] + 1
";
    decides(
        carried,
        "auto_parallelize",
        &[("t", 10), ("n", 1000000)],
        expect![[r#"
            `i`
                keep                                         3.60 ms
                parallelize("i")                             refused: the loop `i` has a loop-carried dependence
              * parallelize("j")                             1.82 ms
            for i in range(1, t):
                for j in range(n):  # parallel
                    a[i, j] = a[i - 1, j] + 1.0
        "#]],
    );
    let few = "
def f(a: inout[f32[3, n]]):
    for i in range(3):
        for j in range(n):
            a[i, j] = exp(a[i, j])
";
    decides(
        few,
        "auto_parallelize",
        &[("n", 1000)],
        expect![[r#"
        `i`
            keep                                         19.5 µs
            parallelize("i")                             15.0 µs
          * parallelize(merge("i", "j"))                 11.8 µs
            parallelize("j")                             15.8 µs
        for i_j in range(n * 3):  # parallel
            a[i_j // n, i_j % n] = exp(a[i_j // n, i_j % n])
    "#]],
    );
}

/// Rows are shared out; what is stored of a row is not.
#[test]
fn loops_over_what_is_stored_are_left_alone() {
    let text = "
def f(a: f64[n, n] @ csr, x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(n):
            y[i] += a[i, j] * x[j]
    return y
";
    decides(
        text,
        "auto_vectorize",
        &[("n", 100000)],
        expect![[r#"
            `y.d0`
              * keep                                         8.55 ms
                vectorize("y.d0")                            8.55 ms
            y = empty((n,), f64)
            for y.d0 in range(n):
                y[y.d0] = 0.0
            for i in range(n):
                for j in range(n):
                    y[i] += a[i, j] * x[j]
            return y
        "#]],
    );
    decides(
        text,
        "auto_parallelize",
        &[("n", 100000)],
        expect![[r#"
            `y.d0`
                keep                                         8.55 ms
              * parallelize("y.d0")                          8.51 ms
            `i`
                keep                                         8.51 ms
              * parallelize("i")                             4.28 ms
            y = empty((n,), f64)
            for y.d0 in range(n):  # parallel
                y[y.d0] = 0.0
            for i in range(n):  # parallel
                for j in range(n):
                    y[i] += a[i, j] * x[j]
            return y
        "#]],
    );
}

/// A row of scratch memory that all iterations share in the text.
#[test]
fn iterations_get_tensors_of_their_own() {
    let text = "
def f(a: inout[f64[n, m]]):
    t = empty((m,), f64)
    for i in range(n):
        for j in range(m):
            t[j] = a[i, m - 1 - j]
        for j in range(m):
            a[i, j] = exp(t[j])
";
    decides(
        text,
        "auto_parallelize",
        &[("n", 1000), ("m", 100)],
        expect![[r#"
            `i`
                keep                                         666 µs
              * privatize("t", "i"), parallelize("i")        335 µs
                parallelize("j#1")                           2.66 ms
                parallelize("j#2")                           2.34 ms
            for i in range(n):  # parallel
                t = empty((m,), f64)
                for j in range(m):
                    t[j] = a[i, m - 1 - j]
                for j in range(m):
                    a[i, j] = exp(t[j])
        "#]],
    );
}

/// What the user has marked stays as it is.
#[test]
fn marks_of_users_stay() {
    let (func, _) = entry(PRODUCT);
    let mut target = Target::portable(2);
    target.sizes.insert("n".into(), 500);
    let mut s = Schedule::new(func.clone()).aimed_at(Arc::new(target));
    s.parallelize("j").unwrap_or_else(|r| panic!("{}", r.message));
    s.auto().unwrap_or_else(|r| panic!("{}", r.message));
    expect![[r#"
        for i in range(n):
            for j in range(n):  # parallel
                for k in range(n):  # vectorize, partial(c +)
                    c[i, j] += a[i, k] * b[k, j]
    "#]]
    .assert_eq(&body(s.func()));
}

/// The manual lists the rules as they run.
#[test]
fn the_manual_has_all_rules() {
    let manual = taffeta_schedule::documentation().find(|d| d.name == "auto").expect("it is registered");
    let mut from = 0;
    for rule in taffeta_schedule::auto::rules() {
        let at = manual.text[from..].find(&format!("| `s.{}()` |", rule.method));
        from += at.unwrap_or_else(|| panic!("{} is not in its place", rule.method));
    }
}

/// What loops over a structured tensor skip, they skip in the order of its levels: another order is no better for what
/// lies side by side.
#[test]
fn loops_stay_in_the_order_of_what_is_stored() {
    let text = "
def f(a: f64[n, m] @ csr, b: inout[f64[m, n]], x: f64[m], y: inout[f64[n]]):
    for i in range(n):
        for j in range(m):
            b[j, i] += a[i, j]
    for i in range(n):
        for j in range(m):
            y[i] += a[i, j] * x[j]
";
    let (func, _) = entry(text);
    for stored in [None, Some(4), Some(1_000_000)] {
        let mut target = Target::portable(2);
        target.sizes = [("n".to_string(), 100_000), ("m".to_string(), 100_000)].into();
        target.sizes.extend(stored.map(|n| ("a.stored".to_string(), n)));
        let mut s = Schedule::new(func.clone()).aimed_at(Arc::new(target));
        s.call("auto_reorder", &[]).unwrap_or_else(|r| panic!("{}", r.message));
        assert!(s.trace().steps.is_empty(), "{stored:?}: {}", body(s.func()));
    }
}

/// Lines come in the order in which the program prints them.
#[test]
fn loops_that_print_are_left_alone() {
    let text = "
def f(x: f64[n, n], y: inout[f64[n]]):
    for i in range(n):
        print(i)
        for j in range(n):
            y[i] += x[i, j]
";
    let threads = |text: &str| {
        let target = Target { sizes: [("n".to_string(), 100_000)].into(), ..Target::portable(2) };
        let mut s = Schedule::new(entry(text).0).aimed_at(Arc::new(target));
        s.call("auto", &[]).unwrap_or_else(|r| panic!("{}", r.message));
        body(s.func()).contains("for i in range(n):  # parallel")
    };
    assert!(!threads(text) && threads(&text.replace("        print(i)\n", "")));
}
