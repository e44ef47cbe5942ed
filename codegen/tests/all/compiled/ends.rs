//! Loops at the ends of i64 under schedules, in C: C computes with the steps the interpreter's results without them,
//! and stops wherever the interpreter stops. `schedule/tests/primitives/ends.rs` has many more steps, for the
//! interpreter alone.

use crate::compiled::run::scratch_dir;
use itertools::Itertools as _;
use std::collections::BTreeMap;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{Buffer, DType, Func, Value as Array, print};
use taffeta_codegen::toolchain::CompileOptions;
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
use taffeta_schedule::{Arg, IndexMap, Refusal, Schedule, Value};
use testkit::random_schedules::{call, source};
use testkit::{batch, driver};

const MIN: i64 = i64::MIN;
const MAX: i64 = i64::MAX;

/// Program before and after its steps, with its inputs.
struct Case {
    name: String,
    before: Func,
    after: Func,
    inputs: Vec<Inputs>,
}

fn entry(text: &str) -> Func {
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    let name = program.entries()[0].name.clone();
    program.elaborate(&name, &BTreeMap::new(), &NoHooks).unwrap_or_else(|d| panic!("{d}"))
}

type Step = (&'static str, fn(&mut Schedule) -> Result<(), Refusal>);

/// Applies a step to a loop or a tensor and returns the objects that it made.
fn on(s: &mut Schedule, method: &str, of: impl Into<Value>, more: &[Arg]) -> Result<Vec<Value>, Refusal> {
    let of = Arg { name: None, value: of.into(), span: taffeta_ast::Span::NONE };
    Ok(match s.call(method, &[&[of], more].concat())? {
        Value::List(all) => all,
        one => vec![one],
    })
}

fn permuted(s: &mut Schedule, row: [i64; 2]) -> Result<(), Refusal> {
    let map = Value::Map(IndexMap::affine(&[row.to_vec()]));
    let map = Arg { name: None, value: map, span: taffeta_ast::Span::NONE };
    on(s, "permute", Value::List(vec!["i".into()]), &[map]).map(drop)
}

const STEPS: &[Step] = &[
    ("split by 3", |s| on(s, "split", "i", &[Arg::from(3i64)]).map(drop)),
    ("split by 2^62", |s| on(s, "split", "i", &[Arg::from(1i64 << 62)]).map(drop)),
    ("split by 2^63 - 4", |s| on(s, "split", "i", &[Arg::from(MAX - 3)]).map(drop)),
    ("2^40 parts", |s| on(s, "split", "i", &[Arg::named("parts", 1i64 << 40)]).map(drop)),
    ("shift by 2^40", |s| on(s, "split", "i", &[Arg::from(2i64), Arg::named("shift", 1i64 << 40)]).map(drop)),
    ("reverse", |s| on(s, "reverse", "i", &[]).map(drop)),
    ("reverse and split", |s| {
        let reversed = on(s, "reverse", "i", &[])?;
        on(s, "split", reversed[0].clone(), &[Arg::from(4i64)]).map(drop)
    }),
    ("split and merge", |s| {
        let made = on(s, "split", "i", &[Arg::from(3i64)])?;
        let inner = Arg { name: None, value: made[1].clone(), span: taffeta_ast::Span::NONE };
        on(s, "merge", made[0].clone(), &[inner]).map(drop)
    }),
    ("negate", |s| permuted(s, [-1, 0])),
    ("permute by 2^62", |s| permuted(s, [1, 1 << 62])),
    ("unroll by 3", |s| on(s, "unroll", "i", &[Arg::named("factor", 3i64)]).map(drop)),
    ("separate_tail", |s| {
        let made = on(s, "split", "i", &[Arg::from(4i64)])?;
        on(s, "separate_tail", made[0].clone(), &[]).map(drop)
    }),
    ("parallelize", |s| on(s, "parallelize", "i", &[]).map(drop)),
];

/// Returns bounds for loops of that step, with a few iterations or none.
fn ranges(step: i64) -> Vec<[i64; 2]> {
    let half = 1 << 62;
    match step {
        1 => vec![[0, 5], [0, MIN], [MAX, MIN], [MIN, MIN + 5], [MAX - 5, MAX], [MAX, MAX], [half - 2, half + 3]],
        -1 => vec![[MIN + 4, MIN], [MAX, MAX - 5], [MIN, MAX], [-1, MAX], [5, 0]],
        4 => vec![[MIN, MIN + 9], [MAX - 9, MAX], [0, 9], [MAX, MIN]],
        _ => vec![[MIN, MAX], [-half, MAX], [0, MAX], [MAX, MIN]],
    }
}

fn inputs(bounds: &[i64]) -> Inputs {
    let scalar = |v: &i64| Array::new(vec![], Buffer::I64(vec![*v])).expect("a number");
    let y = Array::zeros(DType::I64, vec![8]).expect("small");
    Inputs { sizes: BTreeMap::new(), params: std::iter::once(y).chain(bounds.iter().map(scalar)).collect() }
}

/// Formats any i64 as a literal.
fn number(v: i64) -> String {
    if v == MIN { "(-9223372036854775807 - 1)".into() } else { format!("({v})") }
}

/// Applies every step that is accepted to loops whose bounds are given at run time, or compiled in.
fn loops() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |text: &str, all: &[Vec<i64>], what: &str| {
        let before = entry(text);
        for (name, steps) in STEPS {
            let mut s = Schedule::new(before.clone());
            if steps(&mut s).is_ok() {
                let inputs = all.iter().map(|bounds| inputs(bounds)).collect();
                let (before, after) = (before.clone(), s.into_func());
                cases.push(Case { name: format!("{name}, {what}"), before, after, inputs });
            }
        }
    };
    for step in [1, -1, 4, 1 << 62] {
        let text = |params: &str, begin: &str, end: &str| {
            format!(
                "def f(y: inout[i64[8]]{params}):\n    for i in range({begin}, {end}, {step}):\n        y[i % 8] += i\n        \
                 y[3] += 1\n"
            )
        };
        let all: Vec<Vec<i64>> = ranges(step).iter().map(|r| r.to_vec()).collect();
        add(&text(", a: i64, b: i64", "a", "b"), &all, &format!("step {step}"));
        for [begin, end] in ranges(step).into_iter().step_by(3) {
            add(&text("", &number(begin), &number(end)), &[vec![]], &format!("range({begin}, {end}, {step})"));
        }
    }
    cases
}

