//! Random programs under automatic schedules: for machines and sizes that are right, wrong, and unknown.

use crate::tried::{Case, again, fault, runs};
use std::collections::BTreeMap;
use std::sync::Arc;
use taffeta_ast::Func;
use taffeta_ast::random::nest::{Class, nest};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
use taffeta_schedule::Schedule;
use taffeta_schedule::auto::Target;

/// What programs are said to run with: nothing, or sizes that they do not have.
const EXPECTED: [Option<i64>; 4] = [None, Some(2), Some(3000), Some(0)];

/// How often rules have changed a program.
pub type Taken = BTreeMap<&'static str, u64>;

/// The random program of a seed: of a class; or, with none, of what random nests hardly have.
pub fn program(seed: u64, class: Option<Class>) -> Func {
    match class {
        Some(class) => nest(seed, class),
        None => [sweeps, prefixes, windows][seed as usize % 3](seed / 3),
    }
}

/// A few sweeps in place, in which points see some of their neighbours.
fn sweeps(seed: u64) -> Func {
    let neighbours = (0..9).filter(|k| [1, 3].contains(k) || seed >> k & 1 == 1);
    let points: Vec<String> = neighbours.map(|k: u64| format!("a[i + {} - 1, j + {} - 1]", k / 3, k % 3)).collect();
    elaborated(&format!(
        "def f(a: inout[f64[n, n]]):\n    for t in range({}):\n        for i in range(1, n - 1):\n            \
         for j in range(1, n - 1):\n                a[i, j] = 0.1 * ({})\n",
        2 + seed % 3,
        points.join(" + ")
    ))
}

/// Scratch arrays whose size changes with the loop around them.
fn prefixes(seed: u64) -> Func {
    let size = ["i + 1", "n - i", "min(i + 2, n)", "2 * i + 1", "i // 2 + 1"][seed as usize % 5];
    elaborated(&format!(
        "def f(x: f64[n], y: inout[f64[n]]):\n    for i in range(n):\n        t = empty(({size},), f64)\n        \
         for k in range({size}):\n            t[k] = x[k % n] * x[i]\n        for k in range({size}):\n            \
         y[i] += t[{size} - 1 - k] * t[k // {}]\n",
        1 + seed % 3
    ))
}

/// Weights of what lies near, and sums by them; near the ends there is less, or enough lies beside it.
fn windows(seed: u64) -> Func {
    let (window, over, columns) = (16 + seed % 5, seed / 5 % 3, [8, 3, 16][seed as usize / 15 % 3]);
    let length = window - 1 - 2 * over;
    let near = format!("i + j - {over}");
    let guard = match over {
        0 => "True".into(),
        _ => format!("0 <= {near} and {near} < n + {length}"),
    };
    let halved = ["", "        for j in range(size):\n            s[j] *= 0.5\n"][seed as usize / 45 % 2];
    elaborated(&format!(
        "def f(q: f64[n, {columns}], x: f64[n + {length}, {columns}], y: inout[f64[n, {columns}]]):\n    \
         size = {window}\n    for i in range(n):\n        s = zeros((size,), f64)\n        \
         for j in range(size):\n            \
         if {guard}:\n                for c in range({columns}):\n                    \
         s[j] += q[i, c] * x[{near}, c]\n{halved}        for j in range(size):\n            \
         if {guard}:\n                for c in range({columns}):\n                    \
         y[i, c] += s[j] * x[{near}, c]\n"
    ))
}

fn elaborated(text: &str) -> Func {
    let program = Program::load(Source::inline("made.ft", text), &NoLoader);
    program.elaborate("f", &Default::default(), &NoHooks).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// A program under an automatic schedule, with what is wrong, if anything is.
pub fn automatic(seed: u64, class: Option<Class>, taken: &mut Taken) -> (Case, Option<String>) {
    let func = program(seed, class);
    let mut case = Case { func: func.clone(), seed, trace: taffeta_schedule::Trace::new(&func.name) };
    let mut target = Target::portable(1 + seed as usize % 4);
    if let Some(n) = EXPECTED[(seed / 4) as usize % EXPECTED.len()] {
        target.sizes = func.sizes.iter().map(|s| (s.name().to_string(), n)).collect();
    }
    let target = Arc::new(target);
    let run = || {
        let mut s = Schedule::new(func.clone()).aimed_at(target.clone());
        s.auto().map(|()| s)
    };
    let s = match run() {
        Ok(s) => s,
        Err(r) => return (case, Some(format!("auto is refused: {}", r.message))),
    };
    case.trace = s.trace().clone();
    for d in s.decisions().iter().filter(|d| d.taken > 0) {
        *taken.entry(d.rule).or_default() += 1;
    }
    let twice = run().expect("it was done before");
    if twice.trace() != s.trace() {
        return (case, Some("another schedule the second time".into()));
    }
    if !s.marks_hold() {
        return (case, Some("a marked loop may not run so".into()));
    }
    let wrong = fault(&runs(&func, seed), s.func()).or_else(|| again(&func, &s));
    (case, wrong)
}
