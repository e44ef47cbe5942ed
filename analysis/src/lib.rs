//! Weft's analyses: everything that proves.
//!
//! - [`query`]: read-only facts about a program.
//! - [`pass`]: rewrites that are always legal and that no user calls.
//!
//! Types of isl appear in `isl.rs` alone, types of z3 in `smt.rs` alone.

mod isl;
pub mod pass;
pub mod query;
mod smt;
#[cfg(test)]
mod testing;
