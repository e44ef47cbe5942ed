//! Programs built by hand, compiled to C and run: results are those of the reference interpreter.

mod abi;
mod arena;
mod campaign;
mod checks;
mod conditional;
mod ends;
mod forked;
mod guards;
mod half;
mod operators;
mod parallel;
mod products;
mod programs;
mod promoted;
mod random;
mod refusals;
mod regions;
mod resized;
mod run;
mod sanitized;
mod scheduled;
mod shapes;
mod storage;
mod text;
mod vectors;
