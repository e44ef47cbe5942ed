//! All diagnostics of elaboration, as users see them, by subject.

mod calls;
mod names;
mod shapes;
mod statements;
mod types;
mod unsupported;
mod words;

use super::{check, check_file};
