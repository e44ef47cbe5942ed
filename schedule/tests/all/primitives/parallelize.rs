use crate::args;
use crate::primitives::common::{call, check, list, refused};
use expect_test::expect;

#[test]
fn marks_the_loop() {
    check(
        "
def f(x: f32[n, m], y: inout[f32[n]]):
    for i in range(n):
        t: f32 = 0
        for j in range(m):
            t += x[i, j]
        y[i] = t
",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
                for i in range(n):  # parallel
                    t = empty((), f32)
                    t = 0.0
                    for j in range(m):
                        t += x[i, j]
                    y[i] = t
        "#]],
    );
}

/// Checks rows of a triangle, one after the other. Their independence is not proved, and isl's candidate for two
/// iterations that access one element turns out to be none, so that the refusal does not name it.
#[test]
fn candidate_witnesses_are_verified() {
    refused(
        "
def f(x: inout[f64[n]], a: f64[m]):
    assert m <= 1000
    for i in range(m):
        for j in range(i + 1):
            if i * (i + 1) // 2 + j < n:
                x[i * (i + 1) // 2 + j] = a[i]
",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `x[i * (i + 1) // 2 + j] = a[i]` writes `x[i * (i + 1) // 2 + j]`, then writes `x[i * (i + 1) // 2 + j]`
              note: output dependence (WAW), carried by the loop `i`
              note: no iterations with this dependence are known, but it cannot be ruled out
              help: write instead: `s.parallelize("j")`
        "#]],
    );
}

#[test]
fn refuses() {
    let chain = "
def f(x: inout[f32[n]]):
    for i in range(1, n):
        x[i] = x[i] + x[i - 1]
";
    refused(
        chain,
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
        schedule::dependence (2): the loop `i` has a loop-carried dependence
          `x[i] = x[i] + x[i - 1]` updates `x[i]` at i = 1, then reads `x[i - 1]` at i = 2
          note: flow dependence (RAW), carried by the loop `i`
          note: the element is x[1] with n = 3
    "#]],
    );
    let indirect = "
def f(x: inout[f32[n]], k: i32[m], v: f32[m]):
    for i in range(m):
        x[k[i]] = v[i]
";
    refused(
        indirect,
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `x[k[i]] = v[i]` writes `x[k[i]]` at i = 0, then writes `x[k[i]]` at i = 1
              note: output dependence (WAW), carried by the loop `i`
              note: the element is x[0] with n = 1, m = 2, if `k[0]` is 0 and `k[1]` is 0
        "#]],
    );
    let nested = "
def f(x: inout[f32[n, m]]):
    for i in range(n):
        for j in range(m):
            x[i, j] = 0
";
    refused(
        nested,
        |s| {
            call(s, "parallelize", args!["j"])?;
            call(s, "parallelize", args!["i"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (1): a parallel loop would be nested in another parallel loop
              `for j in range(m):` this loop is already parallel
              help: merge both loops (`s.merge`), and make the result parallel
        "#]],
    );
}

#[test]
fn stays_proved_after_later_steps() {
    refused(
        "
def f(x: inout[f32[n, m]]):
    for i in range(1, n):
        for j in range(1, m):
            x[i, j] = x[i - 1, j - 1]
",
        |s| {
            // Inside `i`, iterations of `j` are independent; around it they are not.
            call(s, "parallelize", args!["j"])?;
            call(s, "reorder", args![list(&["j", "i"])]).map(drop)
        },
        expect![[r#"
            schedule::dependence (100): the loop `j` is already parallel or vectorised, and would get a loop-carried dependence
              `x[i, j] = x[i - 1, j - 1]` writes `x[i, j]` at j = 1, i = 1, then reads `x[i - 1, j - 1]` at j = 2, i = 2
              note: flow dependence (RAW), carried by the loop `j`
              note: the element is x[1, 1] with n = 3, m = 3
              help: take this step before `parallelize` and `vectorize`
        "#]],
    );
}

#[test]
fn shares_reductions() {
    let program = "
def f(x: f32[n], k: i32[n], a: f32[n, m], y: inout[f32[m]], z: inout[f32[m]], h: inout[i32[9]]) -> f32:
    total: f32 = 0
    for i in range(n):
        total += x[i]
        z[k[i]] = max(z[k[i]], x[i])
        h[k[i] % 9] += 1
        for j in range(m):
            y[j] += a[i, j]
    return total
";
    check(
        program,
        |s| call(s, "parallelize", args!["i"; schedule = "dynamic", chunk = 4]).map(drop),
        expect![[r#"
            total = empty((), f32)
            total = 0.0
            for i in range(n):  # parallel(schedule=dynamic, chunk=4), partial(total +, h +, y +), atomic(z max)
                total += x[i]
                z[cast(k[i], i64)] = max(z[cast(k[i], i64)], x[i])
                h[cast(k[i] % 9, i64)] += 1
                for j in range(m):
                    y[j] += a[i, j]
            return total
        "#]],
    );
    // Options of the call.
    let wrong = |value: &'static str| {
        refused(
            program,
            move |s| call(s, "parallelize", args!["i"; schedule = value]).map(drop),
            expect![[r#"
                schedule::argument (0): there is no schedule "auto"
                  help: use "static", "dynamic", "guided" or "positions"
            "#]],
        )
    };
    wrong("auto");
    refused(
        program,
        |s| call(s, "parallelize", args!["i"; chunk = 0]).map(drop),
        expect![[r#"
        schedule::argument (0): expected at least 1 for `chunk`, found 0
    "#]],
    );
}

#[test]
fn reads_of_reduced_tensors_are_dependences() {
    refused(
        "
def f(x: f32[n], y: inout[f32[n]]):
    total: f32 = 0
    for i in range(n):
        total += x[i]
        y[i] = total
",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `total += x[i]` first updates `total` at i = 0
              `y[i] = total` then reads `total` at i = 1
              note: flow dependence (RAW), carried by the loop `i`
              note: for example with n = 2
        "#]],
    );
    // Two operators do not commute.
    refused(
        "
def f(x: f32[n]) -> f32:
    total: f32 = 0
    for i in range(n):
        total += x[i]
        total = max(total, x[i])
    return total
",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            schedule::dependence (2): the loop `i` has a loop-carried dependence
              `total += x[i]` first updates `total` at i = 0
              `total = max(total, x[i])` then updates `total` at i = 1
              note: flow dependence (RAW), carried by the loop `i`
              note: for example with n = 2
        "#]],
    );
}

#[test]
fn elements_of_one_iteration_are_not_shared() {
    check(
        "
def f(x: f32[n, m], y: inout[f32[n]], z: inout[f32[2]]):
    for i in range(n):
        for j in range(m):
            y[i] += x[i, j]
            z[0] += x[i, j]
            z[1] = min(z[1], x[i, j])
",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            for i in range(n):  # parallel, partial(z +, z min)
                for j in range(m):
                    y[i] += x[i, j]
                    z[0] += x[i, j]
                    z[1] = min(z[1], x[i, j])
        "#]],
    );
}

#[test]
fn sharing_is_recomputed_after_every_step() {
    check(
        "
def f(x: f32[n, m], y: inout[f32[m]]):
    for i in range(n):
        for j in range(m):
            y[j] += x[i, j]
",
        |s| {
            // Iterations of `j` share no element, inside `i` or around it. Those of `i` share elements in both orders.
            call(s, "parallelize", args!["i"])?;
            call(s, "reorder", args![list(&["j", "i"])]).map(drop)
        },
        expect![[r#"
            for j in range(m):
                for i in range(n):  # parallel, partial(y +)
                    y[j] += x[i, j]
        "#]],
    );
    refused(
        "
def f(x: f32[n, m], y: inout[f32[m]]):
    for i in range(n):
        for j in range(m):
            y[j] += x[i, j]
",
        |s| {
            call(s, "parallelize", args!["i"])?;
            call(s, "parallelize", args!["i"]).map(drop)
        },
        expect![[r#"
            schedule::illegal (1): the loop `i` is already parallel
              `for i in range(n):` this loop
        "#]],
    );
}

/// Checks that an update is made in place if the same iteration reads the element: a partial result would hide it.
#[test]
fn elements_read_in_the_same_iteration_are_updated_in_place() {
    check(
        "
def f(x: f32[n], y: inout[f32[n + 1]], z: inout[f32[n]], w: inout[f32[n + 6]]):
    for i in range(n):
        y[0] += x[i]
        y[i + 1] += x[i]
        z[i] = y[i + 1]
        w[min(i, 5)] += x[i]
        if i < 3:
            w[i] = max(w[i], 0)
",
        |s| call(s, "parallelize", args!["i"]).map(drop),
        expect![[r#"
            for i in range(n):  # parallel, atomic(y +, w +)
                y[0] += x[i]
                y[i + 1] += x[i]
                z[i] = y[i + 1]
                w[min(i, 5)] += x[i]
                if i < 3:
                    w[i] = max(w[i], 0.0)
        "#]],
    );
}

const TWO: &str = "
def f(x: f32[n, m], y: inout[f32[n]]) -> f64:
    total: f64 = 0
    for i in range(n):
        for j in range(m):
            y[i] += x[i, j]
    for k in range(n):
        total += cast(y[k], f64)
    return total
";

#[test]
fn marks_a_list_of_loops() {
    check(
        TWO,
        |s| {
            let marked = call(s, "parallelize", args![list(&["i", "k"]); above = 100])?;
            assert_eq!(marked.len(), 2);
            call(s, "vectorize", args![list(&["j"])]).map(drop)
        },
        expect![[r#"
            total = empty((), f64)
            total = 0.0
            for i in range(n):  # parallel(above=100)
                for j in range(m):  # vectorize, partial(y +)
                    y[i] += x[i, j]
            for k in range(n):  # parallel(above=100), partial(total +)
                total += cast(y[k], f64)
            return total
        "#]],
    );
    let not = |loops: &[&str], expected| {
        refused(TWO, |s| call(s, "parallelize", args![list(loops)]).map(drop), expected);
    };
    not(
        &["i", "k", "i"],
        expect![[r#"
        schedule::argument (0): the loop `i` is given twice
    "#]],
    );
    not(
        &["i", "i/j"],
        expect![[r#"
        schedule::illegal (1): a parallel loop would be nested in another parallel loop
          `for j in range(m):` this loop would be parallel too
          help: merge both loops (`s.merge`), and make the result parallel
    "#]],
    );
    not(
        &["j", "i"],
        expect![[r#"
        schedule::illegal (1): a parallel loop would be nested in another parallel loop
          `for i in range(n):` this loop would be parallel too
          help: merge both loops (`s.merge`), and make the result parallel
    "#]],
    );
    not(
        &[],
        expect![[r#"
        schedule::argument (0): no loop is given
    "#]],
    );
    refused(
        TWO,
        |s| call(s, "parallelize", args!["i"; above = 0]).map(drop),
        expect![[r#"
        schedule::argument (0): expected at least 1 for `above`, found 0
    "#]],
    );
}
