#![doc = include_str!("var_squeeze.md")]
use crate::entry::{Entry, Run};
use crate::local::Local;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::value::{Args, Value};
use taffeta_ast::Expr;

pub(crate) const ENTRY: Entry = Entry {
    name: "var_squeeze",
    signature: "s.var_squeeze(T, dim)",
    params: &["tensor", "dim"],
    summary: "Removes a dimension of size 1 of a local tensor.",
    doc: include_str!("var_squeeze.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    // 1. A local tensor.
    let local = Local::of(s, args)?;
    let dim = local.dim(args, local.tensor.ndim())?;
    check(s, &local, dim)?;
    let mut shape = local.tensor.shape.clone();
    shape.remove(dim);
    let func = local.reshaped(s.func(), "var_squeeze", shape, &[], |mut indices| {
        indices.remove(dim);
        indices
    });
    Ok(Change::new(func, Value::None))
}

fn check(s: &Schedule, local: &Local, dim: usize) -> Result<(), Refusal> {
    // 2. One element.
    let size = &local.tensor.shape[dim];
    if !local.facts(s.func()).prove(&size.equals(&Expr::int(1))) {
        let shown = taffeta_ast::print::expr(size);
        let text =
            format!("dimension {dim} of `{}` has size `{shown}`, which is not proved to be 1", local.tensor.symbol);
        return Err(Refusal::illegal(2, text).label(local.stmt.origin().span(), "declared here"));
    }
    // 3. The index is 0, and computing it cannot stop the program.
    local.in_range(s.func(), 3, &[dim])?;
    local.require_droppable_indices(s.func(), 3, &[dim])
}
