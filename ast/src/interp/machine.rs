//! Execution of resolved code, statement by statement, with checks of every element's index and initialisation.

use super::error::{ErrorKind, RuntimeError};
use super::resolve::{Code, CodeKind, Node, ResolvedPart};
use crate::coordinates::indices_at;
use crate::dtype::DType;
use crate::format::Format;
use crate::literal::Literal;
use crate::op::Op;
use crate::stmt::Tensor;
use crate::value::{Buffer, MAX_SIZE, Value, element_count};
use crate::{scalar, show};
use std::sync::OnceLock;

/// Tensor in memory. The memory is kept while the tensor is dead, for reuse.
#[derive(Debug)]
pub(super) struct Cell {
    shape: Vec<i64>,
    data: Buffer,
    /// Written elements; `None` where the caller gave all of them.
    written: Option<Vec<bool>>,
    /// Stored elements; `None` where all are.
    stored: Option<Vec<bool>>,
    /// For each element, the first one that shares its stored value; `None` where each has its own.
    shared: Option<Vec<usize>>,
    /// Elements that a format of regions stores, given those that were stored so far.
    region: OnceLock<Vec<bool>>,
}

impl Cell {
    fn made(shape: Vec<i64>, data: Buffer) -> Cell {
        Cell { shape, data, written: None, stored: None, shared: None, region: OnceLock::new() }
    }

    /// Creates a tensor with contents.
    pub fn given(value: Value) -> Cell {
        let (shape, data) = value.into_parts();
        Cell::made(shape.into_iter().map(|n| n as i64).collect(), data)
    }

    /// Creates a tensor of which only these elements are stored, some of them sharing values.
    pub fn sparse((value, stored): (Value, Vec<bool>), shared: Option<Vec<usize>>) -> Cell {
        Cell { stored: Some(stored), shared, ..Cell::given(value) }
    }

    /// Creates the cell of a tensor without contents.
    pub fn empty(dtype: DType) -> Cell {
        Cell { written: Some(Vec::new()), ..Cell::made(Vec::new(), Buffer::zeros(dtype, 0)) }
    }

    /// Changes the length of a flat array; new elements are unwritten.
    pub fn resize(&mut self, length: i64) {
        self.data.resize(length as usize);
        if let Some(written) = &mut self.written {
            written.resize(length as usize, false);
        }
        self.shape = vec![length];
    }

    /// Returns the size in a dimension.
    pub fn size(&self, dim: usize) -> i64 {
        self.shape[dim]
    }

    /// Returns whether the element at that offset is stored.
    pub fn stores(&self, offset: usize) -> bool {
        self.stored.as_ref().is_none_or(|s| s[offset])
    }

    /// Returns whether the element at that offset is in the region that the format stores.
    pub fn covers(&self, format: &Format, offset: usize) -> bool {
        let region = |stored: &Vec<bool>| self.region.get_or_init(|| format.region(&self.shape, stored))[offset];
        self.stored.as_ref().is_none_or(region)
    }

    /// Returns the first element that shares the stored value.
    pub fn first(&self, offset: usize) -> usize {
        self.shared.as_ref().map_or(offset, |s| s[offset])
    }

    /// Sets the elements that `of` does not store to the fill, or all elements unless the tensor `sums`. Marks elements
    /// as written that are not stored or, where the tensor `sums`, share the stored value of an earlier one.
    pub fn fill_outside(&mut self, of: &Cell, fill: Literal, sums: bool) {
        for k in 0..self.data.len() {
            let (stores, own) = (of.stores(k), !sums || of.first(k) == k);
            if !stores || !sums {
                self.data.set(k, fill);
            }
            if let Some(written) = self.written.as_mut().filter(|_| !stores || !own) {
                written[k] = true;
            }
        }
    }

    /// Sets all elements to the fill, none of them stored or written.
    pub fn clear(&mut self, fill: Literal) {
        let len = self.data.len();
        for k in 0..len {
            self.data.set(k, fill);
        }
        (self.stored, self.written) = (Some(vec![false; len]), Some(vec![false; len]));
        self.region = OnceLock::new();
    }

