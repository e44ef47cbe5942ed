//! Random steps on programs that write values shared by several elements: a program after the steps computes the same,
//! can be lowered, and has no races on a value between concurrent iterations.

use super::steps::Chooser;
use super::{Given, either_order, given, kernels, programs, touches};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::panic::catch_unwind;
use taffeta_analysis::pass::simplify;
use taffeta_ast::interp::{Outputs, run};
use taffeta_ast::random::trace::{Event, Touch};
use taffeta_ast::{Diagnostic, Func, StmtKind, print};
use taffeta_schedule::{Schedule, Traversal};
use taffeta_structured::lower;

/// Number of steps that are tried on a program, and number of seeds.
const TRIED: usize = 8;
const SEEDS: u64 = 6;

fn lowers(func: &Func) -> Result<Traversal, Diagnostic> {
    match lower(&simplify::run(func)) {
        Ok(l) => Ok(Traversal { scans: l.warnings.len(), seeks: l.seeks, order_violations: l.order_violations }),
        Err(all) => Err(all.0[0].clone()),
    }
}

/// Finds two iterations of a concurrent loop that race on one value.
fn race(func: &Func, given: &Given) -> Option<String> {
    let events = touches(func, given).events;
    let constants = super::constants(func);
    let mut by_value: HashMap<(usize, &[i64]), Vec<&Event>> = HashMap::new();
    events.iter().for_each(|e| by_value.entry((e.allocation, &e.element)).or_default().push(e));
    let mut found = None;
    func.body.walk(&mut |l| {
        let StmtKind::For { props, iter, .. } = l.kind() else { return };
        if !props.is_concurrent() || found.is_some() {
            return;
        }
        // The events are in one iteration of the enclosing loops, and in different iterations of this loop.
        let apart = |a: &Event, b: &Event| {
            let at = |e: &Event| e.instance.loops.iter().position(|i| i.stmt == l.id());
            let (Some(p), Some(q)) = (at(a), at(b)) else { return false };
            let outer =
                |e: &Event, p: usize| e.instance.loops[..p].iter().map(|i| (i.stmt, i.number)).collect::<Vec<_>>();
            p == q && outer(a, p) == outer(b, q) && a.instance.loops[p].number != b.instance.loops[p].number
        };
        let shared = |e: &Event| match e.touch {
            Touch::Reduce(op) => props.sharing(&e.tensor, op).is_some(),
            _ => false,
        };
        for group in by_value.values() {
            for (k, a) in group.iter().enumerate() {
                for b in &group[..k] {
                    let writes = a.touch != Touch::Read || b.touch != Touch::Read;
                    let kept = either_order(a, b, &constants) && (shared(a) || a.touch == Touch::Write);
                    if writes && !kept && apart(a, b) {
                        found = Some(format!("`{iter}` runs at once {a:?}\nand {b:?}"));
                    }
                }
            }
        }
    });
    found
}

/// Returns whether results are equal; inputs are whole numbers, so sums do not depend on their order.
fn same(a: &Outputs, b: &Outputs) -> bool {
    let equal = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan();
    a.results.len() == b.results.len()
        && a.results.iter().zip(&b.results).all(|(x, y)| {
            x.places() == y.places()
                && x.shape() == y.shape()
                && x.numbers().iter().zip(y.numbers()).all(|(x, y)| equal(*x, y))
        })
}

/// Counts of steps asked for and taken, of refusals by dependences, and of lowered programs.
#[derive(Default)]
struct Counts {
    steps: BTreeMap<String, [usize; 2]>,
    dependences: usize,
    lowered: usize,
}

/// Takes random steps on a program; returns the first failure.
fn tried(name: &str, func: &Func, seed: u64, counts: &mut Counts) -> Option<String> {
    let runs: Vec<(Given, Outputs)> = [0, 1, 2, 4, 5]
        .into_iter()
        .map(|size| {
            let given = given(func, size, seed + size as u64);
            let before = run(func, &given.inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
            (given, before)
        })
        .collect();
    let mut s = Schedule::new(func.clone()).lowered_by(lowers).trying();
    let mut choose = Chooser::new(seed);
    for _ in 0..TRIED {
        let Some((method, args)) = choose.step(&s) else { continue };
        let count = counts.steps.entry(method.clone()).or_default();
        count[0] += 1;
        match s.call(&method, &args) {
            Ok(_) => count[1] += 1,
            Err(r) => {
                counts.dependences += usize::from(r.dependence.is_some());
                continue;
            }
        }
        let shown = || {
            let steps: Vec<String> = s.trace().steps.iter().map(ToString::to_string).collect();
            format!("{name}, seed {seed}\n{}\n{}\n{}", print::func(func), steps.join("\n"), print::func(s.func()))
        };
        for (given, before) in &runs {
            match run(s.func(), &given.inputs) {
                Ok(after) if same(before, &after) => {}
                Ok(after) => return Some(format!("{}\nbefore {before:?}\nafter  {after:?}", shown())),
                Err(e) => return Some(format!("{}\nit stops: {e}", shown())),
            }
            if let Some(race) = race(s.func(), given) {
                return Some(format!("{}\n{race}", shown()));
            }
        }
        if !s.marks_hold() {
            return Some(format!("{}\na marked loop may not run so", shown()));
        }
    }
    let after = simplify::run(s.func());
    let structured = lower(&after).ok()?;
    counts.lowered += 1;
    let broken = taffeta_ast::validate::dense(&structured.func).err().map(|e| e.to_string());
    let wrong = broken.or_else(|| {
        let equal = |seed| catch_unwind(|| programs::equal(func, &structured, seed));
        (0..6).any(|seed| equal(seed).is_err()).then(|| "lowered, it computes something else".to_string())
    });
    wrong.map(|what| format!("{name}, seed {seed}: {what}\n{}\n{}", print::func(&after), print::func(&structured.func)))
}

#[test]
fn legal_steps_preserve_shared_values() {
    let all = kernels::all();
    let cases: Vec<(usize, u64)> = (0..all.len()).flat_map(|k| (0..SEEDS).map(move |seed| (k, seed))).collect();
    let one = |(k, seed): &(usize, u64)| {
        let (mut counts, (name, func)) = (Counts::default(), &all[*k]);
        let wrong = tried(name, func, seed * 1000 + *k as u64, &mut counts);
        (wrong, counts)
    };
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for (wrong, of) in cases.par_iter().map(one).collect::<Vec<_>>() {
        failures.extend(wrong);
        counts.dependences += of.dependences;
        counts.lowered += of.lowered;
        for (method, [asked, taken]) in of.steps {
            let count = counts.steps.entry(method).or_default();
            (count[0], count[1]) = (count[0] + asked, count[1] + taken);
        }
    }
    println!(
        "{} schedules, {} lowered, {} refused by dependences, {:?}",
        cases.len(),
        counts.lowered,
        counts.dependences,
        counts.steps
    );
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures[..failures.len().min(3)].join("\n\n"));
    for method in ["parallelize", "vectorize", "reorder", "reverse", "split", "swap", "fuse", "fission", "move_to"] {
        assert!(counts.steps.get(method).is_some_and(|[_, taken]| *taken > 0), "never taken: {method}");
    }
    assert!(counts.dependences > 50 && 2 * counts.lowered > cases.len(), "{} {}", counts.dependences, counts.lowered);
}
