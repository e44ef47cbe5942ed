//! If-conversion of vectorised loops with conditional reductions or loads.
//!
//! **Does**, for each vectorised loop that reduces into scalars under conditions, or loads elements under them: every
//! value is computed in every iteration, into a local scalar that is written once; values that branches leave are
//! selected; and each scalar is reduced into once per iteration, with the neutral value where the program does not
//! reduce. Conditional stores stay conditional. Compilers turn branches into masks, and some make wrong ones: gcc
//! before 12.4, where one scalar is reduced in several branches and values are wider than the compared operands.
//!
//! **Requires**: `checks` and `hoist_simd_checks` (nothing in the loop can fail where the program executes it),
//! `reductions` (scalars shared by iterations are partial results, which start from the neutral value). **Ensures**:
//! equal values, except that several terms of a sum in one iteration are added up first; all loads are in bounds.
//!
//! ```text
//! for i in range(n):  # vectorize, partial(s +)       for i in range(n):  # vectorize, partial(s +)
//!     if a[i] > 0.0:                                      holds = a[i] > 0.0
//!         if b[i] > 0.0:                                  b_1 = b[i]
//!             s += x[i]                          →        holds_2 = b_1 > 0.0
//!         else:                                           x_1 = x[i]
//!             s += 1.0                                    s_1 = select(holds_2, x_1, 1.0)
//!                                                         s_2 = select(holds, s_1, -0.0)
//!                                                         s += s_2
//! ```
//!
//! Where its condition does not hold, an index that is not proved in range is replaced by 0, a divisor by 1, and a
//! float cast to an integer by 0. Where a tensor may be empty, the loop is vectorised if the tensor has an element, and
//! otherwise runs as written, in order:
//!
//! ```text
//! for i in range(n):  # vectorize             if 0 < m:
//!     if c[i]:                                    for i in range(n):  # vectorize
//!         s += x[k[i]]                                holds = c[i]
//!                                        →            k_1 = k[i]
//!                                                     x_1 = x[select(holds, k_1, 0)]
//!                                                     s_1 = select(holds, x_1, -0.0)
//!                                                     s += s_1
//!                                             else:
//!                                                 for i in range(n):
//!                                                     …
//! ```
//!
//! **Leaves alone**: loops without reductions into scalars, whose masked loads and stores compilers get right, and
//! loops whose bodies C cannot vectorise (`parallel` refuses them). A loop loses its vectorisation if it conditionally
//! loads `bool`s from a tensor that may be uninitialised (a byte that is neither 0 nor 1 is no valid value), or loads
//! from a tensor that may be empty and whose size is read from memory.

use super::reductions::neutral;
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;
use taffeta_analysis::pass::substitute;
use taffeta_analysis::query::{Context, effects, walk};
use taffeta_ast::expr::Access;
use taffeta_ast::stmt::{LoopProps, Role};
use taffeta_ast::{
    DType, Expr, ExprKind, Extent, Func, Literal, Op, Origin, ReduceOp, Sharing, Stmt, StmtId, StmtKind, Symbol, Tensor,
};

/// A program whose vectorised loops reduce and load unconditionally.
pub(super) struct IfConverted {
    pub func: Func,
    /// Loops that lost their vectorisation, each with the reason.
    pub in_order: InOrder,
}

/// Reason for each loop that lost its vectorisation.
pub(super) type InOrder = FxHashMap<StmtId, &'static str>;

pub(super) fn run(func: &Func) -> IfConverted {
    let tensors = func.interface().map(|t| (t.symbol.clone(), t.clone())).collect();
    let written = func.params.iter().map(|p| p.tensor.symbol.clone()).collect();
    let mut pass = Pass { tensors, written, in_order: FxHashMap::default() };
    let body = pass.stmt(&func.body, &mut Context::new(func));
    IfConverted { func: func.with_body(body), in_order: pass.in_order }
}

struct Pass {
    in_order: InOrder,
    tensors: FxHashMap<Symbol, Arc<Tensor>>,
    /// Tensors initialised by callers.
    written: FxHashSet<Symbol>,
}

