//! Effect of each primitive on loops over structured tensors, once where it is taken and once where it is refused: the
//! table of the reference (`docs/src/reference/storage.md`, "Schedules").

use expect_test::expect;
use std::fmt::Write;
use taffeta_analysis::pass::simplify;
use taffeta_ast::{Expr, Func, StmtKind, Symbol, print};
use taffeta_schedule::{Arg, IndexMap, Refusal, Schedule, Value};
use taffeta_structured::lower;
use testkit::{lowers, programs};

use lowers::lowers;

type Steps = fn(&mut Schedule) -> Result<(), Refusal>;

fn names(all: &[&str]) -> Arg {
    Arg::from(Value::List(all.iter().map(|n| Value::from(*n)).collect()))
}

fn step(s: &mut Schedule, method: &str, args: &[Arg]) -> Result<(), Refusal> {
    s.call(method, args).map(drop)
}

/// Returns the map `lambda i, j: (j - i, i)`.
fn diagonals() -> Arg {
    let params = ["i", "j"].map(Symbol::new);
    let [i, j] = [Expr::var(&params[0]), Expr::var(&params[1])];
    Arg::from(Value::Map(IndexMap { params: params.to_vec(), results: vec![j.minus(&i), i] }))
}

/// Lists the loops of a lowered program with their ranges, in the order of the text.
fn loops(func: &Func) -> String {
    fn of(s: &taffeta_ast::Stmt, depth: usize, out: &mut String) {
        let inside = match s.kind() {
            StmtKind::For { iter, extent: taffeta_ast::Extent::Range { begin, end, .. }, props, .. } => {
                let marks = match (props.parallel.is_some(), props.vectorize.is_some()) {
                    (true, _) => ", parallel",
                    (_, true) => ", vectorised",
                    _ => "",
                };
                let [begin, end] = [begin, end].map(print::expr);
                let _ = writeln!(out, "    {}{iter} from {begin} to {end}{marks}", "  ".repeat(depth));
                depth + 1
            }
            StmtKind::While { cond, .. } => {
                let _ = writeln!(out, "    {}while {}", "  ".repeat(depth), print::expr(cond));
                depth + 1
            }
            _ => depth,
        };
        s.kind().children().into_iter().for_each(|c| of(c, inside, out));
    }
    let mut out = String::new();
    of(&func.body, 0, &mut out);
    out.replace("cast(", "").replace(", i64)", "")
}

/// Returns the loops after the steps, or the refusal. Checks that a program after the steps computes the same.
fn shown(name: &str, format: &str, body: &str, steps: Steps) -> String {
    let text = format!(
        "def f(A: f64[n, m] @ {format}, B: f64[n, m] @ {format}, x: f64[m], X: f64[m, 3]) -> (f64[n], f64[n, 3]):\n    y = zeros((n,), f64)\n    Y = zeros((n, 3), f64)\n    {}\n    return y, Y\n",
        body.replace('\n', "\n    ")
    );
    let func = programs::elaborate(&text);
    let mut s = Schedule::new(func.clone()).lowered_by(lowers);
    let title = format!("{name}, {format}: ");
    if let Err(r) = steps(&mut s) {
        return format!("{title}{}\n", r.message);
    }
    let after = simplify::run(s.func());
    let lowered = lower(&after).unwrap_or_else(|e| panic!("{:?}\n{text}", e.0[0].message));
    taffeta_ast::validate::dense(&lowered.func).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for seed in 0..20 {
        programs::equal(&func, &lowered, seed);
    }
    // Loops that set the results to 0 are left out.
    let all = loops(&simplify::run(&lowered.func));
    let own: Vec<&str> =
        all.lines().filter(|l| ![" y.d0 ", " Y.d0 ", " Y.d1 "].iter().any(|i| l.contains(i))).collect();
    format!("{title}taken\n{}\n", own.join("\n"))
}

/// Format of elements in any order.
const UNORDERED: &str = "format(compressed(unique=False, ordered=False), singleton(ordered=False))";
const SPMV: &str = "for i in range(n):\n    for j in range(m):\n        y[i] += A[i, j] * x[j]";
const SUM: &str = "for i in range(n):\n    for j in range(m):\n        y[i] += (A[i, j] + B[i, j]) * x[j]";
const SPMM: &str =
    "for i in range(n):\n    for j in range(m):\n        for k in range(3):\n            Y[i, k] += A[i, j] * X[j, k]";

fn table(rows: &[(&str, &str, &str, Steps)]) -> String {
    rows.iter().map(|(name, format, body, steps)| shown(name, format, body, *steps)).collect()
}

