//! Results and local tensors with a pattern of their own: nothing is stored at the declaration, and an element is
//! stored from its first effective write on. Unwritten elements must not be read, as everywhere, so that a declaration
//! may be moved out of a loop. A write to an element that is not stored has no effect if its value is known at compile
//! time or derives from fills, and would leave the element unchanged.

use super::error::ErrorKind;
use super::fill::Filled;
use super::machine::{Machine, Run};
use super::resolve::Node;
use crate::algebra::leaves_fill;
use crate::format::{Coord, Level, LevelKind};
use crate::op::Op;
use crate::stmt::Role;
use crate::value::Value;
use rustc_hash::FxHashMap;

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
    pub(super) fn inserted(&self, slot: usize) -> Run<Option<Value>> {
        if !self.inserts(slot) {
            return Ok(None);
        }
        let cell = &self.cells[slot];
        let Some(value) = cell.value() else { return Ok(None) };
        if self.tensors[slot].format.is_symmetric() {
            return Ok(Some(self.mirrored(slot, value)));
        }
        Ok(Some(value.only(self.fill(slot), |k| cell.stores(k))))
    }

    /// Returns the offset of an element's mirror images in a symmetric tensor, and its own.
    fn images(&self, slot: usize, offset: usize) -> Vec<usize> {
        let (shape, format) = (&self.tensors[slot].shape, &self.tensors[slot].format);
        let size = |d: usize| self.cells[slot].size(d) as usize;
        let offset_of = |at: &Vec<i64>| (0..shape.len()).fold(0, |o, d| o * size(d) + at[d] as usize);
        format.others(&self.indices(slot, offset)).iter().map(offset_of).collect()
    }

    /// Returns the offset of the element that was stored for an element and its mirror images; its own, if none was.
    pub(super) fn image(&self, slot: usize, offset: usize) -> usize {
        let cell = &self.cells[slot];
        if cell.stores(offset) || !self.tensors[slot].format.is_symmetric() || !self.inserts(slot) {
            return offset;
        }
        self.images(slot, offset).into_iter().find(|k| cell.stores(*k)).unwrap_or(offset)
    }

    /// Returns a symmetric result with the mirror images of all stored elements.
    fn mirrored(&self, slot: usize, mut value: Value) -> Value {
        let cell = &self.cells[slot];
        let mut stored = vec![false; value.data().len()];
        for k in (0..stored.len()).filter(|k| cell.stores(*k)) {
            for other in self.images(slot, k) {
                stored[other] = true;
                value.data_mut().set(other, cell.value_at(k));
            }
        }
        value.only(self.fill(slot), |k| stored[k])
    }

    /// Checks, after the last write, that a tensor holds the elements that were stored: those that share a value are
    /// equal, and there is one at most in a fibre of a level `point`.
    pub(super) fn check_held(&self, slot: usize) -> Run<()> {
        self.check_shared_equal(slot)?;
        if !self.inserts(slot) {
            return Ok(());
        }
        self.check_points(slot)?;
        let cell = &self.cells[slot];
        if !self.tensors[slot].format.is_symmetric() {
            return Ok(());
        }
        for k in (0..cell.len()).filter(|k| cell.stores(*k)) {
            let differs = |other: &usize| cell.stores(*other) && !cell.value_at(k).is_same(cell.value_at(*other));
            if let Some(other) = self.images(slot, k).into_iter().find(differs) {
                let text = "stores one value for it and its mirror image, which differ";
                return Err(self.misfit(slot, k.max(other), |l| l.kind == LevelKind::Symmetric, text));
            }
        }
        Ok(())
    }

    /// Checks that a fibre of a level `point` has one element at most.
    fn check_points(&self, slot: usize) -> Run<()> {
        let (cell, format) = (&self.cells[slot], &self.tensors[slot].format);
        let points = format.levels.iter().enumerate().filter(|(_, l)| l.kind == LevelKind::Point).map(|(k, _)| k);
        for level in points {
            let mut seen: FxHashMap<Vec<i64>, i64> = FxHashMap::default();
            for k in (0..cell.len()).filter(|k| cell.stores(*k)) {
                let at = self.indices(slot, k);
                let coordinate = |c: &Coord| c.value(&at).unwrap_or(0);
                let above = format.coords[..level].iter().map(coordinate).collect();
                let own = coordinate(&format.coords[level]);
                if *seen.entry(above).or_insert(own) != own {
                    return Err(self.misfit(slot, k, |l| l.kind == LevelKind::Point, "stores another one there"));
                }
            }
        }
        Ok(())
    }

    /// Makes the error of an element that a level cannot hold.
    fn misfit(&self, slot: usize, offset: usize, is: impl Fn(&Level) -> bool, text: &'static str) -> Box<ErrorKind> {
        let tensor = self.tensors[slot];
        let (name, indices) = (tensor.symbol.name().to_string(), self.indices(slot, offset));
        let level = tensor.format.levels.iter().copied().find(|l| is(l)).unwrap_or(Level::new(LevelKind::Dense));
        Box::new(ErrorKind::Misfit { tensor: name, indices, level, text })
    }

    /// Checks that an element is not outside of a triangle.
    fn check_inside(&self, slot: usize, offset: usize) -> Run<()> {
        let format = &self.tensors[slot].format;
        let is_half = |l: &Level| matches!(l.kind, LevelKind::LowerTriangular | LevelKind::UpperTriangular);
        if format.levels.iter().any(is_half) && format.stored_for(&self.indices(slot, offset)).is_none() {
            return Err(self.misfit(slot, offset, is_half, "stores nothing there"));
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, slot: usize, offset: usize, value: &Node) -> Run<()> {
        let (v, fill) = (self.filled(value)?, self.fill(slot));
        if !self.cells[slot].stores(offset) && self.is_known(&v, value)? && v.value == fill {
            self.cells[slot].keep(offset);
            return Ok(());
        }
        self.check_inside(slot, offset)?;
        self.cells[slot].insert(offset);
        self.write(slot, offset, v.value)
    }

    pub(super) fn insert_reduced(&mut self, slot: usize, offset: usize, op: Op, value: &Node) -> Run<()> {
        let v = self.filled(value)?;
        let known = self.is_known(&v, value)?.then_some(v.value);
        if !self.cells[slot].stores(offset) && leaves_fill(op, self.tensors[slot].dtype, self.fill(slot), known) {
            return Ok(());
        }
        self.check_inside(slot, offset)?;
        self.cells[slot].insert(offset);
        self.reduce_filled(slot, offset, op, v)
    }

    /// Returns whether a value comes from constants and fills alone.
    pub(super) fn is_known(&self, v: &Filled, node: &Node) -> Run<bool> {
        Ok(v.of_fill || self.is_constant(node)?)
    }
}
