//! Tests of the analyses in one binary: queries, dependences against brute force, reads of uninitialised elements.

mod depend;
mod kill;
mod oracle;
mod queries;
mod uninitialized;
