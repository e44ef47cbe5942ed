//! Random programs under random schedules: the interpreter before and after, C on one thread and on several, and
//! sometimes C under the sanitizers. A failing case is shrunk and saved as a program and a trace of its steps, which
//! `TAFFETA_FUZZ_CASE` names to repeat it.

use crate::Finding;
use std::path::Path;
use taffeta_ast::random::nest::Class;
use taffeta_ast::{Func, StmtKind, func, print};
use taffeta_codegen::toolchain::CompileOptions;
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};
use taffeta_schedule::Trace;
use testkit::automatic::{self, Taken};
use testkit::made::SORTS;
use testkit::random_schedules::{CLASSES, faults, faults_of, flags, in_c, undefined};
use testkit::tried::{Case, Counts, Run, problem, random, show};

/// Number of programs per library, and per C program under the sanitizers.
const SEEDS_PER_BATCH: u64 = 20;
const SANITIZED: u64 = 6;

/// Returns the first fault in a batch of programs.
pub fn fault(seed: u64, all: &mut Counts) -> Option<Finding> {
    let mut counts = Counts::default();
    let class = CLASSES[(seed % 4) as usize];
    let batch = seed / 4;
    let first = batch * SEEDS_PER_BATCH;
    let wrong = match batch % 8 {
        7 => undefined((first..first + SANITIZED).map(|seed| random(seed, class, &mut counts).0)),
        _ => faults(first..first + SEEDS_PER_BATCH, class, &flags(), &mut counts),
    };
    all.add(&counts);
    finding(&format!("{class:?}"), wrong)
}

/// Reports the first wrong case, with its files.
fn finding(name: &str, wrong: Vec<(Case, String)>) -> Option<Finding> {
    let more = wrong.len().saturating_sub(1);
    let (case, what) = wrong.into_iter().next()?;
    let more = if more > 0 { format!("; {more} more programs of this batch fail") } else { String::new() };
    // Nests may contain `assume` and branches on constants, which have no source text.
    let kept = self::case(&text_of(&case), &case.trace.to_json());
    let repeats = kept.is_ok_and(|kept| func::same(&kept.func, &case.func));
    let how = if repeats { "TAFFETA_FUZZ_CASE names its file" } else { "its text says it in part: take the seed" };
    let text = format!("{name}{more}, {}\nto try it again: {how}", show(&case, &what));
    Some(Finding {
        what: text,
        files: vec![("ft", text_of(&case).into_bytes()), ("json", case.trace.to_json().into_bytes())],
    })
}

/// Returns the first fault in a batch of programs under automatic schedules.
pub fn automatic(seed: u64) -> Option<Finding> {
    let sorts = SORTS.len() as u64;
    let sort = SORTS[(seed % sorts) as usize];
    let batch = seed / sorts;
    let first = batch * SEEDS_PER_BATCH;
    let cases = (first..first + SEEDS_PER_BATCH).map(|seed| automatic::automatic(seed, sort, &mut Taken::new()));
    finding(&format!("{sort:?}, automatic"), faults_of(cases, &flags()))
}

/// Prints the program below a line with the seed of its inputs.
fn text_of(case: &Case) -> String {
    format!("{INPUTS}{}\n{}", case.seed, print::func(&case.func))
}

const INPUTS: &str = "# random inputs of seed ";

/// Parses a saved program and its trace.
fn case(text: &str, trace: &str) -> Result<Case, String> {
    let seed = text.strip_prefix(INPUTS).and_then(|t| t.lines().next()?.parse().ok());
    let program = Program::load(Source::inline("kept.ft", text), &NoLoader);
    let entry = program.entries().first().ok_or("there is no program in it")?.name.clone();
    let func: Func = program.elaborate(&entry, &Default::default(), &NoHooks).map_err(|d| d.to_string())?;
    let trace = Trace::from_json(trace).map_err(|r| r.message.clone())?;
    Ok(Case { func, seed: seed.ok_or("its first line does not say of what its inputs are made")?, trace })
}

/// Returns the fault of a program in C without and with optimisation: a saved file does not record its batch's setting.
fn either(_: &Func, after: &Func, runs: &[Run]) -> Option<String> {
    [false, true].into_iter().find_map(|optimize| in_c(after, runs, &CompileOptions { optimize, ..flags() }))
}

/// Repeats the case saved in `path` and its trace beside it; returns a report, and whether nothing is wrong.
pub fn again(path: &Path) -> (String, bool) {
    let read = |extension: &str| std::fs::read_to_string(path.with_extension(extension)).map_err(|e| e.to_string());
    match read("ft").and_then(|text| case(&text, &read("json")?)) {
        Err(e) => (format!("{}: {e}", path.display()), false),
        Ok(case) => match problem(&case, &either) {
            Some((case, what)) => (show(&case, &what), false),
            None => match undefined([case]).pop() {
                Some((case, what)) => (show(&case, &what), false),
                None => ("nothing is wrong with it now".to_string(), true),
            },
        },
    }
}

/// Checks that programs and traces survive a round trip through their files.
pub fn saved(seed: u64) -> Option<Finding> {
    let (old, _) = random(seed, Class::Dense, &mut Counts::default());
    let text = text_of(&old);
    let finding = |what: String| Some(Finding { what, files: vec![("ft", text.clone().into_bytes())] });
    let new = match case(&text, &old.trace.to_json()) {
        Ok(new) => new,
        Err(e) => return finding(format!("does not come back: {e}")),
    };
    if !func::same(&old.func, &new.func) {
        return finding(format!("comes back as\n{}", print::func(&new.func)));
    }
    // Printing renames the second of two tensors with one name, and steps that name it would not apply.
    if locals(&old.func) != locals(&new.func) {
        return None;
    }
    let taken = |c: &Case| {
        c.trace.replay(c.func.clone()).map(|s| print::func(s.func())).map_err(|(k, r)| (k, r.message.clone()))
    };
    let (before, after) = (taken(&old), taken(&new));
    (before != after).then(|| finding(format!("its steps make\n{after:?}\nand made\n{before:?}")))?
}

/// Collects the names of a program's local tensors.
fn locals(func: &Func) -> Vec<String> {
    let mut names = Vec::new();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            names.push(tensor.symbol.name().to_string());
        }
    });
    names
}
