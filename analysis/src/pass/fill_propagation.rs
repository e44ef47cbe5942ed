//! Rewriting by the algebra of fill values (looplets, section 6.1): simplifies a statement where some accesses are
//! known to be elements that are not stored.
//!
//! An expression is *of the fill* if its operands are only fill values and constants, or if a fill value annihilated
//! the rest; the rules are [`taffeta_ast::algebra`]'s, and the interpreter applies the same rules element by element. A
//! program's own constants annihilate nothing.
//!
//! ```text
//! y[i] += A[i, j] * x[j]                     where A[i, j] is 0, not stored:      pass
//! y[i] = min(y[i], A[i, j] + x[j])           where A[i, j] is inf, not stored:    pass
//! y[i] += 0.0 * x[j]                         stays
//! ```
//!
//! A scalar with a single definition in its scope ([`definitions`]) is of the fill where its value is, and a scalar
//! that no statement reads afterwards is removed with its declaration. Whether a definition is the only one depends on
//! the whole program, since the statement may have one store of several left (`several`, in [`run`]).
//!
//! A statement may be rewritten once for each of several sets of elements, and an expression that is of the fill stays
//! so: `of_fill` marks it, and [`settled`] turns it into a constant in the end.

use super::substitute;
use crate::query::effects;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::LazyLock;
use taffeta_ast::algebra::{Side, annihilates, definitions, is_identity, keeps, leaves_fill};
use taffeta_ast::stmt::{MessagePart, PrintPart};
use taffeta_ast::{Access, DType, Expr, ExprKind, Extent, Literal, Op, Stmt, StmtKind, Symbol, scalar};

/// Maximum number of elements that [`is_carried`] considers stored or not, independently of each other; with more, an
/// operand that may make a difference is assumed to make one.
const MAX_OTHERS: usize = 5;

/// Pseudo-tensor whose elements are fill values: the index is the value.
static FILL: LazyLock<Symbol> = LazyLock::new(|| Symbol::new("fill"));

/// Marks a value as of the fill.
fn of_fill(v: Literal, dtype: DType) -> Folded {
    let index = Expr::raw(ExprKind::Const(v), dtype);
    Folded { expr: Expr::load(&FILL, vec![index.into()], dtype), fill: Some(v), given: false }
}

/// Returns the value of a marked expression.
fn value_of(e: &Expr) -> Option<Literal> {
    match e.kind() {
        ExprKind::Load(t, at) if *t == *FILL => at[0].index.as_literal(),
        _ => None,
    }
}

/// Returns the element that a statement writes, as a load, so that it is inspected and rewritten like a load.
pub fn target(s: &Stmt) -> Option<Expr> {
    match s.kind() {
        StmtKind::Store { tensor, indices, value } | StmtKind::ReduceTo { tensor, indices, value, .. } => {
            Some(Expr::load(tensor, indices.clone(), value.dtype()))
        }
        _ => None,
    }
}

/// Turns marked fill values in a statement into ordinary constants, and decides whether elements are stored: all others
/// are. Questions about elements of other tensors than those that `is_located` stay, for their indices are checked.
pub fn settled(s: &Stmt, is_located: &dyn Fn(&Symbol) -> bool) -> Stmt {
    substitute::rebuild(s, &mut |e| match (value_of(&e), e.kind()) {
        // Built raw: operations on the program's own constants are not folded.
        (Some(v), _) => Expr::raw(ExprKind::Const(v), e.dtype()),
        (None, ExprKind::Apply(Op::Stored, args)) => match args[0].kind() {
            ExprKind::Load(t, _) if !is_located(t) => e,
            _ => Expr::bool(args[0].as_literal().is_none()),
        },
        (None, _) => e,
    })
}

/// Rewritten expression, and its value if the expression is of the fill.
#[derive(Clone, Debug)]
struct Folded {
    expr: Expr,
    fill: Option<Literal>,
    /// Whether the expression is of the fill only because the scalar that [`is_carried`] asks about is.
    given: bool,
}

