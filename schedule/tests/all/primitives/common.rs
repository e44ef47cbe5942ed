//! Harness of all tests: a program, steps, and the expected text.

use expect_test::Expect;
use std::collections::BTreeMap;
use taffeta_ast::interp::{self, Inputs, Outputs};
use taffeta_ast::{DType, Expr, ExprKind, Func, Literal, SourceMap, Value as Array, print};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
use taffeta_schedule::{Arg, Refusal, Schedule, Value};
use testkit::confirm::{self, Seen};

/// Returns the first entry of a program, and the program for diagnostics.
pub fn entry(text: &str) -> (Func, Program) {
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    let name = program.entries()[0].name.clone();
    let func = program.elaborate(&name, &BTreeMap::new(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
    (func, program)
}

/// Returns the entry of a program with this name.
pub fn entry_named(text: &str, name: &str) -> Func {
    let program = Program::load(Source::inline("test.ft", text), &NoLoader);
    program.elaborate(name, &BTreeMap::new(), &NoHooks).unwrap_or_else(|d| panic!("{d}"))
}

/// Builds the arguments of a call: `args!["i", 32]`, `args!["i"; parts = 4]`.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(; $($name:ident = $named:expr),*)?) => {
        &[$(taffeta_schedule::Arg::from($value),)* $($(taffeta_schedule::Arg::named(stringify!($name), $named),)*)?][..]
    };
}

/// Returns a list of selectors.
pub fn list(names: &[&str]) -> Value {
    Value::List(names.iter().map(|n| Value::from(*n)).collect())
}

/// Returns the elements of a list of handles.
pub fn handles(v: &Value) -> Vec<Value> {
    match v {
        Value::List(v) => v.clone(),
        one => vec![one.clone()],
    }
}

/// Checks the program after the steps, and that it computes the same as before.
pub fn check(text: &str, steps: impl FnOnce(&mut Schedule) -> Result<(), Refusal>, expected: Expect) {
    let (func, program) = entry(text);
    let mut s = Schedule::new(func.clone());
    if let Err(r) = steps(&mut s) {
        panic!("refused:\n{}", show(&r, program.sources()));
    }
    expected.assert_eq(&body(s.func()));
    same(&func, s.func());
    replays(&func, &s);
}

/// Checks the refusal of the last step, which leaves the program unchanged. If it names two instances, a run must show
/// them.
pub fn refused(text: &str, steps: impl FnOnce(&mut Schedule) -> Result<(), Refusal>, expected: Expect) -> Refusal {
    let (func, program) = entry(text);
    let mut s = Schedule::new(func.clone());
    let Err(r) = steps(&mut s) else { panic!("was taken:\n{}", body(s.func())) };
    expected.assert_eq(&show(&r, program.sources()));
    same(&func, s.func());
    shown(s.func(), &r);
    r
}

/// Checks that the two instances named by a refusal occur when the program runs at the named sizes.
pub fn shown(func: &Func, r: &Refusal) {
    let named = |sizes: &[i64]| func.sizes.iter().zip(sizes).map(|(s, v)| (s.name().to_string(), *v)).collect();
    let seen = confirm::seen(func, r, &|sizes| inputs(func, &named(sizes), 1));
    if let Some(seen) = seen {
        println!("the witness is {}", seen.word());
        assert!(!matches!(seen, Seen::Wrong(_)), "{}: {seen:?}\n{}", r.message, print::func(func));
    }
}

/// Returns the text of a program without its first line, moved to the margin.
pub fn body(func: &Func) -> String {
    let text = print::func(func);
    text.lines().skip(1).map(|l| l.strip_prefix("    ").unwrap_or(l).to_string() + "\n").collect()
}

/// Formats a refusal as lines of text: labels with the source that they point at.
pub fn show(r: &Refusal, sources: &SourceMap) -> String {
    let mut out = format!("{} ({}): {}\n", r.code, r.condition, r.message);
    for (span, text) in &r.labels {
        let at = sources.get(span.file).map_or("", |f| &f.text[span.start as usize..span.end as usize]);
        out += &format!("  `{}` {text}\n", at.lines().next().unwrap_or_default());
    }
    for n in &r.notes {
        out += &format!("  note: {n}\n");
    }
    if let Some(h) = &r.help {
        out += &format!("  help: {h}\n");
    }
    out
}

/// Checks that both programs compute the same, at several sizes.
pub fn same(before: &Func, after: &Func) {
    for (seed, size) in [0i64, 1, 2, 5, 8, 13].into_iter().enumerate() {
        let sizes: BTreeMap<String, i64> = before
            .sizes
            .iter()
            .enumerate()
            .map(|(k, s)| (s.name().to_string(), size + (k as i64 % 2) * (size.min(1))))
            .collect();
        let inputs = inputs(before, &sizes, seed as u64);
        let (a, b) = (interp::run(before, &inputs), interp::run(after, &inputs));
        match (a, b) {
            (Ok(a), Ok(b)) => assert!(close(&a, &b), "at {sizes:?}:\n{a:?}\n{b:?}\n{}", print::func(after)),
            // Steps may change which error stops a program.
            (Err(_), Err(_)) => {}
            (a, b) => panic!("at {sizes:?}: {a:?}\n{b:?}\n{}", print::func(after)),
        }
    }
}

