//! `auto_reorder`: the order of nests, with fission of imperfect ones.

use super::{PRODUCT, decides};
use crate::primitives::common::{body, entry};
use expect_test::expect;
use std::sync::Arc;
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

#[test]
fn the_innermost_loop_has_contiguous_accesses() {
    decides(
        PRODUCT,
        "auto_reorder",
        &[("n", 500)],
        expect![[r#"
            `i`
                keep                                         128 ms
              * reorder(["i", "k", "j"])                     20.5 ms
                not tried, 21.1 ms at best: reorder(["j", "k", "i"]) … reorder(["j", "i", "k"]) (4 options)
            for i in range(n):
                for k in range(n):
                    for j in range(n):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
    );
    // Column sums; and rows, which are in the right order.
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
                keep                                         25.6 ms
              * reorder(["i#1", "j#1"])                      3.21 ms
            `i#2`
              * keep                                         3.21 ms
                not tried, 25.6 ms at best: reorder(["j#2", "i#2"])
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
fn orders_against_dependences_are_not_chosen() {
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
              * keep                                         24.0 ms
                reorder(["i", "j"])                          refused: it would reverse a dependence
            for j in range(1, n):
                for i in range(n - 1):
                    a[i, j] = a[i + 1, j - 1] * 2.0
        "#]],
    );
}

#[test]
fn statements_between_loops_get_separate_loops() {
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
                keep                                         6.00 s
                reorder(["j", "k", "i"])                     refused: the nest is not perfect, and `k` may not run at all
                reorder(["k", "j", "i"])                     refused: the nest is not perfect, and `k` may not run at all
                reorder(["i", "k", "j"])                     refused: the nest is not perfect, and `k` may not run at all
                reorder(["k", "i", "j"])                     refused: the nest is not perfect, and `k` may not run at all
                reorder(["j", "i", "k"])                     refused: the nest is not perfect, and `k` may not run at all
              * fission("j", before="k"), fission("j#2", after="k"), reorder(["k", "j"]) 166 ms
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

/// Checks that loops over a structured tensor stay in the order of its levels, which lets them skip elements that are
/// not stored: contiguous accesses in another order are not worth more.
#[test]
fn loops_stay_in_storage_order() {
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

/// Checks that the columns of a matrix are processed row by row, all columns at once (PolyBench's gramschmidt).
#[test]
fn loops_along_columns_are_split_and_reordered() {
    let text = "
def f(q: f64[n], a: inout[f64[n, m]], r: inout[f64[m]]):
    for j in range(m):
        r[j] = 0.0
        for i in range(n):
            r[j] += q[i] * a[i, j]
        for i in range(n):
            a[i, j] -= q[i] * r[j]
";
    decides(
        text,
        "auto_reorder",
        &[("n", 1000), ("m", 1200)],
        expect![[r#"
            `j`
                keep                                         2.51 ms
              * fission("j") around each loop in it, fission("j", before="i#1"), fission("j#2", after="i#1"), reorder(["i#1", "j#2"]), reorder(["i#2", "j#3"]) 1.93 ms
            for j in range(m):
                r[j] = 0.0
            for i in range(n):
                for j in range(m):
                    r[j] += q[i] * a[i, j]
            for i in range(n):
                for j in range(m):
                    a[i, j] += -(q[i] * r[j])
        "#]],
    );
}

/// Checks a nest that cannot be reordered: the second loop needs the whole column of the first, and the next column
/// needs its output.
#[test]
fn dependent_columns_are_left_alone() {
    let text = "
def f(q: f64[n], a: inout[f64[n, m]], r: inout[f64[m]]):
    for j in range(1, m):
        for i in range(n):
            r[j] += q[i] * a[i, j]
        for i in range(n):
            a[i, j] -= a[i, j - 1] * r[j - 1]
        r[j] = r[j] / 2.0
";
    decides(
        text,
        "auto_reorder",
        &[("n", 1000), ("m", 1200)],
        expect![[r#"
            `j`
              * keep                                         2.51 ms
                fission("j") around each loop in it          refused: the first half depends on the second half in earlier iterations of `j#2`
            for j in range(1, m):
                for i in range(n):
                    r[j] += q[i] * a[i, j]
                for i in range(n):
                    a[i, j] += -(a[i, j - 1] * r[j - 1])
                r[j] = r[j] / 2.0
        "#]],
    );
}
