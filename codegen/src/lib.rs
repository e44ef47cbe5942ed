//! Weft's code generation: lowering, C, the toolchain and safe calls
