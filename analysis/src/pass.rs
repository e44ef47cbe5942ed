//! Rewrites that are always legal and that no user calls: `fn run(&Func) -> Func`, one file each.
//!
//! The head of each file documents the pass (does, requires, ensures, leaves alone), with an example that is a test. No
//! pass drops a statement that could stop the program, changes a float, prints more or less, or loses the id of a
//! remaining statement.
//!
//! Building blocks of rewrites are here, too: [`substitute`] for expressions, [`rewrite_accesses`] for accesses,
//! [`copy`] for statements, [`fill_propagation`] for statements in which some elements are known not to be stored.

pub mod check_finite;
pub mod copy;
pub mod dead;
pub mod fill_propagation;
pub(crate) mod float;
pub mod hoist;
pub mod rewrite_accesses;
pub mod shared_values;
pub mod simplify;
pub mod sroa;
pub mod stop_gradient;
pub mod substitute;
