//! Rewriting of writes to tensors with shared values, in which one stored value stands for several elements (runs,
//! symmetric matrices).
//!
//! **Does**: turns every write to such a tensor into a store on which all elements of one value agree: each element has
//! the value that it would have in a dense tensor, and a reduction counts once. In loop nests that treat all elements
//! of a value alike, an element that is reduced into, or read between two writes, is promoted to a scalar. Where
//! agreement is not proved, the elements are in a dense tensor, and are compared after the last write.
//!
//! **Requires**: a logical program.
//!
//! **Ensures**: any of the stores to one value may come last. An element without a write is the fill.
//!
//! **Example**: `B` has the pattern of `A`, which has runs
//!
//! before
//! ```text
//! for i in range(n):
//!     for j in range(m):
//!         B[i, j] += A[i, j]
//! ```
//! after
//! ```text
//! B_before: f64[n, m] @ pattern(A) = empty((n, m), f64)
//! for i in range(n):
//!     for j in range(m):
//!         B_before[i, j] = B[i, j]
//! for i in range(n):
//!     for j in range(m):
//!         B_now = empty((), f64)
//!         B_now = B_before[i, j]
//!         B_now += A[i, j]
//!         B[i, j] = B_now
//! ```
//!
//! **Leaves alone**: adjoints, whose elements are summed ([`taffeta_ast::format::Format::sums`]), parameters, and
//! tensors with a pattern of their own, whose assembly compares the elements.

mod alike;
mod apart;
mod scalars;
mod sites;

use sites::is_shared;
use std::sync::Arc;
use taffeta_ast::{Diagnostics, Func, StmtKind, Symbol, Tensor};

/// Rewrites the program so that any of the stores to one value may come last.
///
/// # Errors
///
/// Writes that are not proved to agree, to a tensor that does not store every element.
pub fn run(func: &Func) -> Result<Func, Diagnostics> {
    let all = sharing(func);
    let mut dense: Vec<Symbol> = Vec::new();
    loop {
        let (own, rest): (Vec<_>, Vec<_>) = all.iter().partition(|t| dense.contains(&t.symbol));
        let apart = own.into_iter().try_fold(func.clone(), |func, t| apart::run(&func, t))?;
        let new = rest.iter().fold(apart, |func, t| scalars::run(&func, t));
        let before = dense.len();
        dense.extend(rest.iter().filter(|t| !alike::are(&new, t)).map(|t| t.symbol.clone()));
        if dense.len() == before {
            return Ok(new);
        }
    }
}

/// Returns the local tensors and results with values that stand for several elements, unless these are summed.
fn sharing(func: &Func) -> Vec<Arc<Tensor>> {
    let is = |t: &Arc<Tensor>| is_shared(&t.format) && !t.format.sums && !func.assembles(t);
    let mut all: Vec<Arc<Tensor>> = func.results.iter().filter(|t| is(t)).cloned().collect();
    func.body.walk(&mut |s| match s.kind() {
        StmtKind::VarDef { tensor, .. } if is(tensor) => all.push(tensor.clone()),
        _ => {}
    });
    all
}