    /// Marks an element as stored.
    pub fn insert(&mut self, offset: usize) {
        if let Some(stored) = self.stored.as_mut().filter(|s| !s[offset]) {
            stored[offset] = true;
            self.region = OnceLock::new();
        }
    }

    /// Marks an element as written, with its value unchanged.
    pub fn keep(&mut self, offset: usize) {
        if let Some(written) = &mut self.written {
            written[offset] = true;
        }
    }

    /// Returns the tensor with every shared value copied to the elements that share it.
    pub fn spread(&self, of: &Cell) -> Option<Value> {
        let mut data = self.data.clone();
        for k in 0..data.len() {
            data.set(k, self.data.get(of.first(k)));
        }
        Value::new(self.shape.iter().map(|n| *n as usize).collect(), data)
    }

    /// Finds the first element that differs from the last one that shares its stored value; returns both values.
    pub fn unequal(&self, of: &Cell) -> Option<(usize, [Literal; 2])> {
        let shared = of.shared.as_ref()?;
        let mut last = self.data.clone();
        for (k, stored) in shared.iter().enumerate() {
            last.set(*stored, self.data.get(k));
        }
        let all = (0..self.data.len()).filter(|k| of.stores(*k)).map(|k| (k, [self.data.get(k), last.get(shared[k])]));
        all.into_iter().find(|(_, [a, b])| !a.is_same(*b))
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Returns an element.
    pub fn value_at(&self, offset: usize) -> Literal {
        self.data.get(offset)
    }

    /// Returns a copy of the tensor.
    pub fn value(&self) -> Option<Value> {
        Value::new(self.shape.iter().map(|n| *n as usize).collect(), self.data.clone())
    }

    /// Returns the tensor for the caller, with the offsets of the elements that were never written.
    pub fn finish(self) -> (Option<Value>, Vec<usize>) {
        let holes = self.written.iter().flatten().enumerate().filter(|(_, w)| !**w).map(|(i, _)| i).collect();
        (Value::new(self.shape.into_iter().map(|n| n as usize).collect(), self.data), holes)
    }
}

/// State of a running program.
pub(super) struct Machine<'a> {
    pub tensors: &'a [&'a Tensor],
    /// For each tensor without a pattern of its own, the parameter over whose pattern it is stored.
    pub follows: &'a [Option<usize>],
    pub cells: Vec<Cell>,
    /// Values of sizes and iterators.
    pub vars: Vec<i64>,
    /// Receiver of printed lines.
    pub lines: &'a mut dyn FnMut(&str),
}

/// Result of an evaluation. Errors are rare and large: boxing keeps results small.
pub(super) type Run<T> = Result<T, Box<ErrorKind>>;

