//! Parts of the crate that only its tests see; unstable. As unit tests, these would have the whole crate compiled twice.

pub use crate::auto::testing::{LoopMemo, trip_counts};
pub use crate::marks::{changed, every, proof_depends_on_outside};
