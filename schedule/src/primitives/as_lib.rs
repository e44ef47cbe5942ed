#![doc = include_str!("as_lib.md")]

use super::fission;
use crate::entry::{Entry, Run};
use crate::order;
use crate::refusal::Refusal;
use crate::schedule::{Change, Schedule};
use crate::selector;
use crate::tree::{self, Loop};
use crate::value::Args;
use taffeta_analysis::query::depend::{Dependences, Relation};
use taffeta_analysis::query::product::{Called, Mismatch, Product, product};
use taffeta_analysis::query::reference::{Reference, Use};
use taffeta_analysis::query::walk;
use taffeta_ast::{Access, Func, LoopProps, Parallel, ReduceOp, Stmt, StmtId, StmtKind, print};

pub(crate) const ENTRY: Entry = Entry {
    name: "as_lib",
    signature: "l = s.as_lib(L)",
    params: &["loop"],
    summary: "Replaces a nest that is a matrix product by a library call.",
    doc: include_str!("as_lib.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    let l = s.loop_(args.need("loop")?)?;
    Ok(apply(&check(s, &l)?))
}

struct Plan {
    /// Program after the statements beside the product were cut off.
    func: Func,
    nest: Stmt,
    product: Product,
    threads: bool,
}

fn check(s: &Schedule, l: &Loop) -> Result<Plan, Refusal> {
    // 1. No marks.
    crate::requirements::require_unmarked(s.func(), 1, l)?;
    let (func, nest) = alone(s.func(), l)?;
    let product = fits(&func, &nest, &|l| fission::called_before(s.func(), &func, l))?;
    crate::requirements::require_any_order(&func, product.dtype)?;
    let is_parallel =
        |s: &Stmt| matches!(s.kind(), StmtKind::For { props: LoopProps { parallel: Some(Parallel { .. }), .. }, .. });
    let threads = tree::path(&func.body, nest.id()).unwrap_or_default().iter().any(is_parallel);
    Ok(Plan { func, nest, product, threads })
}

fn apply(plan: &Plan) -> Change {
    let Plan { func, nest, product: p, threads } = plan;
    let StmtKind::For { iter, extent, body, .. } = nest.kind() else {
        return Change::new(func.clone(), nest.id().into());
    };
    let props = LoopProps { library: true, ..LoopProps::default() };
    let marked =
        nest.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() });
    let mut change = Change::new(tree::replace(func, nest.id(), &marked), nest.id().into());
    let name =
        |l: Option<usize>| l.map_or("one".to_string(), |l| format!("`{}`", selector::called(func, &p.loops[l].stmt)));
    let mut note = format!(
        "`{}` is a matrix product: rows {}, columns {}, sum {}",
        print::stmt(&p.update).trim_end(),
        name(p.row),
        name(p.column),
        name(Some(p.sum))
    );
    let around: Vec<String> = p.around().into_iter().map(|l| name(Some(l))).collect();
    if !around.is_empty() {
        note += &format!("; one for each iteration of {}", around.join(", "));
    }
    change.notes.push(note);
    if *threads {
        change.notes.push("it is in a parallel loop: each product runs on one thread, by Taffeta's own kernel".into());
    }
    change
}

/// Sketches the matrix product that a loop becomes when the statements beside the sum are cut off. The sketch goes by
/// the text; nothing is proved.
pub(crate) fn sketch(s: &Schedule, l: &Loop) -> Option<Product> {
    crate::requirements::require_unmarked(s.func(), 1, l).ok()?;
    product(&main(&l.stmt), &|l| selector::called(s.func(), l)).ok()
}

/// Strips a nest of the statements beside its sum, and of declarations.
fn main(s: &Stmt) -> Stmt {
    match s.kind() {
        StmtKind::For { iter, extent, props, body } => {
            let (iter, extent, props, body) = (iter.clone(), extent.clone(), props.clone(), main(body));
            s.with_kind(StmtKind::For { iter, extent, props, body })
        }
        StmtKind::VarDef { body, .. } => main(body),
        StmtKind::Seq(_) => beside(s).map_or_else(|| s.clone(), |(_, sum)| main(&sum)),
        _ => s.clone(),
    }
}

