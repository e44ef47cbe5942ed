//! `taffeta bench`: how long an entry runs, on inputs that are made or read once.

use super::args::ProgramArgs;
use super::output::{Failure, print, print_json};
use super::run::duration;
use super::{progress, session};
use serde_json::json;
use std::time::{Duration, Instant};
use taffeta::ast::Value;
use taffeta::codegen::signature::Passing;

/// Measure how long an entry runs
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Number of runs before the measurement
    #[arg(long, value_name = "N", default_value_t = 3)]
    warmup: u32,
    /// Number of runs that are measured, at most
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Seconds after which the measurement ends
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Floating-point operations of one run, for GFLOP/s
    #[arg(long, value_name = "N")]
    flops: Option<f64>,
}

const EXAMPLES: &str = "\
Three warm-up runs, then up to 200 runs or 2 seconds. GB/s is that of the compulsory traffic: every parameter and \
result counts once (twice if `inout`). GFLOP/s needs --flops, the operations of one run.

Examples:
  taffeta bench mesh.ft diff --in adj=bunny.off:adjacency --in e=rand --size feats=64 --threads 2
  taffeta bench dot.ft --in a=rand --in b=rand --size n=1000000 --flops 2000000";

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let progress = progress::Work::new("compiling");
    let mut session = session::open(&args.program)?;
    let signature = session.signature().clone();
    let inputs = progress.aside(|| session::read(&args.program.of, &mut session))?;
    let start = Instant::now();
    if session.must_measure() {
        progress.aside(|| progress::while_measuring(taffeta::measure));
    }
    let function = session::compile(&mut session, &args.program, &inputs.sizes)?;
    let compile = start.elapsed();
    drop(progress);

    let written = signature.params().any(|p| p.passing == Passing::InOut);
    let originals = if written { inputs.values.clone() } else { Vec::new() };
    let threads = args.program.threads;
    let mut ran = function.run(inputs.values, &inputs.sizes, threads)?;
    let progress = progress::calls(args.repeat);
    let mut times: Vec<Duration> = Vec::new();
    let start = Instant::now();
    for k in 1..args.warmup.saturating_add(args.repeat) {
        if written {
            // Every call works on the same numbers: those of a program that runs away would become infinite and fast.
            ran.params.clone_from(&originals);
        }
        let usage = function.run_again(&mut ran, &inputs.sizes, threads)?;
        if k >= args.warmup {
            times.push(usage.time);
            progress.inc(1);
            if start.elapsed().as_secs_f64() > args.seconds {
                break;
            }
        }
    }
    progress.finish_and_clear();
    if times.is_empty() {
        times.push(ran.usage.time);
    }
    times.sort();

    let (fastest, median, slowest) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    let size = |v: &Value| (v.data().len() * v.dtype().size()) as f64;
    let params = ran.params.iter().zip(signature.params());
    let moved: f64 = params.map(|(v, p)| size(v) * if p.passing == Passing::InOut { 2.0 } else { 1.0 }).sum::<f64>()
        + ran.results.iter().map(size).sum::<f64>();
    let rate = |amount: f64| amount / median.as_secs_f64() / 1e9;
    if args.program.json {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        return print_json(&json!({
            "status": "ok",
            "entry": signature.name,
            "calls": times.len(),
            "compile_ms": ms(compile),
            "median_ms": ms(median),
            "min_ms": ms(fastest),
            "max_ms": ms(slowest),
            "bytes": moved,
            "gb_per_s": rate(moved),
            "gflop_per_s": args.flops.map(rate),
            "diagnostics": [],
        }));
    }
    let mut out = format!(
        "{}: median {}, min {}, max {} of {} runs\n",
        signature.name,
        duration(median),
        duration(fastest),
        duration(slowest),
        times.len()
    );
    out.push_str(&format!("  {:.2} GB/s of compulsory traffic", rate(moved)));
    if let Some(flops) = args.flops {
        out.push_str(&format!(", {:.2} GFLOP/s", rate(flops)));
    }
    out.push_str(&format!("; compiled in {}\n", duration(compile)));
    print(&out)
}
