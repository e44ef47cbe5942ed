#![doc = include_str!("parallelize.md")]

use super::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule, carried};
use crate::tree::{self, Loop};
use crate::value::Args;
use weft_ast::{LoopProps, Stmt, StmtKind};

pub(crate) const ENTRY: Entry = Entry {
    name: "parallelize",
    signature: "s.parallelize(L)",
    params: &["loop"],
    summary: "Runs a loop on several threads.",
    doc: include_str!("parallelize.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    check(s, &l)?;
    Ok(apply(s, &l))
}

fn check(s: &Schedule, l: &Loop) -> Result<(), Refusal> {
    // 1. One level of threads.
    let mut other = s.around(l.stmt.id()).into_iter().find(is_parallel);
    l.body.walk(&mut |inner| {
        if is_parallel(inner) {
            other = Some(inner.clone());
        }
    });
    if let Some(o) = other {
        let text = "threads would start threads: the loops are nested in each other".to_string();
        return Err(Refusal::illegal(1, text)
            .label(o.origin().span(), "this loop is parallel already")
            .help("merge both loops (`s.merge`), and make the result parallel"));
    }
    // 2. Dependences.
    if let Some(d) = carried(s.func(), &l.stmt, true) {
        return Err(Refusal::dependence(2, format!("iterations of `{}` depend on each other", l.iter), d));
    }
    // 3. Reductions.
    if let Some(d) = carried(s.func(), &l.stmt, false) {
        return Err(Refusal::dependence(3, format!("iterations of `{}` reduce into one element", l.iter), d));
    }
    Ok(())
}

fn apply(s: &Schedule, l: &Loop) -> Change {
    let StmtKind::For { iter, extent, props, body } = l.stmt.kind() else {
        return Change::new(s.func().clone(), l.stmt.id().into());
    };
    let props = LoopProps { parallel: true, ..props.clone() };
    let kind = StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() };
    Change::new(tree::replace(s.func(), l.stmt.id(), &l.stmt.with_kind(kind)), l.stmt.id().into())
}

fn is_parallel(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::For { props, .. } if props.parallel)
}
