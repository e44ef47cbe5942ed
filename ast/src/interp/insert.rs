//! Results and local tensors with a pattern of their own: nothing is stored at the declaration, and an element is
//! stored from its first effective write on. Unwritten elements must not be read, as everywhere, so that a declaration
//! may be moved out of a loop. A write to an element that is not stored has no effect if its value is known at compile
//! time or derives from fills, and would leave the element unchanged.

use super::fill::Filled;
use super::machine::{Machine, Run};
use super::resolve::Node;
use crate::algebra::leaves_fill;
use crate::op::Op;
use crate::stmt::Role;
use crate::value::Value;

impl Machine<'_> {
    /// Returns whether elements are inserted into a tensor.
    pub(super) fn inserts(&self, slot: usize) -> bool {
        let tensor = self.tensors[slot];
        tensor.role != Role::Input && self.follows[slot].is_none() && !tensor.format.is_dense()
    }

    /// Initialises a fresh tensor: no element is stored.
    pub(super) fn clear(&mut self, slot: usize) {
        let fill = self.fill(slot);
        self.cells[slot].clear(fill);
    }

    /// Returns a result with a pattern of its own as its stored elements.
    pub(super) fn inserted(&self, slot: usize) -> Option<Value> {
        if !self.inserts(slot) {
            return None;
        }
        let cell = &self.cells[slot];
        Some(cell.value()?.only(self.fill(slot), |k| cell.stores(k)))
    }

    pub(super) fn insert(&mut self, slot: usize, offset: usize, value: &Node) -> Run<()> {
        let (v, fill) = (self.filled(value)?, self.fill(slot));
        if !self.stores(slot, offset) && is_known(&v, value) && v.value == fill {
            self.cells[slot].keep(offset);
            return Ok(());
        }
        self.cells[slot].insert(offset);
        self.write(slot, offset, v.value)
    }

    pub(super) fn insert_reduced(&mut self, slot: usize, offset: usize, op: Op, value: &Node) -> Run<()> {
        let v = self.filled(value)?;
        let known = is_known(&v, value).then_some(v.value);
        if !self.stores(slot, offset) && leaves_fill(op, self.tensors[slot].dtype, self.fill(slot), known) {
            return Ok(());
        }
        self.cells[slot].insert(offset);
        self.reduce_filled(slot, offset, op, v)
    }
}

/// Returns whether a value is known at compile time.
fn is_known(v: &Filled, node: &Node) -> bool {
    v.of_fill || matches!(node, Node::Const(_))
}
