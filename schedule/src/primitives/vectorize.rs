#![doc = include_str!("vectorize.md")]

use super::mark;
use crate::concurrent::{self, Obstacle, VaryingSymbols};
use crate::entry::{Entry, Run};
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::selector;
use crate::tree::{self, Loop};
use crate::value::Args;
use rustc_hash::FxHashSet;
use taffeta_analysis::query::depend::Dependences;
use taffeta_analysis::query::stride::constant_stride;
use taffeta_analysis::query::walk::{self, Visitor};
use taffeta_analysis::query::{Context, effects};
use taffeta_ast::op::Op;
use taffeta_ast::{Access, Expr, ExprKind, Func, LoopProps, Stmt, StmtKind, Symbol, Vectorize, print};

pub(crate) const ENTRY: Entry = Entry {
    name: "vectorize",
    signature: "s.vectorize(L, width=…)",
    params: &["loop", "width"],
    summary: "Runs several iterations of a loop at once, by vector instructions.",
    doc: include_str!("vectorize.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let target = args.need("loop")?;
    let loops = mark::targets(s, target)?;
    let width = args.positive("width")?;
    if let Some(w) = width.filter(|w| !(2..=64).contains(w) || w.count_ones() != 1) {
        return Err(Refusal::value(format!("expected a power of two from 2 to 64 for `width`, found {w}"))
            .at(args.get("width").map_or(taffeta_ast::Span::NONE, |a| a.span)));
    }
    for l in &loops {
        if matches!(l.stmt.kind(), StmtKind::For { props, .. } if props.vectorize.is_some()) {
            let name = s.called(&l.stmt);
            return Err(Refusal::illegal(1, format!("the loop `{name}` is already vectorised"))
                .label(l.stmt.origin().span(), "this loop"));
        }
        // 1. and 4. The body can be vectorised.
        body_fits(s.func(), &l.stmt)?;
    }
    let vector = Vectorize { width: width.and_then(|w| u32::try_from(w).ok()) };
    let with = |props: &LoopProps| LoopProps { vectorize: Some(vector), ..props.clone() };
    let after = mark::with_marks(s.func(), &loops, &with);
    let change = mark::proved(after, &loops, target, &|l, obstacle| match obstacle {
        // 2. Dependences.
        Obstacle::Dependence(_) => {
            obstacle.refusal(2, format!("the loop `{}` has a loop-carried dependence", s.called(&l.stmt)))
        }
        // 3. Reductions.
        Obstacle::Reduction(..) => obstacle
            .refusal(3, format!("vector lanes of the loop `{}` cannot share a reduction", s.called(&l.stmt)))
            .help("make the loop parallel instead: its updates are then atomic, or go into partial results"),
    })?;
    atomic_around(s, &loops, &change.func)?;
    Ok(Change { notes: loops.iter().flat_map(access_notes).collect(), ..change })
}

/// 3. Refuses to vectorise updates that a parallel loop around makes atomic.
fn atomic_around(s: &Schedule, loops: &[Loop], after: &Func) -> Result<(), Refusal> {
    let mut asked = FxHashSet::default();
    for l in loops {
        for outer in s.around(l.stmt.id()).into_iter().filter(concurrent::is_marked) {
            let Some(outer) = tree::find(&after.body, outer.id()).filter(|o| asked.insert(o.id())) else { continue };
            if let Err(o) = concurrent::shared(&Dependences::inside(after, &[outer.id()]), &outer) {
                let name = s.called(&l.stmt);
                return Err(o.refusal(3, format!("the parallel loop around `{name}` makes its updates atomic")));
            }
        }
    }
    Ok(())
}

/// 1. and 4. Checks that the body of a loop can be vectorised.
pub(crate) fn body_fits(func: &Func, stmt: &Stmt) -> Result<(), Refusal> {
    let Some(l) = Loop::of(stmt) else { return Ok(()) };
    let refuse = |at: &Stmt, text: &str, word: &str| {
        Err(Refusal::illegal(1, format!("the loop `{}` {text}", selector::called(func, stmt)))
            .label(at.origin().span(), word))
    };
    // 1. Innermost, with a constant step.
    if l.step.as_int().is_none_or(|s| s == 0) {
        return refuse(stmt, "has a step that is not a constant", "this loop");
    }
    let mut inner = None;
    l.body.walk(&mut |s| {
        let what = match s.kind() {
            StmtKind::For { .. } | StmtKind::While { .. } => ("is not innermost", "a loop inside"),
            StmtKind::VarDef { tensor, .. } if tensor.ndim() > 0 => ("declares an array", "declared here"),
            StmtKind::Call { .. } => ("calls a run-time routine", "this call"),
            _ => return,
        };
        inner.get_or_insert((s.clone(), what));
    });
    if let Some((at, (text, word))) = inner {
        return refuse(&at, text, word).map_err(|r| match text {
            "is not innermost" => {
                r.help("vectorise the innermost loop (`s.innermost`), or `s.unroll` the loops inside")
            }
            _ => r,
        });
    }
    // 4. Checks can run before the loop. They always can if the loop reads nothing that it writes.
    let (mut locals, mut reads, written) = (FxHashSet::default(), FxHashSet::default(), effects::writes(&l.body));
    l.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            locals.insert(tensor.symbol.clone());
        }
        s.kind().exprs().into_iter().for_each(|e| reads.extend(effects::loads(e)));
    });
    if !reads.iter().any(|t| written.contains(t) && !locals.contains(t)) {
        return Ok(());
    }
    let mut checks = Checks { inside: FxHashSet::default(), needed: Vec::new() };
    l.body.walk(&mut |s| {
        checks.inside.insert(s.id());
    });
    walk::walk(&func.body, &mut Context::new(func), &mut checks);
    for (at, mut needed) in checks.needed {
        // A check also depends on the conditions around it, and on the definitions of the locals that it reads.
        for _ in 0..=locals.len() {
            l.body.walk(&mut |s| match s.kind() {
                StmtKind::If { cond, .. } => needed.extend(effects::loads(cond)),
                StmtKind::Store { tensor, value, .. } | StmtKind::ReduceTo { tensor, value, .. }
                    if locals.contains(tensor) && needed.contains(tensor) =>
                {
                    needed.extend(effects::loads(value));
                }
                _ => {}
            });
        }
        if let Some(t) = needed.iter().find(|t| written.contains(*t) && !locals.contains(*t)) {
            let text = format!(
                "a check in the loop `{}` depends on `{t}`, which the loop writes",
                selector::called(func, stmt)
            );
            return Err(Refusal::illegal(4, text)
                .label(at.origin().span(), "checked here")
                .help("split the loop there (`s.fission`), so that the check is in a loop of its own"));
        }
    }
    Ok(())
}

