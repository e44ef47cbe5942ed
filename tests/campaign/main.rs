//! Random campaigns of any length: `make fuzz MINUTES=60`.
//!
//! Each seed yields one random program on which all backends must agree, ten loop nests in which every dependence must
//! be found, four batches of programs under random schedules that must compute the same results in the interpreter and
//! in C (`schedules`; with four programs that must survive a round trip through their files, `saved`), a batch of
//! vectorised loops with conditions in C (`lanes`), two batches of programs and gradients under automatic schedules,
//! for right and wrong machines and sizes (`auto`), a batch of gradients compiled from source text to C under such
//! schedules (`gradients`), a batch of programs on tensors in random formats (`structured`), and 120 texts, mutated
//! programs and broken data files on which nothing may panic. A failure is printed at once, with the command that
//! repeats it, and appended to `fuzz/failures.txt` in the target directory. The failing input, shrunk if it is a random
//! program, is saved in a file beside that list, and a schedule's steps in another one:
//! `TAFFETA_FUZZ_CASE=…/schedules-SEED.ft` repeats that one case. `fuzz/running.txt` names the current case, in case
//! compiled code kills the process. `TAFFETA_FUZZ_MINUTES` sets the duration, `TAFFETA_FUZZ_SEED` the first seed,
//! `TAFFETA_FUZZ_ONLY` the campaign. Without them, as in `make test`, a quarter of one fixed seed shows that the
//! campaigns work; the long fixed campaigns are in the crates' own tests.

mod gradients;
mod programs;
mod readers;
mod schedules;
mod structured;
mod texts;

use std::cell::RefCell;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testkit::{dependences, lanes, tried};

/// Campaign: its name, its number of cases per seed, and a function that returns a case's fault.
type Campaign<'a> = (&'static str, u64, Box<dyn Fn(u64) -> Option<Finding> + 'a>);

/// Fault, with the files that reproduce it, each as file extension and contents.
struct Finding {
    what: String,
    files: Vec<(&'static str, Vec<u8>)>,
}

/// Formats a panic's message.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("panics: {}", text.unwrap_or("with something that is not a text"))
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|v| !v.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Runs a case; a panic is a finding.
fn finding(case: impl FnOnce() -> Option<Finding>) -> Option<Finding> {
    let found = catch_unwind(AssertUnwindSafe(case));
    found.unwrap_or_else(|panic| Some(Finding { what: panic_text(&*panic), files: Vec::new() }))
}

/// Returns the command that repeats the cases of this seed.
fn again(round: u64) -> String {
    format!("again: TAFFETA_FUZZ_SEED={round} cargo test -p taffeta --test campaign")
}

/// Prints a finding, appends it to the list of failures, and writes its files beside the list.
fn report(folder: &Path, name: &str, seed: u64, round: u64, finding: Finding) {
    let keep = |(extension, bytes): (&str, Vec<u8>)| {
        let path = folder.join(format!("{name}-{seed}.{extension}"));
        std::fs::write(&path, bytes).expect("the target directory can be written");
        format!("saved in {}\n", path.display())
    };
    let kept: String = finding.files.into_iter().map(keep).collect();
    let text = format!("{name}, seed {seed}: {}\n{kept}{}\n", finding.what, again(round));
    println!("{text}");
    let mut list = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("failures.txt"));
    list.as_mut()
        .map(|f| writeln!(f, "{text}"))
        .expect("the target directory can be written")
        .expect("so can the list");
}

/// Returns the fault in the dependence analysis of a random loop nest.
fn nest(seed: u64, counts: &RefCell<dependences::Counts>) -> Option<Finding> {
    let what = dependences::either(seed, &mut counts.borrow_mut())?;
    Some(Finding { what, files: Vec::new() })
}

/// Returns the fault in a batch of vectorised loops, or in the first quarter of it.
fn lane_bodies(seed: u64, short: bool) -> Option<Finding> {
    let first = seed * lanes::BODIES_PER_LIBRARY;
    let count = if short { lanes::BODIES_PER_LIBRARY / 4 } else { lanes::BODIES_PER_LIBRARY };
    let what = lanes::fault(first..first + count)?;
    Some(Finding { what, files: Vec::new() })
}

