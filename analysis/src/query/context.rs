//! Facts at a point of a program: a stack of facts, and the table of atoms that they mention.
//!
//! - **Atoms** are values, not places: a numbered atom keeps its meaning for ever. After a write to a tensor,
//!   expressions that load from it get new atoms, so a write never retracts facts.
//! - **Laws** follow from the definition of an atom (`a = 4 * (a // 4) + a % 4`) and hold everywhere.
//! - **Facts** hold in a scope: a mark is taken, facts are added, the mark is popped. Facts narrow the interval and
//!   congruence of an atom, which are restored from a trail at the end of their scope.
//!
//! `learn` derives facts on a walk through a program.
//!
//! Every state of the stack has a version, and memoised results are valid for one version.

mod learn;

use super::interval::{Congruence, Interval};
use super::linear::{Atom, Linear};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use taffeta_ast::{Expr, ExprKind, Func, Symbol};

/// Definition of an atom, as far as the provers may use it.
#[derive(Clone, Debug)]
pub(super) enum Def {
    /// Size, iterator, element, or expression that may wrap.
    Free,
    /// Mathematical product of other atoms, sorted, none of them a product.
    Product(Rc<[Atom]>),
    /// Floor of `num / den`, for a constant `den > 0`.
    Quotient(Linear, i128),
    /// Minimum.
    Min(Linear, Linear),
    /// Maximum.
    Max(Linear, Linear),
    /// First form where the condition holds, second form where it does not.
    Select(Expr, Linear, Linear),
}

/// Lookup key of an atom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Expr(Expr),
    /// Number of iterations of a loop before the current one.
    Trip(Symbol),
    Product(Rc<[Atom]>),
    Quotient(Linear, Linear),
    Remainder(Linear, Linear),
    Min(Linear, Linear),
    Max(Linear, Linear),
    Select(Expr, Linear, Linear),
}

#[derive(Clone, Debug)]
pub(super) struct AtomInfo {
    pub(super) key: Key,
    pub(super) def: Def,
    pub(super) interval: Interval,
    pub(super) congruence: Congruence,
    /// Positions of the facts that mention the atom, in [`Context::facts`], in increasing order.
    pub(super) facts: Vec<u32>,
    /// Positions of the laws that mention the atom, in [`Context::laws`], in increasing order.
    pub(super) laws: Vec<u32>,
}

/// Condition that is known to hold, or known not to hold.
struct KnownCondition {
    cond: Expr,
    holds: bool,
    /// Tensors that the condition loads from.
    loads: Rc<[Symbol]>,
    /// Whether a write to one of these tensors has invalidated the condition.
    ended: bool,
}

/// State of the stack to return to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    facts: usize,
    truths: usize,
    trail: usize,
    products: usize,
    version: u64,
    writes: u64,
    unreachable: bool,
}

/// Facts that hold at a point of a program, in a scope that grows and shrinks with a walk over it.
pub struct Context {
    pub(super) atoms: Vec<AtomInfo>,
    keys: FxHashMap<Key, Atom>,
    /// Forms that are at least 0 by the definitions of their atoms.
    pub(super) laws: Vec<Linear>,
    /// Forms that are at least 0 here.
    pub(super) facts: Vec<Linear>,
    truths: Vec<KnownCondition>,
    /// Undo log: atoms with their interval and congruence before they were narrowed.
    trail: Vec<(Atom, Interval, Congruence)>,
    /// Products of atoms, each at least 0, that are at most [`super::MAX_SIZE`] (with 1 for factors that are 0).
    pub(super) products: Vec<Rc<[Atom]>>,
    /// Whether the facts contradict each other: this point is never reached.
    pub(super) unreachable: bool,
    pub(super) version: u64,
    last_version: u64,
    /// Number of recorded writes.
    writes: u64,
    /// Keys of the atoms that contain loads from a tensor.
    by_tensor: FxHashMap<Symbol, Vec<Key>>,
    loads: FxHashMap<Expr, Rc<[Symbol]>>,
    /// Dimensions of the declared tensors, lowered at their declaration; kept to the end of the walk, since symbols are
    /// unique.
    pub(super) shapes: FxHashMap<Symbol, Vec<Linear>>,
    /// Whether the shape of a live tensor is being lowered: its operations do not wrap.
    pub(super) exact: bool,
    pub(super) memo_linear: FxHashMap<Expr, (u64, Linear)>,
    pub(super) memo_prove: FxHashMap<(Expr, bool, bool), (u64, bool)>,
    pub(super) memo_stop: FxHashMap<Expr, (u64, bool)>,
    /// Numbers of unsuccessful solver calls.
    pub(super) failures: super::entail::Failures,
    /// Nesting depth of guards.
    pub(super) guards: u32,
    /// Whether all methods of proof are in use, as for a query of a caller. Intermediate queries use cheap methods
    /// only.
    pub(super) thorough: bool,
}

