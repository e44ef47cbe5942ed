//! Campaign of random programs on structured tensors: the interpreter computes the same on the elements, on the arrays
//! of the formats, and on all elements of the program without formats.
//!
//! A failure prints its seed and the shrunk program. The environment variables `FIRST` and `COUNT` choose other seeds.

use cases::generate::FORMATS;
use cases::kernels::{self, KERNELS, any};
use cases::tried::{Went, tried};
use cases::ways::Way;
use cases::{Case, assembled, case, small, ways};
use rayon::prelude::*;
use std::collections::BTreeMap;
use taffeta_ast::format::Format;
use testkit::cases;
use testkit::random::Random;

#[derive(Default, Debug)]
struct Counts {
    /// Number of cases that have no such program.
    none: usize,
    agree: usize,
    end: usize,
    dense: usize,
    refused: BTreeMap<String, usize>,
}

/// Returns the sort of a failure: its first three words.
fn sort_of(problem: &str) -> String {
    problem.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Replaces the names in the message of a refusal by `_`.
fn reason(why: &str) -> String {
    why.split('`').step_by(2).collect::<Vec<_>>().join("_")
}

fn shown(case: &Case) -> String {
    format!("seed {}, {:?}, sizes {:?}\n{}", case.seed, case.kind, case.sizes, case.text(true))
}

/// Check of a case; a failing case is shrunk and shown.
type Tried = fn(&Case) -> Result<Option<Went>, String>;

fn plain(case: &Case) -> Result<Option<Went>, String> {
    tried(case).map(Some)
}

fn counted(all: Vec<Case>, tried: Tried) -> Counts {
    let one = |case: &Case| {
        let went = tried(case);
        let failure = went.as_ref().err().map(|what| {
            let same = |c: &Case| tried(c).is_err_and(|e| sort_of(&e) == sort_of(what));
            let small = small(case, &mut { same });
            let what = tried(&small).err().unwrap_or_default();
            let text = format!("{}{what}", shown(&small));
            // A long run prints each failure when it is found.
            println!("{text}");
            text
        });
        (went, failure)
    };
    let (total, all): (usize, Vec<_>) = (all.len(), all.par_iter().map(one).collect());
    let mut counts = Counts::default();
    for (went, _) in &all {
        match went {
            Ok(None) => counts.none += 1,
            Ok(Some(Went::Agrees { ends, dense })) => {
                counts.agree += 1;
                counts.end += usize::from(*ends);
                counts.dense += usize::from(*ends && *dense);
            }
            Ok(Some(Went::Refused(why))) => *counts.refused.entry(reason(why)).or_default() += 1,
            Err(_) => {}
        }
    }
    println!("{total} programs: {counts:#?}");
    let failures: Vec<String> = all.into_iter().filter_map(|(_, f)| f).collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures[..failures.len().min(3)].join("\n\n"));
    counts
}

fn seeds(most: u64) -> (u64, u64) {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    (number("FIRST", 0), number("COUNT", most))
}

#[test]
fn random_programs_agree() {
    let (first, most) = seeds(200);
    let counts = counted((first..first + most).map(case).collect(), plain);
    let refused: usize = counts.refused.values().sum();
    assert!(20 * refused < counts.agree, "{refused} of {most} programs are refused");
    assert!(10 * counts.end > 9 * counts.agree, "only {} programs come to their end", counts.end);
    assert!(2 * counts.dense > counts.agree, "only {} programs are compared with all elements", counts.dense);
}

/// Checks random programs that make tensors in random formats: the arrays are those of the packed elements.
#[test]
fn programs_that_assemble_agree() {
    let (first, most) = seeds(200);
    let counts = counted((first..first + most).map(assembled).collect(), plain);
    let refused: usize = counts.refused.values().sum();
    assert!(2 * refused < counts.agree, "{refused} of {most} programs are refused");
    assert!(2 * counts.end > counts.agree, "only {} programs come to their end", counts.end);
}

/// Checks each format at the operands of every fourth kernel, with random formats of the other operands.
#[test]
fn kernels_in_every_format() {
    let mut random = Random(1);
    let mut all = Vec::new();
    for (number, kernel) in KERNELS.iter().enumerate() {
        for (k, (_, dims)) in kernel.operands.iter().enumerate() {
            for format in FORMATS[dims.len() - 1].iter().skip((number + k) % 4).step_by(4) {
                let mut formats: Vec<Format> = kernel.operands.iter().map(|o| any(o.1.len(), &mut random)).collect();
                formats[k] = format.clone();
                all.push(kernel.case(&formats, all.len() as u64));
            }
        }
    }
    let counts = counted(all, plain);
    let refused: usize = counts.refused.values().sum();
    assert!(50 * refused < counts.agree, "{refused} programs are refused");
}

/// Checks random kernels with random formats of all operands, on other data.
#[test]
fn kernels_in_random_formats() {
    counted((0..200).map(kernels::random).collect(), plain);
}

/// Checks random programs and kernels under random steps, and their derivatives.
#[test]
fn schedules_and_derivatives_agree() {
    agree(Way::Scheduled, 30, |c| ways::tried(c, Way::Scheduled));
    agree(Way::Backward, 30, |c| ways::tried(c, Way::Backward));
    agree(Way::Forward, 30, |c| ways::tried(c, Way::Forward));
}

/// Checks random programs and kernels, and their gradients, under the steps that rules choose.
#[test]
fn automatic_schedules_agree() {
    agree(Way::Automatic, 20, |c| ways::tried(c, Way::Automatic));
    agree(Way::AutomaticBackward, 20, |c| ways::tried(c, Way::AutomaticBackward));
}

fn agree(way: Way, most: u64, tried: Tried) {
    let (first, most) = seeds(most);
    let cases = (first..first + most).map(|seed| if seed % 3 == 0 { kernels::random(seed) } else { case(seed) });
    println!("{way:?}");
    let counts = counted(cases.collect(), tried);
    let refused: usize = counts.refused.values().sum();
    // Marks are set before lowering is asked whether it supports such loops.
    assert!(12 * refused < counts.agree, "{way:?}: {refused} are refused");
    assert!(10 * counts.end > 8 * counts.agree, "{way:?}: only {} come to their end", counts.end);
    assert!(3 * counts.agree as u64 > most, "{way:?}: only {} programs", counts.agree);
}
