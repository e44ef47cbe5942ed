//! Schedules as schedule functions: appended to the file, the function that `taffeta show --as-function` prints makes
//! the same scheduled program.

use crate::programs::{self, below};
use std::path::Path;
use taffeta::schedule::show::program as listing;
use taffeta::{EntryInfo, Options, Program};
use taffeta_analysis::pass::stop_gradient;

/// Entry of a file, with the values of its static parameters.
struct Case {
    file: std::path::PathBuf,
    entry: String,
    statics: Vec<(String, String)>,
}

impl Case {
    fn options(&self, schedule: &str) -> Options {
        let set = |o: Options, (k, v): &(String, String)| o.set(k, v.parse().expect("a value"));
        // Decisions must be the same on every machine, and a function is for the gradient as it is printed.
        let options = Options::default().portable(true).choose_tapes(false);
        self.statics.iter().fold(options, set).schedule(schedule)
    }
}

/// Copies the files below a folder so that their imports resolve, and collects their entries; with `derived`, the
/// gradients of entries on `f64` too. Entries of files that train a model are left out: they take long, and have no
/// loops that the model lacks.
fn cases(folder: &str, derived: bool, to: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for program in below(folder) {
        let name = program.path.file_name().and_then(|n| n.to_str()).expect("a file");
        let parent = program.path.parent().and_then(Path::file_name).expect("a folder");
        let file = to.join(parent).join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let mut text = std::fs::read_to_string(&program.path).expect("the file");
        let mut entries = Program::load(&program.path).unwrap_or_else(|e| panic!("{e}")).entries();
        for k in 0..entries.len() {
            let own = &entries[k];
            if derived && own.params.iter().any(|p| p.annotation.contains("f64")) {
                text += &format!("\n\nback_{0} = vjp({0})\n", own.name);
                entries.push(EntryInfo { name: format!("back_{}", own.name), ..own.clone() });
            }
        }
        std::fs::write(&file, text).expect("written");
        if ["train.ft", "fit.ft"].contains(&name) {
            continue;
        }
        let set = program.commands.iter().flat_map(|c| c.split(" --set ").skip(1)).filter_map(|c| {
            let (name, value) = c.split(' ').next()?.split_once('=')?;
            Some((name.to_string(), value.to_string()))
        });
        let set: Vec<(String, String)> = set.collect();
        for e in entries {
            let of = Program::load(&program.path).unwrap_or_else(|e| panic!("{e}")).entries();
            let of = of.into_iter().find(|o| Some(&o.name) == e.gradient_of.as_ref()).unwrap_or_else(|| e.clone());
            let own = |(k, _): &&(String, String)| of.params.iter().any(|p| p.is_static && p.name == *k);
            let statics = set.iter().filter(own).cloned().collect();
            cases.push(Case { file: file.clone(), entry: e.name, statics });
        }
    }
    cases
}

/// Returns the number of steps in the function printed for a case, after checking that the function makes the scheduled
/// program.
fn steps(case: &Case) -> usize {
    let name = format!("{} {}", case.file.display(), case.entry);
    let program = Program::load(&case.file).unwrap_or_else(|e| panic!("{e}"));
    let auto = program.scheduled(&case.entry, &case.options("auto")).unwrap_or_else(|e| panic!("{name}: {e}"));
    let function = program.schedule_function(&case.entry, &case.options("auto"));
    let function = function.unwrap_or_else(|e| panic!("{name}: {e}"));
    // Beside the file, so that its imports resolve.
    let text = std::fs::read_to_string(&case.file).expect("the file");
    let stem = case.file.file_stem().and_then(|n| n.to_str()).expect("a file");
    let with = case.file.with_file_name(format!("{stem}_with_{}.ft", case.entry));
    std::fs::write(&with, format!("{text}\n\n{function}")).expect("written");
    let program = Program::load(&with).unwrap_or_else(|e| panic!("{name}: {e}\n{function}"));
    let by_hand = program.scheduled(&case.entry, &case.options("by_rules"));
    let by_hand = by_hand.unwrap_or_else(|e| panic!("{name}: {e}\n{function}"));
    // Rules schedule after the last differentiation, and drop `stop_gradient`.
    let [made, chosen] = [&by_hand, &auto].map(|s| listing(&stop_gradient::run(s.func())));
    assert_eq!(made, chosen, "{name}\n{function}");
    assert_eq!(by_hand.trace().steps.len(), auto.trace().steps.len(), "{name}\n{function}");
    auto.trace().steps.len()
}

