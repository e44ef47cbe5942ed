//! Random programs on structured tensors, and kernels in random formats: unscheduled, under random and rule-chosen
//! schedule steps, and their derivatives. Each runs in the interpreter on elements, on the formats' arrays and without
//! formats (`testkit::cases`), and as compiled C, on 1, 2 and 7 threads if it has parallel loops; one batch in four
//! runs under AddressSanitizer and UndefinedBehaviorSanitizer.

use crate::Finding;
use itertools::Itertools as _;
use std::time::{Duration, Instant};
use taffeta::{Options, Timings, pipeline};
use taffeta_analysis::pass::simplify;
use taffeta_ast::interp::{Outputs, RuntimeError, run};
use taffeta_ast::{Func, SourceMap, StmtKind, Value};
use taffeta_codegen::c::CSource;
use testkit::batch;
use testkit::cases::tried::{self, Prepared, Went};
use testkit::cases::ways::{self, WAYS, Way};
use testkit::cases::{Case, assembled, case, kernels, small};
use testkit::driver::{self, Call, Outcome};
use testkit::random_schedules::{call, flags};

/// Number of programs per library, and per C program under the sanitizers.
const SEEDS_PER_BATCH: u64 = 32;
const SANITIZED: u64 = 16;

/// Maximum length of C source compiled here, in bytes: plain, and under the sanitizers, which are slow on large
/// functions.
const LONGEST: [usize; 2] = [150_000, 30_000];

/// Start of the diagnostic for loops that would expand to too much C. Simplification may push a program over that
/// limit.
const TOO_MANY: &str = "too many combinations of stored and absent elements";

/// Time limit for shrinking; the smallest program found by then is reported.
const SHRINKING: Duration = Duration::from_secs(60);

/// Case on which the interpreter agrees, with its C source and arguments.
struct Ready {
    case: Case,
    way: Option<Way>,
    prepared: Prepared,
    expected: Result<Outputs, RuntimeError>,
    source: CSource,
    params: Vec<Value>,
    sizes: Vec<i64>,
}

/// Returns the first fault in a batch of programs, or in the first quarter of it.
pub fn fault(seed: u64, short: bool) -> Option<Finding> {
    let sanitized = seed % 4 == 3;
    let count = if sanitized { SANITIZED } else { SEEDS_PER_BATCH };
    let mut ready = Vec::new();
    for k in 0..if short { count / 4 } else { count } {
        let one = seed * SEEDS_PER_BATCH + k;
        let case = match k % 4 {
            0 => case(one),
            // (The driver of the sanitizers takes no arrays that programs make.)
            2 if !sanitized => assembled(one),
            2 => case(one),
            _ => kernels::random(one),
        };
        // Gradients of what is assembled, and steps on such nests, are refused.
        let way = [None].into_iter().chain(WAYS.map(Some)).nth(k as usize / 2 % (1 + WAYS.len())).flatten();
        let way = way.filter(|_| k % 4 != 2);
        match self::ready(&case, way, k) {
            Ok(one) => ready.extend(one.filter(|r| r.source.code.len() < LONGEST[usize::from(sanitized)])),
            Err(what) => return Some(finding(&case, way, &what, &mut |c| self::ready(c, way, k).err())),
        }
    }
    let wrong = |ready: &[Ready]| if sanitized { undefined(ready) } else { otherwise(ready) };
    let (k, what) = wrong(&ready)?;
    let way = ready[k].way;
    let alone = |c: &Case| match self::ready(c, way, 0) {
        Ok(Some(one)) => wrong(&[one]).map(|(_, what)| what),
        _ => None,
    };
    Some(finding(&ready[k].case, way, &what, &mut { alone }))
}

/// Shrinks a case and reports its fault.
fn finding(case: &Case, way: Option<Way>, what: &str, wrong: &mut dyn FnMut(&Case) -> Option<String>) -> Finding {
    let start = Instant::now();
    let sort = |what: &str| what.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let small = small(case, &mut |c| start.elapsed() < SHRINKING && wrong(c).is_some_and(|w| sort(&w) == sort(what)));
    let what = wrong(&small).unwrap_or(what.to_string());
    let way = way.map_or(String::new(), |way| format!(", {way:?}"));
    let text = format!("seed {}, {:?}{way}, sizes {:?}\n{}", small.seed, small.kind, small.sizes, small.text(true));
    Finding { what: format!("{what}\n{text}"), files: vec![("ft", text.into_bytes())] }
}

