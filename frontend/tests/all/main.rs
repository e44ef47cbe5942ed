//! Tests of the frontend in one binary: the parser, the formatter and elaboration.

mod elaborate;
mod parser;
mod reductions;
mod reparse;
mod repository;
