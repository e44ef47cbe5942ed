//! What stands under a condition of indices alone: where an iteration is says which operand of a `select` is chosen, so
//! that the value is of the fill where that operand is (the interpreter's rule too). Where that may make a difference,
//! the statement becomes a branch. A scalar that stands for one value has all that comes after it in the two cases.
//!
//! ```text
//! y[i] += select(j % 2 == 0, A[i, j], 0.0) * x[j]
//!
//! if j % 2 == 0:
//!     y[i] += A[i, j] * x[j]                  nothing where nothing is stored
//! else:
//!     y[i] += 0.0 * x[j]
//! ```

use super::beyond::{Facts, conjuncts, resolved};
use super::{Lower, load, place};
use crate::access;
use rustc_hash::FxHashSet;
use taffeta_ast::{Expr, ExprKind, Op, Stmt, StmtKind, Symbol};

/// How many conditions of one statement are told apart.
const MOST_CHOICES: usize = 6;

struct Choices<'l> {
    lower: &'l mut Lower,
    /// Declarations around.
    declared: Vec<Stmt>,
    /// Scalars that may be of the fill.
    carriers: FxHashSet<Symbol>,
    /// Scalars that have a declaration in each of two cases instead of theirs.
    moved: FxHashSet<Symbol>,
    /// How many conditions are decided around.
    depth: usize,
}

impl Lower {
    /// The statement with branches instead of such operands.
    pub(super) fn chosen(&mut self, s: &Stmt) -> Stmt {
        let (carriers, moved) = (FxHashSet::default(), FxHashSet::default());
        Choices { lower: self, declared: Vec::new(), carriers, moved, depth: 0 }.stmt(s)
    }
}

impl Choices<'_> {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Seq(all) => self.block(s, all),
            StmtKind::VarDef { tensor, body } => {
                self.declared.push(s.clone());
                let new = self.stmt(body);
                self.declared.pop();
                match self.moved.remove(&tensor.symbol) {
                    true => new,
                    false => s.map(&mut |_| new.clone(), &mut Expr::clone),
                }
            }
            _ => match self.choice(s) {
                Some(cond) => self.branch(s, &cond),
                None => {
                    if let StmtKind::Store { tensor, value, .. } = s.kind()
                        && self.may_be_fill(value)
                        && self.definition(tensor).is_some()
                    {
                        self.carriers.insert(tensor.clone());
                    }
                    s.map(&mut |s| self.stmt(s), &mut Expr::clone)
                }
            },
        }
    }

    fn block(&mut self, s: &Stmt, all: &[Stmt]) -> Stmt {
        let mut out = Vec::new();
        for (k, one) in all.iter().enumerate() {
            if let StmtKind::Store { tensor, .. } = one.kind()
                && self.definition(tensor).is_some()
                && let Some(cond) = self.choice(one)
            {
                // All scalars that are given their values from here on have two declarations.
                let mut tail = Stmt::seq(all[k..].iter().cloned(), s.origin().derive("structured", "tail"));
                let mut given = Vec::new();
                given_here(&tail, &mut given);
                given.retain(|scalar| match self.definition(scalar) {
                    Some(declared) => {
                        tail = declared.map(&mut |_| tail.clone(), &mut Expr::clone);
                        true
                    }
                    None => false,
                });
                out.push(self.branch(&tail, &cond));
                self.moved.extend(given);
                break;
            }
            out.push(self.stmt(one));
        }
        Stmt::seq(out, s.origin().clone())
    }

    /// The statement where a condition holds, and where it does not.
    fn branch(&mut self, s: &Stmt, cond: &Expr) -> Stmt {
        if self.depth == MOST_CHOICES || s.declares_structured() {
            let text = "there are more conditions on what is accessed than can be told apart in one statement";
            self.lower.refuse_at(place(s), text.to_string());
            return Stmt::nop();
        }
        let case = |s: &Stmt, holds: bool| {
            let mut facts = Facts::from([(cond.clone(), holds)]);
            conjuncts(cond, holds, &mut facts);
            resolved(s, &|e| facts.iter().find(|(cond, _)| cond == e).map(|(_, holds)| *holds))
        };
        self.depth += 1;
        let (then, other) = (case(s, true), case(&self.lower.copied(s, "choice"), false));
        let [then, other] = [then, other].map(|s| self.stmt(&s));
        self.depth -= 1;
        let (cond, then, other) =
            if then.is_nop() { (cond.negate(), other, then) } else { (cond.clone(), then, other) };
        let otherwise = (!other.is_nop()).then_some(other);
        Stmt::new(StmtKind::If { cond, then, otherwise }, s.origin().derive("structured", "choice"))
    }

    /// The condition of an operand that may be of the fill, where it may make a difference that it is.
    fn choice(&self, s: &Stmt) -> Option<Expr> {
        let kept = match s.kind() {
            StmtKind::Store { tensor, value, .. } if self.definition(tensor).is_none() => Some(value),
            _ => None,
        };
        // What is stored is stored, whatever it is of, but for elements of patterns.
        let target = access::target(s).filter(|e| self.may_be_fill(e));
        access::exprs(s).iter().find_map(|e| self.choice_in(e, target.is_none() && kept == Some(e), false))
    }

    /// The same in an expression; `beside`: whether what it is an operand of may be of the fill.
    fn choice_in(&self, e: &Expr, kept: bool, beside: bool) -> Option<Expr> {
        let may_be_fill = self.may_be_fill(e);
        if !may_be_fill && !beside {
            return None;
        }
        match e.kind() {
            ExprKind::Apply(Op::Select, args) => {
                let [cond, operands @ ..] = &args[..] else { return None };
                let counts = |e: &Expr| self.may_be_fill(e) || beside && may_be_constant(e);
                if !kept && cond.is_of_indices() && operands.iter().any(counts) {
                    return Some(cond.clone());
                }
                // A constant that a fill chooses is of the fill.
                let inside = |e: &Expr| self.choice_in(e, kept, beside || self.may_be_fill(cond));
                self.choice_in(cond, false, false).or_else(|| operands.iter().find_map(inside))
            }
            ExprKind::Load(..) => e.children().into_iter().find_map(|e| self.choice_in(e, false, false)),
            _ => e.children().into_iter().find_map(|e| self.choice_in(e, false, may_be_fill || beside)),
        }
    }

    /// Whether a value is computed of what may be of the fill.
    fn may_be_fill(&self, e: &Expr) -> bool {
        let mut may = false;
        e.walk(&mut |e| {
            may |= load(e).is_some_and(|(t, _)| self.lower.fibres.contains_key(t) || self.carriers.contains(t));
        });
        may
    }

    /// The declaration of a scalar that stands for one value.
    fn definition(&self, scalar: &Symbol) -> Option<Stmt> {
        self.lower.definition(&self.declared, scalar).cloned()
    }
}

/// Scalars that a statement stores into in its own block.
pub(super) fn given_here(s: &Stmt, out: &mut Vec<Symbol>) {
    match s.kind() {
        StmtKind::Store { tensor, indices, .. } if indices.is_empty() => out.push(tensor.clone()),
        StmtKind::Seq(_) | StmtKind::VarDef { .. } => s.kind().inside().for_each(|s| given_here(s, out)),
        _ => {}
    }
}

/// Whether a value may be a constant, which fills are computed with.
fn may_be_constant(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Const(_) => true,
        ExprKind::Cast(inner) => may_be_constant(inner),
        ExprKind::Apply(Op::Select, args) => args[1..].iter().any(may_be_constant),
        ExprKind::Apply(_, args) => args.iter().all(may_be_constant),
        _ => false,
    }
}
