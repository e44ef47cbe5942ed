//! The functions that the probe of a C compiler evaluates, and their operands.

use taffeta_ast::Op;
use taffeta_codegen::testing::probed_functions;

#[test]
fn every_function_with_vector_versions_is_probed_on_its_interval() {
    let probed = probed_functions();
    for op in Op::ALL {
        let found: Vec<_> = probed.iter().filter(|(function, _)| function == op).collect();
        let Some(vector) = op.info().libmvec else {
            assert!(found.is_empty(), "{op:?}");
            continue;
        };
        assert_eq!(found.len(), 2, "{op:?} of f32 and f64");
        for (_, operands) in found {
            assert_eq!(operands.len(), op.info().arity, "{op:?}");
            for (operand, interval) in operands.iter().zip(vector.probed) {
                let values = operand.numbers();
                let ends = values.iter().fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
                assert!(near(ends.0, interval.0) && near(ends.1, interval.1), "{op:?}: {ends:?}, {interval:?}");
            }
        }
    }
}