/// Tensors that the checks in a loop's body read.
struct Checks {
    inside: FxHashSet<taffeta_ast::StmtId>,
    needed: Vec<(Stmt, FxHashSet<Symbol>)>,
}

impl Visitor for Checks {
    fn stmt(&mut self, s: &Stmt, facts: &mut Context) {
        if !self.inside.contains(&s.id()) {
            return;
        }
        let mut needed = FxHashSet::default();
        let mut found = false;
        match s.kind() {
            StmtKind::Assert { cond, .. } => {
                found = true;
                needed.extend(effects::loads(cond));
            }
            StmtKind::Store { tensor, indices, value } | StmtKind::ReduceTo { tensor, indices, value, .. } => {
                element(tensor, indices, facts, &mut found, &mut needed);
                stops(value, facts, &mut found, &mut needed);
            }
            StmtKind::Assume { .. } => {}
            other => other.exprs().into_iter().for_each(|e| stops(e, facts, &mut found, &mut needed)),
        }
        if found {
            self.needed.push((s.clone(), needed));
        }
    }
}

fn element(t: &Symbol, indices: &[Access], facts: &mut Context, found: &mut bool, needed: &mut FxHashSet<Symbol>) {
    for (k, a) in indices.iter().enumerate() {
        stops(&a.index, facts, found, needed);
        if !facts.in_range(t, k, &a.index) {
            *found = true;
            needed.extend(effects::loads(&a.index));
        }
    }
}

