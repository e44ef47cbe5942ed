use crate::args;
use crate::primitives::common::{call, check, example, refused};
use expect_test::{Expect, expect};

fn inlined(text: &str, expected: Expect) {
    check(text, |s| call(s, "inline", args!["t"]).map(drop), expected);
}

fn not_inlined(text: &str, expected: Expect) {
    refused(text, |s| call(s, "inline", args!["t"]).map(drop), expected);
}

#[test]
fn elements_are_computed_where_they_are_read() {
    inlined(
        "
def f(x: f32[n, m], y: inout[f32[m, n]]):
    t = x * 2 + 1
    for i in range(m):
        for j in range(n):
            y[i, j] = t[j, m - 1 - i] + t[j, 0]
",
        expect![[r#"
            for i in range(m):
                for j in range(n):
                    y[i, j] = x[j, m - 1 - i] * 2.0 + 1.0 + (x[j, 0] * 2.0 + 1.0)
        "#]],
    );
    // Subscripts of several forms.
    inlined(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n + 3,), f32)
    for i in range(n - 1, -1, -1):
        t[n + 1 - i] = x[i] * i
    for i in range(n):
        y[i] = t[i + 2]
",
        expect![[r#"
            for i in range(n):
                y[i] = x[n - i - 1] * cast(n - (i + 2) + 1, f32)
        "#]],
    );
    inlined(
        "
def f(x: f32[n], y: inout[f32[n, n]]):
    t = empty((n, n), f32)
    for i in range(n):
        for j in range(i, n):
            t[j - i, i] = x[j] * x[i]
    for i in range(n):
        for j in range(i, n):
            y[i, j] = t[j - i, i]
",
        expect![[r#"
            for i in range(n):
                for j in range(i, n):
                    y[i, j] = x[j] * x[i]
        "#]],
    );
}

#[test]
fn scalars_and_scopes_in_loops() {
    inlined(
        "
def f(x: f32[n], k: i32[m], y: inout[f32[m]]):
    for i in range(m):
        t = x[k[i]]
        y[i] += t * t
",
        expect![[r#"
            for i in range(m):
                y[i] += x[cast(k[i], i64)] * x[cast(k[i], i64)]
        "#]],
    );
    // Reads in conditions and bounds.
    inlined(
        "
def f(k: i32[n], y: inout[f32[n]]):
    for i in range(n):
        t: i64 = k[i]
        for j in range(t % 3):
            if j < t:
                y[i] += y[t % n] if t > 1 else 0.0
",
        expect![[r#"
            for i in range(n):
                for j in range(cast(k[i], i64) % 3):
                    if j < cast(k[i], i64):
                        y[i] += y[cast(k[i], i64) % n] if cast(k[i], i64) > 1 else 0.0
        "#]],
    );
}

#[test]
fn after_a_split() {
    check(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[i] + i
    for j in range(n):
        y[j] = t[j]
",
        |s| {
            call(s, "split", args!["j", 4])?;
            call(s, "inline", args!["t"]).map(drop)
        },
        expect![[r#"
            for j_o in range((n + 3) // 4):
                for j_i in range(4):
                    if j_o * 4 + j_i < n:
                        y[j_o * 4 + j_i] = x[j_o * 4 + j_i] + cast(j_o * 4 + j_i, f32)
        "#]],
    );
}

#[test]
fn operands_keep_their_values() {
    // An operand read and overwritten by one statement: the read comes first.
    inlined(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        t = x[i] * 2
        x[i] = t + 1
",
        expect![[r#"
            for i in range(n):
                x[i] = x[i] * 2.0 + 1.0
        "#]],
    );
    // An operand overwritten after the reads.
    inlined(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    t = x * 2
    for i in range(n):
        y[i] = t[i]
    for i in range(n):
        x[i] = 0
",
        expect![[r#"
            for i in range(n):
                y[i] = x[i] * 2.0
            for i in range(n):
                x[i] = 0.0
        "#]],
    );
    not_inlined(
        "
def f(x: inout[f32[n]], y: inout[f32[n]]):
    for i in range(n):
        t = x[i] * 2
        x[i] = 0
        y[i] = t
",
        expect![[r#"
            schedule::dependence (7): an operand of the value of `t` is overwritten before the value is read
              `x[i] = 0` first writes `x[i]` at i = 0
              `y[i] = t` then reads `x[i]` at i = 0
              note: flow dependence (RAW), within one iteration of the loops around both
              note: the element is x[0] with n = 1
        "#]],
    );
    not_inlined(
        "
def f(x: inout[f32[n]]):
    t = x * 2
    for i in range(n):
        x[i] = t[n - 1 - i]
",
        expect![[r#"
            schedule::dependence (7): an operand of the value of `t` is overwritten before the value is read
              `x[i] = t[n - 1 - i]` writes `x[i]` at i = 0, then reads `x[n - 1 - i]` at i = 1
              note: flow dependence (RAW), carried by the loop `i`
              note: the element is x[0] with n = 2
        "#]],
    );
    // Each element is read before it is overwritten: the order of accesses stays.
    inlined(
        "
def f(x: inout[f32[n + 1]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[i + 1] * 2
    for i in range(n):
        x[i] = t[i]
",
        expect![[r#"
            for i in range(n):
                x[i] = x[i + 1] * 2.0
        "#]],
    );
    not_inlined(
        "
def f(x: inout[f32[n + 1]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[i] * 2
    for i in range(n):
        x[i + 1] = t[i]
",
        expect![[r#"
            schedule::dependence (7): an operand of the value of `t` is overwritten before the value is read
              `x[i + 1] = t[i]` writes `x[i + 1]` at i = 0, then reads `x[i]` at i = 1
              note: flow dependence (RAW), carried by the loop `i#2`
              note: the element is x[1] with n = 2
        "#]],
    );
    // An operand whose subscript changes.
    not_inlined(
        "
def f(x: f32[n], k: inout[i32[n]], y: inout[f32[n]]):
    for i in range(n):
        assert 0 <= k[i] < n
        t = x[k[i]]
        k[i] = 0
        y[i] = t
",
        expect![[r#"
            schedule::dependence (7): an operand of the value of `t` is overwritten before the value is read
              `k[i] = 0` first writes `k[i]` at i = 0
              `y[i] = t` then reads `k[i]` at i = 0
              note: flow dependence (RAW), within one iteration of the loops around both
              note: the element is k[0] with n = 1, if `k[0]` is 0
        "#]],
    );
}

#[test]
fn refuses_other_definitions() {
    not_inlined(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = zeros((n,), f32)
    for i in range(n):
        t[i] = x[i]
    for i in range(n):
        y[i] = t[i]
",
        expect![[r#"
            schedule::illegal (2): `t` is written by more than one statement, or by a reduction
              `t = zeros((n,), f32)` written here
              `t[i] = x[i]` written here
        "#]],
    );
    not_inlined(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        if x[i] > 0:
            t[i] = x[i]
    for i in range(n):
        if x[i] > 0:
            y[i] = t[i]
",
        expect![[r#"
            schedule::illegal (2): `t` is written under a condition
              `t[i] = x[i]` written here
        "#]],
    );
    not_inlined(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        y[i] = t[i]
",
        expect![[r#"
            schedule::illegal (2): `t` is never written
              `t = empty((n,), f32)` declared here
        "#]],
    );
    not_inlined(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[i] if i == 0 else t[i - 1] + x[i]
    for i in range(n):
        y[i] = t[i]
",
        expect![[r#"
            schedule::illegal (2): `t` is computed from itself
              `t[i] = x[i] if i == 0 else t[i - 1] + x[i]` written here
        "#]],
    );
    refused(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        y[i] = x[i]
",
        |s| call(s, "inline", args!["y"]).map(drop),
        expect![[r#"
            schedule::illegal (1): `y` is a parameter or a result, which the caller lays out
              help: use `t = s.cache(…, "y")`, and take this step on `t`
        "#]],
    );
}

#[test]
fn refuses_elements_that_are_written_again() {
    not_inlined(
        "
def f(x: f32[n, m], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        for j in range(m):
            t[i] = x[i, j]
    for i in range(n):
        if m > 0:
            y[i] = t[i]
",
        expect![[r#"
            schedule::illegal (3): the indices of an element of `t` do not determine the iteration that writes it
              `t[i] = x[i, j]` written here
        "#]],
    );
    not_inlined(
        "
def f(x: f32[n, 3], y: inout[f32[n]]):
    t = empty((2 * n + 2,), f32)
    for i in range(n):
        for j in range(3):
            t[2 * i + j] = x[i, j]
    for i in range(n):
        y[i] = t[i]
",
        expect![[r#"
            schedule::illegal (3): the indices of an element of `t` do not determine the iteration that writes it
              `t[2 * i + j] = x[i, j]` written here
        "#]],
    );
    // Two loops, no more: every element is written once.
    inlined(
        "
def f(x: f32[n, 2], y: inout[f32[n]]):
    t = empty((2 * n,), f32)
    for i in range(n):
        for j in range(2):
            t[2 * i + j] = x[i, j]
    for i in range(n):
        y[i] = t[i] - t[n + i]
",
        expect![[r#"
            for i in range(n):
                y[i] = x[i // 2, i % 2] - x[(n + i) // 2, (n + i) % 2]
        "#]],
    );
}

#[test]
fn refuses_iterations_determined_by_data() {
    not_inlined(
        "
def f(x: f32[n], p: inout[i64[1]], y: inout[f32[n]]):
    assert 0 <= p[0] <= n
    t = empty((n,), f32)
    for i in range(p[0], n):
        t[i - p[0]] = x[i]
    p[0] = 0
    for i in range(n):
        y[i] = t[i]
",
        expect![[r#"
            schedule::illegal (3): the indices of an element of `t` do not determine the iteration that writes it
              `t[i - p[0]] = x[i]` written here
        "#]],
    );
}

#[test]
fn definitions_that_may_fail() {
    not_inlined(
        "
def f(x: f32[n], k: i32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[k[i] - 1]
    for i in range(2, n):
        y[i] = t[i]
",
        expect![[r#"
            schedule::illegal (5): computing the value of `t` may stop the program, and elements that are not read would no longer be computed
              `t[i] = x[k[i] - 1]` written here
              help: assert before the statement that its indices are in range
        "#]],
    );
    not_inlined(
        "
def f(x: f32[n], k: i32[n], y: inout[f32[n]]):
    t = x + 1
    for i in range(n):
        y[i] = t[k[i] + 1]
",
        expect![[r#"
            schedule::illegal (4): the index `cast(k[i] + 1, i64)` of `t` is not proved to be in range, and its check would be lost
              `t = x + 1` declared here
              help: assert before the access that it is in range
        "#]],
    );
    // A negative size.
    inlined(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n - 2,), f32)
    for i in range(n - 2):
        t[i] = x[i]
    for i in range(n - 2):
        y[i] = t[i]
",
        expect![[r#"
            assert 0 <= n - 2, "dimension 0 of `t` has a negative size"
            for i in range(n - 2):
                y[i] = x[i]
        "#]],
    );
    // A size that may overflow, which only the declaration checks.
    inlined(
        "
def f(x: f32[n], y: inout[i64[1]]):
    t = empty((n * 4611686018427387904, 1), f32)
    for i in range(n * 4611686018427387904):
        t[i, 0] = 1.0
    y[0] = t.shape[0]
",
        expect![[r#"
            t = empty((n * 4611686018427387904,), f32)
            del t
            y[0] = n * 4611686018427387904
        "#]],
    );
}

#[test]
fn refuses_reads_before_the_write_and_operands_out_of_scope() {
    not_inlined(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        if i > 5:
            y[i] = t[i]
        t[i] = x[i]
",
        expect![[r#"
            schedule::dependence (6): an element of `t` is read before it is written
              `y[i] = t[i]` first reads `t[i]` at i = 6
              `t[i] = x[i]` then writes `t[i]` at i = 6
              note: anti dependence (WAR), within one iteration of the loops around both
              note: the element is t[6] with n = 7
        "#]],
    );
    not_inlined(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        u = zeros((2,), f32)
        u[1] = x[i]
        t[i] = u[0] + u[1]
    for i in range(n):
        y[i] = t[i]
",
        expect![[r#"
            schedule::illegal (7): an operand of the value of `t` is not live where the value is read
              `t[i] = u[0] + u[1]` written here
              `u = zeros((2,), f32)` this tensor
        "#]],
    );
    inlined(
        "
def f(x: f32[n], y: inout[f32[n]]):
    for i in range(n):
        u = zeros((2,), f32)
        u[1] = x[i]
        t = u[0] + u[1]
        y[i] = t
",
        expect![[r#"
            for i in range(n):
                u = empty((2,), f32)
                for u.d0 in range(2):
                    u[u.d0] = 0.0
                u[1] = x[i]
                y[i] = u[0] + u[1]
        "#]],
    );
}

#[test]
fn handles_of_removed_statements_name_the_step() {
    refused(
        "
def f(x: f32[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[i]
    for j in range(n):
        y[j] = t[j]
",
        |s| {
            let loops = call(s, "loops", args![])?;
            call(s, "inline", args!["t"])?;
            call(s, "split", args![loops[1].clone(), 4])?;
            call(s, "split", args![loops[0].clone(), 4]).map(drop)
        },
        expect![[r#"
            schedule::target (0): step 1 (`inline`) removed the statement of this handle
        "#]],
    );
}

#[test]
fn longformer() {
    example(
        "longformer/longformer.ft",
        "attention_staged",
        &[("heads", 2), ("n", 40), ("d", 3)],
        |s| call(s, "inline", args!["x"]).map(drop),
        expect![[r#"
            """The same in three stages over whole arrays, as one would write it for an array library: scores, softmax, sum."""
            y = empty((heads, n, d), f32)
            score = empty((heads, n, 65), f32)
            for score.d0 in range(heads):
                for score.d1 in range(n):
                    for score.d2 in range(65):
                        score[score.d0, score.d1, score.d2] = -inf
            for h in range(heads):
                for i in range(n):
                    for j in range(65):
                        if i + j >= 32 and i + j - 32 < n:
                            y_1 = empty((), f32)
                            acc = empty((), f64)
                            acc = 0.0
                            for i_1 in range(d):
                                acc += cast(q[h, i, i_1] * k[h, i + j - 32, i_1], f64)
                            y_1 = cast(acc, f32)
                            score[h, i, j] = y_1 / cast(sqrt(1.0 * cast(d, f64)), f32)
            weight = empty((heads, n, 65), f32)
            for i in range(heads):
                for i_1 in range(n):
                    m = empty((), f32)
                    m = -inf
                    for k_1 in range(65):
                        m = max(m, score[i, i_1, k_1])
                    s = empty((), f64)
                    s = 0.0
                    for k_1 in range(65):
                        weight[i, i_1, k_1] = exp(score[i, i_1, k_1] - stop_gradient(m))
                        s += cast(weight[i, i_1, k_1], f64)
                    r = empty((), f32)
                    r = cast(1.0 / s, f32)
                    for k_1 in range(65):
                        weight[i, i_1, k_1] *= r
            for y.d0 in range(heads):
                for y.d1 in range(n):
                    for y.d2 in range(d):
                        y[y.d0, y.d1, y.d2] = 0.0
            for h in range(heads):
                for i in range(n):
                    for j in range(65):
                        if i + j >= 32 and i + j - 32 < n:
                            for y.d0 in range(d):
                                y[h, i, y.d0] += weight[h, i, j] * v[h, i + j - 32, y.d0]
            return y
        "#]],
    );
}

#[test]
fn refuses_to_remove_failing_indices() {
    not_inlined(
        "
def f(k: i64[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = 2.0
    for j in range(n):
        y[j] = t[min(max(k[j + 1], 0), n - 1)]
",
        expect![[r#"
            schedule::illegal (4): evaluating the index `min(max(k[j + 1], 0), n - 1)` of `t` may stop the program, and the step would drop it
              `t = empty((n,), f32)` declared here
              help: assert before the access that the elements that the index reads are in range
        "#]],
    );
    // The operands of the value are evaluated unconditionally.
    inlined(
        "
def f(x: f32[n], k: i64[n], y: inout[f32[n]]):
    t = empty((n,), f32)
    for i in range(n):
        t[i] = x[i]
    for j in range(n):
        y[j] = t[min(max(k[j + 1], 0), n - 1)]
",
        expect![[r#"
            for j in range(n):
                y[j] = x[min(max(k[j + 1], 0), n - 1)]
        "#]],
    );
}
