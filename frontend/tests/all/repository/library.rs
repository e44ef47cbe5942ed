//! The library of schedules: the example of each, and its calls on the schedule.

use super::{Tree, describe, root};
use expect_test::expect;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use taffeta_ast::{Diagnostics, Func};
use taffeta_frontend::{
    GradientRequest, Hooks, Loader, NoHooks, Program, ScheduleCall, ScheduleRequest, ScheduleValue, Scheduler, Source,
};

/// Scheduler that records every call, and answers with as many new handles as the primitive makes.
#[derive(Default)]
struct Recorder {
    handles: u64,
    questions: usize,
    calls: String,
}

impl Scheduler for Recorder {
    fn call(&mut self, call: ScheduleCall) -> Result<ScheduleValue, Diagnostics> {
        let mut handle = || {
            self.handles += 1;
            ScheduleValue::Handle(self.handles - 1)
        };
        let answer = match call.method.as_str() {
            "split" => ScheduleValue::Tuple(vec![handle(), handle()]),
            "merge" | "fuse" | "innermost" => handle(),
            // The first question is answered with no, later ones with yes.
            "can" => {
                self.questions += 1;
                ScheduleValue::Bool(self.questions > 1)
            }
            "length" => ScheduleValue::Int(3),
            _ => ScheduleValue::None,
        };
        let arg = |a: &taffeta_frontend::ScheduleArg| match &a.name {
            Some(name) => format!("{name}={}", a.value),
            None => a.value.to_string(),
        };
        let args: Vec<String> = call.args.iter().map(arg).collect();
        write!(self.calls, "    {}({})", call.method, args.join(", ")).expect("a string takes text");
        if answer != ScheduleValue::None {
            write!(self.calls, " -> {answer}").expect("a string takes text");
        }
        self.calls.push('\n');
        Ok(answer)
    }
}

/// Hooks that keep the calls of a schedule.
#[derive(Default)]
pub(crate) struct Record(Mutex<String>);

impl Hooks for Record {
    fn gradient(&self, request: GradientRequest) -> Result<Func, Diagnostics> {
        Ok(request.func)
    }

    fn schedule(&self, request: ScheduleRequest<'_>) -> Result<Func, Diagnostics> {
        let mut recorder = Recorder::default();
        request.run(&mut recorder)?;
        *self.0.lock().expect("one thread") = recorder.calls;
        Ok(request.func.clone())
    }
}

/// Returns the names that a file defines, each with the example in its docstring.
fn examples(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for function in text.split("\ndef ").skip(1) {
        let name = function.split('(').next().unwrap_or_default().to_string();
        let example = function.split("    Example:\n").nth(1).and_then(|e| e.split("    \"\"\"").next());
        let code = example.unwrap_or_default().lines().map(|l| l.get(8..).unwrap_or_default().to_string() + "\n");
        out.push((name, code.collect()));
    }
    out
}

