//! Memory accesses of every statement instance of a run: the oracle of the dependence analysis.
//!
//! This slow evaluator shares only the scalar operators with the interpreter, so that their bugs are independent.
//! Unwritten elements read as 0: the trace records accesses, whether or not they make sense.

use crate::expr::{Access, Expr, ExprKind};
use crate::func::Func;
use crate::interp::Inputs;
use crate::literal::Literal;
use crate::op::{Op, ReduceOp};
use crate::scalar;
use crate::stmt::{Extent, Stmt, StmtId, StmtKind, Tensor};
use crate::symbol::Symbol;
use std::collections::HashMap;
use std::rc::Rc;

/// Kind of access to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Touch {
    /// Load.
    Read,
    /// Store.
    Write,
    /// Update by a reduction.
    Reduce(ReduceOp),
}

/// Iteration of one of an instance's enclosing loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Iteration {
    /// Loop.
    pub stmt: StmtId,
    /// Number of earlier iterations in this execution of the loop.
    pub number: i64,
    /// Value of the iterator; for a `while`, the number.
    pub value: i64,
    /// Step of the iterator.
    pub step: i64,
}

/// One execution of a statement; of a branch or loop, the evaluation of its condition or bounds.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Statement.
    pub stmt: StmtId,
    /// Enclosing loops, outermost first. The condition of a `while` belongs to that loop.
    pub loops: Vec<Iteration>,
}

/// One access to one element.
#[derive(Clone, Debug)]
pub struct Event {
    /// Instance that makes the access.
    pub instance: Rc<Instance>,
    /// Number of earlier instances.
    pub time: usize,
    /// Tensor.
    pub tensor: Symbol,
    /// Number of the tensor's allocation, counted over the whole run.
    pub allocation: usize,
    /// Indices of the element.
    pub element: Vec<i64>,
    /// Kind of access.
    pub touch: Touch,
    /// Index expressions.
    pub indices: Rc<Vec<Expr>>,
}

/// Trace of a run.
#[derive(Debug, Default)]
pub struct Trace {
    /// All accesses, in order.
    pub events: Vec<Event>,
    /// Whether the program ran to its end.
    pub finished: bool,
    /// Number of statements skipped because evaluation failed.
    pub skipped: usize,
}

/// Effect of a statement whose evaluation fails: an index out of range, a division by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fault {
    /// The program stops, as the language defines.
    #[default]
    Stops,
    /// The statement is skipped and the program continues, as if guarded by a condition: more of it runs.
    Skips,
}

/// Traces a run, up to a number of events.
pub fn trace(func: &Func, inputs: &Inputs, fault: Fault, most: usize) -> Trace {
    let mut machine = Machine { fault, most, ..Machine::default() };
    for s in &func.sizes {
        machine.vars.insert(s.clone(), inputs.sizes.get(s.name()).copied().unwrap_or(0));
    }
    for (p, v) in func.params.iter().zip(&inputs.params) {
        let data = (0..v.data().len()).map(|i| v.data().get(i)).collect();
        let shape = v.shape().iter().map(|n| *n as i64).collect();
        machine.bind(&p.tensor, shape, data);
    }
    let results = func.results.iter().all(|t| machine.allocate(t).is_some());
    machine.out.finished = results && machine.run(&func.body).is_some();
    machine.out
}

/// Returns the shape of a parameter; dimensions without a value are empty.
pub(super) fn shape(func: &Func, inputs: &Inputs, t: &Tensor) -> Vec<usize> {
    let mut machine = Machine::default();
    for s in &func.sizes {
        machine.vars.insert(s.clone(), inputs.sizes.get(s.name()).copied().unwrap_or(0));
    }
    let size = |e: &Expr| machine.int(e, &mut Vec::new()).and_then(|d| usize::try_from(d).ok()).unwrap_or(0);
    t.shape.iter().map(size).collect()
}

struct Cell {
    shape: Vec<i64>,
    data: Vec<Literal>,
    allocation: usize,
}

#[derive(Default)]
struct Machine {
    fault: Fault,
    most: usize,
    vars: HashMap<Symbol, i64>,
    cells: HashMap<Symbol, Cell>,
    allocations: usize,
    loops: Vec<Iteration>,
    instances: usize,
    out: Trace,
}

