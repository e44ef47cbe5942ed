//! Tests of the analyses in one binary: those of single files by the names of the files, queries, dependences against
//! brute force, reads of uninitialised elements.

mod depend;
mod isl;
mod kill;
mod oracle;
mod pass;
mod polyhedral;
mod queries;
mod query;
mod smt;
mod tree;
mod uninitialized;