/// Lowers a case for C, transformed in some way; `None` if it cannot be lowered or the way does not apply.
fn ready(case: &Case, way: Option<Way>, k: u64) -> Result<Option<Ready>, String> {
    if let Went::Refused(_) = tried::tried(case)? {
        return Ok(None);
    }
    let prepared = match way {
        None => tried::prepared(case)?,
        Some(way) => match (ways::tried(case, way)?, ways::made(case, way)?) {
            (Some(Went::Agrees { .. }), Some(made)) => made.prepared,
            _ => return Ok(None),
        },
    };
    let Prepared { func, given, inputs, .. } = &prepared;
    let named = Func { name: format!("case_{k}"), ..func.clone() };
    let lowered = pipeline::lowered(&named, &Options::default(), &mut Timings::default());
    let lowered = match lowered {
        Ok(lowered) => lowered,
        // The pipeline simplifies first, and conditions split or joined by that yield other combinations.
        Err(all) if all.0.iter().all(|d| d.message.starts_with(TOO_MANY)) => return Ok(None),
        Err(all) => return Err(format!("the pipeline refuses it: {all}")),
    };
    let source = pipeline::c(&lowered, &SourceMap::default(), &mut Timings::default());
    let mut hidden = given.iter().flat_map(|g| g.hidden.iter().copied());
    let mut size = |name: &str| inputs.sizes.get(name).copied().or_else(|| hidden.next()).unwrap_or(-1);
    let sizes = source.signature.sizes.iter().map(|s| size(&s.name)).collect();
    let params = given.iter().flat_map(|g| g.arrays.clone()).collect();
    let expected = run(&simplify::run(func), inputs);
    Ok(Some(Ready { case: case.clone(), way, prepared, expected, source, params, sizes }))
}

fn differs(one: &Ready, found: Result<(Vec<Value>, Vec<Value>), String>) -> Option<String> {
    match (&one.expected, found) {
        // Errors at elements that storage skips are not raised.
        (Err(_), _) => None,
        // Nor must they be suppressed: C may evaluate operands that a fill annihilates, and stop as the dense program
        // does.
        (Ok(_), Err(_)) if one.prepared.without_formats().is_ok_and(|plain| plain.is_err()) => None,
        (Ok(_), Err(e)) => Some(format!("in C it stops: {e}")),
        (Ok(out), Ok((results, made))) => {
            let found = one.prepared.whole(results, made, &out.results);
            let expected = match one.prepared.expected(out.results.clone()) {
                Ok(expected) => expected,
                Err(e) => return Some(format!("does not stop: {e}")),
            };
            let differs = expected.iter().zip_eq(&found).find_map(|(a, b)| tried::unequal(a, b, 1e-9));
            differs.map(|d| format!("in C it {d}"))
        }
    }
}

/// Returns the thread counts to run a program on: one thread if it has no parallel loop.
fn threads(func: &Func) -> &'static [usize] {
    let parallel = func.body.any(&mut |s| matches!(s.kind(), StmtKind::For { props, .. } if props.parallel.is_some()));
    if parallel { &[1, 2, 7] } else { &[1] }
}

/// Returns the first program that computes a different result in C.
fn otherwise(all: &[Ready]) -> Option<(usize, String)> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let flags = flags();
    let sources: Vec<CSource> = all.iter().map(|r| r.source.clone()).collect();
    let compiled = match batch::compile(&sources, dir.path(), &flags) {
        Ok(compiled) => compiled,
        Err(e) => return Some((0, e)),
    };
    all.iter().zip_eq(&compiled).enumerate().find_map(|(k, (one, compiled))| {
        let names = one.source.signature.sizes.iter().map(|s| s.name.as_str());
        let sizes: Vec<(&str, i64)> = names.zip_eq(one.sizes.iter().copied()).collect();
        threads(&one.prepared.func).iter().find_map(|threads| {
            let found = call(compiled, *threads, &one.params, &sizes).map(|out| (out.results, out.made));
            differs(one, found).map(|d| (k, format!("{d}, on {threads} threads")))
        })
    })
}

/// Returns the first program that the sanitizers stop, or that computes a different result under them.
fn undefined(all: &[Ready]) -> Option<(usize, String)> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let calls: Vec<Call<'_>> =
        all.iter().map(|r| Call { source: &r.source, params: &r.params, sizes: &r.sizes }).collect();
    let outcomes = if calls.is_empty() { Vec::new() } else { driver::run(&calls, dir.path()) };
    all.iter().zip_eq(outcomes).enumerate().find_map(|(k, (one, outcome))| {
        let what = match outcome {
            Outcome::Stopped(why) => Some(format!("the sanitizers stop it: {why}")),
            Outcome::Returned(0, found) => differs(one, Ok((found, Vec::new()))),
            Outcome::Returned(status, _) => differs(one, Err(format!("status {status}"))),
        };
        what.map(|what| (k, what))
    })
}
