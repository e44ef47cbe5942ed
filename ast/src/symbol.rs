//! Symbols: every name is unique from the front end on, so substitution never captures.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Name of a tensor, an iterator or a size. Two symbols are equal only if one is a clone of the other; distinct symbols
/// may have the same text (the printer renames clashes).
#[derive(Clone)]
pub struct Symbol(Arc<SymbolData>);

struct SymbolData {
    id: u64,
    name: String,
}

impl Symbol {
    /// Creates a symbol that equals no other one.
    pub fn new(name: impl Into<String>) -> Symbol {
        Symbol(Arc::new(SymbolData { id: NEXT.fetch_add(1, Ordering::Relaxed), name: name.into() }))
    }

    /// Creates a new symbol with the text of this one.
    pub fn fresh(&self) -> Symbol {
        Symbol::new(self.name())
    }

    /// Returns the text. Loops of array statements are called `T.d0`, `T.d1` … for target `T`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the number that makes the symbol unique within this process.
    pub fn id(&self) -> u64 {
        self.0.id
    }
}

impl PartialEq for Symbol {
    fn eq(&self, other: &Symbol) -> bool {
        self.0.id == other.0.id
    }
}
impl Eq for Symbol {}
impl PartialOrd for Symbol {
    fn partial_cmp(&self, other: &Symbol) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Symbol {
    fn cmp(&self, other: &Symbol) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}
impl Hash for Symbol {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}
impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.0.name, self.0.id)
    }
}
impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}
