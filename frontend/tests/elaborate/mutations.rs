//! Programs with random mistakes are refused or accepted, but never make elaboration panic, and what is accepted is valid
//! and prints as itself.

use super::mutate::{REPLACEMENTS, Random, mutate};
use super::{Tree, problem, programs, root, source};
use std::collections::BTreeMap;
use weft_ast::Func;
use weft_frontend::{NoHooks, Program, Source};

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
