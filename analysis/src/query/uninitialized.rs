//! Reads of uninitialised elements.
//!
//! **Does**: finds the reads of local tensors and results that no write can precede. **How**: the dependence analysis
//! is queried for a write of the same tensor that runs before the read and may access its element; the absence of such
//! a write is a proof, for every size and every input. Unreachable reads are left out. **Does not find**: elements that
//! are written in some runs only; for partly written tensors, [`elements`] finds elements that are never written.
//!
//! Where a transformation evaluates an expression that the program might not have evaluated, [`early_read`] answers the
//! opposite query: whether all loaded elements are surely written.

mod early;
mod elements;

pub use early::{early_read, exposed};
pub use elements::{Element, elements};

use super::depend::{DependenceQuery, Dependences};
use super::reference::{Reference, Use};
use super::walk;
use rustc_hash::FxHashMap;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Func, Span, Stmt, StmtKind, Symbol};

/// Maximum number of reads of one program that are considered: each is compared with the writes of its tensor until one
/// may precede it.
const MAX_READS: usize = 2_000;

/// Read of an uninitialised element.
#[derive(Clone, Debug)]
pub struct UninitializedRead {
    /// Tensor.
    pub tensor: Symbol,
    /// Statement that reads the element.
    pub read: Stmt,
    /// Span of the tensor's declaration; none for a result.
    pub declared: Span,
    /// Whether any reference other than this read writes the tensor.
    pub written: bool,
}

/// Returns the reads of elements that no write precedes, in program order.
pub fn reads(dependences: &Dependences<'_>) -> Vec<UninitializedRead> {
    let func = dependences.func();
    let mut declarations: FxHashMap<Symbol, Span> = FxHashMap::default();
    func.body.walk(&mut |s| {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            declarations.insert(tensor.symbol.clone(), s.origin().span());
        }
    });
    let looked_at = |r: &&Reference| matches!(r.declared.role, Role::Local | Role::Result) && r.kind != Use::Write;
    let mut out = Vec::new();
    for (read, before) in with_last_writes(dependences.references()).filter(|(r, _)| looked_at(r)).take(MAX_READS) {
        let is_read = |r: &Reference| std::ptr::eq(r, read);
        // A reduction reads the element that it writes: its first execution needs another write before it.
        let writes = |r: &Reference| r.kind.writes() && !std::ptr::eq(r, read);
        let ask = DependenceQuery { source: &writes, sink: &is_read, commute: false, ..DependenceQuery::default() };
        // In most programs the last write before the read in program order precedes it, so it is queried first.
        let likely = before.is_some_and(|before| dependences.first_among(&[before, read], &ask).is_some());
        if likely {
            continue;
        }
        let same: Vec<&Reference> = dependences.of(&read.tensor).collect();
        if dependences.first_among(&same, &ask).is_some() || unreachable(func, read) {
            continue;
        }
        out.push(UninitializedRead {
            tensor: read.tensor.clone(),
            read: read.site.stmt.clone(),
            declared: declarations.get(&read.tensor).copied().unwrap_or(Span::NONE),
            written: same.into_iter().any(writes),
        });
    }
    out
}

/// Pairs each reference with the last write of its tensor before it in program order.
fn with_last_writes(all: &[Reference]) -> impl Iterator<Item = (&Reference, Option<&Reference>)> {
    let mut last: FxHashMap<&Symbol, &Reference> = FxHashMap::default();
    all.iter().map(move |r| {
        let before = match r.kind.writes() {
            true => last.insert(&r.tensor, r),
            false => last.get(&r.tensor).copied(),
        };
        (r, before)
    })
}

/// Returns whether no run reaches a read.
fn unreachable(func: &Func, read: &Reference) -> bool {
    let Some(mut facts) = walk::at(func, read.site.stmt.id()) else { return true };
    for (cond, holds) in &read.guards {
        if *holds {
            facts.assume(cond);
        } else {
            facts.assume_not(cond);
        }
    }
    facts.is_unreachable()
}
