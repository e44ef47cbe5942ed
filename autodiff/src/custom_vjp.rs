//! Calls of functions with a user-defined backward pass (`@gradient(f)`).
//!
//! Every other module treats such a call as one step: its arguments are copies that nothing writes again, and it alone
//! writes its results ([`CustomVjp`]). This module finds the calls, once for a request; `reverse/custom_vjp.rs` builds
//! their backward pass.

use crate::request::Request;
use rustc_hash::{FxHashMap, FxHashSet};
use taffeta_ast::func::{CustomVjp, SubTensor, Takes};
use taffeta_ast::{Diagnostic, Stmt, StmtId, StmtKind, Symbol};

/// Calls of a program with custom gradients, by the statements of their bodies.
pub(crate) struct Calls {
    pub all: Vec<CustomVjp>,
    by_stmt: FxHashMap<StmtId, usize>,
    /// Arguments and results of all calls.
    places: FxHashSet<Symbol>,
}

impl Calls {
    fn new(all: Vec<CustomVjp>) -> Calls {
        let by_stmt = all.iter().enumerate().flat_map(|(k, c)| c.body.iter().map(move |id| (*id, k))).collect();
        let places = all.iter().flat_map(|c| c.args.iter().chain(&c.results)).map(|p| p.tensor.clone()).collect();
        Calls { all, by_stmt, places }
    }

    /// Returns the call whose body contains a statement.
    pub fn at(&self, stmt: StmtId) -> Option<usize> {
        self.by_stmt.get(&stmt).copied()
    }

    /// Returns whether a statement is part of a call's body.
    pub fn contain(&self, stmt: StmtId) -> bool {
        self.by_stmt.contains_key(&stmt)
    }

    /// Returns whether a tensor is an argument or a result of a call.
    pub fn is_place(&self, tensor: &Symbol) -> bool {
        self.places.contains(tensor)
    }

    /// Calls `f` on every statement outside of all calls' bodies.
    pub fn walk_outside(&self, s: &Stmt, f: &mut dyn FnMut(&Stmt)) {
        if self.contain(s.id()) {
            return;
        }
        f(s);
        for c in s.kind().children() {
            self.walk_outside(c, f);
        }
    }

    /// Refuses tangents through a call: the program gives its backward pass alone.
    pub fn no_tangents(&self, active: &FxHashSet<Symbol>, request: &Request<'_>) -> Result<(), Diagnostic> {
        for call in &self.all {
            let moved = floats(&call.args).any(|p| active.contains(&p.tensor));
            if moved && floats(&call.results).any(|p| active.contains(&p.tensor)) {
                let message = format!("`{}` has its own gradient, which supports reverse mode alone", call.function);
                let d = Diagnostic::new("gradient::tangent", message).at(call.span);
                let name = request.kind.name();
                return Err(asked(d, request, &format!("`{name}` is forward mode"))
                    .help("use reverse mode (`vjp`), or call a function without its own gradient"));
            }
        }
        Ok(())
    }
}

/// Returns the places that carry derivatives.
pub(crate) fn floats(places: &[SubTensor]) -> impl Iterator<Item = &SubTensor> {
    places.iter().filter(|p| p.dtype.is_float())
}

/// Finds the calls that are still in the program. A call that was removed with all its results has no derivative.
///
/// # Errors
///
/// A pass in between has changed a call, so that its gradient may not match.
pub(crate) fn find(request: &Request<'_>) -> Result<Calls, Diagnostic> {
    let func = request.func;
    let marked = func.custom_vjps.iter().flat_map(|c| c.body.iter().copied()).collect();
    let mut writers: FxHashMap<Symbol, Vec<bool>> = FxHashMap::default();
    let mut present: FxHashSet<StmtId> = FxHashSet::default();
    collect(&func.body, &marked, false, &mut present, &mut writers);
    let mut kept = Vec::new();
    for call in &func.custom_vjps {
        let written = |p: &SubTensor| writers.get(&p.tensor).map(Vec::as_slice).unwrap_or_default();
        if call.results.iter().all(|p| written(p).is_empty()) {
            continue;
        }
        let inside = call.results.iter().flat_map(&written).all(|inside| *inside);
        let whole = call.takes.iter().all(|t| match t {
            Takes::Argument(k) => !written(&call.args[*k]).is_empty(),
            Takes::Result(k) => !written(&call.results[*k]).is_empty(),
            Takes::Seed(_) => true,
        });
        if !inside || !whole || !call.body.iter().any(|id| present.contains(id)) {
            let message = format!(
                "cannot differentiate the call of `{}`, which has its own gradient: an earlier pass changed it",
                call.function
            );
            let d = Diagnostic::new("gradient::apart", message).at(call.span);
            let help = format!(
                "values that the first gradient does not use were removed: let the gradient of `{}` take fewer of them",
                call.function
            );
            return Err(asked(d, request, "differentiated again here").help(help));
        }
        kept.push(call.clone());
    }
    Ok(Calls::new(kept))
}

/// Adds a label at the request for the derivative, if that is in a program.
fn asked(d: Diagnostic, request: &Request<'_>, text: &str) -> Diagnostic {
    if request.span.is_none() { d } else { d.label(request.span, text) }
}

/// Collects all statements, and for every write of a tensor whether it is inside a call's body.
fn collect(
    s: &Stmt,
    marked: &FxHashSet<StmtId>,
    inside: bool,
    present: &mut FxHashSet<StmtId>,
    writers: &mut FxHashMap<Symbol, Vec<bool>>,
) {
    present.insert(s.id());
    let inside = inside || marked.contains(&s.id());
    if let StmtKind::Store { tensor, .. } | StmtKind::ReduceTo { tensor, .. } = s.kind() {
        writers.entry(tensor.clone()).or_default().push(inside);
    }
    for c in s.kind().children() {
        collect(c, marked, inside, present, writers);
    }
}