/// Accesses of a statement, collected until its evaluation has succeeded.
type Touched = Vec<(Symbol, Vec<i64>, Touch, Rc<Vec<Expr>>)>;

impl Machine {
    fn bind(&mut self, t: &Tensor, shape: Vec<i64>, data: Vec<Literal>) {
        self.allocations += 1;
        self.cells.insert(t.symbol.clone(), Cell { shape, data, allocation: self.allocations });
    }

    /// Allocates a tensor; `None` where its shape has no value.
    fn allocate(&mut self, t: &Tensor) -> Option<Touched> {
        let mut touched = Vec::new();
        let mut shape = Vec::new();
        for d in &t.shape {
            let d = self.int(d, &mut touched)?;
            shape.push(Some(d).filter(|d| (0..1000).contains(d))?);
        }
        let zero = Expr::literal(Literal::Int(0), t.dtype).as_literal()?;
        let len = shape.iter().product::<i64>() as usize;
        self.bind(t, shape, vec![zero; len]);
        Some(touched)
    }

    /// Records an instance of a statement with its accesses (`None`: evaluation failed). Returns whether the instance
    /// was executed; `None` stops the run.
    fn executed(&mut self, s: &Stmt, touched: Option<Touched>) -> Option<bool> {
        let time = self.instances;
        self.instances += 1;
        let Some(touched) = touched else {
            self.out.skipped += 1;
            let asserts = matches!(s.kind(), StmtKind::Assert { .. } | StmtKind::Assume { .. });
            return (self.fault == Fault::Skips && !asserts).then_some(false);
        };
        let instance = Rc::new(Instance { stmt: s.id(), loops: self.loops.clone() });
        for (tensor, element, touch, indices) in touched {
            let allocation = self.cells.get(&tensor)?.allocation;
            let instance = instance.clone();
            self.out.events.push(Event { instance, time, tensor, allocation, element, touch, indices });
        }
        (self.out.events.len() < self.most).then_some(true)
    }

