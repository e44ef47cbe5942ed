//! Resolution of a tree to code for the machine: symbols become slots, so that execution needs no lookups, and rules
//! that the machine relies on (operands of one type, one index per dimension) are checked once.

use super::error::{ErrorKind, RuntimeError};
use crate::algebra::definitions;
use crate::dtype::DType;
use crate::expr::{Access, Expr, ExprKind};
use crate::format::{LevelKind, Pattern};
use crate::func::Func;
use crate::literal::Literal;
use crate::op::Op;
use crate::stmt::{AssertKind, Extent, MessagePart, Origin, PrintPart, Role, Routine, Stmt, StmtKind, Tensor};
use crate::symbol::Symbol;
use crate::validate::fits;
use rustc_hash::{FxHashMap, FxHashSet};

/// Expression with slots in place of names.
#[derive(Debug)]
pub(super) enum Node {
    Const(Literal),
    Var(usize),
    Load(usize, Box<[Node]>),
    Unary(Op, DType, Box<Node>),
    Binary(Op, DType, Box<[Node; 2]>),
    Ternary(Op, DType, Box<[Node; 3]>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Select(Box<[Node; 3]>),
    /// Conversion from the first type to the second one.
    Cast(DType, DType, Box<Node>),
    /// Whole expression that reads structured tensors, or scalars that stand for such expressions.
    Structured(Box<Node>),
}

/// Statement with slots in place of names.
#[derive(Debug)]
pub(super) struct Code<'a> {
    pub origin: &'a Origin,
    pub kind: CodeKind<'a>,
}

/// Sequence of statements. A `VarDef` becomes an `Allocate` followed by its body: slots are never reused, so the end of
/// a scope needs little work, and long blocks with many tensors do not nest deeply.
pub(super) type Block<'a> = Vec<Code<'a>>;

#[derive(Debug)]
pub(super) enum CodeKind<'a> {
    Allocate {
        slot: usize,
        shape: Box<[Node]>,
    },
    /// End of the scope of a tensor whose elements must be equal where they share a stored value.
    Release {
        slot: usize,
    },
    For {
        slot: usize,
        begin: Node,
        end: Node,
        step: Node,
        body: Block<'a>,
    },
    If {
        cond: Node,
        then: Block<'a>,
        otherwise: Block<'a>,
    },
    Store {
        slot: usize,
        indices: Box<[Node]>,
        value: Node,
    },
    /// Definition of a scalar that stands for one value, which reads structured tensors.
    Define {
        slot: usize,
        value: Node,
    },
    Reduce {
        slot: usize,
        indices: Box<[Node]>,
        op: Op,
        value: Node,
    },
    Assert {
        cond: Node,
        message: Vec<ResolvedPart<'a>>,
        kind: AssertKind,
    },
    Print {
        parts: Vec<ResolvedPart<'a>>,
    },
    Assume {
        cond: Node,
    },
    While {
        cond: Node,
        body: Block<'a>,
    },
    Call {
        routine: Routine,
        slots: Box<[usize]>,
        operands: Box<[Node]>,
    },
}

/// Piece of a message.
#[derive(Debug)]
pub(super) enum ResolvedPart<'a> {
    Text(&'a str),
    Value(Node, DType),
    /// Subtensor at some leading indices, with the shape in which it is displayed.
    Tensor {
        slot: usize,
        at: Box<[Node]>,
        shape: Box<[Node]>,
    },
}

/// Resolved program.
#[derive(Debug)]
pub(super) struct Program<'a> {
    /// Tensors by slot: parameters, then results, then locals.
    pub tensors: Vec<&'a Tensor>,
    /// For each tensor without a pattern of its own, the slot of the parameter over whose pattern it is stored.
    pub follows: Vec<Option<usize>>,
    /// Number of slots of sizes (which come first, in order) and iterators.
    pub vars: usize,
    /// Shapes of parameters and results.
    pub interface: Vec<Box<[Node]>>,
    pub body: Block<'a>,
    /// Slots of the arrays that the body makes for the caller, in order.
    pub made: Vec<usize>,
    /// Results whose elements must be equal in the end where they share a stored value, with the last statement that
    /// writes them.
    pub agree: Vec<(usize, &'a Origin)>,
}