/// Adds the tensors read to decide whether evaluating an expression stops the program.
fn stops(e: &Expr, facts: &mut Context, found: &mut bool, needed: &mut FxHashSet<Symbol>) {
    if !facts.may_stop(e) {
        return;
    }
    match e.kind() {
        ExprKind::Load(t, indices) => element(t, indices, facts, found, needed),
        ExprKind::Apply(op, args) if op.is_lazy() => {
            stops(&args[0], facts, found, needed);
            let before = *found;
            *found = false;
            let mark = facts.enter_guard(&args[0], *op != Op::Or);
            stops(&args[1], facts, found, needed);
            facts.leave_guard(mark);
            if *op == Op::Select {
                let mark = facts.enter_guard(&args[0], false);
                stops(&args[2], facts, found, needed);
                facts.leave_guard(mark);
            }
            if *found {
                needed.extend(effects::loads(&args[0]));
            }
            *found |= before;
        }
        _ => {
            e.children().into_iter().for_each(|c| stops(c, facts, found, needed));
            let own = matches!(e.kind(), ExprKind::Apply(op, _) if op.info().may_fail_on_int && e.dtype().is_int())
                || matches!(e.kind(), ExprKind::Cast(inner) if inner.dtype().is_float() && e.dtype().is_int());
            if own {
                *found = true;
                needed.extend(effects::loads(e));
            }
        }
    }
}

/// Describes the accesses that are not contiguous.
fn access_notes(l: &Loop) -> Vec<String> {
    let variant = VaryingSymbols::of(&l.stmt);
    let mut notes = Vec::new();
    let mut say = |t: &Symbol, indices: &[Access]| {
        let index: Vec<&Expr> = indices.iter().map(|a| &a.index).collect();
        let Some(how) = stride(&index, &l.iter, &variant) else { return };
        let text = index.iter().map(|e| print::expr(e)).collect::<Vec<_>>().join(", ");
        let note = format!("`{t}[{text}]` is {how}");
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    l.body.walk(&mut |s| {
        if let StmtKind::Store { tensor, indices, .. } | StmtKind::ReduceTo { tensor, indices, .. } = s.kind() {
            say(tensor, indices);
        }
        for e in s.kind().exprs() {
            e.walk(&mut |e| {
                if let ExprKind::Load(t, indices) = e.kind() {
                    say(t, indices);
                }
            });
        }
    });
    notes
}

/// Describes the stride between lanes, unless they access the same element or neighbours.
fn stride(index: &[&Expr], iter: &Symbol, variant: &VaryingSymbols) -> Option<String> {
    let changing: Vec<usize> = (0..index.len()).filter(|d| variant.changes(index[*d])).collect();
    let (first, last) = (*changing.first()?, index.len() - 1);
    let factor = |e: &Expr| {
        let rest = e.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(v) if v == iter => Expr::int(0),
            _ => e,
        });
        if variant.changes(&rest) { None } else { constant_stride(e, iter) }
    };
    let factors: Option<Vec<i64>> = changing.iter().map(|d| factor(index[*d])).collect();
    match factors.as_deref() {
        None => Some("gathered: every lane addresses an element of its own".into()),
        Some([1 | -1]) if first == last => None,
        Some([c]) if first == last => Some(format!("strided: lanes are {} elements apart", c.unsigned_abs())),
        Some(_) => Some(format!("strided: lanes are apart in dimension {first}, and not in the last one alone")),
    }
}
