//! Writes that are run twice ([`crate::assemble`]'s `passes`): those of the first pass record an element's coordinates,
//! those of the second one enter it.

use super::remapping::Remapping;
use super::state::Lower;
use crate::assemble::Passes;
use crate::level_assembly::{AssembledArrays, Path};
use std::sync::Arc;
use taffeta_ast::{Expr, Origin, Stmt, Symbol};

/// Pass over the writes of a tensor.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    /// Tensor.
    pub(super) tensor: Symbol,
    /// Whether elements are counted, rather than entered.
    pub(super) counts: bool,
    /// Dimension of each coordinate of the writes.
    dims: Vec<usize>,
    pub(super) remapping: Arc<Remapping>,
}

impl Pass {
    /// Returns the coordinates of an element's levels, and the statements that count it behind its write.
    pub(super) fn coordinates(&self, at: &[Expr], origin: &Origin) -> (Vec<Expr>, Vec<Stmt>) {
        let mut at: Vec<(usize, Expr)> = self.dims.iter().copied().zip(at.iter().cloned()).collect();
        at.sort_by_key(|(d, _)| *d);
        let at: Vec<Expr> = at.into_iter().map(|(_, index)| index).collect();
        (self.remapping.coordinates(&at), self.remapping.counted(&at, origin))
    }
}

impl Lower {
    /// Registers the passes over the writes of a tensor, whose arrays are registered already.
    pub(super) fn add_passes(&mut self, passes: &Passes) {
        let tensor = &passes.tensor;
        let Some(assembly) = self.tensors[&tensor.symbol].assembly.clone() else { return };
        let remapping = Arc::new(Remapping::new(tensor, &tensor.format, &assembly));
        for (written, counts) in passes.written.iter().zip([true, false]) {
            let dims = written.format.order().unwrap_or_default();
            let pass = Pass { tensor: tensor.symbol.clone(), counts, dims, remapping: remapping.clone() };
            self.passes.insert(written.symbol.clone(), pass);
            let dims = (0..tensor.shape.len()).collect();
            self.stands_for.get_mut().insert(written.symbol.clone(), (tensor.symbol.clone(), dims));
        }
    }

    /// Returns the counters of the tensor that a program makes in two passes.
    pub(super) fn counters(&self, tensor: &Symbol) -> Vec<Arc<taffeta_ast::Tensor>> {
        let pass = self.passes.values().find(|pass| pass.counts && pass.tensor == *tensor);
        pass.map_or_else(Vec::new, |pass| pass.remapping.counters().cloned().collect())
    }
}

/// Builds the statements that record the coordinates of an element, level by level.
pub(super) fn queries(tensor: &Symbol, assembly: &AssembledArrays, coordinates: &[Expr], origin: &Origin) -> Vec<Stmt> {
    let last = assembly.levels.iter().rposition(|own| own.how.has_query()).unwrap_or(0);
    let mut path = Path::new(tensor, assembly, coordinates, origin);
    for ((k, own), coordinate) in assembly.levels.iter().enumerate().zip(coordinates).take(last + 1) {
        match own.how.has_query() {
            true => own.how.query(&mut path, k, coordinate),
            false if own.how.is_computed() => own.how.enter(&mut path, k, coordinate),
            false => {}
        }
        path.coordinate = coordinate.clone();
    }
    path.all
}
