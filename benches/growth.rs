//! Growth of compile time with the program: `cargo bench --bench growth` (part of `make bench`).
//!
//! Programs of several shapes are made with 100, 200, 400 and 800 statements, and every stage of the compiler but the C
//! compiler is timed on each. A stage that takes time proportional to `n^e` has the exponent `e`: the slope of the
//! least-squares line through the three largest sizes, in logarithms. A row is flagged if its exponent is above
//! [`STEEP`] and its time is not negligible. Other load on the machine only ever adds time, so the shortest of many
//! runs counts, the sizes take turns, and a row that looks steep is measured again before it is flagged. The table goes
//! to the terminal and, as JSON, to `target/bench/growth.json`.
//!
//! `GROWTH_ONLY=deps,grad cargo bench --bench growth` measures the rows whose shape or stage has one of these in its
//! name, `GROWTH_ONLY=temporaries/grad` that stage of that shape. Times are processor time, of all threads: other
//! processes on the machine hardly change them.

#[path = "growth/shapes.rs"]
mod shapes;

use cpu_time::ProcessTime;
use serde_json::{Value as Json, json};
use shapes::{SHAPES, Shape};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;
use taffeta::{Gradient, Options, Program, Timings, pipeline};
use taffeta_analysis::pass;
use taffeta_analysis::query::depend::Dependences;
use taffeta_ast::interp::Inputs;
use taffeta_ast::span::FileId;
use taffeta_ast::{Func, Value, interp};

/// Numbers of statements (or loops, functions, steps: the repeated part of the shape).
const SIZES: [usize; 4] = [100, 200, 400, 800];
/// Maximum time of one stage for 500 statements.
const BAR_S: f64 = 1.0;
/// Approximate time for the repetitions of a stage in one turn, and their minimum number.
const REPEAT_S: f64 = 0.1;
const REPEAT: usize = 3;
/// Turns of every size, and their maximum number while the row looks steep.
const TURNS: usize = 2;
const MAX_TURNS: usize = 6;
/// Time of a size above which larger ones are not tried.
const PATIENCE_S: f64 = 10.0;
/// Exponent above which a row is flagged: 1 is linear, and `n log n` and caches come to little more.
const STEEP: f64 = 1.3;
/// Time at the largest size below which a stage shows nothing about growth.
const NEGLIGIBLE_S: f64 = 0.005;

/// Stage to time: a name, and a function that prepares a program and returns the work to repeat.
type Stage = (&'static str, for<'a> fn(&'a Case<'a>) -> Option<Work<'a>>);
type Work<'a> = Box<dyn FnMut() + 'a>;

/// Program of one shape and size, with the outcomes of earlier stages.
struct Case<'a> {
    shape: &'a Shape,
    text: &'a str,
    program: &'a Program,
    func: &'a Func,
}

