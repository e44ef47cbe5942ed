//! What a gradient keeps for its backward pass, as data: plans are judged by it, and people are told of it.

use crate::facts::{Facts, What};
use crate::homes;
use crate::values::{Home, Saved, Values};
use std::sync::Arc;
use taffeta_ast::{Expr, ExprKind, Span, StmtId, Symbol, Tensor, poly};

/// In which form values come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The tensor stays as it is: nothing overwrites it.
    AsItIs,
    /// All its values are kept.
    Tape,
    /// Its values are made again in the backward pass.
    Again,
    /// Copies are made of it before it is overwritten.
    Copies,
    /// Which iteration made an extremum is remembered.
    Marks,
    /// What the forward pass did to it is undone step by step.
    Undone,
}

impl Decision {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Decision::AsItIs => "stays",
            Decision::Tape => "tape",
            Decision::Again => "computed again",
            Decision::Copies => "copied",
            Decision::Marks => "marked",
            Decision::Undone => "undone",
        }
    }
}

/// A tensor whose values the backward pass needs.
pub(crate) struct Held {
    pub decision: Decision,
    pub why: String,
    /// The tensor of the program.
    pub tensor: Arc<Tensor>,
    /// What it is kept in.
    pub kept: Arc<Tensor>,
    /// The loops that it has a version for in every iteration, outermost first.
    pub loops: Vec<StmtId>,
    /// Loops around its home: it is kept for one iteration of them.
    pub home: Home,
    /// What a copy reads.
    pub reads: Vec<(Arc<Tensor>, Vec<StmtId>)>,
    /// Operations that an element takes to make.
    pub operations: f64,
    /// Where the tensor is written.
    pub span: Span,
}

impl Held {
    /// How many versions there are, in sizes.
    pub fn versions(&self) -> Expr {
        product(&self.kept.shape[..self.loops.len()])
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> Expr {
        bytes(&self.kept)
    }
}

/// The bytes of a tensor.
pub(crate) fn bytes(t: &Tensor) -> Expr {
    product(&t.shape).times(&Expr::int(t.dtype.size() as i64))
}

fn product(dims: &[Expr]) -> Expr {
    poly::tidy(&dims.iter().fold(Expr::int(1), |a, b| a.times(b)))
}

/// Everything that is kept, in the order in which it was first needed.
pub(crate) fn list(facts: &Facts<'_>, values: &Values) -> Vec<Held> {
    let mut out = Vec::new();
    for (symbol, home, kept) in values.kept.iter().filter(|(t, ..)| !values.undone.contains_key(t)) {
        let choice = values.homes.get(symbol);
        let (decision, why) = match (home, choice) {
            (Home::Program, None) => (Decision::AsItIs, "nothing overwrites it".to_string()),
            (Home::Program, Some(c)) => (Decision::Tape, c.why.clone()),
            (Home::Body(_), Some(c)) => (Decision::Again, c.why.clone()),
            (Home::Body(_), None) => unreachable!("tensors with a home in a loop are declared in it"),
        };
        let loops = kept.loops.clone();
        out.push(held(facts, symbol, decision, why, (kept.tensor.clone(), loops, *home), Vec::new()));
    }
    let mut undone: Vec<_> = values.undone.iter().filter(|(t, _)| values.used.contains(t)).collect();
    undone.sort_by_key(|(t, _)| t.name().to_string());
    for (symbol, undone) in undone {
        let why = "integers that are added to: subtracted again, which is exact".to_string();
        let place = (undone.now.clone(), Vec::new(), Home::Program);
        out.push(held(facts, symbol, Decision::Undone, why, place, Vec::new()));
    }
    for s in &values.snapshots {
        let mut reads = Vec::new();
        let mut of = |e: &Expr| {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, _) = e.kind() {
                    reads.push(t.clone());
                }
            });
        };
        let (symbol, decision, why) = match &s.saved {
            Saved::Whole(t) => {
                reads.push(t.clone());
                let what =
                    facts.loops.get(&s.anchor).map_or("a statement".into(), |l| format!("the loop `{}`", l.iter));
                (t.clone(), Decision::Copies, format!("overwritten later: all of it before {what}"))
            }
            Saved::Value(e) => {
                of(e);
                let symbol = match e.kind() {
                    ExprKind::Load(t, _) => t.clone(),
                    _ => facts.tensor_of(s.anchor, &What::Target),
                };
                (symbol, Decision::Copies, "overwritten later: the element before the statement".into())
            }
            Saved::Last { cond, .. } => {
                of(cond);
                let symbol = facts.tensor_of(s.anchor, &What::Target);
                (symbol, Decision::Marks, "which iteration made it the least or the greatest".into())
            }
        };
        let reads = reads.iter().map(|t| (facts.declared[t].tensor.clone(), facts.declared[t].loops.clone())).collect();
        out.push(held(facts, &symbol, decision, why, (s.tensor.clone(), s.loops.clone(), s.home), reads));
    }
    out
}

fn held(
    facts: &Facts<'_>,
    symbol: &Symbol,
    decision: Decision,
    why: String,
    (kept, loops, home): (Arc<Tensor>, Vec<StmtId>, Home),
    reads: Vec<(Arc<Tensor>, Vec<StmtId>)>,
) -> Held {
    let declared = &facts.declared[symbol];
    let operations = homes::cost(facts, symbol);
    let span = facts.writers(symbol).map(|s| s.origin().span()).min_by_key(|s| s.start).unwrap_or(Span::NONE);
    Held { decision, why, tensor: declared.tensor.clone(), kept, loops, home, reads, operations, span }
}

/// Bytes, for people.
pub fn amount(bytes: u64) -> String {
    let units = ["bytes", "KB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} bytes"),
        _ if value < 10.0 => format!("{value:.2} {}", units[unit]),
        _ if value < 100.0 => format!("{value:.1} {}", units[unit]),
        _ => format!("{value:.0} {}", units[unit]),
    }
}
