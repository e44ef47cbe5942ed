//! C99 with OpenMP, for people to read: names from the source, the source line above every statement, one function for
//! an entry and its ABI around it.
//!
//! - [`names`]: C names. `types`: C types and constants. `expr`, `stmt`: the program. `entry`: the ABI. `emitter`: the
//!   state of all of them.
//! - `loops`, `regions`, `outline`, `reduce`: loops on threads and vector lanes, sequential ones around them that
//!   threads run together, their bodies, and what keeps their reductions right.
//! - `library`: nests that are matrix products.
//! - `logical`: the ABI of entries with structured parameters, around that of the arrays.
//! - `lanes`: arrays that are vectors.
//! - `conditional`: loads under conditions that some compilers load wrongly.
//! - `helpers`: operators that C does not have, of which only those that are used are printed; `half`: conversions of
//!   16-bit floats.
//!
//! On a [`Lowered`] program nothing here can fail: what a rule of the validator excludes is `unreachable!` under the
//! rule's name, and never printed as something else.
//!
//! # What the flags have to say
//!
//! Integers wrap: `-fwrapv`. Floats are IEEE with one rounding per operation, except that a multiplication and an
//! addition may be contracted (`-ffp-contract=fast`); errno and traps are not used (`-fno-math-errno
//! -fno-trapping-math`), so that loops with `sqrt`, `floor` or a comparison vectorise. Never `-ffast-math`: NaN,
//! infinities and -0 behave.

mod conditional;
mod emitter;
mod entry;
mod expr;
mod half;
mod helpers;
mod lanes;
mod library;
mod logical;
mod loops;
pub mod names;
mod outline;
mod ranges;
mod reduce;
mod regions;
mod stmt;
mod types;
mod writer;

pub(crate) use types::abi as abi_name;

use crate::lower::{Logical, Lowered};
use crate::signature::Signature;
use taffeta_ast::SourceMap;

/// The published header, `taffeta.h`.
pub const TAFFETA_H: &str = include_str!("../../include/taffeta.h");
/// What generated code includes, `taffeta_runtime.h`.
pub const TAFFETA_RUNTIME_H: &str = include_str!("../../include/taffeta_runtime.h");
/// What generated code with matrix products includes, `taffeta_gemm.h`.
pub const TAFFETA_GEMM_H: &str = include_str!("../../include/taffeta_gemm.h");
/// What generated code with structured parameters includes, `taffeta_levels.h`.
pub const TAFFETA_LEVELS_H: &str = include_str!("../../include/taffeta_levels.h");

/// A program in C.
#[derive(Clone, Debug)]
pub struct CSource {
    /// The translation unit; it includes `taffeta_runtime.h`.
    pub code: String,
    /// The declarations of its two functions, for callers; it includes `taffeta.h`.
    pub header: String,
    /// What callers must know, with the places that can fail.
    pub signature: Signature,
    /// Whether it includes `taffeta_gemm.h`.
    pub products: bool,
    /// Whether it includes `taffeta_levels.h`.
    pub levels: bool,
}

/// Prints a lowered program. `sources` is where comments and places in messages come from.
pub fn emit(lowered: &Lowered, sources: &SourceMap) -> CSource {
    let mut emitter = emitter::Emitter::new(lowered, sources);
    let unit = entry::unit(&mut emitter);
    let levels = lowered.logical().is_some_and(Logical::can_be_lent);
    let said = [
        ("TAFFETA_CONDITIONAL_LOADS", conditional::beside_each_other(lowered.func())),
        ("TAFFETA_SELECTIONS", emitter.helpers.selects()),
    ];
    let prologue = entry::prologue(lowered.signature(), emitter.products, levels, &said);
    let code = format!("{prologue}{}{unit}", emitter.helpers.text());
    let mut signature = lowered.signature().clone();
    let products = emitter.products;
    signature.sites = emitter.sites.into_iter().collect();
    CSource { code, header: entry::header(lowered), signature, products, levels }
}
