//! Single elements that are read and never written: `t[n - 1]` after a loop that ends at `n - 1`.
//!
//! **Does**: among the local tensors and results that are written at all, finds those with an element that is read in
//! some run (every element of a result is) and that no write of the program can access in that run. **How**: the exact
//! set of states in which the read is executed, minus the states in which some instance of some write accesses the same
//! element, over-approximated; isl subtracts, and a remaining point is the witness. **Does not find**: reads or writes
//! that depend on loaded values, or on non-affine arithmetic; elements that are written too late.

use super::super::context::{Context, Key};
use super::super::depend::Dependences;
use super::super::effects;
use super::super::feasibility::{Assumptions, System};
use super::super::instance::{Instance, Names, Pair, Relation, Side};
use super::super::linear::{Atom, Linear};
use super::super::reference::{Reference, Step, Use};
use crate::isl;
use rustc_hash::FxHashSet;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Expr, ExprKind, Func, Stmt, StmtKind, Symbol, Tensor};

/// Maximum number of writes of a tensor that are subtracted: isl's subtraction takes exponentially many steps in the
/// worst case.
const MAX_WRITES: usize = 8;
/// Maximum number of queries for one program.
const MAX_QUESTIONS: usize = 200;

/// Maximum size that is reported: a 32-bit index cannot address all of a larger tensor.
const MAX_SIZE: i64 = i32::MAX as i64;

/// Element that is read and never written.
#[derive(Clone, Debug)]
pub struct Element {
    /// Tensor.
    pub tensor: Symbol,
    /// Statement that reads the element; `None` for a result, which the caller reads.
    pub read: Option<Stmt>,
    /// First statement that writes the tensor.
    pub write: Stmt,
    /// Indices of the element.
    pub indices: Vec<i64>,
    /// Values of the program's sizes for which this happens.
    pub sizes: Vec<(Symbol, i64)>,
}

/// Returns one element that is read and never written for each tensor that has one, in the order of the reads, results
/// last.
pub fn elements(dependences: &Dependences<'_>) -> Vec<Element> {
    let func = dependences.func();
    let changing = effects::writes(&func.body);
    let mut done: FxHashSet<Symbol> = FxHashSet::default();
    let mut questions = 0;
    let mut out = Vec::new();
    let results = func.results.iter().map(|t| (t, None));
    let reads = dependences.references().iter().filter(|r| r.kind != Use::Write).map(|r| (&r.declared, Some(r)));
    for (tensor, read) in reads.chain(results) {
        if !matches!(tensor.role, Role::Local | Role::Result) || done.contains(&tensor.symbol) {
            continue;
        }
        let writes: Vec<&Reference> = dependences.of(&tensor.symbol).filter(|r| r.kind.writes()).collect();
        let known = writes.iter().all(|w| w.indices.is_some());
        if writes.is_empty() || writes.len() > MAX_WRITES || !known || writes.iter().any(|w| fills(w)) {
            done.insert(tensor.symbol.clone());
            continue;
        }
        if questions == MAX_QUESTIONS {
            break;
        }
        questions += 1;
        if let Some(found) = ElementQuery::new(dependences, &changing).ask(tensor, read, &writes) {
            done.insert(tensor.symbol.clone());
            out.push(found);
        }
    }
    out
}

/// Returns whether a write fills the whole tensor unconditionally, as `t[:, :] = …` does: most tensors are initialised
/// so, and need no query.
fn fills(write: &Reference) -> bool {
    let mut inner = write.site.path.constraints();
    inner.retain(|(k, _)| *k >= write.scope());
    let loops: Vec<(&Symbol, &[Expr; 3])> = inner
        .iter()
        .filter_map(|(_, s)| match s {
            Step::Loop { iter, bounds: Some(bounds), .. } => Some((iter, bounds)),
            _ => None,
        })
        .collect();
    let others = inner.iter().any(|(_, s)| matches!(s, Step::Branch { .. } | Step::Loop { bounds: None, .. }));
    let indices = write.indices.iter().flatten();
    !others
        && write.guards.is_empty()
        && indices.zip(&write.declared.shape).enumerate().all(|(k, (index, dim))| {
            let own = loops.iter().find(|(iter, _)| matches!(index.kind(), ExprKind::Var(s) if s == *iter));
            let once = write.indices.iter().flatten().position(|i| i == index) == Some(k);
            once && own.is_some_and(|(_, [begin, end, step])| {
                begin.as_int() == Some(0) && step.as_int() == Some(1) && end == dim
            })
        })
}

/// Query about one tensor and one read of it, with its own facts.
struct ElementQuery<'d, 'f> {
    dependences: &'d Dependences<'f>,
    ctx: Context,
    names: Names,
    changing: &'d FxHashSet<Symbol>,
}

impl<'d, 'f> ElementQuery<'d, 'f> {
    fn new(dependences: &'d Dependences<'f>, changing: &'d FxHashSet<Symbol>) -> Self {
        ElementQuery { dependences, ctx: Context::new(dependences.func()), names: Names::default(), changing }
    }

