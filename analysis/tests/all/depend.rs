//! Tests of the dependence analysis on typical programs.

use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Relation};
use taffeta_ast::{Func, print};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

/// Elaborates the only entry of a program.
pub fn entry(text: &str) -> Func {
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    let name = program.entries()[0].name.clone();
    program.elaborate(&name, &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}"))
}

fn line(d: &Dependence) -> String {
    let text = |s: &taffeta_ast::Stmt| print::stmt(s).lines().next().unwrap_or_default().to_string();
    let loops: Vec<String> = d
        .loops
        .iter()
        .map(|(s, r)| {
            let taffeta_ast::StmtKind::For { iter, .. } = s.kind() else { return String::new() };
            format!(
                "{iter}{}",
                match r {
                    Relation::Same => "=",
                    Relation::Later => "<",
                    Relation::Earlier => ">",
                    Relation::Any => "*",
                }
            )
        })
        .collect();
    let list =
        |v: &[(taffeta_ast::Symbol, i64)]| v.iter().map(|(s, v)| format!("{s}={v}")).collect::<Vec<_>>().join(",");
    let w = &d.witness;
    let assumed: Vec<String> = w.assumed.iter().map(|(e, v)| format!("{}={v}", print::expr(e))).collect();
    format!(
        "{} {} [{}]: {} -> {}  at {} ({}) ({}) {:?}{}{}",
        d.kind.short(),
        d.source.tensor,
        loops.join(" "),
        text(&d.source.site.stmt),
        text(&d.sink.site.stmt),
        list(&w.sizes),
        list(&w.source),
        list(&w.sink),
        w.element,
        if assumed.is_empty() { String::new() } else { format!(" if {}", assumed.join(", ")) },
        if w.exact { "" } else { " ?" },
    )
}

fn all(text: &str) -> String {
    let func = entry(text);
    Dependences::new(&func).all(&DependenceQuery::default()).iter().map(|d| line(d) + "\n").collect()
}

use expect_test::{Expect, expect};

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&all(text));
}

