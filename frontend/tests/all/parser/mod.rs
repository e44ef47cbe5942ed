//! Tests of the parser: trees, diagnostics, fuzzing, agreement with Python, formatting.

mod book;
mod formatting;
mod problems;
mod python;
mod robust;
mod spans;

mod trees;
