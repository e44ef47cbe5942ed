//! Every diagnostic of elaboration, as people see it, by what it is about.

mod calls;
mod names;
mod shapes;
mod statements;
mod types;
mod unsupported;
mod words;

use super::{check, check_file};
