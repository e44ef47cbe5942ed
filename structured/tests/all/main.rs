//! Tests of structured tensors in one binary: lowering against the interpreter on elements, formats, levels, campaigns.

mod auto;
mod campaign;
mod coiterate;
mod fills;
mod full;
mod gaps;
mod gradients;
mod hostile;
mod identity;
mod lazy;
mod lent;
mod levels;
mod lower;
mod merges;
mod padding;
mod remapped;
mod said;
mod schedules;
mod shared;
mod table;
mod together;
mod workspaces;