impl Pass {
    fn stmt(&mut self, s: &Stmt, facts: &mut Context) -> Stmt {
        if let StmtKind::VarDef { tensor, .. } = s.kind() {
            self.tensors.insert(tensor.symbol.clone(), tensor.clone());
        }
        if let StmtKind::For { iter, extent, props, body } = s.kind()
            && props.vectorize.is_some()
            && is_conditional(body, props)
        {
            let new = self.straight(s, (iter, extent, props, body), facts);
            facts.after(s);
            return new;
        }
        let new = walk::map(s, facts, &mut |s, facts| self.stmt(s, facts));
        facts.after(s);
        new
    }

    /// If-converts a loop, or makes it run in order where that is impossible.
    fn straight(
        &mut self,
        s: &Stmt,
        (iter, extent, props, body): (&Symbol, &Extent, &LoopProps, &Stmt),
        facts: &mut Context,
    ) -> Stmt {
        let new = iter.fresh();
        let mut lanes = Lanes {
            pass: &*self,
            facts,
            iter: (iter, Expr::var(&new)),
            sums: sums(props).collect(),
            declared: Vec::new(),
            at_hand: Vec::new(),
            non_empty: Vec::new(),
            made: Vec::new(),
            origin: s.origin().clone(),
        };
        let mark = lanes.facts.mark();
        lanes.facts.enter_loop(iter, extent, body);
        let mut state = State::default();
        let done = lanes.stmt(body, &mut state, None);
        lanes.facts.pop(mark);
        match done {
            Ok(()) => {
                lanes.reduce(state);
                let (non_empty, body) = (std::mem::take(&mut lanes.non_empty), lanes.finish());
                let kind = StmtKind::For { iter: new, extent: extent.clone(), props: props.clone(), body };
                let on_lanes = s.with_kind(kind);
                let Some(cond) = non_empty.into_iter().reduce(|a, b| a.and(&b)) else { return on_lanes };
                let origin = s.origin().derive("conditions", "lanes");
                let otherwise = Some(Stmt::new(in_order(s).kind().clone(), origin.clone()));
                Stmt::new(StmtKind::If { cond, then: on_lanes, otherwise }, origin)
            }
            Err(NotConvertible(why)) => {
                self.in_order.insert(s.id(), why);
                in_order(s)
            }
        }
    }
}

/// Reason for which a loop cannot be if-converted.
struct NotConvertible(&'static str);

/// Returns the scalars into which iterations reduce with partial results of their own.
fn sums(props: &LoopProps) -> impl Iterator<Item = (Symbol, ReduceOp)> + '_ {
    props.reductions.iter().filter(|r| r.sharing == Sharing::Partial).map(|r| (r.tensor.clone(), r.op))
}

/// Removes the loop's vectorisation.
fn in_order(s: &Stmt) -> Stmt {
    let StmtKind::For { iter, extent, props, body } = s.kind() else { return s.clone() };
    let mut props = LoopProps { vectorize: None, ..props.clone() };
    if !props.is_concurrent() {
        props.reductions.clear();
    }
    s.with_kind(StmtKind::For { iter: iter.clone(), extent: extent.clone(), props, body: body.clone() })
}

// ---- which loops

/// Returns whether a loop reduces into scalars and has conditional reductions or loads.
fn is_conditional(body: &Stmt, props: &LoopProps) -> bool {
    let mut seen = Seen { sums: sums(props).map(|(t, _)| t).collect(), ..Seen::default() };
    seen.stmt(body, false);
    seen.plain && seen.reduces && (seen.under_condition || !seen.conditional.is_subset(&seen.always))
}

/// Summary of the statements of one iteration.
struct Seen {
    sums: FxHashSet<Symbol>,
    plain: bool,
    reduces: bool,
    /// Whether a reduction into a scalar is under a condition.
    under_condition: bool,
    /// Elements loaded unconditionally, and under conditions.
    always: FxHashSet<Expr>,
    conditional: FxHashSet<Expr>,
}

impl Default for Seen {
    fn default() -> Seen {
        let (sums, always, conditional) = Default::default();
        Seen { sums, plain: true, reduces: false, under_condition: false, always, conditional }
    }
}

