//! Element types of names that are declared from weak values: `t = 0.0`.
//!
//! Such a name takes the type in which its first value meets all typed values stored into it during its lifetime, and
//! `f32` or `i32` if none is typed. Stores follow the declaration, in calls too, so a function is walked again with the
//! types found by the previous walk, up to a fixpoint: a walk that finds the types it assumed. A name of unknown type
//! is *open*: it reads as the weak value that it was declared from, so that names which are stored into each other, or
//! into themselves, decide nothing (the fixpoint is the least one). Only when a walk finds nothing more do open names
//! get the types of names without typed stores.
//!
//! Findings of a function are memoised by the types of its arguments: a later call starts from them, which keeps nested
//! calls from being walked twice at every level.

use super::call::default_type;
use super::func::FuncRef;
use super::operator::meeting;
use super::scope::Frame;
use super::value::{Lazy, Value, View};
use super::{Elab, R, Stop};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use taffeta_ast::{DType, Expr, Kind, Literal, Span, Symbol};

/// Number of walks after which types only grow: a program whose types oscillate (by conditions on `dtype`) still
/// terminates.
const MAX_EXACT: usize = 16;

/// Declaration: its place in the text, and the number of earlier visits in the walk (a static loop visits it several
/// times).
pub(crate) type Site = (Span, u32);

/// Type assumed for a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Assumed {
    dtype: DType,
    /// Whether it is settled that no typed value is stored into the name.
    settled: bool,
}

/// Findings of the walks of a function about its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Declarations of names that must be tensors, since they are assigned again.
    pub(crate) tensors: FxHashSet<Span>,
    types: FxHashMap<Site, Assumed>,
}

/// Name declared from a weak value in the current walk.
#[derive(Debug)]
pub(crate) struct Declared {
    site: Site,
    symbol: Symbol,
    /// Kind of the weak value.
    kind: Kind,
    /// Type in which all stored values meet.
    stored: Option<DType>,
}

/// Notes of the current walk, to be rolled back where it is repeated.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Frame and index in its list, by the symbol of each name declared from a weak value.
    names: FxHashMap<Symbol, (usize, usize)>,
    /// Undo log: previous values of `stored`.
    changes: Vec<(usize, usize, Option<DType>)>,
}

/// Returns the type in which a weak value of that kind meets typed ones.
fn met(kind: Kind, stored: DType) -> DType {
    meeting(Some(stored), Some(kind))
}

/// Returns the type of a name without typed stores, given the kind of its weak value.
fn untyped(kind: Kind) -> DType {
    match kind {
        Kind::Bool => DType::Bool,
        Kind::Int => DType::I32,
        Kind::Float => DType::F32,
    }
}

impl Elab<'_> {
    /// Returns the type assumed for a name that is declared from a weak value here, and whether it is open.
    fn assumed(&mut self, site: Span, value: DType) -> (Site, DType, bool) {
        let frame = self.frame_mut();
        let visits = frame.visits.entry(site).or_default();
        let site = (site, *visits);
        *visits += 1;
        match frame.findings.types.get(&site) {
            Some(a) => (site, a.dtype, false),
            None => (site, default_type(value), true),
        }
    }

    /// Declares a tensor for a name whose first value is weak.
    pub(crate) fn weak_local(&mut self, name: &str, site: Span, l: &Lazy, span: Span) -> R<View> {
        let (site, dtype, open) = self.assumed(site, l.expr.dtype());
        if let (Some(i), Some((lo, hi))) = (l.expr.as_literal(), dtype.int_range())
            && let Literal::Int(i) = i
            && dtype != DType::Bool
            && !(lo..=hi).contains(&i)
        {
            let message =
                format!("{i} does not fit in `{dtype}`, the type of `{name}`, which ranges from {lo} to {hi}");
            return self.error_help("type::literal", span, message, format!("declare its type: `{name}: i64 = {i}`"));
        }
        let tensor = self.local(name, dtype, l.shape.clone());
        let kind = l.expr.dtype().kind();
        // `bool` is not a number: only `bool` is stored into it.
        let open = open && kind != Kind::Bool;
        if kind != Kind::Bool {
            let symbol = tensor.symbol.clone();
            let (frame, k) = (self.frame().id, self.frame().declared.len());
            self.notes.names.insert(symbol.clone(), (frame, k));
            self.frame_mut().declared.push(Declared { site, symbol, kind, stored: None });
        }
        Ok(View { open, ..View::whole(&tensor, true) })
    }

    /// Records that a value of type `dtype` is stored into a tensor.
    pub(crate) fn note_stored(&mut self, tensor: &Symbol, dtype: DType) {
        let Some(&(frame, k)) = self.notes.names.get(tensor) else { return };
        let Some(frame) = self.frames.iter_mut().rev().find(|f| f.id == frame) else { return };
        let declared = &mut frame.declared[k];
        let joined = declared.stored.map_or(dtype, |before| before.promote(dtype));
        if declared.stored != Some(joined) {
            self.notes.changes.push((frame.id, k, declared.stored));
            declared.stored = Some(joined);
        }
    }

    /// Returns whether a tensor belongs to a name that was declared from a weak value.
    pub(crate) fn is_weakly_declared(&self, tensor: &Symbol) -> bool {
        self.notes.names.contains_key(tensor)
    }

    /// Rolls back notes on frames that stay open.
    fn forget(&mut self, changes: usize) {
        for (frame, k, before) in self.notes.changes.split_off(changes).into_iter().rev() {
            if let Some(frame) = self.frames.iter_mut().rev().find(|f| f.id == frame) {
                frame.declared[k].stored = before;
            }
        }
    }

    /// Runs `attempt` until it finds nothing new about the names of the frame that it opens. `attempt` returns the id
    /// of that frame; `call` is the fingerprint under which findings are memoised.
    pub(crate) fn restarting<T>(
        &mut self,
        call: Option<u64>,
        mut attempt: impl FnMut(&mut Self, &Findings) -> (usize, R<T>),
    ) -> R<T> {
        let mark = self.mark();
        let (frames, reported, calls) = (self.frames.len(), self.diagnostics.len(), self.chain.len());
        let (changes, warned, emitted) = (self.notes.changes.len(), self.warnings.len(), self.emitted);
        let mut findings = call.and_then(|c| self.found.get(&c).cloned()).unwrap_or_default();
        for walk in 0.. {
            let (id, result) = attempt(self, &findings);
            let declared = self.frames.get_mut(frames).map(|f| std::mem::take(&mut f.declared)).unwrap_or_default();
            for d in &declared {
                self.notes.names.remove(&d.symbol);
            }
            self.frames.truncate(frames);
            let again = match result {
                Err(Stop::Restart { frame, site }) if frame == id => findings.tensors.insert(site),
                Err(Stop::Restart { .. }) => false,
                _ => findings.learn(&declared, result.is_ok(), walk >= MAX_EXACT),
            };
            if !again {
                return result;
            }
            if let Some(c) = call {
                self.found.insert(c, findings.clone());
            }
            self.roll_back(mark);
            self.forget(changes);
            self.diagnostics.truncate(reported);
            self.warnings.truncate(warned);
            self.emitted = emitted;
            self.chain.truncate(calls);
            self.calls.truncate(calls);
            self.shared_chain = None;
        }
        unreachable!("the loop ends by returning")
    }
}

