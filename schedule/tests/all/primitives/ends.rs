//! Loops, factors and shifts near the ends of i64: every primitive computes the same, or is refused.

use crate::primitives::common::{call, entry, list};
use std::collections::BTreeMap;
use taffeta_ast::build::range;
use taffeta_ast::interp::{self, Inputs};
use taffeta_ast::{DType, Expr, Literal, Stmt, Symbol, Value as Array, print};
use taffeta_schedule::{Arg, Handle, IndexMap, Refusal, Schedule, Value};

const MIN: i64 = i64::MIN;
const MAX: i64 = i64::MAX;

type Step = (&'static str, fn(&mut Schedule) -> Result<(), Refusal>);

/// Formats any i64 as an expression of the language.
fn number(v: i64) -> String {
    if v == MIN { "(-9223372036854775807 - 1)".into() } else { format!("({v})") }
}

/// Returns loops that run a few times, or not at all, near the ends of i64 and elsewhere.
fn ranges() -> Vec<[i64; 3]> {
    let half = 1 << 62;
    vec![
        [0, 5, 1],
        [0, MIN, 1],
        [1, MIN, 1],
        [half, -half - 1, 1],
        [MAX, MIN, 1],
        [MIN, MIN + 5, 1],
        [MIN + 1, MIN + 6, 1],
        [MIN, MIN, 1],
        [MAX - 5, MAX, 1],
        [MAX, MAX, 1],
        [half - 2, half + 3, 1],
        [-half - 3, -half + 2, 1],
        [MIN + 4, MIN, -1],
        [MAX, MAX - 5, -1],
        [MIN, MAX, -1],
        [-1, MAX, -1],
        [MIN, MIN + 9, 4],
        [MAX - 9, MAX, 4],
        [MIN, MAX, half],
        [-half, MAX, half + 1],
        [MIN, MAX, MAX],
        [MAX, MIN, -half],
        [MAX, MIN, -MAX],
        [MIN, MAX, -3],
    ]
}

fn inputs(bounds: &[i64]) -> Inputs {
    let scalar = |v: &i64| {
        let mut a = Array::zeros(DType::I64, Vec::new()).expect("small");
        a.data_mut().set(0, Literal::Int(i128::from(*v)));
        a
    };
    let mut params = vec![Array::zeros(DType::I64, vec![8]).expect("small")];
    params.extend(bounds.iter().map(scalar));
    Inputs { sizes: BTreeMap::new(), params }
}

/// Returns whether the steps are accepted, after checking that the program computes the same.
fn same(text: &str, bounds: &[i64], (name, steps): &Step) -> bool {
    let (func, program) = entry(text);
    let mut s = Schedule::new(func.clone());
    if let Err(r) = steps(&mut s) {
        assert_ne!(r.code, "schedule::argument", "{name}: {}", r.diagnostic(name, taffeta_ast::Span::NONE));
        return false;
    }
    let inputs = inputs(bounds);
    let (a, b) = (interp::run(&func, &inputs), interp::run(s.func(), &inputs));
    let shown = || format!("{name} with {bounds:?}:\n{}{}", print::func(&func), print::func(s.func()));
    drop(program);
    match (a, b) {
        (Ok(a), Ok(b)) => assert_eq!((&a.params, &a.results), (&b.params, &b.results), "{}", shown()),
        (a, b) => panic!("{a:?}\n{b:?}\n{}", shown()),
    }
    true
}

fn lambda(rows: &[Vec<i64>]) -> Arg {
    Arg { name: None, value: Value::Map(IndexMap::affine(rows)), span: taffeta_ast::Span::NONE }
}

fn stmt(of: &Value) -> Value {
    match of {
        Value::Handle(Handle::Stmt(id)) => (*id).into(),
        other => other.clone(),
    }
}

fn split(s: &mut Schedule, factor: i64) -> Result<(), Refusal> {
    call(s, "split", &[Arg::from("i"), Arg::from(factor)]).map(drop)
}

fn parts(s: &mut Schedule, parts: i64) -> Result<(), Refusal> {
    call(s, "split", &[Arg::from("i"), Arg::named("parts", parts)]).map(drop)
}

fn shifted(s: &mut Schedule, factor: i64, shift: i64) -> Result<(), Refusal> {
    call(s, "split", &[Arg::from("i"), Arg::from(factor), Arg::named("shift", shift)]).map(drop)
}

fn permute(s: &mut Schedule, row: [i64; 2]) -> Result<(), Refusal> {
    call(s, "permute", &[Arg::from(list(&["i"])), lambda(&[row.to_vec()])]).map(drop)
}

const STEPS: &[Step] = &[
    ("split by 2", |s| split(s, 2)),
    ("split by 65536", |s| split(s, 65536)),
    ("split by 2^40", |s| split(s, 1 << 40)),
    ("split by 2^62", |s| split(s, 1 << 62)),
    ("split by 2^63 - 4", |s| split(s, 9223372036854775804)),
    ("split by 2^63 - 1", |s| split(s, MAX)),
    ("2 parts", |s| parts(s, 2)),
    ("2^40 parts", |s| parts(s, 1 << 40)),
    ("2^62 parts", |s| parts(s, 1 << 62)),
    ("2^63 - 1 parts", |s| parts(s, MAX)),
    ("shift by 1", |s| shifted(s, 2, 1)),
    ("shift by 2^40", |s| shifted(s, 2, 1 << 40)),
    ("shift by 2^62", |s| shifted(s, 1 << 61, 1 << 62)),
    ("shift by 2^63 - 4", |s| shifted(s, 3, 9223372036854775804)),
    ("parts, shift by 2^40", |s| {
        call(s, "split", &[Arg::from("i"), Arg::named("parts", 1i64 << 41), Arg::named("shift", 1i64 << 40)]).map(drop)
    }),
    ("reverse", |s| call(s, "reverse", &["i".into()]).map(drop)),
    ("reverse twice", |s| {
        let l = call(s, "reverse", &["i".into()])?;
        call(s, "reverse", &[Arg::from(l[0].clone())]).map(drop)
    }),
    ("reverse and split", |s| {
        let l = call(s, "reverse", &["i".into()])?;
        call(s, "split", &[Arg::from(l[0].clone()), Arg::from(4i64)]).map(drop)
    }),
    ("split and reverse", |s| {
        let l = call(s, "split", &["i".into(), Arg::from(4i64)])?;
        for l in &l {
            call(s, "reverse", &[Arg::from(stmt(l))])?;
        }
        Ok(())
    }),
    ("split and merge", |s| {
        let l = call(s, "split", &["i".into(), Arg::from(3i64)])?;
        call(s, "merge", &[Arg::from(stmt(&l[0])), Arg::from(stmt(&l[1]))]).map(drop)
    }),
    ("negate", |s| permute(s, [-1, 0])),
    ("permute by 1", |s| permute(s, [1, 1])),
    ("permute by 2^62", |s| permute(s, [1, 1 << 62])),
    ("permute by -2^62", |s| permute(s, [-1, -1 << 62])),
    ("permute by 2^63 - 4", |s| permute(s, [1, 9223372036854775804])),
    ("unroll", |s| call(s, "unroll", &["i".into()]).map(drop)),
    ("unroll by 3", |s| call(s, "unroll", &["i".into(), Arg::named("factor", 3i64)]).map(drop)),
    ("blend", |s| call(s, "blend", &["i".into()]).map(drop)),
    ("tile", |s| call(s, "tile", &[Arg::from(list(&["i"])), Arg::from(Value::List(vec![4i64.into()]))]).map(drop)),
    ("tile by 2^62", |s| {
        call(s, "tile", &[Arg::from(list(&["i"])), Arg::from(Value::List(vec![(1i64 << 62).into()]))]).map(drop)
    }),
    ("polyhedral", |s| call(s, "polyhedral", &["i".into()]).map(drop)),
    ("separate_tail", |s| {
        let l = call(s, "split", &["i".into(), Arg::from(4i64)])?;
        call(s, "separate_tail", &[Arg::from(stmt(&l[0]))]).map(drop)
    }),
    ("cache", |s| call(s, "cache", &["i".into(), "y".into()]).map(drop)),
    ("cache_reduction", |s| call(s, "cache_reduction", &["i".into(), "y".into()]).map(drop)),
    ("parallelize", |s| call(s, "parallelize", &["i".into()]).map(drop)),
];

#[test]
fn loops_at_the_ends_of_i64() {
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    for [begin, end, step] in ranges() {
        let body = "y[i % 8] += i\n        y[3] += 1";
        let constant = format!(
            "def f(y: inout[i64[8]]):\n    for i in range({}, {}, {}):\n        {body}\n",
            number(begin),
            number(end),
            number(step)
        );
        let given = format!(
            "def f(y: inout[i64[8]], a: i64, b: i64):\n    for i in range(a, b, {}):\n        {body}\n",
            number(step)
        );
        for step in STEPS {
            *taken.entry(step.0).or_default() += usize::from(same(&constant, &[], step));
            *taken.entry(step.0).or_default() += usize::from(same(&given, &[begin, end], step));
        }
    }
    // A step that is refused everywhere is not tested.
    let never: Vec<_> = taken.iter().filter(|(_, n)| **n == 0).collect();
    assert!(never.is_empty(), "{never:?}");
}

/// Checks the fusion of two loops of 4 iterations each (or fewer), wherever they begin.
#[test]
fn loops_that_are_fused_at_the_ends_of_i64() {
    let begins = [MIN, MIN + 1, -(1 << 62), 0, 1 << 62, MAX - 4];
    let mut taken = 0;
    for b in begins {
        for c in begins {
            for (n, m) in [(4, 4), (4, 2), (0, 3), (3, 0)] {
                let text = format!(
                    "def f(y: inout[i64[8]]):\n    for i in range({}, {}):\n        y[i % 8] += i\n    for j in \
                     range({}, {}):\n        y[j % 8] += j * 3\n",
                    number(b),
                    number(b + n),
                    number(c),
                    number(c + m)
                );
                let given = "def f(y: inout[i64[8]], a: i64, b: i64, c: i64, d: i64):\n    for i in range(a, b):\n    \
                             \x20   y[i % 8] += i\n    for j in range(c, d):\n        y[j % 8] += j * 3\n";
                let same_bounds = given.replace("range(c, d)", "range(a, b)");
                let steps: &[Step] = &[
                    ("fuse", |s| call(s, "fuse", &["i".into(), "j".into()]).map(drop)),
                    ("later", |s| call(s, "fuse", &["i".into(), "j".into(), Arg::named("shift", 1i64)]).map(drop)),
                    ("earlier", |s| call(s, "fuse", &["i".into(), "j".into(), Arg::named("shift", -2i64)]).map(drop)),
                ];
                for step in steps {
                    taken += usize::from(same(&text, &[], step));
                    taken += usize::from(same(given, &[b, b + n, c, c + m], step));
                    taken += usize::from(same(&same_bounds, &[b, b + n, c, c + m], step));
                }
            }
        }
    }
    assert!(taken > 100, "{taken}");
}

/// Checks constant trip counts of ranges that are as long as i64 allows.
#[test]
fn constant_trip_counts_do_not_wrap() {
    let (func, _) = entry("def f(y: inout[i64[1]]):\n    y[0] = 1\n");
    let count = |begin: i64, end: i64, step: i64| {
        let [begin, end, step] = [begin, end, step].map(Expr::int);
        let l = range(&Symbol::new("i"), [&begin, &end, &step], Stmt::nop());
        Schedule::new(func.with_body(l)).length("i").expect("a loop")
    };
    assert_eq!(count(0, MAX, 2), Some(MAX / 2 + 1));
    assert_eq!(count(MIN, MAX, 1), None);
    assert_eq!(count(10, 0, -3), Some(4));
    assert_eq!(count(0, 0, 5), Some(0));
}

/// Checks factors and shifts that are larger than the loop to split.
#[test]
fn giant_factors_of_ordinary_loops() {
    let text = "def f(y: inout[i64[n]]):\n    for i in range(n):\n        y[i] = i + 1\n";
    let (func, _) = entry(text);
    for (name, steps) in &STEPS[..15] {
        let mut s = Schedule::new(func.clone());
        if let Err(r) = steps(&mut s) {
            assert_eq!(r.code, "schedule::illegal", "{name}: {}", r.message);
            assert!(name.starts_with("shift"), "{name}: {}", r.message);
            continue;
        }
        for n in [0, 1, 5, 8] {
            let params = vec![Array::zeros(DType::I64, vec![n]).expect("small")];
            let inputs = Inputs { sizes: BTreeMap::from([("n".into(), n as i64)]), params };
            let [a, b] = [&func, s.func()].map(|f| interp::run(f, &inputs).expect("runs").params);
            assert_eq!(a, b, "{name}: {}", print::func(s.func()));
        }
    }
}

/// Checks sizes whose product does not fit in 64 bits.
#[test]
fn merged_loops_whose_product_wraps() {
    let text = "def f(x: f32[n, 0], z: f32[m, 0], y: inout[f32[4]]):\n    for i in range(n):\n        for j in range(m):\n  \
                \x20         assert i + j > 0\n            y[0] += 1\n";
    let (func, _) = entry(text);
    let mut s = Schedule::new(func.clone());
    call(&mut s, "merge", &["i".into(), "j".into()]).expect("is taken");
    let params =
        [vec![1 << 40, 0], vec![1 << 40, 0], vec![4]].map(|s| Array::zeros(DType::F32, s).expect("small")).to_vec();
    let sizes = BTreeMap::from([("n".into(), 1i64 << 40), ("m".into(), 1i64 << 40)]);
    let inputs = Inputs { sizes, params };
    for f in [&func, s.func()] {
        assert!(interp::run(f, &inputs).is_err(), "the first iteration stops\n{}", print::func(f));
    }
}
