//! Orders proposed by isl, loops generated for given orders, and checks of orders against dependences.

use expect_test::{Expect, expect};
use taffeta_analysis::polyhedral::{
    Condition, Dimension, Edge, Member, OrderConstraints, Proposal, Region, Statement, Style, Term, Tree, generate,
    propose, turned,
};
use taffeta_ast::{Expr, Symbol};

fn index(k: usize) -> Term {
    Term::Index(k)
}

fn sum(parts: &[(i64, Term)]) -> Term {
    Term::Sum(parts.to_vec())
}

/// Returns the conditions `low <= term < high - less`.
fn between(low: i64, term: Term, high: Term, less: i64) -> Vec<Condition> {
    vec![
        Condition::NotNegative(sum(&[(1, term.clone()), (-low, Term::Number(1))])),
        Condition::NotNegative(sum(&[(1, high), (-1, term), (-less - 1, Term::Number(1))])),
    ]
}

/// Returns a region of two statements per time step, `0 <= t < steps`, `1 <= i < n - 1`: the second one writes back.
fn jacobi() -> Region {
    let domain = Condition::All(
        [between(0, index(0), Term::Parameter(0), 0), between(1, index(1), Term::Parameter(1), 1)].concat(),
    );
    let parameters = ["steps", "n"].iter().map(|n| Expr::var(&Symbol::new(*n))).collect();
    let statement = Statement { indices: 2, domain };
    Region { parameters, known: Condition::All(vec![]), statements: vec![statement.clone(), statement] }
}

/// Returns an edge whose sink is at least `steps` time steps after its source, with `|i - i'| <= 1`.
fn near(source: usize, sink: usize, steps: i64) -> Edge {
    // Columns: 1, t, i, t', i', steps, n.
    let rows = vec![vec![-steps, -1, 0, 1, 0, 0, 0], vec![1, 0, 1, 0, -1, 0, 0], vec![1, 0, -1, 0, 1, 0, 0]];
    Edge { source, sink, rows }
}

fn show(tree: &Tree) -> String {
    fn lines(t: &Tree, depth: usize, out: &mut String) {
        let pad = "  ".repeat(depth);
        let text = |e: &Expr| taffeta_ast::print::expr(e);
        match t {
            Tree::Loop { iter, begin, end, step, body, .. } => {
                *out += &format!("{pad}for {iter} in range({}, {}, {step}):\n", text(begin), text(end));
                lines(body, depth + 1, out);
            }
            Tree::Branch { cond, then, otherwise } => {
                *out += &format!("{pad}if {}:\n", text(cond));
                lines(then, depth + 1, out);
                if let Some(o) = otherwise {
                    *out += &format!("{pad}else:\n");
                    lines(o, depth + 1, out);
                }
            }
            Tree::Block(all) => all.iter().for_each(|t| lines(t, depth, out)),
            Tree::Run(k, args) => {
                *out += &format!("{pad}S{k}({})\n", args.iter().map(text).collect::<Vec<_>>().join(", "));
            }
        }
    }
    let mut out = String::new();
    lines(tree, 0, &mut out);
    out
}

fn dimensions(names: &[(&str, Style)]) -> Vec<Dimension> {
    names.iter().map(|(n, style)| Dimension { names: vec![(*n).into(); 2], style: *style }).collect()
}

fn loops(region: &Region, order: &[Vec<Term>], dims: &[(&str, Style)], expected: Expect) {
    let tree = generate(region, order, &dimensions(dims)).expect("loops");
    expected.assert_eq(&show(&tree));
}

