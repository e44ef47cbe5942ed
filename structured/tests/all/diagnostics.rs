//! Refusals and warnings of lowering on structured programs.

use expect_test::{Expect, expect};
use taffeta_structured::{Traversed, in_sections, lower, traversed};
use testkit::{golden, programs};

use golden::lowered;
use programs::{elaborate, equal};

/// Checks the codes and messages with which a program is refused.
#[track_caller]
fn refused(text: &str, expect: Expect) {
    let found = lower(&elaborate(text)).expect_err("there is no rule for it yet");
    expect.assert_eq(&found.0.iter().map(|d| format!("[{}] {}\n", d.code, d.message)).collect::<String>());
}

#[test]
fn unsupported_programs_are_refused() {
    let sum = |params: &str, value: &str| {
        format!("def f({params}) -> f64:\n    s = 0.0\n    for j in range(n):\n        s += {value}\n    return s\n")
    };
    let twice = "A: f64[n, n] @ format(compressed(unique=False, ordered=False), singleton(ordered=False))";
    refused(
        &sum(twice, "A[n - 1 - j, j]"),
        expect![[r#"
        [lower::unsupported] cannot look up one coordinate of `A`: its level is not ordered, and may store it at several positions
    "#]],
    );
    let many: Vec<String> = (0..7).map(|k| format!("A{k}: f64[n] @ format(compressed)")).collect();
    // Indices that may be out of range are checked in the cases that access them, so these lists need a body for each
    // combination.
    let beyond: Vec<String> = (0..7).map(|k| format!("A{k}[j + 1]")).collect();
    refused(
        &sum(&many.join(", "), &beyond.join(" + ")),
        expect![[r#"
        [lower::unsupported] the loop `j` merges more than 6 lists: `A0`, `A1`, `A2`, `A3`, `A4`, `A5`, `A6`
    "#]],
    );
    refused(
        "def f(A: f64[n] @ format(compressed)):\n    print(A)\n    return A[0]\n",
        expect![[r#"
        [lower::unsupported] cannot print the structured tensor `A` as a whole yet
    "#]],
    );
}

/// Checks the warnings of a program, and that it equals its lowering.
#[track_caller]
fn warned(text: &str, expect: Expect) {
    let (func, structured) = lowered(text);
    let all = structured.warnings.iter().map(|d| format!("[{}] {}\n", d.code, d.message));
    expect.assert_eq(&all.collect::<String>());
    for seed in 0..20 {
        equal(&func, &structured, seed);
    }
}

#[test]
fn warnings_of_searches_and_scans() {
    let sum = |params: &str, loops: [&str; 2], value: &str| {
        let [outer, inner] = loops;
        format!(
            "def f({params}) -> f64:\n    s = 0.0\n    for {outer}:\n        for {inner}:\n            s += {value}\n    return s\n"
        )
    };
    let (rows, columns) = (["i in range(n)", "j in range(m)"], ["j in range(m)", "i in range(n)"]);
    let csr = "A: f64[n, m] @ csr";
    warned(&sum(&format!("{csr}, B: f64[n, m] @ csr"), rows, "A[i, j] * B[i, j]"), expect![[r#""#]]);
    warned(
        &sum(csr, columns, "A[i, j]"),
        expect![[r#"
        [structured::search] `A` is searched for each element: no loop traverses it in the order of its storage
    "#]],
    );
    warned(
        &sum(csr, rows, "A[i, m - 1 - j]"),
        expect![[r#"
        [structured::search] `A` is searched for each element: no loop traverses it in the order of its storage
    "#]],
    );
    warned(&sum(csr, ["i in range(n)", "j in range(m - 1, -1, -1)"], "A[i, j]"), expect![""]);
    warned(&sum(csr, ["i in range(1, n)", "j in range(m)"], "A[i - 1, j]"), expect![[r#""#]]);
    warned(
        &sum(csr, rows, "exp(A[i, j]) * j"),
        expect![[r#"
        [structured::scan] the loop `j` visits every coordinate, although it traverses `A`
    "#]],
    );
    // A term that is the same at all coordinates of a gap is computed once.
    warned(&sum(csr, rows, "exp(A[i, j])"), expect![""]);
    warned(
        "def f(A: f64[n, m] @ csr, k: i64[p]) -> f64:\n    return A[k[0], 0]\n",
        expect![[r#"
        [structured::search] `A` is searched for each element: no loop traverses it in the order of its storage
    "#]],
    );
}

/// Checks that each of several loops of one name is warned of, and that sections of a program report the same as the
/// whole.
#[test]
fn loops_of_one_name_have_separate_warnings() {
    let text = "def f(A: f64[n, n] @ format(compressed(ordered=False), dense), \
                B: f64[n, n] @ format(bitmap, packbits)) -> (f64[n], f64):\n    x = zeros((n,), f64)\n    y = 0.0\n    \
                for i in range(n):\n        x[i] -= A[(n + i - 1) % n, n - 1] if n > 2 else 2.0\n    \
                for j in range(n):\n        for i in range(n):\n            y = max(y, A[i, (i + j) % n])\n            \
                x[j] += B[j, i]\n    return x, y\n";
    warned(
        text,
        expect![[r#"
        [structured::scan] the loop `i` visits every coordinate, although it traverses `A`
        [structured::search] `A` is searched for each element: no loop traverses it in the order of its storage
        [structured::scan] the loop `i` visits every coordinate, although it traverses `A`
        [structured::search] `A` is searched for each element: no loop traverses it in the order of its storage
    "#]],
    );
    sections_say_the_same(text);
}

/// Checks that the declarations of a section enclose the same statements as in the whole program: `b` is not read in
/// the branch where `a` derives from the fill, so it is neither set nor searched there.
#[test]
fn sections_declare_locals_like_the_whole_program() {
    sections_say_the_same(
        "def f(A: f64[n, m] @ format(ragged, compressed), B: f64[n, m] @ pattern(A), g: f64) -> (f64[n, m] @ \
         pattern(A, drop=True), f64[n, m] @ pattern(A, drop=True)):\n    \
         C: f64[n, m] @ pattern(A, drop=True) = empty((n, m), f64)\n    \
         D: f64[n, m] @ pattern(A, drop=True) = empty((n, m), f64)\n    \
         a = B[n - 1, m - 1] if n > 0 and m > 0 else 2.0\n    b = B[n - 1, 0] if n > 0 and m > 0 else 2.0\n    \
         won = not (a * b < g)\n    \
         for i in range(n):\n        for j in range(m):\n            D[i, j] = 0.0\n    \
         for i in range(n):\n        for j in range(m):\n            C[i, j] = 0.0\n    \
         ga = 0.0\n    gb = 0.0\n    if won:\n        ga += g * b\n        gb += g * a\n    \
         if n > 0 and m > 0:\n        C[n - 1, 0] += gb\n        C[n - 1, m - 1] += ga\n    return C, D\n",
    );
}

/// Checks that searches after a scalar that may derive from the fill are reported and counted once, though the whole
/// program has their statements in both cases of the scalar, and a section of their own has them once.
#[test]
fn searches_in_both_cases_are_counted_once() {
    sections_say_the_same(
        "def f(A: f64[n, m] @ format(ragged, compressed), E: f64[n, m] @ csr, g: f64) -> (f64[n], f64):\n    \
         x = zeros((n,), f64)\n    a = A[n - 1, m - 1] if n > 0 and m > 0 else 2.0\n    for i in range(n):\n        \
         x[i] += E[i, m - 1] if m > 0 else 1.0\n    s = 0.0\n    if not a < g:\n        s += g * a\n    return x, s\n",
    );
}

/// Checks that statements after a case split on a scalar are in its section, since the cases decide their conditions.
#[test]
fn statements_after_a_case_split_are_in_its_section() {
    sections_say_the_same(
        "def f(A: i64[n, m, l] @ format(ragged, bytemap, packbits)) -> i64[l]:\n    y = zeros((l,), i64)\n    \
         v = A[n // 2, 0, l - 1] if n > 0 and m > 0 and l > 0 else 2\n    for i in range(l):\n        \
         y[i] = max(y[i], A[n - 1, 0, i] if n > 0 and m > 0 else 2)\n    return y\n",
    );
}

/// Checks that an integer stored in a result is known in later statements, until the result is set again.
#[test]
fn integers_are_known_in_the_sections_that_read_them() {
    let sums = "for i in range(m):\n        x[i] = max(x[i], B[i] * (y % 9))\n    ";
    for (zero, read) in [("y = 0", "y"), ("y = zeros((2,), i64)\n    y[1] = 0", "y[1]")] {
        let sums = sums.replace("y", read);
        let type_of = if zero == "y = 0" { "i64" } else { "i64[2]" };
        for again in ["", "for i in range(m):\n        y += i\n    "] {
            let again = again.replace("y", read);
            sections_say_the_same(&format!(
                "def f(B: i64[m] @ format(compressed)) -> (i64[m], {type_of}):\n    x = zeros((m,), i64)\n    \
                 {zero}\n    {again}{sums}return x, y\n"
            ));
        }
    }
}

/// Checks that the sections of a program are lowered as the whole is.
#[track_caller]
fn sections_say_the_same(text: &str) {
    let func = elaborate(text);
    let whole = traversed(&func).expect("it can be lowered");
    let apart = in_sections(&func, |s| traversed(&s.func(&func))).expect("by sections too");
    let told = |t: &Traversed| t.scans.iter().map(|d| (d.message.clone(), d.labels.clone())).collect::<Vec<_>>();
    assert_eq!(told(&whole), told(&apart));
    assert_eq!((whole.seeks, whole.order_violations), (apart.seeks, apart.order_violations));
}
