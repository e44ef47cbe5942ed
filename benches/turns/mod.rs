//! Workloads of benches, and their runs in turn.

use std::path::Path;
use std::time::{Duration, Instant};
use taffeta::{Function, Options, Program, Ran, Signature};

/// File, entry, inputs other than `rand`, and sizes.
pub type Workload =
    (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [(&'static str, i64)]);

/// Loads the program of a workload, and adds its sizes to the options.
pub fn load((file, _, _, sizes): &Workload, options: Options) -> (Program, Options) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let program = Program::load(path).unwrap_or_else(|e| panic!("{file}: {e}"));
    (program, options.sizes(sizes.iter().map(|(n, v)| ((*n).to_string(), *v))))
}

/// Times these functions in nanoseconds, in runs that take turns: at most `rounds` of each, and about `most` in all.
/// Every run works on the same inputs, those of the interface `open`.
pub fn times(
    functions: &[Function],
    open: &Signature,
    (file, _, given, sizes): &Workload,
    rounds: usize,
    most: Duration,
) -> Vec<Vec<f64>> {
    let text = |name: &str| given.iter().find(|(n, _)| *n == name).map_or("rand", |(_, v)| *v).to_string();
    let texts: Vec<(String, String)> = open.params().map(|p| (p.name.clone(), text(&p.name))).collect();
    let sizes: Vec<(String, i64)> = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let inputs = taffeta::inputs::read(open, &texts, &sizes).unwrap_or_else(|e| panic!("{file}: {e:?}"));
    let threads = u32::try_from(std::thread::available_parallelism().map_or(1, usize::from)).unwrap_or(1);
    let start = Instant::now();
    let mut times = vec![Vec::new(); functions.len()];
    for round in 0..rounds {
        if round >= 3 && start.elapsed() > most {
            break;
        }
        for (f, times) in functions.iter().zip(&mut times) {
            let mut ran: Ran = f.run(inputs.values.clone(), &[], threads).unwrap_or_else(|e| panic!("{file}: {e}"));
            ran.params.clone_from(&inputs.values);
            let again = f.run_again(&mut ran, &[], threads).unwrap_or_else(|e| panic!("{file}: {e}"));
            times.push(again.time.as_secs_f64() * 1e9);
        }
    }
    times
}