/// 1. to 6. Returns the product of a nest, if the nest may be a library call.
pub(crate) fn fits(func: &Func, nest: &Stmt, called: &Called<'_>) -> Result<Product, Refusal> {
    let p = product(nest, called).map_err(refusal)?;
    let around = order::around(func, nest.id());
    // 5. No factor is written.
    let inside = |r: &Reference| r.site.stmt.id() == p.update.id();
    let all = Dependences::inside(func, &[nest.id()]);
    let updates = |r: &Reference| inside(r) && r.kind == Use::Reduce(ReduceOp::Add);
    let reads = |r: &Reference| inside(r) && r.kind == Use::Read;
    let relate = |s: &Stmt| if around.contains(&s.id()) { Relation::Same } else { Relation::Any };
    if let Some(d) = all.meeting(&updates, &reads, &relate) {
        let text = format!("`{}` is read in the nest that writes it", p.c.tensor);
        return Err(Refusal::dependence(5, text, d)
            .help("copy the elements that are read into another tensor first (`s.cache`)"));
    }
    // 6. All accesses are in range.
    let Some(mut facts) = walk::at(func, p.update.id()) else {
        return Err(Refusal::target("the nest is no longer in the program"));
    };
    for o in [&p.c, &p.a, &p.b] {
        let indices: Vec<Access> = o.indices.iter().cloned().map(Access::from).collect();
        if facts.element_may_stop(&o.tensor, &indices) {
            let index: Vec<String> = o.indices.iter().map(print::expr).collect();
            let text = format!("`{}[{}]` is not proved to be in range", o.tensor, index.join(", "));
            return Err(Refusal::illegal(6, text)
                .label(p.update.origin().span(), "this sum")
                .help("assert before the loops that the sizes fit: `assert k_a == k_b`"));
        }
    }
    if p.alpha.as_ref().is_some_and(|e| facts.may_stop(e)) {
        let text = "computing the scalar factor of the product may stop the program";
        return Err(Refusal::illegal(6, text).label(p.update.origin().span(), "this sum"));
    }
    Ok(p)
}

fn refusal(m: Mismatch) -> Refusal {
    let r = Refusal::illegal(m.condition, format!("the nest is not a matrix product: {}", m.message));
    let r = m.labels.into_iter().fold(r, |r, (span, word)| r.label(span, word));
    match m.help {
        Some(h) => r.help(h),
        None => r,
    }
}

/// Cuts off the statements beside the product in the nest of a loop. Returns the program, and the product's own nest.
fn alone(before: &Func, l: &Loop) -> Result<(Func, Stmt), Refusal> {
    let (mut func, mut nest) = (before.clone(), l.stmt.clone());
    while let Some((all, main)) = beside(&nest) {
        // Cut before the product first: the second half then has the product at its begin, and is cut after it.
        let first = all.first().is_some_and(|s| s.id() == main.id());
        let Some(around) = Loop::of(&nest) else { break };
        let cut = fission::cut(before, &func, &around, &main, first).map_err(|mut r| {
            r.message = format!("cannot separate the product from the statements beside it: {}", r.message);
            r.condition = 1;
            r
        })?;
        let id: StmtId = if first { cut.first } else { cut.second };
        func = cut.func;
        nest = tree::find(&func.body, id).ok_or_else(|| Refusal::target("the nest is no longer in the program"))?;
    }
    Ok((func, nest))
}

/// Returns the statements of the outermost block in a nest, and the one that may be a product: the one with a sum in
/// the most loops.
fn beside(nest: &Stmt) -> Option<(Vec<Stmt>, Stmt)> {
    match nest.kind() {
        StmtKind::For { body, .. } | StmtKind::VarDef { body, .. } => beside(body),
        StmtKind::Seq(all) => {
            let main = all.iter().enumerate().max_by_key(|(k, s)| (depth(s), std::cmp::Reverse(*k))).map(|(_, s)| s)?;
            (depth(main) > 0).then(|| (all.clone(), main.clone()))
        }
        _ => None,
    }
}

/// Returns one more than the number of loops around the deepest sum in a statement; 0 if there is no sum.
fn depth(s: &Stmt) -> usize {
    match s.kind() {
        StmtKind::ReduceTo { op: ReduceOp::Add, .. } => 1,
        kind => {
            let inner = kind.children().into_iter().map(depth).max().unwrap_or(0);
            inner + usize::from(inner > 0 && matches!(kind, StmtKind::For { .. }))
        }
    }
}
