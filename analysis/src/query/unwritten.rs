//! Elements that are read and that nothing has written.
//!
//! *Does*: finds the reads of local tensors and results that no write can come before. *How*: the dependence analysis
//! is asked for a write of the same tensor that runs before the read and may touch its element; that there is none is a
//! proof, for every size and every input. A read is left out if nothing can reach it. *Does not find*: elements that
//! are written in some runs only; of tensors that are written in part, [`elements`] finds what is never written.
//!
//! Where a transformation evaluates something that the program may not have evaluated, [`early_read`] asks the opposite
//! question: whether all of it surely is written.

mod early;
mod elements;

pub use early::{early_read, is_exposed};
pub use elements::{Element, elements};

use super::depend::{Ask, Dependences};
use super::reference::{Reference, Use};
use super::walk;
use rustc_hash::FxHashMap;
use taffeta_ast::stmt::Role;
use taffeta_ast::{Func, Span, Stmt, StmtKind, Symbol};

/// Reads of one program that are looked at: each is compared with the writes of its tensor until one may come before.
const MAX_READS: usize = 2_000;

/// A read of an element that nothing has written.
#[derive(Clone, Debug)]
pub struct Unwritten {
    /// The tensor.
    pub tensor: Symbol,
    /// The statement that reads it.
    pub read: Stmt,
    /// Where the tensor is declared; none for a result.
    pub declared: Span,
    /// Whether anything writes the tensor at all.
    pub written: bool,
}

/// The reads of elements that nothing writes before, in the order of the text.
pub fn reads(dependences: &Dependences<'_>) -> Vec<Unwritten> {
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
        // A reduction reads what it writes: its first run needs another write before it.
        let writes = |r: &Reference| r.kind.writes() && !std::ptr::eq(r, read);
        let ask = Ask { source: &writes, sink: &is_read, commute: false, ..Ask::default() };
        // In most programs the write that stands last before the read comes before it.
        let likely = before.is_some_and(|before| dependences.first_among(&[before, read], &ask).is_some());
        if likely {
            continue;
        }
        let same: Vec<&Reference> = dependences.of(&read.tensor).collect();
        if dependences.first_among(&same, &ask).is_some() || unreachable(func, read) {
            continue;
        }
        out.push(Unwritten {
            tensor: read.tensor.clone(),
            read: read.site.stmt.clone(),
            declared: declarations.get(&read.tensor).copied().unwrap_or(Span::NONE),
            written: same.into_iter().any(writes),
        });
    }
    out
}

/// References, each with the write of its tensor that stands last before it.
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

/// Whether no run comes to a read.
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
