//! Weft: a language and compiler for free-form tensor programs.

pub mod io;
mod near;
