//! Parts of the crate, shown to its tests in `tests/`. As unit tests, these would have the crate compiled twice.

pub use crate::auto::testing::{LoopMemo, trip_counts};
pub use crate::marks::{changed, every, proof_depends_on_outside};
