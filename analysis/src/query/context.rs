//! What is known at a point of a program: a stack of facts, and the table of atoms that they speak of.
//!
//! - **Atoms** are values, not places: once numbered, an atom keeps its meaning for ever. After a write to a tensor,
//!   expressions that load from it are given new atoms, so facts never have to be taken back because of writes.
//! - **Laws** follow from what an atom is (`a = 4 * (a // 4) + a % 4`) and hold everywhere.
//! - **Facts** hold in a scope: a mark is taken, facts are added, the mark is popped. What an atom can be (its interval
//!   and congruence) is narrowed by facts, and widened again from a trail when their scope ends.
//!
//! What becomes a fact on the way through a program is said in `learn`.
//!
//! Every state of the stack has a version, and what is computed is remembered with the version it holds for.

mod learn;

use super::interval::{Congruence, Interval};
use super::linear::{Atom, Linear};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use taffeta_ast::{Expr, ExprKind, Func, Symbol};

/// What an atom is, as far as the provers may look into it.
#[derive(Clone, Debug)]
pub(super) enum Def {
    /// A size, an iterator, an element, an expression that may wrap.
    Free,
    /// The mathematical product of other atoms, sorted, none of them a product.
    Product(Rc<[Atom]>),
    /// The floor of `num / den`, for a constant `den > 0`.
    Quotient(Linear, i128),
    /// The smaller one.
    Min(Linear, Linear),
    /// The larger one.
    Max(Linear, Linear),
    /// The first form where the condition holds, the second one where it does not.
    Select(Expr, Linear, Linear),
}

/// By what atoms are found again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Expr(Expr),
    /// The number of earlier iterations of a loop.
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
    /// Positions in [`Context::facts`] of those that mention it, in increasing order.
    pub(super) facts: Vec<u32>,
    /// Positions in [`Context::laws`] likewise.
    pub(super) laws: Vec<u32>,
}

/// A condition that is known to hold, or not to.
struct Truth {
    cond: Expr,
    holds: bool,
    /// The tensors that it loads from.
    loads: Rc<[Symbol]>,
    /// Ended by a write to a tensor that it loads from.
    ended: bool,
}

/// A state of the stack to return to.
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

/// The facts that hold at a point of a program, in a scope that grows and shrinks with a walk over it.
pub struct Context {
    pub(super) atoms: Vec<AtomInfo>,
    keys: FxHashMap<Key, Atom>,
    /// Forms that are at least 0 because of what their atoms are.
    pub(super) laws: Vec<Linear>,
    /// Forms that are at least 0 here.
    pub(super) facts: Vec<Linear>,
    truths: Vec<Truth>,
    /// What atoms were before they were narrowed.
    trail: Vec<(Atom, Interval, Congruence)>,
    /// Products of atoms, each at least 0, that are at most [`super::MAX_SIZE`] (with 1 for factors that are 0).
    pub(super) products: Vec<Rc<[Atom]>>,
    /// The facts contradict each other: this point is never reached.
    pub(super) unreachable: bool,
    pub(super) version: u64,
    last_version: u64,
    /// How many writes were told of.
    writes: u64,
    /// Keys of atoms that loads from a tensor are in.
    by_tensor: FxHashMap<Symbol, Vec<Key>>,
    loads: FxHashMap<Expr, Rc<[Symbol]>>,
    /// The dimensions of the tensors that were declared, as they were then; to the end of the walk, since symbols are
    /// unique.
    pub(super) shapes: FxHashMap<Symbol, Vec<Linear>>,
    /// While lowering the shape of a tensor that is alive: its operations do not wrap.
    pub(super) exact: bool,
    pub(super) memo_linear: FxHashMap<Expr, (u64, Linear)>,
    pub(super) memo_prove: FxHashMap<(Expr, bool, bool), (u64, bool)>,
    pub(super) memo_stop: FxHashMap<Expr, (u64, bool)>,
    /// How often solvers were asked in vain.
    pub(super) failures: super::entail::Failures,
    /// How many guards there are inside each other.
    pub(super) guards: u32,
    /// Whether a question is asked in earnest, and not on the way to an answer.
    pub(super) thorough: bool,
}