    /// Runs a statement; `None` where the program stops.
    fn run(&mut self, s: &Stmt) -> Option<()> {
        let mut touched = Vec::new();
        match s.kind() {
            StmtKind::Seq(v) => v.iter().try_for_each(|s| self.run(s))?,
            StmtKind::VarDef { tensor, body } => {
                // The shape's loads precede the tensor's allocation.
                let made = self.allocate(tensor);
                if self.executed(s, made)? {
                    self.run(body)?;
                }
            }
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. } => {
                let bounds: Option<Vec<i64>> =
                    [begin, end, step].into_iter().map(|e| self.int(e, &mut touched)).collect();
                let bounds = bounds.filter(|b| b[2] != 0);
                if self.executed(s, bounds.as_ref().map(|_| touched))? {
                    let bounds = bounds?;
                    self.repeat(s.id(), iter, [bounds[0], bounds[1], bounds[2]], body)?;
                }
            }
            StmtKind::While { cond, body } => {
                for number in 0.. {
                    self.loops.push(Iteration { stmt: s.id(), number, value: number, step: 1 });
                    let mut touched = Vec::new();
                    let holds = self.truth(cond, &mut touched);
                    let go_on = self.executed(s, holds.map(|_| touched))? && holds == Some(true);
                    if go_on {
                        self.run(body)?;
                    }
                    self.loops.pop();
                    if !go_on {
                        break;
                    }
                }
            }
            StmtKind::If { cond, then, otherwise } => {
                let holds = self.truth(cond, &mut touched);
                if self.executed(s, holds.map(|_| touched))? {
                    match (holds, otherwise) {
                        (Some(true), _) => self.run(then)?,
                        (_, Some(o)) => self.run(o)?,
                        _ => {}
                    }
                }
            }
            StmtKind::Store { tensor, indices, value } => {
                let done = self.assign(tensor, indices, None, value, &mut touched);
                self.executed(s, done.map(|()| touched))?;
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let done = self.assign(tensor, indices, Some(*op), value, &mut touched);
                self.executed(s, done.map(|()| touched))?;
            }
            StmtKind::Assert { cond, .. } | StmtKind::Assume { cond } => {
                let holds = self.truth(cond, &mut touched);
                self.executed(s, holds.map(|_| touched))?;
                holds.filter(|h| *h)?;
            }
            StmtKind::Print { .. } => {
                // A print of a tensor reads elements without load expressions, which this evaluator does not trace.
                if !s.kind().printed().is_empty() {
                    return None;
                }
                let read: Option<Vec<_>> = s.kind().exprs().into_iter().map(|e| self.eval(e, &mut touched)).collect();
                self.executed(s, read.map(|_| touched))?;
            }
            StmtKind::For { .. } | StmtKind::Call { .. } => return None,
        }
        Some(())
    }

    fn repeat(&mut self, stmt: StmtId, iter: &Symbol, [begin, end, step]: [i64; 3], body: &Stmt) -> Option<()> {
        let (mut i, mut number) = (begin, 0);
        while if step > 0 { i < end } else { i > end } {
            self.vars.insert(iter.clone(), i);
            self.loops.push(Iteration { stmt, number, value: i, step });
            self.run(body)?;
            self.loops.pop();
            number += 1;
            let Some(next) = i.checked_add(step) else { break };
            i = next;
        }
        Some(())
    }

    fn assign(
        &mut self,
        tensor: &Symbol,
        indices: &[Access],
        op: Option<ReduceOp>,
        value: &Expr,
        touched: &mut Touched,
    ) -> Option<()> {
        let (offset, element, exprs) = self.element(tensor, indices, touched)?;
        let mut value_now = self.eval(value, touched)?;
        let cell = self.cells.get_mut(tensor)?;
        if let Some(op) = op {
            value_now = scalar::apply(op.info().op, value.dtype(), &[cell.data[offset], value_now]).ok()?;
        }
        cell.data[offset] = value_now;
        touched.push((tensor.clone(), element, op.map_or(Touch::Write, Touch::Reduce), exprs));
        Some(())
    }

    fn element(
        &self,
        tensor: &Symbol,
        indices: &[Access],
        touched: &mut Touched,
    ) -> Option<(usize, Vec<i64>, Rc<Vec<Expr>>)> {
        let cell = self.cells.get(tensor)?;
        let (mut offset, mut element) = (0, Vec::new());
        for (a, size) in indices.iter().zip(&cell.shape) {
            let index = Some(self.int(&a.index, touched)?).filter(|i| (0..*size).contains(i))?;
            offset = offset * size + index;
            element.push(index);
        }
        Some((offset as usize, element, Rc::new(indices.iter().map(|a| a.index.clone()).collect())))
    }

    fn int(&self, e: &Expr, touched: &mut Touched) -> Option<i64> {
        match self.eval(e, touched)? {
            Literal::Int(i) => i64::try_from(i).ok(),
            _ => None,
        }
    }

    fn truth(&self, e: &Expr, touched: &mut Touched) -> Option<bool> {
        match self.eval(e, touched)? {
            Literal::Bool(b) => Some(b),
            _ => None,
        }
    }

    /// Evaluates an expression; `None` if evaluation fails.
    fn eval(&self, e: &Expr, touched: &mut Touched) -> Option<Literal> {
        Some(match e.kind() {
            ExprKind::Const(v) => *v,
            ExprKind::Var(s) => Literal::Int(i128::from(*self.vars.get(s)?)),
            ExprKind::Load(t, indices) => {
                let (offset, element, exprs) = self.element(t, indices, touched)?;
                touched.push((t.clone(), element, Touch::Read, exprs));
                self.cells.get(t)?.data[offset]
            }
            ExprKind::Cast(inner) => scalar::cast(self.eval(inner, touched)?, inner.dtype(), e.dtype()).ok()?,
            ExprKind::Apply(op, args) => match op {
                Op::And | Op::Or => {
                    let first = self.truth(&args[0], touched)?;
                    Literal::Bool(if first == (*op == Op::And) { self.truth(&args[1], touched)? } else { first })
                }
                Op::Select => {
                    let chosen = if self.truth(&args[0], touched)? { &args[1] } else { &args[2] };
                    return self.eval(chosen, touched);
                }
                _ => {
                    let values: Vec<Literal> = args.iter().map(|a| self.eval(a, touched)).collect::<Option<_>>()?;
                    scalar::apply(*op, args.last()?.dtype(), &values).ok()?
                }
            },
            ExprKind::Measure(..) => return None,
        })
    }
}
