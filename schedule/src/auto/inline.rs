//! `auto_inline`: recomputation of a local tensor's elements at their uses, where that is cheaper than storing them.

use super::model::Model;
use crate::auto::rule::{Candidate, ExtraSteps, Rule};
use crate::schedule::Schedule;
use crate::tree;
use crate::value::{Arg, Handle, Value};
use rustc_hash::FxHashMap;
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Stmt, StmtId, StmtKind, Symbol};

pub(super) const RULE: Rule = Rule {
    method: "auto_inline",
    summary: "Computes cheap intermediates where they are read.",
    why_here: "before loops are fused, which then have fewer tensors between them",
    gain: crate::auto::rule::MIN_GAIN_MARK,
    min_gain_sparse: Some(crate::auto::rule::MIN_GAIN_MARK),
    objective: None,
    rounds: 1,
    sites,
    candidates,
};

/// Maximum cost of a recomputed expression, in float additions.
const MAX_COST: u32 = 4;

/// Collects declarations of arrays whose only write is a store of a cheap expression.
fn sites(s: &Schedule) -> Vec<StmtId> {
    let cheap = cheap(&s.func().body);
    let mut out = Vec::new();
    s.func().body.walk(&mut |d| {
        if let StmtKind::VarDef { tensor, .. } = d.kind()
            && tensor.ndim() > 0
            && cheap.contains_key(&tensor.symbol)
        {
            out.push(d.id());
        }
    });
    out
}

/// Returns the stored expression of each tensor whose only write in `s` is a store of a cheap expression.
pub(super) fn cheap(s: &Stmt) -> FxHashMap<Symbol, Expr> {
    let mut stored: FxHashMap<Symbol, Option<Expr>> = FxHashMap::default();
    s.walk(&mut |s| match s.kind() {
        StmtKind::Store { tensor, value, .. } => {
            let first = !stored.contains_key(tensor);
            let cheap = || cost(value).is_some_and(|c| c <= MAX_COST).then(|| value.clone());
            stored.insert(tensor.clone(), if first { cheap() } else { None });
        }
        StmtKind::ReduceTo { tensor, .. } => {
            stored.insert(tensor.clone(), None);
        }
        _ => {}
    });
    stored.into_iter().filter_map(|(t, value)| Some((t, value?))).collect()
}

/// Returns the cost of evaluating an expression; `None` for selects and for gathers (loads at loaded indices).
fn cost(e: &Expr) -> Option<u32> {
    match e.kind() {
        ExprKind::Load(_, at) => {
            let gathers = at.iter().any(|a| a.index.any(&mut |i| matches!(i.kind(), ExprKind::Load(..))));
            (!gathers).then_some(0)
        }
        ExprKind::Apply(Op::Select, _) => None,
        ExprKind::Apply(op, args) => args.iter().try_fold(op.info().cost, |sum, a| Some(sum + cost(a)?)),
        ExprKind::Cast(inner) => cost(inner),
        ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Measure(..) => Some(0),
    }
}

fn candidates(s: &Schedule, _: &Model<'_>, site: StmtId) -> Vec<Candidate> {
    let Some(declaration) = tree::find(&s.func().body, site) else { return Vec::new() };
    let StmtKind::VarDef { tensor, .. } = declaration.kind() else { return Vec::new() };
    let handle = Value::Handle(Handle::Tensor(tensor.symbol.clone()));
    vec![Candidate {
        steps: format!("inline(\"{}\")", tensor.symbol.name()),
        apply: Box::new(move |s| s.call("inline", &[Arg::from(handle.clone())]).map(|_| ExtraSteps::default())),
        follow_up: None,
        lower_bound: None,
    }]
}