/// Checks that the recorded steps, saved and replayed, give the same program.
fn replays(func: &Func, s: &Schedule) {
    let json = s.trace().to_json();
    let trace = taffeta_schedule::Trace::from_json(&json).expect("reads what it wrote");
    let again = trace.replay(func.clone()).unwrap_or_else(|(k, r)| panic!("step {k} is refused: {r:?}\n{json}"));
    assert_eq!(body(again.func()), body(s.func()), "{json}");
}

/// Returns pseudo-random inputs; integers are small and not negative, so that they can be indices.
pub fn inputs(func: &Func, sizes: &BTreeMap<String, i64>, seed: u64) -> Inputs {
    let value = |e: &Expr| {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(s) => sizes.get(s.name()).map_or(e.clone(), |v| Expr::int(*v)),
            _ => e,
        })
        .as_int()
        .expect("a shape of sizes")
    };
    let least = sizes.values().copied().filter(|v| *v > 0).min().unwrap_or(1) as u64;
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let params = func
        .params
        .iter()
        .map(|p| {
            let shape: Vec<usize> = p.tensor.shape.iter().map(|e| value(e).max(0) as usize).collect();
            let mut v = Array::zeros(p.tensor.dtype, shape).expect("small");
            for k in 0..v.data().len() {
                let r = next();
                let x = match p.tensor.dtype {
                    DType::Bool => Literal::Bool(r % 2 == 0),
                    t if t.is_int() => Literal::Int(i128::from(r % least)),
                    _ => Literal::Float((r % 2000) as f64 / 500.0 - 2.0),
                };
                v.data_mut().set(k, x);
            }
            v
        })
        .collect();
    Inputs { sizes: sizes.clone(), params }
}

fn close(a: &Outputs, b: &Outputs) -> bool {
    a.unwritten == b.unwritten
        && (a.params.len(), a.results.len()) == (b.params.len(), b.results.len())
        && a.params.iter().chain(&a.results).zip(b.params.iter().chain(&b.results)).all(|(x, y)| near(x, y))
}

fn near(x: &Array, y: &Array) -> bool {
    let tolerance = if x.dtype() == DType::F64 { 1e-10 } else { 1e-4 };
    x.shape() == y.shape()
        && (0..x.data().len()).all(|k| match (x.data().get_int(k), y.data().get_int(k)) {
            (Some(a), Some(b)) => a == b,
            _ => {
                let (a, b) = (x.data().get_f64(k), y.data().get_f64(k));
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
            }
        })
}

/// Calls a primitive, and returns the handles it makes.
pub fn call(s: &mut Schedule, method: &str, args: &[Arg]) -> Result<Vec<Value>, Refusal> {
    s.call(method, args).map(|v| handles(&v))
}

/// Checks an entry of one of the repository's examples after the steps, and that it computes the same as before with
/// these sizes.
pub fn example(
    file: &str,
    name: &str,
    sizes: &[(&str, i64)],
    steps: impl FnOnce(&mut Schedule) -> Result<(), Refusal>,
    expected: Expect,
) {
    let path = format!("{}/../examples/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("an example");
    let program = Program::load(Source::inline(file, text), &Libop);
    let func = program.elaborate(name, &BTreeMap::new(), &NoHooks).unwrap_or_else(|d| panic!("{d}"));
    let mut s = Schedule::new(func.clone());
    if let Err(r) = steps(&mut s) {
        panic!("refused:\n{}", show(&r, program.sources()));
    }
    expected.assert_eq(&body(s.func()));
    let sizes: BTreeMap<String, i64> = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let inputs = inputs(&func, &sizes, 7);
    let run = |f: &Func| interp::run(f, &inputs).expect("runs");
    assert!(close(&run(&func), &run(s.func())), "{}", print::func(s.func()));
    replays(&func, &s);
}

/// Loader of the library's operators, and of no other files.
pub struct Libop;

impl taffeta_frontend::Loader for Libop {
    fn load(&self, module: &str, _: Option<&std::path::Path>) -> Result<Source, String> {
        Err(format!("there is no module `{module}`"))
    }

    fn prelude(&self, name: &str) -> Option<Source> {
        taffeta_libop::source(name).map(|(file, text)| Source::inline(file, text))
    }

    fn prelude_names(&self) -> Vec<String> {
        taffeta_libop::names().map(str::to_string).collect()
    }
}
