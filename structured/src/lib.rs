//! Structured tensors: lowering of programs on tensors in any format to dense programs on the arrays of these formats
//! (structured coiteration as in *Looplets*; levels as in *Format Abstraction*).
//!
//! ```text
//! A: f64[n, m] @ csr                     A.pos1: i32[n + 1], A.crd1: i32[A.n1], A.val: f64[A.n1]
//!
//! for i in range(n):                     for i in range(n):
//!     for j in range(m):          →          for j.p in range(A.pos1[i], A.pos1[i + 1]):
//!         y[i] += A[i, j] * x[j]                 y[i] += A.val[j.p] * x[A.crd1[j.p]]
//! ```
//!
//! - `level`: the interface of level formats, and `levels/`: one file per kind of level: its arrays, how they are
//!   packed, and how a fibre is traversed; `level_assembly`: how elements are added to a level;
//! - `coordinates`: coordinates that levels store for an element's indices, and the order of elements that follows;
//! - `looplet`: the looplets of a fibre, in the order of its coordinates, as plain data;
//! - `layout`: the arrays of a tensor, and their names;
//! - `assemble`: sparse tensors that a program makes, from its writes;
//! - `lower`: lowering of loops, one after the other from the outside in. The body of a loop stays an ordinary
//!   statement: an access `A[i, j]` whose levels are consumed becomes an access to a fibre, with its position and one
//!   index fewer, and in the end the element `A.val[p]` or the fill value. So branches, several stores, temporaries and
//!   nested loops need no special case;
//! - `independent_parts`: parts of a program whose lowering does not depend on the rest, as schedules query it;
//! - `explain`: the record of each loop's lowering, as data;
//! - `packed_tensor`: packing of elements into the arrays of a format, and unpacking; `borrowed`: validation of such
//!   arrays that a caller lends;
//! - `access`: inspection and rewriting of accesses, read or written; `warnings`: deduplication of warnings;
//! - `testing`: parts of the crate for its tests.
//!
//! A loop driven by a single fibre is a counted loop over positions, and keeps the annotations of schedules; if its
//! body has an effect where nothing is stored, it also runs over the coordinates in between. Several fibres are merged
//! by a `while`, or one leads and the others are searched. An element at a coordinate that no loop enumerates in the
//! order of its level is searched, with a warning; levels with a hash table find it there. The guarantees of a format
//! are emitted as `Assume`: the bounds checks inserted after this stage need no others, and the interpreter checks each
//! of them.
//!
//! Refused are merges in parallel or vectorised loops, traversals and searches inside of vectorised loops, and
//! insertions from parallel or vectorised loops into a workspace declared around them.

mod access;
mod assemble;
mod borrowed;
mod coordinates;
mod explain;
mod independent_parts;
mod layout;
mod level;
mod level_assembly;
mod levels;
mod looplet;
mod lower;
mod packed_tensor;
#[doc(hidden)]
pub mod testing;
mod warnings;

pub use borrowed::{Indices, Unfit, array_names, arrays_of, check, has_positions};
pub use explain::{Assembly, Explained, FibreRole, Operand, Strategy, Visited};
pub use independent_parts::{Section, Traversed, in_sections, sections, traversed};
pub use layout::{Array, Layout, LevelLayout, Parameter};
pub use lower::{Structured, lower};
pub use packed_tensor::{Stored, Unpackable};
