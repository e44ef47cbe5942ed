//! Random access, at coordinates that no loop enumerates in storage order: a region of one coordinate. The position
//! there is computed, found in a hash table or searched for, before the statement that needs it.

use super::cursor::PATH;
use super::exprs::{each_access, guarded, load, loads};
use super::nest::{LoopBuilder, Region};
use super::state::{Bindings, Lower};
use crate::access;
use crate::explain::FibreRole;
use crate::levels;
use crate::looplet::Looplet;
use std::sync::Arc;
use taffeta_analysis::query::effects;
use taffeta_ast::expr::Protocol;
use taffeta_ast::stmt::{LoopProps, Role};
use taffeta_ast::{Diagnostic, Expr, Extent, Span, Stmt, StmtKind, Symbol, Tensor};

/// Search for an element that a statement needs first.
pub(super) struct RequiredSearch {
    /// Statement with accesses located.
    pub(super) located: Stmt,
    /// Element to search.
    pub(super) access: Expr,
    /// Checks that precede the search.
    pub(super) checks: Vec<Stmt>,
}

impl Lower {
    /// Lowers a statement with a random access: the element is looked up first, under the condition `effect_cond` that
    /// the statement has an effect.
    pub(super) fn searched(&mut self, s: &Stmt, access: &Expr, effect_cond: &Expr, bound: &Bindings) -> Stmt {
        let span = asking(s, access).origin().span();
        let Some(mut cursor) = self.cursor(access) else { unreachable!("the access loads from a fibre") };
        let written = effects::writes(s);
        if load(access).is_some_and(|(_, at)| at[..=PATH].iter().any(|a| loads(&a.index, &written)))
            && let Some(evaluated) = evaluated(s)
        {
            // Nested statements may change the coordinate.
            return self.stmt(&evaluated, bound);
        }
        let (tensor, k) = self.fibres[&cursor.fibre].clone();
        let level = &self.tensors[&tensor].levels[k];
        // Some levels find a coordinate without a search.
        let lookup = levels::of_level(level).and_then(|kind| kind.lookup(level, &cursor.above, &cursor.index));
        if let Some(lookup) = lookup {
            cursor.looplet = Looplet::Lookup(lookup);
        }
        if !matches!(cursor.looplet, Looplet::Stepper(_)) {
            self.record_role(&cursor, FibreRole::Asked);
        }
        if matches!(cursor.looplet, Looplet::Stepper(_)) && self.probe(&cursor, &cursor.index).is_none() {
            let requested = load(access).is_some_and(|(_, at)| at[PATH].protocol == Protocol::Locate);
            self.warn_of_search(&tensor, k, requested, span);
        }
        let mut all = self.range_checks(s, access, &Expr::bool(true), bound);
        let index = cursor.index.clone();
        let inside = bound.clone();
        let mut nest = LoopBuilder { s, iter: None, props: LoopProps::default(), inside, bodies: 0, id_taken: true };
        all.push(self.region(&mut nest, vec![cursor], &Region::Point(index), s.clone()));
        let all = nest.block(all);
        nest.branch(effect_cond, all, Stmt::nop())
    }

    /// Warns about an element that is searched for; `requested`: its access requests random access by `locate`.
    fn warn_of_search(&mut self, tensor: &Symbol, k: usize, requested: bool, span: Span) {
        let (why, help) = match requested {
            true => (
                format!(
                    "its level `{}` has no random access, which `locate` requires",
                    self.tensors[tensor].levels[k].level
                ),
                "remove `locate` if a loop can traverse the tensor, or store it in `hashed`, `bytemap` or `bitmap`",
            ),
            false => (
                "no loop traverses it in the order of its storage".to_string(),
                "put the loops in the order of its levels, or its levels in the order of the loops",
            ),
        };
        let text = format!("`{tensor}` is searched for each element: {why}");
        self.warn(Diagnostic::warning("structured::search", text).at(span).help(help));
    }

