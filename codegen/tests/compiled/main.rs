//! Programs built by hand, compiled to C and run: results are those of the reference interpreter.

mod operators;
mod programs;
mod random;
mod run;
mod text;
