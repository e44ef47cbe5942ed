//! Weft's operator library: .ft files, embedded
