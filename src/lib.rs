//! Weft: a language and compiler for free-form tensor programs.
