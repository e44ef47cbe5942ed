//! Tests of the provers against enumeration: random scopes with small sizes, all points in them, and random queries.

use super::expressions::{Env, Rng};
use taffeta_analysis::query::Context;
use taffeta_ast::expr::Literal;
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Extent, Stmt, Symbol, Tensor, print};

/// Layer of a scope.
#[derive(Clone, Debug)]
enum Layer {
    Loop(Symbol, Extent),
    Given(Expr),
}

/// Random scope: loops and conditions over `n` and `m`.
struct Scope {
    sizes: [Symbol; 2],
    table: Tensor,
    layers: Vec<Layer>,
    vars: Vec<Symbol>,
}

impl Scope {
    fn random(rng: &mut Rng) -> Scope {
        let sizes = [Symbol::new("n"), Symbol::new("m")];
        let table = Tensor::dense(Symbol::new("t"), DType::I32, vec![Expr::var(&sizes[0])], Role::Input);
        let mut vars = sizes.to_vec();
        let mut layers = Vec::new();
        for k in 0..rng.between(1, 4) {
            if k == 0 || rng.below(2) == 0 {
                let iter = Symbol::new(["i", "j", "k", "l"][k as usize]);
                let simple = rng.below(2) == 0;
                let begin = if simple { Expr::int(0) } else { rng.int(1, &vars, &table) };
                let end = if simple { Expr::var(rng.pick(&sizes)) } else { rng.int(1, &vars, &table) };
                let step = Expr::int(*rng.pick(&[1, 1, 1, 2, 3, -1, -2]));
                let (begin, end) = if simple && step.as_int() < Some(0) {
                    (end.minus(&Expr::int(1)), Expr::int(-1))
                } else {
                    (begin, end)
                };
                layers.push(Layer::Loop(iter.clone(), Extent::Range { begin, end, step }));
                vars.push(iter);
            } else {
                layers.push(Layer::Given(rng.cond(2, &vars, &table)));
            }
        }
        Scope { sizes, table, layers, vars }
    }

    /// Returns the facts of the scope.
    fn context(&self) -> Context {
        let mut c = Context::empty();
        for s in &self.sizes {
            c.size(s);
        }
        c.declare(&self.table);
        for layer in &self.layers {
            match layer {
                Layer::Loop(iter, extent) => c.enter_loop(iter, extent, &Stmt::nop()),
                Layer::Given(cond) => c.assume(cond),
            }
        }
        c
    }

    /// Enumerates the points of the scope for small sizes and a few tables.
    fn points(&self, rng: &mut Rng) -> Vec<Env> {
        let mut out = Vec::new();
        for n in SIZES {
            for m in SIZES {
                let mut env = Env::default();
                env.vars.insert(self.sizes[0].clone(), n);
                env.vars.insert(self.sizes[1].clone(), m);
                let values = (0..n).map(|_| Literal::Int(i128::from(rng.between(-2, 6)))).collect();
                env.tables.insert(self.table.symbol.clone(), values);
                enumerate(&self.layers, env, &mut out);
            }
        }
        out
    }

    fn describe(&self) -> String {
        let layer = |l: &Layer| match l {
            Layer::Loop(i, Extent::Range { begin, end, step }) => {
                format!("for {i} in range({}, {}, {})", print::expr(begin), print::expr(end), print::expr(step))
            }
            Layer::Loop(i, Extent::Reals) => format!("for {i} in reals"),
            Layer::Given(c) => format!("if {}", print::expr(c)),
        };
        self.layers.iter().map(layer).collect::<Vec<_>>().join(": ")
    }
}

fn enumerate(layers: &[Layer], mut env: Env, out: &mut Vec<Env>) {
    let Some((layer, rest)) = layers.split_first() else {
        out.push(env);
        return;
    };
    match layer {
        Layer::Given(cond) => {
            if env.holds(cond) == Some(true) {
                enumerate(rest, env, out);
            }
        }
        Layer::Loop(iter, Extent::Range { begin, end, step }) => {
            let (Some(mut i), Some(end), Some(step)) = (env.int(begin), env.int(end), env.int(step)) else { return };
            while if step > 0 { i < end } else { i > end } {
                env.vars.insert(iter.clone(), i as i64);
                enumerate(rest, env.clone(), out);
                i += step;
            }
        }
        Layer::Loop(_, Extent::Reals) => {}
    }
}

/// Sizes for the enumeration; the largest one makes fewer conditions true by chance.
const SIZES: [i64; 6] = [0, 1, 2, 3, 4, 9];
/// Number of rounds of the random tests, and their seed.
const ROUNDS: u64 = 400;
const SEED: u64 = 20_240_229;

