//! Writes that append: to tensors that the program makes, each element once and in the order of the levels
//! ([`crate::assemble`]).
//!
//! ```text
//! C[i, j] = v          for r in range(C.opened1, i + 1): C.pos1[r] = C.n1    first positions of rows without elements
//!                 →    C.opened1 = i + 1
//!                      grow(C.room1, C.crd1, C.val, C.n1 + 1)
//!                      C.crd1[C.n1] = j; C.val[C.n1] = v
//!                      C.n1 += 1
//! ```
//!
//! A list above another one gets an entry with the first element below it. After the last write, the remaining first
//! positions are set, and the arrays are made as long as they have elements. The arrays of results are made for the
//! caller (`Func::made`).

use super::cursor::{PATH, above};
use super::exprs::load;
use super::passes::queries;
use super::state::{Bindings, Lower};
use crate::access;
use crate::assemble::Assembled;
use crate::layout::{LevelLayout, Making, TensorLevels};
use crate::level_assembly::{AssembledArrays, AssembledLevel, Path, counted, largest, set};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::pass::copy;
use taffeta_ast::stmt::{AssertKind, MessagePart, Role};
use taffeta_ast::{DType, Expr, Origin, Stmt, StmtKind, Symbol, Tensor};

impl Lower {
    /// Registers the tensors that the program makes, and returns the arrays of its results.
    pub(super) fn appended(&mut self, assembled: &Assembled) -> Vec<Arc<Tensor>> {
        let mut made = Vec::new();
        for (tensor, complete) in &assembled.tensors {
            let is = |t: &Tensor| t.symbol == tensor.symbol;
            let is_list = assembled.collected.iter().any(|c| is(&c.list))
                || assembled.passes.iter().any(|p| p.written.iter().any(|t| is(t)));
            let is_scattered = assembled.passes.iter().any(|p| p.is_scattered && is(&p.tensor));
            let making = match (is_list, is_scattered) {
                (true, _) => Making::List,
                (false, true) => Making::Scattered,
                (false, false) => Making::Elements,
            };
            let Some(flat) = TensorLevels::made(tensor, making) else { continue };
            if tensor.role == Role::Result {
                made.extend(flat.arrays().into_iter().map(|a| a.tensor));
                self.made.push(tensor.symbol.clone());
            }
            if let Some(id) = complete {
                self.complete.entry(*id).or_default().push(tensor.symbol.clone());
            }
            self.declare(tensor, flat);
        }
        self.any_order.clone_from(&assembled.any_order);
        self.repeated.clone_from(&assembled.repeated);
        self.once.clone_from(&assembled.once);
        assembled.passes.iter().for_each(|passes| self.add_passes(passes));
        for c in &assembled.collected {
            self.collected.insert(c.list.symbol.clone(), (c.tensor.clone(), c.op));
            let dims = (0..c.list.shape.len()).collect();
            self.stands_for.get_mut().insert(c.list.symbol.clone(), (c.tensor.clone(), dims));
        }
        assembled.warnings.iter().for_each(|d| self.warn(d.clone()));
        for (row, of, dim) in &assembled.workspaces {
            let keeps_order =
                assembled.tensors.iter().any(|(t, _)| t.symbol == *of && t.format.is_listed_in_any_order());
            let rows = if keeps_order { &mut self.unsorted } else { &mut self.sorted };
            rows.get_mut().insert(row.clone());
            self.stands_for.get_mut().insert(row.clone(), (of.clone(), vec![*dim]));
        }
        made
    }

    /// Returns whether elements are appended to a tensor.
    pub(super) fn appends(&self, tensor: &Symbol) -> bool {
        self.tensors.get(tensor).is_some_and(|flat| flat.assembly.is_some())
    }

    /// Inserts the statements that complete tensors behind their last writes.
    pub(super) fn completed(&self, s: &Stmt) -> Stmt {
        if self.complete.is_empty() {
            return s.clone();
        }
        let inner = match s.kind() {
            StmtKind::Seq(all) => Stmt::seq(all.iter().map(|s| self.completed(s)), s.origin().clone()),
            _ => s.map(&mut |s| self.completed(s), &mut Expr::clone),
        };
        let Some(all) = self.complete.get(&s.id()) else { return inner };
        let origin = s.origin().derive("structured", "complete");
        let last = all.iter().map(|tensor| self.completed_one(tensor, &origin));
        Stmt::seq(std::iter::once(inner).chain(last), origin.clone())
    }