impl Folded {
    fn plain(expr: Expr) -> Folded {
        Folded { expr, fill: None, given: false }
    }

    /// Returns this expression, marked as given if the other operand is.
    fn with(&self, other: &Folded) -> Folded {
        Folded { given: self.given || other.given, ..self.clone() }
    }

    /// Returns the value, if it is known.
    fn value(&self) -> Option<Literal> {
        self.fill.or(self.expr.as_literal())
    }

    fn as_bool(&self) -> Option<bool> {
        match self.value() {
            Some(Literal::Bool(holds)) => Some(holds),
            _ => None,
        }
    }
}

/// Rewriter of statements for a set of elements that are not stored, which `fill` maps to their values.
struct Rewriter<'f> {
    fill: &'f dyn Fn(&Expr) -> Option<Literal>,
    /// Replacement of a write to an element that is not stored, for writes that may change the element.
    outside: &'f dyn Fn(&Stmt, &Expr) -> Stmt,
    done: FxHashMap<Expr, Folded>,
    /// Scalars with a single definition each.
    defined: FxHashSet<Symbol>,
    /// Whether the fill of the scalar that [`is_carried`] asks about decided the result of another value.
    decided: bool,
}

impl<'f> Rewriter<'f> {
    fn new(fill: &'f dyn Fn(&Expr) -> Option<Literal>) -> Rewriter<'f> {
        Rewriter {
            fill,
            outside: &|s, _| s.clone(),
            done: FxHashMap::default(),
            defined: FxHashSet::default(),
            decided: false,
        }
    }
}

/// Rewrites a statement where `fill` maps some expressions to the value of elements that are not stored. Remaining
/// statements keep their ids. `around`: scalars with a single definition that are declared around the statement;
/// `several`: scalars with several definitions in the program, even if the statement has one store of them left.
pub fn run<'s>(
    s: &Stmt,
    around: impl IntoIterator<Item = &'s Symbol>,
    several: &FxHashSet<Symbol>,
    fill: &dyn Fn(&Expr) -> Option<Literal>,
    outside: &dyn Fn(&Stmt, &Expr) -> Stmt,
) -> Stmt {
    let mut rewriter = Rewriter { outside, ..Rewriter::new(fill) };
    rewriter.defined = definitions(s);
    rewriter.defined.extend(around.into_iter().cloned());
    rewriter.defined.retain(|scalar| !several.contains(scalar));
    rewriter.stmt(s)
}

/// Returns whether it matters to the statements `rest`, which read the scalar, that it is of the fill and not a plain
/// constant. `value`, the scalar's only definition, reads elements that `fill` maps to fill values. Elements that
/// `rest` reads and `fill` maps may be stored or not, independently of each other. `around` and `several`: as for
/// [`run`].
pub fn is_carried(
    (scalar, value): (&Symbol, &Expr),
    around: &[Symbol],
    several: &FxHashSet<Symbol>,
    rest: &[Stmt],
    fill: &dyn Fn(&Expr) -> Option<Literal>,
) -> bool {
    let folded = Rewriter::new(fill).expr(value);
    let Some(v) = folded.fill else { return false };
    let given = Folded { given: true, ..of_fill(v, value.dtype()) };
    let load = Expr::load(scalar, Vec::new(), value.dtype());
    let mut defined: FxHashSet<Symbol> = rest.iter().flat_map(definitions).chain(around.iter().cloned()).collect();
    defined.retain(|scalar| !several.contains(scalar));
    // Other elements that they read may be stored or not: `min(t, A[k])` is of the fill only where `A[k]` is, too.
    let others = accesses_of(rest, fill);
    if others.len() > MAX_OTHERS {
        return true;
    }
    (0..1_u32 << others.len()).any(|case| {
        let fill =
            |e: &Expr| others.iter().position(|other| other == e).filter(|k| case >> k & 1 == 1).and_then(|_| fill(e));
        let mut rewriter = Rewriter::new(&fill);
        rewriter.done.insert(load.clone(), given.clone());
        rewriter.defined.clone_from(&defined);
        rest.iter().any(|s| {
            rewriter.stmt(s);
            rewriter.decided
        })
    })
}