/// Builds programs that a check stops at run time: at the first iteration of two merged loops whose product wraps, and
/// at a local tensor whose dimensions a step changed.
fn stopping() -> Vec<Case> {
    let merged = "def f(x: f32[n, 0], z: f32[m, 0], y: inout[f32[4]]):\n    for i in range(n):\n        for j in range(m):\n  \
                  \x20         assert i + j > 0\n            y[0] += 1\n";
    let split = "def f(x: f32[n, 0], y: inout[f32[8]]):\n    t = zeros((n - 3,), f32)\n    for i in range(n - 3):\n        t[i] = i\n    \
                 for j in range(n - 3):\n        y[j % 8] += t[j]\n";
    let case = |name: &str, text: &str, step: &dyn Fn(&mut Schedule), inputs: Vec<Inputs>| {
        let before = entry(text);
        let mut s = Schedule::new(before.clone());
        step(&mut s);
        Case { name: name.to_string(), before, after: s.into_func(), inputs }
    };
    let large = [vec![1 << 40, 0], vec![1 << 40, 0], vec![4]];
    let sizes = ["n", "m"].map(|n| (n.to_string(), 1i64 << 40)).into_iter().collect();
    let wraps = Inputs { sizes, params: large.map(|s| Array::zeros(DType::F32, s).expect("small")).to_vec() };
    let of = |n: usize| {
        let params = [vec![n, 0], vec![8]].map(|s| Array::zeros(DType::F32, s).expect("small")).to_vec();
        Inputs { sizes: BTreeMap::from([("n".to_string(), n as i64)]), params }
    };
    vec![
        case("merge", merged, &|s| drop(on(s, "merge", "i", &["j".into()]).expect("is taken")), vec![wraps]),
        case(
            "var_split",
            split,
            &|s| drop(on(s, "var_split", "t", &[Arg::from(0i64), Arg::from(4i64)]).expect("is taken")),
            vec![of(0), of(1), of(3), of(12)],
        ),
    ]
}

