//! `taffeta bench`: run time of an entry on fixed inputs, under several schedules in turn.

use super::args::ProgramArgs;
use super::output::{Failure, print, print_json};
use super::run::duration;
use super::{progress, session};
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};
use taffeta::ast::Value;
use taffeta::codegen::signature::Passing;
use taffeta::schedule::auto::time as nanoseconds;
use taffeta::{Function, Program, Ran, Signature};

/// Measure the run time of an entry
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Number of warm-up runs
    #[arg(long, value_name = "N", default_value_t = 3)]
    warmup: u32,
    /// Maximum number of measured runs
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Maximum seconds of measurement
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Floating-point operations of one run, for GFLOP/s
    #[arg(long, value_name = "N")]
    flops: Option<f64>,
}

const EXAMPLES: &str = "\
Three warm-up runs, then up to 200 runs or 2 seconds. GB/s refers to the compulsory traffic: every parameter and \
result counts once (twice if `inout`). GFLOP/s needs --flops, the operations of one run. With several --schedule \
options, runs are interleaved, and ratios are medians over pairs of neighbouring runs; estimates and rooflines come \
from the cost model.

Examples:
  taffeta bench mesh.ft diff --in adj=bunny.off:adjacency --in e=rand --size feats=64 --threads 2
  taffeta bench dot.ft --in a=rand --in b=rand --size n=1000000 --flops 2000000
  taffeta bench dot.ft --in a=rand --in b=rand --size n=1000000 --schedule auto --schedule none";

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let named: Vec<Option<&str>> = match args.program.of.schedules.as_slice() {
        [] => vec![None],
        all => all.iter().map(|s| Some(s.as_str())).collect(),
    };
    let mut contenders =
        named.into_iter().map(|schedule| Contender::open(args, schedule)).collect::<Result<Vec<_>, Failure>>()?;
    measure(args, &mut contenders)?;
    if args.program.json {
        return print_json(&document(args, &contenders));
    }
    match contenders.as_slice() {
        [one] => print(&one.text(args)),
        all => print(&comparison(args, all)),
    }
}

/// Program under one schedule, compiled, with its arguments.
struct Contender {
    /// Name of the schedule, if given.
    schedule: Option<String>,
    signature: Signature,
    sizes: Vec<i64>,
    function: Function,
    ran: Ran,
    /// Initial parameters, if the program writes any.
    originals: Vec<Value>,
    compile: Duration,
    /// Times of the measured runs, in order.
    times: Vec<Duration>,
}

impl Contender {
    fn open(args: &Args, schedule: Option<&str>) -> Result<Contender, Failure> {
        let mut program = args.program.clone();
        program.of.schedules = schedule.map(str::to_string).into_iter().collect();
        let progress = progress::Work::new("compiling");
        let mut session = session::open(&program)?;
        let signature = session.signature().clone();
        let inputs = progress.aside(|| session::read(&program.of, &mut session))?;
        let start = Instant::now();
        if session.must_measure() {
            progress.aside(|| progress::while_measuring(taffeta::measure));
        }
        let function = session::compile(&mut session, &program, &inputs.sizes)?;
        let compile = start.elapsed();
        drop(progress);
        let written = signature.params().any(|p| p.passing == Passing::InOut);
        let originals = if written { inputs.values.clone() } else { Vec::new() };
        let ran = function.run(inputs.values, &inputs.sizes, program.threads)?;
        let (schedule, sizes, times) = (schedule.map(str::to_string), inputs.sizes, Vec::new());
        Ok(Contender { schedule, signature, sizes, function, ran, originals, compile, times })
    }

    /// Runs the program once more.
    fn again(&mut self, threads: u32) -> Result<Duration, Failure> {
        if !self.originals.is_empty() {
            // Every run starts from the initial values: repeated on its own output, a diverging program would soon
            // overflow to infinity.
            self.ran.params.clone_from(&self.originals);
        }
        Ok(self.function.run_again(&mut self.ran, &self.sizes, threads)?.time)
    }

