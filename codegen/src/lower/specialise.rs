//! Compiles known sizes in.
//!
//! *does*: replaces a size parameter by its value everywhere, shapes of parameters and results included.
//! *requires*: nothing. *ensures*: ids and origins are kept; the size is still a parameter of the entry, which checks
//! that callers agree (`Signature`).
//!
//! ```text
//! sizes: n = 4          for i in range(n): y[i] = x[i]      →      for i in range(4): y[i] = x[i]
//! ```
//!
//! *leaves alone*: sizes without a value.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use weft_ast::{Diagnostic, Diagnostics, Expr, ExprKind, Func, Param, Stmt, Symbol, Tensor};

/// Replaces the sizes that are known. Unknown names and values out of range are refused.
pub fn run(func: &Func, sizes: &FxHashMap<String, i64>) -> Result<Func, Diagnostics> {
    let mut known: FxHashMap<Symbol, Expr> = FxHashMap::default();
    for (name, &value) in sizes {
        let Some(size) = func.sizes.iter().find(|s| s.name() == name) else {
            let have: Vec<&str> = func.sizes.iter().map(Symbol::name).collect();
            return Err(Diagnostic::new("lower::unknown-size", format!("`{}` has no size `{name}`", func.name))
                .help(format!("its sizes are: {}", if have.is_empty() { "none".to_string() } else { have.join(", ") }))
                .into());
        };
        if !(0..=MAX_SIZE).contains(&value) {
            let message = format!("the size `{name}` is {value}, expected 0 to {MAX_SIZE}");
            return Err(Diagnostic::new("lower::size", message).into());
        }
        known.insert(size.clone(), Expr::int(value));
    }
    if known.is_empty() {
        return Ok(func.clone());
    }
    let mut replace = |e: &Expr| {
        e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(s) => known.get(s).cloned().unwrap_or(e),
            _ => e,
        })
    };
    let mut declare =
        |t: &Arc<Tensor>| Arc::new(Tensor { shape: t.shape.iter().map(&mut replace).collect(), ..(**t).clone() });
    let params = func.params.iter().map(|p| Param { tensor: declare(&p.tensor), mode: p.mode }).collect();
    let results = func.results.iter().map(&mut declare).collect();
    let body = statement(&func.body, &mut replace);
    Ok(Func { params, results, body, ..func.clone() })
}

/// `WEFT_MAX_SIZE` of the run-time header: below it, index arithmetic in 64 bits cannot overflow unnoticed.
pub(crate) const MAX_SIZE: i64 = 1 << 47;

fn statement(s: &Stmt, replace: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
    // Two closures cannot borrow `replace` at once, so expressions and statements are mapped one after the other.
    let exprs = s.map(&mut Stmt::clone, &mut *replace);
    exprs.map(&mut |inner| statement(inner, &mut *replace), &mut Expr::clone)
}
