//! Tests of the number of queries for programs with many statements: it must grow linearly with the statements, even
//! where all pairs of statements depend on each other.

use taffeta_analysis::query::depend::{DependenceQuery, Dependences, Relation};
use taffeta_ast::{Func, StmtKind, Symbol};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

fn program(text: &str) -> Func {
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    program.elaborate("f", &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"))
}

/// Returns a program with a nest of two loops around statements.
fn nest(n: usize, before: &str, line: impl Fn(usize) -> String) -> String {
    let body: String = (0..n).map(|k| format!("            {}\n", line(k))).collect();
    format!(
        "def f(x: f64[n, m]) -> f64[n, m]:\n    y = zeros((n, m), f64)\n{before}    for i in range(1, n):\n        \
         for j in range(m):\n{body}    return y\n"
    )
}

/// Counts the queries for a program: about direct dependences, distances and reductions, and about dependences carried
/// by the inner loop.
fn asked(text: &str) -> [usize; 2] {
    let func = program(text);
    let all = Dependences::new(&func);
    let direct = all.direct();
    all.distances(&direct.dependences);
    all.carried_reductions();
    let for_all = all.asked();
    let mut inner: Option<Symbol> = None;
    func.body.walk(&mut |s| {
        if let StmtKind::For { iter, .. } = s.kind() {
            inner = Some(iter.clone());
        }
    });
    let relate = |s: &taffeta_ast::Stmt| match s.kind() {
        StmtKind::For { iter, .. } if Some(iter) == inner.as_ref() => Relation::Later,
        _ => Relation::Same,
    };
    // Includes reductions, none of which meet.
    all.first(&DependenceQuery { relate: &relate, commute: false, ..DependenceQuery::default() });
    [for_all, all.asked() - for_all]
}

/// Checks that the numbers of queries for 15, 30 and 60 statements grow by at most `each` per statement.
fn check(text: impl Fn(usize) -> String, each: [usize; 2]) {
    let counts = [15, 30, 60].map(|n| asked(&text(n)));
    for (k, most) in each.into_iter().enumerate() {
        let [a, b, c] = counts.map(|c| c[k]);
        // Threads that search for the first answer make a few queries more or less.
        let most_of = |n: usize| n * most + 8;
        let grown = [b.saturating_sub(a), c.saturating_sub(b)];
        assert!(grown[0] <= most_of(15) && grown[1] <= most_of(30), "at most {most} for a statement: {counts:?}");
    }
}

#[test]
fn overwrites_of_one_element_need_no_queries() {
    check(|n| nest(n, "", |k| format!("y[i, j] = y[i, j] * {k}.5 + x[i, j]")), [0, 0]);
    check(|n| nest(n, "", |k| format!("y[i, j] += x[i, j] * {k}.5")), [0, 0]);
    check(|n| nest(n, "", |k| format!("y[i - 1, j] = y[i, j] * {k}.5 + x[i, j]")), [0, 0]);
}

#[test]
fn statements_on_columns_are_queried_with_their_neighbours() {
    let line = |k| format!("t[i, {}] = t[i - 1, {k}] * 0.5 + x[i, j]", k + 1);
    check(|n| nest(n, &format!("    t = zeros((n, {}), f64)\n", n + 1), line), [20, 4]);
}

#[test]
fn irrelevant_conditions_add_no_queries() {
    let line = |k| format!("if i > {k} and x[i, j] > 0.0:\n                y[i, j] += x[i, j] * {k}.5");
    check(|n| nest(n, "", line), [2, 0]);
}

#[test]
fn consecutive_loops_are_queried_in_pairs() {
    let body = |k: usize| format!("    for i{k} in range(n):\n        y[i{k}] = y[i{k}] * 0.5 + x[i{k}]\n");
    let text = |n: usize| {
        let body: String = (0..n).map(body).collect();
        format!("def f(x: f64[n]) -> f64[n]:\n    y = zeros((n,), f64)\n{body}    return y\n")
    };
    check(text, [8, 8]);
}

#[test]
fn declarations_between_statements_add_no_queries() {
    let line = |k| format!("c{k} = y[i, j] * {k}.5\n            y[i, j] = c{k} + x[i, j]");
    check(|n| nest(n, "", line), [8, 0]);
}

#[test]
fn direct_dependences_skip_implied_pairs() {
    let func = program(&nest(3, "", |k| format!("y[i, j] = x[i, j] * {k}.5")));
    let all = Dependences::new(&func);
    let direct = all.direct();
    // The fill before the first statement, and each statement before the next one, but not the first before the third.
    assert_eq!((direct.dependences.len(), direct.has_implied), (3, true));
    assert_eq!(all.all(&DependenceQuery::default()).len(), 6);
}