#[test]
fn proved_conditions_hold_at_every_point() {
    let (mut true_everywhere, mut proved) = (0, 0);
    for round in 0..ROUNDS {
        let mut rng = Rng::new(SEED + round);
        let scope = Scope::random(&mut rng);
        let points = scope.points(&mut rng);
        let mut facts = scope.context();
        if facts.is_unreachable() {
            assert!(points.is_empty(), "seed {}: {} is reached", SEED + round, scope.describe());
        }
        for _ in 0..8 {
            let cond = rng.cond(2, &scope.vars, &scope.table);
            let truths: Vec<bool> = points.iter().filter_map(|p| p.holds(&cond)).collect();
            let text = || format!("seed {}: {}: {}", SEED + round, scope.describe(), print::expr(&cond));
            let (yes, no) = (facts.prove(&cond), facts.refute(&cond));
            assert!(!yes || truths.iter().all(|t| *t), "proved but false: {}", text());
            assert!(!no || truths.iter().all(|t| !*t), "refuted but true: {}", text());
            if !facts.may_stop(&cond) {
                assert_eq!(truths.len(), points.len(), "stops: {}", text());
            }
            if truths.len() > 5 && truths.iter().all(|t| *t) && cond.as_bool().is_none() {
                true_everywhere += 1;
                proved += u32::from(yes);
            }
        }
    }
    println!("proved {proved} of {true_everywhere} conditions that hold for small sizes");
    assert!(proved * 100 >= true_everywhere * 52, "precision fell: {proved} of {true_everywhere}");
}

#[test]
fn bounds_hold_at_every_point() {
    let (mut all, mut tight) = (0, 0);
    for round in 0..ROUNDS {
        let mut rng = Rng::new(SEED + 7000 + round);
        let scope = Scope::random(&mut rng);
        let points = scope.points(&mut rng);
        let mut facts = scope.context();
        for _ in 0..8 {
            let e = rng.int(3, &scope.vars, &scope.table);
            let text =
                |what: &str| format!("seed {}: {}: {} {what}", SEED + 7000 + round, scope.describe(), print::expr(&e));
            let bounds = facts.bounds(&e);
            let short = facts.shorten(&e);
            let constant = facts.constant(&e);
            let values: Vec<(&Env, i128)> = points.iter().filter_map(|p| Some((p, p.int(&e)?))).collect();
            for (p, v) in &values {
                let (i, c) = (bounds.interval, bounds.congruence);
                assert!(i.lo <= *v && *v <= i.hi, "{}", text(&format!("is {v}, not in {i:?}")));
                let residue = if c.modulus == 0 { *v } else { v.rem_euclid(c.modulus) };
                assert_eq!(residue, c.residue, "{}", text(&format!("is {v}, not {c:?}")));
                assert_eq!(p.int(&short), Some(*v), "{}", text(&format!("shortened to {}", print::expr(&short))));
                if let Some(k) = &constant {
                    assert_eq!(p.int(k), Some(*v), "{}", text("is not constant"));
                }
            }
            if !facts.may_stop(&e) {
                assert_eq!(values.len(), points.len(), "{}", text("stops"));
            }
            if values.len() > 5 && e.as_literal().is_none() {
                all += 1;
                // Sizes have no upper bound, so only one end of the interval must be attained.
                let meets = |b: i128| values.iter().any(|(_, v)| *v == b);
                tight += u32::from(meets(bounds.interval.lo) || meets(bounds.interval.hi));
            }
        }
    }
    println!("{tight} of {all} intervals touch a value");
    assert!(tight * 100 >= all * 48, "precision fell: {tight} of {all}");
}

/// Returns a scope with sizes, and an iterator below each of them.
fn below(names: &[(&str, &str)]) -> (Context, Vec<Expr>, Vec<Expr>) {
    let mut c = Context::empty();
    let sizes: Vec<Symbol> = names.iter().map(|(n, _)| Symbol::new(*n)).collect();
    sizes.iter().for_each(|s| c.size(s));
    let shape: Vec<Expr> = sizes.iter().map(Expr::var).collect();
    let one_row = shape.iter().fold(Expr::int(1), |p, n| p.times(n));
    c.declare(&Tensor::dense(Symbol::new("x"), DType::F32, shape.clone(), Role::Input));
    c.declare(&Tensor::dense(Symbol::new("y"), DType::F32, vec![one_row], Role::Result));
    let mut iterators = Vec::new();
    for ((_, i), n) in names.iter().zip(&shape) {
        let iter = Symbol::new(*i);
        let extent = Extent::Range { begin: Expr::int(0), end: n.clone(), step: Expr::int(1) };
        c.enter_loop(&iter, &extent, &Stmt::nop());
        iterators.push(Expr::var(&iter));
    }
    (c, shape, iterators)
}

