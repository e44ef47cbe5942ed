//! Gradients of small programs against finite differences, forward mode against reverse mode, and what is kept against
//! what is computed again.

mod check;
mod growth;
mod inverted;
mod layers;
mod memory;
mod precision;
mod programs;
mod random;
