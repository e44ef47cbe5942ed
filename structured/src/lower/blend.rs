//! Elements that may or may not be stored, distinguished by expressions: a single body (`predicated_merge`) instead of
//! one for each combination of stored elements, where these are too many. Its length grows with the number of elements,
//! and each operator tests the cases in which an operand derives from the fill, as the interpreter does
//! (`taffeta_ast::algebra`).
//!
//! ```text
//! y[j] = A[j] * x[j] + B[j]          a = 0; if a_here: a = A.val[p]
//!                                    b = 0; if b_here: b = B.val[q]
//!                                    t = a * x[j] if a_here else 0
//!                                    y[j] = (t if a_here else b) …          one of both, or their sum
//! ```

use super::scalars::scalar;
use crate::access;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use taffeta_ast::algebra::{Side, annihilates, definitions, is_identity};
use taffeta_ast::stmt::MessagePart;
use taffeta_ast::{Access, DType, Expr, ExprKind, Extent, Literal, Op, Origin, Stmt, StmtKind, Symbol, Tensor, scalar};

/// Maximum number of combinations of cases of one operator's operands.
const MAX_CASES: usize = 16;

/// Expression with its value in all cases, and the cases in which the value derives from the fill.
#[derive(Clone, Debug)]
pub(super) struct Blended {
    pub(super) expr: Expr,
    /// Conditions, of which at most one holds, each with the value under it.
    pub(super) cases: Vec<(Expr, Literal)>,
}

impl Blended {
    fn plain(expr: Expr) -> Blended {
        Blended { expr, cases: Vec::new() }
    }

    /// Adds a case with this condition and value; earlier cases with another value take precedence.
    fn add(&mut self, cond: Expr, v: Literal) {
        let before = self.cases.iter().filter(|(_, w)| !same(*w, v)).map(|(c, _)| c.negate());
        let cond = before.fold(cond, |all, c| both(&all, &c));
        match self.cases.iter_mut().find(|(_, w)| same(*w, v)) {
            Some((known, _)) => *known = either(known, &cond),
            None => self.cases.push((cond, v)),
        }
    }
}

/// Written element; the write is skipped where the element is not stored.
#[derive(Clone)]
pub(super) struct BlendTarget {
    pub(super) element: Expr,
    /// Condition that the element is stored.
    pub(super) stored: Expr,
    pub(super) replacement: Expr,
}

/// Rewriter of a body in which elements are distinguished by expressions.
pub(super) struct Blend<'b> {
    /// Replacements of the elements.
    pub(super) elements: FxHashMap<Expr, Blended>,
    /// Elements that are written.
    pub(super) targets: Vec<BlendTarget>,
    /// Scalars with a single definition.
    pub(super) defined: FxHashSet<Symbol>,
    pub(super) origin: &'b Origin,
    /// Scalars, and the stores that set them before the current statement.
    scalars: Vec<Arc<Tensor>>,
    before: Vec<Stmt>,
}

