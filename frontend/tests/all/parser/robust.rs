//! Robustness: no text makes the parser panic, overflow the stack or point outside the text; and its time is linear in
//! the text.

use super::spans;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use taffeta_ast::span::FileId;
use taffeta_frontend::parse::{MAX_BLOCKS, MAX_BRACKETS, MAX_DEPTH, parse};
use testkit::texts;

/// Parses a text, and checks that every span of the tree and of the diagnostics lies in it.
fn hold(text: &str) {
    let (module, diags) = parse(text, FileId(7));
    spans::check(&module, text);
    for diag in &diags {
        assert!(!diag.labels.is_empty() || text.is_empty(), "the diagnostic has no position: {diag}");
        assert!(diag.help.is_some(), "the diagnostic has no help: {diag}");
        for label in &diag.labels {
            let (start, end) = (label.span.start as usize, label.span.end as usize);
            assert!(text.get(start..end).is_some(), "{start}..{end} is not a part of {text:?}");
        }
    }
}

/// Returns a runner of properties with a fixed seed; proptest shrinks and prints failures.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]))
}

#[test]
fn random_characters() {
    for pattern in [".{0,200}", "[\\PC\\n\\r\\t\"'#\\\\(){}\\[\\]:=]{0,200}"] {
        let property = |text: String| {
            hold(&text);
            Ok(())
        };
        runner(1000).run(&pattern, property).unwrap();
    }
    (0..2000).for_each(|seed| hold(&texts::noise(seed)));
}

#[test]
fn token_soup() {
    (0..6000).for_each(|seed| hold(&texts::soup(seed)));
}

#[test]
fn mutated_programs() {
    (0..1500).for_each(|seed| hold(&texts::mutant(seed)));
}

#[test]
fn every_prefix_of_a_program() {
    let program = texts::program(3);
    for end in (0..program.len()).filter(|end| program.is_char_boundary(*end)) {
        hold(&program[..end]);
    }
}

/// Checks deep and long sources on a thread with the usual small stack.
#[test]
fn depth_is_bounded() {
    let n = 20_000;
    let wrap =
        |open: &str, inner: &str, close: &str, n: usize| format!("x = {}{inner}{}\n", open.repeat(n), close.repeat(n));
    let blocks: String = (0..1000).map(|i| format!("{}if a:\n", " ".repeat(i))).collect();
    let sources = [
        wrap("(", "1", ")", n),
        wrap("[", "", "]", n),
        wrap("f(", "1", ")", n),
        wrap("x[", "1", "]", n),
        wrap("(", "1", "", n),
        wrap("", "1", ")", n),
        wrap("[x for x in ", "y", "]", n),
        wrap("not ", "1", "", n),
        wrap("-", "1", "", n),
        wrap("a if b else ", "1", "", n),
        wrap("lambda: ", "1", "", n),
        wrap("", "a", ".b", n),
        wrap("", "a", "(1)", n),
        wrap("", "a", "[1]", n),
        wrap("", "a", " + a", n),
        wrap("", "a", " ** a", n),
        wrap("", "a", " < a", n),
        wrap("", "a", " and a", n),
        wrap("", "a", ", a", n),
        wrap("", "'a'", " 'a'", n),
        wrap("f'{", "1", "}'", n),
        format!("x = f'{}1{}'\n", "{(".repeat(n), ")}".repeat(n)),
        format!("x = f'{{{}1{}}}'\n", "(".repeat(n), ")".repeat(n)),
        format!("def f():\n    if a: pass\n{}", "    elif a: pass\n".repeat(n)),
        format!("def f():\n{}", blocks.replace("if", " if")),
        blocks,
        format!("x = {}\n", "9".repeat(n)),
        format!("x = 1.{}\n", "9".repeat(n)),
        "x = 1;".repeat(n),
        "@f\n".repeat(n),
        "\\\n".repeat(n),
    ];
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(move || sources.iter().for_each(|source| hold(source))).unwrap().join().unwrap();
}

/// Checks that sources at the bounds are accepted, and sources one beyond are refused.
#[test]
fn limits_are_exact() {
    let accepted = |text: &str| parse(text, FileId(0)).1.is_empty();
    let brackets = |n| format!("x = {}1{}\n", "f(".repeat(n), ")".repeat(n));
    let sum = |n| format!("x = a{}\n", " + a".repeat(n));
    let blocks = |n: usize| {
        let heads: String = (0..n).map(|i| format!("{}if a:\n", " ".repeat(i + 1))).collect();
        format!("def f():\n{heads}{}pass\n", " ".repeat(n + 1))
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let check = move || {
        assert!(accepted(&brackets(MAX_BRACKETS)) && !accepted(&brackets(MAX_BRACKETS + 1)));
        assert!(accepted(&sum(MAX_DEPTH)) && !accepted(&sum(MAX_DEPTH + 1)));
        assert!(accepted(&blocks(MAX_BLOCKS - 1)) && !accepted(&blocks(MAX_BLOCKS)));
    };
    thread.spawn(check).unwrap().join().unwrap();
}
