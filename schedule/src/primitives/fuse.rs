#![doc = include_str!("fuse.md")]
use crate::block::{self, Block};
use crate::entry::{Entry, Run};
use crate::order;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::Args;
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_analysis::pass::substitute;
use taffeta_analysis::query::depend::{Dependence, DependenceQuery, Dependences, Iterators, Relation};
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::{Expr, ExprKind, Func, Stmt, StmtKind, Symbol, poly};

pub(crate) const ENTRY: Entry = Entry {
    name: "fuse",
    signature: "l = s.fuse(L1, L2)",
    params: &["first", "second", "shift"],
    summary: "Fuses two loops that follow each other.",
    doc: include_str!("fuse.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let (one, two) = (s.loop_(args.need("first")?)?, s.loop_(args.need("second")?)?);
    let shift = args.int("shift")?.unwrap_or(0);
    let plan = check(s, one, two, shift)?;
    Ok(apply(s, &plan))
}

struct Plan {
    one: Loop,
    two: Loop,
    shift: i64,
    lengths: [Expr; 2],
    block: Block,
    /// Program in which the loops are adjacent.
    func: Func,
    /// Statements of the block before the loops, and after them.
    around: [Vec<Stmt>; 2],
}

fn check(s: &Schedule, one: Loop, two: Loop, shift: i64) -> Result<Plan, Refusal> {
    let both = |r: Refusal| {
        r.label(one.stmt.origin().span(), "the first loop").label(two.stmt.origin().span(), "the second loop")
    };
    // 1. One block.
    let block = Block::around(s.func(), one.stmt.id());
    let place = |b: &Option<Block>, l: &Loop| b.as_ref()?.items.iter().position(|i| i.id() == l.stmt.id());
    let (Some(p), Some(q)) = (place(&block, &one), place(&block, &two)) else {
        return Err(both(Refusal::illegal(
            1,
            format!("`{}` and `{}` are not in the same block", s.called(&one.stmt), s.called(&two.stmt)),
        )));
    };
    if p >= q {
        let text = match p == q {
            true => "a loop cannot be fused with itself".to_string(),
            false => format!("`{}` stands before `{}`", s.called(&two.stmt), s.called(&one.stmt)),
        };
        return Err(both(Refusal::illegal(1, text)).help("pass the loops in the order of the text"));
    }
    let block = block.ok_or_else(|| Refusal::illegal(1, "the loop is not in a block"))?;
    // 2. No marks, and known trip counts.
    crate::requirements::require_unmarked(s.func(), 2, &one)?;
    crate::requirements::require_unmarked(s.func(), 2, &two)?;
    let (Some(n), Some(m)) = (one.length(), two.length()) else {
        return Err(both(Refusal::illegal(2, "the step of a loop is not a constant")));
    };
    // 3. The loops can be made adjacent.
    let (order, at) = beside(s.func(), &block, p, q)?;
    let items: Vec<Stmt> = order.iter().map(|k| block.items[*k].clone()).collect();
    let func = tree::replace(s.func(), block.root.id(), &block.build(&items));
    let around = [items[..at].to_vec(), items[at + 2..].to_vec()];
    let plan = Plan { one, two, shift, lengths: [n, m], block, func, around };
    // 4. The bounds do not change: they are evaluated before both loops, and again in guards.
    let (one, two) = (&plan.one, &plan.two);
    let bounds: FxHashSet<Symbol> =
        [one, two].iter().flat_map(|l| [&l.begin, &l.end]).flat_map(effects::loads).collect();
    for l in [one, two] {
        if !l.body.writes().is_disjoint(&bounds) {
            let text = format!("the bounds of the loops change in `{}`", s.called(&l.stmt));
            return Err(Refusal::illegal(4, text).label(l.stmt.origin().span(), "this loop"));
        }
    }
    // 5. Dependences.
    if let Some(d) = turned(&plan.func, one, two, shift) {
        let text = format!(
            "it would reverse a dependence: `{}` depends on later iterations of `{}`",
            s.called(&two.stmt),
            s.called(&one.stmt)
        );
        let r = Refusal::dependence(5, text, d);
        if s.is_trying() {
            return Err(r);
        }
        let legal = (1..=MAX_SHIFT).find(|more| turned(&plan.func, one, two, shift + more).is_none());
        return Err(match legal {
            Some(more) => r.help(format!("delay the second loop: `shift={}`", shift + more)),
            None => r,
        });
    }
    // 6. Assumptions.
    if block::contains_assumption(&two.body) {
        return Err(block::assumption(6, &two.stmt));
    }
    // 7. The iterator of either loop fits in all iterations of the other one.
    match plan.fits() {
        true => Ok(plan),
        false => {
            let text = format!(
                "the distance between iterations of `{}` and `{}` may not fit in 64 bits",
                s.called(&one.stmt),
                s.called(&two.stmt)
            );
            let help = "bound the ranges of the loops: write `assert n <= 1000000` before them";
            Err(Refusal::illegal(7, text)
                .label(one.stmt.origin().span(), "the first loop")
                .label(two.stmt.origin().span(), "the second loop")
                .help(help))
        }
    }
}

/// Maximum number of further shifts tried for a suggestion.
const MAX_SHIFT: i64 = 4;

/// Finds an order of the block in which two of its statements are adjacent, and the new position of the first one.
fn beside(func: &Func, block: &Block, p: usize, q: usize) -> Result<(Vec<usize>, usize), Refusal> {
    let depends = block.dependences(func, p..=q);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for m in p + 1..q {
        // A statement moves before the loops, unless it depends on the first loop or on a statement that moves after
        // them.
        let stays = depends(p, &[m]).is_some() || after.iter().any(|a| depends(*a, &[m]).is_some());
        if !stays {
            before.push(m);
            continue;
        }
        if let Some(d) = depends(m, &[q]) {
            let text = "a statement between the loops can move neither before nor after them";
            return Err(Refusal::dependence(3, text, d).label(block.items[m].origin().span(), "this statement"));
        }
        after.push(m);
    }
    let at = p + before.len();
    let order: Vec<usize> = (0..p).chain(before).chain([p, q]).chain(after).chain(q + 1..block.items.len()).collect();
    block.check(func, &order, 3)?;
    Ok((order, at))
}

/// Finds a dependence from an iteration of the first loop to one of the second that would run before it.
fn turned(func: &Func, one: &Loop, two: &Loop, shift: i64) -> Option<Dependence> {
    let around = order::around(func, one.stmt.id());
    let loops: Vec<(Stmt, Symbol)> = tree::path(&func.body, one.stmt.id())?
        .into_iter()
        .filter(|s| s.id() != one.stmt.id())
        .filter_map(|s| Loop::of(&s).map(|l| (s, l.iter)))
        .collect();
    let number = |l: &Loop, of: &Iterators<'_>| -> Option<Expr> {
        let begin = renamed(&l.begin, &loops, of);
        let i = of.of(l.stmt.id())?;
        Some(match l.step.as_int()? {
            1 => i.minus(&begin),
            -1 => begin.minus(&i),
            s => i.minus(&begin).floor_div(&Expr::int(s)),
        })
    };
    let inside = |l: &Loop, r: &taffeta_analysis::query::reference::Reference| {
        r.site.inside(l.stmt.id()) && r.site.stmt.id() != l.stmt.id()
    };
    Dependences::inside(func, &[one.stmt.id(), two.stmt.id()]).first(&DependenceQuery {
        source: &|r| inside(one, r),
        sink: &|r| inside(two, r),
        relate: &|s| if around.contains(&s.id()) { Relation::Same } else { Relation::Any },
        extra: Some(&|source, sink| match (number(one, source), number(two, sink)) {
            (Some(a), Some(b)) => vec![b.plus(&Expr::int(shift)).less(&a)],
            _ => Vec::new(),
        }),
        ..DependenceQuery::default()
    })
}

