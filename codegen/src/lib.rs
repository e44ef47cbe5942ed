//! Taffeta's code generation: from the logical program to running code.
//!
//! ```text
//!  ast::Func ── lower ──▶ Lowered ── c::emit ──▶ C + OpenMP ── toolchain (cc) ──▶ shared library ── load ──▶ call
//! ```
//!
//! - [`lower`](mod@lower) turns what may fail into assertions, places local tensors in memory and flattens accesses.
//! - [`c`] prints C that a person can read; on a [`Lowered`] program it cannot fail.
//! - [`toolchain`] finds and runs the C compiler, [`probe`] asks whether it computes rightly, [`cache`] keeps what it
//!   made.
//! - [`load`] and [`call`] run it: every argument is checked before C is entered, and again inside
//!   (`include/taffeta.h`).
//!
//! All of the project's `unsafe` but isl's is in `load` and `call`. Deliberately absent: optimisation that is not about
//! the target (`taffeta-analysis`), and anything that decides *which* schedule to use.

pub mod abi;
pub mod c;
pub mod cache;
pub mod call;
pub mod load;
pub mod lower;
pub mod probe;
pub mod signature;
pub mod temporary;
pub mod toolchain;

pub use call::{Arg, ArgMut, ArgRef, CallError, CallReport, ErrorKind};
pub use load::Compiled;
pub use lower::{LowerOptions, Lowered, lower};
pub use signature::{Signature, Site};
