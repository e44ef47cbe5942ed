//! Selectors: names of a program's loops in schedules (language.md, section 6). Every message and listing takes names
//! of loops from here, so that they can be copied into a schedule. `schedule/src/selector.rs` resolves selectors, with
//! the same comparison ([`matches()`], [`is_meant`]) and in the same order ([`own_first`]).

use crate::func::Func;
use crate::stmt::{Origin, Stmt, StmtId, StmtKind};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Returns the printed name of a loop: its iterator.
pub fn name(s: &Stmt) -> Option<&str> {
    match s.kind() {
        StmtKind::For { iter, .. } => Some(iter.name()),
        _ => None,
    }
}

/// Returns the selector of a loop: its iterator's name if that selects this loop, else qualified by the enclosing call
/// (`softmax.k`), else numbered (`i#2`, `softmax.k#2`).
pub fn called(func: &Func, stmt: &Stmt) -> String {
    let Some(own) = name(stmt) else { return "while".to_string() };
    let loops = loops(func);
    // For a single loop, a scan for its names is cheaper than an index of all.
    let meant = |wanted: &str| {
        let found = (0..loops.len()).filter(|k| matches(&loops[*k], wanted)).collect();
        Rc::new(Matches::of(&loops, found))
    };
    match loops.iter().position(|s| s.id() == stmt.id()) {
        Some(k) => selector(&loops, k, meant),
        // The loop is not in this program.
        None => own.to_string(),
    }
}

/// Returns the selectors of all loops.
pub fn names(func: &Func) -> FxHashMap<StmtId, String> {
    let loops = loops(func);
    let mut index = Index::of(&loops);
    (0..loops.len()).map(|k| (loops[k].id(), selector(&loops, k, |wanted| index.meant(wanted)))).collect()
}

/// Returns whether an unnumbered name can select this statement: by label, or a loop by its iterator.
pub fn matches(s: &Stmt, wanted: &str) -> bool {
    s.origin().labels().iter().any(|l| l == wanted) || name(s).is_some_and(|own| is_meant(own, s.origin(), wanted))
}

/// Returns whether `wanted` selects an object named `own`: by the name itself (`k`), or qualified by enclosing calls
/// (`softmax.k`).
pub fn is_meant(own: &str, origin: &Origin, wanted: &str) -> bool {
    if own == wanted {
        return true;
    }
    // `softmax.k` lists calls from the outside in; intermediate ones, such as private functions of the library, may be
    // left out.
    let Some(calls) = wanted.strip_suffix(own).and_then(|c| c.strip_suffix('.')) else { return false };
    let mut chain = origin.chain().iter();
    calls.split('.').all(|call| chain.any(|c| c.function == call))
}

/// Sorts objects of the function's own text before those inlined from calls; `#2` counts in this order. Returns the
/// number of leading objects that an unnumbered name selects: the function's own, or all if it has none.
pub fn own_first<T>(found: &mut [T], is_own: impl Fn(&T) -> bool) -> usize {
    found.sort_by_key(|f| !is_own(f));
    match found.iter().take_while(|f| is_own(f)).count() {
        0 => found.len(),
        own => own,
    }
}

fn loops(func: &Func) -> Vec<Stmt> {
    let mut out = Vec::new();
    func.body.walk(&mut |s| out.extend(name(s).is_some().then(|| s.clone())));
    out
}

/// Index of loops by selector, so that each name is resolved once however many loops share it.
struct Index<'l> {
    /// Loops in the order of the text.
    loops: &'l [Stmt],
    /// Loops by iterator and by label.
    named: FxHashMap<&'l str, Vec<usize>>,
    /// Loops by enclosing call and iterator.
    inside: FxHashMap<(&'l str, &'l str), Vec<usize>>,
    /// Memo of resolved names.
    meant: FxHashMap<String, Rc<Matches>>,
}

/// Loops that a name matches, in the order of their numbers.
struct Matches {
    /// Number of each loop, from 1.
    numbers: FxHashMap<usize, usize>,
    /// Number of leading loops that the unnumbered name selects.
    unnumbered: usize,
}

impl Matches {
    /// Numbers the loops that a name matches, given in the order of the text.
    fn of(loops: &[Stmt], mut found: Vec<usize>) -> Matches {
        let unnumbered = own_first(&mut found, |k| loops[*k].origin().chain().is_empty());
        Matches { numbers: found.into_iter().zip(1..).collect(), unnumbered }
    }
}

/// Returns the selector of the loop at that position; `meant` resolves names.
fn selector(loops: &[Stmt], k: usize, mut meant: impl FnMut(&str) -> Rc<Matches>) -> String {
    let s = &loops[k];
    let own = name(s).unwrap_or_default();
    // Private functions of the library have no name in selectors.
    let call = s.origin().chain().iter().rev().find(|c| !c.function.starts_with('_'));
    let wanted = call.map_or(own.to_string(), |c| format!("{}.{own}", c.function));
    for short in [own, &wanted] {
        let meant = meant(short);
        if meant.unnumbered == 1 && meant.numbers[&k] == 1 {
            return short.to_string();
        }
    }
    format!("{wanted}#{}", meant(&wanted).numbers[&k])
}

impl<'l> Index<'l> {
    fn of(loops: &'l [Stmt]) -> Index<'l> {
        let mut index =
            Index { loops, named: FxHashMap::default(), inside: FxHashMap::default(), meant: FxHashMap::default() };
        for (k, s) in loops.iter().enumerate() {
            for own in name(s).into_iter().chain(s.origin().labels().iter().map(String::as_str)) {
                index.named.entry(own).or_default().push(k);
            }
            for call in s.origin().chain() {
                index.inside.entry((&call.function, name(s).unwrap_or_default())).or_default().push(k);
            }
        }
        index
    }

    fn meant(&mut self, wanted: &str) -> Rc<Matches> {
        if let Some(known) = self.meant.get(wanted) {
            return known.clone();
        }
        let found = Rc::new(self.find(wanted));
        self.meant.insert(wanted.to_string(), found.clone());
        found
    }

    fn find(&self, wanted: &str) -> Matches {
        let mut found = self.named.get(wanted).cloned().unwrap_or_default();
        // Iterators may contain dots (`c.d0`): any dot may be the last one before the iterator.
        for (dot, _) in wanted.match_indices('.') {
            let (calls, own) = (&wanted[..dot], &wanted[dot + 1..]);
            let outermost = calls.split('.').next().unwrap_or(calls);
            let inside = self.inside.get(&(outermost, own)).into_iter().flatten();
            found.extend(inside.copied().filter(|k| matches(&self.loops[*k], wanted)));
        }
        found.sort_unstable();
        found.dedup();
        Matches::of(self.loops, found)
    }
}
