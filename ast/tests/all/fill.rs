//! Elements that are not stored, in the interpreter: the algebra of the fill, and ordinary evaluation.

use taffeta_ast::build::{Builder, branch, looped, reduce, store};
use taffeta_ast::format::{Format, Level, LevelKind};
use taffeta_ast::interp::{Inputs, run};
use taffeta_ast::{Buffer, DType, Expr, Func, Literal, Op, ReduceOp, Stmt, Symbol, Tensor, Value};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn list(fill: f64) -> Format {
    Format { fill: Some(Literal::Float(fill)), ..Format::new(vec![Level::new(LevelKind::Compressed)]) }
}

/// Builds `for i in range(n): y[i] …` of a structured `a` and a dense `x`; `y` starts from `first`.
fn program(fill: f64, first: f64, body: impl Fn(&Tensor, &Expr, &Expr, &Expr) -> Stmt) -> Func {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let a = b.stored("a", DType::F64, [&n], list(fill));
    let x = b.input("x", DType::F64, [&n]);
    let y = b.result("y", DType::F64, [&n]);
    let i = Symbol::new("i");
    let vi = Expr::var(&i);
    let begin = store(&y, [&vi], &Expr::float(first, DType::F64));
    let body = body(&y, &vi, &a.load([vi.clone()]), &x.load([vi.clone()]));
    b.finish(looped(&i, &n, Stmt::seq([begin, body], taffeta_ast::Origin::none())))
}

/// Returns `y`, where the elements of `a` with a number are stored.
fn run_with(f: &Func, fill: f64, a: &[Option<f64>], x: &[f64]) -> Vec<f64> {
    let vector = |v: Vec<f64>| Value::new(vec![v.len()], Buffer::F64(v)).expect("a vector");
    let all = vector(a.iter().map(|v| v.unwrap_or(fill)).collect());
    let a = all.only(Literal::Float(fill), |k| a[k].is_some());
    let inputs = Inputs { params: vec![a, vector(x.to_vec())], ..Inputs::default() };
    run(f, &inputs).expect("it runs").results[0].numbers()
}

#[track_caller]
fn same(found: &[f64], expected: &[f64]) {
    let equal = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
    let all_equal = found.len() == expected.len() && found.iter().zip(expected).all(equal);
    assert!(all_equal, "expected {expected:?}, found {found:?}");
}

/// Checks that 0 times infinity is 0 where the 0 is not stored, and NaN where it is.
#[test]
fn fill_zero_annihilates_products() {
    let product = program(0.0, 0.0, |y, i, a, x| reduce(y, [i], ReduceOp::Add, &a.times(x)));
    same(&run_with(&product, 0.0, &[None, Some(0.0), Some(2.0)], &[INF, INF, INF]), &[0.0, NAN, INF]);
    // An annihilated product annihilates the next one.
    let long = program(0.0, 0.0, |y, i, a, x| store(y, [i], &a.times(x).negate_float().times(x)));
    same(&run_with(&long, 0.0, &[None, Some(1.0)], &[NAN, 2.0]), &[0.0, -4.0]);
    // The program's own zeros do not annihilate.
    let own = program(0.0, 0.0, |y, i, a, x| store(y, [i], &Expr::float(0.0, DType::F64).times(x).plus(a)));
    same(&run_with(&own, 0.0, &[None, None], &[INF, 2.0]), &[NAN, 0.0]);
}

trait More {
    fn negate_float(&self) -> Expr;
}

impl More for Expr {
    fn negate_float(&self) -> Expr {
        Expr::apply(Op::Neg, vec![self.clone()])
    }
}

#[test]
fn fill_zero_annihilates_dividends() {
    let left = program(0.0, 0.0, |y, i, a, x| store(y, [i], &Expr::apply(Op::Div, vec![a.clone(), x.clone()])));
    same(&run_with(&left, 0.0, &[None, Some(0.0), Some(1.0)], &[0.0, 0.0, 2.0]), &[0.0, NAN, 0.5]);
    let right = program(0.0, 0.0, |y, i, a, x| store(y, [i], &Expr::apply(Op::Div, vec![x.clone(), a.clone()])));
    same(&run_with(&right, 0.0, &[None, Some(2.0)], &[1.0, 1.0]), &[INF, 0.5]);
}