    /// Finds an element that the read accesses, or the caller for a result, and that no write accesses.
    fn ask(mut self, tensor: &Tensor, read: Option<&Reference>, writes: &[&Reference]) -> Option<Element> {
        let func = self.dependences.func();
        let definitions = self.dependences.definitions();
        let mark = self.ctx.mark();
        let mut pair = Pair {
            ctx: &mut self.ctx,
            names: &mut self.names,
            definitions,
            unstable: self.changing.clone(),
            assumed: Assumptions::default(),
        };
        let mut here = Instance::new(Side::Shared);
        let element = match read {
            Some(r) => {
                pair.enter_rest(r.site.path.constraints().into_iter().map(|(_, s)| s), &mut here);
                pair.execute(r, &mut here)?
            }
            None => any_element(&mut pair, func, tensor, &mut here),
        };
        let exact = !pair.assumed.vague && pair.assumed.choices.is_empty();
        if !exact || pair.assumed.impossible || pair.ctx.is_unreachable() {
            return None;
        }
        let whole = pair.ctx.system(mark, &func.sizes);
        let own: Vec<&Symbol> = element_symbols(read, &element);
        if !whole.complete || !whole.atoms.iter().all(|a| is_determined(pair.ctx, &own, func, *a)) {
            return None;
        }
        let mut parts = Vec::new();
        for w in writes {
            let before = pair.ctx.mark();
            pair.assumed = Assumptions::default();
            let touches = touch(&mut pair, w, read, &element);
            if touches {
                parts.push(pair.ctx.system(mark, &func.sizes).over(&whole.atoms));
            }
            pair.ctx.pop(before);
        }
        let point = isl::outside(whole.atoms.len(), &whole.rows, &parts)??;
        let value = |l: &Linear| value_at(&whole, &point, l);
        let indices = element.iter().map(|e| value(&pair.ctx.linear(e))).collect::<Option<_>>()?;
        let size = |s: &Symbol| Some((s.clone(), value(&Linear::atom(pair.ctx.variable(s)))?));
        let sizes: Vec<(Symbol, i64)> = func.sizes.iter().filter_map(size).collect();
        if sizes.iter().any(|(_, n)| *n > MAX_SIZE) {
            return None;
        }
        let (read, write) = (read.map(|r| r.site.stmt.clone()), writes.first()?.site.stmt.clone());
        Some(Element { tensor: tensor.symbol.clone(), read, write, indices, sizes })
    }
}

/// Assumes that the caller reads some element of a result at the end of the program, after all assertions that every
/// run passes. Returns the element's indices.
fn any_element(pair: &mut Pair<'_>, func: &Func, tensor: &Tensor, here: &mut Instance) -> Vec<Expr> {
    let mut at = Some(&func.body);
    while let Some(stmt) = at {
        at = match stmt.kind() {
            StmtKind::VarDef { body, .. } => Some(body),
            StmtKind::Seq(all) => {
                let end = Step::Child { seq: stmt.clone(), position: all.len(), asserted: true };
                pair.enter_rest(&[end], here);
                all.last()
            }
            _ => None,
        };
    }
    let index = |(k, dim): (usize, &Expr)| {
        let e = Expr::var(&Symbol::new(format!("d{k}")));
        pair.suppose(&Expr::int(0).less_eq(&e), true);
        pair.suppose(&e.less(dim), true);
        e
    };
    tensor.shape.iter().enumerate().map(index).collect()
}

/// Returns the iterators of the read, or the indices of a result.
fn element_symbols<'e>(read: Option<&'e Reference>, element: &'e [Expr]) -> Vec<&'e Symbol> {
    match read {
        Some(r) => r.site.loops().map(|(_, iter)| iter).collect(),
        None => element.iter().filter_map(|e| if let ExprKind::Var(s) = e.kind() { Some(s) } else { None }).collect(),
    }
}

/// Returns whether an atom takes every value that the rows allow: a size, an iterator, or an exact function of these.
fn is_determined(ctx: &Context, own: &[&Symbol], func: &Func, a: Atom) -> bool {
    match &ctx.atoms[a.0 as usize].key {
        Key::Expr(e) => matches!(e.kind(), ExprKind::Var(s) if own.contains(&s) || func.sizes.contains(s)),
        Key::Trip(s) => own.contains(&s),
        Key::Quotient(_, d) | Key::Remainder(_, d) => d.as_constant().is_some(),
        Key::Product(_) | Key::Min(..) | Key::Max(..) | Key::Select(..) => false,
    }
}

/// Assumes that some instance of the write accesses the element that is read. Returns whether that is possible.
fn touch(pair: &mut Pair<'_>, write: &Reference, read: Option<&Reference>, element: &[Expr]) -> bool {
    // Every iteration of a loop around the declaration has a tensor of its own.
    let (common, same) = match read {
        Some(r) => (write.site.common(&r.site).min(write.scope()), Relation::Same),
        None => (0, Relation::Any),
    };
    let steps = write.site.path.constraints();
    let (both, own) = steps.split_at(steps.partition_point(|(k, _)| *k < common));
    let mut there = Instance::new(Side::Source);
    pair.enter_before(both.iter().map(|(_, s)| *s), &vec![same; both.len()], &mut there);
    pair.enter_rest(own.iter().map(|(_, s)| *s), &mut there);
    let Some(written) = pair.execute(write, &mut there) else { return true };
    pair.suppose_one(&write.declared, &written, element);
    !pair.assumed.impossible && !pair.ctx.is_unreachable()
}

fn value_at(system: &System, point: &[i64], l: &Linear) -> Option<i64> {
    let sum = l.terms.iter().try_fold(l.constant, |sum, (a, c)| {
        let at = system.atoms.iter().position(|b| a == b)?;
        sum.checked_add(i128::from(point[at]).checked_mul(*c)?)
    });
    i64::try_from(sum?).ok()
}
