//! Case splits on scalars with a single definition that may derive from the fill because an element is searched: the
//! rest of the block after such a scalar is lowered for both cases, if the case matters (`0.0 * inf` is 0 if the 0 is a
//! fill).
//!
//! ```text
//! t = A[k]                      if A stores k:
//! y[j] = t * x[j]          →        t = A.val[p]; y[j] = t * x[j]
//!                               else:
//!                                   y[j] = 0.0
//! ```

use super::cursor::PATH;
use super::exprs::{load, loads, source_span};
use super::random_access::RequiredSearch;
use super::split_selects::given_here;
use super::state::{Bindings, Lower};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_analysis::pass::copy::Copier;
use taffeta_analysis::pass::{fill_propagation, substitute};
use taffeta_analysis::query::effects;
use taffeta_ast::algebra::definitions;
use taffeta_ast::stmt::Role;
use taffeta_ast::{DType, Expr, Literal, Origin, Stmt, StmtKind, Symbol, Tensor};

/// Maximum number of scalars in one block that may derive from the fill by searches.
const MAX_CASES: usize = 8;

impl Lower {
    /// Lowers statements one after the other. After a scalar that may derive from the fill by an element that is
    /// searched, the remaining statements are lowered for both cases, if the case matters.
    pub(super) fn sequence_of(&mut self, s: &Stmt, all: &[Stmt], bound: &Bindings) -> Stmt {
        let mut out = Vec::new();
        for (k, one) in all.iter().enumerate() {
            if let StmtKind::Store { indices, .. } = one.kind()
                && indices.is_empty()
                && let Some(RequiredSearch { located, access, checks }) = self.required_search(one, bound)
                && let StmtKind::Store { tensor, value, .. } = located.kind()
                && let Some(scalars) = self.carried_by((tensor, value), &all[k + 1..])
            {
                out.extend(checks);
                if self.carried.len() == MAX_CASES {
                    let text = format!("too many scalars depend on searched elements; `{tensor}` is one of them");
                    self.refuse_at(source_span(one), text);
                    return Stmt::nop();
                }
                let tail = Stmt::seq([located.clone()].into_iter().chain(all[k + 1..].iter().cloned()), tail_of(s));
                let written = effects::writes(&tail);
                let changes =
                    load(&access).is_some_and(|(_, at)| at[..=PATH].iter().any(|a| loads(&a.index, &written)));
                if changes {
                    out.push(self.stmt(&save_index(&tail, &access), bound));
                    break;
                }
                self.carried.push(scalars);
                out.push(self.searched(&tail, &access, &Expr::bool(true), bound));
                self.carried.pop();
                break;
            }
            out.push(self.stmt(one, bound));
        }
        Stmt::seq(out, s.origin().clone())
    }

    /// Returns the search that a statement needs first.
    fn required_search(&self, s: &Stmt, bound: &Bindings) -> Option<RequiredSearch> {
        match self.lazy(s, bound) {
            Some(lazy) => self.condition_search(s, &lazy, bound),
            None => {
                let located = self.resolve_positions_here(s, bound);
                let (access, _) = self.unknown(&located, bound)?;
                Some(RequiredSearch { located, access, checks: self.checks(s, bound) })
            }
        }
    }

