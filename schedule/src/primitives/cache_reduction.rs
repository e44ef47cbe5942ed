#![doc = include_str!("cache_reduction.md")]
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::stage::Stage;
use crate::value::Args;
use taffeta_analysis::query::reference::Use;
use taffeta_ast::{Expr, Literal, ReduceOp, StmtKind};

pub(crate) const ENTRY: Entry = Entry {
    name: "cache_reduction",
    signature: "t = s.cache_reduction(S, T)",
    params: &["stmt", "tensor", "pad"],
    summary: "Reduces into a smaller tensor first, and then reduces that into the original one.",
    doc: include_str!("cache_reduction.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let (stage, op) = check(s, args)?;
    Ok(apply(s, &stage, op))
}

fn check(s: &Schedule, args: &Args<'_>) -> Result<(Stage, ReduceOp), Refusal> {
    // 1. A tensor of known shape, used in the statement.
    let mut stage = Stage::of(s, args)?;
    let name = &stage.tensor.symbol;
    // 2. Reductions by one operator only.
    let first = stage.refs.iter().find_map(|r| match r.kind {
        Use::Reduce(op) => Some(op),
        _ => None,
    });
    let other = stage.refs.iter().find(|r| !matches!(r.kind, Use::Reduce(op) if Some(op) == first));
    let op = match (first, other) {
        (Some(op), None) => op,
        (_, other) => {
            let (what, at) = match other {
                Some(r) if r.kind == Use::Read => ("is read", r.site.stmt.origin().span()),
                Some(r) if r.kind == Use::Write => ("is overwritten", r.site.stmt.origin().span()),
                Some(r) => ("is reduced into by another operator", r.site.stmt.origin().span()),
                None => ("is not reduced into", stage.target.origin().span()),
            };
            let mut refusal = Refusal::illegal(2, format!("`{name}` {what} in the statement")).label(at, "here");
            if s.can("cache", &[stage.target.id().into(), name_of(&stage)]).unwrap_or(false) {
                refusal = refusal.help("use `cache`, which is legal here");
            }
            return Err(refusal);
        }
    };
    crate::requirements::require_any_order(s.func(), stage.tensor.dtype)?;
    // 3. Every element that is reduced into was written before.
    let mut facts = stage.facts(s.func());
    if !stage.written_before(s.func(), &mut facts) && !stage.reads_all(&mut facts) {
        let text = format!("elements of `{name}` that may be unwritten would be reduced into");
        return Err(Refusal::illegal(3, text)
            .label(stage.target.origin().span(), "this statement")
            .help(format!("write all of `{name}` before the statement (`zeros` does)")));
    }
    // 4. Padding is never accessed.
    stage.pad(s, args, 4)?;
    Ok((stage, op))
}

fn name_of(stage: &Stage) -> crate::value::Arg {
    crate::value::Value::Handle(crate::value::Handle::Tensor(stage.tensor.symbol.clone())).into()
}

fn apply(s: &Schedule, stage: &Stage, op: ReduceOp) -> Change {
    let large = &stage.tensor;
    let identity = op.identity(large.dtype);
    let (func, made) = stage.build(
        s.func(),
        ("cache_reduction", Some(identity).filter(|v| *v != Literal::zero(large.dtype))),
        |small| {
            let origin = stage.origin("cache_reduction", "start");
            Some(crate::tree::over_box(&stage.sizes(), small.symbol.name(), &origin, |indices| {
                let kind = StmtKind::Store {
                    tensor: small.symbol.clone(),
                    indices: indices.iter().cloned().map(Into::into).collect(),
                    value: Expr::literal(identity, small.dtype),
                };
                taffeta_ast::Stmt::new(kind, origin.clone())
            }))
        },
        |small| {
            let name = format!("{}.back", small.symbol.name());
            let origin = stage.origin("cache_reduction", "reduce");
            Some(stage.each(&name, &origin, |to, from| StmtKind::ReduceTo {
                tensor: large.symbol.clone(),
                indices: to,
                op,
                value: Expr::load(&small.symbol, from, small.dtype),
            }))
        },
    );
    Change::new(func, made)
}
