//! Parts of the crate, shown to its tests in `tests/`. As unit tests, these would have the crate compiled twice.

pub mod float {
    pub use crate::pass::float::{fold, to_int};
}

pub mod isl {
    pub use crate::isl::{covered, is_empty, outside};
}

pub mod path {
    pub use crate::query::path::{Node, up_to};
    use crate::query::reference::Path;

    pub fn last(path: &Path) -> Option<&Node> {
        path.last()
    }
}

pub mod smt {
    pub use crate::smt::{Polynomial, is_empty};
}
