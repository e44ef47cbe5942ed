//! What schedules call a program's loops (language.md, section 6): every message and listing that names a loop takes
//! the name from here, so that it can be copied into a schedule. What a selector stands for is found by
//! `schedule/src/selector.rs`, with the same comparison ([`matches()`], [`is_meant`]) and in the same order
//! ([`own_first`]).

use crate::func::Func;
use crate::stmt::{Origin, Stmt, StmtId, StmtKind};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// What a loop is called in the text: its iterator.
pub fn name(s: &Stmt) -> Option<&str> {
    match s.kind() {
        StmtKind::For { iter, .. } => Some(iter.name()),
        _ => None,
    }
}

/// The selector of a loop. That is its iterator's name where this is the loop that the name selects, else with the call
/// that it is inside of (`softmax.k`), else with its number (`i#2`, `softmax.k#2`).
pub fn called(func: &Func, stmt: &Stmt) -> String {
    let Some(own) = name(stmt) else { return "while".to_string() };
    let loops = loops(func);
    // Looking through the loops for the names of one takes less than an index of all.
    let meant = |wanted: &str| {
        let found = (0..loops.len()).filter(|k| matches(&loops[*k], wanted)).collect();
        Rc::new(Meant::of(&loops, found))
    };
    match loops.iter().position(|s| s.id() == stmt.id()) {
        Some(k) => selector(&loops, k, meant),
        // It is not in this program.
        None => own.to_string(),
    }
}

/// The selectors of all loops.
pub fn names(func: &Func) -> FxHashMap<StmtId, String> {
    let loops = loops(func);
    let mut index = Index::of(&loops);
    (0..loops.len()).map(|k| (loops[k].id(), selector(&loops, k, |wanted| index.meant(wanted)))).collect()
}

/// Whether a name without a number may mean this statement: by its label, or a loop by its iterator.
pub fn matches(s: &Stmt, wanted: &str) -> bool {
    s.origin().labels().iter().any(|l| l == wanted) || name(s).is_some_and(|own| is_meant(own, s.origin(), wanted))
}

/// Whether something of that name is meant: `k`, `softmax.k`.
pub fn is_meant(own: &str, origin: &Origin, wanted: &str) -> bool {
    if own == wanted {
        return true;
    }
    // `softmax.k`: calls from the outside in; those in between, such as functions that the library keeps to itself, may
    // be left out.
    let Some(calls) = wanted.strip_suffix(own).and_then(|c| c.strip_suffix('.')) else { return false };
    let mut chain = origin.chain().iter();
    calls.split('.').all(|call| chain.any(|c| c.function == call))
}

/// Puts what stands in the function's own text before what is inside of calls: the order in which numbers count. Gives
/// how many of the first a name without a number means: those of the function's own, if there are any.
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

/// Loops by what may select them, so that each name is looked up once however many loops share it.
struct Index<'l> {
    /// In the order of the text.
    loops: &'l [Stmt],
    /// By iterator, and by label.
    named: FxHashMap<&'l str, Vec<usize>>,
    /// By a call that they are inside of, and iterator.
    inside: FxHashMap<(&'l str, &'l str), Vec<usize>>,
    /// What names that were asked for mean.
    meant: FxHashMap<String, Rc<Meant>>,
}

/// The loops that a name fits.
struct Meant {
    /// The numbers of these loops, from 1.
    numbers: FxHashMap<usize, usize>,
    /// How many of the first the name means without a number.
    unnumbered: usize,
}

impl Meant {
    /// Of loops that a name fits, in the order of the text.
    fn of(loops: &[Stmt], mut found: Vec<usize>) -> Meant {
        let unnumbered = own_first(&mut found, |k| loops[*k].origin().chain().is_empty());
        Meant { numbers: found.into_iter().zip(1..).collect(), unnumbered }
    }
}

/// The selector of the loop with that place, where `meant` looks up names.
fn selector(loops: &[Stmt], k: usize, mut meant: impl FnMut(&str) -> Rc<Meant>) -> String {
    let s = &loops[k];
    let own = name(s).unwrap_or_default();
    // The innermost call that has a name of its own; functions that the library keeps to itself have not.
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

    fn meant(&mut self, wanted: &str) -> Rc<Meant> {
        if let Some(known) = self.meant.get(wanted) {
            return known.clone();
        }
        let found = Rc::new(self.find(wanted));
        self.meant.insert(wanted.to_string(), found.clone());
        found
    }

    fn find(&self, wanted: &str) -> Meant {
        let mut found = self.named.get(wanted).cloned().unwrap_or_default();
        // Iterators may have dots themselves (`c.d0`): every one may be the last before the iterator.
        for (dot, _) in wanted.match_indices('.') {
            let (calls, own) = (&wanted[..dot], &wanted[dot + 1..]);
            let outermost = calls.split('.').next().unwrap_or(calls);
            let inside = self.inside.get(&(outermost, own)).into_iter().flatten();
            found.extend(inside.copied().filter(|k| matches(&self.loops[*k], wanted)));
        }
        found.sort_unstable();
        found.dedup();
        Meant::of(self.loops, found)
    }
}