impl Seen {
    fn stmt(&mut self, s: &Stmt, conditional: bool) {
        // Assumptions are not evaluated, so they load nothing.
        if let StmtKind::Assume { .. } = s.kind() {
            return;
        }
        s.kind().exprs().into_iter().for_each(|e| self.expr(e, conditional));
        match s.kind() {
            StmtKind::If { then, otherwise, .. } => {
                self.stmt(then, true);
                otherwise.iter().for_each(|o| self.stmt(o, true));
            }
            StmtKind::VarDef { tensor, body } => {
                self.plain &= tensor.ndim() == 0;
                self.stmt(body, conditional);
            }
            StmtKind::Seq(all) => all.iter().for_each(|s| self.stmt(s, conditional)),
            StmtKind::ReduceTo { tensor, indices, .. } if indices.is_empty() && self.sums.contains(tensor) => {
                self.reduces = true;
                self.under_condition |= conditional;
            }
            StmtKind::Store { .. } | StmtKind::ReduceTo { .. } => {}
            _ => self.plain = false,
        }
    }

    fn expr(&mut self, e: &Expr, conditional: bool) {
        match e.kind() {
            ExprKind::Load(_, indices) if !indices.is_empty() => {
                let loaded = if conditional { &mut self.conditional } else { &mut self.always };
                loaded.insert(e.clone());
            }
            ExprKind::Apply(op, args) if op.is_lazy() => {
                let (first, rest) = args.split_first().unwrap_or_else(|| unreachable!("`{op:?}` without operands"));
                self.expr(first, conditional);
                return rest.iter().for_each(|e| self.expr(e, true));
            }
            _ => {}
        }
        e.children().into_iter().for_each(|e| self.expr(e, conditional));
    }
}

// ---- straight code

/// State of if-converting one loop body.
struct Lanes<'p, 'f> {
    pass: &'p Pass,
    /// Facts of the original loop that hold in every iteration, whatever its conditions.
    facts: &'f mut Context,
    /// Iterator, and its replacement.
    iter: (&'p Symbol, Expr),
    sums: FxHashSet<(Symbol, ReduceOp)>,
    /// Local scalars of the body, in order.
    declared: Vec<Symbol>,
    /// Elements already loaded under conditions, with the scalars that hold them.
    at_hand: Vec<(Expr, Expr)>,
    /// Conditions (`0 < size`) under which index 0, substituted for one out of range, is in range.
    non_empty: Vec<Expr>,
    made: Vec<Made>,
    /// Origin of new statements.
    origin: Origin,
}

enum Made {
    /// A scalar that is written once.
    Value(Arc<Tensor>, Expr, Origin),
    Stmt(Stmt),
}

/// Values at one point of the body.
#[derive(Clone, Default)]
struct State {
    /// Values of local scalars.
    locals: FxHashMap<Symbol, Expr>,
    /// Terms reduced into scalars since the last branch began.
    sums: IndexMap<(Symbol, ReduceOp), Expr, FxBuildHasher>,
}

impl Lanes<'_, '_> {
    fn stmt(&mut self, s: &Stmt, state: &mut State, under: Option<&Expr>) -> Result<(), NotConvertible> {
        let around = std::mem::replace(&mut self.origin, s.origin().clone());
        match s.kind() {
            StmtKind::Seq(all) => all.iter().try_for_each(|s| self.stmt(s, state, under))?,
            StmtKind::VarDef { tensor, body } => {
                self.declared.push(tensor.symbol.clone());
                let mark = self.facts.mark();
                self.facts.declare(tensor);
                self.stmt(body, state, under)?;
                self.facts.pop(mark);
            }
            StmtKind::If { cond, then, otherwise } => {
                self.branch(cond, [Some(then), otherwise.as_ref()], state, under)?;
                self.facts.after(s);
            }
            // Assumptions under a condition have served their proofs before this pass.
            StmtKind::Assume { cond } => {
                if under.is_none() {
                    let assume = StmtKind::Assume { cond: self.assumed(cond, state) };
                    self.made.push(Made::Stmt(Stmt::new(assume, s.origin().clone())));
                    self.facts.after(s);
                }
            }
            StmtKind::Store { tensor, indices, value } => {
                self.write(s, (tensor, &indices[..], None, value), state, under)?
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                self.write(s, (tensor, &indices[..], Some(*op), value), state, under)?;
            }
            _ => return Err(NotConvertible("its body has other statements")),
        }
        self.origin = around;
        Ok(())
    }

