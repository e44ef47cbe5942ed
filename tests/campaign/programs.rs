//! Random programs: valid; unchanged by printing and parsing; and with the same results, or the same error, in the
//! interpreter before and after every pass and lowering, and in compiled C, generic and specialised to its sizes.

#![allow(unsafe_code)] // `Compiled::load` runs compiled code

use crate::{Finding, panic_text};
use std::path::Path;
use std::time::{Duration, Instant};
use taffeta_analysis::pass::{dead, hoist, simplify};
use taffeta_ast::interp::{self, ErrorKind, Inputs, Outputs, RuntimeError};
use taffeta_ast::random::{Case, Floats, Options, program, shrink};
use taffeta_ast::{Buffer, DType, Func, Literal, SourceMap, Value, func, print, validate};
use taffeta_codegen::call::Context;
use taffeta_codegen::lower::specialise;
use taffeta_codegen::toolchain::{CompileOptions, Toolchain};
use taffeta_codegen::{Compiled, LowerOptions, c, lower};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

/// Time limit for shrinking; the smallest program found by then is reported.
const SHRINKING: Duration = Duration::from_secs(120);

/// Returns the fault of a seed's program, shrunk.
pub fn fault(seed: u64, scratch: &Path) -> Option<Finding> {
    let integers: Vec<DType> = DType::ALL.into_iter().filter(|d| !d.is_float()).collect();
    let exact = Options { statements: 10 + seed as usize % 30, ..Options::default() };
    // Arbitrary floats depend on the last bit, and C has its own math library: such programs are not run in C.
    let (options, in_c) = match seed % 4 {
        0 => (exact, true),
        1 => (Options { errors: true, ..exact }, true),
        2 => (Options { dtypes: integers, floats: Floats::Any, errors: true, ..exact }, true),
        _ => (Options { floats: Floats::Any, errors: seed % 8 == 3, ..exact }, false),
    };
    let case = program(seed, &options);
    let first = problem(&case, in_c, scratch)?;
    let start = Instant::now();
    let small = shrink(&case, &mut |c| {
        // Shrinking must preserve the problem: a smaller program may well have another one of its own.
        let same = || problem(c, in_c, scratch).is_some_and(|p| kind(&p) == kind(&first));
        start.elapsed() < SHRINKING && settled(c) && same()
    });
    let what = problem(&small, in_c, scratch).unwrap_or(first);
    let text = file(&small);
    Some(Finding { what: format!("{what}\n{text}"), files: vec![("ft", text.into_bytes())] })
}

/// Returns the kind of a problem: its first line, up to the details that vary between programs.
fn kind(problem: &str) -> &str {
    problem.split(['\n', ':']).next().unwrap_or_default()
}

/// Prints the program below a command line with its inputs, as in the corpus, so that it can be run and become a test.
fn file(case: &Case) -> String {
    let mut command = format!("# taffeta: run {}", case.func.name);
    for (t, value) in case.func.interface().zip(&case.inputs.params) {
        // An empty array has no literal that gives its shape.
        let literal = if value.data().is_empty() { "zeros".into() } else { literal(value.data(), value.shape(), 0) };
        command.push_str(&format!(" --in {}={literal}", t.symbol.name()));
    }
    for (name, value) in &case.inputs.sizes {
        command.push_str(&format!(" --size {name}={value}"));
    }
    format!("{command}\n\n{}", print::func(&case.func))
}

/// Formats the elements from `first` on as nested lists.
fn literal(data: &Buffer, shape: &[usize], first: usize) -> String {
    let Some((n, inner)) = shape.split_first() else {
        return match data.get(first) {
            Literal::Bool(b) => b.to_string(),
            Literal::Int(i) => i.to_string(),
            Literal::Float(_) => format!("{:?}", data.get_f64(first)),
        };
    };
    let stride: usize = inner.iter().product();
    let items: Vec<String> = (0..*n).map(|k| literal(data, inner, first + k * stride)).collect();
    format!("[{}]", items.join(","))
}

/// Returns whether a shrunk program still initialises every element that it reads and all of its results, which only
/// the interpreter checks.
fn settled(case: &Case) -> bool {
    match interp::run(&case.func, &case.inputs) {
        Ok(out) => out.unwritten.iter().all(Vec::is_empty),
        Err(e) => !matches!(*e.kind, ErrorKind::Uninitialised { .. }),
    }
}

fn problem(case: &Case, in_c: bool, scratch: &Path) -> Option<String> {
    let found = std::panic::catch_unwind(|| disagreement(case, in_c, scratch));
    found.unwrap_or_else(|panic| Some(panic_text(&*panic)))
}

/// Formats all parameters and results of a run as text, in which NaN equals itself, or the code of its error.
fn outcome(result: Result<Outputs, RuntimeError>) -> String {
    match result {
        Ok(Outputs { params, results, .. }) => both(params, results),
        Err(e) => e.kind.code().to_string(),
    }
}