/// Replaces the iterators of the loops around by those of an instance.
fn renamed(e: &Expr, loops: &[(Stmt, Symbol)], of: &Iterators<'_>) -> Expr {
    let value = |e: &Expr| match e.kind() {
        ExprKind::Var(v) => loops.iter().find(|(_, i)| i == v).and_then(|(s, _)| of.of(s.id())),
        _ => None,
    };
    substitute::rewrite_expr(e, &mut |e| value(e), &mut FxHashMap::default())
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    let Plan { one, two, block, func, around: [before, after], .. } = plan;
    // The facts are taken after the move: statements between the loops may write data that the bounds read.
    let mut facts = walk::at(func, one.stmt.id()).unwrap_or_else(|| Context::new(func));
    let fused = plan.fused(&mut facts);
    let items: Vec<Stmt> = before.iter().cloned().chain([fused.clone()]).chain(after.iter().cloned()).collect();
    let func = tree::replace(s.func(), block.root.id(), &block.build(&items));
    Change::new(func, fused.id().into()).moved(two.stmt.id(), [one.stmt.id()])
}

impl Plan {
    /// Returns whether nothing that the fused loop computes may wrap: its range, and the iterator of either loop in all
    /// iterations of the other one.
    fn fits(&self) -> bool {
        let Plan { one, two, shift, lengths: [n, m], func, .. } = self;
        if *shift == 0 && [&one.begin, &one.end, &one.step] == [&two.begin, &two.end, &two.step] {
            return true;
        }
        let Some(mut facts) = walk::at(func, one.stmt.id()) else { return false };
        let (s, t) = (one.step.as_int().unwrap_or(1), two.step.as_int().unwrap_or(1));
        let shift = i128::from(*shift);
        let span = |l: &Loop, facts: &mut Context| {
            let by = i128::from(l.step.as_int().unwrap_or(0));
            facts.sum_fits(&[(&l.end, 1), (&l.begin, -1)], by) && facts.sum_fits(&[(&l.begin, 1), (&l.end, -1)], by)
        };
        span(one, &mut facts)
            && span(two, &mut facts)
            && facts.sum_fits(&[(m, 1)], shift)
            // Range from the first iteration of both loops to the last one, in steps of either loop.
            && facts.sum_fits(&[(&one.begin, 1)], shift.min(0) * i128::from(s))
            && facts.sum_fits(&[(&one.begin, 1), (n, s)], 0)
            && facts.sum_fits(&[(&one.begin, 1), (m, s)], shift * i128::from(s))
            && facts.sum_fits(&[(&two.begin, 1)], (shift.min(0) - shift) * i128::from(t))
            && facts.sum_fits(&[(&two.begin, 1), (n, t)], -shift * i128::from(t))
            && facts.sum_fits(&[(&two.begin, 1), (m, t)], 0)
    }

