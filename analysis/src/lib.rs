//! Taffeta's analyses: all proofs about programs.
//!
//! - [`query`]: read-only facts about a program.
//! - [`pass`]: rewrites that are always legal and that no user calls.
//! - [`polyhedral`]: orders of statements and loops, computed by isl.
//!
//! isl's types appear only in `isl.rs` and `isl/`, z3's types only in `smt.rs`.

mod isl;
pub mod pass;
pub mod polyhedral;
pub mod query;
mod smt;
#[cfg(test)]
mod testing;
pub mod tree;

/// Returns the versions of z3 and of isl, for display.
pub fn versions() -> (String, String) {
    (smt::version(), isl::tree::version())
}
