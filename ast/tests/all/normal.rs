//! Normal form of expressions and of sizes: values and errors are preserved.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use taffeta_ast::expr::{Literal, wrap_to};
use taffeta_ast::scalar::{self, Fault};
use taffeta_ast::{DType, Expr, ExprKind, Op, Symbol, poly};

fn text(e: &Expr, expected: &str) {
    assert_eq!(taffeta_ast::print::expr(e), expected);
}

#[test]
fn index_arithmetic_has_a_normal_form() {
    let n = Expr::var(&Symbol::new("n"));
    let int = Expr::int;
    text(&n.plus(&int(0)), "n");
    text(&int(0).plus(&n), "n");
    text(&int(1).plus(&n), "n + 1");
    text(&n.plus(&int(1)).minus(&int(1)), "n");
    text(&n.plus(&int(3)).minus(&int(5)), "n - 2");
    text(&n.minus(&int(-3)), "n + 3");
    text(&int(2).times(&n), "n * 2");
    text(&n.times(&int(1)), "n");
    text(&n.times(&int(0)), "0");
    text(&n.minus(&n), "0");
    text(&n.floor_div(&int(1)), "n");
    text(&n.modulo(&int(1)), "0");
    text(&int(5).minus(&n), "5 - n");
    text(&int(7).floor_div(&int(-2)), "-4");
    text(&int(1).floor_div(&int(0)), "1 // 0");
    text(&n.plus(&int(i64::MIN)), "n + (-9223372036854775807 - 1)");
    let x = taffeta_ast::build::local("x", DType::U8, []).load([]);
    text(&x.minus(&Expr::literal(Literal::Int(3), DType::U8)), "x - 3");
    text(&x.plus(&Expr::literal(Literal::Int(200), DType::U8)), "x - 56");
}

#[test]
fn operations_that_may_fail_are_kept() {
    let n = Expr::var(&Symbol::new("n"));
    let fails = Expr::int(1).floor_div(&n);
    text(&fails.times(&Expr::int(0)), "1 // n * 0");
    text(&fails.minus(&fails), "1 // n - 1 // n");
    let cond = fails.equals(&Expr::int(0));
    text(&cond.and(&Expr::bool(false)), "1 // n == 0 and False");
    text(&Expr::bool(false).and(&cond), "False");
    text(&cond.or(&Expr::bool(true)), "1 // n == 0 or True");
    text(&cond.select(&n, &n), "n if 1 // n == 0 else n");
    text(&Expr::bool(true).select(&n, &fails), "n");
}

#[test]
fn sizes_with_equal_polynomials_are_equal() {
    let [n, m] = ["n", "m"].map(|s| Expr::var(&Symbol::new(s)));
    let int = Expr::int;
    assert_eq!(poly::equal(&n.plus(&n), &int(2).times(&n)), Some(true));
    assert_eq!(
        poly::equal(&n.plus(&m).times(&n.plus(&m)), &n.times(&n).plus(&m.times(&n).times(&int(2))).plus(&m.times(&m))),
        Some(true)
    );
    assert_eq!(poly::equal(&n.plus(&int(1)), &n), Some(false));
    assert_eq!(poly::equal(&n, &m), None);
    assert_eq!(poly::equal(&n.plus(&int(1 << 62)).times(&int(4)), &n.times(&int(4))), Some(true));
    assert_eq!(poly::equal(&n.floor_div(&int(2)), &n.floor_div(&int(2))), Some(true));
}

/// Expression as written, before normalisation.
#[derive(Clone, Debug)]
enum Raw {
    Const(i64),
    Var(usize),
    Apply(Op, Vec<Raw>),
    Select(Box<[Raw; 2]>, Op, Box<[Raw; 2]>),
}

const VARS: usize = 3;

fn raw() -> impl Strategy<Value = Raw> {
    let leaf = prop_oneof![
        prop_oneof![-3i64..4, Just(i64::MIN), Just(i64::MAX), -130i64..300].prop_map(Raw::Const),
        (0..VARS).prop_map(Raw::Var),
    ];
    let binary = prop::sample::select(vec![
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::FloorDiv,
        Op::Mod,
        Op::Min,
        Op::Max,
        Op::BitAnd,
        Op::BitOr,
        Op::BitXor,
        Op::Shl,
        Op::Shr,
        Op::Pow,
    ]);
    let unary = prop::sample::select(vec![Op::Neg, Op::Abs, Op::Sign, Op::BitNot]);
    let compare = prop::sample::select(vec![Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge]);
    leaf.prop_recursive(5, 40, 2, move |inner| {
        prop_oneof![
            4 => (binary.clone(), inner.clone(), inner.clone()).prop_map(|(op, a, b)| Raw::Apply(op, vec![a, b])),
            1 => (unary.clone(), inner.clone()).prop_map(|(op, a)| Raw::Apply(op, vec![a])),
            1 => (compare.clone(), [inner.clone(), inner.clone()], [inner.clone(), inner])
                .prop_map(|(op, c, v)| Raw::Select(Box::new(c), op, Box::new(v))),
        ]
    })
}

fn build(raw: &Raw, dtype: DType, vars: &[Expr]) -> Expr {
    match raw {
        Raw::Const(c) => Expr::literal(Literal::Int(i128::from(*c)), dtype),
        Raw::Var(k) => vars[*k].clone(),
        Raw::Apply(op, args) => Expr::apply(*op, args.iter().map(|a| build(a, dtype, vars)).collect()),
        Raw::Select(c, op, v) => {
            let [a, b] = &**c;
            let cond = Expr::apply(*op, vec![build(a, dtype, vars), build(b, dtype, vars)]);
            cond.select(&build(&v[0], dtype, vars), &build(&v[1], dtype, vars))
        }
    }
}

