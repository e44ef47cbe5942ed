//! Parts of the crate, shown to its tests in `tests/`. As unit tests, these would have the crate compiled twice.

pub use crate::print::names::Names;
