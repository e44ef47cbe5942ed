//! Weft's gradients
