//! Parallel loops on cores that other processes occupy: `cargo bench --bench crowded`.
//!
//! Each program runs for a second beside a number of busy processes, on all threads and on one. The table shows medians
//! and means in milliseconds, and the ratio of the median to that on an idle machine. Without the checks of `taf_fork`
//! (`codegen/include/taffeta_runtime.h`), medians beside as many busy processes as there are cores are some hundred
//! times those on an idle machine.

use ndarray::Array;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use taffeta::{Function, Options, Program, StaticValue};

const SECOND: Duration = Duration::from_secs(1);

/// Name of a program, with a call of it on a number of threads, 0 for all.
type Workload = (&'static str, Box<dyn Fn(u32)>);

fn main() {
    if std::env::args().any(|a| a == "count") {
        let mut n = 0u64;
        loop {
            n = std::hint::black_box(n.wrapping_add(1));
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{:<12}{:>8}{:>9}{:>10}{:>10}{:>8}", "", "busy", "threads", "median", "mean", "ratio");
    for (name, call) in [bicg(), stencil(), gat()] {
        let mut quiet = 0.0;
        for busy in [0, 1, cores] {
            let others = Others::start(busy);
            for threads in [0, 1] {
                let (median, mean) = measure(|| call(threads));
                if quiet == 0.0 {
                    quiet = median;
                }
                let all = if threads == 0 { "all".to_string() } else { threads.to_string() };
                println!("{name:<12}{busy:>8}{all:>9}{median:>10.3}{mean:>10.3}{:>8.2}", median / quiet);
            }
            drop(others);
        }
    }
}

/// Busy processes, which count until they are dropped.
struct Others(Vec<Child>);

impl Others {
    fn start(count: usize) -> Others {
        let program = std::env::current_exe().expect("this program has a path");
        Others((0..count).map(|_| Command::new(&program).arg("count").spawn().expect("it can be started")).collect())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the median and the mean, in milliseconds.
fn measure(call: impl Fn()) -> (f64, f64) {
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < SECOND {
        let start = Instant::now();
        call();
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times.iter().sum::<f64>() / times.len() as f64)
}

fn compile(file: &str, entry: &str, options: &Options) -> Function {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    Program::load(&path).and_then(|p| p.compile(entry, options)).unwrap_or_else(|e| panic!("{e}"))
}

/// Builds three short loops, one of which has an array of partial results.
fn bicg() -> Workload {
    let options = Options::default().schedule("auto");
    let options = options.set("n", StaticValue::Int(420)).set("m", StaticValue::Int(380));
    let f = compile("tests/polybench/bicg.ft", "main", &options);
    ("bicg", Box::new(move |threads| drop(f.call().threads(threads).run().expect("it runs"))))
}

/// Builds forty short loops.
fn stencil() -> Workload {
    let options = Options::default().schedule("auto");
    let options = options.set("n", StaticValue::Int(300)).set("tsteps", StaticValue::Int(20));
    let f = compile("tests/polybench/jacobi-2d.ft", "main", &options);
    ("jacobi-2d", Box::new(move |threads| drop(f.call().threads(threads).run().expect("it runs"))))
}

/// Builds graph attention on a graph as large as Cora.
fn gat() -> Workload {
    let (n, feats, channels, m) = (2708, 64, 32, 10556);
    let f = compile("examples/gat/gat.ft", "gat_csr", &Options::default().schedule("fast"));
    let some = |k: usize| ((k * 7919) % 1000) as f32 * 1e-3 - 0.5;
    let x = Array::from_shape_fn((n, feats), |(i, j)| some(i * feats + j));
    let w = Array::from_shape_fn((feats, channels), |(i, j)| some(i * channels + j));
    let a = Array::from_shape_fn(channels, some);
    let first = Array::from_shape_fn(n + 1, |i| (m * i / n) as i32);
    let origin = Array::from_shape_fn(m, |e| (e * 104_729 % n) as i32);
    let call = move |threads| {
        let call = f.call().input("x", x.view()).input("w", w.view()).input("a_src", a.view()).input("a_dst", a.view());
        let call = call.input("first", first.view()).input("origin", origin.view());
        drop(call.threads(threads).run().expect("it runs"));
    };
    ("gat_csr", Box::new(call))
}
