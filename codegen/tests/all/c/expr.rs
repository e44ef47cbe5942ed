//! Expressions in C: every operator on its domain, and no expression that the validator refuses.

use taffeta_ast::expr::{Literal, Measure};
use taffeta_ast::{DType, Expr, ExprKind, Kind, Op, Symbol};
use taffeta_codegen::testing::printed;

#[test]
#[should_panic(expected = "Operands: `sqrt` of bool")]
fn operators_on_types_outside_their_domain_panic() {
    printed(&Expr::raw(ExprKind::Apply(Op::Sqrt, vec![Expr::bool(true)]), DType::Bool));
}

#[test]
#[should_panic(expected = "Operands: `/` of i64")]
fn float_operators_on_integers_panic() {
    printed(&Expr::raw(ExprKind::Apply(Op::Div, vec![Expr::int(1), Expr::int(2)]), DType::I64));
}

#[test]
#[should_panic(expected = "Plain: a measure over the reals")]
fn measures_panic() {
    let measure = ExprKind::Measure(Measure::Counting, Symbol::new("x"));
    printed(&Expr::raw(measure, DType::F64));
}

#[test]
#[should_panic(expected = "Scope: `t` is not declared")]
fn undeclared_tensors_panic() {
    printed(&Expr::load(&Symbol::new("t"), Vec::new(), DType::F64));
}

/// Checks that every operator has a text on every type of its domain, and no `unreachable!` is reached.
#[test]
fn every_operator_prints_on_its_domain() {
    for op in Op::functions() {
        for dtype in DType::ALL.iter().copied().filter(|d| op.info().domain.accepts(*d)) {
            let one = match dtype.kind() {
                Kind::Bool => Expr::bool(true),
                Kind::Int => Expr::literal(Literal::Int(1), dtype),
                Kind::Float => Expr::float(1.0, dtype),
            };
            let mut args = vec![one; op.info().arity];
            if op == Op::Select {
                args[0] = Expr::bool(true);
            }
            assert!(!printed(&Expr::raw(ExprKind::Apply(op, args), op.result(dtype))).is_empty());
        }
    }
}