#[test]
fn steps_that_split_loops() {
    let found = table(&[
        ("split", "csr", SPMV, |s| step(s, "split", &[Arg::from("j"), Arg::from(8)])),
        ("split", "coo", SPMV, |s| step(s, "split", &[Arg::from("i"), Arg::from(8)])),
        ("split", "format(dense, compressed(ordered=False))", SPMV, |s| {
            step(s, "split", &[Arg::from("j"), Arg::from(8)])
        }),
        ("split", UNORDERED, SPMV, |s| step(s, "split", &[Arg::from("j"), Arg::from(8)])),
        ("separate_tail", "csr", SPMV, |s| {
            step(s, "split", &[Arg::from("j"), Arg::from(8)])?;
            step(s, "separate_tail", &[Arg::from("j~o")])
        }),
        ("tile", "csr", SPMV, |s| step(s, "tile", &[names(&["i", "j"]), Arg::from(vec![4i64, 8])])),
    ]);
    expect![[r#"
        split, csr: taken
            i from 0 to n
              j~o from 0 to (m + 7) // 8
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
                A.p from A.p.first to A.p.last
        split, coo: taken
            i~o from 0 to (n + 7) // 8
              while A.p.probe < A.p.top
              while A.p < A.p.top
              while A.p < A.p.end and i~i.next < 8
                while A.p.to.more
                j.p from A.p to A.p.to
        split, format(dense, compressed(ordered=False)): taken
            i from 0 to n
              j~o from 0 to (m + 7) // 8
                A.p from A.pos1[i] to A.pos1[i + 1]
        split, format(compressed(unique=False, ordered=False), singleton(ordered=False)): cannot lower loops over stored elements of `A` after `split`: cannot look up one coordinate of `A`: its level is not ordered, and may store it at several positions
        separate_tail, csr: taken
            i from 0 to n
              j~o from 0 to m // 8
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
                A.p from A.p.first to A.p.last
              j~o from m // 8 to (m + 7) // 8
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
                A.p from A.p.first to A.p.last
        tile, csr: taken
            i~o from 0 to (n + 3) // 4
              j~o from 0 to (m + 7) // 8
                i~i from i~o * 4 to min(n - 1, i~o * 4 + 3) + 1
                  while j~i.A.probe < j~i.A.top
                  while j~i.A < j~i.A.top
                  while j~i.A.probe < j~i.A.top
                  while j~i.A < j~i.A.top
                  j~i.p from j~i.A.first to j~i.A.last
    "#]]
    .assert_eq(&found);
}

#[test]
fn steps_that_merge_loops() {
    let found = table(&[
        ("merge", "csr", SPMV, |s| step(s, "merge", &[Arg::from("i"), Arg::from("j")])),
        ("merge", "csr", SPMV, |s| {
            step(s, "merge", &[Arg::from("i"), Arg::from("j")])?;
            step(s, "parallelize", &[Arg::from("i~j")])
        }),
        ("merge", "coo", SPMV, |s| step(s, "merge", &[Arg::from("i"), Arg::from("j")])),
        ("equal work", "csr", SPMV, |s| {
            step(s, "parallelize", &[Arg::from("i"), Arg::named("schedule", "positions"), Arg::named("chunk", 64)])
        }),
        ("equal work", "band", SPMV, |s| {
            step(s, "parallelize", &[Arg::from("i"), Arg::named("schedule", "positions"), Arg::named("chunk", 64)])
        }),
    ]);
    expect![[r#"
        merge, csr: taken
            i~j.outer from 0 to n
              i~j.inner.p from A.pos1[i~j.outer] to A.pos1[i~j.outer + 1]
        merge, csr: taken
            i~j.outer from 0 to n, parallel
              i~j.inner.p from A.pos1[i~j.outer] to A.pos1[i~j.outer + 1]
        merge, coo: taken
            i~j.outer.p from A.pos0[0] to A.pos0[1]
        equal work, csr: taken
            i.part from 0 to i.parts, parallel
              while i.first < i.first.top
              while i.last < i.last.top
              i from i.first to i.last
                j.p from A.pos1[i] to A.pos1[i + 1]
        equal work, band: taken
            i.part from 0 to i.parts, parallel
              while i.first < i.first.top
              while i.last < i.last.top
              i from i.first to i.last
                j from A.start1[i] to A.pos1[i + 1] - A.pos1[i] + A.start1[i]
    "#]]
    .assert_eq(&found);
}

#[test]
fn steps_that_move_loops() {
    let found = table(&[
        ("reorder", "csc", SPMV, |s| step(s, "reorder", &[names(&["j", "i"])])),
        ("reorder", "csr", SPMV, |s| step(s, "reorder", &[names(&["j", "i"])])),
        ("reorder", "format(dense, compressed(ordered=False))", SPMV, |s| step(s, "reorder", &[names(&["j", "i"])])),
        ("reorder", UNORDERED, SPMV, |s| step(s, "reorder", &[names(&["j", "i"])])),
        ("permute", "dia", SPMV, |s| step(s, "permute", &[names(&["i", "j"]), diagonals()])),
        ("permute", "coo", SPMV, |s| step(s, "permute", &[names(&["i", "j"]), diagonals()])),
        ("polyhedral", "csr", SPMV, |s| step(s, "polyhedral", &[Arg::from("i")])),
        ("reverse", "csr", SPMV, |s| step(s, "reverse", &[Arg::from("j")])),
        ("reverse", UNORDERED, SPMV, |s| step(s, "reverse", &[Arg::from("j")])),
        ("reverse", "csr", SUM, |s| step(s, "reverse", &[Arg::from("j")])),
    ]);
    expect![[r#"
        reorder, csc: taken
            j from 0 to m
              i.p from A.pos1[j] to A.pos1[j + 1]
        reorder, csr: taken
            j from 0 to m
              i from 0 to n
                while j.A.probe < j.A.top
                while j.A < j.A.top
        reorder, format(dense, compressed(ordered=False)): taken
            j from 0 to m
              i from 0 to n
                while j.A.more
        reorder, format(compressed(unique=False, ordered=False), singleton(ordered=False)): cannot lower loops over stored elements of `A` after `reorder`: cannot look up one coordinate of `A`: its level is not ordered, and may store it at several positions
        permute, dia: taken
            A.p from 0 to A.n0
              i from max(0, n - A.crd0[A.p] - 1) to min(n, m - (A.crd0[A.p] - (n - 1)))
        permute, coo: taken
            i~j from 1 - n to m
              while i.A.probe < i.A.top
              while i.A < i.A.top
              while i.A < i.A.end and i.next < min(n, m - i~j)
                while i.A.to.more
                while A.p.probe < A.p.top
                while A.p < A.p.top
        polyhedral, csr: taken
            i from 0 to n
              j.p from A.pos1[i] to A.pos1[i + 1]
        reverse, csr: taken
            i from 0 to n
              j.p from A.pos1[i + 1] - 1 to A.pos1[i] - 1
        reverse, format(compressed(unique=False, ordered=False), singleton(ordered=False)): cannot lower loops over stored elements of `A` after `reverse`: cannot look up one coordinate of `A`: its level is not ordered, and may store it at several positions
        reverse, csr: taken
            i from 0 to n
              j from m - 1 to -1
                while j.A.probe < j.A.top
                while j.A < j.A.top
                while j.B.probe < j.B.top
                while j.B < j.B.top
                while j.B.probe < j.B.top
                while j.B < j.B.top
    "#]]
    .assert_eq(&found);
}

#[test]
fn steps_that_run_iterations_in_parallel() {
    let found = table(&[
        ("parallelize", "csr", SPMV, |s| step(s, "parallelize", &[Arg::from("i")])),
        ("parallelize", "csr", SPMV, |s| step(s, "parallelize", &[Arg::from("j")])),
        ("parallelize", "coo", SPMV, |s| step(s, "parallelize", &[Arg::from("i")])),
        ("parallelize", "csr", SUM, |s| step(s, "parallelize", &[Arg::from("j")])),
        ("vectorize", "csr", SPMV, |s| step(s, "vectorize", &[Arg::from("j")])),
        ("vectorize", "csr", SPMM, |s| step(s, "vectorize", &[Arg::from("k")])),
        ("vectorize", "csr", SUM, |s| step(s, "vectorize", &[Arg::from("j")])),
        ("unroll", "csr", SPMM, |s| step(s, "unroll", &[Arg::from("k")])),
        ("unroll", "csr", SPMV, |s| step(s, "unroll", &[Arg::from("j"), Arg::named("factor", 4)])),
        ("unroll", "csr", SUM, |s| step(s, "unroll", &[Arg::from("j"), Arg::named("factor", 4)])),
        ("unroll", UNORDERED, SPMV, |s| step(s, "unroll", &[Arg::from("j"), Arg::named("factor", 4)])),
        ("blend", "csr", SPMM, |s| step(s, "blend", &[Arg::from("k")])),
        ("blend", "csr", SPMV, |s| {
            step(s, "split", &[Arg::from("j"), Arg::from(2)])?;
            step(s, "blend", &[Arg::from("j~i")])
        }),
    ]);
    expect![[r#"
        parallelize, csr: taken
            i from 0 to n, parallel
              j.p from A.pos1[i] to A.pos1[i + 1]
        parallelize, csr: taken
            i from 0 to n
              j.p from A.pos1[i] to A.pos1[i + 1], parallel
        parallelize, coo: cannot lower loops over stored elements of `A` after `parallelize`: the loop `i` cannot be parallel or vectorised: it joins positions of `A`
        parallelize, csr: cannot lower loops over stored elements of `A` after `parallelize`: the loop `j` cannot be parallel or vectorised: it merges `A` and `B`
        vectorize, csr: taken
            i from 0 to n
              j.p from A.pos1[i] to A.pos1[i + 1], vectorised
        vectorize, csr: taken
            i from 0 to n
              j.p from A.pos1[i] to A.pos1[i + 1]
                k from 0 to 3, vectorised
        vectorize, csr: cannot lower loops over stored elements of `A` after `vectorize`: the loop `j` cannot be parallel or vectorised: it merges `A` and `B`
        unroll, csr: taken
            i from 0 to n
              j.p from A.pos1[i] to A.pos1[i + 1]
        unroll, csr: taken
            i from 0 to n
              j~o from 0 to (m + 3) // 4
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
        unroll, csr: taken
            i from 0 to n
              j~o from 0 to (m + 3) // 4
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while B.p.probe < B.p.top
                while B.p < B.p.top
                while B.p.probe < B.p.top
                while B.p < B.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while B.p.probe < B.p.top
                while B.p < B.p.top
                while B.p.probe < B.p.top
                while B.p < B.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while B.p.probe < B.p.top
                while B.p < B.p.top
                while B.p.probe < B.p.top
                while B.p < B.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while B.p.probe < B.p.top
                while B.p < B.p.top
                while B.p.probe < B.p.top
                while B.p < B.p.top
        unroll, format(compressed(unique=False, ordered=False), singleton(ordered=False)): cannot lower loops over stored elements of `A` after `split`: cannot look up one coordinate of `A`: its level is not ordered, and may store it at several positions
        blend, csr: taken
            i from 0 to n
              j.p from A.pos1[i] to A.pos1[i + 1]
        blend, csr: taken
            i from 0 to n
              j~o from 0 to (m + 1) // 2
                while A.p.probe < A.p.top
                while A.p < A.p.top
                while A.p.probe < A.p.top
                while A.p < A.p.top
    "#]].assert_eq(&found);
}

#[test]
fn steps_that_cache_tensors() {
    let twice = "for i in range(n):\n    for j in range(m):\n        y[i] += A[i, j] * B[i, j]";
    let written = "C: f64[n, m] @ pattern(A) = zeros((n, m), f64)\nfor i in range(n):\n    for l in range(2):\n        for j in range(m):\n            C[i, j] += A[i, j] * x[j]\nfor i in range(n):\n    for j in range(m):\n        y[i] += C[i, j]";
    let found = table(&[
        ("cache", "csr", twice, |s| step(s, "cache", &[Arg::from("j"), Arg::from("B")])),
        ("cache", "csr", written, |s| step(s, "cache", &[Arg::from("l"), Arg::from("C")])),
        ("cache_reduction", "csr", written, |s| step(s, "cache_reduction", &[Arg::from("l"), Arg::from("C")])),
        ("cache_reduction", "csr", SPMM, |s| step(s, "cache_reduction", &[Arg::from("j"), Arg::from("Y")])),
        ("cache_reduction", "csr", written, |s| step(s, "cache_reduction", &[Arg::from("i#2"), Arg::from("C")])),
    ]);
    expect![[r#"
        cache, csr: taken
            B_cache.at from 0 to m
            i from 0 to n
              B.cache.d1.p from B.pos1[i] to B.pos1[i + 1]
              j.p from A.pos1[i] to A.pos1[i + 1]
              B_cache.p from 0 to B.cache.n1[0]
        cache, csr: cannot cache the structured tensor `C`, which the statement writes
        cache_reduction, csr: taken
            C_partial.at from 0 to m
            C.p from 0 to A.n1
            i from 0 to n
              l from 0 to 2
                j.p from A.pos1[i] to A.pos1[i + 1]
              C.partial.back.d1.p from 0 to C.partial.n1[0]
                while C.partial.back.d1.A.probe < C.partial.back.d1.A.top
                while C.partial.back.d1.A < C.partial.back.d1.A.top
              C_partial.p from 0 to C.partial.n1[0]
            i from 0 to n
              j.p from A.pos1[i] to A.pos1[i + 1]
        cache_reduction, csr: taken
            i from 0 to n
              Y.partial.d1 from 0 to 3
              j.p from A.pos1[i] to A.pos1[i + 1]
                k from 0 to 3
              Y.partial.back.d1 from 0 to 3
        cache_reduction, csr: `C` is read in the statement
    "#]]
    .assert_eq(&found);
}
