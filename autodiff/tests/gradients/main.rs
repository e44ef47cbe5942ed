//! Gradients of small programs: against finite differences, forward mode against reverse mode, tapes against
//! recomputation.

mod check;
mod growth;
mod inverted;
mod layers;
mod memory;
mod precision;
mod programs;
mod random;
