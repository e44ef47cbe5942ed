#![doc = include_str!("contract.md")]
use crate::block;
use crate::entry::{Entry, Run};
use crate::flow::Flow;
use crate::local::Local;
use crate::refusal::Refusal;
use crate::region;
use crate::schedule::{Change, Schedule};
use crate::tree;
use crate::value::{Args, Handle, Value};
use std::ops::RangeInclusive;
use taffeta_analysis::query::depend::{Dependence, Dependences};
use taffeta_analysis::query::reference::{Reference, references};
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::poly::tidy;
use taffeta_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol};

pub(crate) const ENTRY: Entry = Entry {
    name: "contract",
    signature: "t = s.contract(T)",
    params: &["tensor"],
    summary: "Shrinks a local tensor to the elements that are live at one time.",
    doc: include_str!("contract.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    // 1. A local tensor.
    let local = Local::of(s, args)?;
    Ok(apply(check(s, &local)?))
}

struct Plan {
    /// Program with the declaration in its new place.
    func: Func,
    /// Tensor as declared there.
    local: Local,
    /// Kept part of each dimension.
    parts: Vec<KeptPart>,
}

/// Kept part of a dimension.
enum KeptPart {
    All,
    /// `size` elements, from `first` on.
    Box {
        first: Expr,
        size: Expr,
    },
    /// One element, without the dimension.
    One,
}

fn check(s: &Schedule, local: &Local) -> Result<Plan, Refusal> {
    let name = &local.tensor.symbol;
    // 2. The tensor is used.
    let all = Dependences::inside(s.func(), &[local.stmt.id()]);
    if all.of(name).len() == 0 {
        let text = format!("`{name}` is never used");
        return Err(Refusal::illegal(2, text).label(local.stmt.origin().span(), "declared here"));
    }
    // 3. Less of the tensor is live at a time.
    let place = DeclarationSite::innermost(&all, local);
    let (func, inner) = place.declared(s.func(), local);
    let parts = parts(&func, &inner);
    if place.crossed == 0 && parts.iter().all(|p| matches!(p, KeptPart::All)) {
        return Err(place.obstacle.refusal(s, local));
    }
    Ok(Plan { func, local: inner, parts })
}

fn apply(plan: Plan) -> Change {
    let Plan { func, local, parts } = plan;
    let kept = local.tensor.shape.iter().zip(&parts).filter_map(|(dim, part)| match part {
        KeptPart::All => Some(dim.clone()),
        KeptPart::Box { size, .. } => Some(size.clone()),
        KeptPart::One => None,
    });
    let func = local.reshaped(&func, "contract", kept.collect(), &[], |indices: Vec<Access>| {
        let inside = |(a, part): (Access, &KeptPart)| match part {
            KeptPart::All => Some(a),
            KeptPart::Box { first, .. } => Some(a.map(&mut |k| tidy(&k.minus(first)))),
            KeptPart::One => None,
        };
        indices.into_iter().zip(&parts).filter_map(inside).collect()
    });
    Change::new(func, Value::Handle(Handle::Tensor(local.tensor.symbol.clone())))
}

// ---- place of the declaration

/// New place of a declaration.
struct DeclarationSite {
    /// Statement to declare the tensor around, or, for a sequence, inside.
    stmt: Stmt,
    /// Statements of a sequence to declare the tensor around.
    among: Option<RangeInclusive<usize>>,
    /// Number of loops crossed on the way.
    crossed: usize,
    /// Obstacle to a place further in.
    obstacle: Obstacle,
}

enum Obstacle {
    /// Value that goes from one iteration of the loop to another.
    Carried(Stmt, Box<Dependence>),
    /// Vectorised loop, which cannot hold arrays.
    Vectorised(Stmt),
    /// Statements that use the tensor.
    Used(Vec<Stmt>),
}

impl DeclarationSite {
    /// Finds the innermost block with all uses of the tensor, across loops that carry no value of it.
    fn innermost(all: &Dependences<'_>, local: &Local) -> DeclarationSite {
        let name = &local.tensor.symbol;
        let flow = Flow { all, tensor: name };
        let (mut at, mut crossed) = (local.body.clone(), 0);
        loop {
            let within = match next(&at, name, &flow) {
                Ok(within) => within,
                Err((among, obstacle)) => return DeclarationSite { stmt: at, among, crossed, obstacle },
            };
            crossed += usize::from(matches!(at.kind(), StmtKind::For { .. }));
            at = within;
        }
    }

    /// Declares the tensor in this place. Returns the program and the tensor.
    fn declared(&self, func: &Func, local: &Local) -> (Func, Local) {
        let around = |body: Stmt| local.stmt.with_kind(StmtKind::VarDef { tensor: local.tensor.clone(), body });
        let new = match (self.stmt.kind(), &self.among) {
            (StmtKind::Seq(stmts), Some(among)) if among.clone().count() < stmts.len() => {
                let (first, last) = (*among.start(), *among.end());
                let origin = self.stmt.origin().derive("contract", "scope");
                let scope = around(Stmt::seq(stmts[among.clone()].iter().cloned(), origin));
                let parts = [&stmts[..first], &[scope], &stmts[last + 1..]].concat();
                self.stmt.with_kind(StmtKind::Seq(parts))
            }
            _ => around(self.stmt.clone()),
        };
        let body = tree::replaced(&local.body, self.stmt.id(), &new);
        // The new place may not be reached, so the checks of the sizes stay in the old one.
        let sizes: Vec<usize> = (0..local.tensor.ndim()).collect();
        let body = local.after_checks(func, "contract", &sizes, body);
        let func = tree::replace(func, local.stmt.id(), &body);
        let stmt = tree::find(&func.body, local.stmt.id()).unwrap_or_else(|| local.stmt.clone());
        let body = match stmt.kind() {
            StmtKind::VarDef { body, .. } => body.clone(),
            _ => local.body.clone(),
        };
        (func, Local { tensor: local.tensor.clone(), stmt, body })
    }
}

/// Returns the statement directly inside that holds all uses of the tensor, if the tensor may be declared there;
/// otherwise the statements of a sequence that use it, and the obstacle.
fn next(at: &Stmt, name: &Symbol, flow: &Flow<'_, '_>) -> Result<Stmt, (Option<RangeInclusive<usize>>, Obstacle)> {
    let here = |obstacle: Obstacle| Err((None, obstacle));
    // Bounds, conditions and shapes are evaluated before the statements inside.
    if at.kind().exprs().into_iter().any(|e| effects::loads(e).contains(name)) {
        return here(Obstacle::Used(vec![at.clone()]));
    }
    match at.kind() {
        StmtKind::Seq(stmts) => {
            let users: Vec<usize> = (0..stmts.len()).filter(|k| block::uses(&stmts[*k], name)).collect();
            match users.as_slice() {
                [one] => Ok(stmts[*one].clone()),
                [first, .., last] => {
                    let obstacle = Obstacle::Used(users.iter().map(|k| stmts[*k].clone()).collect());
                    Err((Some(*first..=*last), obstacle))
                }
                [] => here(Obstacle::Used(vec![at.clone()])),
            }
        }
        StmtKind::VarDef { body, .. } => Ok(body.clone()),
        StmtKind::If { then, otherwise, .. } => {
            let otherwise = otherwise.as_ref().filter(|o| block::uses(o, name));
            match (block::uses(then, name), otherwise) {
                (true, None) => Ok(then.clone()),
                (false, Some(o)) => Ok(o.clone()),
                _ => here(Obstacle::Used(vec![at.clone()])),
            }
        }
        StmtKind::For { props, .. } if props.vectorize.is_some() => here(Obstacle::Vectorised(at.clone())),
        StmtKind::For { extent: Extent::Range { .. }, body, .. } => match flow.carried(at) {
            Some(d) => here(Obstacle::Carried(at.clone(), Box::new(d))),
            None => Ok(body.clone()),
        },
        _ => here(Obstacle::Used(vec![at.clone()])),
    }
}

impl Obstacle {
    fn refusal(self, s: &Schedule, local: &Local) -> Refusal {
        let name = &local.tensor.symbol;
        match self {
            Obstacle::Carried(l, d) => {
                let text =
                    format!("the loop `{}` carries values of `{name}` from iteration to iteration", s.called(&l));
                Refusal::dependence(3, text, *d)
            }
            Obstacle::Vectorised(l) => {
                let text = format!("all of `{name}` is live at once, around a loop that is already vectorised");
                Refusal::illegal(3, text)
                    .label(l.origin().span(), "this loop")
                    .help("take this step before `vectorize`")
            }
            Obstacle::Used(stmts) => match stmts.as_slice() {
                [first, .., last] => {
                    let text = format!("all of `{name}` is live at once, between the statements that use it");
                    let refusal = Refusal::illegal(3, text)
                        .label(first.origin().span(), "first used here")
                        .label(last.origin().span(), "last used here");
                    match [first, last].iter().all(|s| matches!(s.kind(), StmtKind::For { .. })) {
                        true => refusal.help("fuse the loops that write and read it (`s.fuse`), then take this step"),
                        false => refusal,
                    }
                }
                _ => Refusal::illegal(
                    3,
                    format!("nothing to contract: `{name}` is declared where it is used, and all of it is used there"),
                )
                .label(local.stmt.origin().span(), "declared here"),
            },
        }
    }
}

// ---- kept parts

/// Computes the used part of each dimension within the tensor's scope.
fn parts(func: &Func, local: &Local) -> Vec<KeptPart> {
    let (tensor, body) = (&local.tensor, &local.body);
    let uses: Vec<Reference> = references(func).into_iter().filter(|r| r.tensor == tensor.symbol).collect();
    let sides = region::around(func, body, tensor, &uses.iter().collect::<Vec<_>>());
    // An index is dropped only if neither the index nor its computation can stop the program.
    let mut sure = vec![true; tensor.ndim()];
    region::at_accesses(func, body, &tensor.symbol, &mut |c, _, indices| {
        for (k, sure) in sure.iter_mut().enumerate() {
            let index = &indices[k].index;
            *sure = *sure && c.in_range(&tensor.symbol, k, index) && !c.may_stop(index);
        }
    });
    let mut facts = walk::at(func, body.id()).unwrap_or_else(|| Context::new(func));
    let all = sides.into_iter().zip(&tensor.shape).zip(sure);
    all.map(|((side, dim), sure)| match side.size.as_int() {
        Some(1) if sure => KeptPart::One,
        _ if is_less(func, &mut facts, &side.size, dim) => KeptPart::Box { first: side.lo, size: side.size },
        _ => KeptPart::All,
    })
    .collect()
}

/// Returns whether `size` is worth keeping instead of `dim`: it is less, and known before the program runs, so that
/// memory can be laid out.
fn is_less(func: &Func, facts: &mut Context, size: &Expr, dim: &Expr) -> bool {
    let mut known = !size.may_fail();
    size.walk(&mut |e| match e.kind() {
        ExprKind::Var(v) => known &= func.sizes.contains(v),
        ExprKind::Load(..) => known = false,
        _ => {}
    });
    // A box of constant size may reach beyond a tensor that is smaller still.
    known && !facts.prove(&dim.less_eq(size)) && (size.as_int().is_some() || facts.prove(&size.less_eq(dim)))
}