    /// Returns the first access of a statement at a known coordinate whose position is not computed from it alone, and
    /// the condition under which the statement has an effect. For a loop, the access may also be a loop-invariant one
    /// in its body; if its index may be out of range, the condition is that the loop is entered.
    pub(super) fn unknown(&self, s: &Stmt, bound: &Bindings) -> Option<(Expr, Expr)> {
        let mut found = None;
        // An insertion into a workspace comes after all of its operands are available.
        for insertion in [false, true] {
            for e in access::exprs(s) {
                guarded(&e, &Expr::bool(true), &mut |e, _| {
                    let is = match insertion {
                        true => self.is_insertion(e) && self.is_to_be_inserted(e, bound),
                        false => !self.is_insertion(e) && self.is_unknown(e, bound),
                    };
                    if found.is_none() && is {
                        found = Some((e.clone(), Expr::bool(true)));
                    }
                });
            }
        }
        let StmtKind::For { extent, body, .. } = s.kind() else { return found };
        let not_empty = match extent {
            Extent::Range { begin, end, step } if step.as_int() == Some(1) => Some(begin.less(end)),
            _ => None,
        };
        let written = effects::writes(body);
        let steady = |e: &Expr| {
            load(e).is_some_and(|(t, at)| {
                !self.grows(t, &written)
                    && at.iter().take(PATH + 1).all(|a| !loads(&a.index, &written))
                    && !self.is_made_of(e, &written)
            })
        };
        let mut look = |e: &Expr, guard: &Expr, always: bool| {
            let Some((_, at)) = load(e).filter(|_| found.is_none() && self.is_open(e, bound) && steady(e)) else {
                return;
            };
            let index = &at[PATH].index;
            let always = always && guard.as_bool() == Some(true) && !index.may_fail();
            if self.is_inside(e, bound) {
                found = Some((e.clone(), Expr::bool(true)));
            } else if let (true, Some(not_empty)) = (always, &not_empty) {
                found = Some((e.clone(), not_empty.clone()));
            }
        };
        each_access(body, true, &mut look);
        found
    }

    /// Returns whether a written element is ready for insertion: its coordinate is known, or it is known not to be
    /// stored.
    fn is_to_be_inserted(&self, e: &Expr, bound: &Bindings) -> bool {
        self.is_unknown(e, bound) || self.is_fresh(e)
    }

    /// Returns whether an expression is an element that must be searched before the enclosing loop, other than one
    /// written into a workspace.
    fn is_open(&self, e: &Expr, bound: &Bindings) -> bool {
        self.is_unknown(e, bound) && !self.is_insertion(e)
    }

    /// Returns whether an expression is an access at a known coordinate that must be searched.
    pub(super) fn is_unknown(&self, e: &Expr, bound: &Bindings) -> bool {
        self.is_known(e, bound) && self.position(e).is_none()
    }
}

/// Moves the condition or the bounds of a statement into scalars that are set before it; `None` for a statement without
/// nested statements.
fn evaluated(s: &Stmt) -> Option<Stmt> {
    let origin = || s.origin().derive("structured", "decision");
    let mut set = Vec::new();
    let mut keep = |name: &str, e: &Expr| {
        let tensor = Arc::new(Tensor::dense(Symbol::new(name), e.dtype(), Vec::new(), Role::Workspace));
        let kind = StmtKind::Store { tensor: tensor.symbol.clone(), indices: Vec::new(), value: e.clone() };
        let value = tensor.load([]);
        set.push((tensor, Stmt::new(kind, origin())));
        value
    };
    let kind = match s.kind() {
        StmtKind::If { cond, then, otherwise } => {
            StmtKind::If { cond: keep("cond", cond), then: then.clone(), otherwise: otherwise.clone() }
        }
        StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } => {
            let [begin, end, step] =
                [("begin", begin), ("end", end), ("step", step)].map(|(what, e)| match e.as_int() {
                    Some(_) => e.clone(),
                    None => keep(&format!("{}.{what}", iter.name()), e),
                });
            let extent = Extent::Range { begin, end, step };
            StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body: body.clone() }
        }
        _ => return None,
    };
    let (scalars, stores): (Vec<_>, Vec<_>) = set.into_iter().unzip();
    let all = Stmt::seq(stores.into_iter().chain([s.with_kind(kind)]), origin());
    let declared = |body: Stmt, tensor| Stmt::new(StmtKind::VarDef { tensor, body }, origin());
    Some(scalars.into_iter().rev().fold(all, declared))
}

/// Returns the first statement of a sequence that contains an access.
fn asking<'s>(s: &'s Stmt, access: &Expr) -> &'s Stmt {
    let has = |s: &Stmt| {
        let mut found = false;
        each_access(s, true, &mut |e, _, _| found |= e == access);
        found
    };
    match s.kind() {
        StmtKind::Seq(all) => all.iter().find(|one| has(one)).map_or(s, |one| asking(one, access)),
        StmtKind::VarDef { body, .. } => asking(body, access),
        _ => s,
    }
}