pub(super) fn program(func: &Func) -> Result<Program<'_>, RuntimeError> {
    let mut r = Resolver { made: vec![None; func.made.len()], func: Some(func), ..Resolver::default() };
    for size in &func.sizes {
        r.bind(size);
    }
    let nowhere = |kind: ErrorKind| RuntimeError { origin: Origin::none(), kind: Box::new(kind) };
    let mut interface = Vec::new();
    for t in func.interface() {
        interface.push(r.indices(&t.shape).map_err(nowhere)?);
        r.declare(t).map_err(nowhere)?;
    }
    if r.structured {
        r.definitions = definitions(&func.body);
    }
    let body = r.block(&func.body)?;
    let results = func.params.len()..interface.len();
    let agree = results.filter_map(|slot| Some((slot, *r.writers.get(&slot)?))).collect();
    let made = r.made.into_iter().collect::<Option<_>>();
    let made = made.ok_or_else(|| nowhere(ErrorKind::Malformed("an array for the caller is not declared".into())))?;
    Ok(Program { tensors: r.tensors, follows: r.follows, vars: r.count, interface, body, made, agree })
}

#[derive(Default)]
struct Resolver<'a> {
    /// Slots of visible sizes and iterators.
    vars: FxHashMap<Symbol, usize>,
    /// Number of slots of sizes and iterators.
    count: usize,
    /// Slots of live tensors.
    slots: FxHashMap<Symbol, usize>,
    tensors: Vec<&'a Tensor>,
    /// Slots of the arrays that the body makes for the caller, as far as they are declared, and the program.
    made: Vec<Option<usize>>,
    func: Option<&'a Func>,
    /// As in [`Program::follows`].
    follows: Vec<Option<usize>>,
    /// Parameter of each pattern.
    patterns: FxHashMap<Pattern, usize>,
    /// Last writers of tensors whose elements must be equal where they share a stored value.
    writers: FxHashMap<usize, &'a Origin>,
    /// Whether any tensor is structured.
    structured: bool,
    /// Scalars that stand for one value each; `carriers` has the slots of those whose value may derive from the fill.
    definitions: FxHashSet<Symbol>,
    carriers: FxHashSet<usize>,
}

type Resolved<T> = Result<T, ErrorKind>;

fn error(s: &Stmt, kind: ErrorKind) -> RuntimeError {
    RuntimeError { origin: s.origin().clone(), kind: Box::new(kind) }
}

fn malformed<T>(text: impl Into<String>) -> Resolved<T> {
    Err(ErrorKind::Malformed(text.into()))
}

impl<'a> Resolver<'a> {
    fn bind(&mut self, symbol: &Symbol) -> usize {
        self.vars.insert(symbol.clone(), self.count);
        self.count += 1;
        self.count - 1
    }

    fn declare(&mut self, tensor: &'a Tensor) -> Resolved<usize> {
        let slot = self.tensors.len();
        let of = tensor.format.pattern.and_then(|p| self.patterns.get(&p)).copied();
        match tensor.format.is_dense() {
            true => self.follows.push(None),
            false if tensor.role == Role::Input => {
                tensor.format.pattern.map(|p| self.patterns.entry(p).or_insert(slot));
                self.follows.push(None);
            }
            false if of.is_some() => self.follows.push(of),
            false if tensor.role == Role::InOut => {
                return Err(ErrorKind::Unsupported("structured tensors that change in place"));
            }
            false => self.follows.push(None),
        }
        self.structured |= !tensor.format.is_dense();
        self.tensors.push(tensor);
        self.slots.insert(tensor.symbol.clone(), slot);
        Ok(slot)
    }

    fn alive(&self, symbol: &Symbol) -> Resolved<usize> {
        match self.slots.get(symbol) {
            Some(slot) => Ok(*slot),
            None => malformed(format!("`{symbol}` is not a tensor that is alive here")),
        }
    }

    fn tensor(&self, symbol: &Symbol, indices: usize) -> Resolved<(usize, &'a Tensor)> {
        let slot = self.alive(symbol)?;
        let tensor = self.tensors[slot];
        if tensor.ndim() != indices {
            return malformed(format!(
                "expected an index for each dimension of `{symbol}` ({}), found {indices}",
                tensor.ndim()
            ));
        }
        Ok((slot, tensor))
    }

