//! What is known at a point of a program: a stack of facts, and the table of atoms that they speak of.
//!
//! - **Atoms** are values, not places: once numbered, an atom keeps its meaning for ever. After a write to a tensor, expressions
//!   that load from it are given new atoms, so facts never have to be taken back because of writes.
//! - **Laws** follow from what an atom is (`a = 4 * (a // 4) + a % 4`) and hold everywhere.
//! - **Facts** hold in a scope: a mark is taken, facts are added, the mark is popped. What an atom can be (its interval and
//!   congruence) is narrowed by facts, and widened again from a trail when their scope ends.
//!
//! Every state of the stack has a version, and what is computed is remembered with the version it holds for.

use super::effects;
use super::interval::{Congruence, Interval};
use super::linear::{Atom, Linear};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use weft_ast::op::Op;
use weft_ast::{Access, Expr, ExprKind, Extent, Func, Stmt, StmtKind, Symbol, Tensor};

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
    /// The dimensions of the tensors that were declared, as they were then; to the end of the walk, since symbols are unique.
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
    /// At the beginning of a program: its sizes are not negative, and so on for the shapes of its parameters and results.
    pub fn new(func: &Func) -> Context {
        let mut c = Context::empty();
        for s in &func.sizes {
            c.size(s);
        }
        for t in func.interface() {
            c.declare(t);
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

    // ---- what is learnt

    /// A size: between 0 and [`super::MAX_SIZE`].
    pub fn size(&mut self, symbol: &Symbol) {
        self.changed();
        let a = self.variable(symbol);
        self.narrow(a, Interval::new(0, i128::from(super::MAX_SIZE)), Congruence::ALL);
    }

    /// A tensor is alive: the operations of its shape do not wrap, and it is not larger than [`super::MAX_SIZE`].
    pub fn declare(&mut self, tensor: &Tensor) {
        self.wrote(std::iter::once(&tensor.symbol));
        self.exact = true;
        let dims: Vec<Linear> = tensor.shape.iter().map(|d| self.linear(d)).collect();
        self.exact = false;
        self.shapes.insert(tensor.symbol.clone(), dims.clone());
        let mut elements = Some(Linear::constant(1));
        for d in &dims {
            self.add_fact(d.clone());
            if let Some(rest) = Linear::constant(i128::from(super::MAX_SIZE)).minus(d) {
                self.add_fact(rest);
            }
            elements = elements.and_then(|e| self.product(&e, d));
        }
        // If no term is negative, each of them is at most the whole.
        if let Some(e) = elements
            && e.constant >= 0
            && e.terms.iter().all(|(_, c)| *c >= 0)
        {
            for (a, _) in &e.terms {
                let factors = self.factors(*a);
                if factors.len() > 1 && factors.iter().all(|f| self.atom_interval(*f).lo >= 0) {
                    self.products.push(factors);
                }
            }
        }
    }

    /// The condition holds from here to the end of the scope.
    pub fn assume(&mut self, cond: &Expr) {
        self.suppose(cond, true);
    }

    /// The condition does not hold from here to the end of the scope.
    pub fn assume_not(&mut self, cond: &Expr) {
        self.suppose(cond, false);
    }

    fn suppose(&mut self, cond: &Expr, holds: bool) {
        let earnest = std::mem::replace(&mut self.thorough, false);
        self.learn(cond, holds);
        self.thorough = earnest;
    }

    fn learn(&mut self, cond: &Expr, holds: bool) {
        if let Some(b) = cond.as_bool() {
            self.changed();
            self.unreachable |= b != holds;
            return;
        }
        let ExprKind::Apply(op, args) = cond.kind() else { return self.know(cond, holds) };
        match (op, holds) {
            (Op::Not, _) => self.suppose(&args[0], !holds),
            (Op::And, true) | (Op::Or, false) => {
                self.suppose(&args[0], holds);
                self.suppose(&args[1], holds);
            }
            (Op::BitAnd, true) | (Op::BitOr, false) => {
                self.suppose(&args[0], holds);
                self.suppose(&args[1], holds);
            }
            (Op::And | Op::Or, _) => {
                self.know(cond, holds);
                // `a or b` where `a` is known not to hold is `b`.
                let given = *op == Op::Or;
                if self.decide(&args[0], !given) {
                    self.suppose(&args[1], holds);
                } else if self.decide(&args[1], !given) {
                    self.suppose(&args[0], holds);
                }
            }
            _ if op.is_comparison() && args[0].dtype().is_int() => {
                self.know(cond, holds);
                let (a, b) = (self.linear(&args[0]), self.linear(&args[1]));
                self.compare(*op, holds, &a, &b);
            }
            _ => self.know(cond, holds),
        }
    }

    /// Facts of a comparison of forms.
    fn compare(&mut self, op: Op, holds: bool, a: &Linear, b: &Linear) {
        let op = if holds { op } else { super::prove::complement(op) };
        // x < y is y - x - 1 >= 0
        let mut less = |x: &Linear, y: &Linear, by: i128| {
            if let Some(d) = y.minus(x) {
                self.add_fact(d.plus_constant(-by));
            }
        };
        match op {
            Op::Lt => less(a, b, 1),
            Op::Le => less(a, b, 0),
            Op::Gt => less(b, a, 1),
            Op::Ge => less(b, a, 0),
            Op::Eq => {
                less(a, b, 0);
                less(b, a, 0);
                if let Some(d) = a.minus(b) {
                    self.equal_to_zero(&d);
                }
            }
            _ => {
                // From a != b and a >= b follows a > b.
                if let Some(d) = a.minus(b) {
                    if self.quickly(&d) {
                        self.add_fact(d.plus_constant(-1));
                    } else if let Some(e) = b.minus(a)
                        && self.quickly(&e)
                    {
                        self.add_fact(e.plus_constant(-1));
                    }
                }
            }
        }
    }

    /// What `d = 0` says about the residues of its atoms: `i = 4k + 2` is 2 modulo 4.
    fn equal_to_zero(&mut self, d: &Linear) {
        for &(a, c) in &d.terms {
            if c.abs() == 1 {
                let rest = d.substitute(a, &Linear::default()).and_then(|r| r.scale(-c));
                if let Some(rest) = rest {
                    let class = self.congruence(&rest);
                    self.narrow(a, Interval::ALL, class);
                }
            }
        }
    }

    fn know(&mut self, cond: &Expr, holds: bool) {
        self.changed();
        self.truths.push(Truth { cond: cond.clone(), holds, ended: false });
    }

    /// Whether exactly this condition was assumed, or its contrary.
    pub(super) fn known(&self, cond: &Expr) -> Option<bool> {
        self.truths.iter().rev().find(|t| !t.ended && t.cond == *cond).map(|t| t.holds)
    }

    /// In the body of a loop, in any of its iterations. The writes of the body are taken into account.
    pub fn enter_loop(&mut self, iter: &Symbol, extent: &Extent, body: &Stmt) {
        // The bounds are evaluated before the first iteration.
        let range = match extent {
            Extent::Range { begin, end, step } => Some([begin, end, step].map(|e| self.linear(e))),
            Extent::Reals => None,
        };
        self.wrote(&effects::writes(body));
        let Some([begin, end, step]) = range else { return };
        let i = Linear::atom(self.variable(iter));
        let sign = self.interval(&step);
        let facts = if sign.lo > 0 {
            [i.minus(&begin), end.minus(&i)]
        } else if sign.hi < 0 {
            [begin.minus(&i), i.minus(&end)]
        } else {
            return;
        };
        let [from, to] = facts;
        if let Some(f) = from {
            self.add_fact(f);
        }
        if let Some(t) = to {
            self.add_fact(t.plus_constant(-1));
        }
        let Some(s) = step.as_constant().filter(|s| s.abs() != 1) else { return };
        // i = begin + s * k, with k >= 0
        let k = self.intern(Key::Trip(iter.clone()), Def::Free, Interval::ALL);
        self.narrow(k, Interval::new(0, super::interval::INFINITY), Congruence::ALL);
        let offset = i.minus(&begin).and_then(|d| d.combine(1, &Linear::atom(k), -s));
        if let Some(d) = offset {
            if let Some(negative) = d.scale(-1) {
                self.add_fact(negative);
            }
            self.add_fact(d.clone());
            self.equal_to_zero(&d);
        }
    }

    /// In the body of a `while` loop.
    pub fn enter_while(&mut self, cond: &Expr, body: &Stmt) {
        self.wrote(&effects::writes(body));
        self.assume(cond);
    }

    /// After a statement and all inside it: its writes happened, an assertion was passed, an integer that was stored is there
    /// to be read.
    pub fn after(&mut self, stmt: &Stmt) {
        let (tensor, indices, value) = match stmt.kind() {
            // What they consist of came before; to collect its writes again at every level would be quadratic in the depth.
            StmtKind::Seq(_) | StmtKind::VarDef { .. } => return,
            StmtKind::Assert { cond, .. } | StmtKind::Assume { cond } => return self.assume(cond),
            StmtKind::Store { tensor, indices, value } => (tensor, indices, value.clone()),
            StmtKind::ReduceTo { tensor, indices, op, value } if value.dtype().is_int() => {
                let element = Expr::load(tensor, indices.clone(), value.dtype());
                (tensor, indices, Expr::apply(op.info().op, vec![element, value.clone()]))
            }
            _ => return self.wrote(&effects::writes(stmt)),
        };
        if !value.dtype().is_int() {
            return self.wrote([tensor]);
        }
        // Atoms are values, so what was stored is known even if it came from the same tensor.
        let stored = self.linear(&value);
        self.wrote([tensor]);
        let element = Expr::load(tensor, indices.clone(), value.dtype());
        let moved = indices.iter().flat_map(Access::exprs).any(|e| self.loads(e).contains(tensor));
        if !moved {
            let now = self.linear(&element);
            self.compare(Op::Eq, true, &now, &stored);
        }
    }

    /// Elements of these tensors may have other values from here on, to the end of the walk.
    pub fn wrote<'a>(&mut self, tensors: impl IntoIterator<Item = &'a Symbol>) {
        for t in tensors {
            for key in self.by_tensor.remove(t).unwrap_or_default() {
                if let Some(a) = self.keys.remove(&key) {
                    let def = &mut self.atoms[a.0 as usize].def;
                    // Its condition would now be taken to mean something else.
                    if matches!(def, Def::Select(..)) {
                        *def = Def::Free;
                    }
                }
            }
            let ended: Vec<bool> = (0..self.truths.len())
                .map(|i| {
                    let cond = self.truths[i].cond.clone();
                    self.loads(&cond).contains(t)
                })
                .collect();
            for (truth, ended) in self.truths.iter_mut().zip(ended) {
                truth.ended |= ended;
            }
        }
        self.writes += 1;
        self.changed();
    }

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

    // ---- atoms

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
    pub(super) fn narrow(&mut self, a: Atom, interval: Interval, congruence: Congruence) {
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
            self.narrow(a, bound, Congruence::ALL);
        }
        for (a, _) in &fact.terms {
            self.atoms[a.0 as usize].facts.push(self.facts.len() as u32);
        }
        self.facts.push(fact);
    }
}
