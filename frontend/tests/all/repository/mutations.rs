//! Checks that programs with random mistakes never make elaboration panic, and that accepted ones are valid and print
//! as themselves.

use super::library::Record;
use super::{Tree, problem, programs, root, source};
use std::collections::BTreeMap;
use taffeta_ast::Func;
use taffeta_frontend::{NoHooks, Program, Source};
use testkit::mutate::{REPLACEMENTS, Random, mutate};

/// Returns whether the entry, a size or a tensor of its interface has the name of a word that the printed program needs
/// (`range`).
fn hides_a_word(f: &Func) -> bool {
    let is_word = |n: &str| REPLACEMENTS.contains(&n) && n.len() > 1;
    is_word(&f.name) || f.sizes.iter().any(|s| is_word(s.name())) || f.interface().any(|t| is_word(t.symbol.name()))
}

/// File with schedules that use all constructs.
const SCHEDULES: &str = r#"FACTOR = 16


def gemm(a: f32[n, m], b: f32[m, p], w: static = 2) -> f32[n, p]:
    c = zeros((n, p), f32)
    for i in range(n):
        for j in range(p):
            for k in range(m):
                c[i, j] += w * a[i, k] * b[k, j]
    return c


def cut(s, l, times, factor=FACTOR):
    if times == 0:
        return [l]
    outer, inner = s.split(l, factor)
    return [outer] + cut(s, inner, times - 1, factor=factor // 2)


@schedule(gemm)
def base(s, loops=["i", "j"], flag=True):
    for k, l in enumerate(loops):
        if flag and s.can("parallelize", l):
            s.parallelize(l, schedule="static", chunk=2 ** k)
        elif not flag or k in range(3):
            s.vectorize(s.innermost(l), width=8 if k == 0 else 4)
        else:
            assert k > 0, f"{k} of {len(loops)}"


@schedule(gemm)
def all(s, ti=32):
    base(s, flag=False)
    i0, j0, i1, j1 = tile2d(s, "i", "j", tj=ti)
    (x, y), z = s.split(j1, 4), [i0, j0]
    z += [l for l in cut(s, y, 2) if l != x]
    s.reorder(z[1:] + z[:1])
    s.permute([i1, x], lambda i, j: (i + j * FACTOR, n - 1 - j))
    for a, b in ndrange(2, 2):
        s.unroll(f"c.d{a + b}", factor=min(a, b, ti))
    parallel_vector(s, i0, width=s.length("k"))
"#;

#[test]
fn mutants_of_schedules_never_panic() {
    let tree = Tree::new();
    let mut random = Random(20_261_121);
    let (mut parsed, mut accepted) = (0, 0);
    for k in 0..1000 {
        // The first mutant is the text itself; the others have mistakes in one line.
        let mut lines: Vec<String> = SCHEDULES.lines().map(|l| format!("{l}\n")).collect();
        if k > 0 {
            let full: Vec<usize> = (0..lines.len()).filter(|l| !lines[*l].trim().is_empty()).collect();
            let at = full[random.below(full.len())];
            lines[at] = mutate(&lines[at], &mut random);
        }
        let text = lines.concat();
        let outcome = std::panic::catch_unwind(|| {
            let program = Program::load(Source::inline("mutant.ft", text.clone()), &tree);
            let _ = program.check(&NoHooks);
            let asked = program.schedules();
            let run = |name: &str, of: &str| program.scheduled(of, name, &BTreeMap::new(), &Record::default());
            (
                usize::from(program.diagnostics().is_empty()),
                asked.iter().filter(|s| run(&s.name, &s.target).is_ok()).count(),
            )
        });
        match outcome {
            Ok((p, a)) => {
                assert!(k > 0 || a == 2, "the unchanged schedules are refused");
                (parsed, accepted) = (parsed + p, accepted + a);
            }
            Err(_) => panic!("this mutant panics:\n{text}"),
        }
    }
    println!("{parsed} parsed, {accepted} schedules accepted");
    assert!(parsed > 120, "only {parsed} mutants parsed");
    assert!(accepted > 120, "only {accepted} schedules of mutants were accepted");
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
