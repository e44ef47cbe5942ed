//! Facts that a [`Context`] gains on a walk through a program: from declarations, conditions, loops, assertions and
//! stores; and facts invalidated by writes.

use super::{Context, Def, Key, KnownCondition};
use crate::query::MAX_SIZE;
use crate::query::interval::{Congruence, INFINITY, Interval};
use crate::query::linear::Linear;
use crate::query::prove::complement;
use rustc_hash::FxHashSet;
use taffeta_ast::op::Op;
use taffeta_ast::{Expr, ExprKind, Extent, Stmt, StmtKind, Symbol, Tensor};

impl Context {
    /// Adds the fact that a size is between 0 and [`MAX_SIZE`].
    pub fn size(&mut self, symbol: &Symbol) {
        self.changed();
        let a = self.variable(symbol);
        self.refine(a, Interval::new(0, i128::from(MAX_SIZE)), Congruence::ALL);
    }

    /// Adds the facts about a live tensor: the operations of its shape do not wrap, and it has at most [`MAX_SIZE`]
    /// elements.
    pub fn declare(&mut self, tensor: &Tensor) {
        self.wrote(std::iter::once(&tensor.symbol));
        self.exact = true;
        let dims: Vec<Linear> = tensor.shape.iter().map(|d| self.linear(d)).collect();
        self.exact = false;
        self.shapes.insert(tensor.symbol.clone(), dims.clone());
        let mut elements = Some(Linear::constant(1));
        for d in &dims {
            self.add_fact(d.clone());
            if let Some(rest) = Linear::constant(i128::from(MAX_SIZE)).minus(d) {
                self.add_fact(rest);
            }
            elements = elements.and_then(|e| self.product(&e, d));
        }
        // If no term is negative, each term is at most the sum.
        if let Some(e) = elements
            && e.constant >= 0
            && e.terms.iter().all(|(_, c)| *c >= 0)
        {
            for (a, _) in &e.terms {
                let factors = self.factors(*a);
                let told = factors.len() < 2 || self.products.contains(&factors);
                if !told && factors.iter().all(|f| self.atom_interval(*f).lo >= 0) {
                    self.products.push(factors);
                }
            }
        }
    }

    /// Assumes that the condition holds from here to the end of the scope.
    pub fn assume(&mut self, cond: &Expr) {
        self.suppose(cond, true);
    }

    /// Assumes that the condition does not hold from here to the end of the scope.
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
                // `a or b` with `a` known to be false is `b`.
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

