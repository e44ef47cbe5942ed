//! Constant folding of floats.

use taffeta_analysis::testing::float::{fold, to_int};
use taffeta_ast::expr::Literal;
use taffeta_ast::{DType, Expr, Op};

fn folded(op: Op, dtype: DType, v: &[f64]) -> Option<f64> {
    let args: Vec<Expr> = v.iter().map(|x| Expr::float(*x, dtype)).collect();
    match fold(op, &args)?.as_literal()? {
        Literal::Float(f) => Some(f),
        _ => None,
    }
}

#[test]
fn folds_in_the_type_of_the_expression() {
    assert_eq!(folded(Op::Add, DType::F64, &[0.1, 0.2]), Some(0.1 + 0.2));
    assert_eq!(folded(Op::Add, DType::F32, &[0.1, 0.2]), Some(f64::from(0.1f32 + 0.2f32)));
    assert_eq!(folded(Op::Div, DType::F32, &[1.0, 3.0]), Some(f64::from(1.0f32 / 3.0f32)));
    assert_eq!(folded(Op::Mul, DType::F16, &[1000.0, 1000.0]), Some(f64::INFINITY));
    assert_eq!(folded(Op::Round, DType::F64, &[2.5]), Some(2.0));
    assert_eq!(folded(Op::Min, DType::F64, &[2.5, -1.0]), Some(-1.0));
}

#[test]
fn keeps_inexact_and_ambiguous_operations() {
    assert_eq!(folded(Op::Exp, DType::F64, &[1.0]), None);
    assert_eq!(folded(Op::Div, DType::F64, &[0.0, 0.0]), None);
    assert_eq!(folded(Op::Min, DType::F64, &[0.0, -0.0]), None);
    assert_eq!(folded(Op::Max, DType::F64, &[f64::NAN, 1.0]), None);
    assert_eq!(to_int(&Expr::float(300.0, DType::F32), DType::U8), None);
    assert_eq!(to_int(&Expr::float(-2.9, DType::F32), DType::I32), Some(Expr::literal(Literal::Int(-2), DType::I32)));
}
