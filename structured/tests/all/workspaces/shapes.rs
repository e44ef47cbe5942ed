//! Lengths of workspaces, and the placement of their arrays that follows from them.

use super::{PRODUCT, shown};
use expect_test::expect;
use taffeta_schedule::Arg;

/// Checks that a shape that is loaded from memory is computed where the program declares the tensor: outside of the
/// branch or loop around it, the load may be out of range.
#[test]
fn loaded_shapes_are_computed_at_the_declaration() {
    let text = "
def f(A: f64[n, m] @ csr, k: i64[n], x: f64[m]) -> (f64[n, m] @ pattern(A, drop=True), f64[n]):
    y: f64[n, m] @ pattern(A, drop=True) = zeros((n, m), f64)
    z = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[k[i], j] += x[j]
    for q in range(n):
        z[q] += 1.0
    return y, z
";
    let text = shown(text, |s| {
        s.call("cache_reduction", &[Arg::from("j"), Arg::from("y")])?;
        s.call("fuse", &[Arg::from("i"), Arg::from("q"), Arg::named("shift", 1)]).map(drop)
    });
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("there is no `{what}`\n{text}"));
    assert!(at("if i < n:") < at("y_partial_val = empty"), "{text}");
}

/// Checks that a workspace that is declared inside of one with a loaded shape is hoisted out of the loops all the same,
/// and cleared.
#[test]
fn workspaces_inside_of_workspaces_with_loaded_shapes() {
    let text = "
def f(A: f64[n, m] @ csr, B: f64[m] @ format(compressed),
      k: i64[n]) -> (f64[n, m] @ pattern(A, drop=True), f64[m] @ pattern(B, drop=True)):
    y: f64[n, m] @ pattern(A, drop=True) = zeros((n, m), f64)
    z: f64[m] @ pattern(B, drop=True) = zeros((m,), f64)
    for i in range(n):
        for j in range(m):
            y[k[i], j] += B[j]
            z[j] += A[i, j] + 1.0
    return y, z
";
    let text = shown(text, |s| {
        s.call("cache_reduction", &[Arg::from("j"), Arg::from("y")])?;
        s.call("cache_reduction", &[Arg::from("j"), Arg::from("z")]).map(drop)
    });
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("there is no `{what}`\n{text}"));
    assert!(at("z_partial_val = empty") < at("for i in"), "{text}");
    assert!(at("for i in") < at("y_partial_val = empty"), "{text}");
}

/// Checks a workspace that is declared in a loop, with a shape for each iteration: before the loop, it is not
/// traversed, checked or searched, even if nothing is inserted into it.
#[test]
fn shapes_that_depend_on_the_loop() {
    let cases = [
        ("max(j + 1, m - 1), 2", "dense, bytemap", "t[k, 0] = A[i, k]", "t[j, 0]"),
        ("j + m, m, 1", "dense, dense, bytemap", "t[k, 0, 0] = A[i, k]", "t[i, j, 0]"),
        ("j + m, m, 1", "dense, dense, bytemap", "t[0, k, 0] = A[i, k]", "t[0, j, 0]"),
        ("j + m", "bytemap", "t[k] = A[i, k]", "t[0] + t[i]"),
    ];
    for (shape, format, write, read) in cases {
        let text = format!(
            "
def f(A: f64[n, m] @ format(compressed, dense), x: f64[m] @ format(compressed)) -> f64[m]:
    y = zeros((m,), f64)
    for i in range(n):
        for j in range(m):
            t: f64[{shape}] @ format({format}) = zeros(({shape},), f64)
            for k in range(m):
                if k < m - 1:
                    {write}
            y[j] += x[j] + ({read})
    return y
"
        );
        shown(&text, |_| Ok(()));
    }
}

