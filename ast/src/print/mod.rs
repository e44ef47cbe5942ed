//! The tree as Taffeta source: what a person reads, and what parses and elaborates to the same tree again
//! (`func::same`).
//!
//! - [`func`]: sizes stand in the shapes; results are declared first, with `empty`, and returned by name at the end.
//! - A `VarDef` is `t = empty(shape, dtype)`, and its scope is the rest of the block. Where the scope ends earlier,
//!   `del t` ends it.
//! - Reductions are augmented assignments, or `x[i] = min(x[i], v)`.
//! - Literals are bare where their type follows from what they meet, and `cast(…, dtype)` elsewhere.
//! - What the language has no word for is a comment at the end of the line: how a loop runs (`# parallel`), where a
//!   tensor is kept (`# stack`), who asked for an assertion (`# index`). Statements that only lowering makes print as
//!   calls (`assume(n > 0)`).
//! - Symbols with one text that are visible at once are told apart by a number (`k_1`), as are texts that Taffeta uses
//!   itself (also those of parameters, sizes and the entry, where the text would need the word: `inf`, `range`, `min`).
//!
//! A `Store` whose value combines the element itself prints as it reads (`x[i] = x[i] + v`) and parses again as a
//! reduction, which means the same; the front end never makes one.

mod expr;
mod names;
mod stmt;

use crate::expr::Expr;
use crate::func::Func;
use crate::selector;
use crate::stmt::Stmt;
use names::Names;
use stmt::Printer;

/// A whole program.
pub fn func(f: &Func) -> String {
    let mut p = Printer::default();
    p.func(f);
    p.finish()
}

/// A whole program, with what schedules call its loops: where that is another name than the text's, it stands behind
/// the loop as a comment (`for i_o in range(n):  # "i~o"`).
pub fn func_with_selectors(f: &Func) -> String {
    let mut p = Printer::with_selectors(selector::names(f));
    p.func(f);
    p.finish()
}

/// A statement with all inside it. Names that are free in it print as they are.
pub fn stmt(s: &Stmt) -> String {
    let mut p = Printer::default();
    p.bind_free(s);
    p.block(s);
    p.finish()
}

/// An expression, as it is shown: iterators have the names that schedules take (`i~o`).
pub fn expr(e: &Expr) -> String {
    expr::standalone(e, &Names::default())
}
