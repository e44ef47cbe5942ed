//! Results of every operator, against facts on which NumPy, Python and C agree.

use taffeta_ast::expr::Literal::{Bool, Float, Int};
use taffeta_ast::expr::{Expr, ExprKind, Literal};
use taffeta_ast::scalar::{Fault, apply, cast};
use taffeta_ast::show;
use taffeta_ast::{DType, Op};

/// Checks `op` on operands of type `dtype`; floats are compared bit by bit.
fn check(op: Op, dtype: DType, args: &[Literal], expected: Literal) {
    assert_eq!(apply(op, dtype, args), Ok(expected), "{op:?} of {args:?} as {dtype}");
}

fn refused(op: Op, dtype: DType, args: &[Literal], expected: Fault) {
    assert_eq!(apply(op, dtype, args), Err(expected), "{op:?} of {args:?} as {dtype}");
}

fn ints(op: Op, dtype: DType, a: i128, b: i128, expected: i128) {
    check(op, dtype, &[Int(a), Int(b)], Int(expected));
}

fn floats(op: Op, a: f64, b: f64, expected: f64) {
    check(op, DType::F64, &[Float(a), Float(b)], Float(expected));
    check(op, DType::F32, &[Float(a), Float(b)], Float(expected));
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

#[test]
fn integers_wrap_in_their_type() {
    ints(Op::Add, DType::I8, 127, 1, -128);
    ints(Op::Sub, DType::U8, 0, 1, 255);
    ints(Op::Mul, DType::I32, 1 << 20, 1 << 20, 0);
    ints(Op::Mul, DType::U64, (1 << 64) - 1, (1 << 64) - 1, 1);
    ints(Op::Mul, DType::I64, i64::MIN.into(), i64::MIN.into(), 0);
    ints(Op::Add, DType::I64, i64::MAX.into(), 1, i64::MIN.into());
    check(Op::Neg, DType::I8, &[Int(-128)], Int(-128));
    check(Op::Neg, DType::U16, &[Int(1)], Int(65535));
    check(Op::Abs, DType::I16, &[Int(-32768)], Int(-32768));
    check(Op::BitNot, DType::U8, &[Int(1)], Int(254));
    check(Op::BitNot, DType::I8, &[Int(1)], Int(-2));
    check(Op::Sign, DType::I8, &[Int(-128)], Int(-1));
    check(Op::Sign, DType::U8, &[Int(200)], Int(1));
}

#[test]
fn integer_division_matches_python() {
    for (a, b, q, r) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -2, -3, 0), (0, -5, 0, 0)]
    {
        ints(Op::FloorDiv, DType::I32, a, b, q);
        ints(Op::Mod, DType::I32, a, b, r);
    }
    ints(Op::FloorDiv, DType::U64, (1 << 64) - 1, 2, (1 << 63) - 1);
    ints(Op::FloorDiv, DType::I32, 5, -1, -5);
    for op in [Op::FloorDiv, Op::Mod] {
        refused(op, DType::I32, &[Int(1), Int(0)], Fault::DivisionByZero);
        refused(op, DType::I8, &[Int(-128), Int(-1)], Fault::DivisionOverflow(-128, DType::I8));
    }
}

#[test]
fn powers_and_shifts() {
    ints(Op::Pow, DType::I32, 3, 4, 81);
    ints(Op::Pow, DType::I32, -2, 31, i32::MIN.into());
    ints(Op::Pow, DType::I32, 0, 0, 1);
    ints(Op::Pow, DType::U8, 3, 250, (0..250).fold(1, |p, _| p * 3 % 256));
    refused(Op::Pow, DType::I64, &[Int(2), Int(-1)], Fault::NegativeExponent(-1));
    ints(Op::Shl, DType::I8, 1, 7, -128);
    ints(Op::Shl, DType::I8, 1, 8, 0);
    ints(Op::Shl, DType::I64, 1, 1 << 40, 0);
    ints(Op::Shr, DType::I8, -128, 3, -16);
    ints(Op::Shr, DType::I8, -1, 100, -1);
    ints(Op::Shr, DType::U8, 255, 100, 0);
    refused(Op::Shl, DType::I32, &[Int(1), Int(-1)], Fault::NegativeShift(-1));
}