    /// Converts a store, or a reduction by an operator.
    fn write(
        &mut self,
        s: &Stmt,
        (tensor, indices, op, value): (&Symbol, &[Access], Option<ReduceOp>, &Expr),
        state: &mut State,
        under: Option<&Expr>,
    ) -> Result<(), NotConvertible> {
        let has_value = !self.facts.may_stop(value);
        let new = self.value(value, state, under)?;
        let is_sum = op.is_some_and(|op| indices.is_empty() && self.sums.contains(&(tensor.clone(), op)));
        if let Some(op) = op.filter(|_| is_sum) {
            let new = self.held(tensor, new);
            let key = (tensor.clone(), op);
            let all = match state.sums.get(&key) {
                Some(before) => self.held(tensor, combined(op, before, &new)),
                None => new,
            };
            state.sums.insert(key, all);
        } else if indices.is_empty() {
            if !self.declared.contains(tensor) {
                return Err(NotConvertible("several iterations write one scalar"));
            }
            let new = match (op, state.locals.get(tensor)) {
                (Some(op), Some(before)) => combined(op, before, &new),
                (Some(_), None) => return Err(NotConvertible("a scalar may be read before it is set")),
                (None, _) => new,
            };
            let new = self.held(tensor, new);
            state.locals.insert(tensor.clone(), new);
        } else {
            let at = self.indices(indices, state, under)?;
            let (tensor, indices) = (tensor.clone(), at);
            let value = if under.is_some() { self.held(&tensor, new) } else { new };
            self.at_hand.retain(|(loaded, _)| !effects::loads(loaded).contains(&tensor));
            // A statement with an id of its own, since the original loop may be kept beside this one.
            let write = match op {
                Some(op) => StmtKind::ReduceTo { tensor, indices, op, value },
                None => StmtKind::Store { tensor, indices, value },
            };
            let write = Stmt::new(write, s.origin().clone());
            self.made.push(Made::Stmt(match under {
                Some(cond) => {
                    let kind = StmtKind::If { cond: cond.clone(), then: write, otherwise: None };
                    Stmt::new(kind, s.origin().derive("conditions", "store"))
                }
                None => write,
            }));
        }
        // Where evaluation could fail, the new value may be a substitute, so the store must not become a fact.
        if has_value {
            self.facts.after(s);
        } else {
            self.facts.wrote([tensor]);
        }
        Ok(())
    }

    /// Converts both branches one after the other, and selects the values that they leave.
    fn branch(
        &mut self,
        cond: &Expr,
        branches: [Option<&Stmt>; 2],
        state: &mut State,
        under: Option<&Expr>,
    ) -> Result<(), NotConvertible> {
        let cond = self.value(cond, state, under)?;
        let cond = self.held(&Symbol::new("holds"), cond);
        let both = [cond.clone(), cond.negate()];
        let mut left = Vec::new();
        for (branch, own) in branches.into_iter().zip(&both) {
            let mut inside = State { locals: state.locals.clone(), ..State::default() };
            let all = under.map_or(own.clone(), |under| both_hold(under, own));
            let mark = self.facts.mark();
            if let Some(branch) = branch {
                self.stmt(branch, &mut inside, Some(&all))?;
            }
            self.facts.pop(mark);
            left.push(inside);
        }
        let [then, otherwise] = [&left[0], &left[1]];
        for local in self.declared.clone() {
            let value = match (then.locals.get(&local), otherwise.locals.get(&local)) {
                (Some(a), Some(b)) if a != b => self.held(&local, cond.select(a, b)),
                (Some(value), _) | (None, Some(value)) => value.clone(),
                (None, None) => continue,
            };
            state.locals.insert(local, value);
        }
        let new = otherwise.sums.keys().filter(|k| !then.sums.contains_key(*k));
        let keys: Vec<_> = then.sums.keys().chain(new).cloned().collect();
        for key in keys {
            let dtype = then.sums.get(&key).or(otherwise.sums.get(&key)).map_or(DType::F64, Expr::dtype);
            let of =
                |s: &State| s.sums.get(&key).cloned().unwrap_or_else(|| Expr::literal(neutral(key.1, dtype), dtype));
            let selected = self.held(&key.0, chosen(&cond, of(then), of(otherwise)));
            let all = match state.sums.get(&key) {
                Some(before) => self.held(&key.0, combined(key.1, before, &selected)),
                None => selected,
            };
            state.sums.insert(key, all);
        }
        Ok(())
    }

