//! Lowering: from the logical program to a program on flat buffers in which every possible failure is an explicit
//! statement.
//!
//! [`lower`] lists the passes in order, with the reason for each position. All passes work on the same tree as the rest
//! of the compiler; only the validator certifies a program as [`Lowered`].

mod checks;
mod conditions;
mod count_loops;
mod flatten;
mod freeze_shapes;
mod guards_to_bounds;
mod hoist_lane_invariants;
mod hoist_simd_checks;
mod lanes;
mod logical;
mod parallel;
mod placement;
mod promote;
mod reductions;
mod regions;
mod register_arrays;
mod serialize_effects;
mod specialise;
mod supported;

pub(crate) use flatten::count;
pub(crate) use freeze_shapes::changes_length;
pub(crate) use hoist_lane_invariants::first_value;
pub(crate) use lanes::gathers;
pub use logical::{Logical, LogicalLevel};
pub(crate) use parallel::length as unroll_length;
pub use placement::Slot;
pub(crate) use reductions::neutral;
pub(crate) use regions::{RegionPart, Regions};
pub use register_arrays::vector_bytes;
pub(crate) use register_arrays::{Vectors, at, is_sum, parts};
pub(crate) use specialise::MAX_SIZE;
pub use specialise::{body as specialise, interface as specialise_interface};

use crate::signature::Signature;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::{Diagnostics, Expr, Func, Stmt, StmtId, Symbol, Tensor, validate};

/// Options of lowering.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    /// Compiled-in sizes, by name. The others stay parameters.
    pub sizes: FxHashMap<String, i64>,
    /// Size of a vector register in bytes: 16, 32 or 64 ([`vector_bytes`]).
    pub vector_bytes: usize,
}

impl Default for LowerOptions {
    /// No compiled-in sizes; vectors of the host CPU.
    fn default() -> LowerOptions {
        LowerOptions { sizes: FxHashMap::default(), vector_bytes: vector_bytes(false) }
    }
}

/// A program ready for printing as C: every tensor has at most one dimension, every access is in range in its context,
/// every operation has a defined value, and every local tensor is placed in memory.
///
/// Only [`lower`] makes one, after validation.
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
    /// Returns the arrays held in vector registers, and the loops over their lanes.
    pub(crate) fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// Returns whether a loop over lanes is printed as operations on variables of vector types.
    pub fn is_in_vectors(&self, l: StmtId) -> bool {
        self.vectors.loops.contains(&l) || self.vectors.sums.contains(&l)
    }

    /// Returns the reason for which a conditional loop runs sequentially although the schedule vectorises it.
    pub fn why_in_order(&self, l: StmtId) -> Option<&'static str> {
        self.in_order.get(&l).copied()
    }

    /// Returns the sequential loops that run inside one parallel region.
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Attaches the logical interface for callers. It takes over the entry's C name; this program gets that of the
    /// entry for arrays.
    #[must_use]
    pub fn called_by(mut self, logical: Logical) -> Lowered {
        self.signature.c_name = crate::c::names::arrays_entry(&self.signature.name);
        self.signature.logical = Some(Box::new(logical.signature.clone()));
        self.logical = Some(logical);
        self
    }

    /// Returns the interface of the program as written, if it differs from this one's.
    pub fn logical(&self) -> Option<&Logical> {
        self.logical.as_ref()
    }

    /// Returns the program on flat buffers.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// Returns the parameters, then the results, with their shapes as callers see them.
    pub fn interface(&self) -> &[Arc<Tensor>] {
        &self.interface
    }

    /// Returns the assertions on sizes that must hold before any shape is computed.
    pub fn entry_checks(&self) -> &Stmt {
        &self.entry_checks
    }

    /// Returns the pieces of the arena.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Returns the shape of a local tensor before flattening.
    pub fn local_shape(&self, tensor: &Symbol) -> &[Expr] {
        self.locals.get(tensor).map_or(&[], Vec::as_slice)
    }

    /// Returns the interface for callers.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }
}

