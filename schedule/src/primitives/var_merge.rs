#![doc = include_str!("var_merge.md")]
use crate::entry::{Entry, Run};
use crate::local::Local;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::value::{Args, Value};
use taffeta_ast::Access;
use taffeta_ast::expr::Protocol;

pub(crate) const ENTRY: Entry = Entry {
    name: "var_merge",
    signature: "s.var_merge(T, dim)",
    params: &["tensor", "dim"],
    summary: "Merges a dimension of a local tensor with the next one.",
    doc: include_str!("var_merge.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    // 1. A local tensor.
    let local = Local::of(s, args)?;
    let dim = local.dim(args, local.tensor.ndim().saturating_sub(1))?;
    // 2. No access reaches another row.
    local.in_range(s.func(), 2, &[dim, dim + 1])?;
    Ok(apply(s, &local, dim))
}

fn apply(s: &Schedule, local: &Local, dim: usize) -> Change {
    let mut shape = local.tensor.shape.clone();
    let inner = shape[dim + 1].clone();
    shape.splice(dim..dim + 2, [local.tensor.shape[dim].times(&inner)]);
    let func = local.reshaped(s.func(), "var_merge", shape, &[dim, dim + 1], |mut indices| {
        let merged = indices[dim].index.times(&inner).plus(&indices[dim + 1].index);
        let [first, second] = [indices[dim].protocol, indices[dim + 1].protocol];
        let protocol = if first == Protocol::Default { second } else { first };
        indices.splice(dim..dim + 2, [Access { index: merged, protocol }]);
        indices
    });
    Change::new(func, Value::None)
}
