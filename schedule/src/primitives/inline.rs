#![doc = include_str!("inline.md")]
use crate::entry::{Entry, Run};
use crate::local::{self, Local};
use crate::refusal::Refusal;
use crate::region::Witness;
use crate::schedule::{Change, Schedule};
use crate::tree::{self, Loop};
use crate::value::{Args, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use taffeta_analysis::pass::substitute;
use taffeta_analysis::query::depend::{DependenceQuery, Dependences, Relation};
use taffeta_analysis::query::reference::{Reference, Step, Use, references};
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::poly::tidy;
use taffeta_ast::{Access, Expr, ExprKind, Func, Origin, Stmt, StmtId, StmtKind, Symbol};

pub(crate) const ENTRY: Entry = Entry {
    name: "inline",
    signature: "s.inline(T)",
    params: &["tensor"],
    summary: "Computes the elements of a local tensor where they are read.",
    doc: include_str!("inline.md"),
    run: Run::Primitive(run),
};

fn run(s: &Schedule, args: &Args<'_>) -> Result<Change, Refusal> {
    // 1. A local tensor.
    let local = Local::of(s, args)?;
    let plan = check(s, local)?;
    Ok(apply(s, &plan))
}

struct Plan {
    local: Local,
    /// Store that defines the tensor.
    store: Stmt,
    /// Scope of the tensor, with the stored expression in place of every read.
    body: Stmt,
}

fn check(s: &Schedule, local: Local) -> Result<Plan, Refusal> {
    let func = s.func();
    let name = local.tensor.symbol.clone();
    let all: Vec<Reference> = references(func).into_iter().filter(|r| r.tensor == name).collect();
    // 2. One definition.
    let write = one_definition(&local, &all)?;
    let StmtKind::Store { indices, value, .. } = write.site.stmt.kind() else {
        return Err(Refusal::illegal(2, format!("`{name}` is not stored into")));
    };
    let at = write.site.stmt.origin().span();
    // 3. The iteration that writes an element follows from the element's indices.
    let element: Vec<Symbol> = indices.iter().map(|_| Symbol::new("x")).collect();
    let way = &write.site.path[write.scope()..];
    let witness = solved(func, write, way, &element).ok_or_else(|| {
        let text = format!("the indices of an element of `{name}` do not determine the iteration that writes it");
        Refusal::illegal(3, text).label(at, "written here")
    })?;
    // 4. Every access is in range: without the tensor, nothing checks it.
    let dims: Vec<usize> = (0..local.tensor.ndim()).collect();
    local.in_range(func, 4, &dims)?;
    let value = witness.value(value);
    let gone: Vec<usize> = dims.into_iter().filter(|k| !evaluates(&value, &element[*k])).collect();
    local.require_droppable_indices(func, 4, &gone)?;
    // 5. The program stops in the same cases.
    require_same_stops(func, &local, write, &all)?;
    // 6. Every read comes after the write of its element.
    let around: Vec<StmtId> = s.around(local.stmt.id()).iter().map(Stmt::id).collect();
    let relate = |l: &Stmt| if around.contains(&l.id()) { Relation::Same } else { Relation::Any };
    let early = Dependences::inside(func, &[local.stmt.id()]).first(&DependenceQuery {
        source: &|r| r.tensor == name && r.kind == Use::Read,
        sink: &|r| r.tensor == name && r.kind == Use::Write,
        relate: &relate,
        ..DependenceQuery::default()
    });
    if let Some(d) = early {
        return Err(Refusal::dependence(6, format!("an element of `{name}` is read before it is written"), d));
    }
    // 7. The operands of the value are live, and unchanged, where the tensor is read.
    let (body, made) = replaced(&local.body, &name, &element, &value);
    let readers: FxHashSet<StmtId> = all.iter().filter(|r| r.kind == Use::Read).map(|r| r.site.stmt.id()).collect();
    alive(&local, write, &value, &readers)?;
    let scope = local.stmt.with_kind(StmtKind::VarDef { tensor: local.tensor.clone(), body: body.clone() });
    let after = tree::replace(func, local.stmt.id(), &scope);
    unchanged(&after, &local, write.site.stmt.id(), &value, &readers, &made, &relate)?;
    let store = write.site.stmt.clone();
    Ok(Plan { local, store, body })
}

fn apply(s: &Schedule, plan: &Plan) -> Change {
    let Plan { local, store, body } = plan;
    let func = s.func();
    let mut gone = vec![local.stmt.id()];
    let mut facts = local.facts(func);
    let sizes = (0..local.tensor.ndim())
        .filter_map(|k| local::not_negative(&local.stmt, &local.tensor, k, "inline", &mut facts))
        .collect::<Vec<_>>();
    let body = pruned(func, body, store.id(), &mut gone);
    let new = Stmt::seq(sizes.into_iter().chain([body]), Origin::none());
    let change = Change::new(tree::replace(func, local.stmt.id(), &new), Value::None);
    gone.into_iter().fold(change, |c, id| c.moved(id, []))
}

/// Returns the only write of the tensor, which is unconditional and does not read the tensor.
fn one_definition<'a>(local: &Local, all: &'a [Reference]) -> Result<&'a Reference, Refusal> {
    let name = &local.tensor.symbol;
    let refuse = |text: String| Refusal::illegal(2, text);
    let writes: Vec<&Reference> = all.iter().filter(|r| r.kind != Use::Read).collect();
    let write = match writes.as_slice() {
        [one] if one.kind == Use::Write => *one,
        [] => {
            return Err(refuse(format!("`{name}` is never written")).label(local.stmt.origin().span(), "declared here"));
        }
        many => {
            let mut r = refuse(format!("`{name}` is written by more than one statement, or by a reduction"));
            for w in many.iter().take(3) {
                r = r.label(w.site.stmt.origin().span(), "written here");
            }
            return Err(r);
        }
    };
    let at = write.site.stmt.origin().span();
    if write.site.path[write.scope()..]
        .iter()
        .any(|s| matches!(s, Step::Branch { .. } | Step::Loop { bounds: None, .. }))
    {
        return Err(refuse(format!("`{name}` is written under a condition")).label(at, "written here"));
    }
    if all.iter().any(|r| r.kind == Use::Read && r.site.stmt.id() == write.site.stmt.id()) {
        return Err(refuse(format!("`{name}` is computed from itself")).label(at, "written here"));
    }
    Ok(write)
}

