//! Schedules chosen by rules against programs as they are written: `cargo bench --bench never_slower` (`ONLY=lu` picks
//! programs).
//!
//! The first table has programs with the median of none / auto over runs in turn: no program that takes more than a
//! millisecond should be below 0.95, and the last line lists the exceptions that the rules changed. The second one has
//! gradients under the rules, by their tapes: the choice of `auto` against tapes of all tensors in loops, and against
//! none; the table marks where that is the same program.

mod turns;

use std::time::Duration;
use taffeta::{Function, Gradient, Options, Signature, Tape};
use turns::Workload;

const PROGRAMS: [Workload; 40] = [
    ("tests/polybench/2mm.ft", "mm2", &[], &[("ni", 200), ("nj", 200), ("nk", 200), ("nl", 200)]),
    ("tests/polybench/3mm.ft", "mm3", &[], &[("ni", 200), ("nj", 200), ("nk", 200), ("nl", 200), ("nm", 200)]),
    ("tests/polybench/adi.ft", "adi", &[("tsteps", "5")], &[("n", 300)]),
    ("tests/polybench/atax.ft", "atax", &[], &[("m", 1500), ("n", 1500)]),
    ("tests/polybench/bicg.ft", "bicg", &[], &[("m", 1500), ("n", 1500)]),
    ("tests/polybench/cholesky.ft", "cholesky", &[], &[("n", 300)]),
    ("tests/polybench/correlation.ft", "correlation", &[], &[("n", 240), ("m", 240)]),
    ("tests/polybench/covariance.ft", "covariance", &[], &[("n", 240), ("m", 240)]),
    ("tests/polybench/deriche.ft", "deriche", &[("alpha", "0.25")], &[("w", 720), ("h", 480)]),
    ("tests/polybench/doitgen.ft", "doitgen", &[], &[("nr", 60), ("nq", 60), ("np", 60)]),
    ("tests/polybench/durbin.ft", "durbin", &[], &[("n", 2000)]),
    ("tests/polybench/fdtd-2d.ft", "fdtd_2d", &[], &[("tmax", 20), ("nx", 300), ("ny", 300)]),
    ("tests/polybench/floyd-warshall.ft", "floyd_warshall", &[("path", "randint(1,1000)")], &[("n", 200)]),
    ("tests/polybench/gemm.ft", "gemm", &[], &[("ni", 240), ("nj", 240), ("nk", 240)]),
    ("tests/polybench/gemver.ft", "gemver", &[], &[("n", 1200)]),
    ("tests/polybench/gesummv.ft", "gesummv", &[], &[("n", 1200)]),
    ("tests/polybench/gramschmidt.ft", "gramschmidt", &[], &[("m", 240), ("n", 200)]),
    ("tests/polybench/heat-3d.ft", "heat_3d", &[("tsteps", "4")], &[("n", 70)]),
    ("tests/polybench/jacobi-1d.ft", "jacobi_1d", &[("tsteps", "100")], &[("n", 20000)]),
    ("tests/polybench/jacobi-2d.ft", "jacobi_2d", &[("tsteps", "4")], &[("n", 700)]),
    ("tests/polybench/lu.ft", "lu", &[], &[("n", 300)]),
    ("tests/polybench/ludcmp.ft", "ludcmp", &[], &[("n", 300)]),
    ("tests/polybench/mvt.ft", "mvt", &[], &[("n", 1500)]),
    ("tests/polybench/nussinov.ft", "nussinov", &[("seq", "randint(0,4)"), ("table", "zeros")], &[("n", 300)]),
    ("tests/polybench/seidel-2d.ft", "seidel_2d", &[("tsteps", "10")], &[("n", 300)]),
    ("tests/polybench/symm.ft", "symm", &[], &[("m", 200), ("n", 240)]),
    ("tests/polybench/syr2k.ft", "syr2k", &[], &[("n", 240), ("m", 200)]),
    ("tests/polybench/syrk.ft", "syrk", &[], &[("n", 240), ("m", 240)]),
    ("tests/polybench/trisolv.ft", "trisolv", &[], &[("n", 2000)]),
    ("tests/polybench/trmm.ft", "trmm", &[], &[("m", 200), ("n", 240)]),
    ("examples/matmul/matmul.ft", "matmul", &[], &[("n", 300), ("m", 300), ("p", 300)]),
    CIRCULAR,
    CONVOLUTION,
    LONGFORMER,
    ATTENTION,
    MIXTURE,
    ("examples/conv/conv.ft", "layer", &[], &LAYER),
    ("examples/conv/conv.ft", "sobel", &[("image", "randint(0,256)")], &[("h", 1500), ("w", 1500)]),
    ("examples/physics/nbody.ft", "simulate", &[("steps", "5"), ("dt", "0.001"), ("softening", "0.05")], &[("n", 600)]),
    ("examples/physics/heat.ft", "step", &[("rate", "0.2")], &[("h", 2000), ("w", 2000)]),
];