#[test]
fn generates_loops_in_a_given_order() {
    let region = jacobi();
    let plain = Style::Plain;
    let original = |k| vec![index(0), Term::Number(k), index(1)];
    loops(
        &region,
        &[original(0), original(1)],
        &[("t", plain), ("b", plain), ("i", plain)],
        expect![[r#"
        for t in range(0, steps, 1):
          for i in range(1, n - 1, 1):
            S0(t, i)
          for i in range(1, n - 1, 1):
            S1(t, i)
    "#]],
    );
    // Skewed tiles, with the original order inside of them.
    let tile = |t: Term| Term::Quotient(Box::new(t), 32);
    let tiled = |k: i64| {
        let skewed = sum(&[(2, index(0)), (1, index(1)), (k, Term::Number(1))]);
        [vec![tile(index(0)), tile(skewed)], original(k)].concat()
    };
    let names = [("T", Style::Whole), ("I", Style::Whole), ("t", plain), ("b", plain), ("i", plain)];
    loops(
        &region,
        &[tiled(0), tiled(1)],
        &names,
        expect![[r#"
        for T in range(0, (steps - 1) // 32 + 1, 1):
          for I in range(T * 2, min(T * 2 + (n - 3) // 32 + 2, (steps * 2 + n - 3) // 32) + 1, 1):
            for t in range(max(T * 32, 0 - n + I * 16 + n // 2 + 1), min(min(steps - 1, T * 32 + 31), I * 16 + 15) + 1, 1):
              for i in range(max(1, I * 32 - t * 2), min(n - 2, I * 32 - t * 2 + 31) + 1, 1):
                S0(t, i)
              for i in range(max(1, I * 32 - t * 2 - 1), min(n - 2, I * 32 - t * 2 + 30) + 1, 1):
                S1(t, i)
    "#]],
    );
}

#[test]
fn detects_orders_that_reverse_dependences() {
    let region = jacobi();
    // Each time step reads the results of its predecessor.
    let edges = [near(0, 1, 0), near(1, 0, 1), near(0, 0, 1), near(1, 1, 1)];
    let kept = |order: &[Vec<Term>]| edges.iter().all(|e| !turned(&region, e, order));
    let original = |k| vec![index(0), Term::Number(k), index(1)];
    assert!(kept(&[original(0), original(1)]));
    // The second statement first.
    assert!(!kept(&[original(1), original(0)]));
    // No order between instances of one time step.
    assert!(!kept(&[vec![index(0)], vec![index(0)]]));
    let tile = |t: Term| Term::Quotient(Box::new(t), 32);
    let tiled = |k: i64, slope: i64| {
        let skewed = sum(&[(slope, index(0)), (1, index(1)), (k, Term::Number(1))]);
        [vec![tile(index(0)), tile(skewed)], original(k)].concat()
    };
    assert!(kept(&[tiled(0, 2), tiled(1, 2)]));
    // Tiles that are not skewed enough.
    assert!(!kept(&[tiled(0, 1), tiled(1, 1)]));
    assert!(!kept(&[tiled(0, 0), tiled(1, 0)]));
}

#[test]
fn proposes_skewed_bands() {
    let region = jacobi();
    let validity = vec![near(0, 1, 0), near(1, 0, 1), near(0, 0, 1), near(1, 1, 1)];
    // Proximity edges need an upper bound in time, since no order keeps unbounded distances short.
    let next = |(mut e, steps): (Edge, i64)| {
        e.rows.push(vec![steps, 1, 0, -1, 0, 0, 0]);
        e
    };
    let proximity = [(near(0, 1, 0), 0), (near(1, 0, 1), 1)].map(next).to_vec();
    let constraints = OrderConstraints { proximity, validity, ..OrderConstraints::default() };
    let Some(Proposal::Band(members, _)) = propose(&region, &constraints) else { panic!("no band") };
    assert_eq!(members.len(), 2, "{members:?}");
    // Tiles of the band preserve every dependence.
    let order: Vec<Vec<Term>> = (0..2)
        .map(|s| {
            let row = |m: &Member| {
                let (_, r) = m.rows.iter().find(|(k, _)| *k == s).expect("a row").clone();
                let row = sum(&[(r[0], Term::Number(1)), (r[1], index(0)), (r[2], index(1))]);
                Term::Quotient(Box::new(row), 8)
            };
            members.iter().map(row).chain([index(0), Term::Number(s as i64), index(1)]).collect()
        })
        .collect();
    assert!(constraints.validity.iter().all(|e| !turned(&region, e, &order)), "{members:?}");
}

/// Checks that edges with many rows are rejected: for dependences of programs with many sizes, isl would eliminate
/// multipliers for hours, while its operation count hardly grows.
#[test]
fn gives_up_on_cones_of_many_rays() {
    let all = [0, 1, 2, 3].map(|k| between(0, index(k), Term::Parameter(k), 0)).concat();
    let statement = Statement { indices: 4, domain: Condition::All(all) };
    let parameters = (0..6).map(|k| Expr::var(&Symbol::new(format!("n{k}")))).collect();
    let region = Region { parameters, known: Condition::All(vec![]), statements: vec![statement.clone(), statement] };
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as i64 % 3 - 1
    };
    // Bounds of 43 sums, none of which is redundant.
    let rows = (0..43).map(|_| (0..15).map(|column| if column == 0 { 100 } else { next() }).collect()).collect();
    let edge = Edge { source: 0, sink: 1, rows };
    let proximity = vec![edge.clone()];
    let constraints = OrderConstraints { validity: vec![edge.clone()], proximity, ..OrderConstraints::default() };
    assert!(propose(&region, &constraints).is_none());
    // With few rows that relate source and sink, only these are passed to isl.
    let few = edge.rows.into_iter().enumerate().map(|(k, mut row)| {
        row[5..9].iter_mut().filter(|_| k >= 3).for_each(|c| *c = 0);
        row
    });
    let edge = Edge { rows: few.collect(), ..edge };
    let proximity = vec![edge.clone()];
    let constraints = OrderConstraints { validity: vec![edge], proximity, ..OrderConstraints::default() };
    assert!(propose(&region, &constraints).is_some());
}

/// Checks a region in which the edges to the last statement become empty after the loop over `i`, which takes linear
/// programming to see. While merging strongly connected components one by one, isl finds this halfway, and sorts along
/// edges that it has left out of the order.
#[test]
fn orders_statements_whose_edges_become_empty_after_a_loop() {
    let domain = Condition::All(between(0, index(0), Term::Parameter(0), 0));
    let [inner, last] =
        [(1, domain), (0, Condition::All(vec![]))].map(|(indices, domain)| Statement { indices, domain });
    let parameters = (0..3).map(|k| Expr::var(&Symbol::new(format!("n{k}")))).collect();
    let sizes = (0..3).map(|k| Condition::NotNegative(Term::Parameter(k))).collect();
    let region = Region { parameters, known: Condition::All(sizes), statements: vec![inner.clone(), inner, last] };
    // Columns: 1, i, j, p0, p1, p2. Rows: `2 p0 - 1 <= p2 <= 2 p0`, `0 <= i < p0`, `i + least <= j < p0`.
    let inside = [[1, 0, 0, -2, 0, 1], [0, 0, 0, 2, 0, -1], [0, 1, 0, 0, 0, 0], [-1, -1, 0, 1, 0, 0]];
    let between = |source, sink, least: i64| {
        let later = [[-least, -1, 1, 0, 0, 0], [-1, 0, -1, 1, 0, 0]];
        Edge { source, sink, rows: inside.iter().chain(&later).map(|r| r.to_vec()).collect() }
    };
    let to_last = |source| {
        let row = |r: &[i64; 6]| [&r[..2], &r[3..]].concat();
        Edge { source, sink: 2, rows: inside.iter().map(row).collect() }
    };
    let proximity = vec![to_last(0), to_last(1)];
    let mut validity = vec![between(0, 0, 1), between(1, 0, 1), between(1, 1, 1), between(0, 1, 0)];
    validity.extend(proximity.clone());
    let constraints = OrderConstraints { validity, proximity, ..OrderConstraints::default() };
    let Some(Proposal::Band(members, inside)) = propose(&region, &constraints) else { panic!("no band") };
    assert_eq!(members.len(), 1, "{members:?}");
    let Proposal::Sequence(parts) = *inside else { panic!("{inside:?}") };
    let at = |k: usize| parts.iter().position(|(own, _)| own.contains(&k));
    assert!(at(0) < at(1), "{parts:?}");
}
