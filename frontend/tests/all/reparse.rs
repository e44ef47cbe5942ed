//! Printed programs parse and elaborate to the tree that was printed: the printer and the front end agree on every
//! node.

use taffeta_ast::random::{Case, Floats, Options, program, shrink};
use taffeta_ast::{Func, func, print};
use taffeta_frontend::{NoHooks, NoLoader, Program, Source};

/// Elaborates a printed program; returns the diagnostics of a refusal.
fn read(text: &str) -> Result<Func, String> {
    let program = Program::load(Source::inline("printed.ft", text), &NoLoader);
    program.elaborate("random", &Default::default(), &NoHooks).map_err(|d| d.to_string())
}

fn comes_back(case: &Case) -> bool {
    let Ok(again) = read(&print::func(&case.func)) else { return false };
    // A store of a difference from its own element is read as a reduction.
    func::same(&case.func, &again) || matches!(read(&print::func(&again)), Ok(third) if func::same(&again, &third))
}

#[test]
fn random_programs_round_trip() {
    for seed in 0..400 {
        let options = Options {
            floats: if seed % 2 == 0 { Floats::Exact } else { Floats::Any },
            errors: seed % 3 == 0,
            ..Options::default()
        };
        let case = program(seed, &options);
        if !comes_back(&case) {
            let text = print::func(&shrink(&case, &mut |smaller| !comes_back(smaller)).func);
            match read(&text) {
                Ok(again) => panic!("seed {seed} comes back as another program\n{text}\n{}", print::func(&again)),
                Err(refused) => panic!("seed {seed} is refused: {refused}\n{text}"),
            }
        }
    }
}

/// Prints an entry, elaborates the text, and prints it again under its printed name.
fn printed_twice(text: &str, entry: &str, printed_entry: &str) -> (String, String) {
    let elaborate = |text: &str, entry: &str| {
        let program = Program::load(Source::inline("words.ft", text), &NoLoader);
        match program.elaborate(entry, &Default::default(), &NoHooks) {
            Ok(f) => print::func(&f),
            Err(found) => panic!("{entry} is refused: {found}\n{text}"),
        }
    };
    let first = elaborate(text, entry);
    let second = elaborate(&first, printed_entry);
    (first, second)
}

#[test]
fn keywords_of_the_printed_text_can_be_names() {
    let words = "\
def min(range: f32[cast, inf], exp2: f32[cast], empty: f64) -> f64:
    log = 0.0
    nan: f64 = 0.0
    for max in ndrange(cast):
        nan += exp(exp2[max]) * empty + range[max, 0]
        log += 1
    return nan
";
    let (first, second) = printed_twice(words, "min", "min_1");
    assert_eq!(first, second);
    let constant = "BIG = inf\ndef e(inf: f64) -> f64:\n    return inf * -BIG\n";
    let (first, second) = printed_twice(constant, "e", "e");
    assert!(first.contains("inf_1: f64") && first.contains("-inf"), "{first}");
    assert_eq!(first, second);
}

/// Checks that operands which a reduction combines first are folded as other constants are.
#[test]
fn combined_constants_of_reductions_are_folded() {
    let text = "\
def f(x: f32[n]) -> f32[n]:
    y = zeros((n,), f32)
    for i in range(n):
        y[i] = x[i]
        y[i] = max(max(y[i], -6.0), -5.0)
        y[i] = y[i] + 0.1 + 0.2
        y[i] = 0.1 + (0.2 + y[i]) - 0.3
    return y
";
    let (first, second) = printed_twice(text, "f", "f");
    assert_eq!(first, second);
    assert!(first.contains("y[i] = max(y[i], -5.0)"), "{first}");
}