/// Checks that the arrays are under a condition that proves the size valid: before the condition, the size may be
/// negative.
#[test]
fn workspaces_under_conditions_on_their_shape() {
    for (cond, shape) in [("i > 0", "i - 1"), ("n > 1", "n - 2"), ("n > m", "n - m - 1"), ("x[i] > 0.0", "m")] {
        let text = format!(
            "
def f(x: f64[n], z: f64[m]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        if {cond}:
            t: f64[{shape}] @ format(bytemap) = zeros(({shape},), f64)
            for k in range({shape}):
                if k < m:
                    t[k] += z[k]
            for k in range({shape}):
                y[i] += t[k]
    return y
"
        );
        let text = shown(&text, |_| Ok(()));
        let [cond, array] = ["if ", "t_val = empty"].map(|what| text.find(what).expect("it is there"));
        assert_eq!(cond < array, shape != "m", "{text}");
    }
}

/// Checks a size that is valid in every iteration of a loop, but may be negative where the loop does not run.
#[test]
fn workspaces_in_loops_that_may_not_run() {
    let text = "
def f(x: f64[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        t: f64[n - 1] @ format(bytemap) = zeros((n - 1,), f64)
        for k in range(n - 1):
            if k < i:
                t[k] += x[k]
        for k in range(n - 1):
            y[i] += t[k]
    return y
";
    let text = shown(text, |_| Ok(()));
    let [outer, array] = ["for i in", "t_val = empty((max(n - 1, 0),), f64)"].map(|what| text.find(what));
    assert!(array.is_some() && array < outer, "{text}");
}

/// Checks that a guard that a step puts around a loop encloses the arrays of the workspaces inside.
#[test]
fn workspaces_in_loops_that_are_split_again() {
    let text = "
def f(B: f64[m, n] @ vbl, x: f64[n]) -> f64[m]:
    y = zeros((m,), f64)
    for j in range(m):
        for i in range(n):
            y[j] += B[j, i] * x[i]
    return y
";
    shown(text, |s| {
        s.call("split", &[Arg::from("i"), Arg::from(3), Arg::named("shift", 1)])?;
        s.call("separate_tail", &[Arg::from("i~i")])?;
        s.call("cache", &[Arg::from("i~i"), Arg::from("B")])?;
        s.call("split", &[Arg::from("i~o"), Arg::from(4)]).map(drop)
    });
}

/// Checks a workspace whose shape changes as its loop is split in two: copies of the body, for stored elements and for
/// gaps, declare and clear it all the same. Otherwise the list of a full row would be longer than the dimension.
#[test]
fn workspaces_of_varying_shape_are_cleared_in_all_copies() {
    let text = "
def f(A: f64[n, n] @ csr, x: f64[n], g: f64[n]) -> f64[n, n] @ pattern(A):
    G = zeros((n, n), f64)
    for k in range(n * n):
        C: f64[max(min(k // n + 1, n) - k // n, 0), 3] @ format(dense, bytemap) = \\
            zeros((max(min(k // n + 1, n) - k // n, 0), 3), f64)
        for d in range(max(min(k // n + 1, n) - k // n, 0)):
            C[d, 0] = A[k // n + d, k % n]
        p = g[k % n] * x[k // n]
        G[k // n, k % n] = p * C[0, 0] + p * C[0, 0]
    return G
";
    let text = shown(text, |_| Ok(()));
    // At the declaration, and at the end of each iteration.
    let emptied = text.lines().filter(|l| l.trim_start().starts_with("C_n1") && l.ends_with("[0] = 0"));
    assert_eq!(emptied.count(), 6, "{text}");
}

/// Checks that a parallel loop clears the arrays of a workspace once for each part of its range, and not in every
/// iteration.
#[test]
fn parallel_loops_clear_workspaces_once_for_each_part() {
    let text = shown(PRODUCT, |s| {
        s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")])?;
        s.call("parallelize", &[Arg::from("i")]).map(drop)
    });
    let from = text.find("i_all = n").unwrap_or_else(|| panic!("the loop is in one part\n{text}"));
    let end = text[from..].find("for k").map_or(text.len(), |k| from + k);
    let lines: Vec<&str> = text[from..end].trim_end().lines().map(str::trim).collect();
    expect![[r#"
        i_all = n
        i_parts = min(i_all, 64)
        for i.part in range(i_parts):  # parallel(above=1)
        t_val = empty((m,), f64)
        t_map0 = empty((m,), u8)
        t_crd0 = empty((m,), i32)
        t_n0 = empty((1,), i32)
        t_n0[0] = 0
        for t.at in range(m):
        t_map0[t.at] = 0
        i_first = empty((), i64)
        i_last = empty((), i64)
        i_first = i.part * i_all // i_parts
        i_last = (i.part + 1) * i_all // i_parts
        for i in range(i_first, i_last):
        assume(0 <= i and i < n)"#]]
    .assert_eq(&lines.join("\n"));
    let text = shown(PRODUCT, |s| {
        s.call("set_format", &[Arg::from("t"), Arg::from("bytemap")])?;
        let named = [Arg::named("schedule", "dynamic"), Arg::named("chunk", 16), Arg::named("above", 100)];
        s.call("parallelize", &[&[Arg::from("i")], &named[..]].concat()).map(drop)
    });
    let parts =
        text.lines().find(|l| l.contains("i_parts = ") && !l.contains("empty")).unwrap_or_else(|| panic!("{text}"));
    expect!["i_parts = min((i_all + 15) // 16, 512) if 100 < i_all else 1"].assert_eq(parts.trim());
}
