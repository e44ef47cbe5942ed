//! The parser: trees, diagnostics, fuzzing, agreement with Python, formatting.

mod tree;
mod trees;