impl<'b> Blend<'b> {
    pub(super) fn new(body: &Stmt, several: &FxHashSet<Symbol>, origin: &'b Origin) -> Blend<'b> {
        let mut defined = definitions(body);
        defined.retain(|scalar| !several.contains(scalar));
        let (elements, targets) = (FxHashMap::default(), Vec::new());
        Blend { elements, targets, defined, origin, scalars: Vec::new(), before: Vec::new() }
    }

    /// Rewrites the body; `None` if a part of it cannot be expressed in this way.
    pub(super) fn body(&mut self, s: &Stmt) -> Option<Stmt> {
        let around = std::mem::take(&mut self.scalars);
        let done = self.stmt(s)?;
        let own = std::mem::replace(&mut self.scalars, around);
        Some(own.into_iter().rev().fold(done, |body, tensor| self.derived(StmtKind::VarDef { tensor, body })))
    }

    fn derived(&self, kind: StmtKind) -> Stmt {
        Stmt::new(kind, self.origin.derive("structured", "case"))
    }

    fn stmt(&mut self, s: &Stmt) -> Option<Stmt> {
        if let StmtKind::Seq(all) = s.kind() {
            let all = all.iter().map(|s| self.stmt(s)).collect::<Option<Vec<Stmt>>>()?;
            return Some(Stmt::seq(all, s.origin().clone()));
        }
        let outer = std::mem::take(&mut self.before);
        let done = self.alone(s);
        let own = std::mem::replace(&mut self.before, outer);
        let done = done?;
        match own.is_empty() {
            true => Some(done),
            false => Some(Stmt::seq(own.into_iter().chain([done]), self.origin.derive("structured", "case"))),
        }
    }

    fn alone(&mut self, s: &Stmt) -> Option<Stmt> {
        let target = access::target(s).and_then(|e| self.targets.iter().find(|t| t.element == e).cloned());
        let kind = match s.kind() {
            StmtKind::Store { tensor, indices, value } => {
                let (indices, value) = (self.accesses(indices)?, self.expr(value, true)?);
                if !value.cases.is_empty() && self.defined.contains(tensor) {
                    let load = Expr::load(tensor, Vec::new(), value.expr.dtype());
                    self.elements.insert(load.clone(), Blended { expr: load, cases: value.cases });
                }
                let kind = StmtKind::Store { tensor: tensor.clone(), indices, value: value.expr };
                return Some(self.written(s, kind, target));
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let (indices, value) = (self.accesses(indices)?, self.expr(value, true)?);
                let (mut skipped, mut set) = (Expr::bool(false), Expr::bool(false));
                for (cond, v) in &value.cases {
                    if is_identity(op.info().op, Side::Right, *v) {
                        skipped = either(&skipped, cond);
                    } else if annihilates(op.info().op, Side::Right, *v) {
                        set = either(&set, cond);
                    }
                }
                let (tensor, value) = (tensor.clone(), value.expr);
                let store = StmtKind::Store { tensor: tensor.clone(), indices: indices.clone(), value: value.clone() };
                let reduced = s.with_kind(StmtKind::ReduceTo { tensor, indices, op: *op, value });
                let done = match set.as_bool() {
                    Some(false) => reduced,
                    _ => {
                        let (then, otherwise) = (self.derived(store), Some(reduced));
                        self.derived(StmtKind::If { cond: set, then, otherwise })
                    }
                };
                let done = match skipped.as_bool() {
                    Some(false) => done,
                    _ => self.derived(StmtKind::If { cond: skipped.negate(), then: done, otherwise: None }),
                };
                return Some(match target {
                    Some(target) => self.guarded(&done, &target),
                    None => done,
                });
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(cond, true)?.expr;
                let then = self.stmt(then)?;
                let otherwise = match otherwise {
                    Some(otherwise) => Some(self.stmt(otherwise)?),
                    None => None,
                };
                StmtKind::If { cond, then, otherwise }
            }
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, props, body } => {
                let [begin, end, step] = [begin, end, step].map(|e| self.expr(e, true));
                let extent = Extent::Range { begin: begin?.expr, end: end?.expr, step: step?.expr };
                StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body: self.body(body)? }
            }
            StmtKind::VarDef { tensor, body } => StmtKind::VarDef { tensor: tensor.clone(), body: self.stmt(body)? },
            StmtKind::Assert { cond, message, kind } => {
                let cond = self.expr(cond, true)?.expr;
                let part = |p: &MessagePart| match p {
                    MessagePart::Value(e) => Some(MessagePart::Value(self.expr(e, false)?.expr)),
                    MessagePart::Text(t) => Some(MessagePart::Text(t.clone())),
                };
                let message = message.iter().map(part).collect::<Option<Vec<_>>>()?;
                StmtKind::Assert { cond, message, kind: *kind }
            }
            StmtKind::Assume { .. } => return Some(s.clone()),
            _ => return None,
        };
        Some(if kind == *s.kind() { s.clone() } else { s.with_kind(kind) })
    }

    fn written(&self, s: &Stmt, kind: StmtKind, target: Option<BlendTarget>) -> Stmt {
        let done = if kind == *s.kind() { s.clone() } else { s.with_kind(kind) };
        match target {
            Some(target) => self.guarded(&done, &target),
            None => done,
        }
    }

    /// Guards a write by the condition that its element is stored.
    fn guarded(&self, s: &Stmt, target: &BlendTarget) -> Stmt {
        let then = with_targets(s, &target.replacement);
        self.derived(StmtKind::If { cond: target.stored.clone(), then, otherwise: None })
    }

    fn accesses(&mut self, all: &[Access]) -> Option<Vec<Access>> {
        all.iter().map(|a| Some(Access { index: self.expr(&a.index, true)?.expr, protocol: a.protocol })).collect()
    }

    /// Rewrites an expression; `sure`: it is evaluated unconditionally.
    fn expr(&mut self, e: &Expr, sure: bool) -> Option<Blended> {
        if let Some(known) = self.elements.get(e) {
            return Some(known.clone());
        }
        match e.kind() {
            ExprKind::Apply(Op::Select, args) => {
                let cond = self.expr(&args[0], sure)?;
                let [a, b] = [self.expr(&args[1], false)?, self.expr(&args[2], false)?];
                let known = match args[0].is_of_indices() {
                    true => Expr::bool(true),
                    false => cond.cases.iter().fold(Expr::bool(false), |all, (c, _)| either(&all, c)),
                };
                let cases = known.as_bool() != Some(false) && !(a.cases.is_empty() && b.cases.is_empty());
                let holds = if cases { self.named(&cond.expr, sure)? } else { cond.expr };
                let mut out =
                    Blended::plain(rebuilt(e, Op::Select, vec![holds.clone(), a.expr.clone(), b.expr.clone()]));
                // A constant chosen by a fill derives from the fill.
                for (c, v) in &cond.cases {
                    let chosen = if *v == Literal::Bool(true) { &a } else { &b };
                    chosen.expr.as_literal().into_iter().for_each(|v| out.add(c.clone(), v));
                }
                if cases {
                    for (chosen, of) in [(holds.clone(), &a.cases), (holds.negate(), &b.cases)] {
                        of.iter().for_each(|(c, v)| out.add(both(&both(&known, &chosen), c), *v));
                    }
                }
                self.shared(out, sure)
            }
            ExprKind::Apply(op, args) => {
                let lazy = op.is_lazy();
                let operands = args
                    .iter()
                    .enumerate()
                    .map(|(k, a)| self.expr(a, sure && !(lazy && k > 0)))
                    .collect::<Option<Vec<Blended>>>()?;
                self.operator(e, *op, &operands, sure)
            }
            ExprKind::Cast(inner) => {
                let inner = self.expr(inner, sure)?;
                let from = inner.expr.dtype();
                let of = |(c, v): &(Expr, Literal)| Some((c.clone(), scalar::cast(*v, from, e.dtype()).ok()?));
                let cases = inner.cases.iter().filter_map(of).collect();
                self.shared(Blended { expr: inner.expr.cast(e.dtype()), cases }, sure)
            }
            _ => {
                let mut all = Some(());
                let new = e.map_children(&mut |c| match self.expr(c, sure) {
                    Some(inner) => inner.expr,
                    None => {
                        all = None;
                        c.clone()
                    }
                });
                all.map(|()| Blended::plain(new))
            }
        }
    }

    /// Rewrites an operator in the cases of its operands.
    fn operator(&mut self, e: &Expr, op: Op, operands: &[Blended], sure: bool) -> Option<Blended> {
        let value = rebuilt(e, op, operands.iter().map(|o| o.expr.clone()).collect());
        let mut out = Blended::plain(value);
        if operands.iter().all(|o| o.cases.is_empty()) {
            return Some(out);
        }
        // Values in particular cases; the first case that holds decides.
        let mut instead: Vec<(Expr, Expr)> = Vec::new();
        if let [a, b] = operands {
            let sides = [(Side::Left, a, b), (Side::Right, b, a)];
            for (side, operand, _) in sides {
                for (c, v) in operand.cases.iter().filter(|(_, v)| annihilates(op, side, *v)) {
                    out.add(c.clone(), *v);
                    instead.push((c.clone(), Expr::literal(*v, operand.expr.dtype())));
                }
            }
            for (side, operand, other) in sides {
                for (c, _) in operand.cases.iter().filter(|(_, v)| is_identity(op, side, *v)) {
                    instead.push((c.clone(), other.expr.clone()));
                    other.expr.as_literal().into_iter().for_each(|v| out.add(c.clone(), v));
                    other.cases.iter().for_each(|(d, v)| out.add(both(c, d), *v));
                }
            }
        }
        // Combinations of fills and constants.
        let options = |o: &Blended| -> Vec<(Option<Expr>, Literal)> {
            let constant = o.expr.as_literal().map(|v| (None, v));
            o.cases.iter().map(|(c, v)| (Some(c.clone()), *v)).chain(constant).collect()
        };
        let mut all: Vec<Vec<(Option<Expr>, Literal)>> = vec![Vec::new()];
        for o in operands {
            let own = options(o);
            all = all.iter().flat_map(|a| own.iter().map(|one| [&a[..], std::slice::from_ref(one)].concat())).collect();
            if all.len() > MAX_CASES {
                return None;
            }
        }
        for combination in all {
            let decided = |(k, (c, v)): (usize, &(Option<Expr>, Literal))| {
                let side = if k == 0 { Side::Left } else { Side::Right };
                c.is_some() && combination.len() == 2 && (annihilates(op, side, *v) || is_identity(op, side, *v))
            };
            let values: Vec<Literal> = combination.iter().map(|(_, v)| *v).collect();
            let dtype = operands.last()?.expr.dtype();
            if combination.iter().enumerate().any(decided) {
                continue;
            }
            if let Some(cond) = combination.iter().filter_map(|(c, _)| c.clone()).reduce(|a, b| both(&a, &b))
                && let Ok(v) = scalar::apply(op, dtype, &values)
            {
                out.add(cond, v);
            }
        }
        out.expr = instead.into_iter().rev().fold(out.expr, |value, (cond, of)| {
            Expr::raw(ExprKind::Apply(Op::Select, vec![cond, of, value]), e.dtype())
        });
        self.shared(out, sure)
    }

    /// Moves the value and the conditions into scalars, since they are read several times.
    fn shared(&mut self, b: Blended, sure: bool) -> Option<Blended> {
        if b.cases.is_empty() {
            return Some(b);
        }
        let expr = self.named(&b.expr, sure)?;
        let cases = b.cases.into_iter().filter(|(c, _)| c.as_bool() != Some(false));
        let cases = cases.map(|(c, v)| Some((self.named(&c, sure)?, v))).collect::<Option<Vec<_>>>()?;
        Some(Blended { expr, cases })
    }

    /// Moves an expression into a scalar that is set before the statement; `None` if it may fail and is evaluated only
    /// under a condition.
    fn named(&mut self, e: &Expr, sure: bool) -> Option<Expr> {
        match e.kind() {
            ExprKind::Const(_) | ExprKind::Var(_) => return Some(e.clone()),
            ExprKind::Load(_, at) if at.is_empty() => return Some(e.clone()),
            _ if !sure && e.may_fail() => return None,
            _ => {}
        }
        let what = if e.dtype() == DType::Bool { "holds" } else { "value" };
        let tensor = Arc::new(Tensor { dtype: e.dtype(), ..(*scalar(what.to_string())).clone() });
        let kind = StmtKind::Store { tensor: tensor.symbol.clone(), indices: Vec::new(), value: e.clone() };
        self.before.push(self.derived(kind));
        self.scalars.push(tensor.clone());
        Some(tensor.load([]))
    }
}

