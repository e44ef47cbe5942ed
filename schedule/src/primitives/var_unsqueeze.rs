#![doc = include_str!("var_unsqueeze.md")]
use crate::entry::{Entry, Run};
use crate::local::Local;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::value::{Args, Value};
use taffeta_ast::{Access, Expr};

pub(crate) const ENTRY: Entry = Entry {
    name: "var_unsqueeze",
    signature: "s.var_unsqueeze(T, dim)",
    params: &["tensor", "dim"],
    summary: "Adds a dimension of size 1 to a local tensor.",
    doc: include_str!("var_unsqueeze.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    // 1. A local tensor.
    let local = Local::of(s, args)?;
    let dim = local.dim(args, local.tensor.ndim() + 1)?;
    let mut shape = local.tensor.shape.clone();
    shape.insert(dim, Expr::int(1));
    let func = local.reshaped(s.func(), "var_unsqueeze", shape, &[], |mut indices| {
        indices.insert(dim, Access::from(Expr::int(0)));
        indices
    });
    Ok(Change::new(func, Value::None))
}
