//! Weft's analyses: facts, provers and always-legal passes
