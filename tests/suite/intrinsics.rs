//! Intrinsic functions, each supported everywhere: the interpreter has its value, C its name and the same value, and it
//! has derivatives. Programs are generated from the operators' table, so that a new row is tested.

use taffeta::{Backend, Options, Program};
use taffeta_ast::op::Form;
use taffeta_ast::{Buffer, DType, Literal, Op, Value, scalar};

/// Points where all functions are defined and smooth, and no two operands are equal.
const POINTS: [[f64; 3]; 4] = [[0.3, 0.7, 0.2], [0.9, 0.4, -0.6], [0.15, 0.85, 1.0], [0.62, 0.11, 0.3]];

fn intrinsics() -> Vec<Op> {
    let called = |op: &Op| op.info().form == Form::Call && *op != Op::Select;
    Op::functions().filter(called).collect()
}

fn operands(op: Op) -> String {
    ["x", "y", "z"][..op.info().arity].join(", ")
}

/// Generates an entry for each intrinsic on scalars, with its gradient, and one with all of them on vectors.
fn program() -> Program {
    let mut text = String::new();
    for op in intrinsics() {
        let (name, operands, arity) = (op.info().name, operands(op), op.info().arity);
        let params = ["x: f64", "y: f64", "z: f64"][..arity].join(", ");
        let result = op.result(DType::F64);
        text.push_str(&format!("def {name}_at({params}) -> {result}:\n    return {name}({operands})\n\n\n"));
        if result.is_float() {
            text.push_str(&format!("{name}_grad = grad({name}_at)\n\n\n"));
        }
    }
    let all: Vec<String> = intrinsics().iter().map(|op| format!("{}({})", op.info().name, operands(*op))).collect();
    text.push_str(&format!(
        "def all(x: f64[n], y: f64[n], z: f64[n]):\n    return (\n        {}\n    )\n",
        all.join(",\n        ")
    ));
    Program::from_source("intrinsics.ft", &text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run(program: &Program, entry: &str, backend: Backend, params: Vec<Value>, sizes: &[i64]) -> Vec<Value> {
    let options = Options::default().backend(backend);
    let function = program.compile(entry, &options).unwrap_or_else(|e| panic!("{entry}: {e}"));
    function.run(params, sizes, 1).unwrap_or_else(|e| panic!("{entry}: {e}")).results
}

/// Evaluates an operator by the table.
fn value(op: Op, at: &[f64]) -> f64 {
    let args: Vec<Literal> = at[..op.info().arity].iter().map(|v| Literal::Float(*v)).collect();
    match scalar::apply(op, DType::F64, &args) {
        Ok(Literal::Float(v)) => v,
        Ok(Literal::Bool(v)) => f64::from(u8::from(v)),
        other => panic!("{op:?}: {other:?}"),
    }
}

#[test]
fn every_intrinsic_is_evaluated_and_printed() {
    let program = program();
    let column = |k: usize| Buffer::F64(POINTS.iter().map(|p| p[k]).collect());
    let params = || (0..3).map(|k| Value::new(vec![POINTS.len()], column(k)).expect("a vector")).collect::<Vec<_>>();
    let sizes = [POINTS.len() as i64];
    let interpreted = run(&program, "all", Backend::Interp, params(), &sizes);
    let compiled = run(&program, "all", Backend::C, params(), &sizes);
    assert_eq!(interpreted.len(), intrinsics().len());
    let c = program.c_source("all", &Options::default().schedule(None)).unwrap_or_else(|e| panic!("{e}")).code;
    for (k, op) in intrinsics().into_iter().enumerate() {
        for (i, at) in POINTS.iter().enumerate() {
            let (want, have, by_c) = (value(op, at), interpreted[k].numbers()[i], compiled[k].numbers()[i]);
            assert_eq!(want.to_bits(), have.to_bits(), "{op:?} of {at:?} in the interpreter");
            assert!((want - by_c).abs() <= 1e-12 * want.abs(), "{op:?} of {at:?}: expected {want}, found {by_c} in C");
        }
        if let Some(name) = op.info().c_name {
            assert!(c.contains(&format!("{name}(")), "C has no call of {name}:\n{c}");
        }
    }
}

#[test]
fn every_intrinsic_has_its_derivatives() {
    let program = program();
    // The derivative of `stop_gradient` is not that of its value.
    let differentiable = |op: &Op| op.result(DType::F64).is_float() && *op != Op::StopGradient;
    for op in intrinsics().into_iter().filter(differentiable) {
        let arity = op.info().arity;
        for at in &POINTS {
            let params = at[..arity].iter().map(|v| Value::new(Vec::new(), Buffer::F64(vec![*v])).expect("a number"));
            let entry = format!("{}_grad", op.info().name);
            let gradients = run(&program, &entry, Backend::Interp, params.collect(), &[]);
            assert_eq!(gradients.len(), arity, "{op:?}");
            for (k, gradient) in gradients.iter().enumerate() {
                let moved = |by: f64| {
                    let mut at = *at;
                    at[k] += by;
                    value(op, &at)
                };
                let (step, have) = (1e-5, gradient.numbers()[0]);
                let want = (moved(step) - moved(-step)) / (2.0 * step);
                let close = (want - have).abs() <= 1e-7 * (1.0 + want.abs());
                assert!(close, "{op:?} of {at:?} by operand {k}: found {have}, expected {want} by differences");
            }
        }
    }
}