impl Findings {
    /// Joins the findings of a walk, and returns whether they are new. If none is, open names are settled.
    fn learn(&mut self, declared: &[Declared], complete: bool, grow: bool) -> bool {
        let mut news = false;
        for d in declared {
            let before = self.types.get(&d.site).copied();
            let wanted = match (before, d.stored) {
                (Some(Assumed { settled: true, .. }), _) | (None, None) => continue,
                // Stores after an error were not walked.
                (Some(_), None) if !complete => continue,
                (Some(before), None) if grow => before.dtype,
                (Some(_), None) => untyped(d.kind),
                (Some(before), Some(t)) if grow => before.dtype.promote(met(d.kind, t)),
                (_, Some(t)) => met(d.kind, t),
            };
            if before.is_none_or(|b| b.dtype != wanted) {
                news = true;
                self.types.insert(d.site, Assumed { dtype: wanted, settled: false });
            }
        }
        if news {
            return true;
        }
        for d in declared {
            if let Entry::Vacant(free) = self.types.entry(d.site) {
                free.insert(Assumed { dtype: untyped(d.kind), settled: complete });
                news = true;
            }
        }
        news
    }
}

/// Hashes a call by its function and the types, static values and equalities of sizes of its arguments.
pub(crate) fn fingerprint(f: FuncRef, args: &[(Value, Span)]) -> u64 {
    let mut h = Fingerprint { hasher: FxHasher::default(), sizes: FxHashMap::default() };
    f.hash(&mut h.hasher);
    args.iter().for_each(|(v, _)| h.value(v));
    h.hasher.finish()
}

struct Fingerprint<'a> {
    hasher: FxHasher,
    /// Sizes that are not constants, numbered in order of appearance.
    sizes: FxHashMap<&'a Expr, usize>,
}

impl<'a> Fingerprint<'a> {
    fn value(&mut self, v: &'a Value) {
        std::mem::discriminant(v).hash(&mut self.hasher);
        match v {
            Value::Tensor(view) => {
                (view.tensor.dtype, view.open).hash(&mut self.hasher);
                self.shape(&view.shape);
            }
            Value::Lazy(l) => {
                (l.expr.dtype(), l.weak).hash(&mut self.hasher);
                self.shape(&l.shape);
                if l.weak && l.shape.is_empty() {
                    self.size(&l.expr);
                }
            }
            Value::Empty(shape, dtype) => {
                dtype.hash(&mut self.hasher);
                self.shape(shape);
            }
            Value::Tuple(items) | Value::List(items) | Value::NdRange(items) => {
                items.len().hash(&mut self.hasher);
                items.iter().for_each(|v| self.value(v));
            }
            Value::Range(bounds) => bounds.iter().for_each(|v| self.value(v)),
            Value::Function(f) => f.hash(&mut self.hasher),
            Value::Float(f) => f.to_bits().hash(&mut self.hasher),
            other => format!("{other:?}").hash(&mut self.hasher),
        }
    }

    fn shape(&mut self, shape: &'a [Expr]) {
        shape.len().hash(&mut self.hasher);
        shape.iter().for_each(|n| self.size(n));
    }

    fn size(&mut self, n: &'a Expr) {
        match n.as_int() {
            Some(i) => i.hash(&mut self.hasher),
            None => {
                let next = self.sizes.len();
                (self.sizes.entry(n).or_insert(next)).hash(&mut self.hasher);
            }
        }
    }
}

impl Frame {
    /// Returns whether the name that is declared at `site` must be a tensor.
    pub(crate) fn must_be_tensor(&self, name: &str, site: Span) -> bool {
        self.findings.tensors.contains(&site) || self.looped.contains(name)
    }
}
