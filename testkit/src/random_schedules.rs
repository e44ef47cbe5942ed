//! Random programs under random schedules in C: the interpreter's results without steps equal its results with them,
//! and those of compiled C on one thread, two, and possibly more than the machine has; and under the sanitizers.

use crate::batch;
use crate::driver::{self, Call, Outcome};
use crate::tried::{Case, Counts, Further, Run, close, problem, random, runs, small};
use itertools::Itertools as _;
use taffeta_ast::func::ParamMode;
use taffeta_ast::interp::Outputs;
use taffeta_ast::random::nest::Class;
use taffeta_ast::{Func, SourceMap, StmtKind, Value};
use taffeta_codegen::c::{self, CSource};
use taffeta_codegen::call::Context;
use taffeta_codegen::toolchain::CompileOptions;
use taffeta_codegen::{Compiled, LowerOptions, lower};

/// Classes of random programs.
pub const CLASSES: [Class; 4] = [Class::Dense, Class::Affine, Class::Private, Class::Wild];

/// Returns flags that give the interpreter's results, at the optimisation level of users' programs, where compilers
/// have their bugs.
pub fn flags() -> CompileOptions {
    CompileOptions { contract: false, ..CompileOptions::default() }
}

/// Generates the C of an entry, under a name that is unique in its batch.
pub fn source(func: &Func, number: usize) -> Result<CSource, String> {
    let named = Func { name: format!("case_{number}"), ..func.clone() };
    let lowered = lower(&named, &LowerOptions::default()).map_err(|d| format!("lowering refuses the program: {d}"))?;
    Ok(c::emit(&lowered, &SourceMap::default()))
}

/// Returns the outputs of a compiled entry in the interpreter's form, or its error code.
pub fn call(compiled: &Compiled, threads: usize, params: &[Value], sizes: &[(&str, i64)]) -> Result<Outputs, String> {
    let mut given = params.to_vec();
    match compiled.call_values(&mut Context::new(threads), &mut given, sizes) {
        Ok((mut results, _)) => {
            let made = results.split_off(results.len() - compiled.signature().made().count());
            Ok(Outputs { params: given, unwritten: vec![Vec::new(); results.len()], results, made })
        }
        Err(e) => Err(e.kind.code().to_string()),
    }
}

/// Returns the first difference of compiled code from the interpreter's results without steps.
fn differs(after: &Func, compiled: &Compiled, runs: &[Run]) -> Option<String> {
    for (k, r) in runs.iter().enumerate() {
        let sizes: Vec<(&str, i64)> = r.inputs.sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        for threads in threads(after, k + 1 == runs.len()) {
            let found = call(compiled, *threads, &r.inputs.params, &sizes);
            if !found.as_ref().is_ok_and(|out| close(&r.before, out)) {
                return Some(format!(
                    "different results in C on {threads} threads at {:?}\nbefore {:?}\nin C   {found:?}",
                    r.inputs, r.before
                ));
            }
        }
    }
    None
}

/// Returns the numbers of threads to run a program on. On busy processors, threads wait for each other in every
/// parallel loop: sequential programs run on one, and only the largest size on more threads than there may be
/// processors.
fn threads(func: &Func, largest: bool) -> &'static [usize] {
    let parallel = func.body.any(&mut |s| matches!(s.kind(), StmtKind::For { props, .. } if props.parallel.is_some()));
    match (parallel, largest) {
        (false, _) => &[1],
        (true, false) => &[1, 2],
        (true, true) => &[1, 2, 4],
    }
}

/// Returns the failure of one program in C, compiled alone.
pub fn in_c(after: &Func, runs: &[Run], flags: &CompileOptions) -> Option<String> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let compiled = source(after, 0).and_then(|s| batch::compile(&[s], dir.path(), flags));
    match compiled.map(|c| differs(after, &c[0], runs)) {
        Ok(found) => found,
        Err(refused) => Some(format!("cannot compile the program: {refused}")),
    }
}

/// Returns the failures of the programs of some seeds under random steps, shrunk.
pub fn faults(
    seeds: std::ops::Range<u64>,
    class: Class,
    flags: &CompileOptions,
    counts: &mut Counts,
) -> Vec<(Case, String)> {
    faults_of(seeds.map(|seed| random(seed, class, counts)), flags)
}

