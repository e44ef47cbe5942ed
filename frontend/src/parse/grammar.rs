//! The parser that pest makes of `grammar.pest`.

/// pest's parser.
#[derive(pest_derive::Parser)]
#[grammar = "grammar.pest"]
pub struct Grammar;
