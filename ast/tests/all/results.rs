//! Results with a pattern of their own, in the interpreter: the elements that are stored, and those that are not.

use taffeta_ast::algebra::leaves_fill;
use taffeta_ast::build::{Builder, branch, looped, reduce, store};
use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::interp::{ErrorKind, Inputs, run};
use taffeta_ast::stmt::Role;
use taffeta_ast::{Buffer, DType, Expr, Func, Literal, Op, ReduceOp, Stmt, Symbol, Tensor, Value};

fn level(kind: LevelKind, fill: f64) -> Format {
    Format { fill: Some(Literal::Float(fill)), ..Format::new(vec![Level::new(kind)]) }
}

/// Builds `for i in range(n): …` over a list `a` and a result `y` in that format, both with the fill.
fn program(kind: LevelKind, fill: f64, body: impl Fn(&Tensor, &Expr, &Expr) -> Stmt) -> Func {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let a = b.stored("a", DType::F64, [&n], level(LevelKind::Compressed, fill));
    let y = b.result("y", DType::F64, [&n]);
    let i = Symbol::new("i");
    let body = body(&y, &Expr::var(&i), &a.load([Expr::var(&i)]));
    let mut func = b.finish(looped(&i, &n, body));
    func.results[0] = std::sync::Arc::new(Tensor { format: level(kind, fill), role: Role::Result, ..(*y).clone() });
    func
}

/// Returns the elements that the result stores, where those of `a` with a number are stored.
fn stored(func: &Func, fill: f64, a: &[Option<f64>]) -> Vec<Option<f64>> {
    let whole = Value::new(vec![a.len()], Buffer::F64(a.iter().map(|v| v.unwrap_or(fill)).collect()));
    let a = whole.expect("a vector").only(Literal::Float(fill), |k| a[k].is_some());
    let out = run(func, &Inputs { params: vec![a], ..Inputs::default() }).expect("it runs");
    assert!(out.unwritten[0].is_empty(), "elements that no store came to are the fill");
    let y = &out.results[0];
    let places = y.places().expect("a sparse value");
    assert_eq!(places.fill, Literal::Float(fill));
    let mut all = vec![None; y.shape()[0]];
    places.indices.iter().zip(y.numbers()).for_each(|(i, v)| all[*i as usize] = Some(v));
    all
}

fn float(v: f64) -> Expr {
    Expr::float(v, DType::F64)
}

/// Checks that differences that cancel are stored, and that elements without an operand are not.
#[test]
fn cancelled_differences_are_stored() {
    for kind in [LevelKind::Compressed, LevelKind::Hashed, LevelKind::Blocklist, LevelKind::Bitmap] {
        let difference = program(kind, 0.0, |y, i, a| store(y, [i], &a.minus(a)));
        assert_eq!(stored(&difference, 0.0, &[None, Some(2.0), None]), [None, Some(0.0), None], "{kind:?}");
    }
}

/// Checks that a condition leaves zeros out.
#[test]
fn conditions_prune() {
    let nonzero = |y: &Tensor, i: &Expr, a: &Expr| branch(&a.equals(&float(0.0)).negate(), store(y, [i], a), None);
    let pruned = program(LevelKind::Compressed, 0.0, nonzero);
    assert_eq!(stored(&pruned, 0.0, &[Some(0.0), Some(2.0), None, Some(-0.0)]), [None, Some(2.0), None, None]);
}

/// Checks that constants that leave the fill store nothing, that they keep an element stored that is, and that other
/// constants are stored, -0 among them.
#[test]
fn constants_are_stored_unless_they_leave_the_fill() {
    let constant = |v: f64| program(LevelKind::Compressed, 0.0, move |y, i, _| store(y, [i], &float(v)));
    assert_eq!(stored(&constant(0.0), 0.0, &[Some(1.0), None]), [None, None]);
    assert_eq!(stored(&constant(3.0), 0.0, &[None]), [Some(3.0)]);
    let zero = stored(&constant(-0.0), 0.0, &[None])[0].expect("-0 is not the fill");
    assert!(zero == 0.0 && zero.is_sign_negative());
    let over = program(LevelKind::Compressed, 0.0, |y, i, a| {
        Stmt::seq([store(y, [i], a), store(y, [i], &float(0.0))], taffeta_ast::Origin::none())
    });
    assert_eq!(stored(&over, 0.0, &[Some(1.0), None]), [Some(0.0), None]);
}

/// Checks that reductions insert unless the fill annihilates them or they leave it as it is.
#[test]
fn reductions_insert() {
    let by = |op: ReduceOp, fill: f64, v: Option<f64>| {
        let of = move |a: &Expr| v.map_or(a.clone(), float);
        let reduced = program(LevelKind::Compressed, fill, move |y, i, a| {
            Stmt::seq([store(y, [i], &float(fill)), reduce(y, [i], op, &of(a))], taffeta_ast::Origin::none())
        });
        stored(&reduced, fill, &[Some(2.0), None])
    };
    assert_eq!(by(ReduceOp::Add, 0.0, None), [Some(2.0), None]);
    assert_eq!(by(ReduceOp::Add, 0.0, Some(0.0)), [None, None]);
    assert_eq!(by(ReduceOp::Mul, 0.0, None), [None, None]);
    assert_eq!(by(ReduceOp::Max, 5.0, Some(3.0)), [None, None]);
    assert_eq!(by(ReduceOp::Max, 5.0, Some(7.0)), [Some(7.0), Some(7.0)]);
    assert_eq!(by(ReduceOp::Max, 5.0, None), [Some(5.0), None]);
    assert!(leaves_fill(Op::Max, DType::F64, Literal::Float(5.0), Some(Literal::Float(3.0))));
    assert!(!leaves_fill(Op::Max, DType::F64, Literal::Float(5.0), None));
}

/// Checks that a point holds one element, and that a second one is an error.
#[test]
fn points_hold_one_element() {
    let point = program(LevelKind::Point, 0.0, |y, i, a| store(y, [i], a));
    let of = |values: Vec<f64>| {
        let a = Value::new(vec![values.len()], Buffer::F64(values)).expect("a vector");
        let a = a.only(Literal::Float(0.0), |_| true);
        run(&point, &Inputs { params: vec![a], ..Inputs::default() })
    };
    assert!(of(vec![1.0]).is_ok());
    let refused = of(vec![1.0, 2.0]).expect_err("a point holds one element");
    assert!(matches!(*refused.kind, ErrorKind::Misfit { .. }), "{refused:?}");
}
