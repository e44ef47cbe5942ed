//! Taffeta's analyses: everything that proves.
//!
//! - [`query`]: read-only facts about a program.
//! - [`pass`]: rewrites that are always legal and that no user calls.
//! - [`polyhedral`]: orders of statements and loops, by isl.
//!
//! Types of isl appear in `isl.rs` and `isl/` alone, types of z3 in `smt.rs` alone.

mod isl;
pub mod pass;
pub mod polyhedral;
pub mod query;
mod smt;
#[cfg(test)]
mod testing;
pub mod tree;

/// The versions of z3 and of isl, for people.
pub fn versions() -> (String, String) {
    (smt::version(), isl::tree::version())
}
