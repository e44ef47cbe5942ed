//! Random programs on structured tensors, and kernels in random formats: by the interpreter on elements, on the
//! arrays of formats and without formats (`structured/tests/campaign`), and by compiled C; one batch of four under
//! AddressSanitizer and UndefinedBehaviorSanitizer.

use crate::Finding;
use crate::batch;
use crate::cases::tried::{self, Prepared, Went};
use crate::cases::{Case, case, kernels, small};
use crate::driver::{self, Call, Outcome};
use crate::random_schedules::call;
use itertools::Itertools as _;
use std::time::{Duration, Instant};
use taffeta::{Options, Timings, pipeline};
use taffeta_analysis::pass::simplify;
use taffeta_ast::interp::{Outputs, RuntimeError, run};
use taffeta_ast::{Func, SourceMap, Value};
use taffeta_codegen::c::CSource;
use taffeta_codegen::toolchain::CompileOptions;

/// Programs of one library, and of one C program under the sanitizers.
const TOGETHER: u64 = 32;
const SANITIZED: u64 = 16;

/// So long is C that is compiled here, and under the sanitizers, which take long for large functions.
const LONGEST: [usize; 2] = [150_000, 30_000];

/// A program that is as small after this as it was made by then is shown as it is.
const SHRINKING: Duration = Duration::from_secs(60);

/// A case that the interpreter agrees on, as C takes it.
struct Ready {
    case: Case,
    expected: Result<Outputs, RuntimeError>,
    source: CSource,
    params: Vec<Value>,
    sizes: Vec<i64>,
}

/// What is wrong with a batch of programs.
pub fn fault(seed: u64) -> Option<Finding> {
    let sanitized = seed % 4 == 3;
    let count = if sanitized { SANITIZED } else { TOGETHER };
    let mut ready = Vec::new();
    for k in 0..count {
        let one = seed * TOGETHER + k;
        let case = if k % 2 == 0 { case(one) } else { kernels::random(one) };
        match self::ready(&case, k) {
            Ok(one) => ready.extend(one.filter(|r| r.source.code.len() < LONGEST[usize::from(sanitized)])),
            Err(what) => return Some(finding(&case, &what, &mut |c| self::ready(c, k).err())),
        }
    }
    let wrong = |ready: &[Ready]| if sanitized { undefined(ready) } else { otherwise(ready) };
    let (k, what) = wrong(&ready)?;
    let alone = |c: &Case| match self::ready(c, 0) {
        Ok(Some(one)) => wrong(&[one]).map(|(_, what)| what),
        _ => None,
    };
    Some(finding(&ready[k].case, &what, &mut { alone }))
}

/// The case, made small, with what is wrong with it.
fn finding(case: &Case, what: &str, wrong: &mut dyn FnMut(&Case) -> Option<String>) -> Finding {
    let start = Instant::now();
    let sort = |what: &str| what.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let small = small(case, &mut |c| start.elapsed() < SHRINKING && wrong(c).is_some_and(|w| sort(&w) == sort(what)));
    let what = wrong(&small).unwrap_or(what.to_string());
    let text = format!("seed {}, {:?}, sizes {:?}\n{}", small.seed, small.kind, small.sizes, small.text(true));
    Finding { what: format!("{what}\n{text}"), files: vec![("ft", text.into_bytes())] }
}

/// The case in C; `None` where it cannot be lowered.
fn ready(case: &Case, k: u64) -> Result<Option<Ready>, String> {
    if let Went::Refused(_) = tried::tried(case)? {
        return Ok(None);
    }
    let Prepared { func, given, inputs } = tried::prepared(case)?;
    let named = Func { name: format!("case_{k}"), ..func.clone() };
    let lowered = pipeline::lowered(&named, &Options::default(), &mut Timings::default());
    let lowered = lowered.map_err(|d| format!("the pipeline refuses it: {d}"))?;
    let source = pipeline::c(&lowered, &SourceMap::default(), &mut Timings::default());
    let mut hidden = given.iter().flat_map(|g| g.hidden.iter().copied());
    let mut size = |name: &str| inputs.sizes.get(name).copied().or_else(|| hidden.next()).unwrap_or(-1);
    let sizes = source.signature.sizes.iter().map(|s| size(&s.name)).collect();
    let params = given.iter().flat_map(|g| g.arrays.clone()).collect();
    let expected = run(&simplify::run(&func), &inputs);
    Ok(Some(Ready { case: case.clone(), expected, source, params, sizes }))
}

fn differs(one: &Ready, found: Result<Vec<Value>, String>) -> Option<String> {
    match (&one.expected, found) {
        // What storage skips raises nothing.
        (Err(_), _) => None,
        (Ok(_), Err(e)) => Some(format!("in C it stops: {e}")),
        (Ok(out), Ok(found)) => {
            let differs = out.results.iter().zip_eq(&found).find_map(|(a, b)| tried::unequal(a, b, 1e-9));
            differs.map(|d| format!("in C it {d}"))
        }
    }
}

/// The first of these programs that computes otherwise in C.
fn otherwise(all: &[Ready]) -> Option<(usize, String)> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let flags = CompileOptions { contract: false, optimize: false, ..CompileOptions::default() };
    let sources: Vec<CSource> = all.iter().map(|r| r.source.clone()).collect();
    let compiled = match batch::compile(&sources, dir.path(), &flags) {
        Ok(compiled) => compiled,
        Err(e) => return Some((0, e)),
    };
    all.iter().zip_eq(&compiled).enumerate().find_map(|(k, (one, compiled))| {
        let names = one.source.signature.sizes.iter().map(|s| s.name.as_str());
        let sizes: Vec<(&str, i64)> = names.zip_eq(one.sizes.iter().copied()).collect();
        differs(one, call(compiled, 1, &one.params, &sizes).map(|out| out.results)).map(|d| (k, d))
    })
}

/// The first of these programs that the sanitizers stop, or that computes otherwise under them.
fn undefined(all: &[Ready]) -> Option<(usize, String)> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let calls: Vec<Call<'_>> =
        all.iter().map(|r| Call { source: &r.source, params: &r.params, sizes: &r.sizes }).collect();
    let outcomes = if calls.is_empty() { Vec::new() } else { driver::run(&calls, dir.path()) };
    all.iter().zip_eq(outcomes).enumerate().find_map(|(k, (one, outcome))| {
        let what = match outcome {
            Outcome::Stopped(why) => Some(format!("the sanitizers stop it: {why}")),
            Outcome::Returned(0, found) => differs(one, Ok(found)),
            Outcome::Returned(status, _) => differs(one, Err(format!("status {status}"))),
        };
        what.map(|what| (k, what))
    })
}
