//! Runs resolved code, statement by statement. Every element's index and initialisation is checked.

use super::error::{ErrorKind, RuntimeError};
use super::resolve::{Code, CodeKind, Node, Part};
use crate::dtype::DType;
use crate::expr::Literal;
use crate::op::Op;
use crate::stmt::Tensor;
use crate::value::{Buffer, MAX_SIZE, Value, element_count};
use crate::{scalar, show};

/// A tensor in memory. The shape is kept while the tensor is not alive, so that the memory can be used again.
#[derive(Debug)]
pub(super) struct Cell {
    shape: Vec<i64>,
    data: Buffer,
    /// Which elements were written; `None` where the caller gave all of them.
    written: Option<Vec<bool>>,
    /// Which elements are stored; `None` where all are.
    stored: Option<Vec<bool>>,
    /// For each element the first one that is stored as the same value; `None` where each has its own.
    shared: Option<Vec<usize>>,
}

impl Cell {
    /// A tensor with contents.
    pub fn given(value: Value) -> Cell {
        let (shape, data) = value.into_parts();
        Cell { shape: shape.into_iter().map(|n| n as i64).collect(), data, written: None, stored: None, shared: None }
    }

    /// A tensor of which these elements are stored, some of them as one value.
    pub fn partly((value, stored): (Value, Vec<bool>), shared: Option<Vec<usize>>) -> Cell {
        Cell { stored: Some(stored), shared, ..Cell::given(value) }
    }

    /// No tensor yet.
    pub fn empty(dtype: DType) -> Cell {
        Cell { shape: Vec::new(), data: Buffer::zeros(dtype, 0), written: Some(Vec::new()), stored: None, shared: None }
    }

    /// Its size in a dimension.
    pub fn size(&self, dim: usize) -> i64 {
        self.shape[dim]
    }

    /// Whether the element at that place is stored.
    pub fn stores(&self, offset: usize) -> bool {
        self.stored.as_ref().is_none_or(|s| s[offset])
    }

    /// The first element that is stored as the same value.
    pub fn first(&self, offset: usize) -> usize {
        self.shared.as_ref().map_or(offset, |s| s[offset])
    }

    /// Makes what another tensor does not store the fill; of one whose elements are what they would be alone, all of
    /// it. What is stored as the value of another element counts as written too, in one that `sums`.
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

    /// Stores nothing in it: all of it is the fill, and nothing is written yet.
    pub fn clear(&mut self, fill: Literal) {
        let len = self.data.len();
        for k in 0..len {
            self.data.set(k, fill);
        }
        (self.stored, self.written) = (Some(vec![false; len]), Some(vec![false; len]));
    }

    /// Stores an element.
    pub fn insert(&mut self, offset: usize) {
        if let Some(stored) = &mut self.stored {
            stored[offset] = true;
        }
    }

    /// Notes that an element was written, and is what it is.
    pub fn keep(&mut self, offset: usize) {
        if let Some(written) = &mut self.written {
            written[offset] = true;
        }
    }

    /// The tensor with the value of each element at it.
    pub fn spread(&self, of: &Cell) -> Option<Value> {
        let mut data = self.data.clone();
        for k in 0..data.len() {
            data.set(k, self.data.get(of.first(k)));
        }
        Value::new(self.shape.iter().map(|n| *n as usize).collect(), data)
    }

    /// The first element that is not what the last one is that is stored as the same value, with both.
    pub fn unequal(&self, of: &Cell) -> Option<(usize, [Literal; 2])> {
        let shared = of.shared.as_ref()?;
        let mut last = self.data.clone();
        for (k, stored) in shared.iter().enumerate() {
            last.set(*stored, self.data.get(k));
        }
        let all = (0..self.data.len()).filter(|k| of.stores(*k)).map(|k| (k, [self.data.get(k), last.get(shared[k])]));
        all.into_iter().find(|(_, [a, b])| !a.is_same(*b))
    }

    /// The tensor as it is.
    pub fn value(&self) -> Option<Value> {
        Value::new(self.shape.iter().map(|n| *n as usize).collect(), self.data.clone())
    }

