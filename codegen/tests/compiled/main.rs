//! Programs built by hand, compiled to C and run: results are those of the reference interpreter.

mod abi;
mod driver;
mod operators;
mod parallel;
mod programs;
mod random;
mod refusals;
mod run;
mod sanitized;
mod scheduled;
mod storage;
mod text;