    /// Returns the scalar and the single-definition scalars set by the statements after it, which may derive from the
    /// fill with it; `None` unless the scalar has a single definition and its case matters to these statements.
    fn carried_by(&self, (scalar, value): (&Symbol, &Expr), rest: &[Stmt]) -> Option<Vec<Symbol>> {
        let mut given = vec![scalar.clone()];
        rest.iter().for_each(|s| given_here(s, &mut given));
        given.retain(|scalar| self.is_definition(scalar));
        let fill = |e: &Expr| {
            let tensor = &self.tensors[&self.fibres.get(load(e)?.0)?.0].tensor;
            Some(tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype)))
        };
        let is_carried = || fill_propagation::is_carried((scalar, value), &given, &self.several.borrow(), rest, &fill);
        (given.contains(scalar) && is_carried()).then_some(given)
    }

    /// Returns whether a scalar of an enclosing declaration has a single definition.
    fn is_definition(&self, scalar: &Symbol) -> bool {
        self.definition(&self.declared, scalar).is_some()
    }

    /// Returns the declaration, among the enclosing ones, of a scalar with a single definition.
    pub(super) fn definition<'s>(&self, declared: &'s [Stmt], scalar: &Symbol) -> Option<&'s Stmt> {
        let declares = |s: &&Stmt| matches!(s.kind(), StmtKind::VarDef { tensor, .. } if tensor.symbol == *scalar);
        let found = declared.iter().rev().find(declares)?;
        // Memoised: every store to a scalar queries it, and the answer takes a pass over the whole scope.
        let mut known = self.definitions.borrow_mut();
        let is = match known.get(scalar) {
            Some((s, is)) if s.same_node(found) => *is,
            _ => {
                let defined = definitions(found);
                // Nested scopes are queried next: one pass answers for a chain of scopes, each inside of another.
                for (inner, s) in declared_once(found) {
                    let is = defined.contains(&inner);
                    known.insert(inner, (s, is));
                }
                let is = defined.contains(scalar);
                known.insert(scalar.clone(), (found.clone(), is));
                is
            }
        };
        (is && !self.several.borrow().contains(scalar)).then_some(found)
    }

    /// Copies a statement; a copy of a scalar has a single definition if the scalar has one, and a copy of a workspace
    /// is sorted if the workspace is.
    pub(super) fn copied(&self, s: &Stmt, role: &'static str) -> Stmt {
        self.copied_by(&mut Copier::new("structured", role), s)
    }

    /// Copies a statement like [`Lower::copied`], with a copier that has further replacements.
    pub(super) fn copied_by(&self, copier: &mut Copier, s: &Stmt) -> Stmt {
        let copy = copier.stmt(s);
        let (mut several, mut sorted) = (self.several.borrow_mut(), self.sorted.borrow_mut());
        let (mut unsorted, mut stands_for) = (self.unsorted.borrow_mut(), self.stands_for.borrow_mut());
        for (old, (new, _)) in &copier.tensors {
            for all in [&mut *several, &mut *sorted, &mut *unsorted] {
                if all.contains(old) {
                    all.insert(new.clone());
                }
            }
            if let Some(of) = stands_for.get(old).cloned() {
                stands_for.insert(new.clone(), of);
            }
        }
        copy
    }
}

/// Saves the index of an access in a scalar, before a statement that may change its value.
fn save_index(s: &Stmt, access: &Expr) -> Stmt {
    let Some((t, at)) = load(access) else { return s.clone() };
    let index = Arc::new(Tensor::dense(Symbol::new("index"), DType::I64, Vec::new(), Role::Workspace));
    let mut asked = at.to_vec();
    asked[PATH].index = index.load([]);
    let asked = Expr::load(t, asked, access.dtype());
    let mut first = true;
    let body = s.map(
        &mut |inner| match std::mem::take(&mut first) {
            // Only the first statement's access: those of later statements may be at another coordinate.
            true => inner.map(&mut Stmt::clone, &mut |e| replace(e, access, &asked)),
            false => inner.clone(),
        },
        &mut Expr::clone,
    );
    let set = StmtKind::Store { tensor: index.symbol.clone(), indices: Vec::new(), value: at[PATH].index.clone() };
    let all = Stmt::seq([Stmt::new(set, tail_of(s)), body], tail_of(s));
    Stmt::new(StmtKind::VarDef { tensor: index, body: all }, tail_of(s))
}

fn replace(e: &Expr, from: &Expr, to: &Expr) -> Expr {
    let mut of = |e: Expr| if e == *from { to.clone() } else { e };
    substitute::rebuild_expr(e, &mut of, &mut FxHashMap::default())
}

/// Collects the local scalars with several definitions, such as those set in both branches of a condition. A region
/// that decides the condition leaves one store, but the meaning of the program depends on all.
pub(super) fn of_several_values(body: &Stmt) -> FxHashSet<Symbol> {
    let (mut several, defined) = (FxHashSet::default(), definitions(body));
    body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && tensor.ndim() == 0
            && !defined.contains(&tensor.symbol)
        {
            several.insert(tensor.symbol.clone());
        }
    });
    several
}

/// Returns the local scalars with exactly one declaration in a statement, with that declaration.
fn declared_once(s: &Stmt) -> impl Iterator<Item = (Symbol, Stmt)> {
    let mut found: FxHashMap<Symbol, Option<Stmt>> = FxHashMap::default();
    s.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind()
            && tensor.ndim() == 0
        {
            found.entry(tensor.symbol.clone()).and_modify(|known| *known = None).or_insert_with(|| Some(s.clone()));
        }
    });
    found.into_iter().filter_map(|(symbol, s)| Some((symbol, s?)))
}

fn tail_of(s: &Stmt) -> Origin {
    s.origin().derive("structured", "tail")
}
