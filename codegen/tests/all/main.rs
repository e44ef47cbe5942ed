//! Tests of code generation in one binary: those of single files by the names of the files, lowered programs, and their
//! C, compiled and run.

mod abi;
mod c;
mod compiled;
mod lower;
mod lowered;
mod probe;
mod temporary;
mod toolchain;
