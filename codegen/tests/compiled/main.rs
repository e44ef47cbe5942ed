//! Programs built by hand, compiled to C and run: results are those of the reference interpreter.

mod programs;
mod run;
mod text;