#[test]
fn float_division_and_remainder_match_numpy() {
    // np.floor_divide and np.remainder, in float64 and float32
    for (a, b, q, r) in [
        (7.0, 2.0, 3.0, 1.0),
        (-7.0, 2.0, -4.0, 1.0),
        (7.0, -2.0, -4.0, -1.0),
        (-7.0, -2.0, 3.0, -1.0),
        (6.0, -2.0, -3.0, -0.0),
        (-0.0, 2.0, -0.0, 0.0),
        (1.0, INF, 0.0, 1.0),
        (-1.0, INF, -1.0, INF),
        (1.0, -INF, -1.0, -INF),
        (-0.0, INF, -0.0, 0.0),
    ] {
        floats(Op::FloorDiv, a, b, q);
        floats(Op::Mod, a, b, r);
    }
    floats(Op::FloorDiv, 1.0, 0.0, INF);
    floats(Op::FloorDiv, -1.0, 0.0, -INF);
    for (a, b) in [(0.0, 0.0), (INF, 2.0), (NAN, 1.0), (1.0, NAN)] {
        for op in [Op::FloorDiv, Op::Mod] {
            match apply(op, DType::F64, &[Float(a), Float(b)]) {
                Ok(Float(v)) => assert!(v.is_nan(), "{op:?} {a} {b} gives {v}"),
                other => panic!("{other:?}"),
            }
        }
    }
    match apply(Op::Mod, DType::F64, &[Float(1.0), Float(0.0)]) {
        Ok(Float(v)) => assert!(v.is_nan()),
        other => panic!("{other:?}"),
    }
    // 0.1 * 3 // 0.1: the quotient of the rounded numbers exceeds 3, and the remainder agrees.
    check(Op::FloorDiv, DType::F64, &[Float(0.1 * 3.0), Float(0.1)], Float(3.0));
    check(Op::FloorDiv, DType::F64, &[Float(1.0), Float(0.1)], Float(9.0));
}

#[test]
fn minimum_and_maximum_propagate_nan() {
    floats(Op::Min, 1.0, 2.0, 1.0);
    floats(Op::Max, 1.0, 2.0, 2.0);
    for op in [Op::Min, Op::Max] {
        floats(op, NAN, 1.0, NAN);
        floats(op, 1.0, NAN, NAN);
        floats(op, 0.0, -0.0, -0.0);
        floats(op, -0.0, 0.0, 0.0);
    }
    floats(Op::Min, INF, -INF, -INF);
}

#[test]
fn comparisons_with_nan_are_false() {
    for (op, holds) in
        [(Op::Eq, false), (Op::Ne, true), (Op::Lt, false), (Op::Le, false), (Op::Gt, false), (Op::Ge, false)]
    {
        check(op, DType::F64, &[Float(NAN), Float(NAN)], Bool(holds));
        check(op, DType::F32, &[Float(1.0), Float(NAN)], Bool(holds));
    }
    check(Op::Eq, DType::F64, &[Float(0.0), Float(-0.0)], Bool(true));
    check(Op::IsNan, DType::F32, &[Float(NAN)], Bool(true));
}

#[test]
fn rounding_functions() {
    let one = |op, a: f64, expected: f64| check(op, DType::F64, &[Float(a)], Float(expected));
    for (a, round, floor, ceil, trunc) in [
        (0.5, 0.0, 0.0, 1.0, 0.0),
        (1.5, 2.0, 1.0, 2.0, 1.0),
        (2.5, 2.0, 2.0, 3.0, 2.0),
        (-0.5, -0.0, -1.0, -0.0, -0.0),
    ] {
        one(Op::Round, a, round);
        one(Op::Floor, a, floor);
        one(Op::Ceil, a, ceil);
        one(Op::Trunc, a, trunc);
    }
    one(Op::Sign, -0.0, 0.0);
    one(Op::Sign, -INF, -1.0);
    one(Op::Sign, NAN, NAN);
    one(Op::Abs, -0.0, 0.0);
    one(Op::Neg, 0.0, -0.0);
    one(Op::Rsqrt, 0.0, INF);
    one(Op::Sigmoid, -1000.0, 0.0);
    one(Op::Sigmoid, 1000.0, 1.0);
    one(Op::Sigmoid, 0.0, 0.5);
}

