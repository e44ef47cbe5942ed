//! Printing of readable C99 with OpenMP: names from the source, the source line above every statement, one function for
//! an entry and its ABI around it.
//!
//! - [`names`]: C names. `types`: C types and constants. `expr`, `stmt`: the program. `entry`: the ABI. `emitter`: the
//!   state shared by all of them.
//! - `loops`, `regions`, `outline`, `reduce`: loops on threads and vector lanes, sequential loops around them inside
//!   one parallel region, outlined loop bodies, and the protection of concurrent reductions.
//! - `library`: loop nests that are matrix products. `resizable`: arrays whose length changes, and run-time routines.
//! - `ranges`: intervals of integer expressions, which permit simpler C. `writer`: indented lines and escaping.
//! - `entry_interface`: the ABI of entries with structured parameters, around the ABI on arrays.
//! - `lanes`: arrays in vector registers.
//! - `gcc_masked_loads`: detection of conditional loads that some compilers miscompile.
//! - `helpers`: operators that C lacks, printed only where used; `half`: conversions of 16-bit floats.
//!
//! Printing a [`Lowered`] program cannot fail: a violation of the validator's rules is `unreachable!` under the rule's
//! name, never other code.
//!
//! # Required compiler flags
//!
//! Integers wrap: `-fwrapv`. Floats are IEEE with one rounding per operation, except that a multiplication and an
//! addition may be contracted (`-ffp-contract=fast`); errno and traps are not used
//! (`-fno-math-errno -fno-trapping-math`), so that loops with `sqrt`, `floor` or a comparison vectorise. Never
//! `-ffast-math`: NaN, infinities and -0 behave.

mod emitter;
mod entry;
mod entry_interface;
mod expr;
mod gcc_masked_loads;
mod half;
mod helpers;
mod lanes;
mod library;
mod loops;
pub mod names;
pub(crate) mod outline;
mod partial_results;
mod ranges;
mod reduce;
mod regions;
mod resizable;
mod stmt;
pub(crate) mod types;
pub(crate) mod writer;

pub(crate) use types::abi as abi_name;

use crate::lower::{Logical, Lowered};
use crate::signature::Signature;
use taffeta_ast::{Expr, SourceMap};

/// The published header, `taffeta.h`.
pub const TAFFETA_H: &str = include_str!("../../include/taffeta.h");
/// Header included by all generated code, `taffeta_runtime.h`.
pub const TAFFETA_RUNTIME_H: &str = include_str!("../../include/taffeta_runtime.h");
/// Header included by generated code with matrix products, `taffeta_gemm.h`.
pub const TAFFETA_GEMM_H: &str = include_str!("../../include/taffeta_gemm.h");
/// Header included by generated code with structured parameters, `taffeta_levels.h`.
pub const TAFFETA_LEVELS_H: &str = include_str!("../../include/taffeta_levels.h");

/// A program in C.
#[derive(Clone, Debug)]
pub struct CSource {
    /// Translation unit; it includes `taffeta_runtime.h`.
    pub code: String,
    /// Declarations of its two functions for callers; it includes `taffeta.h`.
    pub header: String,
    /// Interface for callers, with the source locations of run-time errors.
    pub signature: Signature,
    /// Whether the code includes `taffeta_gemm.h`.
    pub products: bool,
    /// Whether the code includes `taffeta_levels.h`.
    pub levels: bool,
}

/// Prints a lowered program. `sources` provides source lines for comments and locations for messages.
pub fn emit(lowered: &Lowered, sources: &SourceMap) -> CSource {
    let mut emitter = emitter::Emitter::new(lowered, sources);
    let unit = entry::unit(&mut emitter);
    let levels = lowered.logical().is_some_and(Logical::can_be_borrowed);
    let said = [
        ("TAFFETA_CONDITIONAL_LOADS", gcc_masked_loads::has_adjacent_conditional_loads(lowered.func())),
        ("TAFFETA_SELECTIONS", emitter.helpers.selects()),
    ];
    let prologue = entry::prologue(lowered.signature(), emitter.products, levels, &said);
    let code = format!("{prologue}{}{unit}", emitter.helpers.text());
    let mut signature = lowered.signature().clone();
    let products = emitter.products;
    signature.sites = emitter.sites.into_iter().collect();
    CSource { code, header: entry::header(lowered), signature, products, levels }
}

/// Prints an expression by itself, without validation.
pub(crate) fn expression(lowered: &Lowered, e: &Expr) -> String {
    emitter::Emitter::new(lowered, &SourceMap::default()).expr(e)
}
