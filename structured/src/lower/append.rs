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
use super::state::{Bindings, Lower};
use super::workspace::{iterator_of, store_at};
use crate::access;
use crate::assemble::Assembled;
use crate::layout::{AppendedList, LevelLayout, TensorLevels};
use crate::level::TensorLevel;
use crate::levels::compressed::{CRD, POS};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use taffeta_analysis::pass::copy;
use taffeta_ast::format::LevelKind;
use taffeta_ast::stmt::{AssertKind, LoopProps, MessagePart, Role, Routine};
use taffeta_ast::{DType, Expr, Extent, Origin, Stmt, StmtKind, Symbol, Tensor};

impl Lower {
    /// Registers the tensors that the program makes, and returns the arrays of its results.
    pub(super) fn appended(&mut self, assembled: &Assembled) -> Vec<Arc<Tensor>> {
        let mut made = Vec::new();
        for (tensor, complete) in &assembled.tensors {
            let Some(flat) = TensorLevels::appended(tensor) else { continue };
            if tensor.role == Role::Result {
                made.extend(flat.arrays().into_iter().map(|a| a.tensor));
                self.made.push(tensor.symbol.clone());
            }
            if let Some(id) = complete {
                self.complete.insert(*id, tensor.symbol.clone());
            }
            self.declare(tensor, flat);
        }
        for c in &assembled.collected {
            self.collected.insert(c.list.symbol.clone(), (c.tensor.clone(), c.op));
            let dims = (0..c.list.shape.len()).collect();
            self.stands_for.insert(c.list.symbol.clone(), (c.tensor.clone(), dims));
        }
        assembled.warnings.iter().for_each(|d| self.warn(d.clone()));
        for (row, of, dim) in &assembled.workspaces {
            self.sorted.insert(row.clone());
            self.stands_for.insert(row.clone(), (of.clone(), vec![*dim]));
        }
        made
    }

    /// Returns whether elements are appended to a tensor.
    pub(super) fn appends(&self, tensor: &Symbol) -> bool {
        self.tensors.get(tensor).is_some_and(|flat| !flat.lists.is_empty())
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
        match self.complete.get(&s.id()) {
            Some(tensor) => {
                let origin = s.origin().derive("structured", "complete");
                let last = match self.collected.get(tensor) {
                    Some((of, op)) => self.assembled_from(tensor, of, *op, &origin),
                    None => close(tensor, &self.tensors[tensor], &origin),
                };
                Stmt::seq([inner, last], origin)
            }
            None => inner,
        }
    }

    /// Lowers the write of an element that is appended.
    pub(super) fn append(&mut self, s: &Stmt, element: &Expr, bound: &Bindings) -> Stmt {
        let Some((fibre, at)) = load(element) else { return s.clone() };
        let (tensor, from) = self.fibres[fibre].clone();
        let flat = self.tensors[&tensor].clone();
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
        let coordinates: Vec<Expr> = at[PATH..].iter().map(|a| a.index.clone()).collect();
        let path = self.path(&tensor, (from, above(at).positions.first), &coordinates, &origin);
        let values = &flat.values;
        let own = access::with_target(&s, &Expr::load(&values.symbol, vec![path.position.into()], values.dtype));
        // A list has the values of reductions, which are combined later.
        let own = match own.kind() {
            StmtKind::ReduceTo { tensor: t, indices, value, .. } if self.collected.contains_key(&tensor) => {
                let (tensor, indices, value) = (t.clone(), indices.clone(), value.clone());
                own.with_kind(StmtKind::Store { tensor, indices, value })
            }
            _ => own,
        };
        let mut all = all;
        all.extend(path.all);
        all.push(self.stmt(&own, bound));
        all.extend(path.last);
        Stmt::seq(all, origin)
    }

