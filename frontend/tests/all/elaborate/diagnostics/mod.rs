//! All diagnostics of elaboration, as users see them, by subject.

mod calls;
mod library_calls;
mod names;
mod shapes;
mod statements;
mod types;
mod unsupported;

use super::{check, check_file};
