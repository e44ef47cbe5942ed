//! The book's chapter on the grammar: its programs parse, and it names every code of the parser.

use std::collections::BTreeSet;
use std::path::Path;
use taffeta_ast::span::FileId;
use taffeta_frontend::parse::parse;

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference/grammar.md")).unwrap()
}

/// Returns the codes `syntax::…` and `python::…` in a text.
fn codes(text: &str) -> BTreeSet<String> {
    let starts = ["syntax::", "python::"].into_iter().flat_map(|area| text.match_indices(area));
    starts
        .map(|(at, _)| text[at..].chars().take_while(|c| c.is_ascii_lowercase() || matches!(c, ':' | '_')).collect())
        .collect()
}

#[test]
fn programs_parse() {
    let page = page();
    let blocks: Vec<&str> = page.split("```taffeta\n").skip(1).filter_map(|b| b.split("```").next()).collect();
    assert!(blocks.len() >= 3);
    for block in blocks {
        assert_eq!(parse(block, FileId(0)).1, [], "{block}");
    }
}

#[test]
fn the_book_explains_every_syntax_code() {
    let sources = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/parse")).unwrap();
    let mut used = codes(include_str!("../../../src/parse.rs"));
    for source in sources {
        let text = std::fs::read_to_string(source.unwrap().path()).unwrap();
        // Only quoted text is a code; `crate::parser::syntax::…` is not.
        used.extend(codes(&text).into_iter().filter(|code| text.contains(&format!("\"{code}\""))));
    }
    used.retain(|code| code.len() > "syntax::".len());
    let named = codes(&page());
    assert_eq!(used.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "not in the book");
    assert_eq!(named.difference(&used).collect::<Vec<_>>(), Vec::<&String>::new(), "in the book only");
}
