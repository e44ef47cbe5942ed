#![doc = include_str!("cache.md")]
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::stage::Stage;
use crate::value::Args;
use taffeta_analysis::query::reference::Use;
use taffeta_ast::{Expr, StmtKind};

pub(crate) const ENTRY: Entry = Entry {
    name: "cache",
    signature: "t = s.cache(S, T)",
    params: &["stmt", "tensor", "pad"],
    summary: "Copies the part of a tensor that a statement uses into a smaller tensor.",
    doc: include_str!("cache.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    Ok(apply(s, &check(s, args)?))
}

struct Plan {
    stage: Stage,
    /// Whether the box is copied in before the statement.
    fetched: bool,
    /// Whether the box is copied back after the statement.
    stored: bool,
}

fn check(s: &Schedule, args: &Args<'_>) -> Result<Plan, Refusal> {
    // 1. A tensor of known shape, used in the statement.
    let mut stage = Stage::of(s, args)?;
    let mut facts = stage.facts(s.func());
    let stored = stage.refs.iter().any(|r| r.kind != Use::Read);
    let fetched = !stage.writes_all_first(s.func(), &mut facts);
    // 2. Every element that is fetched was written before.
    if fetched && !stage.written_before(s.func(), &mut facts) && !stage.reads_all(&mut facts) {
        let name = &stage.tensor.symbol;
        return Err(Refusal::illegal(
            2,
            format!("elements of `{name}` that may be unwritten would be copied before the statement"),
        )
        .label(stage.target.origin().span(), "this statement")
        .help(format!(
            "write all of `{name}` before the statement (`zeros` does), or choose one that writes all of it first"
        )));
    }
    // 3. Padding is never accessed.
    stage.pad(s, args, 3)?;
    // 4. A structured tensor is only read, since the elements to store back are not known.
    if let Some(written) = stage.refs.iter().find(|r| stage.is_structured() && r.kind != Use::Read) {
        let text = format!("cannot cache the structured tensor `{}`, which the statement writes", stage.tensor.symbol);
        let refusal = Refusal::unsupported(4, text).label(written.site.stmt.origin().span(), "here");
        return Err(refusal.help("use `cache_reduction` for a tensor that is only reduced into"));
    }
    Ok(Plan { stage, fetched, stored })
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    let Plan { stage, fetched, stored } = plan;
    let large = &stage.tensor;
    let (func, made) = stage.build(
        s.func(),
        ("cache", large.format.fill),
        |small| {
            fetched.then(|| {
                stage.each(small.symbol.name(), &stage.origin("cache", "fetch"), |from, to| StmtKind::Store {
                    tensor: small.symbol.clone(),
                    indices: to,
                    value: Expr::load(&large.symbol, from, large.dtype),
                })
            })
        },
        |small| {
            let name = format!("{}.back", small.symbol.name());
            stored.then(|| {
                stage.each(&name, &stage.origin("cache", "store"), |to, from| StmtKind::Store {
                    tensor: large.symbol.clone(),
                    indices: to,
                    value: Expr::load(&small.symbol, from, small.dtype),
                })
            })
        },
    );
    Change::new(func, made)
}
