//! Tests of `taffeta-ast`, in one binary: linking one is faster than linking many.

mod algebra;
mod bytes;
mod codes;
mod coordinates;
mod fill;
mod format;
mod half_precision;
mod interp;
mod layers;
mod normal;
mod print;
mod random;
mod results;
mod scalar;
mod spelling;
mod validate;
