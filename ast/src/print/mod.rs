//! Printer of the tree as Taffeta source, which people can read, and which parses and elaborates to the same tree again
//! (`func::same`).
//!
//! - [`func`]: sizes stand in the shapes; results are declared first, with `empty`, and returned by name at the end.
//! - A `VarDef` is `t = empty(shape, dtype)`, and its scope is the rest of the block. Where the scope ends earlier,
//!   `del t` ends it.
//! - Reductions are augmented assignments, or `x[i] = min(x[i], v)`.
//! - Literals are bare where the context determines their type, and `cast(…, dtype)` elsewhere.
//! - Properties without syntax are comments at the end of the line: of loops (`# parallel`), a tensor's memory
//!   (`# stack`), the kind of an assertion (`# index`). Statements created only by lowering print as calls
//!   (`assume(n > 0)`).
//! - Visible symbols with equal names are numbered (`k_1`), as are names that collide with Taffeta's own words (those
//!   of parameters, sizes and the entry only where the text needs the word: `inf`, `range`, `min`).
//!
//! A `Store` whose value combines the element itself prints literally (`x[i] = x[i] + v`) and parses again as a
//! reduction with the same meaning; the front end never makes one.

mod expr;
pub(crate) mod literal;
pub(crate) mod names;
mod stmt;

use crate::expr::Expr;
use crate::func::Func;
use crate::selector;
use crate::stmt::Stmt;
use names::Names;
use stmt::Printer;

/// Prints a whole program.
pub fn func(f: &Func) -> String {
    let mut p = Printer::default();
    p.func(f);
    p.finish()
}

/// Prints a whole program with the selectors of its loops: a selector that differs from the printed name follows the
/// loop as a comment (`for i_o in range(n):  # "i~o"`).
pub fn func_with_selectors(f: &Func) -> String {
    let mut p = Printer::with_selectors(selector::names(f));
    p.func(f);
    p.finish()
}

/// Prints a statement with its body. Free names print unchanged.
pub fn stmt(s: &Stmt) -> String {
    let mut p = Printer::default();
    p.bind_free(s);
    p.block(s);
    p.finish()
}

/// Prints an expression for display: iterators have the names that schedules accept (`i~o`).
pub fn expr(e: &Expr) -> String {
    expr::standalone(e, &Names::default())
}
