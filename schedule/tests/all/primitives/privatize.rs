use crate::args;
use crate::primitives::common::{call, check, example, refused};
use expect_test::{Expect, expect};

fn private(text: &str, expected: Expect) {
    check(text, |s| call(s, "privatize", args!["t", "i"]).map(drop), expected);
}

fn not_private(text: &str, expected: Expect) {
    refused(text, |s| call(s, "privatize", args!["t", "i"]).map(drop), expected);
}

#[test]
fn the_declaration_moves_into_the_loop() {
    private(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = empty((m,), f32)
    for i in range(n):
        for j in range(m):
            t[j] = x[i, j] * 2
        for j in range(m):
            y[i, j] = t[m - 1 - j]
",
        expect![[r#"
            for i in range(n):
                t = empty((m,), f32)
                for j in range(m):
                    t[j] = x[i, j] * 2.0
                for j in range(m):
                    y[i, j] = t[m - 1 - j]
        "#]],
    );
    // A scalar, in a loop that runs backwards.
    private(
        "
def f(x: f32[n, m], y: inout[f32[n]]):
    t = empty((), f32)
    for i in range(n - 1, -1, -1):
        t[...] = 0
        for j in range(m):
            t[...] += x[i, j]
        y[i] = t
",
        expect![[r#"
            for i in range(n - 1, -1, -1):
                t = empty((), f32)
                t = 0.0
                for j in range(m):
                    t += x[i, j]
                y[i] = t
        "#]],
    );
}

#[test]
fn the_tensor_keeps_its_name_and_handles() {
    check(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = empty((m,), f32)
    for i in range(n):
        for j in range(m):
            t[j] = x[i, j] * 2
        for k in range(m):
            y[i, k] = t[k]
",
        |s| {
            let t = call(s, "privatize", args!["t", "i"])?;
            call(s, "fuse", args!["j", "k"])?;
            call(s, "contract", args![t[0].clone()])?;
            call(s, "set_mem_type", args!["t", "register"])?;
            call(s, "parallelize", args!["i"]).map(drop)
        },
        expect![[r#"
            for i in range(n):  # parallel
                for j in range(m):
                    t = empty((), f32)  # register
                    t = x[i, j] * 2.0
                    y[i, j] = t
        "#]],
    );
}

#[test]
fn doitgen_can_be_parallelized() {
    example(
        "../tests/polybench/doitgen.ft",
        "doitgen",
        &[("nr", 4), ("nq", 3), ("np", 5)],
        |s| {
            call(s, "privatize", args!["total", "r"])?;
            call(s, "parallelize", args!["r"]).map(drop)
        },
        expect![[r#"
            for r in range(nr):  # parallel
                total = empty((np,), f64)
                for q in range(nq):
                    for p in range(np):
                        total[p] = 0.0
                        for s in range(np):
                            total[p] += A[r, q, s] * C4[s, p]
                    for p in range(np):
                        A[r, q, p] = total[p]
        "#]],
    );
}

/// Checks that a tensor with uses outside the loop keeps its declaration, beside the private one.
#[test]
fn tensors_used_outside_keep_their_declaration() {
    // Every nest reads only elements that it has written.
    check(
        "
def f(x: f32[n, m], y: inout[f32[n, m]], z: inout[f32[n, m]]):
    t = empty((m,), f32)
    for i in range(n):
        for j in range(m):
            t[j] = x[i, j] * 2
        for j in range(m):
            y[i, j] = t[m - 1 - j]
    for k in range(n):
        for j in range(m):
            t[j] = y[k, j] * 2
        for j in range(m):
            z[k, j] = t[j] + t[m - 1 - j]
",
        |s| {
            let own = call(s, "privatize", args!["t", "i"])?;
            call(s, "parallelize", args!["i"])?;
            call(s, "privatize", args!["t", "k"])?;
            call(s, "parallelize", args!["k"])?;
            call(s, "set_mem_type", args![own[0].clone(), "heap"]).map(drop)
        },
        expect![[r#"
            for i in range(n):  # parallel
                t_private = empty((m,), f32)  # heap
                for j in range(m):
                    t_private[j] = x[i, j] * 2.0
                for j in range(m):
                    y[i, j] = t_private[m - 1 - j]
            for k in range(n):  # parallel
                t = empty((m,), f32)
                for j in range(m):
                    t[j] = y[k, j] * 2.0
                for j in range(m):
                    z[k, j] = t[j] + t[m - 1 - j]
        "#]],
    );
    // Zeros that nothing reads, a bound, and a read before the loop.
    private(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = zeros((m,), i64)
    u = empty((), i64)
    u[...] = 2
    if m > 0:
        u[...] = t[0]
    for i in range(u, n):
        for j in range(m):
            t[j] = i
        for j in range(m):
            y[i, j] = t[m - 1 - j]
",
        expect![[r#"
            t = empty((m,), i64)
            for t.d0 in range(m):
                t[t.d0] = 0
            u = empty((), i64)
            u = 2
            if m > 0:
                u = t[0]
            for i in range(u, n):
                t_private = empty((m,), i64)
                for j in range(m):
                    t_private[j] = i
                for j in range(m):
                    y[i, j] = cast(t_private[m - 1 - j], f32)
        "#]],
    );
}

/// Checks privatisation without a proof that each element is written first, as no dependence is carried by the loop.
#[test]
fn privatizes_tensors_without_carried_dependences() {
    private(
        "
def f(x: f32[n, m], k: i64[n], y: inout[f32[n]]):
    t = empty((n, 3), f32)
    for i in range(n):
        for j in range(3):
            if x[i, 0] > 0:
                t[i, k[j % n] % 3] = x[i, 0]
        if x[i, 0] > 0:
            y[i] = t[i, k[0] % 3]
",
        expect![[r#"
            for i in range(n):
                t = empty((n, 3), f32)
                for j in range(3):
                    if x[i, 0] > 0.0:
                        t[i, k[j % n] % 3] = x[i, 0]
                if x[i, 0] > 0.0:
                    y[i] = t[i, k[0] % 3]
        "#]],
    );
}

#[test]
fn a_name_selects_the_tensor_that_the_loop_uses() {
    check(
        "
def f(x: f32[n], y: inout[f32[n]], z: inout[f32[n]]):
    for h in range(2):
        t = x[h % n] if n > 0 else 0
        z[h % n] = t
    t = empty((), f32)
    for i in range(n):
        t[...] = x[i]
        y[i] = t * t
",
        |s| call(s, "privatize", args!["t", "i"]).map(drop),
        expect![[r#"
            for h in range(2):
                t = empty((), f32)
                t = x[h % n] if n > 0 else 0.0
                z[h % n] = t
            for i in range(n):
                t = empty((), f32)
                t = x[i]
                y[i] = t * t
        "#]],
    );
}

/// Checks that a declaration in a loop that does not run checks no size.
#[test]
fn sizes_that_may_be_negative() {
    private(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = empty((m - 1,), f32)
    for i in range(n):
        for j in range(m - 1):
            t[j] = x[i, j]
        for j in range(m - 1):
            y[i, j] = t[j]
",
        expect![[r#"
            assert 0 <= m - 1, "dimension 0 of `t` has a negative size"
            for i in range(n):
                t = empty((m - 1,), f32)
                for j in range(m - 1):
                    t[j] = x[i, j]
                for j in range(m - 1):
                    y[i, j] = t[j]
        "#]],
    );
}

/// Checks that the shared reductions of marked loops are recomputed, and that marks stay legal.
#[test]
fn marked_loops() {
    check(
        "
def f(x: f32[n, m, m], y: inout[f32[n, m]]):
    t = empty((n, m), f32)
    for i in range(n):
        for j in range(m):
            t[i, j] = 0
        for k in range(m):
            for j in range(m):
                t[i, j] += x[i, k, j]
        for j in range(m):
            y[i, j] = t[i, j]
",
        |s| {
            call(s, "parallelize", args!["k"])?;
            call(s, "privatize", args!["t", "i"]).map(drop)
        },
        expect![[r#"
            for i in range(n):
                t = empty((n, m), f32)
                for j in range(m):
                    t[i, j] = 0.0
                for k in range(m):  # parallel, partial(t +)
                    for j in range(m):
                        t[i, j] += x[i, k, j]
                for j in range(m):
                    y[i, j] = t[i, j]
        "#]],
    );
    refused(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n, 2), f32)
    for i in range(n):
        t[i, 0] = x[i]
        y[i] = t[i, 0]
",
        |s| {
            call(s, "vectorize", args!["i"])?;
            call(s, "privatize", args!["t", "i"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (100): the loop `i` declares an array
              `t = empty((n, 2), f32)` declared here
              help: take this step before `parallelize` and `vectorize`
        "#]],
    );
}

#[test]
fn condition_1() {
    not_private(
        "
def f(x: f32[n], t: inout[f32[2]]):
    for i in range(n):
        t[0] = x[i]
",
        expect![[r#"
            schedule::illegal (1): `t` is a parameter or a result, which the caller lays out
              help: use `t = s.cache(…, "t")`, and take this step on `t`
        "#]],
    );
    refused(
        "
def f(start: i32[n + 1], value: f32[n], y: inout[f32[n]]):
    for i in range(n):
        for j in range(start[i], start[i + 1]):
            y[i] += value[j]
",
        |s| {
            let t = call(s, "cache", args!["j", "value"])?;
            call(s, "privatize", args![t[0].clone(), "j"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (1): the shape of `value.cache` depends on data
              `for j in range(start[i], start[i + 1]):` declared here
        "#]],
    );
    not_private(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((1,), f32)
    for i in range(n):
        t[0] = x[i]
        y[i] = t[0]
        print(t)
",
        expect![[r#"
            schedule::illegal (1): `t` is printed whole
              `print(t)` here
              help: print a copy: write `shown = t + 0`, and print `shown`
        "#]],
    );
}

#[test]
fn condition_2() {
    not_private(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        t = x[i] * 2
        y[i] = t * t
",
        expect![[r#"
            schedule::illegal (2): `t` is declared in the loop `i`: every iteration has its own
              `t = x[i] * 2` declared here
              `for i in range(n):` this loop
        "#]],
    );
    not_private(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t: i64 = n // 2
    t += n
    for i in range(t):
        y[i % n] = x[i % n]
",
        expect![[r#"
            schedule::illegal (2): `t` is not used in the body of the loop `i`
              `t: i64 = n // 2` declared here
              `for i in range(t):` this loop
        "#]],
    );
}

#[test]
fn condition_3() {
    // A value of an earlier iteration.
    not_private(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = empty((m,), f32)
    for i in range(n):
        for j in range(m):
            if x[i, j] > 0 or i == 0:
                t[j] = x[i, j]
        for j in range(m):
            y[i, j] = t[j]
",
        expect![[r#"
            schedule::dependence (3): an iteration of `i` may read elements of `t` that it did not write
              `t[j] = x[i, j]` first writes `t[j]` at i = 0, j = 0
              `y[i, j] = t[j]` then reads `t[j]` at i = 1, j = 0
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is t[0] with n = 2, m = 1, but this is not certain
              help: write every element of `t` that an iteration reads earlier in the same iteration
        "#]],
    );
    // A reduction reads the element that it adds to.
    not_private(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = zeros((), f32)
    for i in range(n):
        t += x[i]
",
        expect![[r#"
            schedule::dependence (3): an iteration of `i` may read elements of `t` that it did not write
              `t += x[i]` updates `t` at i = 0, then updates `t` at i = 1
              note: flow dependence (RAW), carried by the loop `i`
              note: for example with n = 2
              help: write every element of `t` that an iteration reads earlier in the same iteration
        "#]],
    );
    // A value from before the loop.
    not_private(
        "
def f(x: f32[n, m], y: inout[f32[n, m]]):
    t = zeros((m + 1,), f32)
    for i in range(n):
        for j in range(m):
            t[j] = x[i, j]
        for j in range(m):
            y[i, j] = t[j + 1]
",
        expect![[r#"
            schedule::dependence (3): an iteration of `i` may read elements of `t` that it did not write
              `t[j] = x[i, j]` first writes `t[j]` at i = 0, j = 1
              `y[i, j] = t[j + 1]` then reads `t[j + 1]` at i = 1, j = 0
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is t[1] with n = 2, m = 2
              help: write every element of `t` that an iteration reads earlier in the same iteration
        "#]],
    );
    // A value from an earlier iteration of an enclosing loop.
    not_private(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for h in range(3):
        for i in range(n):
            if h == 0:
                t[i] = x[i]
            y[i] += t[i]
",
        expect![[r#"
            schedule::dependence (3): an iteration of `i` may read elements of `t` that it did not write
              `t[i] = x[i]` first writes `t[i]` at h = 0, i = 0
              `y[i] += t[i]` then reads `t[i]` at h = 1, i = 0
              note: flow dependence (RAW), carried by the loop `h`
              note: the element is t[0] with n = 1
              help: write every element of `t` that an iteration reads earlier in the same iteration
        "#]],
    );
}

#[test]
fn condition_4() {
    // A read after the loop.
    not_private(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = zeros((), f32)
    for i in range(n):
        t[...] = x[i]
        y[i] = t * t
    y[0] += t
",
        expect![[r#"
            schedule::dependence (4): values that iterations of `i` write to `t` are read outside of the loop
              `t[...] = x[i]` first writes `t` at i = 0
              `y[0] += t` then reads `t`
              note: flow dependence (RAW), within one iteration of the loops around both
              note: for example with n = 1
              help: write the values that are read outside of `i` to another tensor than `t`
        "#]],
    );
    // A read in the bounds of the loop's next run.
    not_private(
        "
def f(x: i64[n], y: inout[i64[n]]):
    t = zeros((), i64)
    for h in range(3):
        for i in range(t % 2, n):
            t[...] = x[i]
            y[i] = t * t
",
        expect![[r#"
            schedule::dependence (4): values that iterations of `i` write to `t` are read outside of the loop
              `t[...] = x[i]` first writes `t` at h = 0, i = 1
              `for i in range(t % 2, n):` then reads `t` at h = 2
              note: flow dependence (RAW), carried by the loop `h`
              note: for example with n = 2, if `t` is 1
              help: write the values that are read outside of `i` to another tensor than `t`
        "#]],
    );
    // A read in another loop, which writes a part of the tensor.
    not_private(
        "
def f(x: f32[n, 4], y: inout[f32[n, 4]], z: inout[f32[n, 4]]):
    t = zeros((4,), f32)
    for i in range(n):
        for j in range(4):
            t[j] = x[i, j]
        for j in range(4):
            y[i, j] = t[3 - j]
    for k in range(n):
        for j in range(1, 4):
            t[j] = x[k, j]
        for j in range(4):
            z[k, j] = t[j]
",
        expect![[r#"
            schedule::dependence (4): values that iterations of `i` write to `t` are read outside of the loop
              `t[j] = x[i, j]` first writes `t[j]` at i = 0, j = 0
              `z[k, j] = t[j]` then reads `t[j]` at k = 0, j = 0
              note: flow dependence (RAW), within one iteration of the loops around both
              note: the element is t[0] with n = 1
              help: write the values that are read outside of `i` to another tensor than `t`
        "#]],
    );
}