    /// The tensor as the caller sees it, and which elements were never written.
    pub fn finish(self) -> (Option<Value>, Vec<usize>) {
        let holes = self.written.iter().flatten().enumerate().filter(|(_, w)| !**w).map(|(i, _)| i).collect();
        (Value::new(self.shape.into_iter().map(|n| n as usize).collect(), self.data), holes)
    }
}

/// The state of a running program.
pub(super) struct Machine<'a> {
    pub tensors: &'a [&'a Tensor],
    /// The tensor over whose pattern each is stored, for those that have none of their own.
    pub follows: &'a [Option<usize>],
    pub cells: Vec<Cell>,
    /// Sizes and iterators.
    pub vars: Vec<i64>,
    /// Takes the lines that are printed.
    pub lines: &'a mut dyn FnMut(&str),
}

/// Errors are rare and big: boxed, they keep results small.
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
            CodeKind::Release { slot } => self.agree(*slot).map_err(at),
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

    /// Makes room for the tensor of a slot, with nothing written in it.
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
            // Asked for first, as a failed allocation would end the process.
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

    /// A size of the tensor of a slot: computed without wrapping, unlike all other integers.
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

    fn message(&self, parts: &[Part<'_>]) -> Run<String> {
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Text(t) => text.push_str(t),
                Part::Value(node, dtype) => text.push_str(&show::value(self.eval(node)?, *dtype)),
                Part::Tensor { slot, at, shape } => text.push_str(&self.shown(*slot, at, shape)?),
            }
        }
        Ok(text)
    }

    /// The elements of a tensor below its first indices.
    fn shown(&self, slot: usize, at: &[Node], shape: &[Node]) -> Run<String> {
        let shape = shape.iter().map(|n| Ok(self.int(n)?.max(0) as usize)).collect::<Run<Vec<usize>>>()?;
        let dtype = self.tensors[slot].dtype;
        let below: usize = self.cells[slot].shape.iter().skip(at.len()).product::<i64>().max(0) as usize;
        // On flat buffers nothing stands where no elements begin.
        let flat = at.len() + shape.len() != self.tensors[slot].ndim();
        if flat && shape.contains(&0) {
            return Ok("[]".to_string());
        }
        let start = self.offset(slot, at)? * below;
        show::tensor(&shape, &mut |k| Ok(show::value(self.read(slot, self.place(slot, start + k))?, dtype)))
    }

    /// The place of an element in memory.
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

    /// The indices of an element.
    pub(super) fn indices(&self, slot: usize, offset: usize) -> Vec<i64> {
        let shape = &self.cells[slot].shape;
        let mut rest = offset as i64;
        let mut indices: Vec<i64> = Vec::with_capacity(shape.len());
        for size in shape.iter().rev() {
            indices.push(rest % size);
            rest /= size;
        }
        indices.reverse();
        indices
    }

    pub(super) fn write(&mut self, slot: usize, offset: usize, value: Literal) -> Run<()> {
        let cell = &mut self.cells[slot];
        if let Some(written) = &mut cell.written {
            written[offset] = true;
        }
        if cell.data.set(offset, value) { Ok(()) } else { mismatch() }
    }

    /// The value of an expression of type i64. Indices are most of what is computed, so the operators that they are
    /// made of do without the detour by constants of any type.
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

    /// The value of an expression of type f64, likewise.
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

    /// The value of an expression.
    pub(super) fn eval(&self, node: &Node) -> Run<Literal> {
        Ok(match node {
            Node::Const(v) => *v,
            Node::Var(slot) => Literal::Int(i128::from(self.vars[*slot])),
            Node::Load(slot, indices) => {
                let offset = self.offset(*slot, indices)?;
                self.read(*slot, offset)?
            }
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

/// A constant that is not of its expression's type; resolving has excluded all but wrong literals.
pub(super) fn mismatch<T>() -> Run<T> {
    Err(Box::new(ErrorKind::Malformed("a constant is not of its expression's type".to_string())))
}
