//! The polyhedral model of a part of a program: statements and the sets of iterations in which they run (`extract`),
//! the dependences between them (`dependences`), loops that run through them in another order (`rebuild`), and two
//! versions of what is inside of tiles (`full_tiles`). Which order is the business of the primitives `polyhedral` and
//! `tile`.
//!
//! ```text
//!  statement ─▶ Model: leaves + sets ─▶ order ─▶ does it turn a dependence round? ─▶ loops by isl ─▶ statement
//! ```
//!
//! A *leaf* is a statement that stays in one piece, whatever is inside it.

mod dependences;
mod extract;
mod full_tiles;
mod rebuild;

pub use dependences::{Edges, in_program_terms, seems_turned, turned};
pub use extract::{Model, Whole, model};
pub use full_tiles::{Separated, Tiles, separate};
pub use rebuild::{Made, rebuild};