    /// Returns the fastest, the median and the slowest run.
    fn spread(&self) -> [Duration; 3] {
        let mut sorted = self.times.clone();
        sorted.sort();
        [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
    }

    /// Returns the minimum number of bytes that a run must move.
    fn moved(&self) -> f64 {
        let size = |v: &Value| (v.data().len() * v.dtype().size()) as f64;
        let params = self.ran.params.iter().zip(self.signature.params());
        params.map(|(v, p)| size(v) * if p.passing == Passing::InOut { 2.0 } else { 1.0 }).sum::<f64>()
            + self.ran.results.iter().map(size).sum::<f64>()
    }

    /// Returns an amount per second of the median run, in billions.
    fn rate(&self, amount: f64) -> f64 {
        amount / self.spread()[1].as_secs_f64() / 1e9
    }

    fn text(&self, args: &Args) -> String {
        let [fastest, median, slowest] = self.spread().map(duration);
        let (name, n) = (&self.signature.name, self.times.len());
        let mut out = format!("{name}: median {median}, min {fastest}, max {slowest} of {n} runs\n");
        out.push_str(&format!("  {:.2} GB/s of compulsory traffic", self.rate(self.moved())));
        if let Some(flops) = args.flops {
            out.push_str(&format!(", {:.2} GFLOP/s", self.rate(flops)));
        }
        out.push_str(&format!("; compiled in {}\n", duration(self.compile)));
        out
    }

    fn json(&self, args: &Args) -> Json {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        let [fastest, median, slowest] = self.spread().map(ms);
        json!({
            "calls": self.times.len(),
            "compile_ms": ms(self.compile),
            "median_ms": median,
            "min_ms": fastest,
            "max_ms": slowest,
            "bytes": self.moved(),
            "gb_per_s": self.rate(self.moved()),
            "gflop_per_s": args.flops.map(|f| self.rate(f)),
        })
    }

    /// Returns the cost model's estimate of the program and its roofline, in nanoseconds.
    fn estimate(&self, args: &Args) -> Result<(f64, f64), Failure> {
        let program = Program::load(&args.program.of.file)?;
        let mut options = session::run_options(&args.program, args.program.of.gradient())?;
        options = options.schedule(self.schedule.as_deref());
        let names = self.signature.sizes.iter().map(|s| s.name.clone());
        options.sizes.extend(names.zip(self.sizes.iter().copied()));
        let nests = program.execution_report(&self.signature.name, &options)?.schedule.nests();
        Ok((nests.iter().map(|n| n.estimate).sum(), nests.iter().map(|n| n.roof()).sum()))
    }
}

/// Runs all contenders in turn, reversing their order in every other turn.
fn measure(args: &Args, contenders: &mut [Contender]) -> Result<(), Failure> {
    let threads = args.program.threads;
    let progress = progress::calls(args.repeat);
    let start = Instant::now();
    // The run that opened each contender was the first warm-up.
    for k in 1..args.warmup.saturating_add(args.repeat) {
        let order: Vec<usize> = match k % 2 {
            0 => (0..contenders.len()).collect(),
            _ => (0..contenders.len()).rev().collect(),
        };
        for c in order {
            let time = contenders[c].again(threads)?;
            if k >= args.warmup {
                contenders[c].times.push(time);
            }
        }
        if k >= args.warmup {
            progress.inc(1);
            if start.elapsed().as_secs_f64() > args.seconds * contenders.len() as f64 {
                break;
            }
        }
    }
    progress.finish_and_clear();
    for c in contenders.iter_mut().filter(|c| c.times.is_empty()) {
        c.times.push(c.ran.usage.time);
    }
    Ok(())
}

/// Returns the speed-up of a contender over the first: the median of the ratios of neighbouring runs.
fn ratio(first: &Contender, other: &Contender) -> f64 {
    let pairs = first.times.iter().zip(&other.times);
    let mut ratios: Vec<f64> = pairs.map(|(a, b)| a.as_secs_f64() / b.as_secs_f64().max(1e-12)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// Renders several contenders in comparison with the first.
fn comparison(args: &Args, all: &[Contender]) -> String {
    let name = |c: &Contender| c.schedule.clone().unwrap_or_default();
    let width = all.iter().map(|c| name(c).chars().count()).max().unwrap_or(0).max("schedule".len());
    let mut out = format!("{}: {} runs of each, in turn\n", all[0].signature.name, all[0].times.len());
    out += &format!(
        "  {:<width$} {:>10} {:>10} {:>10} {:>7} {:>10} {:>10}\n",
        "schedule", "median", "min", "max", "ratio", "estimate", "roofline"
    );
    for c in all {
        let [fastest, median, slowest] = c.spread().map(duration);
        let [estimate, roof] = match c.estimate(args) {
            Ok((estimate, roof)) => [estimate, roof].map(nanoseconds),
            Err(_) => ["–", "–"].map(str::to_string),
        };
        let ratio = ratio(&all[0], c);
        let name = name(c);
        out += &format!(
            "  {name:<width$} {median:>10} {fastest:>10} {slowest:>10} {ratio:>7.2} {estimate:>10} {roof:>10}\n"
        );
    }
    out + &format!("  ratio: speed relative to `{}`, the median of {} pairs\n", name(&all[0]), all[0].times.len())
}

/// Returns the measurement as JSON: a flat document, with a list if there are several schedules.
fn document(args: &Args, all: &[Contender]) -> Json {
    let mut out = all[0].json(args);
    out["status"] = json!("ok");
    out["entry"] = json!(all[0].signature.name);
    out["diagnostics"] = json!([]);
    if all.len() > 1 {
        let one = |c: &Contender| {
            let mut row = c.json(args);
            row["schedule"] = json!(c.schedule);
            row["ratio"] = json!(ratio(&all[0], c));
            if let Ok((estimate, roof)) = c.estimate(args) {
                row["estimate_ns"] = json!(estimate);
                row["roofline_ns"] = json!(roof);
            }
            row
        };
        out["schedules"] = all.iter().map(one).collect();
    }
    out
}
