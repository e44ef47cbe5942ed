//! Random programs under random schedules, in the interpreter and in C. The environment variables `FIRST` and `COUNT`
//! choose other seeds; `make fuzz` takes new ones until it is stopped.

use taffeta_ast::build::{block, store};
use taffeta_ast::random::nest::Class;
use taffeta_ast::{DType, Expr, Func};
use testkit::random_schedules::{CLASSES, faults, flags, in_c, undefined};
use testkit::steps::primitives;
use testkit::tried::{Case, Counts, problem, random, runs, show, small};

/// Number of programs per library.
const SEEDS_PER_BATCH: u64 = 40;

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or)
}

fn none(failures: &[(Case, String)]) {
    let text: Vec<String> = failures.iter().take(3).map(|(case, what)| show(case, what)).collect();
    assert!(text.is_empty(), "{} failures\n{}", failures.len(), text.join("\n\n"));
}

#[test]
fn scheduled_programs() {
    let (first, most) = (number("FIRST", 0), number("COUNT", 8));
    let start = std::time::Instant::now();
    let mut all = Counts::default();
    for class in CLASSES {
        let mut counts = Counts::default();
        let starts = (first..first + most).step_by(SEEDS_PER_BATCH as usize);
        let batch = |from: u64| {
            let seeds = from..(from + SEEDS_PER_BATCH).min(first + most);
            faults(seeds, class, &flags(), &mut counts)
        };
        let failures: Vec<(Case, String)> = starts.flat_map(batch).collect();
        println!("{class:?}, {most} programs through C by {:.0?}; {counts}", start.elapsed());
        none(&failures);
        all.add(&counts);
    }
    // Adds programs until every primitive has been applied and compiled.
    let never = |all: &Counts| -> Vec<&str> {
        let taken = |p: &&str| all.steps.get(*p).is_some_and(|(_, taken)| *taken > 0);
        primitives().into_iter().filter(|p| !taken(p)).collect()
    };
    for from in (first + most..).step_by(SEEDS_PER_BATCH as usize).take(12) {
        if never(&all).is_empty() {
            break;
        }
        none(&faults(from..from + SEEDS_PER_BATCH, Class::Dense, &flags(), &mut all));
    }
    println!("all of them: {all}");
    assert!(never(&all).is_empty(), "never taken: {:?}", never(&all));
}

#[test]
fn scheduled_programs_have_no_undefined_behaviour() {
    let first = number("FIRST", 0);
    let seeds = (first..first + 6).flat_map(|seed| CLASSES.map(|class| random(seed, class, &mut Counts::default()).0));
    none(&undefined(seeds));
}

/// Checks that a difference in the results of C is detected.
#[test]
fn wrong_results_are_detected() {
    let (case, wrong) = random(1, Class::Dense, &mut Counts::default());
    assert_eq!(wrong, None);
    let runs = runs(&case.func, case.seed);
    assert!(!runs.is_empty());
    assert_eq!(in_c(&case.func, &runs, &flags()), None);
    let s = case.func.params.iter().find(|p| p.tensor.symbol.name() == "s").expect("a scalar");
    let more = store(&s.tensor, [], &Expr::float(1e6, DType::F64).cast(s.tensor.dtype));
    let other: Func = case.func.with_body(block([case.func.body.clone(), more]));
    let what = in_c(&other, &runs, &flags()).expect("it is another program");
    assert!(what.starts_with("different results in C"), "{what}");
}

/// Checks that shrinking a failing case drops unrelated steps and statements.
#[test]
fn failures_are_shrunk() {
    let splits = |_: &Func, after: &Func, _: &[testkit::tried::Run]| {
        let found = after
            .body
            .any(&mut |s| matches!(s.kind(), taffeta_ast::StmtKind::For { iter, .. } if iter.name().ends_with("~o")));
        found.then(|| "a loop is split".to_string())
    };
    let seeds = (0..).map(|seed| random(seed, Class::Dense, &mut Counts::default()).0);
    let large = |c: &Case| c.trace.steps.len() > 3 && problem(c, &splits).is_some();
    let case = seeds.into_iter().find(large).expect("some program is split");
    let (case, what) = small(&case, "a loop is split", &splits);
    assert_eq!(what, "a loop is split");
    assert_eq!(case.trace.steps.len(), 1, "{}", case.trace.to_json());
    let text = taffeta_ast::print::stmt(&case.func.body);
    // At most the split loop, an enclosing loop if the statement needs its iterator, and the statement.
    assert!(text.lines().count() <= 3, "{text}");
}