/// Returns the elements that statements read and that `fill` maps to fill values, at most `MAX_OTHERS + 1` of them.
fn accesses_of(all: &[Stmt], fill: &dyn Fn(&Expr) -> Option<Literal>) -> Vec<Expr> {
    let mut found = Vec::new();
    for s in all {
        s.walk_exprs(&mut |e| {
            if found.len() <= MAX_OTHERS && fill(e).is_some() && !found.contains(e) {
                found.push(e.clone());
            }
        });
    }
    found
}

impl Rewriter<'_> {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if let Some(element) = target(s)
            && let Some(fill) = (self.fill)(&element)
        {
            return self.written_outside(s, &element, fill);
        }
        let kind = match s.kind() {
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let (indices, value) = (self.accesses(indices), self.expr(value));
                match value.fill {
                    Some(v) if is_identity(op.info().op, Side::Right, v) => {
                        self.decided |= value.given;
                        return Stmt::nop();
                    }
                    Some(v) if annihilates(op.info().op, Side::Right, v) => {
                        self.decided |= value.given;
                        StmtKind::Store { tensor: tensor.clone(), indices, value: value.expr }
                    }
                    _ => StmtKind::ReduceTo { tensor: tensor.clone(), indices, op: *op, value: value.expr },
                }
            }
            StmtKind::Store { tensor, indices, value } => {
                let (indices, value) = (self.accesses(indices), self.expr(value));
                if value.fill.is_some() && self.defined.contains(tensor) {
                    let load = Expr::load(tensor, Vec::new(), value.expr.dtype());
                    self.done.insert(load, value.clone());
                }
                StmtKind::Store { tensor: tensor.clone(), indices, value: value.expr }
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(cond);
                match cond.as_bool() {
                    Some(true) => return self.stmt(then),
                    Some(false) => return otherwise.as_ref().map_or_else(Stmt::nop, |o| self.stmt(o)),
                    None => {}
                }
                let (then, otherwise) = (self.stmt(then), otherwise.as_ref().map(|o| self.stmt(o)));
                let otherwise = otherwise.filter(|o| !o.is_nop());
                if then.is_nop() && otherwise.is_none() {
                    return Stmt::nop();
                }
                StmtKind::If { cond: cond.expr, then, otherwise }
            }
            StmtKind::For { iter, extent, props, body } => {
                let body = self.stmt(body);
                if body.is_nop() {
                    return Stmt::nop();
                }
                let extent = match extent {
                    Extent::Range { begin, end, step } => {
                        let [begin, end, step] = [begin, end, step].map(|e| self.expr(e));
                        if let (Some(Literal::Int(begin)), Some(Literal::Int(end))) = (begin.value(), end.value())
                            && begin >= end
                            && step.expr.as_int().is_some_and(|by| by > 0)
                        {
                            return Stmt::nop();
                        }
                        let [begin, end, step] = [begin, end, step].map(|e| e.expr);
                        Extent::Range { begin, end, step }
                    }
                    Extent::Reals => Extent::Reals,
                };
                StmtKind::For { iter: iter.clone(), extent, props: props.clone(), body }
            }
            StmtKind::While { cond, body } => StmtKind::While { cond: self.expr(cond).expr, body: self.stmt(body) },
            StmtKind::VarDef { tensor, body } => {
                let body = self.stmt(body);
                // Structured tensors are accessed as fibres, under other names, so a search for reads would miss them.
                let named = tensor.format.is_dense() || body.is_nop();
                if named && !effects::is_read(&body, &tensor.symbol) {
                    // Tensors that only the removed writes read become dead in turn.
                    return self.stmt(&without_writes(&body, &tensor.symbol));
                }
                StmtKind::VarDef { tensor: tensor.clone(), body }
            }
            StmtKind::Seq(all) => {
                let all: Vec<Stmt> = all.iter().map(|s| self.stmt(s)).filter(|s| !s.is_nop()).collect();
                return Stmt::seq(all, s.origin().clone());
            }
            StmtKind::Assert { cond, message, kind } => {
                let cond = self.expr(cond);
                if cond.as_bool() == Some(true) {
                    return Stmt::nop();
                }
                let part = |p: &MessagePart| match p {
                    MessagePart::Value(e) => MessagePart::Value(self.expr(e).expr),
                    MessagePart::Text(t) => MessagePart::Text(t.clone()),
                };
                StmtKind::Assert { cond: cond.expr, message: message.iter().map(part).collect(), kind: *kind }
            }
            StmtKind::Print { parts } => {
                let part = |p: &PrintPart| match p {
                    PrintPart::Value(e) => PrintPart::Value(self.expr(e).expr),
                    other => other.clone(),
                };
                StmtKind::Print { parts: parts.iter().map(part).collect() }
            }
            StmtKind::Assume { .. } | StmtKind::Call { .. } => return s.clone(),
        };
        if kind == *s.kind() { s.clone() } else { s.with_kind(kind) }
    }

    /// Rewrites a write to an element that is not stored.
    fn written_outside(&mut self, s: &Stmt, element: &Expr, fill: Literal) -> Stmt {
        let (keeps, kind) = match s.kind() {
            StmtKind::Store { tensor, indices, value } => {
                let value = self.expr(value);
                let keeps = value.value() == Some(fill);
                (keeps, StmtKind::Store { tensor: tensor.clone(), indices: indices.clone(), value: value.expr })
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let value = self.expr(value);
                let keeps = leaves_fill(op.info().op, value.expr.dtype(), fill, value.value());
                let (tensor, indices) = (tensor.clone(), indices.clone());
                (keeps, StmtKind::ReduceTo { tensor, indices, op: *op, value: value.expr })
            }
            _ => unreachable!("the statement is a write"),
        };
        if keeps {
            return Stmt::nop();
        }
        let outside = self.outside;
        if kind == *s.kind() { outside(s, element) } else { outside(&s.with_kind(kind), element) }
    }

    fn accesses(&mut self, all: &[Access]) -> Vec<Access> {
        all.iter().map(|a| a.map(&mut |e| self.expr(e).expr)).collect()
    }

    /// Rewrites an expression, with operations on fill values evaluated.
    fn expr(&mut self, e: &Expr) -> Folded {
        if let Some(known) = self.done.get(e) {
            return known.clone();
        }
        let folded = self.fold(e);
        self.done.insert(e.clone(), folded.clone());
        folded
    }

    fn fold(&mut self, e: &Expr) -> Folded {
        if let Some(v) = (self.fill)(e).or_else(|| value_of(e)) {
            return of_fill(v, e.dtype());
        }
        match e.kind() {
            ExprKind::Apply(op @ Op::Select, args) => {
                let cond = self.expr(&args[0]);
                match cond.as_bool() {
                    Some(holds) => {
                        let chosen = self.expr(&args[if holds { 1 } else { 2 }]);
                        match (cond.fill, chosen.fill, chosen.expr.as_literal()) {
                            // A constant that a fill chooses is of the fill.
                            (Some(_), None, Some(v)) => Folded { given: cond.given, ..of_fill(v, e.dtype()) },
                            _ => chosen.with(&cond),
                        }
                    }
                    None => {
                        let [a, b] = [&args[1], &args[2]].map(|a| self.expr(a).expr);
                        Folded::plain(rebuilt(e, *op, vec![cond.expr, a, b]))
                    }
                }
            }
            ExprKind::Apply(op, args) => {
                let operands: Vec<Folded> = args.iter().map(|a| self.expr(a)).collect();
                self.operator(e, *op, &operands)
            }
            ExprKind::Cast(inner) => {
                let folded = self.expr(inner);
                match folded.fill.and_then(|v| scalar::cast(v, inner.dtype(), e.dtype()).ok()) {
                    Some(v) => Folded { given: folded.given, ..of_fill(v, e.dtype()) },
                    None => Folded::plain(folded.expr.cast(e.dtype())),
                }
            }
            _ => Folded::plain(e.map_children(&mut |c| self.expr(c).expr)),
        }
    }

    fn operator(&mut self, e: &Expr, op: Op, operands: &[Folded]) -> Folded {
        if let [a] = operands
            && let Some(v) = a.fill
        {
            match op {
                Op::Stored => return Folded { given: a.given, ..of_fill(Literal::Bool(false), DType::Bool) },
                _ if keeps(op, v) => return a.clone(),
                _ => {}
            }
        }
        if let [a, b] = operands {
            let sides = [(Side::Left, a, b), (Side::Right, b, a)];
            let annihilator =
                |(side, operand, _): &(_, &Folded, _)| operand.fill.is_some_and(|v| annihilates(op, *side, v));
            // Prefer an annihilator that is of the fill regardless of the scalar.
            if let Some((_, operand, _)) = sides.iter().filter(|s| annihilator(s)).min_by_key(|(_, o, _)| o.given) {
                self.decided |= operand.given;
                return (*operand).clone();
            }
            for (side, operand, other) in sides {
                if operand.fill.is_some_and(|v| is_identity(op, side, v)) {
                    // The constant is then of the fill, as results of fills and constants are.
                    if let (None, Some(v)) = (other.fill, other.expr.as_literal()) {
                        return Folded { given: operand.given, ..of_fill(v, other.expr.dtype()) };
                    }
                    self.decided |= operand.given;
                    return other.with(operand);
                }
            }
        }
        let constants: Option<Vec<Literal>> = operands.iter().map(Folded::value).collect();
        if let Some(constants) = constants
            && operands.iter().any(|o| o.fill.is_some())
            && let Some(first) = operands.last()
            && let Ok(v) = scalar::apply(op, first.expr.dtype(), &constants)
        {
            let given = operands.iter().any(|o| o.given);
            return Folded { given, ..of_fill(v, e.dtype()) };
        }
        Folded::plain(rebuilt(e, op, operands.iter().map(|o| o.expr.clone()).collect()))
    }
}

/// Removes the writes to a tensor from a statement, and the tensor from the reductions of its loops.
fn without_writes(s: &Stmt, tensor: &Symbol) -> Stmt {
    match s.kind() {
        StmtKind::Store { tensor: t, .. } | StmtKind::ReduceTo { tensor: t, .. } if t == tensor => Stmt::nop(),
        StmtKind::For { iter, extent, props, body } if props.reductions.iter().any(|r| r.tensor == *tensor) => {
            let mut props = props.clone();
            props.reductions.retain(|r| r.tensor != *tensor);
            let (iter, extent, body) = (iter.clone(), extent.clone(), without_writes(body, tensor));
            s.with_kind(StmtKind::For { iter, extent, props, body })
        }
        _ => s.map(&mut |s| without_writes(s, tensor), &mut Expr::clone),
    }
}

/// Returns an operation with these operands, or the same node if they are its own.
fn rebuilt(e: &Expr, op: Op, args: Vec<Expr>) -> Expr {
    match e.kind() {
        ExprKind::Apply(_, old) if *old == args => e.clone(),
        // Built raw: operations on the program's own constants are not folded.
        _ => Expr::raw(ExprKind::Apply(op, args), e.dtype()),
    }
}