/// Checks on shortest paths that absent edges contribute nothing, even from distances that are NaN or infinite.
#[test]
fn fill_infinity_annihilates_sums() {
    let relax = program(INF, 9.0, |y, i, a, x| reduce(y, [i], ReduceOp::Min, &a.plus(x)));
    let a = [None, None, None, Some(1.0), Some(INF)];
    same(&run_with(&relax, INF, &a, &[NAN, -INF, 1.0, 2.0, -INF]), &[9.0, 9.0, 9.0, 3.0, NAN]);
}

/// Checks that an identity leaves a reduction unchanged without reading the target, and that an annihilator decides it.
#[test]
fn reductions() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let a = b.stored("a", DType::F64, [&n], list(0.0));
    let (sum, product) = (b.result("sum", DType::F64, [&n]), b.result("product", DType::F64, [&n]));
    let i = Symbol::new("i");
    let vi = Expr::var(&i);
    let element = a.load([vi.clone()]);
    let body = [
        store(&product, [&vi], &Expr::float(INF, DType::F64)),
        reduce(&product, [&vi], ReduceOp::Mul, &element),
        reduce(&sum, [&vi], ReduceOp::Add, &element),
    ];
    let f = b.finish(looped(&i, &n, Stmt::seq(body, taffeta_ast::Origin::none())));
    let a = Value::new(vec![1], Buffer::F64(vec![0.0])).expect("a vector").only(Literal::Float(0.0), |_| false);
    let out = run(&f, &Inputs { params: vec![a], ..Inputs::default() }).expect("`sum` is never read");
    assert_eq!((out.results[1].numbers(), &out.unwritten[0]), (vec![0.0], &vec![0]));
}

/// Checks that conditions, comparisons and other operators evaluate with the fill.
#[test]
fn other_operators_evaluate_with_the_fill() {
    let zero = Expr::float(0.0, DType::F64);
    let equal = program(0.0, 7.0, |y, i, a, x| branch(&a.equals(&zero), store(y, [i], x), None));
    same(&run_with(&equal, 0.0, &[None, Some(0.0), Some(1.0)], &[1.0, 2.0, 3.0]), &[1.0, 2.0, 7.0]);
    let exp = program(0.0, 0.0, |y, i, a, x| store(y, [i], &Expr::apply(Op::Exp, vec![a.clone()]).times(x)));
    same(&run_with(&exp, 0.0, &[None, Some(0.0)], &[3.0, INF]), &[3.0, INF]);
    // A value of fills and constants alone derives from the fill: 1 - 1.
    let one = Expr::float(1.0, DType::F64);
    let shifted = program(1.0, 0.0, |y, i, a, x| store(y, [i], &a.minus(&one).times(x)));
    same(&run_with(&shifted, 1.0, &[None, Some(1.0), Some(3.0)], &[INF, INF, 2.0]), &[0.0, NAN, 4.0]);
}

/// Checks that an operand that would stop the program does not, where the other one is not stored.
#[test]
fn annihilated_operands_do_not_fail() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let a = b.stored("a", DType::F64, [&n], list(0.0));
    let (at, x) = (b.input("at", DType::I64, [&n]), b.input("x", DType::F64, [&n]));
    let y = b.result("y", DType::F64, [&n]);
    let i = Symbol::new("i");
    let vi = Expr::var(&i);
    let product = x.load([at.load([vi.clone()])]).times(&a.load([vi.clone()]));
    let f = b.finish(looped(&i, &n, store(&y, [&vi], &product)));
    let with = |stored: [bool; 2]| {
        let a = Value::new(vec![2], Buffer::F64(vec![0.0, 5.0]))
            .expect("a vector")
            .only(Literal::Float(0.0), |k| stored[k]);
        let at = Value::new(vec![2], Buffer::I64(vec![99, 0])).expect("a vector");
        let x = Value::new(vec![2], Buffer::F64(vec![2.0, 3.0])).expect("a vector");
        run(&f, &Inputs { params: vec![a, at, x], ..Inputs::default() })
    };
    assert_eq!(with([false, true]).expect("index 99 is not evaluated").results[0].numbers(), [0.0, 10.0]);
    assert_eq!(with([true, true]).expect_err("it is").kind.code(), "run::index");
}
