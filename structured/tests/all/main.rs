//! Tests of structured tensors in one binary: lowering against the interpreter on elements, formats, levels, campaigns.

mod assembled;
mod auto;
mod borrowed;
mod campaign;
mod coiterate;
mod diagnostics;
mod fills;
mod full_blocks;
mod gaps;
mod gradients;
mod hostile;
mod identity;
mod lazy;
mod levels;
mod looplets;
mod lower;
mod merges;
mod padding;
mod predicated_merge;
mod remapped;
mod schedules;
mod shared_values;
mod table;
mod workspaces;
