//! Schedules, which choose how a program runs and never change its result.
//!
//! A [`Schedule`] holds a program and the steps taken on it. Each step is a *primitive* (`primitives/`, one file each):
//! either the dependence analysis (`taffeta_analysis::query::depend`) proves that the step preserves the program's
//! meaning and the tree is rewritten, or the step is refused with the two statement instances that it would reorder,
//! and nothing changes.
//!
//! ```text
//!  selector or handle ─▶ check: legal? ─▶ plan ─▶ apply ─▶ program + handles + where ids went
//!                           └─▶ Refusal (condition, dependence, witness, what would work)
//! ```
//!
//! - [`Schedule::call`] is the single entry point of `.ft` files, Rust and traces: a method name and [`Arg`]s, as
//!   written in the schedule language. Each call that succeeds is recorded in the [`Trace`].
//! - Handles are statement ids. A rewritten statement keeps its id. A step that removes an id records its replacements,
//!   so an old handle either still resolves or fails with an error that names the step.
//! - Loops that an earlier step made parallel are proved again after every step that may affect them.
//! - The rules of [`auto`] choose steps by a cost model of the machine, and take them through the same calls.
//!
//! The files, by task:
//!
//! - calls: `dispatch.rs` executes them on the state in `schedule.rs`, `entry.rs` and `primitives/mod.rs` register
//!   them, `value.rs` has their arguments, `selector.rs` resolves names, `typed.rs` has Rust methods, `trace.rs` and
//!   `written.rs` record them;
//! - messages: `refusal.rs`, `show.rs`, `suggest.rs`;
//! - marks (parallel, vectorised, library call): `concurrent.rs` proves that iterations may run in any order,
//!   `marks.rs` finds the proofs that a step may have invalidated;
//! - `structured.rs` checks that loops over structured tensors can still be lowered after a step;
//! - `testing.rs` shows parts of the crate to its tests;
//! - all other files are shared by primitives: statements (`tree.rs`, `block.rs`), legality (`order.rs`, `flow.rs`,
//!   `requirements.rs`), boxes of elements (`region.rs`, `stage.rs`, `local.rs`, `expand.rs`), bounds and conditions
//!   (`affine.rs`, `polyhedron.rs`, `trip_count.rs`, `condition.rs`, `eliminate_guards.rs`), and the polyhedral model
//!   (`polyhedral/`).
//!
//! A schedule may change the order of floating-point reductions, and, in a program that stops with an error, which one
//! of several errors stops it. The primitives follow FreeTensor, section 4.2 and Table 1; the shape of refusals and
//! handles follows Exo and TVM.

pub mod auto;
mod block;
mod concurrent;
mod condition;
mod dispatch;
mod eliminate_guards;
mod entry;
mod flow;
mod local;
mod marks;
mod order;
mod polyhedral;
mod polyhedron;
mod primitives;
mod refusal;
mod region;
mod requirements;
mod schedule;
pub mod selector;
pub mod show;
mod stage;
mod structured;
mod suggest;
#[doc(hidden)]
pub mod testing;
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