    /// Reduces into every scalar, once.
    fn reduce(&mut self, state: State) {
        for ((tensor, op), value) in state.sums {
            let kind = StmtKind::ReduceTo { tensor, indices: Vec::new(), op, value };
            let origin = self.origin.derive("conditions", "reduction");
            self.made.push(Made::Stmt(Stmt::new(kind, origin)));
        }
    }

    /// Nests the statements into the scopes of the scalars before them.
    fn finish(self) -> Stmt {
        let mut block: VecDeque<Stmt> = VecDeque::new();
        for made in self.made.into_iter().rev() {
            match made {
                Made::Stmt(s) => block.push_front(s),
                Made::Value(tensor, value, origin) => {
                    let store = StmtKind::Store { tensor: tensor.symbol.clone(), indices: Vec::new(), value };
                    let origin = origin.derive("conditions", "value");
                    block.push_front(Stmt::new(store, origin.clone()));
                    let body = Stmt::seq(block.drain(..), origin.clone());
                    block.push_front(Stmt::new(StmtKind::VarDef { tensor, body }, origin));
                }
            }
        }
        Stmt::seq(block, self.origin)
    }

    /// Stores a value in a new scalar that is never overwritten, unless it is a constant or such a scalar.
    fn held(&mut self, name: &Symbol, value: Expr) -> Expr {
        let is_held = match value.kind() {
            ExprKind::Const(_) => true,
            ExprKind::Load(t, _) => self.made.iter().any(|m| matches!(m, Made::Value(made, ..) if made.symbol == *t)),
            _ => false,
        };
        if is_held {
            return value;
        }
        let tensor = Tensor::dense(Symbol::new(name.name()), value.dtype(), Vec::new(), Role::Local);
        let load = tensor.load([]);
        self.made.push(Made::Value(Arc::new(tensor), value, self.origin.clone()));
        load
    }

    fn indices(
        &mut self,
        indices: &[Access],
        state: &State,
        under: Option<&Expr>,
    ) -> Result<Vec<Access>, NotConvertible> {
        indices.iter().map(|a| Ok(Access { index: self.value(&a.index, state, under)?, ..a.clone() })).collect()
    }

    /// Rewrites a value for unconditional evaluation, in place of evaluation `under` conditions.
    fn value(&mut self, e: &Expr, state: &State, under: Option<&Expr>) -> Result<Expr, NotConvertible> {
        match e.kind() {
            ExprKind::Const(_) => Ok(e.clone()),
            ExprKind::Var(v) if v == self.iter.0 => Ok(self.iter.1.clone()),
            ExprKind::Var(_) => Ok(e.clone()),
            ExprKind::Load(t, at) if at.is_empty() && self.declared.contains(t) => {
                state.locals.get(t).cloned().ok_or(NotConvertible("a scalar may be read before it is set"))
            }
            ExprKind::Load(t, at) => match under {
                Some(under) if !at.is_empty() => self.element(e, (t, &at[..]), state, under),
                _ => Ok(Expr::load(t, self.indices(at, state, under)?, e.dtype())),
            },
            ExprKind::Cast(inner) => {
                let new = self.value(inner, state, under)?;
                let narrows = inner.dtype().is_float() && e.dtype().is_int();
                let new = match under.filter(|_| narrows) {
                    Some(under) => chosen(under, new, Expr::literal(Literal::Float(0.0), inner.dtype())),
                    None => new,
                };
                Ok(Expr::raw(ExprKind::Cast(new), e.dtype()))
            }
            ExprKind::Apply(op, args) if op.is_lazy() => self.lazy(e, (*op, &args[..]), state, under),
            ExprKind::Apply(op, args) => {
                let mut new = Vec::new();
                for a in args {
                    new.push(self.value(a, state, under)?);
                }
                let fails = op.info().may_fail_on_int && e.dtype().is_int() && self.facts.may_stop(e);
                if let (Some(under), true, [_, by]) = (under, fails, new.as_mut_slice()) {
                    *by = chosen(under, by.clone(), Expr::literal(Literal::Int(1), by.dtype()));
                }
                Ok(Expr::raw(ExprKind::Apply(*op, new), e.dtype()))
            }
            ExprKind::Measure(..) => Err(NotConvertible("it contains a measure over the reals")),
        }
    }

