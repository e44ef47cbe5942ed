//! Branches for operands under conditions on indices alone: the iteration determines which operand of a `select` is
//! chosen, so the value derives from the fill where that operand does, as in the interpreter. Where the case may
//! matter, the statement becomes a branch. After a scalar with a single definition, the rest of its block is in both
//! branches.
//!
//! ```text
//! y[i] += select(j % 2 == 0, A[i, j], 0.0) * x[j]
//!
//! if j % 2 == 0:
//!     y[i] += A[i, j] * x[j]                  nothing where nothing is stored
//! else:
//!     y[i] += 0.0 * x[j]
//! ```

use super::exprs::{load, source_span};
use super::partition_loops::{Facts, conjuncts, resolved};
use super::state::Lower;
use crate::access;
use rustc_hash::FxHashSet;
use taffeta_ast::{Expr, ExprKind, Op, Stmt, StmtKind, Symbol};

/// Maximum number of nested conditions that are split.
const MAX_CHOICES: usize = 6;

/// Rewriter that splits statements by the conditions of their operands.
struct Choices<'l> {
    lower: &'l mut Lower,
    /// Enclosing declarations.
    declared: Vec<Stmt>,
    /// Scalars that may derive from the fill.
    carriers: FxHashSet<Symbol>,
    /// Scalars whose declaration was replaced by one in each of two branches.
    moved: FxHashSet<Symbol>,
    /// Number of conditions decided by enclosing branches.
    depth: usize,
}

impl Lower {
    /// Replaces operands under conditions on indices by branches around their statements.
    pub(super) fn split_selects(&mut self, s: &Stmt) -> Stmt {
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
                // Scalars that are set from here on get a declaration in each branch.
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

    /// Splits a statement by a condition into the two cases.
    fn branch(&mut self, s: &Stmt, cond: &Expr) -> Stmt {
        let refusal = if s.declares_structured() {
            Some("cannot split a conditional access around the declaration of a structured tensor".to_string())
        } else {
            let expected = format!("expected at most {MAX_CHOICES} nested conditions of accesses, found more");
            (self.depth == MAX_CHOICES).then_some(expected)
        };
        if let Some(text) = refusal {
            self.lower.refuse_at(source_span(s), text);
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

    /// Returns the condition of an operand that may derive from the fill, if the case may matter.
    fn choice(&self, s: &Stmt) -> Option<Expr> {
        let stored_as_is = match s.kind() {
            StmtKind::Store { tensor, value, .. } if self.definition(tensor).is_none() => Some(value),
            _ => None,
        };
        // A store writes its value whether or not it derives from the fill, unless the target is an element of a
        // pattern.
        let target = access::target(s).filter(|e| self.may_be_fill(e));
        // A constant may leave an element of a pattern the fill.
        let leaves = |e: &Expr| match s.kind() {
            StmtKind::Store { value, .. } | StmtKind::ReduceTo { value, .. } => {
                target.is_some() && value == e && may_be_constant(e)
            }
            _ => false,
        };
        let all = access::exprs(s);
        all.iter().find_map(|e| self.choice_in(e, target.is_none() && stored_as_is == Some(e), leaves(e)))
    }

    /// Searches an expression for the condition of a `select` whose choice may decide whether a value derives from the
    /// fill. `stored_as_is`: the value is stored as it is; `beside`: the enclosing operator may have another operand
    /// that derives from the fill.
    fn choice_in(&self, e: &Expr, stored_as_is: bool, beside: bool) -> Option<Expr> {
        let may_be_fill = self.may_be_fill(e);
        if !may_be_fill && !beside {
            return None;
        }
        match e.kind() {
            ExprKind::Apply(Op::Select, args) => {
                let [cond, operands @ ..] = &args[..] else { return None };
                let counts = |e: &Expr| self.may_be_fill(e) || beside && may_be_constant(e);
                if !stored_as_is && cond.is_of_indices() && operands.iter().any(counts) {
                    return Some(cond.clone());
                }
                // A constant chosen by a fill derives from the fill.
                let inside = |e: &Expr| self.choice_in(e, stored_as_is, beside || self.may_be_fill(cond));
                self.choice_in(cond, false, false).or_else(|| operands.iter().find_map(inside))
            }
            ExprKind::Load(..) => e.children().into_iter().find_map(|e| self.choice_in(e, false, false)),
            _ => e.children().into_iter().find_map(|e| self.choice_in(e, false, may_be_fill || beside)),
        }
    }

    /// Returns whether a value is computed from an operand that may derive from the fill.
    fn may_be_fill(&self, e: &Expr) -> bool {
        e.any(&mut |e| load(e).is_some_and(|(t, _)| self.lower.fibres.contains_key(t) || self.carriers.contains(t)))
    }

    /// Returns the declaration of a scalar with a single definition.
    fn definition(&self, scalar: &Symbol) -> Option<Stmt> {
        self.lower.definition(&self.declared, scalar).cloned()
    }
}

/// Collects the scalars that a statement stores into in its own block.
pub(super) fn given_here(s: &Stmt, out: &mut Vec<Symbol>) {
    match s.kind() {
        StmtKind::Store { tensor, indices, .. } if indices.is_empty() => out.push(tensor.clone()),
        StmtKind::Seq(_) | StmtKind::VarDef { .. } => s.kind().inside().for_each(|s| given_here(s, out)),
        _ => {}
    }
}

/// Returns whether a value may be a constant; an operator on constants and fills derives from the fill.
fn may_be_constant(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Const(_) => true,
        ExprKind::Cast(inner) => may_be_constant(inner),
        ExprKind::Apply(Op::Select, args) => args[1..].iter().any(may_be_constant),
        ExprKind::Apply(_, args) => args.iter().all(may_be_constant),
        _ => false,
    }
}
