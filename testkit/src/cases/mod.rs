//! Random programs on structured tensors, and whether all that runs them agrees.
//!
//! - `program`: programs as texts of parts, which can be taken out; `generate`, `values`: random ones; `shrink`:
//!   smaller ones;
//! - `kernels`: those that people run, in all formats;
//! - `data`: random tensors in their formats; `tried`: what is wrong with a case; `ways`: with it under a schedule, and
//!   with its derivatives.

pub mod data;
pub mod generate;
pub mod kernels;
pub mod program;
mod shrink;
pub mod tried;
mod values;
pub mod ways;

pub use generate::case;
pub use program::Case;
pub use shrink::small;
