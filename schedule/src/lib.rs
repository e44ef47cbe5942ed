//! Schedules: how a program runs, never what it computes.
//!
//! The language's schedule functions parse and elaborate to a request; carrying one out is not there yet. Until it is, this
//! crate answers every request with one diagnostic, so that no schedule is ever silently ignored.

use weft_ast::{Diagnostic, Span};

/// The answer to a request for the schedule `name`, asked for at `span`.
pub fn not_supported(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new("schedule::unsupported", format!("schedules are not supported yet, and `{name}` was asked for"))
        .at(span)
        .help("run the program as it is written: `--schedule none`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_schedule_and_what_to_do_instead() {
        let d = not_supported("fast", Span::NONE);
        assert_eq!(d.message, "schedules are not supported yet, and `fast` was asked for");
        assert_eq!(d.help.as_deref(), Some("run the program as it is written: `--schedule none`"));
    }
}
