//! Specialisation for known sizes.
//!
//! **Does**: [`body`] replaces a size parameter by its value everywhere in the program, [`interface`] in the shapes of
//! parameters and results. Other passes may run in between: while the interface mentions `n`, so do messages to
//! callers. **Requires**: nothing. **Ensures**: ids and origins are kept; the size is still a parameter of the entry,
//! which checks that callers agree.
//!
//! ```text
//! sizes: n = 4          for i in range(n): y[i] = x[i]      →      for i in range(4): y[i] = x[i]
//! ```
//!
//! **Leaves alone**: sizes without a value.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use taffeta_ast::{DType, Diagnostic, Diagnostics, Expr, ExprKind, Func, Op, Param, Stmt, StmtKind, Symbol, Tensor};

type KnownSizes = FxHashMap<Symbol, Expr>;

/// Compiles sizes into the program, except for the shapes of parameters and results.
///
/// # Errors
///
/// A name that is not a size of the entry, or a value out of the range of sizes.
pub fn body(func: &Func, sizes: &FxHashMap<String, i64>) -> Result<Func, Diagnostics> {
    let known = known(func, sizes)?;
    if known.is_empty() {
        return Ok(func.clone());
    }
    Ok(func.with_body(statement(&func.body, &known)))
}

/// Compiles sizes into the shapes of parameters and results.
///
/// # Errors
///
/// Those of [`body`].
pub fn interface(func: &Func, sizes: &FxHashMap<String, i64>) -> Result<Func, Diagnostics> {
    let known = known(func, sizes)?;
    let declare = |t: &Arc<Tensor>| Arc::new(Tensor { shape: shape(t, &known), ..(**t).clone() });
    let params = func.params.iter().map(|p| Param { tensor: declare(&p.tensor), mode: p.mode }).collect();
    let results = func.results.iter().map(declare).collect();
    Ok(Func { params, results, ..func.clone() })
}

fn known(func: &Func, sizes: &FxHashMap<String, i64>) -> Result<KnownSizes, Diagnostics> {
    let mut known = KnownSizes::default();
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

fn replace(e: &Expr, known: &KnownSizes) -> Expr {
    e.rewrite(&mut |e| match e.kind() {
        ExprKind::Var(s) => known.get(s).cloned().unwrap_or(e),
        _ => e,
    })
}

/// Largest size, `TAFFETA_MAX_SIZE` of the run-time header: below it, 64-bit index arithmetic cannot overflow.
pub(crate) const MAX_SIZE: i64 = taffeta_analysis::query::MAX_SIZE;

fn statement(s: &Stmt, known: &KnownSizes) -> Stmt {
    if let StmtKind::VarDef { tensor, body } = s.kind() {
        let tensor = Arc::new(Tensor { shape: shape(tensor, known), ..(**tensor).clone() });
        return s.with_kind(StmtKind::VarDef { tensor, body: statement(body, known) });
    }
    s.map(&mut |inner| statement(inner, known), &mut |e| replace(e, known))
}

/// Returns a tensor's shape with known sizes replaced. A size that overflows becomes the least integer, which is no
/// valid size.
fn shape(t: &Tensor, known: &KnownSizes) -> Vec<Expr> {
    t.shape
        .iter()
        .map(|e| if exact(e, known) == Exact::Overflows { Expr::int(i64::MIN) } else { replace(e, known) })
        .collect()
}

/// Value of a size in unbounded integer arithmetic.
#[derive(PartialEq)]
enum Exact {
    Is(i128),
    Unknown,
    Overflows,
}

fn exact(e: &Expr, known: &KnownSizes) -> Exact {
    if let ExprKind::Var(s) = e.kind() {
        return known.get(s).and_then(Expr::as_int).map_or(Exact::Unknown, |v| Exact::Is(v.into()));
    }
    if let Some(c) = e.as_int() {
        return Exact::Is(c.into());
    }
    let ExprKind::Apply(op, args) = e.kind() else { return Exact::Unknown };
    if e.dtype() != DType::I64 || *op == Op::Select {
        // One of `select`'s branches is not evaluated.
        return Exact::Unknown;
    }
    let mut values = Vec::new();
    for a in args {
        match exact(a, known) {
            Exact::Is(v) => values.push(v),
            Exact::Unknown => {}
            Exact::Overflows => return Exact::Overflows,
        }
    }
    let value = match (op, values[..].len() == args.len()) {
        (_, false) => None,
        (Op::Add, _) => values[0].checked_add(values[1]),
        (Op::Sub, _) => values[0].checked_sub(values[1]),
        (Op::Mul, _) => values[0].checked_mul(values[1]),
        (Op::Neg, _) => values[0].checked_neg(),
        _ => replace(e, known).as_int().map(i128::from),
    };
    match value {
        None => Exact::Unknown,
        Some(v) if i64::try_from(v).is_ok() => Exact::Is(v),
        Some(_) => Exact::Overflows,
    }
}
