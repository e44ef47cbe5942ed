//! Quality of the cost model's ranking of schedules: `cargo bench --bench ranking` (`RANKING_ONLY=gemm` picks programs,
//! `RANKING_SHOW=1` lists their schedules).
//!
//! Each program has up to 20 schedules: the program as it is written, every prefix of the steps of `auto`, `auto`
//! without one of its rules, marks on other loops, and loops that are interchanged or split, with and without marks.
//! Each is estimated for this machine and measured (the fastest of runs in turn). Kendall's τ is the number of pairs in
//! the same order minus that in the opposite order, over all pairs; pairs whose times differ by less than a twentieth
//! are left out. The last column is the time of the schedule with the best estimate over that of the fastest one.

mod turns;

use std::time::Duration;
use taffeta::schedule::auto::{Target, rules};
use taffeta::schedule::show::program as listing;
use taffeta::schedule::{Arg, Handle, Trace, Value};
use taffeta::{Function, Options, Program, Schedule, Signature};
use turns::Workload;

/// Maximum number of schedules of a program.
const MAX_SCHEDULES: usize = 20;
/// Maximum number of runs of each schedule, and of the time for all runs of a program.
const ROUNDS: usize = 15;
const SECONDS: Duration = Duration::from_secs(20);
/// Relative difference below which times are equal.
const SAME: f64 = 0.05;

const WORKLOADS: [Workload; 12] = [
    ("tests/polybench/gemm.ft", "gemm", &[], &[("ni", 240), ("nj", 240), ("nk", 240)]),
    ("tests/polybench/syrk.ft", "syrk", &[], &[("n", 240), ("m", 240)]),
    ("tests/polybench/correlation.ft", "correlation", &[], &[("n", 240), ("m", 240)]),
    ("tests/polybench/doitgen.ft", "doitgen", &[], &[("nr", 60), ("nq", 60), ("np", 60)]),
    ("tests/polybench/mvt.ft", "mvt", &[], &[("n", 1500)]),
    ("tests/polybench/atax.ft", "atax", &[], &[("m", 1500), ("n", 1500)]),
    ("tests/polybench/gesummv.ft", "gesummv", &[], &[("n", 1200)]),
    ("tests/polybench/gemver.ft", "gemver", &[], &[("n", 1200)]),
    ("tests/polybench/jacobi-2d.ft", "jacobi_2d", &[("tsteps", "4")], &[("n", 700)]),
    ("tests/polybench/heat-3d.ft", "heat_3d", &[("tsteps", "4")], &[("n", 70)]),
    ("examples/matmul/matmul.ft", "matmul", &[], &[("n", 300), ("m", 300), ("p", 300)]),
    (
        "examples/subdivnet/circular_diff.ft",
        "circular_diff",
        &[("adj", "randint(0,20000)")],
        &[("n_faces", 20000), ("feats", 64)],
    ),
];

/// Schedule of a program, estimated and measured, in nanoseconds.
struct RankedSchedule {
    estimate: f64,
    time: f64,
    /// Last steps of the schedule.
    last: String,
}

fn main() {
    let only = std::env::var("RANKING_ONLY").unwrap_or_default();
    let mut all = Vec::new();
    println!("{:<16} {:>9} {:>7} {:>12}", "program", "schedules", "τ", "best chosen");
    for workload in WORKLOADS.iter().filter(|w| w.1.contains(&only)) {
        let found = candidates(workload);
        let tau = kendall(&found);
        if std::env::var_os("RANKING_SHOW").is_some() {
            let mut found: Vec<&RankedSchedule> = found.iter().collect();
            found.sort_by(|a, b| a.time.total_cmp(&b.time));
            for c in found {
                println!("{:>9.3} ms, estimated {:>9.3}  {}", c.time / 1e6, c.estimate / 1e6, c.last);
            }
        }
        let by = |of: fn(&RankedSchedule) -> f64| {
            found.iter().min_by(|a, b| of(a).total_cmp(&of(b))).map_or(0.0, |c| c.time)
        };
        println!("{:<16} {:>9} {tau:>7.2} {:>11.2}×", workload.1, found.len(), by(|c| c.estimate) / by(|c| c.time));
        all.push(tau);
    }
    println!("{:<16} {:>9} {:>7.2}", "mean", "", all.iter().sum::<f64>() / all.len().max(1) as f64);
}