#[test]
fn functions_are_accurate() {
    // scipy.special.erf
    for (x, y) in
        [(0.0, 0.0), (0.5, 0.5204998778130465), (1.0, 0.8427007929497149), (-2.0, -0.9953222650189527), (6.0, 1.0)]
    {
        match apply(Op::Erf, DType::F64, &[Float(x)]) {
            Ok(Float(v)) => assert!((v - y).abs() <= 2.0 * f64::EPSILON * y.abs(), "erf({x}) = {v}"),
            other => panic!("{other:?}"),
        }
    }
    check(Op::Erf, DType::F64, &[Float(-0.0)], Float(-0.0));
    check(Op::Pow, DType::F64, &[Float(2.0), Float(-1.0)], Float(0.5));
    check(Op::Pow, DType::F64, &[Float(NAN), Float(0.0)], Float(1.0));
    check(Op::Pow, DType::F64, &[Float(-8.0), Float(3.0)], Float(-512.0));
    let eps = f64::EPSILON;
    check(Op::Fma, DType::F64, &[Float(1.0 + eps), Float(1.0 - eps), Float(-1.0)], Float(-eps * eps));
}

#[test]
fn arithmetic_is_rounded_to_the_type() {
    check(Op::Add, DType::F32, &[Float(16777216.0), Float(1.0)], Float(16777216.0));
    check(Op::Add, DType::F64, &[Float(16777216.0), Float(1.0)], Float(16777217.0));
    check(Op::Add, DType::F16, &[Float(2048.0), Float(1.0)], Float(2048.0));
    check(Op::Mul, DType::F16, &[Float(300.0), Float(300.0)], Float(INF));
    check(Op::Add, DType::Bf16, &[Float(256.0), Float(1.0)], Float(256.0));
    let third = f64::from(1.0f32 / 3.0f32);
    check(Op::Div, DType::F32, &[Float(1.0), Float(3.0)], Float(third));
}

#[test]
fn casts() {
    let ok = |v, from, to, expected| assert_eq!(cast(v, from, to), Ok(expected), "{v:?} from {from} to {to}");
    ok(Float(2.9), DType::F64, DType::I32, Int(2));
    ok(Float(-2.9), DType::F64, DType::I32, Int(-2));
    ok(Float(-0.9), DType::F64, DType::U8, Int(0));
    ok(Int(300), DType::I32, DType::U8, Int(44));
    ok(Int(-1), DType::I32, DType::U64, Int((1 << 64) - 1));
    ok(Int(-3), DType::I32, DType::Bool, Bool(true));
    ok(Float(NAN), DType::F64, DType::Bool, Bool(true));
    ok(Float(-0.0), DType::F64, DType::Bool, Bool(false));
    ok(Bool(true), DType::Bool, DType::F16, Float(1.0));
    ok(Int((1 << 24) + 1), DType::I64, DType::F32, Float(16777216.0));
    ok(Float(65520.0), DType::F32, DType::F16, Float(INF));
    ok(Float(1.0 + 2f64.powi(-8)), DType::F64, DType::Bf16, Float(1.0));
    ok(Float(9223372036854774784.0), DType::F64, DType::I64, Int(9223372036854774784));
    for (v, to) in [
        (NAN, DType::I32),
        (INF, DType::I64),
        (256.0, DType::U8),
        (-1.0, DType::U8),
        (9.3e18, DType::I64),
        (1e300, DType::U64),
    ] {
        assert!(matches!(cast(Float(v), DType::F64, to), Err(Fault::Cast { .. })), "{v} to {to}");
    }
}

