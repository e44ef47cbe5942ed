//! Writes that are run twice ([`crate::assemble`]'s `passes`): those of the first pass record an element's coordinates,
//! those of the second one enter it.

use super::cursor::PATH;
use super::exprs::load;
use super::nest::LoopBuilder;
use super::remapping::{Pass, Remapping};
use super::reserve::is_fixed;
use super::scalars::scalar;
use super::state::Lower;
use crate::access;
use crate::assemble::Passes;
use crate::level_assembly::{AssembledArrays, Path, assume, iterator_of, range, set, store_at};
use crate::levels::compressed;
use std::sync::Arc;
use taffeta_ast::stmt::Routine;
use taffeta_ast::{Expr, Origin, Stmt, StmtKind, Symbol, Tensor};

impl Lower {
    /// Registers the passes over the writes of a tensor, whose arrays are registered already.
    pub(super) fn add_passes(&mut self, passes: &Passes) {
        let tensor = &passes.tensor;
        let Some(assembly) = self.tensors[&tensor.symbol].assembly.clone() else { return };
        let remapping = Arc::new(Remapping::new(tensor, &tensor.format, &assembly));
        for (written, counts) in passes.written.iter().zip([true, false]) {
            let dims = written.format.order().unwrap_or_default();
            let sorts = passes.are_sorted && !counts;
            let pass = Pass { tensor: tensor.symbol.clone(), counts, sorts, dims, remapping: remapping.clone() };
            self.passes.insert(written.symbol.clone(), pass);
            let dims = (0..tensor.shape.len()).collect();
            self.stands_for.get_mut().insert(written.symbol.clone(), (tensor.symbol.clone(), dims));
        }
    }

    /// Holds the counters that writes in the body of a loop use in scalars, where each has one place in all iterations:
    /// returns the scalars, and the statements before and after the loop. They are registered until then.
    pub(super) fn hold_counters(&mut self, nest: &LoopBuilder<'_>, body: &Stmt) -> (Vec<Arc<Tensor>>, [Vec<Stmt>; 2]) {
        let mut places: Vec<(Arc<Tensor>, Expr)> = Vec::new();
        let mut moving: Vec<Symbol> = Vec::new();
        body.walk(&mut |s| {
            let Some(target) = access::target(s) else { return };
            let Some((fibre, at)) = load(&target) else { return };
            let Some(pass) = self.fibres.get(fibre).and_then(|(list, _)| self.passes.get(list)) else { return };
            let indices: Vec<Expr> = at[PATH..].iter().map(|a| a.index.clone()).collect();
            for (counter, [place, size]) in pass.places(&indices) {
                match places.iter().find(|(other, _)| other.symbol == counter.symbol) {
                    Some((_, other)) if *other == place => {}
                    Some(_) => moving.push(counter.symbol.clone()),
                    // A place out of range has no elements, or the first of them fails: it is not read before.
                    None if is_fixed(&place, nest, body)
                        && self.is_coordinate(&place, &size, &nest.inside)
                        && !self.held.contains_key(&counter.symbol) =>
                    {
                        places.push((counter, place));
                    }
                    None => moving.push(counter.symbol.clone()),
                }
            }
        });
        places.retain(|(counter, _)| !moving.contains(&counter.symbol));
        let (mut scalars, mut around) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (counter, place) in places {
            let held = scalar(format!("{}.held", counter.symbol.name().replace('.', "_")));
            let origin = nest.s.origin().derive("structured", "counter");
            around[0].push(set(&held, counter.load([place.clone()]), &origin));
            let (count, limit) = (held.load([]), Expr::int(taffeta_ast::value::MAX_SIZE));
            around[0].push(assume(Expr::int(0).less_eq(&count).and(&count.less(&limit)), &origin));
            around[1].push(store_at(&counter, &place, held.load([]), origin));
            self.held.insert(counter.symbol.clone(), held.clone());
            scalars.push(held);
        }
        (scalars, around)
    }

    /// Builds the loop that sorts the fibres of a tensor's last level, a list.
    pub(super) fn sorted_fibres(&self, tensor: &Symbol, origin: &Origin) -> Option<Stmt> {
        let flat = &self.tensors[tensor];
        let own = flat.assembly.as_ref()?.levels.last()?;
        let [pos, crd] = [compressed::POS, compressed::CRD].map(|k| &own.level.arrays[k]);
        let p = iterator_of(&pos.symbol, "p");
        let first = Expr::var(&p);
        let operands = [first.clone(), first.plus(&Expr::int(1))].map(|p| own.level.load(compressed::POS, &p));
        let tensors = vec![crd.symbol.clone(), flat.values.symbol.clone()];
        let call = StmtKind::Call { routine: Routine::Sort, tensors, operands: operands.to_vec() };
        let call = Stmt::new(call, origin.derive("structured", "sort"));
        Some(range(&p, [Expr::int(0), own.parents.clone()], call, origin))
    }

    /// Returns the counters of the tensor that a program makes in two passes.
    pub(super) fn counters(&self, tensor: &Symbol) -> Vec<Arc<Tensor>> {
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