    /// Builds the fused loop. `facts` hold before both loops.
    fn fused(&self, facts: &mut Context) -> Stmt {
        let Plan { one, two, shift, lengths: [n, m], .. } = self;
        let m = m.plus(&Expr::int(*shift));
        // Whether the iterations of the second loop end with those of the first one or before, and the reverse.
        let (within, beyond) = (facts.prove(&m.less_eq(n)), facts.prove(&n.less_eq(&m)));
        let first = (*shift).min(0);
        let begin = one.value(&Expr::int(first));
        let end = match (within, beyond) {
            (true, _) => one.end.clone(),
            (false, true) => one.value(&m),
            (false, false) => one.value(&n.max_with(&m)),
        };
        let i = Expr::var(&one.iter);
        // Iterator of the second loop, whose iteration number differs from that of the first loop by the shift.
        let (s, t) = (one.step.as_int().unwrap_or(1), two.step.as_int().unwrap_or(1));
        let j = match s == t {
            true => i.plus(&two.begin.minus(&one.begin)).minus(&Expr::int(shift * s)),
            false => two.value(&i.minus(&one.begin).floor_div(&one.step).minus(&Expr::int(*shift))),
        };
        let j = poly::normalized_sum(&j);
        let a = guarded(one, &i, first < 0, !within, &one.body);
        let body = tree::substitute(&two.body, &two.iter, &j);
        let b = guarded(two, &j, *shift > first, !beyond, &body);
        let body = Stmt::seq([a, b], one.body.origin().clone());
        one.with(facts.shorten(&begin), facts.shorten(&end), one.step.clone(), body)
    }
}

/// Restricts a body to the iterations of its loop, where `i` may lie before the first one or after the last one.
fn guarded(l: &Loop, i: &Expr, before: bool, after: bool, body: &Stmt) -> Stmt {
    let up = l.step.as_int() > Some(0);
    let starts = if up { l.begin.less_eq(i) } else { i.less_eq(&l.begin) };
    let goes_on = if up { i.less(&l.end) } else { l.end.less(i) };
    let cond = match (before, after) {
        (false, false) => return body.clone(),
        (true, false) => starts,
        (false, true) => goes_on,
        (true, true) => starts.and(&goes_on),
    };
    let kind = StmtKind::If { cond, then: body.clone(), otherwise: None };
    Stmt::new(kind, l.stmt.origin().derive("fuse", "guard"))
}
