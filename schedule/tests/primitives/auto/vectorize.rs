//! `auto_vectorize`: innermost loops on lanes.

use super::decides;
use expect_test::expect;

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
                vectorize("j#3")                             not tried: at best 3.68 ms
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
