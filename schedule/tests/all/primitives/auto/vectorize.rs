//! `auto_vectorize`: innermost loops on lanes.

use super::decides;
use expect_test::expect;

#[test]
fn sums_and_functions_are_vectorised() {
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
                not tried, 3.68 ms at best: vectorize("j#3")
            `j#4`
                keep                                         3.68 ms
              * vectorize("j#4")                             3.34 ms
            `j#5`
              * keep                                         3.34 ms
                vectorize("j#5")                             refused: vector lanes of the loop `j#5` cannot share a reduction
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

/// Checks that integers with a stride are loaded one by one: C compilers assemble vectors of them in memory.
#[test]
fn strided_integers_are_not_vectorised() {
    let program = |dtype: &str| {
        format!(
            "
def f(a: {dtype}[n, n], y: inout[{dtype}[n]]):
    for i in range(n):
        for k in range(n):
            y[i] = max(y[i], a[i, k] + a[k, i])
"
        )
    };
    decides(
        &program("i32"),
        "auto_vectorize",
        &[("n", 100)],
        expect![[r#"
            `k`
              * keep                                         13.2 µs
                not tried, 17.0 µs at best: vectorize("k")
            for i in range(n):
                for k in range(n):
                    y[i] = max(y[i], a[i, k] + a[k, i])
        "#]],
    );
    decides(
        &program("f32"),
        "auto_vectorize",
        &[("n", 100)],
        expect![[r#"
        `k`
            keep                                         13.2 µs
          * vectorize("k")                               4.97 µs
        for i in range(n):
            for k in range(n):  # vectorize, partial(y max)
                y[i] = max(y[i], a[i, k] + a[k, i])
    "#]],
    );
}

/// Checks that masked stores with a stride are not vectorised: most machines have no instruction for them, and C
/// compilers give each lane a branch.
#[test]
fn strided_masked_stores_are_not_vectorised() {
    let text = "
def f(x: f32[n, m], y: inout[f32[m, n, 2]]):
    for j in range(m):
        for i in range(n):
            if 2 * i + j < n:
                y[j, i, 0] = 2.0 * exp(x[i, j])
";
    decides(
        text,
        "auto_vectorize",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
        for j in range(m):
            for i in range(n):
                if i * 2 + j < n:
                    y[j, i, 0] = 2.0 * exp(x[i, j])
    "#]],
    );
    // The condition is the same for all lanes.
    let text = "
def f(x: f32[n, m], y: inout[f32[m, n, 2]]):
    for j in range(m):
        for i in range(n):
            if j < 7:
                y[j, i, 0] = 2.0 * exp(x[i, j])
";
    decides(
        text,
        "auto_vectorize",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
        `i`
            keep                                         55.6 ms
          * vectorize("i")                               54.1 ms
        for j in range(m):
            for i in range(n):  # vectorize
                if j < 7:
                    y[j, i, 0] = 2.0 * exp(x[i, j])
    "#]],
    );
}

/// Checks the prices of branches by short-circuit evaluation against lanes that evaluate everything, and of the loop of
/// checks before lanes whose indices are products of iterators.
#[test]
fn unconditional_work_of_lanes_is_priced() {
    let text = "
def f(box: f32[n, 4], t: f32[n, 9], x: f32, y: f32, near: inout[f32[1]], s: inout[f32[m, 10]], q: f32[n], l: f32[n]):
    for i in range(n):
        if box[i, 0] <= x and x <= box[i, 1] and box[i, 2] <= y and y <= box[i, 3]:
            near[0] = max(near[0], t[i, 2] + t[i, 5] + t[i, 8])
    for p in range(m):
        for k in range(9):
            for j in range(k + 1, 10):
                s[p, j] += q[k] * l[k * 10 - k * (k + 1) // 2 + j]
";
    decides(
        text,
        "auto_vectorize",
        &[("n", 3000), ("m", 3000)],
        expect![[r#"
        `i`
          * keep                                         98.9 µs
            not tried, 104 µs at best: vectorize("i")
        `j`
          * keep                                         98.9 µs
            not tried, 139 µs at best: vectorize("j")
        for i in range(n):
            if box[i, 0] <= x and x <= box[i, 1] and box[i, 2] <= y and y <= box[i, 3]:
                near[0] = max(near[0], t[i, 2] + t[i, 5] + t[i, 8])
        for p in range(m):
            for k in range(9):
                for j in range(k + 1, 10):
                    s[p, j] += q[k] * l[k * 10 - k * (k + 1) // 2 + j]
    "#]],
    );
}
