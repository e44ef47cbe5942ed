//! Random programs under AddressSanitizer and UndefinedBehaviorSanitizer: no access out of bounds, no undefined
//! operation, and the interpreter's results or error. The repository's own programs are in `tests/suite/sanitized.rs`.

use crate::compiled::programs::{Builder, load, local, range, sources, store, var_def};
use crate::compiled::run::{assert_same, scratch_dir};
use itertools::Itertools as _;
use taffeta_ast::func::ParamMode;
use taffeta_ast::interp;
use taffeta_ast::random::{Case, Floats, Options, program};
use taffeta_ast::{Buffer, DType, Expr, Func, Value};
use taffeta_codegen::c::CSource;
use taffeta_codegen::{LowerOptions, c, lower};
use testkit::driver::{Call, Outcome, run};
use testkit::status::status;

struct Program {
    seed: u64,
    /// Whether floats are exact; otherwise comparisons may take another branch, and only the sanitizers are checked.
    exact: bool,
    case: Case,
    source: CSource,
    sizes: Vec<i64>,
}

fn make(k: u64) -> Program {
    let floats = if k.is_multiple_of(4) { Floats::Exact } else { Floats::Any };
    let options = Options { errors: k % 2 == 1, floats, statements: 30, ..Options::default() };
    let seed = 5000 + k;
    let case = program(seed, &options);
    let func = Func { name: format!("random_{k}"), ..case.func.clone() };
    let lowered = lower(&func, &LowerOptions::default()).expect("it can be lowered");
    let source = c::emit(&lowered, &sources());
    let sizes = source.signature.sizes.iter().map(|s| case.inputs.sizes.get(&s.name).copied().unwrap_or(-1)).collect();
    Program { seed, exact: floats == Floats::Exact, case, source, sizes }
}

/// Checks that the call leaves the interpreter's results.
fn compare(program: &Program, found: i32, written: &[Value]) {
    let func = &program.case.func;
    match interp::run(func, &program.case.inputs) {
        Ok(out) => {
            assert_eq!(found, 0, "seed {}", program.seed);
            let params = func.params.iter().zip_eq(&out.params).filter(|(p, _)| p.mode == ParamMode::InOut);
            let params = params.map(|(_, v)| (v, &[][..]));
            let results = out.results.iter().zip_eq(out.unwritten.iter().map(Vec::as_slice));
            for ((want, unwritten), have) in params.chain(results).zip_eq(written) {
                assert_same(want, have, unwritten);
            }
        }
        Err(e) => assert_eq!(found, status(e.kind.code()), "seed {}: {e}", program.seed),
    }
}

#[test]
fn random_programs_have_no_undefined_behaviour() {
    let programs: Vec<Program> = (0..16).map(make).collect();
    let calls: Vec<Call<'_>> =
        programs.iter().map(|p| Call { source: &p.source, params: &p.case.inputs.params, sizes: &p.sizes }).collect();
    for (program, outcome) in programs.iter().zip_eq(run(&calls, &scratch_dir())) {
        match outcome {
            Outcome::Stopped(why) => panic!("seed {}: {why}", program.seed),
            Outcome::Returned(found, written) if program.exact => compare(program, found, &written),
            Outcome::Returned(..) => {}
        }
    }
}

/// Checks that the sanitizers detect an access one element beyond an argument, and beyond a local tensor with its own
/// allocation, and that the statement is named.
#[test]
fn accesses_one_element_out_of_bounds_are_detected() {
    let mut b = Builder::default();
    let n = b.size("n");
    let x = b.input("x", DType::F64, &[&n]);
    let y = b.result("y", DType::F64, &[&n]);
    let body = range(1, "i", &n, |i| {
        let row = local("row", DType::F64, vec![i.plus(&Expr::int(1))]);
        let stores = vec![store(3, &row, &[i], load(&x, &[i])), store(4, &y, &[i], load(&row, &[i]))];
        vec![var_def(2, &row, stores)]
    });
    let lowered = lower(&b.func("rows", vec![body]), &LowerOptions::default()).expect("it can be lowered");
    let source = c::emit(&lowered, &sources());
    let params = [Value::new(vec![3], Buffer::F64(vec![1.0, 2.0, 3.0])).expect("three numbers")];
    let outcome = |source: &CSource| {
        let call = Call { source, params: &params, sizes: &[3] };
        run(&[call], &scratch_dir()).pop().expect("one call")
    };
    match outcome(&source) {
        Outcome::Returned(0, written) => assert_eq!(written, params),
        other => panic!("{other:?}"),
    }
    for (right, wrong) in [("row[i] = x[i];", "row[i] = x[i + 1];"), ("row[i] = x[i];", "row[i + 1] = x[i];")] {
        let code = source.code.replace(right, wrong);
        assert_ne!(code, source.code, "there is no `{right}` in\n{code}");
        match outcome(&CSource { code, ..source.clone() }) {
            Outcome::Stopped(why) => {
                assert!(why.contains("heap-buffer-overflow"), "{wrong}: {why}");
                assert!(why.starts_with("at test.ft:3: "), "{wrong}: {why}");
            }
            other => panic!("{wrong}: {other:?}"),
        }
    }
}
