//! Names of loops in all printed text, equal to those that schedules accept.

use crate::args;
use crate::primitives::common::{Libop, call, entry};
use std::collections::BTreeMap;
use taffeta_ast::{Func, Stmt, StmtKind, print};
use taffeta_frontend::{NoHooks, Program, Source};
use taffeta_schedule::{Arg, Refusal, Schedule, selector, show};

/// Program with loops of the same name beside and inside of each other, of array statements, and of inlined calls.
const PROGRAM: &str = "\
def f(x: f32[n, m], a: f32[n, m]) -> f32[n, m]:
    y = softmax(softmax(x))
    b = a * 2.0
    c = b + y
    for i in range(n):
        for j in range(m):
            c[i, j] += a[i, j]
    for i in range(1, n):
        for k in range(1, m):
            c[i, k] = c[i - 1, k - 1] + c[i, k - 1]
    return c
";

fn program() -> Func {
    let program = Program::load(Source::inline("test.ft", PROGRAM), &Libop);
    program.elaborate("f", &BTreeMap::new(), &NoHooks).unwrap_or_else(|d| panic!("{d}"))
}

/// Returns the program as it is, and after steps that make new loops.
fn schedules() -> Vec<Schedule> {
    let plain = Schedule::new(program());
    let mut split = plain.clone();
    let take = |s: &mut Schedule, method: &str, args: &[Arg]| {
        call(s, method, args).unwrap_or_else(|r| panic!("{method}: {}", r.message))
    };
    take(&mut split, "split", args!["i#1", 4]);
    take(&mut split, "split", args!["b.d0", 8]);
    take(&mut split, "split", args!["softmax.k#2", 2]);
    let mut fused = plain.clone();
    take(&mut fused, "merge", args!["b.d0", "b.d1"]);
    take(&mut fused, "merge", args!["c.d0", "c.d1"]);
    let both = take(&mut fused, "fuse", args!["b.d0~b.d1", "c.d0~c.d1"]);
    take(&mut fused, "split", &[Arg::from(both[0].clone()), Arg::from(4)]);
    vec![plain, split, fused]
}

fn loops(func: &Func) -> Vec<Stmt> {
    let mut out = Vec::new();
    func.body.walk(&mut |s| out.extend(matches!(s.kind(), StmtKind::For { .. }).then(|| s.clone())));
    out
}

/// Returns the loop that a name selects in a schedule.
fn named(func: &Func, name: &str) -> Stmt {
    selector::loop_(func, name).unwrap_or_else(|r| panic!("`{name}`: {}\n{}", r.message, show::program(func)))
}

#[test]
fn every_loop_has_a_unique_name() {
    for s in schedules() {
        let (func, names) = (s.func(), selector::names(s.func()));
        for l in loops(func) {
            assert_eq!(names[&l.id()], s.called(&l));
            assert_eq!(named(func, &names[&l.id()]).id(), l.id(), "{}", names[&l.id()]);
        }
    }
}

#[test]
fn names_are_as_short_as_possible() {
    let func = program();
    let names = selector::names(&func);
    let all: Vec<&str> = loops(&func).iter().map(|l| names[&l.id()].as_str()).collect();
    let library = ["softmax.i#1", "softmax.k#1", "softmax.k#2", "softmax.k#3"];
    let again = ["softmax.i#2", "softmax.k#4", "softmax.k#5", "softmax.k#6"];
    let own = ["b.d0", "b.d1", "c.d0", "c.d1", "i#1", "j", "i#2", "k"];
    assert_eq!(all, [&library[..], &again, &own].concat());
}

#[test]
fn listings_name_loops_by_selector() {
    for s in schedules() {
        let listing = show::program(s.func());
        let lines = listing.lines().map(str::trim_start).filter(|l| l.starts_with("for "));
        let loops = loops(s.func());
        assert_eq!(lines.clone().count(), loops.len());
        for (line, l) in lines.zip(loops) {
            let name = match line.split_once("  # \"") {
                Some((_, comment)) => comment.split('"').next().unwrap_or_default(),
                None => line.split(' ').nth(1).unwrap_or_default(),
            };
            assert_eq!(named(s.func(), name).id(), l.id(), "{line}");
        }
        // The names are comments: the program is the same.
        let plain = print::func(s.func());
        let without: Vec<&str> = listing.lines().map(|l| l.split("  # \"").next().unwrap_or(l)).collect();
        let plain: Vec<&str> = plain.lines().collect();
        assert_eq!(without, plain);
    }
}

/// Returns the quoted words in a refusal's texts that look like names of loops.
fn mentioned(r: &Refusal, func: &Func) -> Vec<String> {
    let bare: Vec<String> = loops(func).iter().filter_map(|l| selector::name(l).map(str::to_string)).collect();
    let texts = std::iter::once(&r.message).chain(&r.notes).chain(&r.help).chain(r.labels.iter().map(|(_, text)| text));
    let quoted = texts.flat_map(|t| t.split(['`', '"']).skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>());
    let like = |q: &String| {
        let name = q.split('#').next().unwrap_or_default();
        bare.iter().any(|b| name == b || name.ends_with(&format!(".{b}")))
    };
    quoted.filter(|q| like(q) && !q.contains(['[', ' ', '('])).collect()
}

#[test]
fn refusals_name_loops_by_selector() {
    let mut seen = 0;
    for s in schedules() {
        let func = s.func().clone();
        let all = loops(&func);
        let mut calls: Vec<(&str, Vec<Arg>)> = Vec::new();
        for l in &all {
            let this = || Arg::from(l.id());
            for method in
                ["parallelize", "vectorize", "reverse", "unroll", "merge", "as_lib", "innermost", "separate_tail"]
            {
                calls.push((method, vec![this()]));
            }
            for other in all.iter().filter(|o| o.id() != l.id()).take(12) {
                calls.push(("fuse", vec![this(), Arg::from(other.id())]));
                calls.push(("merge", vec![this(), Arg::from(other.id())]));
                let both = vec![taffeta_schedule::Value::from(l.id()), taffeta_schedule::Value::from(other.id())];
                calls.push(("reorder", vec![Arg::from(both)]));
            }
        }
        for (method, args) in calls {
            let Err(r) = s.clone().call(method, &args) else { continue };
            for name in mentioned(&r, &func) {
                // Help may name loops that earlier steps make.
                let found = selector::loop_(&func, &name);
                assert!(
                    found.is_ok(),
                    "{method}: `{name}` is not a loop's name in: {} {:?} {:?}",
                    r.message,
                    r.notes,
                    r.help
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "only {seen} names were seen");
}

#[test]
fn changing_bounds_belong_to_the_selected_loop() {
    let text = "
def f(m: inout[i64[1]], y: inout[f32[n]]):
    for k in range(n):
        y[k] = 0.0
    for k in range(m[0]):
        m[0] = 3
";
    for method in ["split", "reverse"] {
        let args: &[Arg] = if method == "split" { args!["k#2", 4] } else { args!["k#2"] };
        let mut s = Schedule::new(entry(text).0);
        let Err(r) = call(&mut s, method, args) else { panic!("{method} is taken") };
        assert!(r.message.contains("`k#2`"), "{method}: {}", r.message);
    }
}