    fn block(&mut self, s: &'a Stmt) -> Result<Block<'a>, RuntimeError> {
        let mut out = Vec::new();
        self.append(s, &mut out)?;
        Ok(out)
    }

    /// Appends a statement to a block. Recursion into the last statement is a loop.
    fn append(&mut self, s: &'a Stmt, out: &mut Block<'a>) -> Result<(), RuntimeError> {
        let mut next = Some(s);
        let (mut declared, mut slots) = (Vec::new(), Vec::new());
        while let Some(s) = next.take() {
            match s.kind() {
                StmtKind::Seq(v) => {
                    if let Some((last, before)) = v.split_last() {
                        before.iter().try_for_each(|s| self.append(s, out))?;
                        next = Some(last);
                    }
                }
                StmtKind::VarDef { tensor, body } => {
                    let kind = self.allocation(tensor).map_err(|kind| error(s, kind))?;
                    out.push(Code { origin: s.origin(), kind });
                    declared.push(&tensor.symbol);
                    slots.push(self.slots[&tensor.symbol]);
                    next = Some(body);
                }
                _ => out.push(self.stmt(s)?),
            }
        }
        for symbol in declared {
            self.slots.remove(symbol);
        }
        let written = slots.into_iter().rev().filter_map(|slot| Some((slot, *self.writers.get(&slot)?)));
        out.extend(written.map(|(slot, origin)| Code { origin, kind: CodeKind::Release { slot } }));
        Ok(())
    }

    fn allocation(&mut self, tensor: &'a Tensor) -> Resolved<CodeKind<'a>> {
        let shape = self.indices(&tensor.shape)?;
        let slot = self.declare(tensor)?;
        let made = self.func.and_then(|func| func.made.iter().position(|t| t.symbol == tensor.symbol));
        if let Some(k) = made {
            self.made[k] = Some(slot);
        }
        Ok(CodeKind::Allocate { slot, shape })
    }

    fn stmt(&mut self, s: &'a Stmt) -> Result<Code<'a>, RuntimeError> {
        let at = |kind: ErrorKind| error(s, kind);
        let kind = match s.kind() {
            StmtKind::For { iter, extent: Extent::Range { begin, end, step }, body, .. } => {
                let [begin, end, step] = [begin, end, step].map(|e| self.typed(e, DType::I64));
                let (begin, end, step) = (begin.map_err(at)?, end.map_err(at)?, step.map_err(at)?);
                let slot = self.bind(iter);
                let body = self.block(body)?;
                self.vars.remove(iter);
                CodeKind::For { slot, begin, end, step, body }
            }
            StmtKind::If { cond, then, otherwise } => CodeKind::If {
                cond: self.typed(cond, DType::Bool).map_err(at)?,
                then: self.block(then)?,
                otherwise: otherwise.as_ref().map_or(Ok(Vec::new()), |o| self.block(o))?,
            },
            StmtKind::Store { tensor, indices, value } => {
                let (slot, t) = self.tensor(tensor, indices.len()).map_err(at)?;
                self.note_writer(slot, s);
                let indices = self.accesses(indices).map_err(at)?;
                let value = self.typed(value, t.dtype).map_err(at)?;
                if matches!(value, Node::Structured(_)) && self.definitions.contains(tensor) {
                    self.carriers.insert(slot);
                    CodeKind::Define { slot, value }
                } else {
                    CodeKind::Store { slot, indices, value }
                }
            }
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                let (slot, t) = self.tensor(tensor, indices.len()).map_err(at)?;
                self.note_writer(slot, s);
                let indices = self.accesses(indices).map_err(at)?;
                CodeKind::Reduce { slot, indices, op: op.info().op, value: self.typed(value, t.dtype).map_err(at)? }
            }
            StmtKind::Assert { cond, message, kind } => {
                let cond = self.typed(cond, DType::Bool).map_err(at)?;
                let message = message.iter().map(|p| self.part(p)).collect::<Resolved<_>>().map_err(at)?;
                CodeKind::Assert { cond, message, kind: *kind }
            }
            StmtKind::Print { parts } => {
                let parts = parts.iter().map(|p| self.printed(p)).collect::<Resolved<_>>().map_err(at)?;
                CodeKind::Print { parts }
            }
            StmtKind::Assume { cond } => CodeKind::Assume { cond: self.typed(cond, DType::Bool).map_err(at)? },
            StmtKind::While { cond, body } => {
                let cond = self.typed(cond, DType::Bool).map_err(at)?;
                CodeKind::While { cond, body: self.block(body)? }
            }
            StmtKind::Call { routine, tensors, operands } => {
                let slots = tensors.iter().map(|t| self.alive(t)).collect::<Resolved<_>>().map_err(at)?;
                let operands = self.indices(operands).map_err(at)?;
                CodeKind::Call { routine: *routine, slots, operands }
            }
            StmtKind::Seq(_) | StmtKind::VarDef { .. } => {
                return Err(at(ErrorKind::Malformed("expected one statement, found a block".to_string())));
            }
            StmtKind::For { extent: Extent::Reals, .. } => return Err(at(ErrorKind::Unsupported("loops over reals"))),
        };
        Ok(Code { origin: s.origin(), kind })
    }

    /// Notes the last write to a tensor whose format cannot hold any elements: it is checked after that.
    fn note_writer(&mut self, slot: usize, s: &'a Stmt) {
        let format = &self.tensors[slot].format;
        let is_limited = match self.follows[slot] {
            Some(_) => !format.sums && !format.is_injective(),
            None => format.is_symmetric() || format.levels.iter().any(|l| l.kind == LevelKind::Point),
        };
        if is_limited {
            self.writers.insert(slot, s.origin());
        }
    }

    fn part(&self, p: &'a MessagePart) -> Resolved<ResolvedPart<'a>> {
        Ok(match p {
            MessagePart::Text(t) => ResolvedPart::Text(t),
            MessagePart::Value(e) => ResolvedPart::Value(self.expr(e)?, e.dtype()),
        })
    }

    fn printed(&self, p: &'a PrintPart) -> Resolved<ResolvedPart<'a>> {
        Ok(match p {
            PrintPart::Text(t) => ResolvedPart::Text(t),
            PrintPart::Value(e) => ResolvedPart::Value(self.expr(e)?, e.dtype()),
            PrintPart::Tensor { tensor, at, shape } => {
                let slot = self.alive(tensor)?;
                ResolvedPart::Tensor { slot, at: self.indices(at)?, shape: self.indices(shape)? }
            }
        })
    }

    fn accesses(&self, accesses: &[Access]) -> Resolved<Box<[Node]>> {
        accesses.iter().map(|a| self.typed(&a.index, DType::I64)).collect()
    }

    /// Resolves expressions of type i64.
    fn indices(&self, exprs: &[Expr]) -> Resolved<Box<[Node]>> {
        exprs.iter().map(|e| self.typed(e, DType::I64)).collect()
    }

    fn typed(&self, e: &Expr, dtype: DType) -> Resolved<Node> {
        if e.dtype() != dtype {
            return malformed(format!("found an expression of type {}, expected {dtype}", e.dtype()));
        }
        self.expr(e)
    }

    /// Resolves a whole expression.
    fn expr(&self, e: &Expr) -> Resolved<Node> {
        let node = self.node(e)?;
        let mut structured = false;
        if self.structured {
            e.walk(&mut |e| {
                if let ExprKind::Load(symbol, _) = e.kind() {
                    structured |= self
                        .slots
                        .get(symbol)
                        .is_some_and(|s| !self.tensors[*s].format.is_dense() || self.carriers.contains(s));
                }
            });
        }
        Ok(if structured { Node::Structured(Box::new(node)) } else { node })
    }

    fn node(&self, e: &Expr) -> Resolved<Node> {
        Ok(match e.kind() {
            ExprKind::Const(v) => Node::Const(*v),
            ExprKind::Var(symbol) => match self.vars.get(symbol) {
                Some(slot) => Node::Var(*slot),
                None => return malformed(format!("`{symbol}` is not bound here")),
            },
            ExprKind::Load(symbol, accesses) => {
                let (slot, tensor) = self.tensor(symbol, accesses.len())?;
                if tensor.dtype != e.dtype() {
                    return malformed(format!("`{symbol}` is of type {}, not {}", tensor.dtype, e.dtype()));
                }
                Node::Load(slot, self.accesses(accesses)?)
            }
            ExprKind::Apply(op, args) => self.apply(*op, args, e.dtype())?,
            ExprKind::Cast(inner) => Node::Cast(inner.dtype(), e.dtype(), Box::new(self.node(inner)?)),
            ExprKind::Measure(..) => return Err(ErrorKind::Unsupported("measures")),
        })
    }

    fn apply(&self, op: Op, args: &[Expr], result: DType) -> Resolved<Node> {
        let info = op.info();
        let operand = args.last().map_or(DType::Bool, Expr::dtype);
        if !fits(op, args, result) {
            return malformed(format!("operands of `{}` are of the wrong types", info.name));
        }
        let nodes: Vec<Node> = args.iter().map(|a| self.node(a)).collect::<Resolved<_>>()?;
        let count = nodes.len();
        let wrong = || ErrorKind::Malformed(format!("`{}` does not take {count} operands", info.name));
        Ok(match info.arity {
            1 => Node::Unary(op, operand, Box::new(nodes.into_iter().next().ok_or_else(wrong)?)),
            2 => {
                let pair: Box<[Node; 2]> = nodes.into_boxed_slice().try_into().map_err(|_| wrong())?;
                match op {
                    Op::And => Node::And(pair),
                    Op::Or => Node::Or(pair),
                    _ => Node::Binary(op, operand, pair),
                }
            }
            _ => {
                let three: Box<[Node; 3]> = nodes.into_boxed_slice().try_into().map_err(|_| wrong())?;
                if op == Op::Select { Node::Select(three) } else { Node::Ternary(op, operand, three) }
            }
        })
    }
}