#[test]
fn every_library_schedule_runs_its_example() {
    let tree = Tree::new();
    let mut files: Vec<_> = std::fs::read_dir(root().join("libop/schedules"))
        .expect("libop is beside")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let mut shown = String::new();
    for path in files {
        for (name, code) in examples(&std::fs::read_to_string(&path).expect("text")) {
            let target = code.split("@schedule(").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or_default();
            let schedule = code.split("def ").nth(1).and_then(|rest| rest.split('(').next()).unwrap_or_default();
            let text = format!("def {target}(x: f32[n]):\n    pass\n\n{code}");
            let program = Program::load(Source::inline("example.ft", text.clone()), &tree);
            let record = Record::default();
            if let Err(found) = program.scheduled(target, schedule, &BTreeMap::new(), &record) {
                panic!("{name}: {}\n{text}", describe(&program, &found));
            }
            let calls = record.0.into_inner().expect("one thread");
            write!(shown, "{name}\n{calls}").expect("a string takes text");
        }
    }
    expect![[r#"
        fuse_all
            fuse("i", "j") -> #0
            fuse(#0, "k") -> #1
            parallelize(#1)
        fuse_where_legal
            can("fuse", "a.d0", "b.d0") -> False
            can("fuse", "b.d0", "c.d0") -> True
            fuse("b.d0", "c.d0") -> #0
            parallelize("a.d0")
            parallelize(#0)
        parallel_vector
            innermost("i") -> #0
            parallelize("i")
            vectorize(#0)
        parallel_chunks
            split("i", 4096) -> (#0, #1)
            parallelize(#0)
            vectorize(#1)
        parallel_outermost
            can("parallelize", "t") -> False
            can("parallelize", "i") -> True
            parallelize("i")
        tile2d
            split("i", 32) -> (#0, #1)
            split("j", 64) -> (#2, #3)
            reorder([#0, #2, #1, #3])
            parallelize(#0)
        tile3d
            split("i", 32) -> (#0, #1)
            split("j", 32) -> (#2, #3)
            split("k", 128) -> (#4, #5)
            reorder([#0, #2, #4, #1, #3, #5])
            parallelize(#0)
        parallel_tiles
            split("y", 16) -> (#0, #1)
            split("x", 256) -> (#2, #3)
            reorder([#0, #2, #1, #3])
            merge(#0, #2) -> #4
            parallelize(#4)
            vectorize(#3)
        interchange
            reorder(["i", "j"])
        unroll_short
            length("j") -> 3
            unroll("j")
        vector_unroll
            split("i", 32) -> (#0, #1)
            split(#1, 8) -> (#2, #3)
            unroll(#2)
            vectorize(#3)
    "#]]
    .assert_eq(&shown);
}

/// Page of the book: its `taffeta` blocks, by name.
struct Page<'t> {
    blocks: BTreeMap<String, String>,
    tree: &'t Tree,
}

impl Loader for Page<'_> {
    fn load(&self, module: &str, _: Option<&Path>) -> Result<Source, String> {
        let name = format!("{module}.ft");
        let text = self.blocks.get(&name).ok_or_else(|| format!("the page has no `{name}`"))?;
        Ok(Source::inline(name, text.as_str()))
    }

    fn prelude(&self, name: &str) -> Option<Source> {
        self.tree.prelude(name)
    }

    fn prelude_names(&self) -> Vec<String> {
        self.tree.prelude_names()
    }

    fn schedule(&self, name: &str) -> Option<Source> {
        self.tree.schedule(name)
    }

    fn schedule_names(&self) -> Vec<String> {
        self.tree.schedule_names()
    }
}

#[test]
fn the_schedules_of_the_book_run() {
    let page = std::fs::read_to_string(root().join("docs/src/reference/schedules.md")).expect("the page is there");
    let blocks = page.split("```taffeta\n# ").skip(1).filter_map(|b| {
        let (name, rest) = b.split_once('\n')?;
        Some((name.to_string(), rest.split("```").next()?.to_string()))
    });
    let tree = Tree::new();
    let page = Page { blocks: blocks.collect(), tree: &tree };
    let mut shown = String::new();
    for (name, text) in &page.blocks {
        let program = Program::load(Source::inline(name.as_str(), text.as_str()), &page);
        // Without hooks no schedule runs; the loop below runs them.
        let found: Vec<_> = program.check(&NoHooks).into_iter().filter(|d| d.code != "unsupported").collect();
        assert_eq!(found, [], "{name}");
        for schedule in program.schedules() {
            let record = Record::default();
            if let Err(found) = program.scheduled(&schedule.target, &schedule.name, &BTreeMap::new(), &record) {
                panic!("{name}: {}", describe(&program, &found));
            }
            let calls = record.0.into_inner().expect("one thread");
            write!(shown, "{name} {}\n{calls}", schedule.name).expect("a string takes text");
        }
    }
    expect![[r#"
        gemm.ft tiled
            split("i", 64) -> (#0, #1)
            split("j", 64) -> (#2, #3)
            reorder([#0, #2, #1, #3])
            parallelize(#0)
            can("vectorize", #3) -> False
        parts.ft blocks
            split("i", 64) -> (#0, #1)
            split("j", 64) -> (#2, #3)
            reorder([#0, #2, #1, #3])
            vectorize(#3)
        parts.ft fast
            split("i", 128) -> (#0, #1)
            split("j", 128) -> (#2, #3)
            reorder([#0, #2, #1, #3])
            vectorize(#3)
            parallelize("i~o")
        wave.ft skewed
            permute(["i", "j"], lambda i, j: (i + j, j))
    "#]]
    .assert_eq(&shown);
}

#[test]
fn the_book_lists_the_library() {
    let page = std::fs::read_to_string(root().join("docs/src/reference/schedules.md")).expect("the page is there");
    for entry in std::fs::read_dir(root().join("libop/schedules")).expect("libop is beside") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("text");
        for line in text.lines().filter_map(|l| l.strip_prefix("def ")) {
            let signature = line.trim_end_matches(':');
            assert!(page.contains(&format!("| `{signature}` |")), "the book does not list `{signature}`");
        }
    }
}
