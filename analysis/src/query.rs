//! Facts about a program, never a rewrite.
//!
//! - [`Context`]: what is known at a point of a program: ranges of iterators, conditions of the branches around,
//!   assertions that were passed. It answers [`Context::prove`] and [`Context::bounds`].
//! - [`walk`]: goes through a program and keeps a context on the way.
//! - [`depend`]: which statement instances touch the same element, in which iterations; [`mod@reference`] lists what
//!   they touch; [`relation`] gives all of it as relations between iterations.
//! - [`product`]: whether a nest is a matrix product.
//! - [`stride`]: how an index grows with the loops around it.
//! - [`kill`]: whether all that an iteration of a loop reads of a tensor was written in that iteration.
//! - [`repeated`]: whether an index that is checked is checked elsewhere too.
//! - [`unwritten`]: which reads are of elements that nothing has written; whether what a transformation would read
//!   earlier than the program surely is written.
//! - [`effects`]: which tensors a statement reads and writes, what can stop the program.
//!
//! # What the answers mean
//!
//! An answer is *sound*: what is proved holds in every run that reaches the point. It need not be complete: "not
//! proved" says nothing.
//!
//! Integers of the language wrap, and the provers compute with mathematical integers. So an expression is taken apart
//! only where it is proved not to wrap (its value lies in its type's range); otherwise it is an *atom*, of which only
//! the range of its type is known. Sizes make this work in practice, by two assumptions that the callers of programs
//! must ensure (the entry checks of compiled code and of the interpreter, and every allocation):
//!
//! 1. A size is between 0 and [`MAX_SIZE`].
//! 2. For every tensor that is alive, no operation of its shape wraps, and the product of its dimensions (with 1 for
//!    those that are 0) is at most [`MAX_SIZE`].
//!
//! Both only exclude what fits no memory: 2^47 bytes is the address space of the machines that Taffeta runs on.
//!
//! An element of a tensor is one unknown value from one write of that tensor to the next, so that `x[i]` means the same
//! twice in a row, and no longer the same after a store to `x`, wherever it is.

mod congruent;
mod context;
mod definition;
pub mod depend;
pub mod effects;
mod entail;
pub mod greatest;
pub mod guard;
mod instance;
mod interval;
pub mod kill;
mod linear;
mod lower;
mod path;
mod point;
pub mod product;
mod prove;
mod rebuild;
pub mod reference;
pub mod relation;
pub mod repeated;
pub mod stride;
pub mod unwritten;
pub mod walk;

pub use context::{Context, Mark};
pub use interval::{Congruence, Interval};
pub use prove::{Bounds, Unproved};

pub use taffeta_ast::value::MAX_SIZE;

#[cfg(test)]
mod tests;
