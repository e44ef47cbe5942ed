//! Weft's front end: grammar, syntax tree and elaboration.
//!
//! `parse` turns text into a [`syntax::Module`] (pest grammar, indentation, spans); `elaborate` turns an entry of a module
//! into a [`weft_ast::Func`]: calls inlined, static values evaluated, views resolved, shapes and types inferred.

pub mod parse;
pub mod syntax;
