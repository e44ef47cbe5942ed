//! Gradients, from tree to tree.
//!
//! `grad`, `value_and_grad`, `vjp` and `jvp` parse and elaborate to a request; carrying one out is not there yet. Until it is,
//! this crate answers every request with one diagnostic, so that no gradient is ever silently zero.

use weft_ast::{Diagnostic, Span};

/// The answer to a request for a derivative of `function`: `what` is `grad`, `vjp` and so on, asked for at `span`.
pub fn not_supported(what: &str, function: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        "grad::unsupported",
        format!("gradients are not supported yet, and `{what}({function}, …)` was asked for"),
    )
    .at(span)
    .help("write the derivative by hand, as an entry of its own")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_function_and_what_to_do_instead() {
        let d = not_supported("grad", "loss", Span::NONE);
        assert_eq!(d.message, "gradients are not supported yet, and `grad(loss, …)` was asked for");
        assert_eq!(d.help.as_deref(), Some("write the derivative by hand, as an entry of its own"));
    }
}