#[test]
fn values_print_as_in_c() {
    let text = |v, dtype, expected: &str| assert_eq!(show::value(v, dtype), expected);
    text(Int(-3), DType::I8, "-3");
    text(Bool(true), DType::Bool, "True");
    for (v, expected) in [
        (0.1, "0.1"),
        (100.0, "100"),
        (1e6, "1e+06"),
        (123456789.0, "123456789"),
        (1.0 / 3.0, "0.3333333333333333"),
        (0.1 + 0.2, "0.30000000000000004"),
        (-0.0, "-0"),
        (1e-5, "1e-05"),
        (0.0001, "0.0001"),
        (1e300, "1e+300"),
        (INF, "inf"),
        (-INF, "-inf"),
        (-NAN, "nan"),
        (f64::MAX, "1.7976931348623157e+308"),
        (5e-324, "4.94066e-324"),
    ] {
        text(Float(v), DType::F64, expected);
    }
    text(Float(f64::from(0.1f32)), DType::F32, "0.1");
    text(Float(f64::from(1.0f32 / 3.0)), DType::F32, "0.33333334");
}

#[test]
fn promotion_matches_jax() {
    use DType::*;
    for (a, b, c) in [
        (I32, F32, F32),
        (F16, F32, F32),
        (F16, Bf16, F32),
        (I64, F16, F16),
        (Bool, I8, I8),
        (U8, I8, I16),
        (U32, I32, I64),
        (U64, I64, F64),
        (U8, I32, I32),
        (I8, I64, I64),
        (U16, U8, U16),
        (Bf16, U64, Bf16),
    ] {
        assert_eq!((a.promote(b), b.promote(a)), (c, c), "{a} with {b}");
    }
    for a in DType::ALL {
        for b in DType::ALL {
            assert_eq!(a.promote(b), b.promote(a));
        }
    }
}

#[test]
fn operators_have_values_exactly_on_their_domain() {
    for op in Op::functions() {
        for dtype in DType::ALL {
            let info = op.info();
            let mut args = vec![Expr::literal(Int(1), dtype); info.arity];
            if op == Op::Select {
                args[0] = Expr::bool(true);
            }
            let constants: Vec<Literal> = args.iter().filter_map(Expr::as_literal).collect();
            let value = apply(op, dtype, &constants);
            assert_eq!(value.is_ok(), info.domain.accepts(dtype), "{op:?} of {dtype}: {value:?}");
            if let Ok(v) = value {
                let result = op.result(dtype);
                assert_eq!(Expr::literal(v, result).kind(), &ExprKind::Const(v), "{op:?} of {dtype}");
            }
        }
    }
}

#[test]
fn rows_of_functions_are_complete() {
    for op in Op::ALL {
        let info = op.info();
        if let Some(function) = info.function {
            assert_eq!(function.arity(), info.arity, "{op:?}");
        }
        assert!(info.c_name.is_none() || info.function.is_some(), "{op:?} has a name in C and no value");
        if let Some(vector) = info.libmvec {
            assert!(info.c_name.is_some(), "{op:?} has vector versions of no function");
            assert_eq!(vector.probed.len(), info.arity, "{op:?}");
            assert!(vector.probed.iter().all(|(lo, hi)| lo < hi), "{op:?}");
        }
    }
}

#[test]
fn reductions_start_from_their_identity() {
    use taffeta_ast::ReduceOp;
    for op in ReduceOp::ALL {
        for dtype in DType::ALL {
            let bits_of_bool = dtype == DType::Bool && matches!(op, ReduceOp::BitAnd | ReduceOp::BitOr);
            if bits_of_bool || !op.info().op.info().domain.accepts(dtype) {
                continue;
            }
            let one = Expr::literal(Int(1), dtype).as_literal().expect("a constant");
            assert_eq!(apply(op.info().op, dtype, &[op.identity(dtype), one]), Ok(one), "{op:?} of {dtype}");
            if let Some(a) = op.annihilator(dtype) {
                assert_eq!(apply(op.info().op, dtype, &[a, one]), Ok(a), "{op:?} of {dtype}");
            }
            if op.info().idempotent {
                assert_eq!(apply(op.info().op, dtype, &[one, one]), Ok(one), "{op:?} of {dtype}");
            }
        }
    }
}
