//! Makes a derivative as short as a person would write it.

use weft_analysis::pass;
use weft_ast::Func;

/// The same program, shorter.
pub(crate) fn run(func: &Func) -> Func {
    pass::simplify::run(&pass::dead::run(&pass::simplify::run(func)))
}