/// Returns schedules that are different programs, with their estimates, times and last steps.
fn candidates(workload: &Workload) -> Vec<RankedSchedule> {
    let (program, options) = turns::load(workload, Options::default());
    let entry = workload.1;
    let automatic = program.scheduled(entry, &options).unwrap_or_else(|e| panic!("{e}"));
    let target = automatic.target();
    let plain = Schedule::new(program.logical(entry, &options).unwrap_or_else(|e| panic!("{e}")));

    let mut made = vec![plain.clone()];
    let steps = &automatic.trace().steps;
    let prefix = |n: usize| Trace { steps: steps[..n].to_vec(), ..automatic.trace().clone() };
    made.extend((1..=steps.len()).rev().filter_map(|n| prefix(n).replay(plain.func().clone()).ok()));
    made.extend(rules().map(|left_out| without(&plain, &target, left_out.method)));
    made.extend(marked(&plain));
    let moved: Vec<Schedule> = moved(&plain);
    made.extend(moved.iter().flat_map(marked));
    made.extend(moved);
    let mut seen = Vec::new();
    made.retain(|s| {
        let text = listing(s.func());
        let new = !seen.contains(&text);
        seen.push(text);
        new
    });
    made.truncate(MAX_SCHEDULES);
    measure(&program, &options, &made, workload)
        .into_iter()
        .zip(&made)
        .map(|(time, s)| RankedSchedule { estimate: s.estimate(&target), time, last: last(s) })
        .collect()
}

/// Formats the last steps of a schedule.
fn last(s: &Schedule) -> String {
    let steps = &s.trace().steps;
    steps[steps.len().saturating_sub(3)..].iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Applies all rules but one.
fn without(plain: &Schedule, target: &Target, left_out: &str) -> Schedule {
    let mut s = plain.clone().aimed_at(std::sync::Arc::new(target.clone()));
    for rule in rules().filter(|r| r.method != left_out) {
        s.call(rule.method, &[]).unwrap_or_else(|r| panic!("{}", r.message));
    }
    s
}

/// Returns one schedule for each loop on threads, and for each loop in vector instructions, where that is legal.
fn marked(plain: &Schedule) -> Vec<Schedule> {
    let loops = plain.clone().loops(None).unwrap_or_default();
    let mark = |method: &str, l: &Handle| {
        let mut s = plain.clone();
        s.call(method, &[Arg::from(Value::Handle(l.clone()))]).ok().map(|_| s)
    };
    loops.iter().flat_map(|l| [mark("parallelize", l), mark("vectorize", l)]).flatten().collect()
}

/// Returns one schedule for each two loops of a nest interchanged, and for each loop split, where that is legal.
fn moved(plain: &Schedule) -> Vec<Schedule> {
    let handle = |l: &Handle| Value::Handle(l.clone());
    let loops = plain.clone().loops(None).unwrap_or_default();
    let done = |method: &str, args: &[Arg]| {
        let mut s = plain.clone();
        s.call(method, args).ok().map(|_| s)
    };
    let swapped = loops
        .windows(2)
        .filter_map(|pair| done("reorder", &[Value::List(vec![handle(&pair[1]), handle(&pair[0])]).into()]));
    let split = [32, 8].into_iter().flat_map(|by| loops.iter().map(move |l| (l, by)));
    let split = split.filter_map(|(l, by)| done("split", &[handle(l).into(), Value::Int(by).into()]));
    swapped.chain(split).collect()
}

/// Times each schedule, in nanoseconds: the fastest of several runs, which are made in turn.
fn measure(program: &Program, options: &Options, made: &[Schedule], workload: &Workload) -> Vec<f64> {
    let compile = |s: &Schedule| program.compile_scheduled(s, options).unwrap_or_else(|e| panic!("{e}"));
    let functions: Vec<Function> = made.iter().map(compile).collect();
    let open = Signature::of(made[0].func(), &Default::default());
    let times = turns::times(&functions, &open, workload, ROUNDS, SECONDS);
    times.iter().map(|all| all.iter().copied().fold(f64::INFINITY, f64::min)).collect()
}

/// Computes Kendall's τ of estimates and times; 1 where there is nothing to rank.
fn kendall(all: &[RankedSchedule]) -> f64 {
    let (mut sum, mut pairs) = (0.0, 0.0);
    for (k, a) in all.iter().enumerate() {
        for b in &all[k + 1..] {
            if (a.time - b.time).abs() < SAME * a.time.min(b.time) {
                continue;
            }
            pairs += 1.0;
            let order = (a.estimate - b.estimate) * (a.time - b.time);
            sum += if order > 0.0 { 1.0 } else { f64::from(i8::from(order == 0.0) - 1) };
        }
    }
    if pairs > 0.0 { sum / pairs } else { 1.0 }
}