const CIRCULAR: Workload = (
    "examples/subdivnet/circular_diff.ft",
    "circular_diff",
    &[("adj", "randint(0,20000)")],
    &[("n_faces", 20000), ("feats", 64)],
);
const CONVOLUTION: Workload = (
    "examples/subdivnet/mesh_conv.ft",
    "mesh_conv",
    &[("adj", "randint(0,20000)")],
    &[("n_faces", 20000), ("feats", 32), ("channels", 32)],
);
const LONGFORMER: Workload =
    ("examples/longformer/longformer.ft", "attention", &[], &[("heads", 4), ("n", 2000), ("d", 64)]);
const ATTENTION: Workload = (
    "examples/gat/gat.ft",
    "gat",
    &[("src", "randint(0,20000)"), ("dst", "randint(0,20000)")],
    &[("m", 100_000), ("n", 20000), ("feats", 64), ("channels", 32)],
);
const MIXTURE: Workload = (
    "examples/adbench/gmm.ft",
    "objective",
    &[("gamma", "1.5"), ("m", "2")],
    &[("n", 1000), ("k", 10), ("d", 10), ("tri", 55)],
);
const LAYER: [(&str, i64); 7] = [("batch", 2), ("c", 32), ("h", 64), ("w", 64), ("channels", 32), ("kh", 3), ("kw", 3)];

const GRADIENTS: [Workload; 8] = [
    CIRCULAR,
    CONVOLUTION,
    LONGFORMER,
    ATTENTION,
    MIXTURE,
    ("examples/conv/conv.ft", "layer", &[], &LAYER),
    ("tests/polybench/gemm.ft", "gemm", &[], &[("ni", 240), ("nj", 240), ("nk", 240)]),
    ("tests/polybench/jacobi-2d.ft", "jacobi_2d", &[("tsteps", "4")], &[("n", 700)]),
];

/// Maximum number of runs of each function, and of the time for all runs of a program.
const ROUNDS: usize = 40;
const SECONDS: Duration = Duration::from_secs(4);
/// Time below which a program may be slower, in nanoseconds.
const SHORT: f64 = 1e6;
const LEVEL: f64 = 0.95;

fn main() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut slower = Vec::new();
    println!("{:<16}{:>11}{:>11}{:>12}", "ms", "none", "auto", "ratio");
    for w in PROGRAMS.iter().filter(|w| w.1.contains(&only)) {
        let options = [Options::default().schedule(None), Options::default().schedule("auto")];
        let times = compare(w, &options);
        let ratio = 1.0 / times[1].1;
        let is_slower = times[0].0 > SHORT && ratio < LEVEL;
        // One program may differ from itself by as much: only a changed program is slower.
        let same = is_slower && code(w, &options[0]) == code(w, &options[1]);
        let shown = if same { format!("{ratio:.2}, same") } else { format!("{ratio:.2}") };
        println!("{:<16}{:>11.3}{:>11.3}{shown:>12}", w.1, times[0].0 / 1e6, times[1].0 / 1e6);
        if is_slower && !same {
            slower.push(w.1);
        }
    }
    println!("slower: {}\n", if slower.is_empty() { "none".to_string() } else { slower.join(", ") });

    println!("{:<16}{:>11}{:>11}{:>11}{:>11}{:>11}", "gradients, ms", "auto", "all", "none", "all/auto", "none/auto");
    for w in GRADIENTS.iter().filter(|w| w.1.contains(&only)) {
        let of = |tape: Tape| Options::default().schedule("auto").gradient(Gradient::default().tape(tape));
        let kept = [of(Tape::Auto), of(Tape::All), of(Tape::None)];
        let times = compare(w, &kept);
        print!("{:<16}", w.1);
        times.iter().for_each(|(ns, _)| print!("{:>11.3}", ns / 1e6));
        let first = code(w, &kept[0]);
        for ((_, ratio), options) in times[1..].iter().zip(&kept[1..]) {
            // Times of one program vary by more than those of programs with different tapes often do.
            let over = if code(w, options) == first { "same".to_string() } else { format!("{ratio:.2}") };
            print!("{over:>11}");
        }
        println!();
    }
}

/// Returns the generated C of a workload.
fn code(workload: &Workload, options: &Options) -> String {
    let (program, sized) = turns::load(workload, options.clone());
    program.c_source(workload.1, &sized).unwrap_or_else(|e| panic!("{}: {e}", workload.0)).code
}

/// Times a workload with each of these options, in nanoseconds, and as a ratio to the first: medians over runs in turn,
/// on the same inputs.
fn compare(workload: &Workload, options: &[Options]) -> Vec<(f64, f64)> {
    let (file, entry, ..) = workload;
    let compile = |o: &Options| {
        let (program, sized) = turns::load(workload, o.clone());
        program.compile(entry, &sized).unwrap_or_else(|e| panic!("{file}: {e}"))
    };
    let functions: Vec<Function> = options.iter().map(compile).collect();
    let (program, _) = turns::load(workload, Options::default());
    let open = program.logical(entry, &options[0]).unwrap_or_else(|e| panic!("{file}: {e}"));
    let times = turns::times(&functions, &Signature::of(&open, &Default::default()), workload, ROUNDS, SECONDS);
    let over = |all: &[f64]| median(all.iter().zip(&times[0]).map(|(t, first)| t / first).collect());
    times.iter().map(|all| (median(all.clone()), over(all))).collect()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}