/// Solves for the iteration of the loops on the path that writes an element, and proves that it is the only one.
fn solved(func: &Func, write: &Reference, way: &[Step], element: &[Symbol]) -> Option<Witness> {
    let indices = write.indices.as_ref()?;
    let vars: Vec<Expr> = element.iter().map(Expr::var).collect();
    let witness = Witness::of(way, indices, &vars)?;
    let own: FxHashMap<&Symbol, &Expr> = element.iter().zip(indices).collect();
    // The solution must not mention these iterators, nor load data, which may differ where the tensor is read.
    let iters: Vec<&Symbol> = way
        .iter()
        .filter_map(|s| match s {
            Step::Loop { iter, .. } => Some(iter),
            _ => None,
        })
        .collect();
    if witness.values.values().any(|v| effects::mentions(v, &iters) || !effects::loads(v).is_empty()) {
        return None;
    }
    let mut facts = walk::at(func, write.site.stmt.id())?;
    let sure = way.iter().all(|step| {
        let Step::Loop { iter, .. } = step else { return true };
        let Some(value) = witness.values.get(iter) else { return false };
        let here = value.rewrite(&mut |e| match e.kind() {
            ExprKind::Var(s) => own.get(s).map_or(e.clone(), |i| (*i).clone()),
            _ => e,
        });
        facts.prove(&here.equals(&Expr::var(iter)))
    });
    sure.then_some(witness)
}