impl Context {
    /// Returns the facts at the beginning of a program: those of its sizes, and of the shapes of its parameters and
    /// results.
    pub fn new(func: &Func) -> Context {
        let mut c = Context::empty();
        for s in &func.sizes {
            c.size(s);
        }
        // Many tensors share a shape, whose facts are added once.
        let mut known: FxHashMap<&[Expr], &Symbol> = FxHashMap::default();
        for t in func.interface() {
            match known.get(t.shape.as_slice()).and_then(|s| c.shapes.get(*s)).cloned() {
                Some(dims) => {
                    c.shapes.insert(t.symbol.clone(), dims);
                }
                None => c.declare(t),
            }
            known.entry(&t.shape).or_insert(&t.symbol);
        }
        c
    }

    /// Returns a context without facts. Sizes must be added by [`Context::size`].
    pub fn empty() -> Context {
        Context {
            atoms: Vec::new(),
            keys: FxHashMap::default(),
            laws: Vec::new(),
            facts: Vec::new(),
            truths: Vec::new(),
            trail: Vec::new(),
            products: Vec::new(),
            unreachable: false,
            version: 0,
            last_version: 0,
            writes: 0,
            by_tensor: FxHashMap::default(),
            loads: FxHashMap::default(),
            shapes: FxHashMap::default(),
            exact: false,
            memo_stop: FxHashMap::default(),
            memo_linear: FxHashMap::default(),
            memo_prove: FxHashMap::default(),
            failures: super::entail::Failures::default(),
            guards: 0,
            thorough: false,
        }
    }

    // ---- scopes

    /// Returns the state to return to by [`Context::pop`].
    pub fn mark(&self) -> Mark {
        Mark {
            facts: self.facts.len(),
            truths: self.truths.len(),
            trail: self.trail.len(),
            products: self.products.len(),
            version: self.version,
            writes: self.writes,
            unreachable: self.unreachable,
        }
    }

    /// Drops every fact that was added after `mark`. Recorded writes stay.
    pub fn pop(&mut self, mark: Mark) {
        while self.facts.len() > mark.facts {
            let position = self.facts.len() as u32 - 1;
            for (a, _) in self.facts.pop().map(|f| f.terms).unwrap_or_default() {
                let uses = &mut self.atoms[a.0 as usize].facts;
                debug_assert_eq!(uses.last(), Some(&position));
                uses.pop();
            }
        }
        while self.trail.len() > mark.trail {
            if let Some((a, interval, congruence)) = self.trail.pop() {
                let info = &mut self.atoms[a.0 as usize];
                (info.interval, info.congruence) = (interval, congruence);
            }
        }
        self.truths.truncate(mark.truths);
        self.products.truncate(mark.products);
        self.unreachable = mark.unreachable;
        if self.writes == mark.writes {
            self.version = mark.version;
        } else {
            self.changed();
        }
    }

    /// Runs `f` in a new scope.
    pub fn scoped<R>(&mut self, f: impl FnOnce(&mut Context) -> R) -> R {
        let mark = self.mark();
        let r = f(self);
        self.pop(mark);
        r
    }

    /// Starts a new version of the facts, which invalidates memoised results.
    pub(super) fn changed(&mut self) {
        self.last_version += 1;
        self.version = self.last_version;
    }

    /// Returns whether the facts contradict each other, so that this point is never reached.
    pub fn is_unreachable(&self) -> bool {
        self.unreachable
    }

    // ---- atoms

    /// Returns the tensors that an expression loads from.
    fn loads(&mut self, e: &Expr) -> Rc<[Symbol]> {
        if let Some(known) = self.loads.get(e) {
            return known.clone();
        }
        let mut all: Vec<Symbol> = Vec::new();
        if let ExprKind::Load(t, _) = e.kind() {
            all.push(t.clone());
        }
        for c in e.children() {
            all.extend(self.loads(c).iter().cloned());
        }
        all.sort();
        all.dedup();
        let all: Rc<[Symbol]> = all.into();
        self.loads.insert(e.clone(), all.clone());
        all
    }

    /// Returns the atom of an iterator or a size.
    pub(super) fn variable(&mut self, symbol: &Symbol) -> Atom {
        let range = Interval::new(i128::from(i64::MIN), i128::from(i64::MAX));
        self.intern(Key::Expr(Expr::var(symbol)), Def::Free, range)
    }

