//! Facts about a program; nothing here rewrites.
//!
//! - [`Context`]: facts at a point of a program: ranges of iterators, conditions of the enclosing branches, passed
//!   assertions. It answers [`Context::prove`] and [`Context::bounds`].
//! - [`walk`]: walks through a program and maintains a context.
//! - [`depend`]: dependences: statement instances that access the same element, with their iterations;
//!   [`mod@reference`] lists the accesses; [`relation`] gives dependences as relations between iterations.
//! - [`product`]: recognition of matrix products in loop nests.
//! - [`stride`]: strides of an index in the enclosing loops.
//! - [`guard`]: conditions around a whole loop body, and the bounds of the iterator that they imply.
//! - [`upper_bound`]: upper bounds of integers, as expressions over the program's sizes.
//! - [`value_range`]: ranges of integers from those of their leaves, without facts.
//! - [`kill`]: proof that every element of a tensor that an iteration of a loop reads was written in that iteration.
//! - [`redundant_checks`]: redundant index checks.
//! - [`uninitialized`]: reads of uninitialised elements; proof that a speculative read is initialised.
//! - [`effects`]: tensors that a statement reads and writes, and whether it prints.
//!
//! # Guarantees
//!
//! An answer is *sound*: a proved condition holds in every run that reaches the point. It need not be complete: "not
//! proved" means unknown.
//!
//! Integers of the language wrap, and the provers compute with mathematical integers. So an expression is decomposed
//! only where it is proved not to wrap (its value is in its type's range); otherwise it is an *atom*, of which only the
//! range of its type is known. Sizes make this work in practice, by two assumptions that the callers of programs must
//! ensure (the entry checks of compiled code and of the interpreter, and every allocation):
//!
//! 1. A size is between 0 and [`MAX_SIZE`].
//! 2. For every live tensor, no operation of its shape wraps, and the product of its dimensions (with 1 for those that
//!    are 0) is at most [`MAX_SIZE`].
//!
//! Both only exclude tensors that fit no memory: 2^47 bytes is the address space of the machines that Taffeta runs on.
//!
//! An element of a tensor is one unknown value from one write of that tensor to the next: two loads of `x[i]` are
//! equal, unless there is a store to `x` in between, at any index.

mod congruent;
mod context;
mod definition;
pub mod depend;
pub mod effects;
mod entail;
mod feasibility;
pub mod guard;
mod instance;
pub(crate) mod interval;
pub mod kill;
mod linear;
mod lower;
pub(crate) mod path;
pub mod product;
mod prove;
mod rebuild;
pub mod redundant_checks;
pub mod reference;
pub mod relation;
pub mod stride;
pub mod uninitialized;
pub mod upper_bound;
pub mod value_range;
pub mod walk;

pub use context::{Context, Mark};
pub use interval::{Congruence, Interval};
pub(crate) use prove::complement;
pub use prove::{Bounds, Unproved};

pub use taffeta_ast::value::MAX_SIZE;
