//! The parser that pest derives from `grammar.pest`.

/// pest's parser.
#[derive(pest_derive::Parser)]
#[grammar = "grammar.pest"]
pub struct Grammar;
