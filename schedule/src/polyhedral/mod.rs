//! Polyhedral model of a part of a program: statements with their iteration domains (`extract`), the dependences
//! between them (`dependences`), loop generation for another order (`rebuild`), and separate versions for full and
//! partial tiles (`full_tiles`). The primitives `polyhedral` and `tile` choose the order.
//!
//! ```text
//!  statement ─▶ model: leaves + sets ─▶ order ─▶ does it turn a dependence round? ─▶ loops by isl ─▶ statement
//! ```
//!
//! A *leaf* is a statement that stays in one piece, with everything inside it.

mod dependences;
mod extract;
mod full_tiles;
mod rebuild;

pub use dependences::{Edges, in_program_terms, seems_turned, turned};
pub use extract::{PolyhedralModel, Whole, model};
pub use full_tiles::{Separated, Tiles, separate};
pub use rebuild::{Rebuilt, rebuild};
