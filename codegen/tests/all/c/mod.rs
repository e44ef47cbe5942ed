//! Names, constants and expressions in C.

mod expr;
mod names;
mod outline;
mod types;
mod writer;
