//! Checks shared by the validators of all stages: names, types and structure.
use super::violation::{Invalid, Invariant, Violation};
use crate::dtype::DType;
use crate::expr::{Access, Expr, ExprKind, Protocol};
use crate::func::{Func, ParamMode};
use crate::op::{Op, ReduceOp};
use crate::stmt::{Extent, Origin, PrintPart, Role, Routine, Stmt, StmtId, StmtKind, Tensor};
use crate::symbol::Symbol;
use rustc_hash::{FxHashMap, FxHashSet};

/// Validator that walks a program once, tracking visible names.
pub(super) struct Checker<'a> {
    /// Visible sizes and iterators, with their types.
    vars: FxHashMap<&'a Symbol, DType>,
    /// Live tensors, with their writability.
    tensors: FxHashMap<&'a Symbol, (&'a Tensor, bool)>,
    bound: FxHashSet<&'a Symbol>,
    ids: FxHashSet<StmtId>,
    /// Arrays that the body makes for the caller, until their declarations are found.
    made: FxHashSet<&'a Symbol>,
    /// Whether the statement under check is in a loop or a branch.
    nested: bool,
    /// Origin of the statement under check.
    origin: Origin,
    found: Vec<Violation>,
}

impl<'a> Checker<'a> {
    /// Checks all shared invariants.
    pub fn new(func: &'a Func) -> Checker<'a> {
        let mut c = Checker {
            vars: FxHashMap::default(),
            tensors: FxHashMap::default(),
            bound: FxHashSet::default(),
            ids: FxHashSet::default(),
            made: func.made.iter().map(|t| &t.symbol).collect(),
            nested: false,
            origin: Origin::none(),
            found: Vec::new(),
        };
        for s in &func.sizes {
            c.bind(s);
            c.vars.insert(s, DType::I64);
        }
        for p in &func.params {
            let role = if p.mode == ParamMode::InOut { Role::InOut } else { Role::Input };
            c.interface(&p.tensor, role);
            c.tensors.insert(&p.tensor.symbol, (&p.tensor, p.mode == ParamMode::InOut));
        }
        for t in &func.results {
            c.interface(t, Role::Result);
            c.tensors.insert(&t.symbol, (t, true));
        }
        c.stmt(&func.body);
        for t in std::mem::take(&mut c.made) {
            c.report(Invariant::Made, format!("`{t}` is not declared"));
        }
        c
    }

    /// Returns the violations found.
    pub fn finish(self) -> Result<(), Invalid> {
        if self.found.is_empty() { Ok(()) } else { Err(Invalid(self.found)) }
    }

    /// Records a violation.
    pub fn violation(&mut self, invariant: Invariant, origin: &Origin, found: impl Into<String>) {
        self.found.push(Violation { invariant, found: found.into(), origin: origin.clone() });
    }

    fn report(&mut self, invariant: Invariant, found: impl Into<String>) {
        let origin = self.origin.clone();
        self.violation(invariant, &origin, found);
    }

    fn require(&mut self, holds: bool, invariant: Invariant, found: impl FnOnce() -> String) {
        if !holds {
            self.report(invariant, found());
        }
    }

    fn bind(&mut self, symbol: &'a Symbol) {
        let new = self.bound.insert(symbol);
        self.require(new, Invariant::BoundOnce, || format!("{symbol:?} is bound twice"));
    }

    fn interface(&mut self, t: &'a Tensor, role: Role) {
        self.bind(&t.symbol);
        // Iterators and tensors are not visible yet here, but would be reported as violations of `Scope`.
        let mut sizes_only = true;
        for e in &t.shape {
            e.walk(&mut |e| match e.kind() {
                ExprKind::Var(s) => sizes_only &= self.vars.contains_key(s),
                ExprKind::Load(..) => sizes_only = false,
                _ => {}
            });
        }
        if sizes_only {
            self.declaration(t);
        } else {
            self.report(Invariant::Interface, format!("the shape of `{}` does not follow from sizes", t.symbol));
        }
        self.require(t.role == role, Invariant::Role, || format!("`{}` is {:?}, not {role:?}", t.symbol, t.role));
    }

    fn declaration(&mut self, t: &'a Tensor) {
        for e in &t.shape {
            self.expr(e);
            self.require(e.dtype() == DType::I64, Invariant::Shape, || {
                format!("a size of `{}` is {}", t.symbol, e.dtype())
            });
        }
        if let Err(why) = t.format.check(t.ndim()) {
            self.report(Invariant::Format, format!("the storage of `{}`: {why}", t.symbol));
        } else if let Some((level, _)) = t.format.squares().find(|(_, [a, b])| t.shape[*a] != t.shape[*b]) {
            self.report(Invariant::Format, format!("`{level}` of `{}` needs a square matrix", t.symbol));
        }
    }

    fn stmt(&mut self, s: &'a Stmt) {
        self.origin = s.origin().clone();
        let new = self.ids.insert(s.id());
        self.require(new, Invariant::UniqueIds, || format!("{:?} occurs twice", s.id()));
        match s.kind() {
            StmtKind::Seq(v) => {
                let nested = v.iter().any(|s| matches!(s.kind(), StmtKind::Seq(_)));
                self.require(!nested, Invariant::NestedSeq, || "a sequence directly in a sequence".to_string());
                v.iter().for_each(|s| self.stmt(s));
            }
            StmtKind::VarDef { tensor, body } => {
                self.declaration(tensor);
                let made = self.made.remove(&tensor.symbol);
                let role = if made { tensor.role == Role::Result } else { tensor.role.is_local() };
                self.require(role, Invariant::Role, || format!("`{}` is {:?}", tensor.symbol, tensor.role));
                self.require(!made || !self.nested && tensor.ndim() == 1, Invariant::Made, || {
                    format!("`{}` has other dimensions than one, or is declared in a loop or a branch", tensor.symbol)
                });
                self.bind(&tensor.symbol);
                self.tensors.insert(&tensor.symbol, (tensor, true));
                self.stmt(body);
                self.tensors.remove(&tensor.symbol);
            }
            StmtKind::For { iter, extent, props, body } => {
                let dtype = match extent {
                    Extent::Range { begin, end, step } => {
                        [begin, end, step].into_iter().for_each(|e| self.integer(e, "a bound of a loop"));
                        DType::I64
                    }
                    Extent::Reals => DType::F64,
                };
                for r in &props.reductions {
                    self.alive(&r.tensor);
                    let once = props.reductions.iter().filter(|o| o.tensor == r.tensor && o.op == r.op).count() == 1;
                    self.require(once && props.is_concurrent(), Invariant::Reduction, || {
                        format!("`{}` is listed as a reduction twice, or of a loop that is not concurrent", r.tensor)
                    });
                }
                let alone = !props.is_concurrent() && !props.unroll;
                self.require(!props.library || alone, Invariant::Library, || {
                    format!("the library loop `{iter}` is also concurrent or unrolled")
                });
                self.bind(iter);
                self.vars.insert(iter, dtype);
                self.inner(body);
                self.vars.remove(iter);
            }
            StmtKind::If { cond, then, otherwise } => {
                self.condition(cond);
                self.inner(then);
                otherwise.iter().for_each(|s| self.inner(s));
            }
            StmtKind::While { cond, body } => {
                self.condition(cond);
                self.inner(body);
            }
            StmtKind::Assert { cond, .. } => {
                self.condition(cond);
                s.kind().exprs().into_iter().skip(1).for_each(|e| self.expr(e));
            }
            StmtKind::Print { parts } => parts.iter().for_each(|p| self.part(p)),
            StmtKind::Assume { cond } => self.condition(cond),
            StmtKind::Store { tensor, indices, value } => self.write(tensor, indices, value),
            StmtKind::ReduceTo { tensor, indices, op, value } => {
                self.write(tensor, indices, value);
                let fits = reduces(*op, value.dtype());
                self.require(fits, Invariant::Reduction, || format!("{op:?} of {}", value.dtype()));
            }
            StmtKind::Call { routine, tensors, operands } => self.call(*routine, tensors, operands),
        }
    }

    /// Checks a statement in a loop or a branch.
    fn inner(&mut self, s: &'a Stmt) {
        let outer = std::mem::replace(&mut self.nested, true);
        self.stmt(s);
        self.nested = outer;
    }

    fn call(&mut self, routine: Routine, tensors: &'a [Symbol], operands: &'a [Expr]) {
        operands.iter().for_each(|e| self.integer(e, "an operand"));
        let all: Vec<&Tensor> = tensors.iter().filter_map(|t| Some(self.tensor(t)?.0)).collect();
        let fits = operands.len() == routine.operands()
            && match (routine, &all[..]) {
                (Routine::Grow | Routine::Fit, [length, arrays @ ..]) => {
                    !arrays.is_empty() && arrays.iter().all(|array| array.shape == [length.load([])])
                }
                (Routine::Sort, [array, values @ ..]) => {
                    array.ndim() == 1
                        && array.dtype.is_int()
                        && values.len() < 2
                        && values.iter().all(|v| v.ndim() == 1)
                }
                (Routine::Order, [numbers, keys @ ..]) => {
                    let are_lists = all.iter().all(|array| array.ndim() == 1 && array.dtype.is_int());
                    are_lists && numbers.dtype == DType::I64 && !keys.is_empty()
                }
                _ => false,
            };
        self.require(fits, Invariant::Routine, || format!("`{}` of {tensors:?}", routine.name()));
    }

    fn part(&mut self, part: &'a PrintPart) {
        match part {
            PrintPart::Text(_) => {}
            PrintPart::Value(e) => self.expr(e),
            PrintPart::Tensor { tensor, at, shape } => {
                at.iter().for_each(|e| self.integer(e, "an index"));
                shape.iter().for_each(|e| self.integer(e, "a size"));
                if let Some((t, _)) = self.tensor(tensor) {
                    // On flat buffers, one index gives the offset of the first element.
                    let flat = t.ndim() <= 1 && at.len() == t.ndim();
                    self.require(flat || at.len() + shape.len() == t.ndim(), Invariant::Dimensions, || {
                        let given = at.len() + shape.len();
                        format!("{given} dimensions of `{tensor}`, which has {}", t.ndim())
                    });
                }
            }
        }
    }

    fn condition(&mut self, e: &'a Expr) {
        self.expr(e);
        self.require(e.dtype() == DType::Bool, Invariant::Condition, || format!("a condition is {}", e.dtype()));
    }

    fn integer(&mut self, e: &'a Expr, what: &str) {
        self.expr(e);
        self.require(e.dtype() == DType::I64, Invariant::Index, || format!("{what} is {}", e.dtype()));
    }

    fn write(&mut self, symbol: &'a Symbol, indices: &'a [Access], value: &'a Expr) {
        self.expr(value);
        let Some((tensor, writable)) = self.access(symbol, indices) else { return };
        self.require(writable, Invariant::ReadOnly, || format!("`{symbol}` is written"));
        let plain = indices.iter().all(|a| a.protocol == Protocol::Default);
        self.require(plain, Invariant::Protocol, || format!("`{symbol}` is written with a protocol"));
        self.require(value.dtype() == tensor.dtype, Invariant::StoredType, || {
            format!("a value of type {} for `{symbol}`, which is {}", value.dtype(), tensor.dtype)
        });
    }

    fn alive(&mut self, symbol: &Symbol) {
        self.tensor(symbol);
    }

    fn tensor(&mut self, symbol: &Symbol) -> Option<(&'a Tensor, bool)> {
        let found = self.tensors.get(symbol).copied();
        self.require(found.is_some(), Invariant::Scope, || format!("{symbol:?} is not alive"));
        found
    }

    /// Checks an access with its indices, and returns the tensor.
    fn access(&mut self, symbol: &Symbol, indices: &'a [Access]) -> Option<(&'a Tensor, bool)> {
        for a in indices {
            self.expr(&a.index);
            let real = self.is_real(&a.index);
            self.require(real || a.index.dtype() == DType::I64, Invariant::Index, || {
                format!("an index of `{symbol}` is {}", a.index.dtype())
            });
        }
        let (tensor, writable) = self.tensor(symbol)?;
        self.require(indices.len() == tensor.ndim(), Invariant::Dimensions, || {
            format!("{} indices for `{symbol}`, which has {} dimensions", indices.len(), tensor.ndim())
        });
        Some((tensor, writable))
    }

    /// Returns whether an expression is a real coordinate: it depends on an iterator over the reals.
    fn is_real(&self, e: &Expr) -> bool {
        if e.dtype() != DType::F64 {
            return false;
        }
        e.any(&mut |e| matches!(e.kind(), ExprKind::Var(s) if self.vars.get(s) == Some(&DType::F64)))
    }

    fn expr(&mut self, e: &'a Expr) {
        let dtype = e.dtype();
        match e.kind() {
            ExprKind::Const(v) => {
                let same = Expr::literal(*v, dtype).as_literal() == Some(*v);
                self.require(same, Invariant::Literal, || format!("{v:?} is not a {dtype}"));
            }
            ExprKind::Var(symbol) => {
                let found = self.vars.get(symbol).copied();
                self.require(found == Some(dtype), Invariant::Scope, || format!("{symbol:?} is not a {dtype} here"));
            }
            ExprKind::Load(symbol, indices) => {
                if let Some((tensor, _)) = self.access(symbol, indices) {
                    self.require(dtype == tensor.dtype, Invariant::Scope, || {
                        format!("`{symbol}` is {}, not {dtype}", tensor.dtype)
                    });
                }
            }
            ExprKind::Apply(op, args) => {
                args.iter().for_each(|a| self.expr(a));
                let is_element = |e: &Expr| matches!(e.kind(), ExprKind::Load(_, at) if !at.is_empty());
                self.require(*op != Op::Stored || args.iter().all(is_element), Invariant::Operands, || {
                    "the operand of `stored` is not an element of a tensor".to_string()
                });
                self.require(fits(*op, args, dtype), Invariant::Operands, || {
                    let types: Vec<&str> = args.iter().map(|a| a.dtype().name()).collect();
                    format!("`{}` of {} gives {dtype}", op.info().name, types.join(", "))
                });
            }
            ExprKind::Cast(inner) => self.expr(inner),
            ExprKind::Measure(_, symbol) => {
                let real = self.vars.get(symbol) == Some(&DType::F64);
                self.require(real, Invariant::Scope, || format!("{symbol:?} is not an iterator over the reals"));
            }
        }
    }
}

/// Returns whether an operator takes these operands and gives `result`.
pub(crate) fn fits(op: Op, args: &[Expr], result: DType) -> bool {
    let info = op.info();
    let operand = args.last().map_or(DType::Bool, Expr::dtype);
    let same = |args: &[Expr]| args.iter().all(|a| a.dtype() == operand);
    args.len() == info.arity
        && info.domain.accepts(operand)
        && op.result(operand) == result
        && if op == Op::Select { args[0].dtype() == DType::Bool && same(&args[1..]) } else { same(args) }
}

/// Returns whether elements of a type can be reduced with an operator.
fn reduces(op: ReduceOp, dtype: DType) -> bool {
    match op {
        ReduceOp::Add | ReduceOp::Mul | ReduceOp::Min | ReduceOp::Max => dtype != DType::Bool,
        ReduceOp::And | ReduceOp::Or => dtype == DType::Bool,
        ReduceOp::BitAnd | ReduceOp::BitOr => dtype.is_int(),
    }
}
