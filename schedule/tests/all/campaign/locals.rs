//! Programs in which values pass through local tensors, under the steps that privatise or contract tensors, and those
//! that enable them.

use crate::campaign::over;
use taffeta_analysis::pass::rewrite_accesses;
use taffeta_ast::build::{block, local, range, store, var_def};
use taffeta_ast::random::nest::{Class, nest};
use taffeta_ast::{Expr, Func, Stmt, Symbol, Tensor};
use testkit::steps::Chooser;
use testkit::tried::{Counts, by};

/// Primitives to choose from; duplicates are chosen more often.
const METHODS: [&str; 11] = [
    "privatize",
    "privatize",
    "contract",
    "contract",
    "fuse",
    "fuse",
    "fission",
    "split",
    "reorder",
    "parallelize",
    "cache",
];

/// Copies all elements of a tensor from another one of its shape.
fn copied(from: &Tensor, to: &Tensor) -> Stmt {
    let iters: Vec<Symbol> = to.shape.iter().map(|_| Symbol::new("c")).collect();
    let at: Vec<Expr> = iters.iter().map(Expr::var).collect();
    let one = store(to, &at, &from.load(at.iter().cloned()));
    iters.iter().zip(&to.shape).rev().fold(one, |s, (i, n)| range(i, [&Expr::int(0), n, &Expr::int(1)], s))
}

/// Replaces a tensor that the program writes by a local one. The local tensor may be filled at the beginning, and
/// copied back at the end.
fn localized(func: &Func, seed: u64) -> Func {
    let name = ["x", "x", "y", "q"][seed as usize % 4];
    let Some(p) = func.params.iter().find(|p| p.tensor.symbol.name() == name) else { return func.clone() };
    let shape: Vec<&Expr> = p.tensor.shape.iter().collect();
    let t = local("t", p.tensor.dtype, shape);
    let names = [(p.tensor.symbol.clone(), t.symbol.clone())].into_iter().collect();
    let mut parts = vec![rewrite_accesses::run(&func.body, &names, &|at| at)];
    if (seed / 4).is_multiple_of(3) {
        parts.insert(0, copied(&p.tensor, &t));
    }
    if (seed / 12).is_multiple_of(3) {
        parts.push(copied(&t, &p.tensor));
    }
    func.with_body(var_def(&t, block(parts)))
}

fn locals(class: Class, most: u64) -> Counts {
    over(&format!("{class:?} with locals"), most, &|seed, counts| {
        let func = nest(seed, class);
        let func = if class == Class::Dense { func } else { localized(&func, seed) };
        by(Chooser::among(seed, METHODS.to_vec()), func, seed, counts)
    })
}

/// Fails if a step was hardly ever accepted.
fn taken(counts: &Counts, step: &str, least: u64) {
    let taken = counts.steps.get(step).map_or(0, |(_, taken)| *taken);
    assert!(taken >= least, "{step} was taken {taken} times\n{counts}");
}

#[test]
fn affine_programs_with_locals() {
    let counts = locals(Class::Affine, 100);
    taken(&counts, "privatize", 6);
    taken(&counts, "contract", 12);
}

#[test]
fn programs_with_indirect_accesses_to_locals() {
    let counts = locals(Class::Wild, 100);
    taken(&counts, "privatize", 6);
    taken(&counts, "contract", 6);
}

#[test]
fn programs_that_fill_locals_in_loops() {
    let counts = locals(Class::Private, 100);
    taken(&counts, "privatize", 6);
    taken(&counts, "contract", 12);
}

#[test]
fn dense_programs_with_locals() {
    let counts = locals(Class::Dense, 100);
    taken(&counts, "privatize", 12);
    taken(&counts, "contract", 12);
}