    /// Builds the statements that complete a tensor, or a pass over its writes.
    fn completed_one(&self, tensor: &Symbol, origin: &Origin) -> Stmt {
        match (self.collected.get(tensor), self.passes.get(tensor)) {
            (Some((of, op)), _) => self.assembled_from(tensor, of, *op, origin),
            (None, Some(pass)) if pass.counts => {
                let flat = &self.tensors[&pass.tensor];
                let decided = flat.assembly.as_ref().map_or_else(Vec::new, |all| all.decided(origin));
                Stmt::seq(decided.into_iter().chain(pass.remapping.restarted(origin)), origin.clone())
            }
            (None, Some(pass)) => {
                let sorted = pass.sorts.then(|| self.sorted_fibres(&pass.tensor, origin)).flatten();
                Stmt::seq([self.closed(&pass.tensor, origin)].into_iter().chain(sorted), origin.clone())
            }
            (None, None) => self.closed(tensor, origin),
        }
    }

    /// Builds the statements that complete a tensor's levels, and make the arrays as long as they have elements.
    pub(super) fn closed(&self, tensor: &Symbol, origin: &Origin) -> Stmt {
        let flat = &self.tensors[tensor];
        let Some(assembly) = &flat.assembly else { return Stmt::nop() };
        let mut all = Vec::new();
        for (k, own) in assembly.levels.iter().enumerate() {
            let kind = own.how;
            if own.opened.is_some() {
                let end = own.parents.plus(&Expr::int(1));
                all.extend(assembly.opened(kind, (tensor, k), &end, origin));
                if assembly.may_mark(kind, k) {
                    let (iter, ends) = assembly.collected_ends(k, origin);
                    self.ends.borrow_mut().insert(iter, tensor.clone());
                    all.push(ends);
                }
                let hidden = own.counts.iter().take(own.level.hidden.len());
                all.extend(hidden.filter_map(|n| counted(tensor, &n.load([]), own.level.arrays[0].dtype, origin)));
            }
            all.extend(kind.close(assembly, k, origin));
        }
        all.extend(assembly.fitted(origin));
        Stmt::seq(all, origin.clone())
    }

    /// Returns whether a loop collects ends of fibres that no element marks.
    fn collects_nothing(&self, iter: &Symbol) -> bool {
        self.ends.borrow().get(iter).is_some_and(|tensor| !self.marked.borrow().contains_key(tensor))
    }