/// Returns whether the iterator is evaluated whenever the expression is.
fn evaluates(e: &Expr, iter: &Symbol) -> bool {
    match e.kind() {
        ExprKind::Var(s) => s == iter,
        ExprKind::Apply(op, args) if op.is_lazy() => evaluates(&args[0], iter),
        _ => e.children().into_iter().any(|c| evaluates(c, iter)),
    }
}

/// Checks that computing the value cannot stop the program, or that the value is surely read later in the block of the
/// write, under the same loops and no condition.
fn require_same_stops(func: &Func, local: &Local, write: &Reference, all: &[Reference]) -> Result<(), Refusal> {
    let StmtKind::Store { value, .. } = write.site.stmt.kind() else { return Ok(()) };
    let Some(mut facts) = walk::at(func, write.site.stmt.id()) else { return Ok(()) };
    if !facts.may_stop(value) {
        return Ok(());
    }
    let own = &write.site.path;
    let behind = |r: &&Reference| {
        let there = &r.site.path;
        let last = match (own.last(), there.last()) {
            (Some(Step::Child { seq, position, .. }), Some(Step::Child { seq: other, position: later, .. })) => {
                seq.id() == other.id() && position < later
            }
            _ => false,
        };
        last && own.len() == there.len() && r.guards.is_empty() && r.indices == write.indices
    };
    if all.iter().filter(|r| r.kind == Use::Read).any(|r| behind(&r)) {
        return Ok(());
    }
    let text = format!(
        "computing the value of `{}` may stop the program, and elements that are not read would no longer be computed",
        local.tensor.symbol
    );
    Err(Refusal::illegal(5, text)
        .label(write.site.stmt.origin().span(), "written here")
        .help("assert before the statement that its indices are in range"))
}

/// Loads, as tensors with subscripts.
type Loads = FxHashSet<(Symbol, Vec<Expr>)>;

/// Replaces every read of the tensor by the value. Returns the statement and the loads in the inserted values.
fn replaced(body: &Stmt, tensor: &Symbol, element: &[Symbol], value: &Expr) -> (Stmt, Loads) {
    let made = RefCell::new(Loads::default());
    let of = |indices: &[Access]| {
        let own: FxHashMap<&Symbol, &Expr> = element.iter().zip(indices.iter().map(|a| &a.index)).collect();
        let mut done = FxHashMap::default();
        let mut f = |e: &Expr| match e.kind() {
            ExprKind::Var(s) => own.get(s).map(|i| (*i).clone()),
            _ => None,
        };
        let new = substitute::rewrite_expr(value, &mut f, &mut done);
        let mut shorter = |e: &Expr| match e.kind() {
            ExprKind::Load(t, indices) => {
                Some(Expr::load(t, indices.iter().map(|a| a.map(&mut tidy)).collect(), e.dtype()))
            }
            _ => None,
        };
        let new = substitute::rewrite_expr(&new, &mut shorter, &mut FxHashMap::default());
        new.walk(&mut |e| {
            if let ExprKind::Load(t, indices) = e.kind() {
                made.borrow_mut().insert((t.clone(), indices.iter().map(|a| a.index.clone()).collect()));
            }
        });
        new
    };
    let stmt = tree::map_loads(body, tensor, &of);
    (stmt, made.into_inner())
}