    /// Enters the coordinates of an element, level by level, from a position in the level above `from`.
    pub(super) fn path(
        &self,
        tensor: &Symbol,
        (from, position): (usize, Expr),
        coordinates: &[Expr],
        origin: &Origin,
    ) -> Path {
        let flat = &self.tensors[tensor];
        let is_list = self.collected.contains_key(tensor);
        let mut path = Path { origin: origin.clone(), is_list, position, all: Vec::new(), last: None };
        for ((k, level), coordinate) in flat.levels.iter().enumerate().skip(from).zip(coordinates) {
            match level.level.kind {
                LevelKind::Dense => path.position = path.position.times(&level.size).plus(coordinate),
                LevelKind::Singleton => {
                    path.all.extend(narrow(tensor, level, coordinate, origin));
                    path.set(&level.arrays[0], coordinate);
                }
                _ => {
                    path.all.extend(narrow(tensor, level, coordinate, origin));
                    path.enter(tensor, flat, k, coordinate);
                }
            }
        }
        path
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
        let origin = body.origin().derive("structured", "arrays");
        let declared = |body: Stmt, tensor: &Arc<Tensor>| {
            Stmt::new(StmtKind::VarDef { tensor: tensor.clone(), body }, origin.clone())
        };
        let zero = |scalar: &Arc<Tensor>| set(scalar, Expr::int(0), &origin);
        let mut body = body;
        let is_closed = |t: &Symbol| t == tensor || self.collected.get(t).is_some_and(|(of, _)| of == tensor);
        if !self.collected.contains_key(tensor) && !self.complete.values().any(is_closed) {
            body = Stmt::seq([close(tensor, flat, &origin), body], origin.clone());
        }
        let is_list = self.collected.contains_key(tensor);
        for list in flat.lists.iter().rev() {
            // A list of writes has no first positions, and the coordinates of the tensor, which are checked there.
            let levels = flat.levels[list.level..].iter().take_while(|l| !is_list && l.level.kind != LevelKind::Dense);
            let checks = levels.flat_map(|l| Some(fits(tensor, &l.size, l.arrays.last()?.dtype, &origin)));
            let checks: Vec<Stmt> = checks.flatten().collect();
            let first = (!is_list).then_some(&list.first);
            let opened = (!is_list).then_some(&list.opened);
            let rooms: Vec<&Arc<Tensor>> = list.first_room.iter().chain([&list.room]).collect();
            let start = checks.into_iter().chain(opened.into_iter().chain([&list.count]).map(zero));
            body = Stmt::seq(start.chain([body]), origin.clone());
            body = list.arrays.iter().chain(first).fold(body, declared);
            let start: Vec<Stmt> = rooms.iter().map(|room| zero(room)).collect();
            body = Stmt::seq(start.into_iter().chain([body]), origin.clone());
            body = rooms.into_iter().chain(opened).chain([&list.count]).fold(body, declared);
        }
        body
    }
}

/// Path of an appended element from level to level.
pub(super) struct Path {
    origin: Origin,
    /// Whether the elements are those of a list of writes, whose first positions are not needed.
    is_list: bool,
    /// Position in the level above, at last that of the value.
    pub(super) position: Expr,
    /// Statements before the value is stored.
    pub(super) all: Vec<Stmt>,
    /// Statement after the value is stored.
    pub(super) last: Option<Stmt>,
}

impl Path {
    fn set(&mut self, array: &Tensor, value: &Expr) {
        self.all.push(store_at(array, &self.position, value.clone(), self.origin.clone()));
    }

    fn assume(&mut self, cond: Expr) {
        self.all.push(Stmt::new(StmtKind::Assume { cond }, self.origin.clone()));
    }

    /// Enters a coordinate in the list at level `k`: appends it, unless it is the last one of a list above another.
    fn enter(&mut self, tensor: &Symbol, flat: &TensorLevels, k: usize, coordinate: &Expr) {
        let Some(list) = flat.lists.iter().find(|list| list.level == k) else { return };
        let (level, count) = (&flat.levels[k], list.count.load([]));
        let parent = self.position.clone();
        let opened = (!self.is_list).then(|| open(tensor, list, &parent.plus(&Expr::int(1)), &self.origin));
        self.all.extend(opened);
        self.assume(Expr::int(0).less_eq(&count));
        self.assume(count.less(&Expr::int(taffeta_ast::value::MAX_SIZE)));
        let one_more = count.plus(&Expr::int(1));
        let grow = grow(Routine::Grow, &list.room, &list.arrays, &one_more, &self.origin);
        let fits = Stmt::new(StmtKind::Assume { cond: count.less(&list.room.load([])) }, self.origin.clone());
        let crd = &level.arrays[CRD];
        let append = |origin: &Origin| {
            vec![grow.clone(), fits.clone(), store_at(crd, &count, coordinate.clone(), origin.clone())]
        };
        let more = set(&list.count, one_more.clone(), &self.origin);
        let is_last = flat.lists.last().is_some_and(|last| last.level == k);
        if is_last {
            self.all.extend(append(&self.origin));
            self.position = count;
            self.last = Some(more);
            return;
        }
        let appended = Stmt::seq(append(&self.origin).into_iter().chain([more]), self.origin.clone());
        if level.level.unique {
            let first = level.load(POS, &parent);
            let previous = level.load(CRD, &count.minus(&Expr::int(1)));
            let new = count.equals(&first).or(&previous.equals(coordinate).negate());
            self.all.push(Stmt::new(StmtKind::If { cond: new, then: appended, otherwise: None }, self.origin.clone()));
        } else {
            self.all.push(appended);
        }
        self.position = list.count.load([]).minus(&Expr::int(1));
    }
}

