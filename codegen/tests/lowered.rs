//! Lowering keeps what a program computes, errors included: the interpreter runs random programs before and after it.

use taffeta_ast::interp::{ErrorKind, Inputs, Outputs, complete_sizes, run};
use taffeta_ast::random::{Case, Floats, Options, program, shrink};
use taffeta_ast::{Func, Value, print};
use taffeta_codegen::lower::specialise;
use taffeta_codegen::{LowerOptions, lower};

/// The program on flat buffers, as the pipeline makes it; with its sizes compiled in if `known`.
fn lowered(case: &Case, known: bool) -> Func {
    let mut options = LowerOptions::default();
    if known {
        options.sizes = case.inputs.sizes.iter().map(|(name, value)| (name.clone(), *value)).collect();
    }
    let func = specialise(&case.func, &options.sizes).expect("the sizes are the program's");
    let func = taffeta_analysis::pass::simplify::run(&func);
    lower(&func, &options).expect("the program can be lowered").func().clone()
}

/// Everything that a program leaves, as text, in which NaN equals itself; or the code of its error.
fn outcome(func: &Func, inputs: &Inputs) -> String {
    let flat = |values: Vec<Value>| -> Vec<Value> { values.into_iter().map(Value::flatten).collect() };
    match run(func, inputs) {
        Ok(Outputs { params, results, .. }) => format!("{:?} {:?}", flat(params), flat(results)),
        Err(e) => e.kind.code().to_string(),
    }
}

/// What both say, if they do not agree.
fn disagreement(case: &Case, known: bool) -> Option<[String; 2]> {
    // Reading what was not written is an error in the interpreter alone.
    let unwritten = run(&case.func, &case.inputs).is_err_and(|e| matches!(*e.kind, ErrorKind::Uninitialised { .. }));
    if unwritten {
        return None;
    }
    let sizes = complete_sizes(&case.func, &case.inputs).expect("the inputs fit");
    let flat = Inputs { sizes, params: case.inputs.params.iter().cloned().map(Value::flatten).collect() };
    let both = [outcome(&case.func, &case.inputs), outcome(&lowered(case, known), &flat)];
    (both[0] != both[1]).then_some(both)
}

#[test]
fn lowered_programs_do_the_same() {
    for seed in 0..400 {
        let floats = if seed % 3 == 0 { Floats::Any } else { Floats::Exact };
        let options =
            Options { errors: seed % 2 == 0, floats, statements: 5 + seed as usize % 30, ..Options::default() };
        let (case, known) = (program(seed, &options), seed % 4 < 2);
        if disagreement(&case, known).is_some() {
            let small = shrink(&case, &mut |c| disagreement(c, known).is_some());
            let (before, after) = (print::func(&small.func), print::func(&lowered(&small, known)));
            panic!("seed {seed}\n{before}\n{after}\n{:?}\n{:?}", small.inputs, disagreement(&small, known));
        }
    }
}
