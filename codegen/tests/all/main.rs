//! Tests of code generation in one binary: lowered programs, and their C, compiled and run.

mod compiled;
mod lowered;
