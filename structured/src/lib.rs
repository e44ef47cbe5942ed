//! Structured tensors: from programs on tensors in any format to dense programs on the arrays that the formats consist
//! of (structured coiteration as in *Looplets*; levels as in *Format Abstraction*).
//!
//! ```text
//! A: f64[n, m] @ csr                     A.pos1: i32[n + 1], A.crd1: i32[A.n1], A.val: f64[A.n1]
//!
//! for i in range(n):                     for i in range(n):
//!     for j in range(m):          →          for j.p in range(A.pos1[i], A.pos1[i + 1]):
//!         y[i] += A[i, j] * x[j]                 y[i] += A.val[j.p] * x[A.crd1[j.p]]
//! ```
//!
//! - `levels/`: one file for each kind of level: its arrays, how they are made, and how a fibre is traversed;
//! - `coordinates`: what levels store of an element's indices, and the order of elements that follows from it;
//! - `looplet`: what a fibre is made of, in the order of its coordinates, as plain data;
//! - `layout`: which arrays a tensor consists of, and what they are called;
//! - `lower`: loops, one after the other from the outside in. The body of a loop stays an ordinary statement: an access
//!   `A[i, j]` whose levels are consumed becomes an access to a fibre, with its position and one index fewer, and in
//!   the end the element `A.val[p]` or the fill. So branches, several stores, temporaries and nested loops are nothing
//!   special;
//! - `sections`: what of a program is lowered alone as it is in the whole, as schedules ask;
//! - `explain`: what was done with each loop, as data;
//! - `stored`: tensors in a format, as data; `lent`: such data of a caller, checked.
//!
//! A loop that one fibre alone drives is a counted loop over positions, and keeps what schedules said of it; if it does
//! something where nothing is stored, it runs over the coordinates in between besides. Several fibres are merged by a
//! `while`, or one leads and the others are searched. An element at a coordinate that no loop counts in the order of
//! its level is searched, with a warning; levels that have a table find it there. What a format promises is written
//! down as `Assume`: the checks of bounds that come after this stage need no others, and the interpreter checks each of
//! them.
//!
//! Not there yet, and refused: merges in loops that are parallel or vectorised.

mod access;
mod coordinates;
mod explain;
mod layout;
mod lent;
mod levels;
mod looplet;
mod lower;
mod sections;
mod stored;
mod warnings;

pub use explain::{Explained, Operand, Part, Visited};
pub use layout::{Array, Layout, LevelLayout, Parameter};
pub use lent::{Indices, Unfit, array_names, arrays_of, check, has_positions};
pub use lower::{Structured, lower};
pub use sections::{Section, Traversed, in_sections, sections, traversed};
pub use stored::{Stored, Unpackable};