const STAGES: [Stage; 18] = [
    ("parse", |c| {
        Some(Box::new(|| {
            black_box(taffeta_frontend::parse::parse(c.text, FileId(0)));
        }))
    }),
    ("format", |c| {
        Some(Box::new(|| {
            assert!(taffeta_frontend::format::format(c.text, FileId(0)).is_ok(), "it is formatted");
        }))
    }),
    ("elaborate", |c| {
        Some(Box::new(|| {
            black_box(logical(c.program, &Options::default()));
        }))
    }),
    ("check", |c| Some(Box::new(|| assert!(c.program.check().is_empty(), "nothing is wrong")))),
    ("deps", |c| {
        // The queries of the command without its text: that would take another process, whose time is not counted here.
        Some(Box::new(|| {
            let dependences = Dependences::new(c.func);
            let direct = dependences.direct();
            black_box((dependences.distances(&direct.dependences), dependences.carried_reductions()));
        }))
    }),
    ("schedule", |c| {
        c.shape.scheduled.then(|| -> Work<'_> {
            Box::new(|| {
                let options = Options::default().schedule("steps");
                black_box(logical(c.program, &options));
            })
        })
    }),
    ("rules", |c| c.shape.ruled.then(|| -> Work<'_> { Box::new(|| ruled(c.func)) })),
    ("rules of grad", |c| {
        let made = c.shape.ruled.then(|| gradient(c.func));
        made.map(|g| -> Work<'_> { Box::new(move || ruled(&g)) })
    }),
    ("grad", |c| Some(Box::new(|| drop(black_box(gradient(c.func)))))),
    ("simplify", |c| Some(Box::new(|| drop(black_box(pass::simplify::run(c.func)))))),
    ("hoist", |c| Some(Box::new(|| drop(black_box(pass::hoist::run(c.func)))))),
    ("dead code", |c| Some(Box::new(|| drop(black_box(pass::dead::run(c.func)))))),
    ("validate", |c| Some(Box::new(|| taffeta_ast::validate::logical(c.func).expect("a valid program")))),
    ("structured", |c| {
        let wanted = c.func.is_structured();
        wanted.then(|| -> Work<'_> { Box::new(|| drop(black_box(structured(c.func)))) })
    }),
    ("structured grad", |c| {
        let made = c.func.is_structured().then(|| gradient(c.func));
        made.map(|g| -> Work<'_> { Box::new(move || drop(black_box(structured(&g)))) })
    }),
    ("lower", |c| {
        Some(Box::new(|| {
            black_box(lowered(c.func));
        }))
    }),
    ("emit C", |c| {
        let lowered = lowered(c.func);
        Some(Box::new(move || {
            black_box(pipeline::c(&lowered, c.program.sources(), &mut Timings::default()));
        }))
    }),
    ("interpreter", |c| {
        // Sizes of 1, at which hardly anything runs: the rest is preparation.
        let inputs = small_inputs(c.func);
        Some(Box::new(move || {
            let ran = interp::run(c.func, &inputs);
            assert!(ran.is_ok(), "{:?}", ran.err());
        }))
    }),
];

fn logical(program: &Program, options: &Options) -> Func {
    program.logical("f", options).unwrap_or_else(|e| panic!("{e}"))
}

fn lowered(func: &Func) -> taffeta_codegen::Lowered {
    pipeline::lowered(func, &Options::default(), &mut Timings::default()).unwrap_or_else(|d| panic!("{d:?}"))
}

fn gradient(func: &Func) -> Func {
    let of = Gradient::default().wrt(["x"]);
    let made = pipeline::gradient(func, &of, &BTreeMap::new(), &mut Timings::default());
    made.unwrap_or_else(|d| panic!("{d:?}")).0
}

fn ruled(func: &Func) {
    let chosen = pipeline::automatic(func.clone(), &Options::default().schedule("auto"), &mut Timings::default());
    black_box(chosen.unwrap_or_else(|d| panic!("{d:?}")));
}

fn structured(func: &Func) -> taffeta::structured::Structured {
    pipeline::structured(func, &Options::default(), &mut Timings::default()).unwrap_or_else(|d| panic!("{d:?}"))
}

/// Returns arrays with one element for every parameter.
fn small_inputs(func: &Func) -> Inputs {
    let sizes = func.sizes.iter().map(|s| (s.name().to_string(), 1)).collect();
    let one = |t: &taffeta_ast::Tensor| Value::zeros(t.dtype, vec![1; t.shape.len()]).expect("one element");
    Inputs { sizes, params: func.params.iter().map(|p| one(&p.tensor)).collect() }
}

fn main() {
    // Stack as deep as that of the compiler's own threads.
    let work = std::thread::Builder::new().stack_size(512 << 20).spawn(measure_all).expect("a thread");
    let rows = work.join().expect("the measurements");
    let steep: Vec<&Json> = rows.iter().filter(|r| r["flag"] != "").collect();
    println!("\n{} of {} rows are flagged", steep.len(), rows.len());
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    std::fs::create_dir_all(&out).expect("target/bench can be made");
    let path = out.join("growth.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&rows).expect("JSON")).expect("the results are written");
    println!("written to {}", path.display());
}

fn measure_all() -> Vec<Json> {
    let only = std::env::var("GROWTH_ONLY").unwrap_or_default();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let columns: Vec<String> = SIZES.iter().map(|n| format!("{n:>8}")).collect();
    println!("{:<22}{:<16}{}   ms; exponent between sizes", "shape", "stage", columns.concat());
    let mut rows = Vec::new();
    for shape in SHAPES {
        let named = |stage: &str| {
            only.split(',').any(|o| match o.split_once('/') {
                Some((s, t)) => shape.name.contains(s) && stage.contains(t),
                None => stage.contains(o) || shape.name.contains(o),
            })
        };
        let wanted: Vec<bool> = STAGES.iter().map(|s| named(s.0)).collect();
        if !wanted.contains(&true) {
            continue;
        }
        let programs = SIZES.map(|n| {
            let text = (shape.text)(n);
            let path = folder.path().join(format!("{n}.ft"));
            std::fs::write(&path, &text).expect("the program is written");
            let program = Program::load(&path).unwrap_or_else(|e| panic!("{}: {e}", shape.name));
            let func = logical(&program, &Options::default());
            (text, program, func)
        });
        let cases = programs.each_ref().map(|(text, program, func)| Case { shape, text, program, func });
        for ((name, stage), _) in STAGES.iter().zip(wanted).filter(|(_, wanted)| *wanted) {
            let works: Vec<Work<'_>> = cases.iter().map_while(stage).collect();
            if works.is_empty() {
                continue;
            }
            let row = row(shape.name, name, &measured(works));
            println!("{}", line(&row));
            rows.push(row);
        }
    }
    rows
}

/// Returns the shortest time of each size.
fn measured(mut works: Vec<Work<'_>>) -> Vec<Option<f64>> {
    let mut best: Vec<Option<f64>> = vec![None; works.len()];
    for turn in 0..MAX_TURNS {
        if turn >= TURNS && !is_steep(&best) {
            break;
        }
        let mut patient = true;
        for (work, best) in works.iter_mut().zip(&mut best) {
            if patient {
                let now = shortest(work);
                *best = Some(best.map_or(now, |b| b.min(now)));
                patient = now < PATIENCE_S;
            }
        }
    }
    best
}

/// Returns the shortest time of some runs.
fn shortest(work: &mut Work<'_>) -> f64 {
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    for run in 1.. {
        let start = ProcessTime::now();
        work();
        let took = start.elapsed().as_secs_f64();
        best = best.min(took);
        let enough = run >= REPEAT && begin.elapsed().as_secs_f64() >= REPEAT_S;
        if enough || took >= PATIENCE_S {
            break;
        }
    }
    best
}

/// Returns the exponents between sizes, and that of the least-squares line through the three largest: as sizes double,
/// it is the mean of the last two.
fn exponents(seconds: &[Option<f64>]) -> (Vec<f64>, f64) {
    let measured: Vec<f64> = seconds.iter().copied().flatten().collect();
    let steps: Vec<f64> = measured.windows(2).map(|w| (w[1] / w[0]).log2()).collect();
    let last = &steps[steps.len().saturating_sub(2)..];
    let exponent = last.iter().sum::<f64>() / last.len() as f64;
    (steps, exponent)
}

fn is_steep(seconds: &[Option<f64>]) -> bool {
    let (_, exponent) = exponents(seconds);
    let most = seconds.iter().copied().flatten().last().unwrap_or_default();
    most > NEGLIGIBLE_S && (exponent > STEEP || exponent.is_nan())
}

fn row(shape: &str, stage: &str, seconds: &[Option<f64>]) -> Json {
    let measured: Vec<f64> = seconds.iter().copied().flatten().collect();
    let (exponents, exponent) = exponents(seconds);
    let last = measured.last().copied().unwrap_or_default();
    // Interpolated between 400 and 800 by the exponent.
    let at_500 = match measured.as_slice() {
        [.., four, _] if measured.len() == SIZES.len() => four * (500.0f64 / 400.0).powf(exponent),
        _ => f64::INFINITY,
    };
    let mut flags = Vec::new();
    if is_steep(seconds) {
        flags.push("steep");
    }
    if last > NEGLIGIBLE_S && at_500 > BAR_S {
        flags.push("slow");
    }
    json!({
        "shape": shape, "stage": stage, "sizes": SIZES, "seconds": seconds, "exponents": exponents,
        "exponent": exponent, "seconds_at_500": at_500, "bar": BAR_S, "flag": flags.join(", "),
    })
}

fn line(row: &Json) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or("").to_string();
    let list = |key: &str| row[key].as_array().cloned().unwrap_or_default();
    let times: Vec<String> = list("seconds")
        .iter()
        .map(|s| s.as_f64().map_or(format!("{:>8}", "-"), |s| format!("{:>8.2}", s * 1e3)))
        .collect();
    let exponents: Vec<String> =
        list("exponents").iter().map(|e| format!("{:>6.2}", e.as_f64().unwrap_or(f64::NAN))).collect();
    format!("{:<22}{:<16}{}  {}  {}", text("shape"), text("stage"), times.concat(), exponents.concat(), text("flag"))
}