/// Compares the result or error of C with the interpreter's.
fn compare(case: &Case, inputs: &Inputs, found: Result<Vec<Array>, String>) {
    let at = || format!("{} at {:?}:\n{}{}", case.name, inputs, print::func(&case.before), print::func(&case.after));
    match (interp::run(&case.before, inputs), found) {
        (Ok(want), Ok(have)) => assert_eq!(want.params, have, "{}", at()),
        // The error that stops a program may change; C reports that of the scheduled program.
        (Err(_), Err(code)) => {
            let after = interp::run(&case.after, inputs).expect_err("it stops after the steps too");
            assert_eq!(after.kind.code(), code, "{}", at());
        }
        (want, have) => panic!("{want:?}\n{have:?}\n{}", at()),
    }
}

#[test]
fn loops_at_the_ends_of_i64() {
    let all: Vec<Case> = loops().into_iter().chain(stopping()).collect();
    let never: Vec<&str> =
        STEPS.iter().map(|s| s.0).filter(|name| !all.iter().any(|c| c.name.starts_with(name))).collect();
    assert!(never.is_empty(), "taken nowhere: {never:?}");
    let sources: Vec<_> = all
        .iter()
        .enumerate()
        .map(|(k, c)| source(&c.after, k).unwrap_or_else(|e| panic!("{}: {e}", c.name)))
        .collect();
    let compiled =
        batch::compile(&sources, &scratch_dir(), &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut stopped = 0;
    for (case, compiled) in all.iter().zip_eq(&compiled) {
        for inputs in &case.inputs {
            let sizes: Vec<(&str, i64)> = inputs.sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
            let found = call(compiled, 2, &inputs.params, &sizes).map(|out| out.params);
            stopped += usize::from(found.is_err());
            compare(case, inputs, found);
        }
    }
    assert!(stopped >= 3, "only {stopped} runs are stopped");
}

/// Checks some of them under sanitizers, where no integer of C may overflow.
#[test]
fn loops_at_the_ends_of_i64_have_no_undefined_behaviour() {
    let bounds_are_given = |c: &&Case| c.inputs.len() > 1 && c.name.ends_with("step 1");
    let all = loops();
    let some: Vec<(&Case, &Inputs)> = all
        .iter()
        .filter(bounds_are_given)
        .flat_map(|c| c.inputs.iter().map(move |i| (c, i)))
        .enumerate()
        .filter(|(k, _)| k % 5 == 3)
        .map(|(_, case)| case)
        .collect();
    assert!(some.len() >= 8, "only {} runs", some.len());
    let sources: Vec<_> =
        some.iter().enumerate().map(|(k, (c, _))| source(&c.after, k).unwrap_or_else(|e| panic!("{e}"))).collect();
    let calls: Vec<driver::Call<'_>> = some
        .iter()
        .zip_eq(&sources)
        .map(|((_, inputs), source)| driver::Call { source, params: &inputs.params, sizes: &[] })
        .collect();
    for ((case, inputs), outcome) in some.iter().zip_eq(driver::run(&calls, &scratch_dir())) {
        match outcome {
            driver::Outcome::Returned(0, written) => {
                let bounds = inputs.params[1..].iter().cloned();
                compare(case, inputs, Ok(written.into_iter().chain(bounds).collect()));
            }
            other => panic!("{} at {:?}: {other:?}", case.name, inputs.params),
        }
    }
}