/// Sets the first positions of all parents before `end`.
fn open(tensor: &Symbol, list: &AppendedList, end: &Expr, origin: &Origin) -> Stmt {
    let mut all = Vec::new();
    if let Some(room) = &list.first_room {
        all.push(grow(Routine::Grow, room, std::slice::from_ref(&list.first), end, origin));
        all.push(Stmt::new(StmtKind::Assume { cond: end.less_eq(&room.load([])) }, origin.clone()));
    }
    let r = iterator_of(tensor, "r");
    let opened = list.opened.load([]);
    all.push(Stmt::new(StmtKind::Assume { cond: Expr::int(0).less_eq(&opened) }, origin.clone()));
    let body = store_at(&list.first, &Expr::var(&r), list.count.load([]), origin.clone());
    let extent = Extent::Range { begin: opened, end: end.clone(), step: Expr::int(1) };
    let props = LoopProps::default();
    all.push(Stmt::new(StmtKind::For { iter: r, extent, props, body }, origin.clone()));
    all.push(set(&list.opened, end.clone(), origin));
    Stmt::seq(all, origin.clone())
}

/// Completes a tensor: sets the remaining first positions, and makes the arrays as long as they have elements.
pub(super) fn close(tensor: &Symbol, flat: &TensorLevels, origin: &Origin) -> Stmt {
    let mut all = Vec::new();
    for list in flat.lists.iter() {
        let end = list.parents.plus(&Expr::int(1));
        if let Some(room) = &list.first_room {
            all.push(grow(Routine::Fit, room, std::slice::from_ref(&list.first), &end, origin));
        }
        let count = list.count.load([]);
        all.extend(counted(tensor, &count, list.first.dtype, origin));
        all.push(open(tensor, list, &end, origin));
        all.push(grow(Routine::Fit, &list.room, &list.arrays, &count, origin));
    }
    Stmt::seq(all, origin.clone())
}

/// Checks that positions up to a count fit in their type.
fn counted(tensor: &Symbol, count: &Expr, dtype: DType, origin: &Origin) -> Option<Stmt> {
    (dtype != DType::I64).then(|| {
        let message = vec![
            MessagePart::Text(format!("`{tensor}` has ")),
            MessagePart::Value(count.clone()),
            MessagePart::Text(format!(" elements, more than indices of type {dtype} count: write `index=i64`")),
        ];
        let cond = count.less_eq(&Expr::int(i64::from(i32::MAX)));
        Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Index }, origin.clone())
    })
}

/// Checks that all coordinates of a dimension fit in i32, if that is their type; `None` if it is known.
fn fits(tensor: &Symbol, size: &Expr, dtype: DType, origin: &Origin) -> Option<Stmt> {
    let most = 1 << 31;
    if dtype != DType::I32 || size.as_int().is_some_and(|size| size <= most) {
        return None;
    }
    let message = vec![
        MessagePart::Text("a dimension of size ".to_string()),
        MessagePart::Value(size.clone()),
        MessagePart::Text(format!(" of `{tensor}` is too large for indices of type {dtype}: write `index=i64`")),
    ];
    let cond = size.less_eq(&Expr::int(most));
    Some(Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Index }, origin.clone()))
}

/// Checks that a coordinate fits in its type, if that is u8 or u16: the dimension may be larger than their range.
fn narrow(tensor: &Symbol, level: &TensorLevel, coordinate: &Expr, origin: &Origin) -> Option<Stmt> {
    let dtype = level.arrays.last()?.dtype;
    let count = match dtype {
        DType::U8 => 1 << 8,
        DType::U16 => 1 << 16,
        _ => return None,
    };
    if level.size.as_int().is_some_and(|size| size <= count) {
        return None;
    }
    let place = level.dimension().map_or_else(String::new, |d| format!(" in dimension {d}"));
    let message = vec![
        MessagePart::Text(format!("an element of `{tensor}` has index ")),
        MessagePart::Value(coordinate.clone()),
        MessagePart::Text(format!("{place}, too large for indices of type {dtype}: write `index=i32`")),
    ];
    let cond = coordinate.less(&Expr::int(count));
    Some(Stmt::new(StmtKind::Assert { cond, message, kind: AssertKind::Index }, origin.clone()))
}

pub(super) fn set(scalar: &Tensor, value: Expr, origin: &Origin) -> Stmt {
    let kind = StmtKind::Store { tensor: scalar.symbol.clone(), indices: Vec::new(), value };
    Stmt::new(kind, origin.clone())
}

fn grow(routine: Routine, length: &Tensor, arrays: &[Arc<Tensor>], to: &Expr, origin: &Origin) -> Stmt {
    let tensors = std::iter::once(&length.symbol).chain(arrays.iter().map(|a| &a.symbol)).cloned().collect();
    Stmt::new(StmtKind::Call { routine, tensors, operands: vec![to.clone()] }, origin.clone())
}
