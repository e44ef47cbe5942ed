//! Every primitive on small programs: the program after it, its refusals with their reasons, and equal outputs before
//! and after, at several sizes (0 and 1 among them).

mod as_lib;
mod assumptions;
mod auto;
mod blend;
mod cache;
mod cache_box;
mod cache_examples;
mod cache_pad;
mod cache_reduction;
mod common;
#[path = "../campaign/confirm.rs"]
mod confirm;
mod contract;
mod ends;
mod figures;
mod fission;
mod fuse;
mod inline;
mod layout;
mod matrix;
mod merge;
mod move_to;
mod names;
mod parallelize;
mod permute;
mod polyhedral;
mod privatize;
mod reorder;
mod reverse;
mod scalarize;
mod separate_tail;
mod set_mem_type;
mod specialize;
mod split;
mod storage;
mod structured;
mod subscripts;
mod suggestions;
mod swap;
mod tile;
mod tile_separate;
mod trace;
mod typed;
mod unroll;
mod vectorize;