    /// Adds the facts of a comparison of two forms.
    fn compare(&mut self, op: Op, holds: bool, a: &Linear, b: &Linear) {
        let op = if holds { op } else { complement(op) };
        // `x < y` is `y - x - 1 >= 0`.
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
                // `a != b` and `a >= b` imply `a > b`.
                if let Some(d) = a.minus(b) {
                    if self.entails_cheaply(&d) {
                        self.add_fact(d.plus_constant(-1));
                    } else if let Some(e) = b.minus(a)
                        && self.entails_cheaply(&e)
                    {
                        self.add_fact(e.plus_constant(-1));
                    }
                }
            }
        }
    }

    /// Derives the residues of atoms from `d = 0`: `i = 4k + 2` is 2 modulo 4.
    fn equal_to_zero(&mut self, d: &Linear) {
        for &(a, c) in &d.terms {
            if c.abs() == 1 {
                let rest = d.substitute(a, &Linear::default()).and_then(|r| r.scale(-c));
                if let Some(rest) = rest {
                    let class = self.congruence(&rest);
                    self.refine(a, Interval::ALL, class);
                }
            }
        }
    }

    fn know(&mut self, cond: &Expr, holds: bool) {
        self.changed();
        let loads = self.loads(cond);
        self.truths.push(KnownCondition { cond: cond.clone(), holds, loads, ended: false });
    }

    /// Returns the value that was assumed for exactly this condition; `None` if none was.
    pub(in crate::query) fn known(&self, cond: &Expr) -> Option<bool> {
        self.truths.iter().rev().find(|t| !t.ended && t.cond == *cond).map(|t| t.holds)
    }

    /// Enters the body of a loop, in any of its iterations. Invalidates facts about tensors that the body writes.
    pub fn enter_loop(&mut self, iter: &Symbol, extent: &Extent, body: &Stmt) {
        // The bounds are evaluated before the first iteration, so they are lowered before the writes.
        let range = match extent {
            Extent::Range { begin, end, step } => Some([begin, end, step].map(|e| self.linear(e))),
            Extent::Reals => None,
        };
        self.wrote_all(body.writes());
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
        // The body is only entered with a positive trip count: for `range(n * m)`, neither factor is 0.
        let length = if sign.lo > 0 { end.minus(&begin) } else { begin.minus(&end) };
        self.positive_factors(&length);
        let Some(s) = step.as_constant().filter(|s| s.abs() != 1) else { return };
        // `i = begin + s * k`, with `k >= 0`
        let k = self.intern(Key::Trip(iter.clone()), Def::Free, Interval::ALL);
        self.refine(k, Interval::new(0, INFINITY), Congruence::ALL);
        let offset = i.minus(&begin).and_then(|d| d.combine(1, &Linear::atom(k), -s));
        if let Some(d) = offset {
            if let Some(negative) = d.scale(-1) {
                self.add_fact(negative);
            }
            self.add_fact(d.clone());
            self.equal_to_zero(&d);
        }
    }

    /// Derives that the factors of a positive product are positive, if none is negative.
    fn positive_factors(&mut self, sum: &Option<Linear>) {
        for (atom, _) in sum.iter().flat_map(|l| l.terms.clone()) {
            let Def::Product(factors) = self.atoms[atom.0 as usize].def.clone() else { continue };
            let positive = self.entails(&Linear::atom(atom).plus_constant(-1));
            if !positive || factors.iter().any(|f| self.interval(&Linear::atom(*f)).lo < 0) {
                continue;
            }
            for f in factors.iter().copied() {
                self.add_fact(Linear::atom(f).plus_constant(-1));
            }
        }
    }

    /// Enters the body of a `while` loop.
    pub fn enter_while(&mut self, cond: &Expr, body: &Stmt) {
        self.wrote_all(body.writes());
        self.assume(cond);
    }

    /// Adds the effects of a statement and its children: invalidates facts about written tensors, assumes the condition
    /// of an assertion, and records a stored integer as the value of its element.
    pub fn after(&mut self, stmt: &Stmt) {
        let (tensor, indices, value) = match stmt.kind() {
            // Their children were visited already; collecting the children's writes again at every level would be
            // quadratic in the depth.
            StmtKind::Seq(_) | StmtKind::VarDef { .. } => return,
            StmtKind::Assert { cond, .. } | StmtKind::Assume { cond } => return self.assume(cond),
            StmtKind::Store { tensor, indices, value } => (tensor, indices, value.clone()),
            StmtKind::ReduceTo { tensor, indices, op, value } if value.dtype().is_int() => {
                let element = Expr::load(tensor, indices.clone(), value.dtype());
                (tensor, indices, Expr::apply(op.info().op, vec![element, value.clone()]))
            }
            _ => return self.wrote_all(stmt.writes()),
        };
        if !value.dtype().is_int() {
            return self.wrote([tensor]);
        }
        // Atoms are values, so the stored value is known even if it was computed from the same tensor.
        let stored = self.linear(&value);
        self.wrote([tensor]);
        let element = Expr::load(tensor, indices.clone(), value.dtype());
        let moved = indices.iter().any(|a| self.loads(&a.index).contains(tensor));
        if !moved {
            let now = self.linear(&element);
            self.compare(Op::Eq, true, &now, &stored);
        }
    }

    /// Adds the effects of a statement whose children were not visited. Facts that hold in inner scopes end there, so
    /// only the children's writes matter.
    pub(in crate::query) fn skip(&mut self, stmt: &Stmt) {
        match stmt.kind() {
            StmtKind::Seq(all) => all.iter().for_each(|s| self.skip(s)),
            StmtKind::VarDef { .. } | StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::If { .. } => {
                if self.reads_nothing() {
                    self.writes += 1;
                    self.changed();
                } else {
                    self.wrote_all(stmt.writes());
                }
            }
            _ => self.after(stmt),
        }
    }

    /// Returns whether no fact is about elements of tensors, so that writes invalidate nothing.
    fn reads_nothing(&self) -> bool {
        self.by_tensor.is_empty() && self.truths.iter().all(|t| t.loads.is_empty())
    }

    /// Invalidates the facts about elements of these tensors, to the end of the walk.
    pub fn wrote<'a>(&mut self, tensors: impl IntoIterator<Item = &'a Symbol>) {
        for t in tensors {
            self.forget(t);
            self.truths.iter_mut().for_each(|truth| truth.ended |= truth.loads.contains(t));
        }
        self.writes += 1;
        self.changed();
    }

    /// Invalidates the facts about all tensors that a statement writes, iterating over the smaller set: these tensors,
    /// or those with known facts.
    fn wrote_all(&mut self, tensors: &FxHashSet<Symbol>) {
        let known: Vec<Symbol> = match tensors.len() < self.by_tensor.len() {
            true => tensors.iter().filter(|t| self.by_tensor.contains_key(t)).cloned().collect(),
            false => self.by_tensor.keys().filter(|t| tensors.contains(t)).cloned().collect(),
        };
        known.iter().for_each(|t| self.forget(t));
        self.truths.iter_mut().for_each(|truth| truth.ended |= truth.loads.iter().any(|t| tensors.contains(t)));
        self.writes += 1;
        self.changed();
    }

    /// Drops the atoms of a tensor's former elements from the table.
    fn forget(&mut self, tensor: &Symbol) {
        for key in self.by_tensor.remove(tensor).unwrap_or_default() {
            if let Some(a) = self.keys.remove(&key) {
                let def = &mut self.atoms[a.0 as usize].def;
                // Its condition would be evaluated with the tensor's new elements.
                if matches!(def, Def::Select(..)) {
                    *def = Def::Free;
                }
            }
        }
    }
}
