//! Refusal of constructs that C code generation does not support: structured tensors (those of parameters are replaced
//! by arrays before), loops and measures over the reals, and calls of libraries.
//!
//! **Does**: walks the program once and reports every such construct. **Ensures**: later passes meet only dense
//! tensors, integer loops and plain operators.

use taffeta_ast::{Diagnostic, Diagnostics, Expr, ExprKind, Extent, Func, Span, Stmt, StmtKind, Tensor};

pub(super) fn check(func: &Func) -> Result<(), Diagnostics> {
    let mut found = Vec::new();
    for t in func.interface() {
        tensor(t, Span::NONE, &mut found);
    }
    func.body.walk(&mut |s| statement(s, &mut found));
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

fn refuse(what: impl Into<String>, span: Span) -> Diagnostic {
    Diagnostic::new("lower::unsupported", format!("{} cannot be compiled to C yet", what.into()))
        .at(span)
        .help("run it with `--backend interp`")
}

fn tensor(t: &Tensor, span: Span, found: &mut Vec<Diagnostic>) {
    if !t.format.is_dense() || t.format.fill.is_some() {
        found.push(refuse(format!("the storage of `{}`", t.symbol), span));
    }
}

fn statement(s: &Stmt, found: &mut Vec<Diagnostic>) {
    let span = s.origin().span();
    match s.kind() {
        StmtKind::VarDef { tensor: t, .. } => tensor(t, span, found),
        StmtKind::For { extent: Extent::Reals, .. } => found.push(refuse("a loop over the reals", span)),
        _ => {}
    }
    for e in s.kind().exprs() {
        e.walk(&mut |e| expression(e, span, found));
    }
}

fn expression(e: &Expr, span: Span, found: &mut Vec<Diagnostic>) {
    if matches!(e.kind(), ExprKind::Measure(..)) {
        found.push(refuse("a measure over the reals", span));
    }
}