    /// Lowers the write of an element that is appended.
    pub(super) fn append(&mut self, s: &Stmt, element: &Expr, bound: &Bindings) -> Stmt {
        let Some((fibre, at)) = load(element) else { return s.clone() };
        let (written, from) = self.fibres[fibre].clone();
        let flat = self.tensors[&written].clone();
        let (mut all, mut below) = (Vec::new(), element.clone());
        for _ in from..flat.levels.len() {
            all.extend(self.range_checks(s, &below, &Expr::bool(true), bound));
            below = self.below(&below, Expr::int(0));
        }
        let s = self.filled(s, []);
        if s.is_nop() {
            return Stmt::nop();
        }
        let origin = s.origin().derive("structured", "append");
        let indices: Vec<Expr> = at[PATH..].iter().map(|a| a.index.clone()).collect();
        let pass = self.passes.get(&written).cloned();
        let (tensor, flat) = match &pass {
            Some(pass) => (pass.tensor.clone(), self.tensors[&pass.tensor].clone()),
            None => (written.clone(), flat),
        };
        let Some(assembly) = &flat.assembly else { return s };
        let (coordinates, counted) = match &pass {
            Some(pass) => pass.coordinates(&indices, &self.held, &origin),
            None => (indices, Vec::new()),
        };
        if pass.as_ref().is_some_and(|pass| pass.counts) {
            all.extend(queries(&tensor, assembly, &coordinates, &origin));
            return Stmt::seq(all.into_iter().chain(counted), origin);
        }
        let reserved = self.reserved.clone();
        let start = match pass {
            Some(_) => Path::new(&tensor, assembly, &coordinates, &origin),
            None => Path {
                reserved: &reserved.counts,
                opened: &reserved.opened,
                from,
                position: above(at).positions.first,
                coordinate: above(at).coordinate,
                run_end: self.run_end.clone(),
                ..Path::new(&tensor, assembly, &coordinates, &origin)
            },
        };
        let path = path(start);
        self.marked.get_mut().extend(path.marked.map(|k| (tensor.clone(), k)));
        let values = &flat.values;
        // Where the position depends on the value, levels store it.
        let target = match &assembly.value {
            Some(value) => Expr::load(&value.symbol, Vec::new(), value.dtype),
            None => Expr::load(&values.symbol, vec![path.position.into()], values.dtype),
        };
        let own = access::with_target(&s, &target);
        // A list has the values of reductions, which are combined later.
        let own = match own.kind() {
            StmtKind::ReduceTo { tensor: t, indices, value, .. } if self.collected.contains_key(&tensor) => {
                let (tensor, indices, value) = (t.clone(), indices.clone(), value.clone());
                own.with_kind(StmtKind::Store { tensor, indices, value })
            }
            _ => own,
        };
        let own = self.stmt(&own, bound);
        match assembly.value {
            Some(_) => all.extend([own].into_iter().chain(path.all)),
            None => all.extend(path.all.into_iter().chain([own])),
        }
        Stmt::seq(all.into_iter().chain(path.last).chain(counted), origin)
    }

    /// Returns the levels of a result that the program makes; none for others.
    pub(super) fn made_levels(&self, tensor: &Symbol) -> Vec<LevelLayout> {
        match self.appends(tensor) {
            true => self.tensors[tensor].layout(),
            false => Vec::new(),
        }
    }

    /// Declares the arrays of the tensors that the program makes: of results around its body, of local tensors where
    /// they are declared.
    pub(super) fn with_made(&self, body: &Stmt) -> Stmt {
        let body = self.with_made_inside(body, &mut FxHashSet::default());
        self.made.iter().fold(body, |body, tensor| self.with_lists(body, tensor))
    }

    /// Declares arrays of local tensors. Copies of a loop's body declare the same tensor, and get arrays of their own;
    /// `seen` has those that are declared.
    fn with_made_inside(&self, s: &Stmt, seen: &mut FxHashSet<Symbol>) -> Stmt {
        let inner = s.map(&mut |s| self.with_made_inside(s, seen), &mut Expr::clone);
        match inner.kind() {
            StmtKind::For { iter, .. } if self.collects_nothing(iter) => Stmt::nop(),
            StmtKind::VarDef { tensor, body } if self.passes.contains_key(&tensor.symbol) => body.clone(),
            StmtKind::VarDef { tensor, body } if self.appends(&tensor.symbol) => {
                let declared = self.with_lists(body.clone(), &tensor.symbol);
                match seen.insert(tensor.symbol.clone()) {
                    true => declared,
                    false => copy::statement(&declared, "structured", "copy"),
                }
            }
            StmtKind::Seq(all) => Stmt::seq(all.iter().cloned(), s.origin().clone()),
            _ => inner,
        }
    }