    /// Returns the key's atom, and adds one if there is none.
    pub(super) fn intern(&mut self, key: Key, def: Def, interval: Interval) -> Atom {
        if let Some(a) = self.keys.get(&key) {
            return *a;
        }
        let a = Atom(self.atoms.len() as u32);
        let watched = match &key {
            Key::Expr(e) | Key::Select(e, ..) => self.loads(&e.clone()),
            _ => Rc::from([]),
        };
        for t in watched.iter() {
            self.by_tensor.entry(t.clone()).or_default().push(key.clone());
        }
        self.keys.insert(key.clone(), a);
        let congruence = Congruence::ALL;
        self.atoms.push(AtomInfo { key, def, interval, congruence, facts: Vec::new(), laws: Vec::new() });
        a
    }

    /// Returns the key's atom, if there is one.
    pub(super) fn atom_of(&self, key: &Key) -> Option<Atom> {
        self.keys.get(key).copied()
    }

    /// Returns the facts that were added since `mark`.
    pub(super) fn facts_since(&self, mark: Mark) -> &[Linear] {
        &self.facts[mark.facts.min(self.facts.len())..]
    }

    /// Returns whether the key has an atom already, and with it its laws.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.keys.contains_key(key)
    }

    /// Returns the factors of an atom: itself, unless it is a product.
    pub(super) fn factors(&self, a: Atom) -> Rc<[Atom]> {
        match &self.atoms[a.0 as usize].def {
            Def::Product(f) => f.clone(),
            _ => Rc::from([a]),
        }
    }

    /// Returns the interval of an atom at this point.
    pub(super) fn atom_interval(&self, a: Atom) -> Interval {
        let info = &self.atoms[a.0 as usize];
        match &info.def {
            Def::Product(f) => {
                let product = f.iter().fold(Interval::point(1), |p, x| p.multiply(self.atoms[x.0 as usize].interval));
                info.interval.meet(product)
            }
            _ => info.interval,
        }
    }

    /// Returns the interval of a form at this point, from the intervals of its atoms alone.
    pub(super) fn interval(&self, l: &Linear) -> Interval {
        l.terms.iter().fold(Interval::point(l.constant), |sum, (a, c)| sum.plus(self.atom_interval(*a).scale(*c)))
    }

    /// Returns the residue class of a form, from those of its atoms.
    pub(super) fn congruence(&self, l: &Linear) -> Congruence {
        l.terms.iter().fold(Congruence::point(l.constant), |sum, (a, c)| {
            let class = self
                .factors(*a)
                .iter()
                .fold(Congruence::point(1), |p, f| p.multiply(self.atoms[f.0 as usize].congruence));
            sum.plus(class.scale(*c))
        })
    }

    /// Narrows an atom's interval and congruence, to the end of the scope.
    pub(super) fn refine(&mut self, a: Atom, interval: Interval, congruence: Congruence) {
        let info = &mut self.atoms[a.0 as usize];
        let interval = info.interval.meet(interval);
        // Of two congruences the finer one is kept; their intersection is rarely needed.
        let finer =
            congruence.modulus == 0 || (info.congruence.modulus != 0 && congruence.modulus > info.congruence.modulus);
        let congruence = if finer { congruence } else { info.congruence };
        if interval == info.interval && congruence == info.congruence {
            return;
        }
        self.trail.push((a, info.interval, info.congruence));
        (info.interval, info.congruence) = (interval, congruence);
        self.unreachable |= interval.is_empty();
    }

    /// Adds a law: the form is at least 0 by the definitions of its atoms.
    pub(super) fn add_law(&mut self, law: Option<Linear>) {
        let Some(law) = law.map(Linear::tighten) else { return };
        for (a, _) in &law.terms {
            self.atoms[a.0 as usize].laws.push(self.laws.len() as u32);
        }
        self.laws.push(law);
    }

    /// Adds the fact that a form is at least 0, to the end of the scope. Narrows the intervals of its atoms.
    pub(super) fn add_fact(&mut self, fact: Linear) {
        let fact = fact.tighten();
        let interval = self.interval(&fact);
        if interval.hi < 0 {
            self.unreachable = true;
        }
        if interval.lo >= 0 || fact.terms.is_empty() {
            return;
        }
        for &(a, c) in &fact.terms {
            // `c * a >= -(rest)`
            let Some(rest) = fact.substitute(a, &Linear::default()) else { continue };
            let most = self.interval(&rest).hi;
            if most >= super::interval::INFINITY {
                continue;
            }
            let bound = if c > 0 {
                Interval::new(-most.div_euclid(c), super::interval::INFINITY)
            } else {
                Interval::new(-super::interval::INFINITY, most.div_euclid(-c))
            };
            self.refine(a, bound, Congruence::ALL);
        }
        for (a, _) in &fact.terms {
            self.atoms[a.0 as usize].facts.push(self.facts.len() as u32);
        }
        self.facts.push(fact);
    }
}
