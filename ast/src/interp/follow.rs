//! Tensors stored over the pattern of a parameter: adjoints, and `pattern(A)`. An element outside of the pattern has
//! the fill value and is not written: such writes vanish in derivatives and are errors elsewhere, unless they are
//! identity updates. Where the parameter stores one value for several elements, so do adjoints, which sum the writes to
//! them. Elsewhere each element has its own value; in the end, elements that share a stored value must be equal.

use super::Inputs;
use super::error::ErrorKind;
use super::machine::{Machine, Run};
use super::resolve::Node;
use crate::algebra::leaves_fill;
use crate::literal::Literal;
use crate::op::Op;
use crate::show;
use crate::value::Value;

impl Machine<'_> {
    /// Returns whether an element is stored: those that the program stored, and the region around them.
    pub(super) fn stores(&self, slot: usize, offset: usize) -> bool {
        let slot = self.follows[slot].unwrap_or(slot);
        let (cell, format) = (&self.cells[slot], &self.tensors[slot].format);
        if self.inserts(slot) && format.stores_regions() { cell.covers(format, offset) } else { cell.stores(offset) }
    }

    /// Returns the offset at which an element's value is kept.
    pub(super) fn place(&self, slot: usize, offset: usize) -> usize {
        match self.follows[slot] {
            Some(of) if self.sums(slot) => self.cells[of].first(offset),
            Some(_) => offset,
            None => self.image(slot, offset),
        }
    }

    fn sums(&self, slot: usize) -> bool {
        self.tensors[slot].format.sums
    }

    /// Checks, after the last write, that elements sharing a stored value are equal.
    pub(super) fn check_shared_equal(&self, slot: usize) -> Run<()> {
        let Some(of) = self.follows[slot].filter(|_| !self.sums(slot)) else { return Ok(()) };
        let Some((offset, values)) = self.cells[slot].unequal(&self.cells[of]) else { return Ok(()) };
        let (tensor, indices) = (self.tensors[slot].symbol.name().to_string(), self.indices(slot, offset));
        let [value, other] = values.map(|v| show::value(v, self.tensors[slot].dtype));
        Err(Box::new(ErrorKind::Unequal { tensor, indices, value, other }))
    }

    /// Initialises the elements of a fresh tensor that are outside of the pattern to the fill.
    pub(super) fn follow(&mut self, slot: usize) {
        let Some(of) = self.follows[slot] else { return };
        let fill = self.fill(slot);
        let [cell, of] = match self.cells.get_disjoint_mut([slot, of]) {
            Ok(both) => both,
            Err(_) => unreachable!("a tensor does not follow itself"),
        };
        cell.fill_outside(of, fill, self.tensors[slot].format.sums);
    }

    pub(super) fn fill(&self, slot: usize) -> Literal {
        let tensor = self.tensors[slot];
        tensor.format.fill.unwrap_or(Literal::zero(tensor.dtype))
    }

    pub(super) fn store_following(&mut self, slot: usize, offset: usize, value: &Node) -> Run<()> {
        if self.stores(slot, offset) {
            let value = self.eval(value)?;
            return self.write(slot, self.place(slot, offset), value);
        }
        let fill = self.fill(slot);
        self.write_outside(slot, offset, value, &|known| known == Some(fill))
    }

    pub(super) fn reduce_following(&mut self, slot: usize, offset: usize, op: Op, value: &Node) -> Run<()> {
        if self.stores(slot, offset) {
            let (value, place) = (self.filled(value)?, self.place(slot, offset));
            return self.reduce_filled(slot, place, op, value);
        }
        let (dtype, fill) = (self.tensors[slot].dtype, self.fill(slot));
        self.write_outside(slot, offset, value, &|known| leaves_fill(op, dtype, fill, known))
    }

    /// Handles a write to an element that is not stored. `keeps` returns whether a value, if it is known at compile
    /// time, leaves the element unchanged.
    fn write_outside(
        &mut self,
        slot: usize,
        offset: usize,
        value: &Node,
        keeps: &dyn Fn(Option<Literal>) -> bool,
    ) -> Run<()> {
        if self.tensors[slot].format.drops {
            return Ok(());
        }
        let v = self.filled(value)?;
        if keeps(self.is_known(&v, value)?.then_some(v.value)) {
            return Ok(());
        }
        let (tensor, indices) = (self.tensors[slot].symbol.name().to_string(), self.indices(slot, offset));
        Err(Box::new(ErrorKind::Outside { tensor, indices }))
    }

    /// Returns a result over a sparse parameter's pattern as its stored elements.
    pub(super) fn sampled(&self, slot: usize, inputs: &Inputs) -> Option<Value> {
        let of = self.follows[slot]?;
        let cell = &self.cells[slot];
        let whole = if self.sums(slot) { cell.spread(&self.cells[of]) } else { cell.value() }?;
        whole.sampled(&inputs.params[of])
    }
}
