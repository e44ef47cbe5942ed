//! Tests of `taffeta-ast`, in one binary: linking one is faster than linking many.

mod fill;
mod interp;
mod layers;
mod normal;
mod print;
mod random;
mod scalar;
mod validate;
