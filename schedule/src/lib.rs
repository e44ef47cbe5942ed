//! Schedules: how a program runs, never what it computes.
//!
//! A [`Schedule`] is a program and the steps that were taken on it. A step is a *primitive* (`primitives/`, a file
//! each): it is proved to keep the program's meaning by the dependence analysis (`taffeta_analysis::query::depend`) and
//! rewrites the tree, or it is refused, with the two statement instances that would be reordered, and nothing changes.
//!
//! ```text
//!  selector or handle ─▶ check: legal? ─▶ plan ─▶ apply ─▶ program + handles + where ids went
//!                           └─▶ Refusal (condition, dependence, witness, what would work)
//! ```
//!
//! - [`Schedule::call`] is the one way in, for `.ft` files, Rust and traces alike: a name and [`Arg`]s, as they are
//!   written in the schedule language. A call that was taken is recorded in the [`Trace`].
//! - Handles are statement ids. What keeps a statement keeps its id; where an id goes away the step says what took its
//!   place, so an old handle stays good or its error names the step.
//! - Loops that an earlier step made parallel are proved again after every step.
//!
//! What a schedule may change: the order of floating-point reductions, and which one of several errors stops a program
//! that stops. FreeTensor, section 4.2 and Table 1; the shape of refusals and handles follows Exo and TVM.

mod affine;
pub mod auto;
mod block;
mod concurrent;
mod condition;
mod eliminate_guards;
mod expand;
mod flow;
mod local;
mod marks;
mod order;
mod polyhedral;
mod polyhedron;
mod primitives;
mod refusal;
mod region;
mod schedule;
pub mod selector;
pub mod show;
mod stage;
mod structured;
mod suggest;
mod trace;
mod tree;
mod trip_count;
mod typed;
mod value;
mod written;

pub use primitives::{Documentation, documentation};
pub use refusal::{Reason, Refusal};
pub use schedule::Schedule;
pub use structured::{Lowers, Traversal};
pub use trace::{Argument, Recorded, Step, Trace};
pub use typed::{Anchor, SeparatedTiles, SplitBy};
pub use value::{Arg, Handle, IndexMap, Value};
