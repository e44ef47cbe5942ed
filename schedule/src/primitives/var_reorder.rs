#![doc = include_str!("var_reorder.md")]
use crate::entry::{Entry, Run};
use crate::local::Local;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::value::{Args, Value};

pub(crate) const ENTRY: Entry = Entry {
    name: "var_reorder",
    signature: "s.var_reorder(T, [1, 0])",
    params: &["tensor", "order"],
    summary: "Changes the order of the dimensions of a local tensor.",
    doc: include_str!("var_reorder.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    // 1. A local tensor.
    let local = Local::of(s, args)?;
    let order = order(args, &local)?;
    let pick = |k: &usize| local.tensor.shape[*k].clone();
    let shape = order.iter().map(pick).collect();
    let func =
        local.reshaped(s.func(), "var_reorder", shape, &[], |old| order.iter().map(|k| old[*k].clone()).collect());
    Ok(Change::new(func, Value::None))
}

/// Reads the argument `order`: the old dimension at each new position.
fn order(args: &Args<'_>, local: &Local) -> Result<Vec<usize>, Refusal> {
    let count = local.tensor.ndim();
    let list = args.list("order")?;
    let given: Vec<usize> = list
        .iter()
        .filter_map(|a| match a.value {
            Value::Int(i) => usize::try_from(i).ok(),
            _ => None,
        })
        .collect();
    let mut sorted = given.clone();
    sorted.sort_unstable();
    if given.len() == list.len() && sorted.iter().copied().eq(0..count) {
        return Ok(given);
    }
    let all: Vec<String> = (0..count).map(|k| k.to_string()).collect();
    let text = format!("expected each dimension of `{}` once in `order`: {}", local.tensor.symbol, all.join(", "));
    Err(Refusal::value(text).at(args.need("order")?.span))
}