    /// Rewrites an assumption in terms of the new iterator and the scalars' values.
    fn assumed(&self, cond: &Expr, state: &State) -> Expr {
        let value = &mut |e: &Expr| match e.kind() {
            ExprKind::Var(v) if v == self.iter.0 => Some(self.iter.1.clone()),
            ExprKind::Load(t, at) if at.is_empty() => state.locals.get(t).cloned(),
            _ => None,
        };
        substitute::rewrite_expr(cond, value, &mut FxHashMap::default())
    }

    /// Converts a short-circuit operator or `select`, which evaluates only the operands needed.
    fn lazy(
        &mut self,
        e: &Expr,
        (op, args): (Op, &[Expr]),
        state: &State,
        under: Option<&Expr>,
    ) -> Result<Expr, NotConvertible> {
        let mut first = self.value(&args[0], state, under)?;
        let mut reads = |e: &Expr| matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty());
        if args[1..].iter().any(|e| e.any(&mut reads)) || args[1..].iter().any(Expr::may_fail) {
            first = self.held(&Symbol::new("holds"), first);
        }
        let mut new = vec![first.clone()];
        for (k, operand) in args[1..].iter().enumerate() {
            let own = if op == Op::Or || k == 1 { first.negate() } else { first.clone() };
            let all = under.map_or(own.clone(), |under| both_hold(under, &own));
            new.push(self.value(operand, state, Some(&all))?);
        }
        Ok(Expr::raw(ExprKind::Apply(op, new), e.dtype()))
    }

    /// Loads an element unconditionally; where the condition does not hold, some other valid element may be loaded.
    fn element(
        &mut self,
        e: &Expr,
        (tensor, at): (&Symbol, &[Access]),
        state: &State,
        under: &Expr,
    ) -> Result<Expr, NotConvertible> {
        if e.dtype() == DType::Bool && !self.pass.written.contains(tensor) {
            return Err(NotConvertible("a `bool` that is loaded under a condition may be uninitialised"));
        }
        let mut new = self.indices(at, state, Some(under))?;
        for (k, (old, new)) in at.iter().zip(&mut new).enumerate() {
            if self.facts.may_stop(&old.index) || !self.facts.in_range(tensor, k, &old.index) {
                self.must_have_element(tensor, k)?;
                let first = Expr::literal(Literal::Int(0), new.index.dtype());
                new.index = chosen(under, new.index.clone(), first);
            }
        }
        let load = Expr::load(tensor, new, e.dtype());
        if let Some((_, held)) = self.at_hand.iter().find(|(loaded, _)| *loaded == load) {
            return Ok(held.clone());
        }
        let held = self.held(tensor, load.clone());
        self.at_hand.push((load, held.clone()));
        Ok(held)
    }

    /// Ensures that index 0 is in range, by proof or by a run-time condition of the loop.
    fn must_have_element(&mut self, tensor: &Symbol, k: usize) -> Result<(), NotConvertible> {
        if self.facts.in_range(tensor, k, &Expr::int(0)) {
            return Ok(());
        }
        let size = self.pass.tensors.get(tensor).and_then(|t| t.shape.get(k));
        let size = size.filter(|size| effects::loads(size).is_empty());
        let cond = Expr::int(0).less(size.ok_or(NotConvertible("the size of a tensor is read from memory"))?);
        if !self.non_empty.contains(&cond) {
            self.non_empty.push(cond);
        }
        Ok(())
    }
}

fn combined(op: ReduceOp, a: &Expr, b: &Expr) -> Expr {
    Expr::raw(ExprKind::Apply(op.info().op, vec![a.clone(), b.clone()]), a.dtype())
}

fn both_hold(a: &Expr, b: &Expr) -> Expr {
    Expr::apply(Op::BitAnd, vec![a.clone(), b.clone()])
}

fn chosen(cond: &Expr, a: Expr, b: Expr) -> Expr {
    let dtype = a.dtype();
    Expr::raw(ExprKind::Apply(Op::Select, vec![cond.clone(), a, b]), dtype)
}