impl Context {
    /// At the beginning of a program: its sizes are not negative, and so on for the shapes of its parameters and
    /// results.
    pub fn new(func: &Func) -> Context {
        let mut c = Context::empty();
        for s in &func.sizes {
            c.size(s);
        }
        // Many tensors have the shape of another one, which says the same of the sizes.
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

    /// Nothing is known but what sizes are, which must be told by [`Context::size`].
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

    /// The state to return to by [`Context::pop`].
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

    /// Forgets every fact that was learnt after `mark`, but not the writes that were told of.
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

    /// Runs `f` in a scope of its own.
    pub fn scoped<R>(&mut self, f: impl FnOnce(&mut Context) -> R) -> R {
        let mark = self.mark();
        let r = f(self);
        self.pop(mark);
        r
    }

    /// The facts are not what they were: nothing that was remembered holds.
    pub(super) fn changed(&mut self) {
        self.last_version += 1;
        self.version = self.last_version;
    }

    /// Whether the facts contradict each other, so that this point is never reached.
    pub fn is_unreachable(&self) -> bool {
        self.unreachable
    }

    // ---- atoms

    /// The tensors that an expression loads from.
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

    /// The atom of an iterator or a size.
    pub(super) fn variable(&mut self, symbol: &Symbol) -> Atom {
        let range = Interval::new(i128::from(i64::MIN), i128::from(i64::MAX));
        self.intern(Key::Expr(Expr::var(symbol)), Def::Free, range)
    }

    /// The atom of that key: the one it has, or a new one.
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

    /// The atom of that key, if it has one.
    pub(super) fn atom_of(&self, key: &Key) -> Option<Atom> {
        self.keys.get(key).copied()
    }

    /// The facts that were learnt since `mark`.
    pub(super) fn facts_since(&self, mark: Mark) -> &[Linear] {
        &self.facts[mark.facts.min(self.facts.len())..]
    }

    /// Whether the key has an atom already (so that its laws stand).
    pub(super) fn has(&self, key: &Key) -> bool {
        self.keys.contains_key(key)
    }

    /// The atoms that an atom is the product of: itself, unless it is a product.
    pub(super) fn factors(&self, a: Atom) -> Rc<[Atom]> {
        match &self.atoms[a.0 as usize].def {
            Def::Product(f) => f.clone(),
            _ => Rc::from([a]),
        }
    }

    /// What an atom can be here.
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

    /// What a form can be here, by the intervals of its atoms alone.
    pub(super) fn interval(&self, l: &Linear) -> Interval {
        l.terms.iter().fold(Interval::point(l.constant), |sum, (a, c)| sum.plus(self.atom_interval(*a).scale(*c)))
    }

    /// The residue class of a form, by those of its atoms.
    pub(super) fn congruence(&self, l: &Linear) -> Congruence {
        l.terms.iter().fold(Congruence::point(l.constant), |sum, (a, c)| {
            let class = self
                .factors(*a)
                .iter()
                .fold(Congruence::point(1), |p, f| p.multiply(self.atoms[f.0 as usize].congruence));
            sum.plus(class.scale(*c))
        })
    }

    /// An atom is known more narrowly, to the end of the scope.
    pub(super) fn refine(&mut self, a: Atom, interval: Interval, congruence: Congruence) {
        let info = &mut self.atoms[a.0 as usize];
        let interval = info.interval.meet(interval);
        // Of two classes the finer one is kept; their intersection is rarely asked for.
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

    /// A law: the form is at least 0 because of what its atoms are.
    pub(super) fn add_law(&mut self, law: Option<Linear>) {
        let Some(law) = law.map(Linear::tighten) else { return };
        for (a, _) in &law.terms {
            self.atoms[a.0 as usize].laws.push(self.laws.len() as u32);
        }
        self.laws.push(law);
    }

    /// A fact: the form is at least 0, to the end of the scope. Narrows its atoms.
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
            // c * a >= -(rest)
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
