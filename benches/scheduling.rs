//! Time that rules take to choose a schedule: `cargo bench --bench scheduling`.
//!
//! Every entry of `tests/polybench`, `tests/corpus`, `examples` and `benches` that needs no static values, its gradient
//! if it has one, and the random programs of the campaigns, `SEEDS` of each sort (500) from `FIRST` (0). A schedule
//! should take [`BAR`] at most, that of a gradient [`GRADIENT_BAR`]; slower programs are listed. A program a little
//! above its bar is tried [`AGAIN`], and the shortest time counts: other load on the machine only ever adds time.
//! `ONLY=gat` picks groups and entries.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use taffeta::{Gradient, Options, Program, Timings, pipeline};
use taffeta_ast::Func;
use taffeta_ast::random::{Options as Drawn, program as drawn};
use testkit::made::SORTS;
use testkit::{cases, made};

const BAR: Duration = Duration::from_millis(300);
const GRADIENT_BAR: Duration = Duration::from_secs(1);
/// Number of further tries of a program above its bar, and the multiple of the bar from which there are none.
const AGAIN: usize = 2;
const FAR: u32 = 3;

/// Programs of one kind: the time of the rules for each, with its name.
#[derive(Default)]
struct Group {
    times: Vec<(Duration, String)>,
    refused: usize,
}

impl Group {
    fn add(&mut self, name: impl FnOnce() -> String, func: &Func, bar: Duration) {
        let once = || {
            let start = Instant::now();
            let made = pipeline::automatic(func.clone(), &options(), &mut Timings::default());
            made.ok().map(|_| start.elapsed())
        };
        let Some(mut least) = once() else {
            self.refused += 1;
            return;
        };
        for _ in 0..AGAIN {
            if least > bar && least < bar * FAR {
                least = once().unwrap_or(least).min(least);
            }
        }
        self.times.push((least, name()));
    }

    fn print(mut self, what: &str, bar: Duration) {
        if self.times.is_empty() {
            return;
        }
        self.times.sort();
        let ms = |t: Duration| t.as_secs_f64() * 1e3;
        let at = |part: usize| ms(self.times[(self.times.len() - 1) * part / 100].0);
        let above = self.times.iter().rev().filter(|(t, _)| *t > bar).count();
        println!(
            "{what:<28}{:>8}{:>10.1}{:>10.1}{:>10.1}{:>10.1}{above:>8}",
            self.times.len(),
            at(50),
            at(95),
            at(99),
            at(100)
        );
        for (time, name) in self.times.iter().rev().take(above) {
            println!("    {:>8.0} ms  {name}", ms(*time));
        }
        if self.refused > 0 {
            println!("    {} refused", self.refused);
        }
    }
}

fn main() {
    // Stack as deep as that of the compiler's own threads.
    let work = std::thread::Builder::new().stack_size(512 << 20).spawn(measure).expect("a thread");
    work.join().expect("the measurements");
}

fn options() -> Options {
    Options::default().schedule("auto")
}

fn measure() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (first, seeds) = (number("FIRST", 0), number("SEEDS", 500));
    let folders = ["tests/polybench", "tests/corpus", "examples", "benches"];
    println!("{:<28}{:>8}{:>10}{:>10}{:>10}{:>10}{:>8}", "ms", "number", "median", "95 %", "99 %", "most", "above");
    for folder in folders {
        let (mut entries, mut gradients) = (Group::default(), Group::default());
        for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)) {
            measure_file(&file, &only, &mut entries, &mut gradients);
        }
        entries.print(folder, BAR);
        gradients.print(&format!("{folder}, gradients"), GRADIENT_BAR);
    }
    let sorts = SORTS.map(|sort| (format!("{sort:?}"), Box::new(move |seed| made::program(seed, sort)) as Made));
    let others: [(&str, Made); 2] = [("Statements", Box::new(statements)), ("Structured", Box::new(structured))];
    let named = sorts.into_iter().chain(others.map(|(name, made)| (name.to_string(), made)));
    for (name, made) in named.filter(|(name, _)| name.contains(&only)) {
        let mut group = Group::default();
        (first..first + seeds).for_each(|seed| group.add(|| format!("seed {seed}"), &made(seed), BAR));
        group.print(&name, BAR);
    }
}

/// Generator of the random program of a seed.
type Made = Box<dyn Fn(u64) -> Func>;

/// Returns the program of a seed in the campaign `programs`.
fn statements(seed: u64) -> Func {
    drawn(seed, &Drawn { statements: 10 + seed as usize % 30, ..Drawn::default() }).func
}

/// Returns the program of a seed in the campaign `structured`.
fn structured(seed: u64) -> Func {
    let case = if seed.is_multiple_of(3) { cases::kernels::random(seed) } else { cases::case(seed) };
    cases::tried::prepared(&case).unwrap_or_else(|e| panic!("seed {seed}: {e}")).func
}

/// Measures the entries of a file, and their gradients with respect to all floats.
fn measure_file(file: &Path, only: &str, entries: &mut Group, gradients: &mut Group) {
    let Ok(program) = Program::load(file) else { return };
    let options = Options::default().schedule(None);
    for entry in program.entries() {
        let name = || format!("{} {}", file.display(), entry.name);
        if !name().contains(only) {
            continue;
        }
        let Ok(func) = program.logical(&entry.name, &options) else { continue };
        entries.add(name, &func, BAR);
        if let Ok((gradient, _)) = program.explained(&entry.name, &options.clone().gradient(Gradient::default())) {
            gradients.add(name, &gradient, GRADIENT_BAR);
        }
    }
}

/// Returns all `.ft` files in a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.extension().is_some_and(|e| e == "ft") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}