/// Replaces the target of a write, wherever it stands under conditions.
fn with_targets(s: &Stmt, to: &Expr) -> Stmt {
    match s.kind() {
        StmtKind::If { .. } => s.map(&mut |s| with_targets(s, to), &mut Expr::clone),
        _ => access::with_target(s, to),
    }
}

/// Returns the conjunction of two conditions. (It does not short-circuit, which would take a branch.)
pub(super) fn both(a: &Expr, b: &Expr) -> Expr {
    match (a.as_bool(), b.as_bool()) {
        (Some(false), _) | (_, Some(true)) => a.clone(),
        (Some(true), _) | (_, Some(false)) => b.clone(),
        _ if a == b => a.clone(),
        _ => Expr::apply(Op::BitAnd, vec![a.clone(), b.clone()]),
    }
}

/// Returns the disjunction of two conditions, without short-circuiting.
pub(super) fn either(a: &Expr, b: &Expr) -> Expr {
    match (a.as_bool(), b.as_bool()) {
        (Some(true), _) | (_, Some(false)) => a.clone(),
        (Some(false), _) | (_, Some(true)) => b.clone(),
        _ if a == b => a.clone(),
        _ => Expr::apply(Op::BitOr, vec![a.clone(), b.clone()]),
    }
}

fn same(a: Literal, b: Literal) -> bool {
    match (a, b) {
        (Literal::Float(a), Literal::Float(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn rebuilt(e: &Expr, op: Op, args: Vec<Expr>) -> Expr {
    match e.kind() {
        ExprKind::Apply(_, old) if *old == args => e.clone(),
        // Raw: an expression that is constant by itself is the program's own, and is not folded here.
        _ => Expr::raw(ExprKind::Apply(op, args), e.dtype()),
    }
}
