//! Tests of elaboration: programs in, printed trees or diagnostics out.

mod aliasing;
mod calls;
mod declared;
mod diagnostics;
mod gradients;
mod indexing;
mod modifiers;
mod names;
mod programs;
mod protocols;
mod results;
mod schedule_refusals;
mod schedule_selectors;
mod schedule_values;
mod schedules;
mod statements;
mod static_values;
mod storage;
mod tables;
mod types;
mod within;

use std::collections::BTreeMap;
use std::path::Path;
use taffeta_ast::{Func, SourceMap, func, print, validate};
use taffeta_frontend::{Loader, NoHooks, Program, Source};

/// Small operator library for tests, and one module beside the main file.
struct Small;

const LIBRARY: &[(&str, &str)] = &[
    ("matmul", include_str!("matmul.ft")),
    (
        "total",
        "def total(x):\n    s = full((), 0, x.dtype)\n    for i in range(x.shape[0]):\n        s += x[i]\n    return s\n",
    ),
    (
        "paired",
        "def paired(a, b):\n    return _paired(a, b)\n\ndef _paired(x, y):\n    assert x.shape[0] == y.shape[0], f\"paired: `x` has {x.shape[0]} elements, and `y` {y.shape[0]}\"\n    return x[0] + y[0]\n",
    ),
    ("relu", "def relu(x):\n    return max(x, 0)\n"),
    ("sum", "def sum(x):\n    return total(x)\n"),
];

/// Small library of schedules.
const SCHEDULES: &[(&str, &str)] = &[(
    "tile2d",
    "def tile2d(s, i, j, ti=32, tj=32):\n    i0, i1 = s.split(i, ti)\n    j0, j1 = s.split(j, tj)\n    s.reorder([i0, j0, i1, j1])\n    return i0, j0, i1, j1\n",
)];

impl Loader for Small {
    fn load(&self, module: &str, _: Option<&Path>) -> Result<Source, String> {
        match module {
            "tuned" => Ok(Source::inline(
                "tuned.ft",
                "W = 8\n\ndef wide(s, l, w=W):\n    s.vectorize(l, width=w)\n\n@schedule(gemm)\ndef plain(s):\n    s.parallelize(\"i\")\n",
            )),
            "beside" => Ok(Source::inline("beside.ft", "K = 3\n\ndef twice(x):\n    return 2 * x\n")),
            _ => Err(format!("there is no module `{module}`")),
        }
    }

    fn prelude(&self, name: &str) -> Option<Source> {
        let (name, text) = LIBRARY.iter().find(|(n, _)| *n == name)?;
        Some(Source::inline(format!("<libop>/{name}.ft"), *text))
    }

    fn prelude_names(&self) -> Vec<String> {
        LIBRARY.iter().map(|(n, _)| n.to_string()).collect()
    }

    fn schedule(&self, name: &str) -> Option<Source> {
        let (name, text) = SCHEDULES.iter().find(|(n, _)| *n == name)?;
        Some(Source::inline(format!("<libop>/schedules/{name}.ft"), *text))
    }

    fn schedule_names(&self) -> Vec<String> {
        SCHEDULES.iter().map(|(n, _)| n.to_string()).collect()
    }
}

fn load(src: &str) -> Program {
    Program::load(Source::inline("t.ft", src), &Small)
}

/// Elaborates the last entry of a file.
fn elaborate(src: &str) -> Result<Func, String> {
    let program = load(src);
    let name = program.entries().last().map(|e| e.name.clone()).unwrap_or_default();
    program
        .elaborate(&name, &BTreeMap::new(), &NoHooks)
        .map_err(|found| found.0.iter().map(|d| show(d, program.sources())).collect::<String>())
}

/// Formats a diagnostic in a few lines.
fn show(d: &taffeta_ast::Diagnostic, sources: &SourceMap) -> String {
    let mut out = format!("[{}] {}\n", d.code, d.message);
    for l in &d.labels {
        let text = if l.text.is_empty() { String::new() } else { format!(": {}", l.text) };
        let quoted = sources.text(l.span).lines().next().unwrap_or("");
        out += &format!("  at {} `{quoted}`{text}\n", sources.locate(l.span));
    }
    for n in &d.notes {
        out += &format!("  note: {n}\n");
    }
    if let Some(h) = &d.help {
        out += &format!("  help: {h}\n");
    }
    out
}

/// Checks the printed tree of the last entry, that the tree is valid, and that it parses again to the same tree.
#[track_caller]
fn check(src: &str, expect: expect_test::Expect) {
    match elaborate(src) {
        Ok(f) => {
            let text = print::func(&f);
            expect.assert_eq(&text);
            if let Err(e) = validate::logical(&f) {
                panic!("the tree is not valid: {e:?}");
            }
            let again =
                elaborate(&text).unwrap_or_else(|e| panic!("the printed tree does not elaborate:\n{text}\n{e}"));
            assert!(func::same(&f, &again), "printed and parsed, the tree differs:\n{text}\n{}", print::func(&again));
        }
        Err(found) => expect.assert_eq(&found),
    }
}

/// Checks the diagnostics of `taffeta check` for a file.
#[track_caller]
fn check_file(src: &str, expect: expect_test::Expect) {
    let program = load(src);
    let mut found = program.check(&NoHooks);
    // These hooks neither build gradients nor run schedules.
    found.retain(|d| d.code != "unsupported" || !d.message.ends_with("s are not supported yet"));
    expect.assert_eq(&found.iter().map(|d| show(d, program.sources())).collect::<String>());
}