#[test]
fn flattened_indices_are_in_range() {
    let names = [("n", "i"), ("m", "j"), ("p", "k"), ("q", "l")];
    for dims in 2..=names.len() {
        let (mut c, sizes, iters) = below(&names[..dims]);
        let flat = iters.iter().zip(&sizes).skip(1).fold(iters[0].clone(), |at, (i, n)| at.times(n).plus(i));
        let total = sizes.iter().fold(Expr::int(1), |p, n| p.times(n));
        assert!(c.prove(&Expr::int(0).less_eq(&flat)), "{dims} dimensions, lower bound");
        assert!(c.prove(&flat.less(&total)), "{dims} dimensions, upper bound");
        // isl and z3 find no proof here.
        assert!(!c.prove(&flat.plus(&Expr::int(1)).less(&total)));
        // The reverse: the last iterator is recovered from the flattened index.
        let last = &sizes[dims - 1];
        assert_eq!(print::expr(&c.shorten(&flat.modulo(last))), print::expr(&iters[dims - 1]));
    }
}

/// Checks that facts about a remainder hold for the dividend once a later fact makes both equal.
#[test]
fn facts_about_remainders_hold_for_equal_dividends() {
    let (mut c, sizes, iters) = below(&[("n", "i"), ("m", "j")]);
    let ([n, m], [i, j], one) = (&sizes[..], &iters[..], Expr::int(1)) else { unreachable!("there are two of each") };
    let at = i.minus(&one).modulo(n);
    c.assume(&at.plus(j).less(m));
    c.assume(&one.less_eq(i));
    assert!(c.prove(&at.plus(j).plus(&one).less(&m.plus(&one))));
    assert!(!c.prove(&at.plus(j).plus(&one).less(m)));
}

#[test]
fn a_lower_bound_by_a_minimum_is_split_into_cases() {
    // The tail of a block aligned to the end: `k >= min(m - o, 8)`, `k < 8` and `o + k < m`.
    let (m, o, k) = (Symbol::new("m"), Symbol::new("o"), Symbol::new("k"));
    let e = [&m, &o, &k].map(Expr::var);
    let [m_, o_, k_] = &e;
    let int = Expr::int;
    let mut c = Context::empty();
    c.size(&m);
    c.size(&o);
    let begin = m_.minus(o_).min_with(&int(8));
    c.enter_loop(&k, &Extent::Range { begin, end: int(8), step: int(1) }, &Stmt::nop());
    assert!(c.refute(&o_.plus(k_).less(m_)));
    // With one more iteration, all three can hold.
    let mut c = Context::empty();
    c.size(&m);
    c.size(&o);
    let begin = m_.minus(o_).min_with(&int(8));
    c.enter_loop(&k, &Extent::Range { begin, end: int(9), step: int(1) }, &Stmt::nop());
    assert!(!c.refute(&o_.plus(k_).less(m_)));
    // The head of a block: `k < max(o, 3)`, `k >= 3` and `k >= o`.
    let mut c = Context::empty();
    c.size(&o);
    c.enter_loop(&k, &Extent::Range { begin: int(3), end: o_.max_with(&int(3)), step: int(1) }, &Stmt::nop());
    assert!(c.refute(&o_.less_eq(k_)));
}

#[test]
fn factors_of_positive_products_are_positive() {
    let (n, m, i) = (Symbol::new("n"), Symbol::new("m"), Symbol::new("i"));
    let [n_, m_, i_] = &[&n, &m, &i].map(Expr::var);
    let int = Expr::int;
    let scope = |end: &Expr| {
        let mut c = Context::empty();
        c.size(&n);
        c.size(&m);
        assert!(!c.prove(&int(1).less_eq(m_)));
        c.declare(&Tensor::dense(Symbol::new("x"), DType::F32, vec![n_.clone(), m_.clone()], Role::Input));
        c.enter_loop(&i, &Extent::Range { begin: int(0), end: end.clone(), step: int(1) }, &Stmt::nop());
        c
    };
    let mut c = scope(&n_.times(m_));
    assert!(c.prove(&int(1).less_eq(m_)) && c.prove(&int(1).less_eq(n_)));
    assert!(!c.may_stop(&i_.floor_div(m_)), "i // m");
    // Either term of a sum may be 0.
    let mut c = scope(&n_.times(m_).plus(&int(1)));
    assert!(!c.prove(&int(1).less_eq(m_)));
}