/// Checks that the operands of the value are live, and the same tensors, at every read of the tensor.
fn alive(local: &Local, write: &Reference, value: &Expr, readers: &FxHashSet<StmtId>) -> Result<(), Refusal> {
    let loaded = effects::loads(value);
    let mut declared: Vec<Stmt> = Vec::new();
    local.body.walk(&mut |s| {
        if matches!(s.kind(), StmtKind::VarDef { tensor, .. } if loaded.contains(&tensor.symbol)) {
            declared.push(s.clone());
        }
    });
    for d in declared {
        let way = tree::path(&local.body, d.id()).unwrap_or_default();
        let repeated = way.iter().any(|s| matches!(s.kind(), StmtKind::For { .. } | StmtKind::While { .. }));
        if repeated || readers.iter().any(|r| tree::find(&d, *r).is_none()) {
            let text =
                format!("an operand of the value of `{}` is not live where the value is read", local.tensor.symbol);
            return Err(Refusal::illegal(7, text)
                .label(write.site.stmt.origin().span(), "written here")
                .label(d.origin().span(), "this tensor"));
        }
    }
    Ok(())
}

/// Checks that no operand of the value is overwritten between the write of the tensor and its reads. `after` is the
/// program in which the reads are replaced, and the write still stands.
fn unchanged(
    after: &Func,
    local: &Local,
    write: StmtId,
    value: &Expr,
    readers: &FxHashSet<StmtId>,
    made: &Loads,
    relate: &(dyn Fn(&Stmt) -> Relation + Sync),
) -> Result<(), Refusal> {
    let written = effects::writes(&local.body);
    let loaded: FxHashSet<Symbol> = effects::loads(value).intersection(&written).cloned().collect();
    if loaded.is_empty() {
        return Ok(());
    }
    let scope = local.stmt.id();
    let all = Dependences::inside(after, &[scope]);
    // Writes that overwrite an operand after the value was computed …
    let later = all.all(&DependenceQuery {
        source: &|r| r.kind == Use::Read && r.site.stmt.id() == write && loaded.contains(&r.tensor),
        sink: &|r| r.kind.writes() && r.site.inside(scope),
        relate,
        ..DependenceQuery::default()
    });
    let overwriting: FxHashSet<StmtId> = later.iter().map(|d| d.sink.site.stmt.id()).collect();
    // … and run before a replaced read computes it.
    let made_here = |r: &Reference| {
        let key = r.indices.clone().map(|i| (r.tensor.clone(), i));
        readers.contains(&r.site.stmt.id()) && key.is_some_and(|k| made.contains(&k))
    };
    let found = all.first(&DependenceQuery {
        source: &|r| r.kind.writes() && overwriting.contains(&r.site.stmt.id()),
        sink: &|r| r.kind == Use::Read && made_here(r),
        relate,
        ..DependenceQuery::default()
    });
    match found {
        None => Ok(()),
        Some(d) => {
            let text =
                format!("an operand of the value of `{}` is overwritten before the value is read", local.tensor.symbol);
            Err(Refusal::dependence(7, text, d))
        }
    }
}

/// Removes the store, and the loops that become empty and cannot stop the program.
fn pruned(func: &Func, stmt: &Stmt, store: StmtId, gone: &mut Vec<StmtId>) -> Stmt {
    if stmt.id() == store {
        gone.push(store);
        return Stmt::nop();
    }
    if tree::find(stmt, store).is_none() {
        return stmt.clone();
    }
    let new = match stmt.kind() {
        StmtKind::Seq(all) => {
            let kept = all.iter().map(|s| pruned(func, s, store, gone)).filter(|s| !s.is_nop()).collect::<Vec<_>>();
            let flat = Stmt::seq(kept, stmt.origin().clone());
            return match flat.kind() {
                StmtKind::Seq(_) => stmt.with_kind(flat.kind().clone()),
                _ => flat,
            };
        }
        _ => stmt.map(&mut |s| pruned(func, s, store, gone), &mut Expr::clone),
    };
    if let Some(l) = Loop::of(&new)
        && l.body.is_nop()
    {
        let mut facts = walk::at(func, stmt.id()).unwrap_or_else(|| Context::new(func));
        let quiet =
            [&l.begin, &l.end].into_iter().all(|e| !facts.may_stop(e)) && l.step.as_int().is_some_and(|s| s != 0);
        if quiet {
            gone.push(stmt.id());
            return Stmt::nop();
        }
    }
    new
}