fn main() -> ExitCode {
    if let Some(path) = std::env::var_os("TAFFETA_FUZZ_CASE") {
        let (text, good) = schedules::again(Path::new(&path));
        println!("{text}");
        return ExitCode::from(u8::from(!good));
    }
    let minutes = variable("TAFFETA_FUZZ_MINUTES");
    // A seed that is asked for is run as a whole.
    let short = minutes.is_none() && variable("TAFFETA_FUZZ_SEED").is_none();
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |t| t.as_secs() % 1_000_000 * 1_000_000);
    let first = variable("TAFFETA_FUZZ_SEED").unwrap_or_else(|| if minutes.is_some() { fresh() } else { 1 });
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    std::fs::create_dir_all(&folder).expect("the target directory can be written");
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let sources = texts::sources();
    let (nested, stepped) = (RefCell::new(dependences::Counts::default()), RefCell::new(tried::Counts::default()));
    let campaigns: [Campaign<'_>; 11] = [
        ("programs", 1, Box::new(|seed| programs::fault(seed, scratch.path()))),
        ("nests", 10, Box::new(|seed| nest(seed, &nested))),
        ("schedules", 4, Box::new(|seed| schedules::fault(seed, &mut stepped.borrow_mut()))),
        ("saved", 4, Box::new(schedules::saved)),
        ("lanes", 1, Box::new(|seed| lane_bodies(seed, short))),
        ("auto", 2, Box::new(schedules::automatic)),
        ("gradients", 1, Box::new(gradients::fault)),
        ("structured", 1, Box::new(|seed| structured::fault(seed, short))),
        ("texts", 60, Box::new(texts::parser)),
        ("mutants", 20, Box::new(|seed| texts::mutant(seed, &sources))),
        ("files", 40, Box::new(|seed| readers::fault(seed, scratch.path()))),
    ];
    let only = std::env::var("TAFFETA_FUZZ_ONLY").ok().filter(|name| !name.is_empty());
    assert!(only.iter().all(|only| campaigns.iter().any(|c| c.0 == only)), "TAFFETA_FUZZ_ONLY names no campaign");
    println!("fuzz: from seed {first}, {}", minutes.map_or("one seed".into(), |m| format!("{m} minutes")));
    // Panics are findings, printed once with their seeds.
    std::panic::set_hook(Box::new(|_| ()));

    let start = Instant::now();
    let go_on = |seeds: u64| minutes.map_or(seeds < 1, |m| start.elapsed() < Duration::from_secs(60 * m));
    // The list covers this run only and grows with each failure, so that it survives a crash.
    let list = folder.join("failures.txt");
    let _ = std::fs::remove_file(&list);
    let (mut seeds, mut counts, mut failures) = (0, [0; 11], 0);
    while go_on(seeds) {
        for ((name, cases, fault), count) in campaigns.iter().zip(&mut counts) {
            if only.as_ref().is_some_and(|only| only != name) {
                continue;
            }
            for k in 0..if short { cases.div_ceil(4) } else { *cases } {
                // No two cases share a seed, whatever the number of cases per round.
                let seed = (first + seeds) * *cases + k;
                let _ = std::fs::write(
                    folder.join("running.txt"),
                    format!("{name}, seed {seed}\n{}\n", again(first + seeds)),
                );
                *count += 1;
                if let Some(found) = finding(|| fault(seed)) {
                    failures += 1;
                    report(&folder, name, seed, first + seeds, found);
                }
            }
        }
        seeds += 1;
    }
    let ran: Vec<String> = campaigns.iter().zip(counts).map(|((name, ..), n)| format!("{n} {name}")).collect();
    println!("fuzz: {} in {} s, {failures} failures", ran.join(", "), start.elapsed().as_secs());
    println!("dependences: {:?}\nschedules: {}", nested.borrow(), stepped.borrow());
    if failures == 0 {
        return ExitCode::SUCCESS;
    }
    println!("fuzz: the failures are in {}", list.display());
    ExitCode::FAILURE
}
