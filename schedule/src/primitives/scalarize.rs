#![doc = include_str!("scalarize.md")]
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::value::{Args, Value};
use rustc_hash::FxHashSet;
use taffeta_analysis::pass::sroa;
use taffeta_ast::{Func, StmtId};

pub(crate) const ENTRY: Entry = Entry {
    name: "scalarize",
    signature: "s.scalarize()",
    params: &[],
    summary: "Replaces small local arrays in loops by a scalar for each element.",
    doc: include_str!("scalarize.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, _: &Args<'_>) -> Result<Change, Refusal> {
    let new = check(s)?;
    Ok(apply(s, new))
}

/// Returns the program with arrays replaced by scalars.
fn check(s: &Schedule) -> Result<Func, Refusal> {
    // 1. Some array can become scalars.
    sroa::scalarized(s.func()).ok_or_else(|| {
        Refusal::illegal(1, "no array in a loop can be replaced by scalars".to_string())
            .help("use only numbers and iterators of short loops as subscripts: see `taffeta doc scalarize`")
    })
}

fn apply(s: &Schedule, new: Func) -> Change {
    let after = ids(&new);
    let gone = ids(s.func()).into_iter().filter(|id| !after.contains(id));
    gone.fold(Change::new(new, Value::None), |change, id| change.moved(id, []))
}

fn ids(func: &Func) -> FxHashSet<StmtId> {
    let mut all = FxHashSet::default();
    func.body.walk(&mut |s| {
        all.insert(s.id());
    });
    all
}
