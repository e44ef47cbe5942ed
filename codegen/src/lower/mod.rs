//! Lowering: the logical program → a program on flat buffers in which everything that can stop it is a statement.
//!
//! [`lower`] is the list of passes, in order, with the reason for each place. Every pass works on the same tree as the
//! rest of the compiler; what is done is told by the validator, which alone hands out a [`Lowered`].

mod checks;
mod conditions;
mod flatten;
mod guards;
mod in_order;
mod invariants;
mod lanes;
mod logical;
mod parallel;
mod placement;
mod promote;
mod reductions;
mod regions;
mod shapes;
mod specialise;
mod supported;
mod vectorise;
mod vectors;

pub(crate) use flatten::count;
pub(crate) use invariants::first_value;
pub(crate) use lanes::gathers;
pub use logical::{Logical, LogicalLevel};
pub(crate) use parallel::length as unroll_length;
pub use placement::Slot;
pub(crate) use reductions::neutral;
pub(crate) use regions::{Part, Regions};
pub(crate) use specialise::MAX_SIZE;
pub use specialise::{body as specialise, interface as specialise_interface};
pub use vectors::vector_bytes;
pub(crate) use vectors::{Vectors, at, is_sum, parts};

use crate::signature::Signature;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::{Diagnostics, Expr, Func, Stmt, StmtId, Symbol, Tensor, validate};

/// What lowering may assume.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    /// Sizes that are compiled in, by name. The others stay parameters.
    pub sizes: FxHashMap<String, i64>,
    /// The bytes of a vector register: 16, 32 or 64 ([`vector_bytes`]).
    pub vector_bytes: usize,
}

impl Default for LowerOptions {
    /// Nothing is compiled in; for this machine.
    fn default() -> LowerOptions {
        LowerOptions { sizes: FxHashMap::default(), vector_bytes: vector_bytes(false) }
    }
}

/// A program that C can be printed from: every tensor has at most one dimension, every access is in range where it
/// stands, every operator has a value, and every local tensor has its place in memory.
///
/// Only [`lower`] makes one, after the validator has passed it.
#[derive(Clone, Debug)]
pub struct Lowered {
    func: Func,
    interface: Vec<Arc<Tensor>>,
    entry_checks: Stmt,
    slots: Vec<Slot>,
    locals: FxHashMap<Symbol, Vec<Expr>>,
    signature: Signature,
    logical: Option<Logical>,
    vectors: Vectors,
    regions: Regions,
    in_order: conditions::InOrder,
}

impl Lowered {
    /// Which arrays are vectors, and which loops go over their lanes.
    pub(crate) fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// Returns whether a loop over lanes is printed as operations on variables of vector types.
    pub fn is_in_vectors(&self, l: StmtId) -> bool {
        self.vectors.loops.contains(&l) || self.vectors.sums.contains(&l)
    }

    /// Returns the reason why a loop with conditions, which a schedule vectorised, runs in order.
    pub fn why_in_order(&self, l: StmtId) -> Option<&'static str> {
        self.in_order.get(&l).copied()
    }

    /// Which loops all threads run.
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// The same program, for callers that know it by another interface. That has the entry's name in C.
    #[must_use]
    pub fn called_by(mut self, logical: Logical) -> Lowered {
        self.signature.c_name = crate::c::names::arrays_entry(&self.signature.name);
        self.signature.logical = Some(Box::new(logical.signature.clone()));
        self.logical = Some(logical);
        self
    }

    /// The interface of the program as it is written, if that is another one.
    pub fn logical(&self) -> Option<&Logical> {
        self.logical.as_ref()
    }

    /// The program on flat buffers.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// Parameters, then results, with the shapes that callers see.
    pub fn interface(&self) -> &[Arc<Tensor>] {
        &self.interface
    }

    /// Assertions on sizes that must hold before any shape is computed.
    pub fn entry_checks(&self) -> &Stmt {
        &self.entry_checks
    }

    /// The pieces of the arena.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The shape of a local tensor before it was flattened.
    pub fn local_shape(&self, tensor: &Symbol) -> &[Expr] {
        self.locals.get(tensor).map_or(&[], Vec::as_slice)
    }

    /// What callers must know.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }
}