#[test]
fn figure_11() {
    check(
        "
def f(a: inout[f32[N, M]]):
    for i in range(1, N - 1):
        for j in range(1, M - 1):
            a[i + 1, j] = a[i - 1, j + 1] + a[i - 1, j - 1]
",
        expect![[r#"
            RAW a [i< j*]: a[i + 1, j] = a[i - 1, j + 1] + a[i - 1, j - 1] -> a[i + 1, j] = a[i - 1, j + 1] + a[i - 1, j - 1]  at N=5,M=4 (i=1,j=2) (i=3,j=1) Some([2, 2])
            RAW a [i< j*]: a[i + 1, j] = a[i - 1, j + 1] + a[i - 1, j - 1] -> a[i + 1, j] = a[i - 1, j + 1] + a[i - 1, j - 1]  at N=5,M=4 (i=1,j=1) (i=3,j=2) Some([2, 1])
        "#]],
    );
}

#[test]
fn figure_12() {
    check(
        "
def a(x: inout[f32[N, M]], b: f32[N, M]):
    for i in range(N):
        for j in range(M):
            x[i, j] = b[i, j] + 1
",
        expect![[r#""#]],
    );
    check(
        "
def b(x: inout[f32], b: f32[N, M]):
    for i in range(N):
        for j in range(M):
            x[...] = x * b[i, j] + 1
",
        expect![[r#"
            WAR x [i< j*]: x = x * b[i, j] + 1.0 -> x = x * b[i, j] + 1.0  at N=2,M=1 (i=0,j=0) (i=1,j=0) Some([])
            WAR x [i= j<]: x = x * b[i, j] + 1.0 -> x = x * b[i, j] + 1.0  at N=1,M=2 (i=0,j=0) (i=0,j=1) Some([])
            RAW x [i< j*]: x = x * b[i, j] + 1.0 -> x = x * b[i, j] + 1.0  at N=2,M=1 (i=0,j=0) (i=1,j=0) Some([])
            RAW x [i= j<]: x = x * b[i, j] + 1.0 -> x = x * b[i, j] + 1.0  at N=1,M=2 (i=0,j=0) (i=0,j=1) Some([])
            WAW x [i< j*]: x = x * b[i, j] + 1.0 -> x = x * b[i, j] + 1.0  at N=2,M=1 (i=0,j=0) (i=1,j=0) Some([])
            WAW x [i= j<]: x = x * b[i, j] + 1.0 -> x = x * b[i, j] + 1.0  at N=1,M=2 (i=0,j=0) (i=0,j=1) Some([])
        "#]],
    );
    check(
        "
def c(x: inout[f32], b: f32[N, M]):
    for i in range(N):
        for j in range(M):
            x += b[i, j]
",
        expect![[r#""#]],
    );
    check(
        "
def d(x: inout[f32[N, M, K]], b: f32[N, M, K]):
    for i in range(N):
        for j in range(M):
            t = zeros((K,), f32)
            for k in range(K):
                t[k] = b[i, j, k] * 2
            for k in range(K):
                x[i, j, k] = t[k]
",
        expect![[r#"
            WAW t [i= j=]: t[t.d0] = 0.0 -> t[k] = b[i, j, k] * 2.0  at N=1,M=1,K=1 (i=0,j=0,t.d0=0) (i=0,j=0,k=0) Some([0])
            RAW t [i= j=]: t[t.d0] = 0.0 -> x[i, j, k] = t[k]  at N=1,M=1,K=1 (i=0,j=0,t.d0=0) (i=0,j=0,k=0) Some([0])
            RAW t [i= j=]: t[k] = b[i, j, k] * 2.0 -> x[i, j, k] = t[k]  at N=1,M=1,K=1 (i=0,j=0,k=0) (i=0,j=0,k=0) Some([0])
        "#]],
    );
}

#[test]
fn indirect_accesses_are_opaque_functions_of_their_instance() {
    check(
        "
def f(y: inout[f32[n]], idx: i32[m]):
    for i in range(m):
        y[idx[i]] = y[idx[i]] * 2
",
        expect![[r#""#]],
    );
    check(
        "
def f(y: inout[f32[n]], mask: bool[m], x: f32[m]):
    for i in range(m):
        if mask[i]:
            y[i] = x[i]
        if not mask[i]:
            y[i] = -x[i]
",
        expect![[r#""#]],
    );
    check(
        "
def f(x: inout[i64[n]], y: inout[i64[n]]):
    for i in range(n):
        if x[i] > 0:
            x[i] = -1
            if x[i] < 0:
                y[i] = x[i]
",
        expect![[r#"
            WAR x [i=]: if x[i] > 0: -> x[i] = -1  at n=1 (i=0) (i=0) Some([0]) if x[0]=1
            RAW x [i=]: x[i] = -1 -> if x[i] < 0:  at n=1 (i=0) (i=0) Some([0]) if x[0]=1
            RAW x [i=]: x[i] = -1 -> y[i] = x[i]  at n=1 (i=0) (i=0) Some([0]) if x[0]=1, x[0]=-1
        "#]],
    );
}

#[test]
fn quotient_and_remainder_determine_the_dividend() {
    check(
        "
def f(x: inout[f32[n, m]]):
    for k in range(n * m):
        x[k // m, k % m] = x[k // m, k % m] + 1
",
        expect![[""]],
    );
    // Split once more.
    check(
        "
def f(x: inout[f32[n, m]]):
    for k in range(n * m):
        for l in range(8):
            if k * 8 + l < n * m:
                x[(k * 8 + l) // m, (k * 8 + l) % m] = 0
",
        expect![[""]],
    );
    // The remainder alone does not determine the number.
    check(
        "
def f(x: inout[f32[m]], y: f32[n]):
    for k in range(n * m):
        x[k % m] = k
    for k in range(n * m):
        x[k // m % m] += x[k % m]
",
        expect![[r#"
            WAW x [k<]: x[k % m] = cast(k, f32) -> x[k % m] = cast(k, f32)  at  () () None ?
            RAW x []: x[k % m] = cast(k, f32) -> x[k // m % m] += x[k % m]  at  () () None ?
            RAW x []: x[k % m] = cast(k, f32) -> x[k // m % m] += x[k % m]  at  () () None ?
            WAR x [k<]: x[k // m % m] += x[k % m] -> x[k // m % m] += x[k % m]  at  () () None ?
            RAW x [k<]: x[k // m % m] += x[k % m] -> x[k // m % m] += x[k % m]  at  () () None ?
        "#]],
    );
}

#[test]
fn products_modulo_steps_and_bounds() {
    check(
        "
def f(x: inout[f32[n * m]], y: f32[n, m]):
    for i in range(n):
        for j in range(m):
            x[i * m + j] = y[i, j]
",
        expect![[r#""#]],
    );
    check(
        "
def f(x: inout[f32[n]]):
    for i in range(n):
        x[i] = x[(i + 1) % n]
",
        expect![[r#"
            WAR x [i<]: x[i] = x[(i + 1) % n] -> x[i] = x[(i + 1) % n]  at n=2 (i=0) (i=1) Some([1])
            RAW x [i<]: x[i] = x[(i + 1) % n] -> x[i] = x[(i + 1) % n]  at n=2 (i=0) (i=1) Some([0]) ?
        "#]],
    );
    check(
        "
def f(x: inout[f32[n]]):
    for i in range(n - 1, -1, -2):
        x[i] = x[i // 2] + x[min(i + 3, n - 1)]
",
        expect![[r#"
            WAR x [i<]: x[i] = x[i // 2] + x[min(i + 3, n - 1)] -> x[i] = x[i // 2] + x[min(i + 3, n - 1)]  at n=4 (i=3) (i=1) Some([1])
            RAW x [i<]: x[i] = x[i // 2] + x[min(i + 3, n - 1)] -> x[i] = x[i // 2] + x[min(i + 3, n - 1)]  at n=3 (i=2) (i=0) Some([2])
        "#]],
    );
    check(
        "
def f(x: inout[f32[n]]):
    assert n <= 4
    for i in range(n):
        if i + 4 < n or i > 10:
            x[i] = x[i + 4]
",
        expect![[r#""#]],
    );
}

#[test]
fn shapes_have_the_values_of_their_declaration() {
    use taffeta_ast::build::{Builder, block, branch, local, looped, store, var_def};
    use taffeta_ast::{DType, Expr, Symbol};
    let mut b = Builder::new("f");
    let n = b.size("n");
    let s = b.inout("s", DType::I64, []);
    let (t, zero) = (local("t", DType::I64, [&s.load([])]), Expr::int(0));
    let write = branch(&s.load([]).less_eq(&zero), store(&t, [&zero], &zero), None);
    // `s` was larger when `t` was declared.
    let func = b.finish(var_def(&t, block([store(&s, [], &zero), looped(&Symbol::new("i"), &n, write)])));
    let found: String =
        Dependences::new(&func).all(&DependenceQuery::default()).iter().map(|d| line(d) + "\n").collect();
    expect![[r#"
        WAR s []: t = empty((s,), i64) -> s = 0  at n=0 () () Some([])
        RAW s []: s = 0 -> if s <= 0:  at n=1 () (i=0) Some([])
        WAW t [i<]: t[0] = 0 -> t[0] = 0  at n=2 (i=0) (i=1) Some([0]) if s=0, s=1
    "#]]
    .assert_eq(&found);
}

#[test]
fn a_while_evaluates_its_condition_before_every_iteration() {
    use taffeta_ast::build::{Builder, local, store, var_def};
    use taffeta_ast::{DType, Expr, Origin, Stmt, StmtKind};
    let b = Builder::new("f");
    let s = local("s", DType::I64, []);
    let repeat = StmtKind::While { cond: s.load([]).less(&Expr::int(5)), body: store(&s, [], &Expr::int(1)) };
    let func = b.finish(var_def(&s, Stmt::new(repeat, Origin::none())));
    let found: String =
        Dependences::new(&func).all(&DependenceQuery::default()).iter().map(|d| line(d) + "\n").collect();
    expect![[r#"
        WAR s []: while s < 5: -> s = 1  at  () () Some([]) ?
        WAR s []: while s < 5: -> s = 1  at  (while=-1) (while=0) Some([]) ?
        RAW s []: s = 1 -> while s < 5:  at  (while=-1) (while=0) Some([]) ?
        WAW s []: s = 1 -> s = 1  at  (while=-1) (while=0) Some([]) ?
    "#]]
    .assert_eq(&found);
}

/// Checks that an `or` with a refuted operand, which makes the other operand a fact, still splits that operand's cases.
#[test]
fn a_witness_avoids_the_excluded_value() {
    check(
        "
def f(s: inout[f32], n_: i32[n]):
    for i in range(1, n):
        if i < i or i + 2 != n:
            s[...] = 1
",
        expect![[r#"
            WAW s [i<]: s = 1.0 -> s = 1.0  at n=5 (i=1) (i=2) Some([])
        "#]],
    );
}

/// Checks that a subscript that no fact mentions is computed from its definition.
#[test]
fn elements_of_witnesses_belong_to_their_iterations() {
    check(
        "def f(y: inout[i64[n + m + 6, n + m + 6]]):
    for i in range(n):
        y[min(i + 2, n), i + 3] = y[n + m + 5 - (i + 3), (i + 2) // 2]
",
        expect![[r#"
            RAW y [i<]: y[min(i + 2, n), i + 3] = y[n + m + 5 - (i + 3), (i + 2) // 2] -> y[min(i + 2, n), i + 3] = y[n + m + 5 - (i + 3), (i + 2) // 2]  at n=10,m=0 (i=2) (i=8) Some([4, 5])
        "#]],
    );
}
