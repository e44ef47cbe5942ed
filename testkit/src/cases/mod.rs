//! Random programs on structured tensors, and checks that all ways to run them agree.
//!
//! - `program`: programs as texts with removable parts; `generate`, `values`: random programs; `shrink`: smaller ones;
//! - `kernels`: kernels that people run, in all formats;
//! - `data`: random tensors in their formats; `tried`: check of a case; `ways`: check of a case under a schedule, and
//!   of its derivatives.

pub mod data;
pub mod generate;
pub mod kernels;
pub mod program;
mod shrink;
pub mod tried;
mod values;
pub mod ways;

pub use generate::{assembled, case};
pub use program::Case;
pub use shrink::small;