/// Lowers a logical program. Constructs that C code generation does not support are refused with a diagnostic.
pub fn lower(func: &Func, options: &LowerOptions) -> Result<Lowered, Diagnostics> {
    // First, so that later passes meet no statement for which they have no rule.
    supported::check(func)?;
    validate::dense_stage(func, "the stage before lowering")?;

    // Constant sizes come before all proofs: the more facts, the fewer checks remain.
    let signature = Signature::of(func, &options.sizes);
    let func = valid("specialise", specialise::interface(&specialise::body(func, &options.sizes)?, &options.sizes)?)?;
    let interface: Vec<Arc<Tensor>> = func.interface().cloned().collect();

    // Before any pass computes with shapes.
    let func = valid("freeze_shapes", freeze_shapes::run(&func))?;

    // Before the passes that transform vectorised loops.
    let func = serialize_effects::run(&func);

    // Checks are inserted while accesses have one index per dimension: messages name these, and the prover can decide
    // them. A flat index could be in range although an index is not.
    let checks::Checked { func, entry: entry_checks } = checks::run(&func);
    valid("the entry's checks", Func { made: Vec::new(), ..func.with_body(entry_checks.clone()) })?;
    let func = valid("checks", func)?;

    // Gradients and schedules leave dead code: results that a gradient does not use, tensors that a `cache` replaces.
    // Their declared sizes must be valid all the same.
    let func = valid("dead", taffeta_analysis::pass::dead::run_with_size_checks(&func))?;

    // After checks, so that they can be hoisted, which makes the remaining loop bodies vectorisable. Costly invariants
    // are hoisted too, into locals that need placement.
    let func = valid("hoist", taffeta_analysis::pass::hoist::run(&func))?;

    // Checks are already proved from the guards; without guards loop bodies are free of branches.
    let func = valid("guards_to_bounds", guards_to_bounds::run(&func))?;

    // With checks hoisted, unconditional invariants can leave vectorised loops too.
    let func = valid("hoist_lane_invariants", hoist_lane_invariants::run(&func))?;

    // After hoisting: the checks that remain in vectorised loops are moved before them.
    let func = valid("hoist_simd_checks", hoist_simd_checks::run(&func))?;

    // Partial results are ordinary tensors that need placement. Their combination gets its own range conditions, not
    // checks.
    let func = valid("reductions", reductions::run(&func))?;

    // After `reductions`: partial results are scalars already, and the remaining memory accesses are proved or checked.
    let func = valid("promote", promote::run(&func))?;

    // After `checks`, without which the loops that only count are empty but for counting; before `conditions`.
    let func = valid("count_loops", count_loops::run(&func))?;

    // After `promote`, so that elements that could be scalars are, and no conditional store to them is left; before
    // `flatten`, so that the range of each load's indices can be proved.
    let conditions::IfConverted { func, in_order } = conditions::run(&func);
    let func = valid("conditions", func)?;

    // C must be able to express the loop annotations of the schedule.
    parallel::check(&func)?;

    // Placement depends on shapes, so it precedes their flattening to element counts.
    let placement::Placed { func, slots, shapes: locals } = placement::run(&func);
    let func = valid("placement", func)?;

    // Late: index arithmetic is easier to reason about before indices are merged into one product.
    let (func, locals) = flatten::run(&func, locals);
    let func = valid("flatten", func)?;

    // After `flatten`: flat indices show which lanes an access covers.
    let (func, vectors) = register_arrays::run(&func, options.vector_bytes);

    // Last, since regions are found among the statements that will be printed.
    let regions = regions::find(&func);

    // The printer relies on every rule of the validator for lowered trees.
    validate::lowered(&func).map_err(|e| e.made_by("lowering"))?;
    let logical = None;
    Ok(Lowered { func, interface, entry_checks, slots, locals, signature, logical, vectors, regions, in_order })
}

/// Validates the output of a pass in debug builds.
pub(crate) fn valid(pass: &str, func: Func) -> Result<Func, Diagnostics> {
    validate::dense_pass(&func, pass)?;
    Ok(func)
}
