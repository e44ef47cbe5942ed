//! Code generation of Taffeta: from the logical program to running code.
//!
//! ```text
//!  ast::Func ── lower ──▶ Lowered ── c::emit ──▶ C + OpenMP ── toolchain (cc) ──▶ shared library ── load ──▶ call
//! ```
//!
//! - [`lower`](mod@lower) turns possible failures into assertions, places local tensors in memory and flattens
//!   accesses.
//! - [`c`] prints readable C; printing a [`Lowered`] program cannot fail.
//! - [`toolchain`] finds and runs the C compiler, [`probe`] tests it for miscompilation, [`cache`] keeps compiled
//!   libraries.
//! - [`load`] and [`call`] run them: every argument is checked before C is entered, and again inside
//!   (`include/taffeta.h`).
//! - [`signature`] describes an entry to its callers, [`abi`] mirrors the structures of the C header, and [`temporary`]
//!   holds scratch files, which are gone when the process has ended.
//!
//! All `unsafe` outside the isl bindings is in `load`, `call` and `cache/library.rs`. Deliberately absent:
//! target-independent optimisation (`taffeta-analysis`), and any choice of a schedule.

pub mod abi;
pub mod c;
pub mod cache;
pub mod call;
pub mod load;
pub mod lower;
pub mod probe;
pub mod signature;
pub mod temporary;
#[doc(hidden)]
pub mod testing;
pub mod toolchain;

pub use call::{Arg, ArgMut, ArgRef, CallError, CallReport, ErrorKind};
pub use load::Compiled;
pub use lower::{LowerOptions, Lowered, lower};
pub use signature::{Signature, Site};
