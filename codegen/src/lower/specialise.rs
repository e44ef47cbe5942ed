//! Compiles known sizes in.
//!
//! *does*: [`body`] replaces a size parameter by its value everywhere in the program, [`interface`] in the shapes of
//! parameters and results. Others may work on the program in between: as long as the interface speaks of `n`, messages
//! to callers do. *requires*: nothing. *ensures*: ids and origins are kept; the size is still a parameter of the entry,
//! which checks that callers agree.
//!
//! ```text
//! sizes: n = 4          for i in range(n): y[i] = x[i]      →      for i in range(4): y[i] = x[i]
//! ```
//!
//! *leaves alone*: sizes without a value.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::{Diagnostic, Diagnostics, Expr, ExprKind, Func, Param, Stmt, Symbol, Tensor};

type Known = FxHashMap<Symbol, Expr>;

/// The program with these sizes compiled in, but for the shapes of parameters and results.
///
/// # Errors
///
/// A name that is no size of the entry, or a value that no size can have.
pub fn body(func: &Func, sizes: &FxHashMap<String, i64>) -> Result<Func, Diagnostics> {
    let known = known(func, sizes)?;
    if known.is_empty() {
        return Ok(func.clone());
    }
    Ok(func.with_body(statement(&func.body, &mut |e| replace(e, &known))))
}

/// The program with these sizes compiled into the shapes of parameters and results.
pub(super) fn interface(func: &Func, sizes: &FxHashMap<String, i64>) -> Result<Func, Diagnostics> {
    let known = known(func, sizes)?;
    let declare = |t: &Arc<Tensor>| {
        Arc::new(Tensor { shape: t.shape.iter().map(|e| replace(e, &known)).collect(), ..(**t).clone() })
    };
    let params = func.params.iter().map(|p| Param { tensor: declare(&p.tensor), mode: p.mode }).collect();
    let results = func.results.iter().map(declare).collect();
    Ok(Func { params, results, ..func.clone() })
}

fn known(func: &Func, sizes: &FxHashMap<String, i64>) -> Result<Known, Diagnostics> {
    let mut known = Known::default();
    for (name, &value) in sizes {
        let Some(size) = func.sizes.iter().find(|s| s.name() == name) else {
            let have: Vec<&str> = func.sizes.iter().map(Symbol::name).collect();
            let have = if have.is_empty() { "none".to_string() } else { have.join(", ") };
            return Err(Diagnostic::new("lower::unknown_size", format!("`{}` has no size `{name}`", func.name))
                .help(format!("its sizes are: {have}"))
                .into());
        };
        if !(0..=MAX_SIZE).contains(&value) {
            let message = format!("the size `{name}` is {value}, expected 0 to {MAX_SIZE}");
            return Err(Diagnostic::new("lower::size", message).into());
        }
        known.insert(size.clone(), Expr::int(value));
    }
    Ok(known)
}

fn replace(e: &Expr, known: &Known) -> Expr {
    e.rewrite(&mut |e| match e.kind() {
        ExprKind::Var(s) => known.get(s).cloned().unwrap_or(e),
        _ => e,
    })
}

/// `TAFFETA_MAX_SIZE` of the run-time header: below it, index arithmetic in 64 bits cannot overflow unnoticed.
pub(crate) const MAX_SIZE: i64 = taffeta_analysis::query::MAX_SIZE;

fn statement(s: &Stmt, replace: &mut dyn FnMut(&Expr) -> Expr) -> Stmt {
    // Two closures cannot borrow `replace` at once, so expressions and statements are mapped one after the other.
    let exprs = s.map(&mut Stmt::clone, &mut *replace);
    exprs.map(&mut |inner| statement(inner, &mut *replace), &mut Expr::clone)
}
