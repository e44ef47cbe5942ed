//! Escaping of text in comments, strings and formats.

use taffeta_codegen::testing::{comment, format_text, string};

#[test]
fn text_cannot_escape_comments_and_strings() {
    assert_eq!(comment("y = x */ evil() /* z"), "/* y = x * / evil() / * z */");
    assert_eq!(comment("a\nb\\"), "/* a b\\ */");
    assert_eq!(string("a\"b\\n?? é\n"), r#""a\"b\\n\?\? \303\251\012""#);
    assert_eq!(format_text("100%"), "100%%");
}