#[test]
fn schedule_functions_make_the_scheduled_programs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Every sixth entry.
    for (programs, derived, least) in [("tests/polybench", true, 10), ("examples", false, 7)] {
        let cases: Vec<Case> = cases(programs, derived, folder.path()).into_iter().step_by(6).collect();
        let steps = programs::for_each(&cases, steps);
        let busy = steps.iter().filter(|n| **n > 0).count();
        assert!(busy >= least, "{programs}: of {} entries, {busy} have a schedule", steps.len());
    }
}

/// Program with small arrays at constant subscripts: the slopes at each point, and a value computed from them.
const SMALL_ARRAYS: &str = "
def f(x: f64[n]) -> f64[n]:
    y = empty((n,), f64)
    for i in range(1, n - 1):
        d = empty((2,), f64)
        for k in static(range(2)):
            d[k] = x[i + k] - x[i + k - 1]
        y[i] = where(d[0] * d[1] > 0.0, sqrt(d[0] * d[1]), 0.0) + d[0] * exp(d[1])
    y[0] = 0.0
    y[n - 1] = 0.0
    return y

back_f = vjp(f)
";

#[test]
fn schedule_functions_vectorise_loops_with_small_arrays() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("small.ft");
    std::fs::write(&file, SMALL_ARRAYS).expect("written");
    for entry in ["f", "back_f"] {
        let case = Case { file: file.clone(), entry: entry.into(), statics: Vec::new() };
        assert!(steps(&case) > 0);
        let program = Program::load(&file).unwrap_or_else(|e| panic!("{e}"));
        let auto = program.scheduled(entry, &case.options("auto")).unwrap_or_else(|e| panic!("{e}"));
        let text = listing(auto.func());
        let lanes = text.lines().filter(|l| l.contains("vectorize")).count();
        assert!(lanes > 0 && !text.contains("d = empty((2,), f64)"), "{entry}\n{text}");
        // The program as written, without steps.
        program.schedule_function(entry, &case.options("none")).unwrap_or_else(|e| panic!("{e}"));
    }
}

const PROGRAM: &str = "
def f(x: f64[n, m], c: inout[f64[m]], to: i32[n]) -> f64[n]:
    y = zeros((n,), f64)
    for i in range(n):
        for j in range(m):
            y[i] += x[i, j]
    for i in range(n):
        y[i] *= 2
        c[to[i]] += y[i]
    return y

def halves(s, loop, by):
    outer, inner = s.split(loop, by)
    return outer, inner

@schedule(f)
def fast(s, by=4):
    outer, inner = halves(s, \"i#1\", by)
    s.parallelize(outer, schedule=\"dynamic\", chunk=2)
    doubled, scattered = s.fission(s.loops()[-1], before=s.writes(\"c\")[0])
    s.vectorize(doubled)
    # by_rules: a name that is taken
";

#[test]
fn schedule_functions_of_the_file_are_expanded() {
    let program = Program::from_source("f.ft", PROGRAM).unwrap_or_else(|e| panic!("{e}"));
    let function = |options: Options| program.schedule_function("f", &options);
    let said = |options: Options| function(options).unwrap_or_else(|e| panic!("{e}"));
    expect_test::expect![[r#"
        @schedule(f)
        def step_by_step(s):
            """The steps of `fast`."""
            s.split("i#1", 4)
            s.parallelize("i~o", schedule="dynamic", chunk=2)
            s.fission("i", before=s.writes("c")[0])
            s.vectorize("i#1")
    "#]]
    .assert_eq(&said(Options::default().schedule("fast")));
    // Parameters of the schedule become numbers.
    let by_eight = said(Options::default().schedule("fast").set("by", taffeta::StaticValue::Int(8)));
    assert!(by_eight.contains("s.split(\"i#1\", 8)\n"), "{by_eight}");
    // A schedule without steps is a function too, and names already in use are avoided.
    expect_test::expect![[r#"
        @schedule(f)
        def step_by_step(s):
            """The steps of `none`."""
    "#]]
    .assert_eq(&said(Options::default().schedule("none")));
    let auto = said(Options::default().portable(true).schedule("auto"));
    assert!(auto.starts_with("@schedule(f)\ndef by_rules_2(s):\n"), "{auto}");
    // A gradient that is not an entry has no schedule functions.
    let gradient = Options::default().schedule("auto").gradient(taffeta::Gradient::default());
    let refused = function(gradient).expect_err("there is no such entry").to_string();
    assert!(refused.contains("schedule::function") && refused.contains("back = vjp(f, wrt=[…])"), "{refused}");
}
