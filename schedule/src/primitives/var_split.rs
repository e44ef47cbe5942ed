#![doc = include_str!("var_split.md")]
use crate::entry::{Entry, Run};
use crate::local::Local;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree;
use crate::value::{Args, Value};
use taffeta_ast::{Access, Expr};

pub(crate) const ENTRY: Entry = Entry {
    name: "var_split",
    signature: "s.var_split(T, dim, factor)",
    params: &["tensor", "dim", "factor"],
    summary: "Splits a dimension of a local tensor into two.",
    doc: include_str!("var_split.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    // 1. A local tensor.
    let local = Local::of(s, args)?;
    let dim = local.dim(args, local.tensor.ndim())?;
    args.need("factor")?;
    let factor = args.positive("factor")?.unwrap_or(1);
    check(s, &local, dim, factor)?;
    Ok(apply(s, &local, dim, factor))
}

fn check(s: &Schedule, local: &Local, dim: usize, factor: i64) -> Result<(), Refusal> {
    // 2. No access reaches the padding.
    let multiple = local.tensor.shape[dim].modulo(&Expr::int(factor)).equals(&Expr::int(0));
    if local.facts(s.func()).prove(&multiple) {
        return Ok(());
    }
    local.in_range(s.func(), 2, &[dim])
}

fn apply(s: &Schedule, local: &Local, dim: usize, factor: i64) -> Change {
    let mut shape = local.tensor.shape.clone();
    let by = Expr::int(factor);
    shape.splice(dim..=dim, [tree::ceil_div(&local.tensor.shape[dim], factor), by.clone()]);
    let func = local.reshaped(s.func(), "var_split", shape, &[dim], |mut indices| {
        let old = indices[dim].clone();
        let part = |index: Expr| Access { index, ..old.clone() };
        indices.splice(dim..=dim, [part(old.index.floor_div(&by)), part(old.index.modulo(&by))]);
        indices
    });
    Change::new(func, Value::None)
}