/// Formats parameters and results, flattened as in lowered programs.
fn both(params: Vec<Value>, results: Vec<Value>) -> String {
    let flat = |values: Vec<Value>| -> Vec<Value> { values.into_iter().map(Value::flatten).collect() };
    format!("{:?} {:?}", flat(params), flat(results))
}

fn disagreement(case: &Case, in_c: bool, scratch: &Path) -> Option<String> {
    if let Err(e) = validate::logical(&case.func) {
        return Some(format!("not valid: {e:?}"));
    }
    let text = print::func(&case.func);
    let read = Program::load(Source::inline("printed.ft", text), &NoLoader);
    match read.elaborate(&case.func.name, &Default::default(), &NoHooks) {
        Ok(again) if func::same(&case.func, &again) => {}
        Ok(again) => return Some(format!("comes back from its text as\n{}", print::func(&again))),
        Err(refused) => return Some(format!("its text is refused: {refused}")),
    }
    let expected = outcome(interp::run(&case.func, &case.inputs));
    let differs = |what: &str, found: &str, of: &str, expected: &str| {
        (found != expected).then(|| format!("{what} gives\n{found}\nand {of}\n{expected}"))
    };
    let further = |known: bool| {
        let low = lowered(case, known);
        // Lowering hoists, so a different error may come first; C stops wherever the lowered program does.
        let wrong =
            differs("lowering", &low, "the interpreter", &expected).filter(|_| !(stops(&low) && stops(&expected)));
        wrong.or_else(|| {
            let what = if known { "C with its sizes" } else { "C" };
            in_c.then(|| differs(what, &compiled(case, known, scratch), "the lowered program", &low)).flatten()
        })
    };
    passes(case, &expected).or_else(|| [false, true].into_iter().find_map(further))
}

/// Returns whether an outcome is an error.
fn stops(outcome: &str) -> bool {
    outcome.starts_with("run::")
}

/// Returns the first pass that changes the outcome. Hoisting may raise a different error first.
fn passes(case: &Case, expected: &str) -> Option<String> {
    type Pass = fn(&Func) -> Func;
    let all: [(&str, Pass, bool); 3] =
        [("simplify", simplify::run, true), ("dead", dead::run, true), ("hoist", hoist::run, false)];
    all.into_iter().find_map(|(name, pass, same_error)| {
        let after = pass(&case.func);
        if let Err(e) = validate::logical(&after) {
            return Some(format!("{name} makes an invalid program: {e:?}\n{}", print::func(&after)));
        }
        let found = outcome(interp::run(&after, &case.inputs));
        let same = found == expected || !same_error && stops(&found) && stops(expected);
        (!same).then(|| format!("after {name}\n{}\ngives\n{found}\nand before\n{expected}", print::func(&after)))
    })
}

/// Lowers a case as the pipeline does.
fn lower_case(case: &Case, known: bool) -> taffeta_codegen::Lowered {
    let mut options = LowerOptions::default();
    if known {
        options.sizes = case.inputs.sizes.iter().map(|(name, value)| (name.clone(), *value)).collect();
    }
    let func = specialise(&case.func, &options.sizes).expect("the sizes are the program's");
    lower(&simplify::run(&func), &options).expect("it can be lowered")
}

fn lowered(case: &Case, known: bool) -> String {
    let sizes = interp::complete_sizes(&case.func, &case.inputs).expect("the inputs fit");
    let flat = Inputs { sizes, params: case.inputs.params.iter().cloned().map(Value::flatten).collect() };
    outcome(interp::run(lower_case(case, known).func(), &flat))
}

fn compiled(case: &Case, known: bool, scratch: &Path) -> String {
    let source = c::emit(&lower_case(case, known), &SourceMap::default());
    let dir = tempfile::tempdir_in(scratch).expect("a temporary directory");
    Toolchain::write(&source, dir.path(), "program").expect("the directory can be written");
    let flags = CompileOptions { contract: false, ..CompileOptions::default() };
    let compiler = Toolchain::find().expect("a C compiler");
    let runtime = testkit::batch::runtime(&source, &compiler, &flags);
    let library =
        compiler.shared(dir.path(), "program", &flags, &runtime).unwrap_or_else(|d| panic!("{d:?}\n{}", source.code));
    // SAFETY: the library was compiled from this C just now, in a directory of this run.
    let program = unsafe { Compiled::load(&library, source.signature) }.expect("the library can be loaded");
    let sizes: Vec<(&str, i64)> = case.inputs.sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let mut params = case.inputs.params.clone();
    match program.call_values(&mut Context::new(2), &mut params, &sizes) {
        Ok((results, _)) => both(params, results),
        Err(e) => e.kind.code().to_string(),
    }
}
