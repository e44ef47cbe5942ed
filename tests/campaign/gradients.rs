//! Gradients of random programs by the public path: source text, automatic schedule (which also chooses the tape), and
//! compiled C on one thread and on several, against the interpreter and a gradient that tapes every value.

use crate::Finding;
use itertools::Itertools as _;
use taffeta::{Gradient, Mode, Options, Program, Tape};
use taffeta_ast::{SourceMap, print};
use taffeta_codegen::c::{self, CSource};
use testkit::batch;
use testkit::made::derivable;
use testkit::random_schedules::{call, flags};
use testkit::tried::{Run, close, runs};

/// Number of programs per C library.
const SEEDS_PER_BATCH: u64 = 8;

/// C source of a gradient, with the runs (inputs and expected outputs) that it must reproduce.
struct Ready {
    text: String,
    runs: Vec<Run>,
    source: CSource,
}

/// Returns the first fault in a batch of gradients.
pub fn fault(seed: u64) -> Option<Finding> {
    let finding = |text: &str, what: String| {
        Some(Finding { what: format!("{what}\n{text}"), files: vec![("ft", text.as_bytes().to_vec())] })
    };
    let mut all = Vec::new();
    for k in 0..SEEDS_PER_BATCH {
        let one = seed * SEEDS_PER_BATCH + k;
        let func = derivable(one);
        // Entry names must be unique within a library.
        let name = format!("case_{k}");
        let text = print::func(&func).replacen(&format!("def {}(", func.name), &format!("def {name}("), 1);
        match ready(&text, &name, one) {
            Ok(ready) => all.extend(ready),
            Err(what) => return finding(&text, what),
        }
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let flags = flags();
    let sources: Vec<CSource> = all.iter().map(|r| r.source.clone()).collect();
    let compiled = match batch::compile(&sources, dir.path(), &flags) {
        Ok(compiled) => compiled,
        Err(refused) => return finding(&all.iter().map(|r| r.text.as_str()).collect::<String>(), refused),
    };
    all.iter().zip_eq(&compiled).find_map(|(ready, compiled)| {
        ready.runs.iter().cartesian_product([1, 3]).find_map(|(r, threads)| {
            let sizes: Vec<(&str, i64)> = r.inputs.sizes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
            let found = call(compiled, threads, &r.inputs.params, &sizes);
            if found.as_ref().is_ok_and(|out| close(&r.before, out)) {
                return None;
            }
            let differs = format!("on {threads} threads at {:?}\nexpected {:?}\nin C {found:?}", r.inputs, r.before);
            finding(&ready.text, differs)
        })
    })
}

/// Derives the gradient of a program and lowers it for C; `None` if the program has no gradient.
fn ready(text: &str, name: &str, seed: u64) -> Result<Option<Ready>, String> {
    let program = Program::from_source("random.ft", text).map_err(|e| format!("its text is refused: {e}"))?;
    let mode = if seed.is_multiple_of(4) { Mode::Forward } else { Mode::Reverse };
    let of = |tape: Tape| Gradient::default().mode(mode).tape(tape);
    let Ok(plain) = program.logical(name, &Options::default().schedule(None).gradient(of(Tape::All))) else {
        return Ok(None);
    };
    let tape = [Tape::Auto, Tape::Auto, Tape::None][seed as usize % 3].clone();
    let mut options = Options::default().portable(true).schedule("auto").gradient(of(tape));
    // Size hints steer the schedule and the tape, and differ from the sizes of the runs.
    if let Some(n) = [None, Some(3), Some(2000)][seed as usize / 3 % 3] {
        options = plain.sizes.iter().fold(options, |o, s| o.hint(s.name(), n));
    }
    let lowered = program.lowered(name, &options).map_err(|e| format!("under auto it is refused: {e}"))?;
    let source = c::emit(&lowered, &SourceMap::default());
    Ok(Some(Ready { text: text.to_string(), runs: runs(&plain, seed), source }))
}
