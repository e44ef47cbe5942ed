use crate::args;
use crate::primitives::common::{call, check, refused};
use expect_test::{Expect, expect};
use taffeta_schedule::{Refusal, Schedule};

fn outermost(s: &mut Schedule) -> Result<(), Refusal> {
    call(s, "as_lib", args!["i"]).map(drop)
}

/// Checks that the step is accepted, with its note on the product.
fn taken(text: &str, expected: Expect, note: Expect) {
    let mut said = String::new();
    check(
        text,
        |s| {
            outermost(s)?;
            said = s.trace().steps[0].notes.join("\n");
            Ok(())
        },
        expected,
    );
    note.assert_eq(&said);
}

fn not_taken(text: &str, expected: Expect) {
    refused(text, outermost, expected);
}

#[test]
fn statements_beside_the_sum_are_split_off() {
    taken(
        "
def f(a: f32[n, p], b: f32[p, m], c: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            c[i, j] = 0
            for k in range(p):
                c[i, j] += a[i, k] * b[k, j]
            c[i, j] = max(c[i, j], 0)
",
        expect![[r#"
            for i in range(n):
                for j in range(m):
                    c[i, j] = 0.0
            for i in range(n):  # library
                for j in range(m):
                    for k in range(p):
                        c[i, j] += a[i, k] * b[k, j]
            for i in range(n):
                for j in range(m):
                    c[i, j] = max(c[i, j], 0.0)
        "#]],
        expect!["`c[i, j] += a[i, k] * b[k, j]` is a matrix product: rows `i#2`, columns `j#2`, sum `k`"],
    );
}

#[test]
fn a_sum_in_a_local_scalar_becomes_a_matrix() {
    taken(
        "
def f(a: f32[n, p], b: f32[p, m], bias: f32[m], c: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            t = zeros((), f32)
            for k in range(p):
                t += a[i, k] * b[k, j]
            c[i, j] = t + bias[j]
",
        expect![[r#"
            t = empty((n, m), f32)
            for i in range(n):
                for j in range(m):
                    t[i, j] = 0.0
            for i in range(n):  # library
                for j in range(m):
                    for k in range(p):
                        t[i, j] += a[i, k] * b[k, j]
            for i in range(n):
                for j in range(m):
                    c[i, j] = t[i, j] + bias[j]
        "#]],
        expect!["`t[i, j] += a[i, k] * b[k, j]` is a matrix product: rows `i#2`, columns `j#2`, sum `k`"],
    );
}

#[test]
fn transposed_and_scaled_products_in_any_loop_order() {
    check(
        "
def f(a: f64[p, n], b: f64[m, p], s: f64, c: inout[f64[m, n]]):
    for k in range(1, p):
        for i in range(n):
            for j in range(m - 1, -1, -1):
                c[j, i] -= 2 * b[j, k] * s * a[k, i]
",
        |s| call(s, "as_lib", args!["k"]).map(drop),
        expect![[r#"
            for k in range(1, p):  # library
                for i in range(n):
                    for j in range(m - 1, -1, -1):
                        c[j, i] += -(2.0 * b[j, k] * s * a[k, i])
        "#]],
    );
}

#[test]
fn batches_and_further_sums_are_outer_loops() {
    check(
        "
def f(x: f32[h, n, d, e], y: f32[h, m, d, e], c: inout[f32[h, n, m]]):
    for b in range(h):
        for i in range(n):
            for j in range(m):
                for k in range(d):
                    for l in range(e):
                        c[b, i, j] += x[b, i, k, l] * y[b, j, k, l]
",
        |s| {
            call(s, "as_lib", args!["b"])?;
            assert_eq!(
                s.trace().steps[0].notes,
                [
                    "`c[b, i, j] += x[b, i, k, l] * y[b, j, k, l]` is a matrix product: rows `i`, columns `j`, sum `l`; one for each \
                  iteration of `b`, `k`"
                ]
            );
            Ok(())
        },
        expect![[r#"
            for b in range(h):  # library
                for i in range(n):
                    for j in range(m):
                        for k in range(d):
                            for l in range(e):
                                c[b, i, j] += x[b, i, k, l] * y[b, j, k, l]
        "#]],
    );
}

#[test]
fn vectors_are_matrices_of_one_column() {
    taken(
        "
def f(a: f64[n, m], x: f64[m], y: inout[f64[n]]):
    for i in range(n):
        for k in range(m):
            y[i] += x[k] * a[i, k]
",
        expect![[r#"
            for i in range(n):  # library
                for k in range(m):
                    y[i] += x[k] * a[i, k]
        "#]],
        expect!["`y[i] += x[k] * a[i, k]` is a matrix product: rows one, columns `i`, sum `k`"],
    );
}

#[test]
fn windows_of_a_signal_are_rows_of_a_matrix() {
    taken(
        "
def f(x: f32[n + p], w: f32[p, m], c: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            for k in range(p):
                c[i, j] += x[i + k] * w[k, j]
",
        expect![[r#"
            for i in range(n):  # library
                for j in range(m):
                    for k in range(p):
                        c[i, j] += x[i + k] * w[k, j]
        "#]],
        expect!["`c[i, j] += x[i + k] * w[k, j]` is a matrix product: rows `i`, columns `j`, sum `k`"],
    );
}

#[test]
fn disjoint_parts_of_one_tensor() {
    taken(
        "
def f(x: inout[f32[3, n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                x[0, i, j] += x[1, i, k] * x[2, k, j]
",
        expect![[r#"
            for i in range(n):  # library
                for j in range(n):
                    for k in range(n):
                        x[0, i, j] += x[1, i, k] * x[2, k, j]
        "#]],
        expect!["`x[0, i, j] += x[1, i, k] * x[2, k, j]` is a matrix product: rows `i`, columns `j`, sum `k`"],
    );
    not_taken(
        "
def f(x: inout[f32[n, n]], y: f32[n, n]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                x[i, j] += x[i, k] * y[k, j]
",
        expect![[r#"
            schedule::dependence (5): `x` is read in the nest that writes it
              `x[i, j] += x[i, k] * y[k, j]` updates `x[i, j]` at i = 0, j = 0, k = 0, then reads `x[i, k]` at i = 0, j = 1, k = 0
              note: flow dependence (RAW), carried by the loop `j`
              note: the element is x[0, 0] with n = 2
              help: copy the elements that are read into another tensor first (`s.cache`)
        "#]],
    );
}

#[test]
fn products_in_parallel_loops_run_on_one_thread() {
    check(
        "
def f(x: f32[h, n, d], y: f32[h, d, m], c: inout[f32[h, n, m]]):
    for b in range(h):
        for i in range(n):
            for j in range(m):
                for k in range(d):
                    c[b, i, j] += x[b, i, k] * y[b, k, j]
",
        |s| {
            call(s, "parallelize", args!["b"])?;
            outermost(s)?;
            assert_eq!(
                s.trace().steps[1].notes[1],
                "it is in a parallel loop: each product runs on one thread, by Taffeta's own kernel"
            );
            Ok(())
        },
        expect![[r#"
            for b in range(h):  # parallel
                for i in range(n):  # library
                    for j in range(m):
                        for k in range(d):
                            c[b, i, j] += x[b, i, k] * y[b, k, j]
        "#]],
    );
}

#[test]
fn nests_must_be_loops_around_one_statement() {
    not_taken(
        "
def f(a: f32[n, n], b: f32[n, n], c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(i):
                c[i, j] += a[i, k] * b[k, j]
",
        expect![[r#"
            schedule::illegal (1): the nest is not a matrix product: the bounds of `k` change with `i`: the matrices are not rectangular
              `for k in range(i):` this loop
        "#]],
    );
    not_taken(
        "
def f(a: f32[n, n], b: f32[n, n], c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                if a[i, k] > 0:
                    c[i, j] += a[i, k] * b[k, j]
",
        expect![[r#"
            schedule::illegal (1): the nest is not a matrix product: there is a condition in the nest
              `if a[i, k] > 0:` here
        "#]],
    );
    // The statement after the sum writes an operand of the next sum.
    not_taken(
        "
def f(a: inout[f32[n, n]], b: f32[n, n], c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]
            a[i, 0] = c[i, j]
",
        expect![[r#"
            schedule::dependence (1): cannot separate the product from the statements beside it: the first half depends on the second half in earlier iterations of `j`
              `a[i, 0] = c[i, j]` first writes `a[i, 0]` at i = 0, j = 0
              `c[i, j] += a[i, k] * b[k, j]` then reads `a[i, k]` at i = 0, j = 1, k = 0
              note: flow dependence (RAW), carried by the loop `j`
              note: the element is a[0, 0] with n = 2
        "#]],
    );
    refused(
        "
def f(a: f32[n, n], b: f32[n, n], c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            outermost(s)
        },
        expect![[r#"
            schedule::illegal (1): the loop `i` is already parallel
              `for i in range(n):` this loop
              help: take this step before `parallelize`, `vectorize`, `unroll` and `blend`
        "#]],
    );
}

#[test]
fn statements_must_be_sums_of_products() {
    let with = |update: &str, expected: Expect| {
        not_taken(
            &format!(
                "
def f(a: f32[n, n], b: f32[n, n], g: f64[n, n], c: inout[f32[n, n]], d: inout[i32[n, n]], e: i32[n, n], w: inout[f64[n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                {update}
"
            ),
            expected,
        );
    };
    with(
        "c[i, j] = max(c[i, j], a[i, k] * b[k, j])",
        expect![[r#"
        schedule::illegal (2): the nest is not a matrix product: the statement in the nest is not a sum `c[…] += …`
          `c[i, j] = max(c[i, j], a[i, k] * b[k, j])` this statement
    "#]],
    );
    with(
        "d[i, j] += e[i, k] * e[k, j]",
        expect![[r#"
        schedule::illegal (2): the nest is not a matrix product: expected elements of type f32 or f64, found `d` with elements of type i32
          `d[i, j] += e[i, k] * e[k, j]` this sum
    "#]],
    );
    with(
        "w[i, j] += cast(a[i, k], f64) * g[k, j]",
        expect![[r#"
        schedule::illegal (2): the nest is not a matrix product: the factor `cast(a[i, k], f64)` is converted from f32 to f64
          `w[i, j] += cast(a[i, k], f64) * g[k, j]` this sum
          help: give all three matrices the same type
    "#]],
    );
    with(
        "c[i, j] += a[i, k] + b[k, j]",
        expect![[r#"
        schedule::illegal (2): the nest is not a matrix product: `a[i, k] + b[k, j]` is not an element of a tensor
          `c[i, j] += a[i, k] + b[k, j]` this sum
          help: write a product of two elements, and of values that do not change in the nest
    "#]],
    );
    with(
        "c[i, j] += a[i, k] * a[i, j] * b[k, j]",
        expect![[r#"
        schedule::illegal (2): the nest is not a matrix product: expected a product of two elements that change in the nest, found 3
          `c[i, j] += a[i, k] * a[i, j] * b[k, j]` this sum
    "#]],
    );
}

#[test]
fn subscripts_must_be_affine_and_every_loop_used() {
    let with = |c: &str, a: &str, b: &str, expected: Expect| {
        not_taken(
            &format!(
                "
def f(a: f32[2 * n, 2 * n], b: f32[n, n], at: i64[n], c: inout[f32[2 * n, n]]):
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[{c}] += a[{a}] * b[{b}]
"
            ),
            expected,
        );
    };
    with(
        "i, j",
        "i, k",
        "at[k], j",
        expect![[r#"
        schedule::illegal (3): the nest is not a matrix product: the index `at[k]` of `b` is not affine in `k`
          `c[i, j] += a[i, k] * b[at[k], j]` this sum
    "#]],
    );
    with(
        "i, j",
        "(i * k) % n, k",
        "k, j",
        expect![[r#"
        schedule::illegal (3): the nest is not a matrix product: the index `i * k % n` of `a` is not affine in `i`
          `c[i, j] += a[(i * k) % n, k] * b[k, j]` this sum
    "#]],
    );
    with(
        "i + j, 0",
        "i, k",
        "k, j",
        expect![[r#"
        schedule::illegal (3): the nest is not a matrix product: the index `i + j` of `c` mixes `i` and `j`
          `c[i + j, 0] += a[i, k] * b[k, j]` this sum
    "#]],
    );
    // No sum, no rows, and no columns.
    with(
        "i, j",
        "i, 0",
        "0, j",
        expect![[r#"
        schedule::illegal (4): the nest is not a matrix product: no loop of `i`, `j`, `k` sums: expected a loop that both factors depend on and `c` does not
          `c[i, j] += a[i, 0] * b[0, j]` this sum
    "#]],
    );
    with(
        "0, 0",
        "i, k",
        "i, k",
        expect![[r#"
        schedule::illegal (4): the nest is not a matrix product: no loop of `i`, `j`, `k` goes over rows or columns: expected a loop that `c` and one of the factors depend on, and the other factor does not
          `c[0, 0] += a[i, k] * b[i, k]` this sum
          help: use `s.vectorize` for a sum of products
    "#]],
    );
}

#[test]
fn accesses_must_be_in_range() {
    not_taken(
        "
def f(a: f32[n, q], b: f32[p, m], c: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            for k in range(p):
                c[i, j] += a[i, k] * b[k, j]
",
        expect![[r#"
            schedule::illegal (6): `a[i, k]` is not proved to be in range
              `c[i, j] += a[i, k] * b[k, j]` this sum
              help: assert before the loops that the sizes fit: `assert k_a == k_b`
        "#]],
    );
    taken(
        "
def f(a: f32[n, q], b: f32[p, m], c: inout[f32[n, m]]):
    assert q == p
    for i in range(n):
        for j in range(m):
            for k in range(p):
                c[i, j] += a[i, k] * b[k, j]
",
        expect![[r#"
            assert q == p
            for i in range(n):  # library
                for j in range(m):
                    for k in range(p):
                        c[i, j] += a[i, k] * b[k, j]
        "#]],
        expect!["`c[i, j] += a[i, k] * b[k, j]` is a matrix product: rows `i`, columns `j`, sum `k`"],
    );
}

#[test]
fn later_steps_keep_the_product() {
    const TEXT: &str = "
def f(x: f32[h, n, d], y: f32[h, d, m], c: inout[f32[h, n, m]]):
    for b in range(h):
        for i in range(n):
            for j in range(m):
                for k in range(d):
                    c[b, i, j] += x[b, i, k] * y[b, k, j]
";
    let then = |method: &'static str, loops: &'static str, expected: Expect| {
        refused(
            TEXT,
            move |s| {
                outermost(s)?;
                match method {
                    "split" => call(s, method, args![loops, 4]),
                    _ => call(s, method, args![loops]),
                }
                .map(drop)
            },
            expected,
        );
    };
    then(
        "split",
        "i",
        expect![[r#"
        schedule::illegal (2): the loop `i` is already a library call
          `for i in range(n):` this loop
          help: take this step before `as_lib`
    "#]],
    );
    then(
        "split",
        "k",
        expect![[r#"
        schedule::illegal (100): the step would break a nest that is already a library call: the nest is not a matrix product: there is a condition in the nest
          `for k in range(d):` here
          help: take this step before `as_lib`
    "#]],
    );
    then(
        "parallelize",
        "i",
        expect![[r#"
        schedule::illegal (100): the step would break a nest that is already a library call: the nest is not a matrix product: the loop `i` is already parallel
          `for i in range(n):` this loop
          help: take this step before `as_lib`
    "#]],
    );
    then(
        "parallelize",
        "j",
        expect![[r#"
        schedule::illegal (100): the step would break a nest that is already a library call: the nest is not a matrix product: the loop `j` is already parallel
          `for j in range(m):` this loop
          help: take this step before `as_lib`
    "#]],
    );
    then(
        "vectorize",
        "k",
        expect![[r#"
        schedule::illegal (100): the step would break a nest that is already a library call: the nest is not a matrix product: the loop `k` is already vectorised
          `for k in range(d):` this loop
          help: take this step before `as_lib`
    "#]],
    );
    then(
        "as_lib",
        "i",
        expect![[r#"
        schedule::illegal (1): the loop `i` is already a library call
          `for i in range(n):` this loop
          help: take this step before `as_lib`
    "#]],
    );
    // Steps on the loops around the product are legal, and so is any that keeps it whole.
    check(
        TEXT,
        |s| {
            outermost(s)?;
            call(s, "split", args!["b", 4])?;
            call(s, "parallelize", args!["b~o"])?;
            call(s, "unroll", args!["b~i"]).map(drop)
        },
        expect![[r#"
            for b_o in range((h + 3) // 4):  # parallel
                if b_o * 4 < h:
                    for i in range(n):  # library
                        for j in range(m):
                            for k in range(d):
                                c[b_o * 4, i, j] += x[b_o * 4, i, k] * y[b_o * 4, k, j]
                if b_o * 4 + 1 < h:
                    for i in range(n):  # library
                        for j in range(m):
                            for k in range(d):
                                c[b_o * 4 + 1, i, j] += x[b_o * 4 + 1, i, k] * y[b_o * 4 + 1, k, j]
                if b_o * 4 + 2 < h:
                    for i in range(n):  # library
                        for j in range(m):
                            for k in range(d):
                                c[b_o * 4 + 2, i, j] += x[b_o * 4 + 2, i, k] * y[b_o * 4 + 2, k, j]
                if b_o * 4 + 3 < h:
                    for i in range(n):  # library
                        for j in range(m):
                            for k in range(d):
                                c[b_o * 4 + 3, i, j] += x[b_o * 4 + 3, i, k] * y[b_o * 4 + 3, k, j]
        "#]],
    );
}

#[test]
fn refusals_name_loops_by_selector() {
    // Several loops are called `k`.
    let nest = |body: &str, expected: Expect| {
        let text = format!(
            "
def f(a: f32[n, n], b: f32[n, n], c: inout[f32[n, n]], d: i64[n]):
    for k in range(n):
        c[0, k] = 0.0
    for i in range(n):
        for j in range(n):
            {body}
"
        );
        not_taken(&text, expected);
    };
    nest(
        "for k in range(i):
                c[i, j] += a[i, k] * b[k, j]",
        expect![[r#"
            schedule::illegal (1): the nest is not a matrix product: the bounds of `k#2` change with `i`: the matrices are not rectangular
              `for k in range(i):` this loop
        "#]],
    );
    nest(
        "for k in range(n):
                c[i, j] += a[i, d[k]] * b[k, j]",
        expect![[r#"
            schedule::illegal (3): the nest is not a matrix product: the index `d[k]` of `a` is not affine in `k#2`
              `c[i, j] += a[i, d[k]] * b[k, j]` this sum
        "#]],
    );
    nest(
        "for k in range(n):
                c[i, k] += a[i, k] * b[i, k]",
        expect![[r#"
            schedule::illegal (4): the nest is not a matrix product: no loop of `i`, `j`, `k#2` sums: expected a loop that both factors depend on and `c` does not
              `c[i, k] += a[i, k] * b[i, k]` this sum
        "#]],
    );
    // Names refer to the program before its loops are cut.
    nest(
        "c[i, j] = 0.0
            for k in range(j):
                c[i, j] += a[i, k] * b[k, j]",
        expect![[r#"
            schedule::illegal (1): the nest is not a matrix product: the bounds of `k#2` change with `j`: the matrices are not rectangular
              `for k in range(j):` this loop
        "#]],
    );
}

#[test]
fn refused_splits_name_loops_of_the_program() {
    // Statements before the product are cut off first.
    not_taken(
        "
def f(a: f32[n, n], b: inout[f32[n, n]], c: inout[f32[n, n]]):
    for i in range(n):
        for j in range(n):
            c[i, j] = 0.0
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]
            b[0, 0] = c[i, j]
",
        expect![[r#"
            schedule::dependence (1): cannot separate the product from the statements beside it: the first half depends on the second half in earlier iterations of `i`
              `b[0, 0] = c[i, j]` first writes `b[0, 0]` at i = 0, j = 0
              `c[i, j] += a[i, k] * b[k, j]` then reads `b[k, j]` at i = 1, j = 0, k = 0
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is b[0, 0] with n = 2
        "#]],
    );
}

#[test]
fn refusals_name_loops_of_calls_by_selector() {
    not_taken(
        "
def f(a: f32[n, n], b: f32[n, n], c: inout[f32[n, n]]):
    for k in range(n):
        c[0, k] = 0.0
    add_product(a, b, c)

def add_product(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            for k in range(j):
                c[i, j] += a[i, k] * b[k, j]
",
        expect![[r#"
            schedule::illegal (1): the nest is not a matrix product: the bounds of `add_product.k` change with `j`: the matrices are not rectangular
              `for k in range(j):` this loop
        "#]],
    );
}
