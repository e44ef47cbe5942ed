//! Taffeta's analyses: all proofs about programs.
//!
//! - [`query`]: read-only facts about a program.
//! - [`pass`]: internal rewrites, which are always legal.
//! - [`polyhedral`]: polyhedral scheduling and generation of loops by isl.
//! - [`tree`]: search and replacement of statements by id.
//!
//! isl's types appear only in `isl.rs` and `isl/`, z3's types only in `smt.rs`.

mod isl;
pub mod pass;
pub mod polyhedral;
pub mod query;
mod smt;
#[doc(hidden)]
pub mod testing;
pub mod tree;

/// Returns the versions of z3 and of isl, for display.
pub fn versions() -> (String, String) {
    (smt::version(), isl::tree::version())
}