/// Returns the failures of programs under schedules, shrunk, including those already known.
pub fn faults_of(tried: impl Iterator<Item = (Case, Option<String>)>, flags: &CompileOptions) -> Vec<(Case, String)> {
    let alone: Further<'_> = &|_, after, runs| in_c(after, runs, flags);
    let (mut wrong, mut cases, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    for (case, what) in tried {
        if let Some(what) = what {
            wrong.push(small(&case, &what, &|_, _, _| None));
            continue;
        }
        let after = case.trace.replay(case.func.clone()).map(|s| s.into_func()).expect("the steps were taken before");
        match source(&after, cases.len()) {
            Ok(s) => {
                sources.push(s);
                cases.push((case, after));
            }
            Err(what) => wrong.push(small(&case, &format!("cannot compile the program: {what}"), alone)),
        }
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut together = "different results in C, but only in a batch with other programs".to_string();
    let suspects: Vec<usize> = match batch::compile(&sources, dir.path(), flags) {
        Ok(compiled) => {
            let bad = |((case, after), compiled): (&(Case, Func), &Compiled)| {
                differs(after, compiled, &runs(&case.func, case.seed)).is_some()
            };
            let all: Vec<bool> = cases.iter().zip_eq(&compiled).map(bad).collect();
            (0..cases.len()).filter(|k| all[*k]).collect()
        }
        // Each is compiled alone to find the culprits.
        Err(refused) => {
            together = format!("cannot compile the program in its batch: {refused}");
            (0..cases.len()).collect()
        }
    };
    for case in suspects.into_iter().map(|k| &cases[k].0) {
        match problem(case, alone) {
            Some((case, what)) => wrong.push(small(&case, &what, alone)),
            None => wrong.push((case.clone(), together.clone())),
        }
    }
    wrong
}

/// Returns the failures of cases under AddressSanitizer and UndefinedBehaviorSanitizer, each at one of its sizes.
pub fn undefined(cases: impl IntoIterator<Item = Case>) -> Vec<(Case, String)> {
    let mut all = Vec::new();
    for case in cases {
        let runs = runs(&case.func, case.seed);
        // Cases without runs, or with failures that the other campaign finds, are skipped.
        let Some(run) = runs.get(case.seed as usize % runs.len().max(1)).cloned() else { continue };
        let Ok(after) = case.trace.replay(case.func.clone()) else { continue };
        if let Ok(source) = source(after.func(), all.len()) {
            all.push((case, run, source));
        }
    }
    // Steps of a saved case may be refused meanwhile.
    if all.is_empty() {
        return Vec::new();
    }
    let sizes: Vec<Vec<i64>> = all.iter().map(|(_, run, source)| sizes(run, source)).collect();
    let calls: Vec<Call<'_>> = all
        .iter()
        .zip_eq(&sizes)
        .map(|((_, run, source), sizes)| Call { source, params: &run.inputs.params, sizes })
        .collect();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let outcomes = driver::run(&calls, dir.path());
    let wrong = |((case, run, _), outcome): (&(Case, Run, CSource), Outcome)| {
        let what = match outcome {
            Outcome::Stopped(why) => format!("a sanitizer stops the program at {:?}\n{why}", run.inputs),
            Outcome::Returned(0, written) if close(&written_only(&case.func, &run.before), &plain(written.clone())) => {
                return None;
            }
            Outcome::Returned(status, written) => {
                format!("different results under sanitizers at {:?}\nstatus {status}: {written:?}", run.inputs)
            }
        };
        Some((case.clone(), what))
    };
    all.iter().zip_eq(outcomes).filter_map(wrong).collect()
}

/// Returns the sizes in the order of the signature; -1 where a shape fixes them.
fn sizes(run: &Run, source: &CSource) -> Vec<i64> {
    source.signature.sizes.iter().map(|s| run.inputs.sizes.get(&s.name).copied().unwrap_or(-1)).collect()
}

/// Selects the tensors that a program writes from the interpreter's outputs.
fn written_only(func: &Func, out: &Outputs) -> Outputs {
    let written = func.params.iter().zip_eq(&out.params).filter(|(p, _)| p.mode == ParamMode::InOut);
    plain(written.map(|(_, v)| v).chain(&out.results).chain(&out.made).cloned().collect())
}

fn plain(params: Vec<taffeta_ast::Value>) -> Outputs {
    Outputs { params, results: Vec::new(), made: Vec::new(), unwritten: Vec::new() }
}
