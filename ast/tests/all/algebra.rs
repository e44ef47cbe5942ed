//! Laws of operators, against the operators.

use taffeta_ast::algebra::{Side, annihilates, is_identity};
use taffeta_ast::{DType, Literal, Op, scalar};

/// Checks both rules against the operators themselves, on values for which the rules have no exceptions.
#[test]
fn rules_agree_with_the_operators() {
    let floats = [0.0, 1.0, -1.0, 2.5, f64::INFINITY, f64::NEG_INFINITY].map(Literal::Float);
    let ints = [0, 1, -1, 7].map(Literal::Int);
    let bools = [false, true].map(Literal::Bool);
    let mut asked = [0; 2];
    for (dtype, values) in [(DType::F64, &floats[..]), (DType::I64, &ints), (DType::Bool, &bools)] {
        let ops = Op::ALL.iter().filter(|o| o.info().arity == 2 && o.info().domain.accepts(dtype));
        for (op, v) in ops.flat_map(|op| values.iter().map(move |v| (*op, *v))) {
            // Infinite operands are left out where the rule changes the result: 0 * inf, inf - inf.
            let finite = |w: &&Literal| !matches!(w, Literal::Float(f) if f.is_infinite());
            for (side, w) in
                [Side::Left, Side::Right].into_iter().flat_map(|s| values.iter().filter(finite).map(move |w| (s, *w)))
            {
                let operands = if side == Side::Left { [v, w] } else { [w, v] };
                let Ok(result) = scalar::apply(op, dtype, &operands) else { continue };
                let same = |a: Literal, b: Literal| {
                    matches!((a, b), (Literal::Float(x), Literal::Float(y)) if x == y) || a == b
                };
                if annihilates(op, side, v) && !(op == Op::Div && w == Literal::Float(0.0)) {
                    assert!(same(result, v), "{op:?} {operands:?} is {result:?}");
                    asked[0] += 1;
                }
                if is_identity(op, side, v) {
                    assert!(same(result, w), "{op:?} {operands:?} is {result:?}");
                    asked[1] += 1;
                }
            }
        }
    }
    assert!(asked[0] > 30 && asked[1] > 40, "{asked:?}");
}
