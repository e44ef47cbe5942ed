//! Programs with random mistakes are refused or accepted, but never make elaboration panic, and what is accepted is valid
//! and prints as itself.

use super::{Tree, problem, programs, root, source};
use std::collections::BTreeMap;
use weft_ast::Func;
use weft_frontend::{NoHooks, Program, Source};

/// A small generator with a fixed seed (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Words, numbers and single signs, with the white space between them.
fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' || c == '.' {
            0
        } else if c == ' ' {
            1
        } else {
            2
        }
    };
    for c in text.chars() {
        match out.last_mut() {
            Some(last) if class(c) < 2 && last.chars().last().map(class) == Some(class(c)) => last.push(c),
            _ => out.push(c.to_string()),
        }
    }
    out
}

const REPLACEMENTS: &[&str] = &[
    "0",
    "1",
    "-1",
    "3",
    "0.5",
    "True",
    "None",
    "n",
    "x",
    "y",
    "i",
    "j",
    "f32",
    "f64",
    "i32",
    "bool",
    "inf",
    "[]",
    "()",
    "...",
    ":",
    "::-1",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "<",
    "==",
    "and",
    "or",
    "not",
    "range",
    "static",
    "zeros",
    "empty",
    "sum",
    "max",
    "abs",
    "len",
    "cast",
    "shape",
    "dtype",
    "T",
    "\"a\"",
    "(0, 1)",
    "[0, 1]",
    "[1, x]",
    "9999999999999999999",
    "-9223372036854775808",
    "if",
    "else",
    "in",
    "is",
    "x[0]",
    "x[x]",
    "x.shape",
    "None, 0",
    "1e400",
    "255",
    "grad",
];

fn mutate(text: &str, random: &mut Random) -> String {
    let mut all = tokens(text);
    for _ in 0..=random.below(3) {
        // White space and ends of lines stay, or hardly any mutant would parse.
        let words: Vec<usize> = (0..all.len()).filter(|k| !all[*k].trim().is_empty()).collect();
        let at = words[random.below(words.len())];
        match random.below(4) {
            0 => all[at] = all[words[random.below(words.len())]].clone(),
            1 => {
                let other = words[random.below(words.len())];
                all.swap(at, other);
            }
            _ => all[at] = REPLACEMENTS[random.below(REPLACEMENTS.len())].to_string(),
        }
    }
    all.concat()
}

/// Whether the entry, or what it shows to its callers, is called like a word that the printed program needs (`range`).
fn hides_a_word(f: &Func) -> bool {
    let is_word = |n: &str| REPLACEMENTS.contains(&n) && n.len() > 1;
    is_word(&f.name) || f.sizes.iter().any(|s| is_word(s.name())) || f.interface().any(|t| is_word(t.symbol.name()))
}

#[test]
fn mutants_never_panic() {
    let tree = Tree::new();
    let mut files = Vec::new();
    for folder in ["examples", "tests/polybench", "tests/corpus"] {
        programs(&root().join(folder), &mut files);
    }
    files.sort();
    let rounds: usize = std::env::var("MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
    let seed = std::env::var("SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(20_260_401);
    println!("seed {seed}");
    let mut random = Random(seed);
    let (mut parsed, mut accepted) = (0, 0);
    for path in &files {
        let Ok(main) = source(path.display().to_string(), path) else { continue };
        for _ in 0..rounds {
            let text = mutate(&main.text, &mut random);
            let mutant = Source { text: text.clone().into(), ..main.clone() };
            let outcome = std::panic::catch_unwind(|| {
                let program = Program::load(mutant, &tree);
                if !program.diagnostics().is_empty() {
                    return (0, 0);
                }
                let mut accepted = 0;
                for entry in program.entries() {
                    if let Ok(f) = program.elaborate(&entry.name, &BTreeMap::new(), &NoHooks) {
                        accepted += 1;
                        if let Some(wrong) = problem(&entry.name, &f).filter(|_| !hides_a_word(&f)) {
                            panic!("{wrong}");
                        }
                    }
                }
                (1, accepted)
            });
            match outcome {
                Ok((p, a)) => (parsed, accepted) = (parsed + p, accepted + a),
                Err(_) => panic!("this mutant of {} panics:\n{text}", path.display()),
            }
        }
    }
    assert!(parsed > files.len() / 4, "only {parsed} mutants parsed");
    assert!(accepted > files.len() / 4, "only {accepted} entries of mutants were accepted");
}