impl Machine<'_> {
    /// Runs a block.
    pub fn block(&mut self, block: &[Code<'_>]) -> Result<(), RuntimeError> {
        block.iter().try_for_each(|code| self.stmt(code))
    }

    fn stmt(&mut self, code: &Code<'_>) -> Result<(), RuntimeError> {
        let at = |kind: Box<ErrorKind>| RuntimeError { origin: code.origin.clone(), kind };
        match &code.kind {
            CodeKind::Allocate { slot, shape } => self.allocate(*slot, shape).map_err(at),
            CodeKind::Release { slot } => self.check_held(*slot).map_err(at),
            CodeKind::For { slot, begin, end, step, body } => {
                let (mut i, end, step) = self.range(begin, end, step).map_err(at)?;
                while if step > 0 { i < end } else { i > end } {
                    self.vars[*slot] = i;
                    self.block(body)?;
                    let Some(next) = i.checked_add(step) else { break };
                    i = next;
                }
                Ok(())
            }
            CodeKind::If { cond, then, otherwise } => {
                let holds = self.truth(cond).map_err(at)?;
                self.block(if holds { then } else { otherwise })
            }
            CodeKind::Store { slot, indices, value } => self.store(*slot, indices, value).map_err(at),
            CodeKind::Define { slot, value } => self.define(*slot, value).map_err(at),
            CodeKind::Reduce { slot, indices, op, value } => self.reduce(*slot, indices, *op, value).map_err(at),
            CodeKind::Assert { cond, message, kind } => {
                if self.truth(cond).map_err(at)? {
                    return Ok(());
                }
                let message = self.message(message).map_err(at)?;
                Err(at(Box::new(ErrorKind::Assert { kind: *kind, message })))
            }
            CodeKind::Print { parts } => {
                let line = self.message(parts).map_err(at)?;
                (self.lines)(&line);
                Ok(())
            }
            CodeKind::Assume { cond } => {
                if self.truth(cond).map_err(at)? {
                    Ok(())
                } else {
                    Err(at(Box::new(ErrorKind::Assumption)))
                }
            }
            CodeKind::Call { routine, slots, operands } => self.call(*routine, slots, operands).map_err(at),
            CodeKind::While { cond, body } => {
                while self.truth(cond).map_err(at)? {
                    self.block(body)?;
                }
                Ok(())
            }
        }
    }

    fn define(&mut self, slot: usize, value: &Node) -> Run<()> {
        let value = self.filled(value)?;
        self.cells[slot].stored = Some(vec![!value.of_fill]);
        self.write(slot, 0, value.value)
    }

    fn store(&mut self, slot: usize, indices: &[Node], value: &Node) -> Run<()> {
        let offset = self.offset(slot, indices)?;
        if self.follows[slot].is_some() {
            return self.store_following(slot, offset, value);
        }
        if self.inserts(slot) {
            return self.insert(slot, offset, value);
        }
        let value = self.eval(value)?;
        self.write(slot, offset, value)
    }

    fn reduce(&mut self, slot: usize, indices: &[Node], op: Op, value: &Node) -> Run<()> {
        let offset = self.offset(slot, indices)?;
        if self.follows[slot].is_some() {
            return self.reduce_following(slot, offset, op, value);
        }
        if self.inserts(slot) {
            return self.insert_reduced(slot, offset, op, value);
        }
        if let Node::Structured(value) = value {
            let value = self.filled(value)?;
            return self.reduce_filled(slot, offset, op, value);
        }
        let value = self.eval(value)?;
        let old = self.read(slot, offset)?;
        let new = scalar::apply(op, self.tensors[slot].dtype, &[old, value])?;
        self.write(slot, offset, new)
    }

    /// Allocates the tensor of a slot, with no element written.
    pub fn allocate(&mut self, slot: usize, shape: &[Node]) -> Run<()> {
        let tensor = self.tensors[slot];
        let name = || tensor.symbol.name().to_string();
        let mut sizes = Vec::with_capacity(shape.len());
        for (dim, node) in shape.iter().enumerate() {
            let size = self.size(slot, node)?;
            if size < 0 {
                return Err(Box::new(ErrorKind::NegativeSize { tensor: name(), dim, size }));
            }
            sizes.push(size);
        }
        let too_large = || Box::new(ErrorKind::TooLarge { tensor: name(), shape: sizes.clone() });
        let count = sizes.iter().try_fold(1i64, |count, n| count.checked_mul((*n).max(1)).filter(|c| *c <= MAX_SIZE));
        count.ok_or_else(|| Box::new(ErrorKind::SizeOverflow { tensor: name() }))?;
        let extents: Vec<usize> = sizes.iter().map(|n| *n as usize).collect();
        let len = element_count(&extents).ok_or_else(too_large)?;
        let cell = &mut self.cells[slot];
        if cell.data.len() != len {
            // Tries the allocation first, since a failed one would end the process.
            let bytes = len.checked_mul(tensor.dtype.size() + 1).ok_or_else(too_large)?;
            Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| too_large())?;
            cell.data = Buffer::zeros(tensor.dtype, len);
            cell.written = Some(vec![false; len]);
        } else if let Some(written) = &mut cell.written {
            written.fill(false);
        }
        cell.shape = sizes;
        self.follow(slot);
        if self.inserts(slot) {
            self.clear(slot);
        }
        Ok(())
    }

    /// Evaluates a size of a slot's tensor; unlike all other integer arithmetic, it checks for overflow.
    pub fn size(&self, slot: usize, node: &Node) -> Run<i64> {
        let checked = match node {
            Node::Binary(op @ (Op::Add | Op::Sub | Op::Mul), DType::I64, args) => {
                let (a, b) = (self.size(slot, &args[0])?, self.size(slot, &args[1])?);
                match op {
                    Op::Add => a.checked_add(b),
                    Op::Sub => a.checked_sub(b),
                    _ => a.checked_mul(b),
                }
            }
            Node::Binary(op, DType::I64, args) if !op.is_comparison() => {
                let [a, b] = [&args[0], &args[1]].map(|n| self.size(slot, n).map(|v| Literal::Int(i128::from(v))));
                match scalar::apply(*op, DType::I64, &[a?, b?])? {
                    Literal::Int(v) => i64::try_from(v).ok(),
                    _ => return mismatch(),
                }
            }
            Node::Unary(Op::Neg, DType::I64, a) => self.size(slot, a)?.checked_neg(),
            Node::Select(args) => Some(self.size(slot, if self.truth(&args[0])? { &args[1] } else { &args[2] })?),
            other => Some(self.int(other)?),
        };
        checked.ok_or_else(|| {
            let tensor = self.tensors[slot].symbol.name().to_string();
            Box::new(ErrorKind::SizeOverflow { tensor })
        })
    }

    fn range(&mut self, begin: &Node, end: &Node, step: &Node) -> Run<(i64, i64, i64)> {
        let (begin, end, step) = (self.int(begin)?, self.int(end)?, self.int(step)?);
        if step == 0 { Err(Box::new(ErrorKind::ZeroStep)) } else { Ok((begin, end, step)) }
    }

    fn message(&self, parts: &[ResolvedPart<'_>]) -> Run<String> {
        let mut text = String::new();
        for part in parts {
            match part {
                ResolvedPart::Text(t) => text.push_str(t),
                ResolvedPart::Value(node, dtype) => text.push_str(&show::value(self.eval(node)?, *dtype)),
                ResolvedPart::Tensor { slot, at, shape } => text.push_str(&self.shown(*slot, at, shape)?),
            }
        }
        Ok(text)
    }

    /// Formats the elements of the subtensor at some leading indices.
    fn shown(&self, slot: usize, at: &[Node], shape: &[Node]) -> Run<String> {
        let shape = shape.iter().map(|n| Ok(self.int(n)?.max(0) as usize)).collect::<Run<Vec<usize>>>()?;
        let dtype = self.tensors[slot].dtype;
        let below: usize = self.cells[slot].shape.iter().skip(at.len()).product::<i64>().max(0) as usize;
        // In a flat buffer, an empty tensor may start beyond the last element.
        let flat = at.len() + shape.len() != self.tensors[slot].ndim();
        if flat && shape.contains(&0) {
            return Ok("[]".to_string());
        }
        let start = self.offset(slot, at)? * below;
        show::tensor(&shape, &mut |k| Ok(show::value(self.read(slot, self.place(slot, start + k))?, dtype)))
    }

    /// Returns the row-major offset of an element.
    pub(super) fn offset(&self, slot: usize, indices: &[Node]) -> Run<usize> {
        let shape = &self.cells[slot].shape;
        let mut offset = 0;
        for (dim, node) in indices.iter().enumerate() {
            let (index, size) = (self.int(node)?, shape[dim]);
            if index < 0 || index >= size {
                let tensor = self.tensors[slot].symbol.name().to_string();
                return Err(Box::new(ErrorKind::Index { tensor, dim, index, size }));
            }
            offset = offset * size as usize + index as usize;
        }
        Ok(offset)
    }

    pub(super) fn read(&self, slot: usize, offset: usize) -> Run<Literal> {
        let cell = &self.cells[slot];
        if let Some(written) = &cell.written
            && !written[offset]
        {
            let tensor = self.tensors[slot].symbol.name().to_string();
            return Err(Box::new(ErrorKind::Uninitialised { tensor, indices: self.indices(slot, offset) }));
        }
        Ok(cell.data.get(offset))
    }

    /// Returns the indices of an element.
    pub(super) fn indices(&self, slot: usize, offset: usize) -> Vec<i64> {
        indices_at(&self.cells[slot].shape, offset)
    }

    pub(super) fn write(&mut self, slot: usize, offset: usize, value: Literal) -> Run<()> {
        let cell = &mut self.cells[slot];
        if let Some(written) = &mut cell.written {
            written[offset] = true;
        }
        if cell.data.set(offset, value) { Ok(()) } else { mismatch() }
    }

    /// Evaluates an expression of type i64. Most of the work is index arithmetic, so its operators avoid the detour
    /// through dynamically typed constants.
    pub fn int(&self, node: &Node) -> Run<i64> {
        Ok(match node {
            Node::Var(slot) => self.vars[*slot],
            Node::Const(Literal::Int(i)) => *i as i64,
            Node::Binary(Op::Add, DType::I64, args) => self.int(&args[0])?.wrapping_add(self.int(&args[1])?),
            Node::Binary(Op::Sub, DType::I64, args) => self.int(&args[0])?.wrapping_sub(self.int(&args[1])?),
            Node::Binary(Op::Mul, DType::I64, args) => self.int(&args[0])?.wrapping_mul(self.int(&args[1])?),
            _ => match self.eval(node)? {
                Literal::Int(i) => i as i64,
                _ => return mismatch(),
            },
        })
    }

    /// Evaluates an expression of type f64, with the shortcuts of `int`.
    fn float(&self, node: &Node) -> Run<f64> {
        Ok(match node {
            Node::Binary(Op::Add, DType::F64, args) => self.float(&args[0])? + self.float(&args[1])?,
            Node::Binary(Op::Sub, DType::F64, args) => self.float(&args[0])? - self.float(&args[1])?,
            Node::Binary(Op::Mul, DType::F64, args) => self.float(&args[0])? * self.float(&args[1])?,
            Node::Binary(Op::Div, DType::F64, args) => self.float(&args[0])? / self.float(&args[1])?,
            _ => match self.eval(node)? {
                Literal::Float(f) => f,
                _ => return mismatch(),
            },
        })
    }

    pub(super) fn truth(&self, node: &Node) -> Run<bool> {
        match self.eval(node)? {
            Literal::Bool(b) => Ok(b),
            _ => mismatch(),
        }
    }

    /// Evaluates an expression.
    pub(super) fn eval(&self, node: &Node) -> Run<Literal> {
        Ok(match node {
            Node::Const(v) => *v,
            Node::Var(slot) => Literal::Int(i128::from(self.vars[*slot])),
            Node::Load(slot, indices) => {
                let offset = self.offset(*slot, indices)?;
                self.read(*slot, offset)?
            }
            // Dense tensors store every element.
            Node::Unary(Op::Stored, _, a) => self.eval(a).map(|_| Literal::Bool(true))?,
            Node::Unary(op, dtype, a) => scalar::apply(*op, *dtype, &[self.eval(a)?])?,
            Node::Binary(Op::Add | Op::Sub | Op::Mul | Op::Div, DType::F64, _) => Literal::Float(self.float(node)?),
            Node::Binary(op, dtype, args) => {
                let [a, b] = &**args;
                scalar::apply(*op, *dtype, &[self.eval(a)?, self.eval(b)?])?
            }
            Node::Ternary(op, dtype, args) => {
                let [a, b, c] = &**args;
                scalar::apply(*op, *dtype, &[self.eval(a)?, self.eval(b)?, self.eval(c)?])?
            }
            Node::And(args) => Literal::Bool(self.truth(&args[0])? && self.truth(&args[1])?),
            Node::Or(args) => Literal::Bool(self.truth(&args[0])? || self.truth(&args[1])?),
            Node::Select(args) => return self.eval(if self.truth(&args[0])? { &args[1] } else { &args[2] }),
            Node::Cast(from, to, a) => scalar::cast(self.eval(a)?, *from, *to)?,
            Node::Structured(whole) => self.filled(whole)?.value,
        })
    }
}

impl From<scalar::Fault> for Box<ErrorKind> {
    fn from(fault: scalar::Fault) -> Box<ErrorKind> {
        Box::new(ErrorKind::Arithmetic(fault))
    }
}

/// Reports a constant that is not of its expression's type; resolving excludes all causes but wrong literals.
pub(super) fn mismatch<T>() -> Run<T> {
    Err(Box::new(ErrorKind::Malformed("a constant is not of its expression's type".to_string())))
}
