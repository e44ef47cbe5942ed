//! Weft's front end: grammar, syntax tree and elaboration