fn meaning(raw: &Raw, dtype: DType, vars: &[Literal]) -> Result<Literal, Fault> {
    match raw {
        Raw::Const(c) => Ok(Literal::Int(wrap_to(i128::from(*c), dtype))),
        Raw::Var(k) => Ok(vars[*k]),
        Raw::Apply(op, args) => {
            let args = args.iter().map(|a| meaning(a, dtype, vars)).collect::<Result<Vec<_>, _>>()?;
            scalar::apply(*op, dtype, &args)
        }
        Raw::Select(c, op, v) => {
            let args = [meaning(&c[0], dtype, vars)?, meaning(&c[1], dtype, vars)?];
            let holds = scalar::apply(*op, dtype, &args)? == Literal::Bool(true);
            meaning(&v[usize::from(!holds)], dtype, vars)
        }
    }
}

/// Evaluates a tree whose leaves are constants and loads of scalars.
fn value(e: &Expr, vars: &[(Expr, Literal)]) -> Result<Literal, Fault> {
    match e.kind() {
        ExprKind::Const(v) => Ok(*v),
        ExprKind::Apply(Op::Select, args) => {
            let holds = value(&args[0], vars)? == Literal::Bool(true);
            value(&args[if holds { 1 } else { 2 }], vars)
        }
        ExprKind::Apply(op, args) => {
            let operand = args[args.len() - 1].dtype();
            let args = args.iter().map(|a| value(a, vars)).collect::<Result<Vec<_>, _>>()?;
            scalar::apply(*op, operand, &args)
        }
        _ => Ok(vars.iter().find(|(v, _)| v == e).expect("a leaf").1),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn constructors_keep_value_and_errors(
        raw in raw(),
        dtype in prop::sample::select(vec![DType::I8, DType::U8, DType::I32, DType::I64, DType::U64]),
        values in prop::collection::vec(prop_oneof![-3i64..4, any::<i64>(), Just(i64::MIN), Just(-128)], VARS),
    ) {
        let vars: Vec<Expr> = (0..VARS).map(|k| taffeta_ast::build::local(&format!("v{k}"), dtype, []).load([])).collect();
        let values: Vec<Literal> =
            values.iter().map(|v| Literal::Int(wrap_to(i128::from(*v), dtype))).collect();
        let e = build(&raw, dtype, &vars);
        let bound: Vec<(Expr, Literal)> = vars.into_iter().zip(values.iter().copied()).collect();
        let (expected, found) = (meaning(&raw, dtype, &values), value(&e, &bound));
        prop_assert_eq!(expected.is_ok(), found.is_ok(), "{}", taffeta_ast::print::expr(&e));
        if expected.is_ok() {
            prop_assert_eq!(expected, found, "{}", taffeta_ast::print::expr(&e));
        } else {
            prop_assert!(e.may_fail(), "{}", taffeta_ast::print::expr(&e));
        }
    }

    #[test]
    fn identity_rewrites_change_nothing(raw in raw()) {
        let vars: Vec<Expr> = (0..VARS).map(|k| Expr::var(&Symbol::new(format!("v{k}")))).collect();
        let e = build(&raw, DType::I64, &vars);
        let rebuilt = e.rewrite(&mut |e| match e.kind() {
            ExprKind::Apply(op, args) => Expr::apply(*op, args.clone()),
            _ => e,
        });
        prop_assert_eq!(taffeta_ast::print::expr(&rebuilt), taffeta_ast::print::expr(&e));
    }

    // Checks that each variable is replaced once: after `(v + 1) - 1` has become `v`, `v` is not replaced again.
    #[test]
    fn variables_are_replaced_once(
        raw in raw(),
        shift in -2i64..3,
        values in prop::collection::vec(-50i64..50, VARS),
    ) {
        let vars: Vec<Expr> = (0..VARS).map(|k| Expr::var(&Symbol::new(format!("v{k}")))).collect();
        let e = build(&raw, DType::I64, &vars);
        let shifted = e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(_) => e.plus(&Expr::int(shift)),
            _ => e,
        });
        let at = |shift: i64| -> Vec<(Expr, Literal)> {
            vars.iter().cloned().zip(values.iter().map(|v| Literal::Int(i128::from(*v + shift)))).collect()
        };
        if let (Ok(expected), Ok(found)) = (value(&e, &at(shift)), value(&shifted, &at(0))) {
            let print = taffeta_ast::print::expr;
            prop_assert_eq!(expected, found, "{} is {}", print(&e), print(&shifted));
        }
    }

    #[test]
    fn equal_polynomials_have_equal_values(a in raw(), b in raw(), values in prop::collection::vec(-50i64..50, VARS)) {
        let vars: Vec<Expr> = (0..VARS).map(|k| Expr::var(&Symbol::new(format!("v{k}")))).collect();
        let bound: Vec<(Expr, Literal)> =
            vars.iter().cloned().zip(values.iter().map(|v| Literal::Int(i128::from(*v)))).collect();
        let (a, b) = (build(&a, DType::I64, &vars), build(&b, DType::I64, &vars));
        if let (Ok(x), Ok(y), Some(equal)) = (value(&a, &bound), value(&b, &bound), poly::equal(&a, &b)) {
            prop_assert_eq!(x == y, equal, "{} and {}", taffeta_ast::print::expr(&a), taffeta_ast::print::expr(&b));
        }
    }
}