/// Lowers a logical program. What the target cannot express yet is refused with a diagnostic.
pub fn lower(func: &Func, options: &LowerOptions) -> Result<Lowered, Diagnostics> {
    // First of all, so that no later pass meets a statement that it has no rule for.
    supported::check(func)?;
    validate::dense_stage(func, "what runs before lowering")?;

    // Constants for sizes come before everything that proves: the more is known, the more checks disappear.
    let signature = Signature::of(func, &options.sizes);
    let func = valid("specialise", specialise::interface(&specialise::body(func, &options.sizes)?, &options.sizes)?)?;
    let interface: Vec<Arc<Tensor>> = func.interface().cloned().collect();

    // Before anything computes with shapes.
    let func = valid("shapes", shapes::run(&func))?;

    // Before the passes that make vectors of loops.
    let func = in_order::run(&func);

    // Checks go in while accesses still have one index for each dimension, which is what messages speak of and what the
    // prover can decide; a flat index could be in range although a dimension is not.
    let checks::Checked { func, entry: entry_checks } = checks::run(&func);
    valid("the entry's checks", func.with_body(entry_checks.clone()))?;
    let func = valid("checks", func)?;

    // Gradients and schedules leave what nobody reads: a result of which a gradient needs nothing, a tensor that a
    // `cache` stands for. What the program declares must fit all the same.
    let func = valid("dead", taffeta_analysis::pass::dead::run_with_size_checks(&func))?;

    // Only now are there checks to move; they leave loops so that what remains inside can be vectorised. Costly
    // invariants leave too, which brings locals that still need a place.
    let func = valid("hoist", taffeta_analysis::pass::hoist::run(&func))?;

    // What checks proved from guards is proved; without them loops are straight.
    let func = valid("guards", guards::run(&func))?;

    // Checks have left; what is computed under none of them may leave vectorised loops too.
    let func = valid("invariants", invariants::run(&func))?;

    // What is left in vectorised loops leaves them now that checks are where they stay.
    let func = valid("vectorise", vectorise::run(&func))?;

    // Partial results are tensors like others and need their places. Their combination is not checked again.
    let func = valid("reductions", reductions::run(&func))?;

    // Partial results are scalars already; what still is in memory is known to be in range, or checked.
    let func = valid("promote", promote::run(&func))?;

    // Nothing is written under a condition that could be in a scalar; indices still have a dimension each, so that
    // those of loads can be proved.
    let conditions::Straight { func, in_order } = conditions::run(&func);
    let func = valid("conditions", func)?;

    // What a schedule asked of loops must be something that C can say.
    parallel::check(&func)?;

    // Places are chosen by shape, so before shapes are flattened to element counts.
    let placement::Placed { func, slots, shapes: locals } = placement::run(&func);
    let func = valid("placement", func)?;

    // Late: index arithmetic is easier to reason about before it is one product.
    let (func, locals) = flatten::run(&func, locals);
    let func = valid("flatten", func)?;

    // Flat indices say which lanes an access meets.
    let (func, vectors) = vectors::run(&func, options.vector_bytes);

    // Of the statements that will be printed.
    let regions = regions::find(&func);

    // C is printed from what the validator of lowered trees passes, and relies on every rule of it.
    validate::lowered(&func).map_err(|e| e.made_by("lowering"))?;
    let logical = None;
    Ok(Lowered { func, interface, entry_checks, slots, locals, signature, logical, vectors, regions, in_order })
}

/// What a pass made, which debug builds check.
fn valid(pass: &str, func: Func) -> Result<Func, Diagnostics> {
    validate::dense_pass(&func, pass)?;
    Ok(func)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taffeta_ast::build::{Builder, store};
    use taffeta_ast::{DType, Expr};

    #[test]
    fn a_broken_tree_is_told_and_not_lowered() {
        let mut b = Builder::new("f");
        let y = b.result("y", DType::F64, [&Expr::int(4)]);
        let broken = b.finish(store(&y, [&Expr::float(0.5, DType::F64)], &Expr::float(1.0, DType::F64)));
        let told = lower(&broken, &LowerOptions::default()).expect_err("its index is a float");
        assert_eq!(told.0[0].code, "internal::tree");
        // What a pass made is told with the pass's name, where such builds ask.
        let told = valid("hoist", broken);
        assert_eq!(told.is_err(), cfg!(debug_assertions));
        assert!(told.err().is_none_or(|d| d.0[0].message.starts_with("hoist made")));
    }
}
