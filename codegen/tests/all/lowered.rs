//! Lowering preserves results and errors: the interpreter runs random programs before and after it.

use taffeta_ast::build::{Builder, block, branch, range, store};
use taffeta_ast::interp::{ErrorKind, Inputs, Outputs, complete_sizes, run};
use taffeta_ast::random::{Case, Floats, Options, program, shrink};
use taffeta_ast::{DType, Expr, Func, Symbol, Value, print, validate};
use taffeta_codegen::lower::specialise;
use taffeta_codegen::{LowerOptions, lower};

/// Lowers the program to flat buffers, as the pipeline does; with its sizes compiled in if `known`.
fn lowered(case: &Case, known: bool) -> Func {
    let mut options = LowerOptions::default();
    if known {
        options.sizes = case.inputs.sizes.iter().map(|(name, value)| (name.clone(), *value)).collect();
    }
    let func = specialise(&case.func, &options.sizes).expect("the sizes are the program's");
    let func = taffeta_analysis::pass::simplify::run(&func);
    lower(&func, &options).expect("the program can be lowered").func().clone()
}

/// Formats all outputs of a program as text, in which NaN equals itself; or its error code.
fn outcome(func: &Func, inputs: &Inputs) -> String {
    let flat = |values: Vec<Value>| -> Vec<Value> { values.into_iter().map(Value::flatten).collect() };
    match run(func, inputs) {
        Ok(Outputs { params, results, .. }) => format!("{:?} {:?}", flat(params), flat(results)),
        Err(e) => e.kind.code().to_string(),
    }
}

/// Returns both outcomes, if they differ.
fn disagreement(case: &Case, known: bool) -> Option<[String; 2]> {
    // Reading unwritten elements is an error in the interpreter alone.
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
fn lowered_programs_compute_the_same() {
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

/// Checks that sequences under guards that become bounds are spliced into the enclosing sequence.
#[test]
fn guarded_sequences_are_lowered() {
    let mut b = Builder::new("f");
    let n = b.size("n");
    let x = b.inout("x", DType::I64, [&n.times(&Expr::int(3))]);
    let i = Symbol::new("i");
    let (at, int) = (Expr::var(&i), Expr::int);
    let put = |k: i64| store(&x, [&at.plus(&n.times(&int(k)))], &int(k + 1));
    let guard = at.less(&n);
    let guarded = [branch(&guard, block([put(0), put(1)]), None), branch(&guard, put(2), None)];
    let func = b.finish(range(&i, [&int(0), &int(7), &int(1)], block(guarded)));
    validate::logical(&func).expect("it is valid");
    let done = lower(&func, &LowerOptions::default()).map_err(|d| d.to_string()).expect("it can be lowered");
    let mut guards = 0;
    done.func().body.walk(&mut |s| guards += usize::from(matches!(s.kind(), taffeta_ast::StmtKind::If { .. })));
    assert_eq!(guards, 0, "{}", print::func(done.func()));
}
