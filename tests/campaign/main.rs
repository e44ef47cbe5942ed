//! The random campaigns, for as long as you like: `make fuzz MINUTES=60`.
//!
//! Each seed gives one random program that everything must agree on, and some hundred texts, mutated programs and broken
//! data files that nothing may panic on. Failures go to `fuzz/failures.txt` in the target directory with their seeds, random
//! programs made smaller; `fuzz/running.txt` names what runs now, should compiled code take the process with it.
//! `WEFT_FUZZ_MINUTES` says how long, `WEFT_FUZZ_SEED` where to begin. Without them, as in `make test`, a few fixed seeds
//! show that the campaigns work; the long fixed campaigns are in the crates' own tests.

#[path = "../../frontend/tests/parser/generate.rs"]
mod generate;
#[path = "../../frontend/tests/elaborate/mutate.rs"]
mod mutate;
mod programs;
mod readers;
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A campaign: what it is called, how many cases a seed makes, and what is wrong with case `k` of a seed.
type Campaign<'a> = (&'static str, u64, Box<dyn Fn(u64) -> Option<String> + 'a>);

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|v| !v.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// What a case finds; a panic is a finding.
fn finding(case: impl FnOnce() -> Option<String>) -> Option<String> {
    catch_unwind(AssertUnwindSafe(case)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Some(format!("panics: {}", text.unwrap_or("with something that is no text")))
    })
}

fn main() -> ExitCode {
    let minutes = variable("WEFT_FUZZ_MINUTES");
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |t| t.as_secs() % 1_000_000 * 1_000_000);
    let first = variable("WEFT_FUZZ_SEED").unwrap_or_else(|| if minutes.is_some() { fresh() } else { 1 });
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    std::fs::create_dir_all(&folder).expect("the target directory can be written");
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let sources = texts::sources();
    let campaigns: [Campaign<'_>; 4] = [
        ("programs", 1, Box::new(|seed| programs::fault(seed, scratch.path()))),
        ("texts", 60, Box::new(texts::parser)),
        ("mutants", 20, Box::new(|seed| texts::mutant(seed, &sources))),
        ("files", 40, Box::new(|seed| readers::fault(seed, scratch.path()))),
    ];
    println!("fuzz: from seed {first}, {}", minutes.map_or("4 seeds".into(), |m| format!("{m} minutes")));
    // Panics are findings, which are printed once, with their seeds.
    std::panic::set_hook(Box::new(|_| ()));

    let start = Instant::now();
    let go_on = |seeds: u64| minutes.map_or(seeds < 4, |m| start.elapsed() < Duration::from_secs(60 * m));
    let (mut seeds, mut counts, mut failures) = (0, [0; 4], Vec::new());
    while go_on(seeds) {
        for ((name, cases, fault), count) in campaigns.iter().zip(&mut counts) {
            for k in 0..*cases {
                // Any number of cases of one seed, and no case of two.
                let seed = (first + seeds) * *cases + k;
                let _ = std::fs::write(folder.join("running.txt"), format!("{name}, seed {seed}\n"));
                *count += 1;
                if let Some(what) = finding(|| fault(seed)) {
                    let text = format!("{name}, seed {seed} (WEFT_FUZZ_SEED={}):\n{what}\n", first + seeds);
                    println!("{text}");
                    failures.push(text);
                }
            }
        }
        seeds += 1;
    }
    let ran: Vec<String> = campaigns.iter().zip(counts).map(|((name, ..), n)| format!("{n} {name}")).collect();
    println!("fuzz: {} in {} s, {} failures", ran.join(", "), start.elapsed().as_secs(), failures.len());
    if failures.is_empty() {
        return ExitCode::SUCCESS;
    }
    let file = folder.join("failures.txt");
    std::fs::write(&file, failures.join("\n")).expect("the target directory can be written");
    println!("fuzz: the failures are in {}", file.display());
    ExitCode::FAILURE
}