    /// Declares the arrays of a tensor around the statements that use it.
    fn with_lists(&self, body: Stmt, tensor: &Symbol) -> Stmt {
        let flat = &self.tensors[tensor];
        let Some(assembly) = &flat.assembly else { return body };
        let origin = body.origin().derive("structured", "arrays");
        let declared = |body: Stmt, tensor: &Arc<Tensor>| {
            Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone())
        };
        let mut body = body;
        let is_closed = |t: &Symbol| {
            let of = self.collected.get(t).map(|(of, _)| of).or(self.passes.get(t).map(|pass| &pass.tensor));
            t == tensor || of == Some(tensor)
        };
        let is_list = self.collected.contains_key(tensor);
        if !is_list && !self.complete.values().flatten().any(is_closed) {
            body = Stmt::seq([self.closed(tensor, &origin), body], origin.clone());
        }
        // A list of writes has the coordinates of the tensor, which are checked there.
        let levels = assembly.levels.iter().filter(|_| !is_list);
        let checks = levels.filter_map(|own| fits(tensor, assembly, own, &origin));
        let (rooms, counts) = assembly.scalars();
        let counters = self.counters(tensor);
        let restarted = self.passes.values().find(|pass| pass.counts && pass.tensor == *tensor);
        let restarted = restarted.map_or_else(Vec::new, |pass| pass.remapping.restarted(&origin));
        let last = assembly.levels.iter().rev().find(|own| own.how.adds_one() && own.is_last);
        let of = self.collected.get(tensor).map_or(tensor, |(of, _)| of);
        let reserved = match (self.totals.get(tensor), last) {
            // (A local tensor may be made in each iteration of a loop.)
            (Some(total), Some(own)) if self.made.contains(of) => assembly.reserved(&own.counts[0], total, &origin),
            _ => Vec::new(),
        };
        let marked = self.marked.borrow().get(tensor).and_then(|k| assembly.unmarked(*k, &origin));
        let start = checks.chain(assembly.begun(&origin)).chain(marked).chain(reserved).chain(restarted);
        body = Stmt::seq(start.collect::<Vec<_>>().into_iter().chain([body]), origin.clone());
        body = assembly.arrays().chain(&counters).fold(body, declared);
        let start: Vec<Stmt> = rooms.iter().map(|room| set(room, Expr::int(0), &origin)).collect();
        body = Stmt::seq(start.into_iter().chain([body]), origin.clone());
        rooms.into_iter().chain(counts).fold(body, declared)
    }
}

/// Enters the coordinates of an element, level by level, from the first level of a path.
pub(super) fn path(mut path: Path<'_>) -> Path<'_> {
    let assembly = path.assembly;
    for ((k, own), coordinate) in assembly.levels.iter().enumerate().skip(path.from).zip(path.coordinates) {
        let last = path.run_end.as_ref().filter(|_| own.how.joins()).map(|end| end.minus(&Expr::int(1)));
        if let Some(index) = own.how.largest(last.as_ref().unwrap_or(coordinate)) {
            path.all.extend(path.index_check(k, coordinate, &index));
        }
        own.how.enter(&mut path, k, coordinate);
        path.coordinate = coordinate.clone();
    }
    if assembly.has_query() && assembly.value.is_none() {
        path.assume_in(&assembly.values);
    }
    path
}

/// Checks that the indices of a level fit in their type; `None` if they do, or if each element is checked.
fn fits(tensor: &Symbol, assembly: &AssembledArrays, own: &AssembledLevel, origin: &Origin) -> Option<Stmt> {
    let (dtype, size) = (own.index?, &own.level.size);
    let all = assembly.rooms.iter().flat_map(|room| &room.arrays).chain(&assembly.fixed);
    let begins_with_size = |(array, first): &(Arc<Tensor>, Option<Expr>)| {
        first.as_ref() == Some(size) && own.level.arrays.iter().any(|own| own.symbol == array.symbol)
    };
    let stores_size = own.how.stores_size() || all.into_iter().any(begins_with_size);
    let after = own.how.largest(&Expr::int(0)).and_then(|e| e.as_int()).unwrap_or(0);
    let most = if stores_size { largest(dtype) } else { largest(dtype).saturating_sub(after).saturating_add(1) };
    let is_known = size.as_int().is_some_and(|size| size <= most);
    let each = !stores_size && dtype != DType::I32;
    if dtype == DType::I64 || is_known || each || own.level.dimension().is_none() {
        return None;
    }
    let wider = if dtype == DType::I32 { "i64" } else { "i32" };
    let message = vec![
        MessagePart::Text("a dimension of size ".to_string()),
        MessagePart::Value(size.clone()),
        MessagePart::Text(format!(" of `{tensor}` is too large for indices of type {dtype}: write `index={wider}`")),
    ];
    let cond = size.less_eq(&Expr::int(most));
    Some(Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Index }, origin.clone()))
}
